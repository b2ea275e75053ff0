//! Values of rows. Numbers that are absent are -1, texts that are absent are empty.

use super::Row;
use sqlx::Row as _;
use std::fmt::Write;

/// Converted values of a row.
pub(crate) trait RowExt {
    /// A text.
    fn text(&self, column: &str) -> Result<String, sqlx::Error>;
    /// A text, if it is there.
    fn maybe_text(&self, column: &str) -> Result<Option<String>, sqlx::Error>;
    /// A number.
    fn integer(&self, column: &str) -> Result<i64, sqlx::Error>;
    /// A number that is not negative.
    fn natural(&self, column: &str) -> Result<u64, sqlx::Error>;
    /// A number, if it is there.
    fn maybe_natural(&self, column: &str) -> Result<Option<u64>, sqlx::Error>;
    /// JSON.
    fn json<T: serde::de::DeserializeOwned>(&self, column: &str) -> Result<T, sqlx::Error>;
}

impl RowExt for Row {
    fn text(&self, column: &str) -> Result<String, sqlx::Error> {
        self.try_get(column)
    }

    fn maybe_text(&self, column: &str) -> Result<Option<String>, sqlx::Error> {
        self.text(column)
            .map(|text| (!text.is_empty()).then_some(text))
    }

    fn integer(&self, column: &str) -> Result<i64, sqlx::Error> {
        self.try_get(column)
    }

    fn natural(&self, column: &str) -> Result<u64, sqlx::Error> {
        let number = self.integer(column)?;
        u64::try_from(number).map_err(|error| sqlx::Error::ColumnDecode {
            index: column.to_owned(),
            source: Box::new(error),
        })
    }

    fn maybe_natural(&self, column: &str) -> Result<Option<u64>, sqlx::Error> {
        self.integer(column)
            .map(|number| u64::try_from(number).ok())
    }

    fn json<T: serde::de::DeserializeOwned>(&self, column: &str) -> Result<T, sqlx::Error> {
        let text = self.text(column)?;
        serde_json::from_str(&text).map_err(|error| sqlx::Error::ColumnDecode {
            index: column.to_owned(),
            source: Box::new(error),
        })
    }
}

/// Takes the rows after the first `limit` away, of which one more than that was asked for; returns whether there were such.
pub(crate) fn cut(rows: &mut Vec<Row>, limit: u32) -> bool {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    has_more
}

/// A number for the store, which has 63 bits. What is validated never has more.
pub(crate) fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Hexadecimal digits, two for each byte.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
