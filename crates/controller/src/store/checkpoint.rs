//! Moving what was committed from SQLite's write-ahead log into its file.
//!
//! SQLite does that by itself in the commit that makes the log longer than 1000 pages, and that commit then waits until all of them are on the
//! disk. Here another connection does it while requests go on. The log begins anew once everything in it was moved; while requests never pause,
//! the writer moves the last few pages between two transactions.

use sqlx::{AnyPool, Row};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// How often.
const EVERY: Duration = Duration::from_secs(1);
/// A log of so many pages (of 4 KiB) is to begin anew.
const LONG_PAGES: i64 = 4_000;

/// True if the writer is to move the rest.
pub(super) type Wanted = Arc<AtomicBool>;

/// Pages of the log, and those that were moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) log: i64,
    pub(super) moved: i64,
}

/// Move what can be moved without waiting for anybody. `None` while another connection does it.
pub(super) async fn checkpoint(pool: &AnyPool) -> Result<Option<Moved>, sqlx::Error> {
    let row = sqlx::query("PRAGMA wal_checkpoint(PASSIVE)");
    let row = row.fetch_one(pool).await?;
    let (log, moved) = (row.try_get(1)?, row.try_get(2)?);
    // SQLite's answer of a checkpoint that did not begin: -1 pages.
    Ok((log >= 0).then_some(Moved { log, moved }))
}

/// Do so after commits, until the sender of `commits` is gone.
pub(super) async fn run(pool: AnyPool, mut commits: watch::Receiver<()>, wanted: Wanted) {
    while commits.changed().await.is_ok() {
        // Where it fails, the log grows until it succeeds.
        if let Ok(Some(Moved { log, moved })) = checkpoint(&pool).await
            && log > LONG_PAGES
            && moved < log
        {
            wanted.store(true, Ordering::Relaxed);
        }
        tokio::time::sleep(EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::EventNote;
    use crate::store::Store;
    use crate::store::testing::{in_transaction, with_store};
    use slicewise_api::EventKind;

    async fn commit(store: &Store, events: u32) {
        in_transaction!(store, |tx| {
            for _ in 0..events {
                tx.note(EventKind::Decision, EventNote::default());
            }
            Ok(())
        });
    }

    /// After a commit the store itself may be moving pages.
    async fn checkpoint_once_idle(store: &Store) -> Moved {
        for _ in 0..10_000 {
            if let Some(moved) = checkpoint(store.pool()).await.unwrap() {
                return moved;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("another checkpoint does not end");
    }

    #[test]
    fn what_was_committed_is_moved_by_another_connection_and_the_log_begins_anew() {
        with_store(async |store| {
            let automatic = sqlx::query("PRAGMA wal_autocheckpoint");
            let automatic = automatic.fetch_one(&store.own).await.unwrap();
            assert_eq!(automatic.get::<i64, _>(0), 0, "a commit moves nothing");
            for _ in 0..20 {
                commit(store, 2_000).await;
            }
            let first = checkpoint_once_idle(store).await;
            assert!(first.log > 100, "{first:?}");
            assert_eq!(first.moved, first.log);
            commit(store, 1).await;
            let second = checkpoint_once_idle(store).await;
            assert!(second.log < 100, "it goes on: {second:?}");
        });
    }
}
