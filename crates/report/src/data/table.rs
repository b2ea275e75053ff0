//! A table written row by row, as CSV and as Parquet at once: both hold the same numbers.

use super::parquet_table::{ParquetTable, signed};
use crate::error::ReportError;
use crate::layout::AtomicFile;
use csv::Writer as CsvWriter;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

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
    csv: CsvWriter<AtomicFile>,
    csv_path: PathBuf,
    parquet: ParquetTable,
    field: String,
}

impl TableWriter {
    /// A table `<folder>/<schema.name>.csv` and `.parquet`.
    pub(crate) fn create(folder: &Path, schema: Schema) -> Result<Self, ReportError> {
        let csv_path = folder.join(format!("{}.csv", schema.name));
        let mut csv = CsvWriter::from_writer(AtomicFile::create(&csv_path)?);
        csv.write_record(schema.columns.iter().map(|c| c.name))
            .map_err(|source| ReportError::Csv {
                path: csv_path.clone(),
                source,
            })?;
        Ok(Self {
            csv,
            csv_path,
            parquet: ParquetTable::create(folder, schema.name, schema)?,
            field: String::new(),
        })
    }

    /// Write one row: one value a column, of the column's kind.
    pub(crate) fn row(&mut self, values: &[Value<'_>]) -> Result<(), ReportError> {
        self.parquet.row(values)?;
        self.csv_row(values).map_err(|source| ReportError::Csv {
            path: self.csv_path.clone(),
            source,
        })
    }

    /// Write what is buffered and give both files their names.
    pub(crate) fn finish(self) -> Result<(), ReportError> {
        let csv_error = |source| ReportError::Csv {
            path: self.csv_path.clone(),
            source,
        };
        let csv = self
            .csv
            .into_inner()
            .map_err(|e| csv_error(e.into_error().into()))?;
        // Neither file appears where the other cannot be finished.
        let parquet = self.parquet.end()?;
        csv.commit()?;
        parquet.commit()?;
        Ok(())
    }

    fn csv_row(&mut self, values: &[Value<'_>]) -> Result<(), csv::Error> {
        for value in values {
            if let Value::Text(text) = value {
                self.csv.write_field(text)?;
                continue;
            }
            self.field.clear();
            // Writing to a String cannot fail.
            let _ = match *value {
                Value::Null | Value::Text(_) => Ok(()),
                Value::Integer(v) => write!(self.field, "{}", signed(v)),
                Value::Unsigned(v) => write!(self.field, "{v}"),
                Value::Real(v) => write!(self.field, "{v}"),
                Value::Flag(v) => write!(self.field, "{v}"),
            };
            self.csv.write_field(&self.field)?;
        }
        self.csv.write_record(None::<&[u8]>)
    }
}
