//! A table written row by row, as CSV and as Parquet at once: both hold the same numbers.

use super::column::{Schema, Value, header};
use super::folder::DataFolder;
use super::parquet_table::{ParquetTable, signed};
use crate::error::ReportError;
use slicewise_results::{Action, AtomicFile, ResultsError};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::{fs, io};

/// Write a whole table.
pub(super) fn write_table<'a>(
    folder: &DataFolder,
    schema: Schema,
    rows: impl IntoIterator<Item = Vec<Value<'a>>>,
) -> Result<(), ReportError> {
    let mut table = TableWriter::create(folder, schema)?;
    for row in rows {
        table.row(&row)?;
    }
    table.finish()
}

/// The same; without rows, remove the table that an earlier report had.
pub(super) fn write_or_remove<'a>(
    folder: &DataFolder,
    schema: Schema,
    rows: Option<impl IntoIterator<Item = Vec<Value<'a>>>>,
) -> Result<(), ReportError> {
    match rows {
        Some(rows) => write_table(folder, schema, rows),
        None => remove(folder, schema),
    }
}

fn remove(folder: &DataFolder, schema: Schema) -> Result<(), ReportError> {
    for extension in ["csv", "parquet"] {
        let path = folder.path().join(format!("{}.{extension}", schema.name));
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(ResultsError::io(Action::Remove, path, e).into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Writes one table to two files.
pub(crate) struct TableWriter {
    csv: AtomicFile,
    csv_path: PathBuf,
    parquet: ParquetTable,
    line: String,
    /// Values with which every row begins.
    first: Vec<Value<'static>>,
}

impl TableWriter {
    /// A table `<schema.name>.csv` and `.parquet` in `folder`.
    pub(crate) fn create(folder: &DataFolder, schema: Schema) -> Result<Self, ReportError> {
        let csv_path = folder.path().join(format!("{}.csv", schema.name));
        let mut table = Self {
            csv: AtomicFile::create(&csv_path)?,
            csv_path,
            parquet: ParquetTable::create(folder, schema.name, schema)?,
            line: header(&folder.columns(schema)),
            first: Vec::new(),
        };
        table.end_line()?;
        Ok(table)
    }

    /// Begin every further row with `first`, the values of the first columns of the folder.
    pub(super) fn begin_rows(&mut self, first: Vec<Value<'static>>) {
        self.first = first;
    }

    /// Write one row: one value a column, of the column's kind.
    pub(crate) fn row(&mut self, values: &[Value<'_>]) -> Result<(), ReportError> {
        let whole: Vec<Value<'_>>;
        let values = match self.first.is_empty() {
            true => values,
            false => {
                whole = self.first.iter().chain(values).cloned().collect();
                &whole
            }
        };
        self.parquet.row(values)?;
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.line.push(',');
            }
            self.field(value);
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
    fn field(&mut self, value: &Value<'_>) {
        let line = &mut self.line;
        // Writing to a String cannot fail.
        let _ = match value {
            Value::Null => Ok(()),
            Value::Text(text) => {
                let guard = if is_formula(text) { "'" } else { "" };
                write!(line, "\"{guard}{}\"", text.replace('"', "\"\""))
            }
            Value::Integer(v) => write!(line, "{}", signed(*v)),
            Value::Unsigned(v) => write!(line, "{v}"),
            Value::Real(v) => write!(line, "{v:?}"),
            Value::Flag(v) => write!(line, "{v}"),
        };
    }

    fn end_line(&mut self) -> Result<(), ReportError> {
        self.line.push('\n');
        let written = self.csv.write_all(self.line.as_bytes());
        self.line.clear();
        written.map_err(|e| ResultsError::io(Action::Write, &self.csv_path, e).into())
    }
}

/// Tables that are filled run by run.
pub(super) struct Tables {
    folder: DataFolder,
    /// By name, those that were begun.
    begun: BTreeMap<&'static str, TableWriter>,
    /// Values with which every row begins.
    first: Vec<Value<'static>>,
}

impl Tables {
    /// The tables that every report has; others begin with their first row.
    pub(super) fn create(
        folder: &DataFolder,
        of_every_report: impl IntoIterator<Item = Schema>,
    ) -> Result<Self, ReportError> {
        let mut tables = Self {
            folder: folder.clone(),
            begun: BTreeMap::new(),
            first: Vec::new(),
        };
        tables.begin(of_every_report)?;
        Ok(tables)
    }

    /// Begin every further row with `first`, the values of the first columns of the folder.
    pub(super) fn begin_rows(&mut self, first: Vec<Value<'static>>) {
        self.first = first;
    }

    /// Begin tables although they may get no row.
    pub(super) fn begin(
        &mut self,
        schemas: impl IntoIterator<Item = Schema>,
    ) -> Result<(), ReportError> {
        schemas
            .into_iter()
            .try_for_each(|schema| self.of(schema).map(|_| ()))
    }

    fn of(&mut self, schema: Schema) -> Result<&mut TableWriter, ReportError> {
        Ok(match self.begun.entry(schema.name) {
            Entry::Occupied(table) => table.into_mut(),
            Entry::Vacant(place) => place.insert(TableWriter::create(&self.folder, schema)?),
        })
    }

    /// Write rows of the table of `schema`.
    pub(super) fn rows<'v>(
        &mut self,
        schema: Schema,
        rows: impl IntoIterator<Item = Vec<Value<'v>>>,
    ) -> Result<(), ReportError> {
        let mut rows = rows.into_iter().peekable();
        if rows.peek().is_none() {
            return Ok(());
        }
        let first = self.first.clone();
        let table = self.of(schema)?;
        table.begin_rows(first);
        rows.try_for_each(|row| table.row(&row))
    }

    /// Remove the tables that an earlier report had and this one did not begin.
    pub(super) fn remove_others(
        &self,
        schemas: impl IntoIterator<Item = Schema>,
    ) -> Result<(), ReportError> {
        let mut others = schemas
            .into_iter()
            .filter(|schema| !self.begun.contains_key(schema.name));
        others.try_for_each(|schema| remove(&self.folder, schema))
    }

    /// Give all files their names.
    pub(super) fn finish(self) -> Result<(), ReportError> {
        self.begun.into_values().try_for_each(TableWriter::finish)
    }
}

/// Returns true if a spreadsheet would take the text for a formula, quotes or not. An apostrophe before it, which
/// spreadsheets do not show, makes it text.
fn is_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n'])
}
