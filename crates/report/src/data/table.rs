//! A table written row by row, as CSV and as Parquet at once: both hold the same numbers.

use super::folder::DataFolder;
use super::parquet_table::{ParquetTable, signed};
use crate::error::ReportError;
use slicewise_results::{AtomicFile, ResultsError};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// UTF-8 text.
    Text,
    /// A count, a size or a time; as a signed 64-bit integer, which readers subtract safely.
    Integer,
    /// Any 64 bits: a seed.
    Unsigned,
    /// A 64-bit float.
    Real,
    /// True or false.
    Flag,
}

/// A column: units are last in its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// False where every row has a value.
    pub(crate) optional: bool,
}

impl Column {
    pub(crate) const fn new(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            optional: false,
        }
    }

    pub(crate) const fn optional(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            optional: true,
        }
    }
}

/// A table's name and columns, in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schema {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [Column],
}

impl Schema {
    /// The first line of the table as CSV, without its end.
    pub(super) fn header(self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|c| c.name).collect();
        names.join(",")
    }
}

/// One value of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    Null,
    Text(&'a str),
    Integer(u64),
    Unsigned(u64),
    Real(f64),
    Flag(bool),
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Value<'_> {
    fn from(value: u64) -> Self {
        Self::Integer(value)
    }
}

impl From<u32> for Value<'_> {
    fn from(value: u32) -> Self {
        Self::Integer(value.into())
    }
}

impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// Writes one table to two files.
pub(crate) struct TableWriter {
    csv: AtomicFile,
    csv_path: PathBuf,
    parquet: ParquetTable,
    line: String,
}

impl TableWriter {
    /// A table `<schema.name>.csv` and `.parquet` in `folder`.
    pub(crate) fn create(folder: &DataFolder, schema: Schema) -> Result<Self, ReportError> {
        let csv_path = folder.path().join(format!("{}.csv", schema.name));
        let mut table = Self {
            csv: AtomicFile::create(&csv_path)?,
            csv_path,
            parquet: ParquetTable::create(folder, schema.name, schema)?,
            line: schema.header(),
        };
        table.end_line()?;
        Ok(table)
    }

    /// Write one row: one value a column, of the column's kind.
    pub(crate) fn row(&mut self, values: &[Value<'_>]) -> Result<(), ReportError> {
        self.parquet.row(values)?;
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.line.push(',');
            }
            self.field(*value);
        }
        self.end_line()
    }

    /// Give both files their names.
    pub(crate) fn finish(self) -> Result<(), ReportError> {
        // Neither file appears where the other cannot be finished.
        let parquet = self.parquet.end()?;
        self.csv.commit()?;
        parquet.commit()?;
        Ok(())
    }

    /// Text is always quoted and a float always has a point or an exponent, so that the kind of a value can
    /// be seen: `"6"` is a name, `6` an integer, `6.0` a float, and nothing is no value.
    fn field(&mut self, value: Value<'_>) {
        let line = &mut self.line;
        // Writing to a String cannot fail.
        let _ = match value {
            Value::Null => Ok(()),
            Value::Text(text) => {
                let guard = if is_formula(text) { "'" } else { "" };
                write!(line, "\"{guard}{}\"", text.replace('"', "\"\""))
            }
            Value::Integer(v) => write!(line, "{}", signed(v)),
            Value::Unsigned(v) => write!(line, "{v}"),
            Value::Real(v) => write!(line, "{v:?}"),
            Value::Flag(v) => write!(line, "{v}"),
        };
    }

    fn end_line(&mut self) -> Result<(), ReportError> {
        self.line.push('\n');
        let written = self.csv.write_all(self.line.as_bytes());
        self.line.clear();
        written.map_err(|e| ResultsError::io("write", &self.csv_path, e).into())
    }
}

/// Whether a spreadsheet would take the text for a formula, quotes or not. An apostrophe before it, which
/// spreadsheets do not show, makes it text.
fn is_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n'])
}
