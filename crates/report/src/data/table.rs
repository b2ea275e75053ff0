//! A table written row by row, as CSV and as Parquet at once: both hold the same numbers.

use super::folder::DataFolder;
use super::parquet_table::{ParquetTable, signed};
use crate::error::ReportError;
use slicewise_results::{AtomicFile, ResultsError};
use std::borrow::Cow;
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
    /// A column of values of type `T`.
    pub(super) const fn of<T: Field>(name: &'static str) -> Self {
        Self {
            name,
            kind: T::KIND,
            optional: T::OPTIONAL,
        }
    }
}

/// A table's name and columns, in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schema {
    pub(crate) name: &'static str,
    pub(super) add_columns: fn(&mut Vec<Column>),
}

impl Schema {
    pub(super) fn columns(self) -> Vec<Column> {
        let mut columns = Vec::new();
        (self.add_columns)(&mut columns);
        columns
    }

    /// The first line of the table as CSV, without its end.
    pub(crate) fn header(self) -> String {
        let columns = self.columns();
        let names: Vec<&str> = columns.iter().map(|c| c.name).collect();
        names.join(",")
    }
}

/// One value of a row.
#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    Null,
    Text(Cow<'a, str>),
    Integer(u64),
    Unsigned(u64),
    Real(f64),
    Flag(bool),
}

/// A type of values that a column may hold.
pub(super) trait Field {
    const KIND: Kind;
    const OPTIONAL: bool = false;
}

/// A seed: all of its bits count.
pub(super) struct Seed(pub(super) u64);

macro_rules! fields {
    ($($type:ty => $kind:ident($value:ident => $of:expr);)*) => { $(
        impl<'a> Field for $type {
            const KIND: Kind = Kind::$kind;
        }
        impl<'a> From<$type> for Value<'a> {
            fn from($value: $type) -> Self {
                Self::$kind($of)
            }
        }
    )* };
}

fields! {
    &'a str => Text(text => Cow::Borrowed(text));
    String => Text(text => Cow::Owned(text));
    u8 => Integer(value => value.into());
    u16 => Integer(value => value.into());
    u32 => Integer(value => value.into());
    u64 => Integer(value => value);
    Seed => Unsigned(seed => seed.0);
    f64 => Real(value => value);
    bool => Flag(value => value);
}

impl<T: Field> Field for Option<T> {
    const KIND: Kind = T::KIND;
    const OPTIONAL: bool = true;
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A table, or columns that several tables have in common: `NAME: TYPE = VALUE` describes each column once, for the
/// schema and for a row; `..GROUP(…)` stands for the columns of another group. The type says what the column
/// holds, and an `Option` that a row may have no value.
macro_rules! columns {
    (@columns $to:ident ..$group:ident($($of:expr),*), $($rest:tt)*) => {
        $group::add_columns($to);
        columns!(@columns $to $($rest)*)
    };
    (@columns $to:ident $column:ident: $type:ty = $value:expr, $($rest:tt)*) => {
        $to.push(crate::data::table::Column::of::<$type>(stringify!($column)));
        columns!(@columns $to $($rest)*)
    };
    (@columns $to:ident) => {};
    (@row $to:ident ..$group:ident($($of:expr),*), $($rest:tt)*) => {
        $group::add_to($to, $($of),*);
        columns!(@row $to $($rest)*)
    };
    (@row $to:ident $column:ident: $type:ty = $value:expr, $($rest:tt)*) => {
        let value: $type = $value;
        $to.push(value.into());
        columns!(@row $to $($rest)*)
    };
    (@row $to:ident) => {};
    ($(#[$doc:meta])* $name:ident<$life:lifetime> = $table:literal ($($of:tt: $type:ty),*) $body:tt) => {
        columns! { $(#[$doc])* $name<$life>($($of: $type),*) $body }

        impl $name {
            pub(crate) const SCHEMA: crate::data::table::Schema = crate::data::table::Schema {
                name: $table,
                add_columns: Self::add_columns,
            };

            pub(super) fn row<$life>($($of: $type),*) -> Vec<crate::data::table::Value<$life>> {
                let mut row = Vec::new();
                Self::add_to(&mut row, $($of),*);
                row
            }
        }
    };
    ($(#[$doc:meta])* $name:ident<$life:lifetime>($($of:tt: $type:ty),*) { $($body:tt)* }) => {
        $(#[$doc])*
        pub(crate) struct $name;

        impl $name {
            fn add_columns(to: &mut Vec<crate::data::table::Column>) {
                columns!(@columns to $($body)*);
            }

            fn add_to<$life>(to: &mut Vec<crate::data::table::Value<$life>>, $($of: $type),*) {
                columns!(@row to $($body)*);
            }
        }
    };
}
pub(super) use columns;

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
        written.map_err(|e| ResultsError::io("write", &self.csv_path, e).into())
    }
}

/// Whether a spreadsheet would take the text for a formula, quotes or not. An apostrophe before it, which
/// spreadsheets do not show, makes it text.
fn is_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n'])
}
