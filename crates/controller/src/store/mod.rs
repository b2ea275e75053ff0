//! The store: SQLite or PostgreSQL by the same SQL.
//!
//! Everything that changes it goes through one [`Writer`] of the process, in transactions that exclude all others also
//! between processes: `BEGIN IMMEDIATE` of SQLite, or a lock on the row of `state` in PostgreSQL. So generations and events
//! have consecutive numbers in the order in which they become visible, and no sum is tested that another transaction is about to change.

mod backup;
mod check;
mod checkpoint;
mod jobs;
mod location;
mod migrate;
mod queue;
#[cfg(test)]
pub(crate) mod testing;
mod tidy;
mod wal;
mod writer;

pub use backup::{BackupError, Restored, backup, restore};
pub(crate) use check::check_at_start;
pub use check::{CHECK_ADVICE, check};
pub(crate) use jobs::{Request, carry_out, work};
pub use location::{Location, LocationError};
pub(crate) use writer::{CHANGES_KEPT, Totals, Writer};

use crate::sql::{Clock, Dialect, RowExt, StoreClock, SystemClock};
use sqlx::any::AnyPoolOptions;
use sqlx::{AnyConnection, AnyPool, Connection, Executor};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;

/// Connections for reading.
const READERS: u32 = 8;
/// How long a connection to the store may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// SQLite's code for a file that is none of its own (`SQLITE_NOTADB`).
const NOT_A_DATABASE: &str = "26";

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be opened.
    #[error("the store {location} cannot be opened: {reason}")]
    Open {
        /// Where it is, without a password.
        location: String,
        /// Why not.
        reason: String,
    },
    /// It is another file.
    #[error(
        "the store {location} is not a SQLite database: name one, or a file that does not exist, to make it"
    )]
    NotADatabase {
        /// Where it is.
        location: String,
    },
    /// It is an empty file.
    #[error(
        "the store {location} is an empty file: if it was a store, its slices and tokens are lost, so restore a backup into a new one; \
         otherwise remove the file, and a new store is made"
    )]
    Empty {
        /// Where it is.
        location: String,
    },
    /// Its write-ahead log is damaged.
    #[error(
        "the store {location}: its write-ahead log (`-wal`) is damaged before its last transaction, so changes that were answered would be lost: \
         restore a backup into a new store; nothing was changed"
    )]
    DamagedLog {
        /// Where it is.
        location: String,
    },
    /// It is a database of something else.
    #[error(
        "the store {location} is a database of something else, with tables that are not of a controller: name a store of a controller, \
         or a file that does not exist, to make one; nothing was changed"
    )]
    Foreign {
        /// Where it is.
        location: String,
    },
    /// It was written by a newer version of this program.
    #[error(
        "the store {location} has schema version {found}, and this program knows versions up to {known}: use the newer version \
         of slicewise that has written it, or restore a backup of before; nothing was changed"
    )]
    Newer {
        /// Where it is.
        location: String,
        /// Version of its schema.
        found: i64,
        /// The newest version known.
        known: i64,
    },
    /// A statement failed.
    #[error("the store {location}: {source}")]
    Statement {
        /// Where it is.
        location: String,
        /// Cause of the failure.
        source: sqlx::Error,
    },
}

/// How far the store is, as far as this process knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The last generation.
    pub(crate) generation: u64,
    /// The number of the last event.
    pub(crate) event: u64,
}

/// An open store.
#[derive(Debug, Clone)]
pub struct Store {
    /// For reading.
    pool: AnyPool,
    /// For the writer.
    own: AnyPool,
    dialect: Dialect,
    location: Location,
    clock: StoreClock,
    writer: Writer,
    progress: watch::Sender<Progress>,
    /// Number of findings of the check at the start, once it has ended.
    findings: Arc<OnceLock<usize>>,
}

impl Store {
    /// Open the store, and make it or bring its schema up to date if need be.
    ///
    /// # Errors
    /// If it cannot be opened, or is of a newer version.
    pub async fn open(location: &Location) -> Result<Self, StoreError> {
        Self::open_with_clock(location, Arc::new(SystemClock::default())).await
    }

    /// The same, with another clock than that of the system.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_with_clock(
        location: &Location,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        sqlx::any::install_default_drivers();
        location.prepare().await?;
        let dialect = location.dialect();
        let pool = connect(location, READERS, Purpose::Reading).await?;
        migrate::migrate(&pool, dialect, location).await?;
        let own = connect(location, 1, Purpose::Writing).await?;
        let (progress, _) = watch::channel(Progress::default());
        let clock = StoreClock::new(clock);
        let writer = Writer::start(
            own.clone(),
            pool.clone(),
            dialect,
            clock.clone(),
            progress.clone(),
        );
        let store = Self {
            pool,
            own,
            dialect,
            location: location.clone(),
            clock,
            writer,
            progress,
            findings: Arc::default(),
        };
        let failed = |source| StoreError::Statement {
            location: location.to_string(),
            source,
        };
        store.refresh().await.map_err(failed)?;
        Ok(store)
    }

    /// Where it is, without a password.
    #[must_use]
    pub fn location(&self) -> &Location {
        &self.location
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(crate) fn pool(&self) -> &AnyPool {
        &self.pool
    }

    pub(crate) fn clock(&self) -> &StoreClock {
        &self.clock
    }

    pub(crate) fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Number of findings of the check at the start; `None` until it has ended.
    pub(crate) fn findings(&self) -> Option<usize> {
        self.findings.get().copied()
    }

    fn set_findings(&self, findings: usize) {
        // There is one start.
        let _ = self.findings.set(findings);
    }

    /// Learns of every commit of this process, and of those of others when somebody looks.
    pub(crate) fn watch(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Returns true if anybody waits for a commit.
    pub(crate) fn has_watchers(&self) -> bool {
        self.progress.receiver_count() > 0
    }

    /// Look how far the store is.
    pub(crate) async fn refresh(&self) -> Result<Progress, sqlx::Error> {
        let row = sqlx::query("SELECT generation, event FROM state WHERE id = 1");
        let row = row.fetch_one(&self.pool).await?;
        let found = Progress {
            generation: row.natural("generation")?,
            event: row.natural("event")?,
        };
        announce(&self.progress, found);
        Ok(found)
    }

    /// A transaction that reads one state of the store, whatever is committed meanwhile.
    pub(crate) async fn read(&self) -> Result<sqlx::Transaction<'static, sqlx::Any>, sqlx::Error> {
        let mut transaction = self.pool.begin().await?;
        if self.dialect == Dialect::Postgres {
            let isolate = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY";
            transaction.execute(isolate).await?;
        }
        Ok(transaction)
    }

    /// Close it: what was being written is finished first.
    pub async fn close(&self) {
        self.writer.stop().await;
        self.own.close().await;
        self.pool.close().await;
    }
}

/// Wake those who wait, if `found` is further than what they know.
fn announce(progress: &watch::Sender<Progress>, found: Progress) {
    progress.send_if_modified(|known| {
        let is_further = found.generation > known.generation || found.event > known.event;
        if is_further {
            known.generation = known.generation.max(found.generation);
            known.event = known.event.max(found.event);
        }
        is_further
    });
}

/// Purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Reading,
    Writing,
}

async fn connect(
    location: &Location,
    connections: u32,
    purpose: Purpose,
) -> Result<AnyPool, StoreError> {
    let dialect = location.dialect();
    let options = AnyPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(PATIENCE)
        // A connection to a file does not break while nobody uses it.
        .test_before_acquire(dialect == Dialect::Postgres)
        // SQLite ends a transaction on its own where the disk is full. The driver does not notice, and would begin no other
        // one on this connection.
        .before_acquire(|connection, _| {
            Box::pin(async move { Ok(!connection.is_in_transaction()) })
        })
        .after_connect(move |connection, _| {
            Box::pin(async move { set_up(connection, dialect, purpose).await })
        });
    let unusable = |error: &sqlx::Error| match error {
        sqlx::Error::Database(error) if error.code().as_deref() == Some(NOT_A_DATABASE) => {
            StoreError::NotADatabase {
                location: location.to_string(),
            }
        }
        other => StoreError::Open {
            location: location.to_string(),
            reason: reason_of(other),
        },
    };
    // A pool tries again until its patience ends, and does not say what failed.
    if dialect == Dialect::Sqlite {
        let first = AnyConnection::connect(&location.url()).await;
        let mut first = first.map_err(|error| unusable(&error))?;
        let is_usable = first.execute("PRAGMA schema_version").await;
        is_usable.map_err(|error| unusable(&error))?;
        let is_foreign = is_foreign(&mut first).await;
        if is_foreign.map_err(|error| unusable(&error))? {
            let location = location.to_string();
            return Err(StoreError::Foreign { location });
        }
        first.close().await.map_err(|error| unusable(&error))?;
    }
    let connected = options.connect(&location.url()).await;
    connected.map_err(|error| unusable(&error))
}

/// Returns whether a file of SQLite has tables, and none of a store.
async fn is_foreign(connection: &mut AnyConnection) -> Result<bool, sqlx::Error> {
    let tables = sqlx::query("SELECT name FROM sqlite_master WHERE type = 'table'");
    let tables = tables.fetch_all(connection).await?;
    let names = tables.iter().map(|row| row.text("name"));
    let names: Vec<String> = names.collect::<Result<_, _>>()?;
    Ok(!names.is_empty() && names.iter().all(|name| name != "schema_version"))
}

async fn set_up(
    connection: &mut AnyConnection,
    dialect: Dialect,
    purpose: Purpose,
) -> Result<(), sqlx::Error> {
    let statements: &[&'static str] = match dialect {
        Dialect::Sqlite => &[
            "PRAGMA busy_timeout = 10000",
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = FULL",
        ],
        // A process that stops in a transaction must not hold the others for ever.
        Dialect::Postgres => &[
            "SET synchronous_commit = on",
            "SET lock_timeout = '10s'",
            "SET idle_in_transaction_session_timeout = '10s'",
        ],
    };
    let more: &[&'static str] = match (dialect, purpose) {
        // The log is moved by another connection (`checkpoint`). 64 MiB hold what changes of 100,000 slices touch.
        (Dialect::Sqlite, Purpose::Writing) => &[
            "PRAGMA wal_autocheckpoint = 0",
            "PRAGMA cache_size = -65536",
        ],
        _ => &[],
    };
    for statement in statements.iter().chain(more) {
        connection.execute(*statement).await?;
    }
    Ok(())
}

/// For people.
fn reason_of(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::PoolTimedOut => "no connection within 5 s".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_transaction_that_sqlite_has_ended_on_its_own_leaves_no_connection_that_cannot_begin_another_one()
     {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::Sqlite(folder.path().join("store.sqlite"));
        let store = Store::open(&location).await.unwrap();
        for _ in 0..20 {
            let mut transaction = store.pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
            // What SQLite does where the disk is full.
            transaction.execute("ROLLBACK").await.unwrap();
            drop(transaction);
            // It is returned by another task.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        store.close().await;
    }
}
