//! A table that people read. The page and the terminal show it each in its own way.

use slicewise_stats::words::time;

/// A table of texts.
#[derive(Debug)]
pub(crate) struct TextTable {
    pub(crate) head: Vec<String>,
    /// How many of the first columns are names; the others are numbers.
    pub(crate) names: usize,
    pub(crate) rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Of columns whose names stand in `head` as in the head of a table: "Slice | Loss".
    pub(crate) fn new(head: &str, names: usize, rows: Vec<Vec<String>>) -> Self {
        Self {
            head: head.split(" | ").map(str::to_owned).collect(),
            names,
            rows,
        }
    }
}

impl TextTable {
    /// Without its first column: a name that all rows have in common.
    pub(crate) fn without_first(mut self) -> Self {
        for row in self.rows.iter_mut().chain([&mut self.head]) {
            row.drain(..1.min(row.len()));
        }
        self.names = self.names.saturating_sub(1);
        self
    }
}

/// A value in words, or a dash where there is none.
pub(crate) fn or_dash<T>(value: Option<T>, words: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), words)
}

/// A time, or a dash where there is none.
pub(crate) fn time_or_dash(ns: Option<u64>) -> String {
    or_dash(ns, |ns| time(ns as f64))
}
