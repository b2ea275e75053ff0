//! A table written row by row as Parquet.

use super::column::{Column, Kind, Schema, Value};
use super::folder::DataFolder;
use crate::error::ReportError;
use parquet::basic::Compression;
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use slicewise_results::AtomicFile;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Writes one table to one file.
pub(crate) struct ParquetTable {
    columns: Vec<Column>,
    writer: SerializedFileWriter<AtomicFile>,
    path: PathBuf,
    buffers: Vec<Buffer>,
    rows: usize,
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

impl ParquetTable {
    /// A table `<folder>/<name>.parquet`.
    pub(crate) fn create(
        folder: &DataFolder,
        name: &str,
        schema: Schema,
    ) -> Result<Self, ReportError> {
        let columns = folder.columns(schema);
        let path = folder.path().join(format!("{name}.parquet"));
        let file = AtomicFile::create(&path)?;
        let writer = parse_message_type(&message_type(schema.name, &columns))
            .and_then(|message| {
                SerializedFileWriter::new(file, Arc::new(message), Arc::new(properties(folder)))
            })
            .map_err(|source| ReportError::Parquet {
                path: path.clone(),
                source,
            })?;
        let buffers = columns.iter().map(|c| Buffer::new(c.kind)).collect();
        Ok(Self {
            columns,
            writer,
            path,
            buffers,
            rows: 0,
        })
    }

    /// Write one row: one value a column, of the column's kind.
    pub(crate) fn row(&mut self, values: &[Value<'_>]) -> Result<(), ReportError> {
        if values.len() != self.columns.len() {
            return Err(self.error(ParquetError::General(format!(
                "a row of {} values for {} columns",
                values.len(),
                self.columns.len()
            ))));
        }
        let columns = self.columns.iter().zip(&mut self.buffers);
        for ((column, buffer), value) in columns.zip(values) {
            if !buffer.push(column, value) {
                let source =
                    ParquetError::General(format!("{value:?} does not fit column {}", column.name));
                return Err(self.error(source));
            }
        }
        self.rows += 1;
        if self.rows >= ROWS_IN_A_GROUP {
            self.end_row_group()
        } else {
            Ok(())
        }
    }

    /// Write what is buffered; the file is complete, and has no name yet.
    pub(crate) fn end(mut self) -> Result<AtomicFile, ReportError> {
        self.end_row_group()?;
        self.writer
            .into_inner()
            .map_err(|source| ReportError::Parquet {
                path: self.path,
                source,
            })
    }

    fn end_row_group(&mut self) -> Result<(), ReportError> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        write_row_group(&mut self.writer, &mut self.buffers).map_err(|source| self.error(source))
    }

    fn error(&self, source: ParquetError) -> ReportError {
        ReportError::Parquet {
            path: self.path.clone(),
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
    fn push(&mut self, column: &Column, value: &Value<'_>) -> bool {
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
            (Values::Integer(values), Value::Integer(v)) => values.push(signed(*v)),
            (Values::Integer(values), Value::Unsigned(v)) => values.push(v.cast_signed()),
            (Values::Real(values), Value::Real(v)) => values.push(*v),
            (Values::Flag(values), Value::Flag(v)) => values.push(*v),
            _ => return false,
        }
        true
    }
}

/// Past the largest signed integer, 292 years in ns, every value is that integer: in both files.
pub(super) fn signed(value: u64) -> i64 {
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
            (ColumnWriter::ByteArrayColumnWriter(w), Values::Text(v)) => write(w, v, levels)?,
            (ColumnWriter::Int64ColumnWriter(w), Values::Integer(v)) => write(w, v, levels)?,
            (ColumnWriter::DoubleColumnWriter(w), Values::Real(v)) => write(w, v, levels)?,
            (ColumnWriter::BoolColumnWriter(w), Values::Flag(v)) => write(w, v, levels)?,
            _ => return Err(ParquetError::General("a column of another kind".to_owned())),
        }
        buffer.definition_levels.clear();
        column.close()?;
    }
    group.close().map(|_| ())
}

/// Write the values of a column, and forget them.
fn write<T: DataType>(
    column: &mut ColumnWriterImpl<'_, T>,
    values: &mut Vec<T::T>,
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    column.write_batch(values, levels, None)?;
    values.clear();
    Ok(())
}

fn message_type(table: &str, columns: &[Column]) -> String {
    let mut message = format!("message {table} {{ ");
    for column in columns {
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

fn properties(folder: &DataFolder) -> WriterProperties {
    WriterProperties::builder()
        .set_key_value_metadata(Some(folder.metadata()))
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("slicewise version ", env!("CARGO_PKG_VERSION")).to_owned())
        .build()
}

/// Bounds memory: a row of the widest table is some 300 bytes.
const ROWS_IN_A_GROUP: usize = 1 << 16;
