//! The SQL that SQLite and PostgreSQL share: rows, inserts, and transactions that change a store.

mod clock;
mod insert;
mod rows;
mod statement;
mod transaction;

pub(crate) use crate::refusal::EventNote;
pub(crate) use clock::StoreClock;
pub use clock::{Clock, SystemClock};
pub(crate) use insert::Insert;
pub(crate) use rows::{RowExt, cut, hexadecimal, number};
#[cfg(test)]
pub(crate) use statement::named;
pub(crate) use statement::{Sql, ToValue, Value, values};
pub(crate) use transaction::{Answer, Failed, Numbers, Tx, shortened};

use sqlx::any::AnyRow;

/// SQL dialect of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

/// A row of any query.
pub(crate) type Row = AnyRow;
