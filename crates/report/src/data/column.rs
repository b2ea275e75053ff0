//! Columns of tables: what each holds, described once for the schema and for the rows.

use serde::Serialize;
use slicewise_stats::record::RunKey;
use std::borrow::Cow;

/// Type of the values in a column.
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
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: Kind,
    /// False where every row has a value.
    pub(crate) optional: bool,
}

impl Column {
    /// A column of values of type `T`.
    pub(super) const fn of<T: Field>(name: &'static str) -> Self {
        Self {
            name: Cow::Borrowed(name),
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
        header(&self.columns())
    }
}

/// The names of columns as a line of CSV, without its end.
pub(super) fn header(columns: &[Column]) -> String {
    let names: Vec<&str> = columns.iter().map(|c| &*c.name).collect();
    names.join(",")
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

/// The name of a variant, as it is in records and JSON.
pub(super) fn variant(of: impl Serialize) -> String {
    match serde_json::to_value(of) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

/// A table, or columns that several tables have in common: `NAME: TYPE = VALUE` describes each column once, for the
/// schema and for a row; `fields OF: TYPE { NAME … }` describes columns that are called as the fields of `OF` that they
/// hold, and `..GROUP(…)` stands for the columns of another group. The type says what the column holds, and an
/// `Option` that a row may have no value.
macro_rules! columns {
    (@columns $to:ident ..$group:ident($($of:expr),*), $($rest:tt)*) => {
        $group::add_columns($to);
        columns!(@columns $to $($rest)*)
    };
    (@columns $to:ident fields $($of:ident).+: $type:ty { $($column:ident)+ } $($rest:tt)*) => {
        $($to.push(crate::data::column::Column::of::<$type>(stringify!($column)));)+
        columns!(@columns $to $($rest)*)
    };
    (@columns $to:ident $column:ident: $type:ty = $value:expr, $($rest:tt)*) => {
        $to.push(crate::data::column::Column::of::<$type>(stringify!($column)));
        columns!(@columns $to $($rest)*)
    };
    (@columns $to:ident) => {};
    (@row $to:ident ..$group:ident($($of:expr),*), $($rest:tt)*) => {
        $group::add_to($to, $($of),*);
        columns!(@row $to $($rest)*)
    };
    (@row $to:ident fields $($of:ident).+: $type:ty { $column:ident $($more:ident)* } $($rest:tt)*) => {
        columns!(@row $to $column: $type = $($of).+.$column,);
        columns!(@row $to fields $($of).+: $type { $($more)* } $($rest)*)
    };
    (@row $to:ident fields $($of:ident).+: $type:ty {} $($rest:tt)*) => { columns!(@row $to $($rest)*) };
    (@row $to:ident $column:ident: $type:ty = $value:expr, $($rest:tt)*) => {
        let value: $type = $value;
        $to.push(value.into());
        columns!(@row $to $($rest)*)
    };
    (@row $to:ident) => {};
    ($(#[$doc:meta])* $name:ident<$life:lifetime> = $table:literal ($($of:tt: $type:ty),*) $body:tt) => {
        columns! { $(#[$doc])* $name<$life>($($of: $type),*) $body }

        impl $name {
            pub(crate) const SCHEMA: crate::data::column::Schema = crate::data::column::Schema {
                name: $table,
                add_columns: Self::add_columns,
            };

            pub(super) fn row<$life>($($of: $type),*) -> Vec<crate::data::column::Value<$life>> {
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
            pub(in crate::data) fn add_columns(to: &mut Vec<crate::data::column::Column>) {
                columns!(@columns to $($body)*);
            }

            pub(in crate::data) fn add_to<$life>(to: &mut Vec<crate::data::column::Value<$life>>, $($of: $type),*) {
                columns!(@row to $($body)*);
            }
        }
    };
}
pub(super) use columns;

columns! {
    /// Which run.
    Run<'a>(key: &'a RunKey) {
        policy: &str = &key.policy,
        scenario: &str = &key.scenario,
        repetition: u32 = key.repetition,
    }
}

/// Value of a series for a bin.
pub(super) fn at<T: Copy>(values: &[T], bin: usize) -> Option<T> {
    values.get(bin).copied()
}
