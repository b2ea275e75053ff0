//! Forgetting what is no longer needed, a little with every few transactions: no request waits for more than a few milliseconds for it, however
//! much there is to forget.

use crate::sql::Numbers;
use crate::sql::Tx;
use crate::sql::{RowExt, Sql, values};

/// Transactions between two times.
const EVERY: u64 = 16;
/// Smallest number that is forgotten at a time, where there are as many.
const LEAST_EVENTS: u64 = 1_000;
const LEAST_GENERATIONS: u64 = 16;
/// Answers that are forgotten at most: as many as requests can have left since the last time.
const MOST_ANSWERS: i64 = 1_024;

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    /// How long an answer is kept for its idempotency key, milliseconds.
    pub(super) answers_ms: u64,
    /// Events.
    pub(super) events: u64,
    /// Generations that gateways can catch up with change by change.
    pub(super) generations: u64,
}

/// When it was done last, and how far the store was then.
#[derive(Debug)]
pub(super) struct Tidy {
    kept: Kept,
    transactions: u64,
    numbers: Numbers,
}

impl Tidy {
    pub(super) fn new(kept: Kept) -> Self {
        Self {
            kept,
            transactions: 0,
            numbers: Numbers::default(),
        }
    }

    /// One more transaction is about to be committed.
    pub(super) async fn on_transaction(&mut self, tx: &mut Tx) -> Result<(), sqlx::Error> {
        let is_due = self.transactions.is_multiple_of(EVERY);
        self.transactions += 1;
        if !is_due {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.numbers, tx.numbers);
        forget_answers(tx, self.kept.answers_ms).await?;
        // Twice as much as there is new, so that it never falls behind.
        let new = tx.numbers.event.saturating_sub(before.event);
        let most = new.saturating_mul(2).saturating_add(LEAST_EVENTS);
        forget_events(tx, self.kept.events, most).await?;
        let new = tx.numbers.generation.saturating_sub(before.generation);
        let most = new.saturating_mul(2).saturating_add(LEAST_GENERATIONS);
        forget_changes(tx, self.kept.generations, most).await
    }
}

async fn forget_answers(tx: &mut Tx, kept_ms: u64) -> Result<(), sqlx::Error> {
    let delete = "DELETE FROM idempotency WHERE at_age_ms < $1 AND at_age_ms <= \
                  (SELECT MAX(at_age_ms) FROM (SELECT at_age_ms FROM idempotency ORDER BY at_age_ms LIMIT $2) AS oldest)";
    let since = tx.age_ms.saturating_sub(kept_ms);
    let values = values![since, MOST_ANSWERS];
    tx.change(delete, values).await.map(drop)
}

async fn forget_events(tx: &mut Tx, kept: u64, most: u64) -> Result<(), sqlx::Error> {
    let below = tx.numbers.event.saturating_sub(kept);
    if below == 0 {
        return Ok(());
    }
    let select = "SELECT number FROM events ORDER BY number LIMIT 1";
    let Some(first) = tx.row(select, []).await? else {
        return Ok(());
    };
    let below = below.min(first.natural("number")?.saturating_add(most));
    let delete = "DELETE FROM events WHERE number < $1";
    tx.change(delete, values![below]).await.map(drop)
}

/// By gateway: an index has them in this order.
async fn forget_changes(tx: &mut Tx, kept: u64, most: u64) -> Result<(), sqlx::Error> {
    let below = tx.numbers.generation.saturating_sub(kept);
    if below == 0 {
        return Ok(());
    }
    let firsts = "SELECT gateway, first FROM (SELECT g.name AS gateway, \
                  (SELECT MIN(c.generation) FROM gateway_changes c WHERE c.gateway = g.name) AS first FROM gateways g) AS firsts \
                  WHERE first < $1";
    for row in tx.rows(firsts, values![below]).await? {
        let below = below.min(row.natural("first")?.saturating_add(most));
        let delete = "DELETE FROM gateway_changes WHERE gateway = $1 AND generation < $2";
        tx.change(delete, values![row.text("gateway")?, below])
            .await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::EventNote;
    use crate::store::Store;
    use crate::store::testing::{in_transaction, number, with_store};
    use slicewise_api::EventKind;

    const KEPT: Kept = Kept {
        answers_ms: 1_000,
        events: 10,
        generations: 5,
    };

    /// One event, generation and change for a gateway each, in one transaction.
    async fn note(store: &Store, count: u64) {
        in_transaction!(store, |tx| {
            for _ in 0..count {
                tx.note(EventKind::Decision, EventNote::default());
                let generation = tx.next_generation("a", None).await?;
                let insert = sqlx::query(
                    "INSERT INTO gateway_changes (gateway, generation, position, slice, body) VALUES ('g', $1, 0, 's', '')",
                );
                let insert = insert.bind(crate::sql::number(generation));
                insert.execute(tx.connection()).await?;
            }
            Ok(())
        });
    }

    async fn counts(store: &Store) -> [i64; 2] {
        [
            number(store, "SELECT COUNT(*) AS number FROM events").await,
            number(store, "SELECT COUNT(*) AS number FROM gateway_changes").await,
        ]
    }

    /// Tidy up, as in the transaction after `EVERY` others.
    async fn tidy_up(store: &Store, mut tidy: Tidy) -> Tidy {
        let (sender, tidied) = tokio::sync::oneshot::channel();
        in_transaction!(store, |tx| {
            for _ in 0..EVERY {
                tidy.on_transaction(tx).await?;
            }
            assert!(sender.send(tidy).is_ok());
            Ok(())
        });
        tidied.await.unwrap()
    }

    #[test]
    fn the_newest_are_kept_and_what_is_older_goes_little_by_little() {
        with_store(async |store| {
            in_transaction!(store, |tx| {
                let insert = "INSERT INTO gateways (name, acknowledged, seen_at_ms, connected) VALUES ('g', 0, 0, 0)";
                sqlx::query(insert).execute(tx.connection()).await?;
                Ok(())
            });
            let mut tidy = Tidy::new(KEPT);
            note(store, 3).await;
            tidy = tidy_up(store, tidy).await;
            assert_eq!(counts(store).await, [3, 3]);
            // More than one time forgets.
            note(store, 4_000).await;
            tidy.numbers.generation = 4_003;
            tidy.numbers.event = 4_003;
            tidy = tidy_up(store, tidy).await;
            assert_eq!(counts(store).await, [3_003, 4_003 - 16]);
            note(store, 2_000).await;
            // Twice what is new, and some.
            tidy = tidy_up(store, tidy).await;
            assert_eq!(counts(store).await, [11, 6_003 - 16 - 4_016]);
            tidy.numbers.generation = 0;
            tidy_up(store, tidy).await;
            assert_eq!(counts(store).await, [11, 6]);
        });
    }

    #[test]
    fn answers_that_are_old_are_forgotten() {
        with_store(async |store| {
            in_transaction!(store, |tx| {
                tx.age_ms += 10_000;
                for (key, age) in [("old", 1_001), ("older", 5_000), ("new", 900)] {
                    let insert = "INSERT INTO idempotency (actor, idempotency_key, request_hash, at_age_ms, status, version, body) \
                                      VALUES ('a', $1, '', $2, 200, -1, '')";
                    let at = crate::sql::number(tx.age_ms - age);
                    sqlx::query(insert)
                        .bind(key)
                        .bind(at)
                        .execute(tx.connection())
                        .await?;
                }
                Tidy::new(KEPT).on_transaction(tx).await?;
                Ok(())
            });
            let left = "SELECT COUNT(*) AS number FROM idempotency";
            assert_eq!(number(store, left).await, 1);
        });
    }
}
