//! Statements with values for their parameters.

use super::{Row, number};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use slicewise_units::Duration;
use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, AssertSqlSafe, SqlSafeStr};

/// Names of one statement.
const NAMES_TOGETHER: usize = 500;

/// A value of a row: numbers that are absent are -1, texts that are absent are empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Number(i64),
    Text(String),
}

/// A type with values in the store.
pub(crate) trait ToValue {
    fn to_value(&self) -> Value;
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self) -> Value {
        T::to_value(self)
    }
}

macro_rules! stored {
    ($($type:ty: |$value:ident| $converted:expr;)*) => {$(
        impl ToValue for $type {
            fn to_value(&self) -> Value {
                let $value = self;
                $converted
            }
        }
    )*};
}

stored! {
    i64: |value| Value::Number(*value);
    u64: |value| Value::Number(number(*value));
    u32: |value| Value::Number((*value).into());
    u16: |value| Value::Number((*value).into());
    bool: |value| Value::Number((*value).into());
    Option<u64>: |value| Value::Number(value.map_or(-1, number));
    Option<Duration>: |value| value.map(Duration::nanos).to_value();
    String: |value| Value::Text(value.clone());
    Option<String>: |value| value.as_deref().unwrap_or_default().to_value();
    str: |value| Value::Text(value.to_owned());
}

/// Values for the parameters of a statement, or the columns of a row, in order.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        [$($crate::sql::ToValue::to_value(&$value)),*]
    };
}
pub(crate) use values;

/// Binds values to the parameters of a statement, in order.
pub(super) fn bind<'q>(
    query: Query<'q, Any, AnyArguments>,
    values: impl IntoIterator<Item = Value>,
) -> Query<'q, Any, AnyArguments> {
    let bind = |query: Query<'q, Any, AnyArguments>, value| match value {
        Value::Number(number) => query.bind(number),
        Value::Text(text) => query.bind(text),
    };
    values.into_iter().fold(query, bind)
}

/// Result of a statement.
type Done<'c, T> = BoxFuture<'c, Result<T, sqlx::Error>>;

/// A connection on which statements are executed.
pub(crate) trait Sql {
    fn connection(&mut self) -> &mut AnyConnection;

    /// Executes a statement with these values, and returns how many rows it changed.
    fn change(
        &mut self,
        statement: impl SqlSafeStr,
        values: impl IntoIterator<Item = Value>,
    ) -> Done<'_, u64> {
        let (query, connection) = (bind(sqlx::query(statement), values), self.connection());
        Box::pin(async move { Ok(query.execute(connection).await?.rows_affected()) })
    }

    /// Returns all rows of a statement with these values.
    fn rows(
        &mut self,
        statement: impl SqlSafeStr,
        values: impl IntoIterator<Item = Value>,
    ) -> Done<'_, Vec<Row>> {
        bind(sqlx::query(statement), values)
            .fetch_all(self.connection())
            .boxed()
    }

    /// Returns the first row of a statement with these values, if there is one.
    fn row(
        &mut self,
        statement: impl SqlSafeStr,
        values: impl IntoIterator<Item = Value>,
    ) -> Done<'_, Option<Row>> {
        bind(sqlx::query(statement), values)
            .fetch_optional(self.connection())
            .boxed()
    }

    /// Returns the first row of a statement with these values.
    ///
    /// # Errors
    /// If there is none, or the store fails.
    fn one_row(
        &mut self,
        statement: impl SqlSafeStr,
        values: impl IntoIterator<Item = Value>,
    ) -> Done<'_, Row> {
        bind(sqlx::query(statement), values)
            .fetch_one(self.connection())
            .boxed()
    }

    /// Executes a statement that ends, but for `end`, with a column which must be one of `names`: for as many of them at a time as it takes.
    /// Returns its rows.
    fn named<N: AsRef<str>>(
        &mut self,
        (statement, end): (&str, &str),
        values: impl IntoIterator<Item = Value>,
        names: &[N],
    ) -> Done<'_, Vec<Row>> {
        let values = Vec::from_iter(values);
        let query = |names: &[N]| {
            let text = named((statement, end), values.len() + 1, names.len());
            let query = sqlx::query(AssertSqlSafe(text)).persistent(names.len() == 1);
            let names = names.iter().map(|name| name.as_ref().to_value());
            bind(query, values.iter().cloned().chain(names))
        };
        let queries: Vec<_> = names.chunks(NAMES_TOGETHER).map(query).collect();
        let connection = self.connection();
        Box::pin(async move {
            let mut rows = Vec::new();
            for query in queries {
                rows.extend(query.fetch_all(&mut *connection).await?);
            }
            Ok(rows)
        })
    }
}

impl Sql for AnyConnection {
    fn connection(&mut self) -> &mut AnyConnection {
        self
    }
}

/// A statement about `count` names, the first of which is parameter `first`.
pub(crate) fn named((statement, end): (&str, &str), first: usize, count: usize) -> String {
    format!("{statement} IN ({}) {end}", places(first, count))
}

/// The places of `count` parameters, the first of which is `first`.
pub(super) fn places(first: usize, count: usize) -> String {
    let places = (first..first + count).map(|place| format!("${place}"));
    places.collect::<Vec<_>>().join(", ")
}
