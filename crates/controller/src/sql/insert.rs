//! Rows of one table that are inserted together: a statement costs as much as several rows.

use super::statement::{Value, bind, places};
use sqlx::{AnyConnection, AssertSqlSafe};
use std::fmt::Write as _;

/// Rows of one statement. Both stores take more parameters than the widest table then has.
const ROWS_TOGETHER: usize = 100;

/// Rows of `COLUMNS` columns that wait to be inserted.
#[derive(Debug)]
pub(crate) struct Insert<const COLUMNS: usize> {
    /// `INSERT INTO table (columns)`.
    head: &'static str,
    /// Text after the rows.
    tail: &'static str,
    rows: Vec<[Value; COLUMNS]>,
}

impl<const COLUMNS: usize> Insert<COLUMNS> {
    /// No rows yet. `tail` may say what becomes of rows that are there.
    pub(crate) const fn new(head: &'static str, tail: &'static str) -> Self {
        Self {
            head,
            tail,
            rows: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, row: [Value; COLUMNS]) {
        self.rows.push(row);
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Forget those after the first `count`.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.rows.truncate(count);
    }

    /// Insert those that wait.
    pub(crate) async fn save(&mut self, connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
        let mut rows = std::mem::take(&mut self.rows).into_iter();
        while rows.len() > 0 {
            let count = rows.len().min(ROWS_TOGETHER);
            // Statements of other lengths are rare: they are not worth being kept prepared.
            let is_usual = count == 1 || count == ROWS_TOGETHER;
            let insert = sqlx::query(AssertSqlSafe(self.text(count))).persistent(is_usual);
            let insert = bind(insert, rows.by_ref().take(count).flatten());
            insert.execute(&mut *connection).await?;
        }
        Ok(())
    }

    fn text(&self, rows: usize) -> String {
        let mut text = format!("{} VALUES ", self.head);
        for row in 0..rows {
            text.push_str(if row == 0 { "(" } else { ", (" });
            text.push_str(&places(row * COLUMNS + 1, COLUMNS));
            text.push(')');
        }
        // Writing to a string cannot fail.
        let _ = write!(text, " {}", self.tail);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_numbered_through() {
        let insert: Insert<2> = Insert::new("INSERT INTO a (b, c)", "ON CONFLICT (b) DO NOTHING");
        insta::assert_snapshot!(insert.text(2), @"INSERT INTO a (b, c) VALUES ($1, $2), ($3, $4) ON CONFLICT (b) DO NOTHING");
    }
}
