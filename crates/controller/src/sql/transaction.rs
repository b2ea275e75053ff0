//! A transaction that changes the store.

use super::insert::Insert;
use super::{Dialect, RowExt, Sql, StoreClock, values};
use crate::refusal::EventNote;
use crate::refusal::Refusal;
use slicewise_api::EventKind;
use sqlx::{Any, AnyConnection, Transaction};

/// The longest text of an entry of the audit log, characters; no honest request comes near.
const AUDIT_CHARS_MAX: usize = 1_000;

/// Answer to a request after the commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// HTTP status.
    pub(crate) status: u16,
    /// Version of the resource, for the `ETag`.
    pub(crate) version: Option<u64>,
    /// JSON; empty for none.
    pub(crate) body: String,
}

impl Answer {
    /// `value` as JSON.
    pub(crate) fn json(status: u16, value: &impl serde::Serialize) -> Result<Self, Failed> {
        Ok(Self {
            status,
            version: None,
            body: serde_json::to_string(value).map_err(Failed::encoding)?,
        })
    }

    /// Done, and nothing to say.
    pub(crate) const fn empty() -> Self {
        Self {
            status: 204,
            version: None,
            body: String::new(),
        }
    }
}

/// Why something was not done.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The request is refused.
    Refused(Box<Refusal>),
    /// The store failed.
    Store(sqlx::Error),
}

impl Failed {
    pub(crate) fn encoding(error: serde_json::Error) -> Self {
        Self::Store(sqlx::Error::Encode(Box::new(error)))
    }
}

impl From<sqlx::Error> for Failed {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error)
    }
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

/// The last numbers given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) generation: u64,
    pub(crate) event: u64,
    audit: u64,
}

impl Numbers {
    /// Returns those of a row of `state`.
    pub(crate) fn of(row: &super::Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            generation: row.natural("generation")?,
            event: row.natural("event")?,
            audit: row.natural("audit")?,
        })
    }
}

/// A transaction that excludes all others that change the store.
pub(crate) struct Tx {
    transaction: Transaction<'static, Any>,
    /// The time of day, which can jump: for people only.
    pub(crate) now_ms: u64,
    /// Identity of the store.
    pub(crate) store: String,
    /// The age of the store, which only grows.
    pub(crate) age_ms: u64,
    pub(crate) numbers: Numbers,
    /// Nothing of the transaction reads these two: they are written at its end, together.
    events: Insert<9>,
    audit: Insert<6>,
}

/// Where a request began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    numbers: Numbers,
    events: usize,
    audit: usize,
}

impl Tx {
    pub(crate) async fn begin(
        pool: &sqlx::AnyPool,
        dialect: Dialect,
        clock: &StoreClock,
    ) -> Result<Self, sqlx::Error> {
        let (begin, lock) = match dialect {
            Dialect::Sqlite => ("BEGIN IMMEDIATE", "SELECT * FROM state WHERE id = 1"),
            Dialect::Postgres => ("BEGIN", "SELECT * FROM state WHERE id = 1 FOR UPDATE"),
        };
        let mut transaction = pool.begin_with(begin).await?;
        let row = transaction.one_row(lock, []).await?;
        Ok(Self {
            transaction,
            now_ms: clock.now_ms(),
            store: row.text("store")?,
            age_ms: clock.age_ms(row.natural("age_ms")?),
            numbers: Numbers::of(&row)?,
            events: Insert::new(
                "INSERT INTO events (number, at_ms, kind, slice, tenant, gateway, generation, actor, reason)",
                "",
            ),
            audit: Insert::new(
                "INSERT INTO audit (number, at_ms, actor, request, status, detail)",
                "",
            ),
        })
    }

    /// The last generation.
    pub(crate) const fn generation(&self) -> u64 {
        self.numbers.generation
    }

    /// The number of a new generation.
    pub(crate) async fn next_generation(
        &mut self,
        actor: &str,
        reason: Option<&str>,
    ) -> Result<u64, sqlx::Error> {
        self.numbers.generation += 1;
        let generation = self.numbers.generation;
        let insert =
            "INSERT INTO generations (generation, at_ms, actor, reason) VALUES ($1, $2, $3, $4)";
        let values = values![generation, self.now_ms, actor, reason.unwrap_or_default()];
        self.change(insert, values).await?;
        Ok(generation)
    }

    /// Where the next request begins.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            numbers: self.numbers,
            events: self.events.len(),
            audit: self.audit.len(),
        }
    }

    /// Forget what was numbered and noted since `mark`.
    pub(crate) fn return_to(&mut self, mark: Mark) {
        self.numbers = mark.numbers;
        self.events.truncate(mark.events);
        self.audit.truncate(mark.audit);
    }

    /// Note an event.
    pub(crate) fn note(&mut self, kind: EventKind, note: EventNote) {
        self.numbers.event += 1;
        // A name in JSON.
        let kind = serde_json::to_value(kind).unwrap_or_default();
        self.events.push(values![
            self.numbers.event,
            self.now_ms,
            kind.as_str().unwrap_or_default(),
            note.slice,
            note.tenant,
            note.gateway,
            note.generation,
            note.actor,
            note.reason
        ]);
    }

    /// Note who asked for what, and the answer.
    pub(crate) fn audit(&mut self, actor: &str, request: &str, status: u16, detail: &str) {
        self.numbers.audit += 1;
        self.audit.push(values![
            self.numbers.audit,
            self.now_ms,
            shortened(actor),
            shortened(request),
            status,
            // PostgreSQL has no text with it.
            shortened(detail).replace('\0', "\u{fffd}")
        ]);
    }

    /// Write what was noted and the numbers given.
    pub(crate) async fn write_down(&mut self) -> Result<(), sqlx::Error> {
        self.events.save(&mut self.transaction).await?;
        self.audit.save(&mut self.transaction).await?;
        let update =
            "UPDATE state SET generation = $1, event = $2, audit = $3, age_ms = $4 WHERE id = 1";
        let Numbers {
            generation,
            event,
            audit,
        } = self.numbers;
        let values = values![generation, event, audit, self.age_ms];
        self.change(update, values).await.map(drop)
    }

    /// Commit what is written down.
    pub(crate) async fn commit(self) -> Result<Numbers, sqlx::Error> {
        let numbers = self.numbers;
        self.transaction.commit().await?;
        Ok(numbers)
    }
}

impl Sql for Tx {
    fn connection(&mut self) -> &mut AnyConnection {
        &mut self.transaction
    }
}

/// The first characters of a text that a client may have chosen: the audit log only grows.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(AUDIT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_two_characters() {
        let whole = "ü".repeat(AUDIT_CHARS_MAX);
        assert_eq!(shortened(&whole), whole);
        assert_eq!(shortened(&format!("{whole}x")), format!("{whole}…"));
    }
}
