//! Rows of short texts, fitted to a terminal: no cell is broken into lines.

use super::{Colours, PADDING, RULES, coloured, lines_of, marked_as};
use comfy_table::{CellAlignment, ContentArrangement, Table};

/// A column of a [`Listing`].
#[derive(Debug, Clone, Copy)]
pub enum Column {
    /// Texts that may be shortened in the middle.
    Name(&'static str),
    /// Texts that are shown whole.
    Text(&'static str),
    /// Numbers with their units, aligned on the right.
    Number(&'static str),
}

/// A table with one line per row. Columns stand in the order of their importance.
#[derive(Debug)]
pub struct Listing {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

/// Characters that names keep as long as there are columns to leave out.
const SHORT_NAME: usize = 16;
/// Characters that names keep in any case.
const SHORTEST_NAME: usize = 8;
/// Columns that are shown in any case.
const LEAST_COLUMNS: usize = 2;

impl Listing {
    /// Without rows. The text of a column may have several lines.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self {
            columns: columns.into_iter().collect(),
            rows: Vec::new(),
        }
    }

    /// Add a row with a text for each column; an empty one is shown as a dash.
    pub fn add(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().collect());
    }

    /// Colour of a cell that reports something bad.
    #[must_use]
    pub fn bad(text: &str) -> String {
        marked_as("broken", text)
    }

    /// The table in at most `width` columns, and a line about what that leaves out, which is to be found `elsewhere`.
    #[must_use]
    pub fn fitted(self, width: u16, elsewhere: &str, colours: Colours) -> String {
        let (mut text, left_out) = self.fit(width, colours);
        if !left_out.is_empty() {
            let line = format!("Not shown: {} ({elsewhere})", left_out.join(", "));
            text.push_str(&wrapped(&line, width.into()));
            text.push('\n');
        }
        text
    }

    /// The table in at most `width` columns, and what that leaves out: first names are shortened, then the last columns
    /// left out. Columns without any text are left out silently.
    #[must_use]
    pub fn fit(mut self, width: u16, colours: Colours) -> (String, Vec<String>) {
        for index in (0..self.columns.len()).rev() {
            let mut cells = self.rows.iter().filter_map(|row| row.get(index));
            if !self.rows.is_empty() && cells.all(String::is_empty) {
                self.remove(index);
            }
        }
        let width = usize::from(width);
        let least = self.columns.len().min(LEAST_COLUMNS);
        let mut columns = (least..=self.columns.len()).rev();
        let fitting = columns.find_map(|count| {
            let mut first = self.first(count);
            let shortened = first.shorten_names(width, SHORT_NAME);
            (first.width() <= width).then_some((first, shortened))
        });
        let (table, shortened) = fitting.unwrap_or_else(|| {
            let mut first = self.first(least);
            let shortened = first.shorten_names(width, SHORTEST_NAME);
            (first, shortened)
        });
        let left_out = self.columns.iter().skip(table.columns.len());
        let left_out = left_out.map(|column| column.head().replace('\n', " "));
        let left_out = left_out.chain(shortened.then(|| "whole names".to_owned()));
        (
            coloured(&lines_of(&table.table()), colours),
            left_out.collect(),
        )
    }

    /// The first so many columns.
    fn first(&self, count: usize) -> Self {
        let rows = self.rows.iter();
        Self {
            columns: self.columns.iter().copied().take(count).collect(),
            rows: rows
                .map(|row| row.iter().take(count).cloned().collect())
                .collect(),
        }
    }

    fn remove(&mut self, index: usize) {
        for row in self.rows.iter_mut().filter(|row| index < row.len()) {
            row.remove(index);
        }
        self.columns.remove(index);
    }

    fn width(&self) -> usize {
        let widths = self.table().column_max_content_widths();
        let widths = widths.into_iter().map(|width| width + PADDING);
        widths.map(usize::from).sum()
    }

    /// Shorten names until the table fits, the longest first; returns true if one was.
    fn shorten_names(&mut self, width: usize, least: usize) -> bool {
        let mut excess = self.width().saturating_sub(width);
        let mut shortened = false;
        while excess > 0 {
            let longest = (self.columns.iter().enumerate())
                .filter(|(_, column)| matches!(column, Column::Name(_)))
                .map(|(index, _)| (self.longest(index), index))
                .max();
            let Some((length, index)) = longest.filter(|(length, _)| *length > least) else {
                break;
            };
            let room = length.saturating_sub(excess).max(least);
            for cell in self.rows.iter_mut().filter_map(|row| row.get_mut(index)) {
                *cell = shortened_to(cell, room);
            }
            shortened = true;
            excess = self.width().saturating_sub(width);
        }
        shortened
    }

    /// Characters of the longest text of a column.
    fn longest(&self, index: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(index));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table
            .load_style(RULES)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(self.columns.iter().map(|column| column.head()));
        for row in &self.rows {
            table.add_row(row.iter().map(|cell| match cell.as_str() {
                "" => "–",
                text => text,
            }));
        }
        for (column, kind) in table.column_iter_mut().zip(&self.columns) {
            if matches!(kind, Column::Number(_)) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }
}

impl Column {
    const fn head(self) -> &'static str {
        let (Self::Name(head) | Self::Text(head) | Self::Number(head)) = self;
        head
    }
}

/// Both ends of a text around an ellipsis, in at most `most` characters.
fn shortened_to(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let kept = most.saturating_sub(1);
    let end = kept / 2;
    let start: String = text.chars().take(kept - end).collect();
    let end: String = text.chars().skip(length - end).collect();
    format!("{start}…{end}")
}

/// A text in lines of at most `width` characters, as far as its words allow. Further lines of a paragraph are indented.
#[must_use]
pub fn wrapped(text: &str, width: usize) -> String {
    const INDENT: &str = "  ";
    let mut lines = String::with_capacity(text.len());
    for (index, paragraph) in text.split('\n').enumerate() {
        lines.push_str(if index > 0 { "\n" } else { "" });
        let mut at = 0;
        for word in paragraph.split(' ') {
            let length = word.chars().count();
            if at > 0 && at + 1 + length > width {
                lines.truncate(lines.trim_end().len());
                lines.push('\n');
                lines.push_str(INDENT);
                at = INDENT.len();
            } else if at > 0 {
                lines.push(' ');
                at += 1;
            }
            lines.push_str(word);
            at += length;
        }
    }
    lines
}
