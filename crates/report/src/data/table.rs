//! A table written row by row, as CSV and as Parquet at once: both hold the same numbers.

use crate::error::ReportError;
use crate::layout::AtomicFile;
use csv::Writer as CsvWriter;
use parquet::basic::Compression;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    schema: Schema,
    csv: CsvWriter<AtomicFile>,
    csv_path: PathBuf,
    parquet: SerializedFileWriter<AtomicFile>,
    parquet_path: PathBuf,
    buffers: Vec<Buffer>,
    rows: usize,
    field: String,
}

/// The values of one column since the last row group.
struct Buffer {
    values: Values,
    /// 1 where a row has a value, 0 where it has none; empty for a column without gaps.
    definition_levels: Vec<i16>,
}

enum Values {
    Text(Vec<ByteArray>),
    Integer(Vec<i64>),
    Real(Vec<f64>),
    Flag(Vec<bool>),
}

impl TableWriter {
    /// A table `<folder>/<schema.name>.csv` and `.parquet`.
    pub(crate) fn create(folder: &Path, schema: Schema) -> Result<Self, ReportError> {
        let csv_path = folder.join(format!("{}.csv", schema.name));
        let parquet_path = folder.join(format!("{}.parquet", schema.name));
        let mut csv = CsvWriter::from_writer(AtomicFile::create(&csv_path)?);
        csv.write_record(schema.columns.iter().map(|c| c.name))
            .map_err(|source| ReportError::Csv {
                path: csv_path.clone(),
                source,
            })?;
        let file = AtomicFile::create(&parquet_path)?;
        let parquet = parse_message_type(&message_type(schema))
            .and_then(|message| {
                SerializedFileWriter::new(file, Arc::new(message), Arc::new(properties()))
            })
            .map_err(|source| ReportError::Parquet {
                path: parquet_path.clone(),
                source,
            })?;
        let buffers = schema.columns.iter().map(|c| Buffer::new(c.kind)).collect();
        let field = String::new();
        Ok(Self {
            schema,
            csv,
            csv_path,
            parquet,
            parquet_path,
            buffers,
            rows: 0,
            field,
        })
    }

    /// Write one row: one value a column, of the column's kind.
    pub(crate) fn row(&mut self, values: &[Value<'_>]) -> Result<(), ReportError> {
        if values.len() != self.schema.columns.len() {
            return Err(self.parquet_error(ParquetError::General(format!(
                "a row of {} values for {} columns",
                values.len(),
                self.schema.columns.len()
            ))));
        }
        for ((column, buffer), value) in self
            .schema
            .columns
            .iter()
            .zip(&mut self.buffers)
            .zip(values)
        {
            if !buffer.push(*column, *value) {
                let source =
                    ParquetError::General(format!("{value:?} does not fit column {}", column.name));
                return Err(self.parquet_error(source));
            }
        }
        self.csv_row(values).map_err(|source| ReportError::Csv {
            path: self.csv_path.clone(),
            source,
        })?;
        self.rows += 1;
        if self.rows >= ROWS_IN_A_GROUP {
            self.end_row_group()
        } else {
            Ok(())
        }
    }

    /// Write what is buffered and give both files their names.
    pub(crate) fn finish(mut self) -> Result<(), ReportError> {
        self.end_row_group()?;
        let csv_error = |source| ReportError::Csv {
            path: self.csv_path.clone(),
            source,
        };
        let csv = self
            .csv
            .into_inner()
            .map_err(|e| csv_error(e.into_error().into()))?;
        let parquet = self
            .parquet
            .into_inner()
            .map_err(|source| ReportError::Parquet {
                path: self.parquet_path,
                source,
            })?;
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

    fn end_row_group(&mut self) -> Result<(), ReportError> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        write_row_group(&mut self.parquet, &mut self.buffers).map_err(|source| {
            ReportError::Parquet {
                path: self.parquet_path.clone(),
                source,
            }
        })
    }

    fn parquet_error(&self, source: ParquetError) -> ReportError {
        ReportError::Parquet {
            path: self.parquet_path.clone(),
            source,
        }
    }
}

impl Buffer {
    fn new(kind: Kind) -> Self {
        let values = match kind {
            Kind::Text => Values::Text(Vec::new()),
            Kind::Integer | Kind::Unsigned => Values::Integer(Vec::new()),
            Kind::Real => Values::Real(Vec::new()),
            Kind::Flag => Values::Flag(Vec::new()),
        };
        Self {
            values,
            definition_levels: Vec::new(),
        }
    }

    /// False where the value is not the column's.
    fn push(&mut self, column: Column, value: Value<'_>) -> bool {
        if column.optional {
            self.definition_levels
                .push(i16::from(!matches!(value, Value::Null)));
        }
        match (&mut self.values, value) {
            (_, Value::Null) => return column.optional,
            (Values::Text(values), Value::Text(text)) => {
                // The same name stands in many rows: share its bytes.
                let shared = values
                    .last()
                    .filter(|last| last.data() == text.as_bytes())
                    .cloned();
                values.push(shared.unwrap_or_else(|| ByteArray::from(text.as_bytes().to_vec())));
            }
            (Values::Integer(values), Value::Integer(v)) => values.push(signed(v)),
            (Values::Integer(values), Value::Unsigned(v)) => values.push(v.cast_signed()),
            (Values::Real(values), Value::Real(v)) => values.push(v),
            (Values::Flag(values), Value::Flag(v)) => values.push(v),
            _ => return false,
        }
        true
    }
}

/// Past the largest signed integer, 292 years in ns, every value is that integer: in both files.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn write_row_group(
    parquet: &mut SerializedFileWriter<AtomicFile>,
    buffers: &mut [Buffer],
) -> Result<(), ParquetError> {
    let mut group = parquet.next_row_group()?;
    for buffer in buffers {
        let Some(mut column) = group.next_column()? else {
            break;
        };
        let levels = Some(buffer.definition_levels.as_slice()).filter(|l| !l.is_empty());
        match (column.untyped(), &mut buffer.values) {
            (ColumnWriter::ByteArrayColumnWriter(w), Values::Text(v)) => {
                w.write_batch(v, levels, None)?;
                v.clear();
            }
            (ColumnWriter::Int64ColumnWriter(w), Values::Integer(v)) => {
                w.write_batch(v, levels, None)?;
                v.clear();
            }
            (ColumnWriter::DoubleColumnWriter(w), Values::Real(v)) => {
                w.write_batch(v, levels, None)?;
                v.clear();
            }
            (ColumnWriter::BoolColumnWriter(w), Values::Flag(v)) => {
                w.write_batch(v, levels, None)?;
                v.clear();
            }
            _ => return Err(ParquetError::General("a column of another kind".to_owned())),
        }
        buffer.definition_levels.clear();
        column.close()?;
    }
    group.close().map(|_| ())
}

fn message_type(schema: Schema) -> String {
    let mut message = format!("message {} {{ ", schema.name);
    for column in schema.columns {
        let presence = if column.optional {
            "OPTIONAL"
        } else {
            "REQUIRED"
        };
        let (physical, logical) = match column.kind {
            Kind::Text => ("BYTE_ARRAY", " (STRING)"),
            Kind::Integer => ("INT64", ""),
            Kind::Unsigned => ("INT64", " (INTEGER(64,false))"),
            Kind::Real => ("DOUBLE", ""),
            Kind::Flag => ("BOOLEAN", ""),
        };
        // Writing to a String cannot fail.
        let _ = write!(message, "{presence} {physical} {}{logical}; ", column.name);
    }
    message.push('}');
    message
}

fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("slicewise version ", env!("CARGO_PKG_VERSION")).to_owned())
        .build()
}

/// Bounds memory: a row of the widest table is some 300 bytes.
const ROWS_IN_A_GROUP: usize = 1 << 16;
