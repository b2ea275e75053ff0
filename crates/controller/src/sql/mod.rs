//! The SQL that SQLite and PostgreSQL share: rows, inserts, and transactions that change a store.

mod clock;
mod insert;
mod rows;
mod transaction;

pub(crate) use crate::refusal::EventNote;
pub(crate) use clock::StoreClock;
pub use clock::{Clock, SystemClock};
pub(crate) use insert::{Insert, NAMES_TOGETHER, named};
pub(crate) use rows::{RowExt, hexadecimal, number};
pub(crate) use transaction::{Answer, Failed, Numbers, Tx, cut};

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
