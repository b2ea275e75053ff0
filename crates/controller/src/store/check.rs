//! Checks that a store does not contradict itself: after a fault of a disk, or of whatever else has changed it.

use super::{Store, StoreError};
use crate::log;
use crate::slices::Recount;
use crate::sql::Dialect;
use sqlx::{AnyConnection, Row};

/// Findings that are logged.
const LOGGED_MAX: usize = 20;
/// Answer of SQLite where nothing is wrong.
const NOTHING_WRONG: &str = "ok";
/// Advice on findings.
pub const CHECK_ADVICE: &str = "nothing was changed. `slicewise controller backup FILE`, then `restore FILE` into a new store, counts all \
                                sums anew; a damaged file needs an older backup";

/// Compares the sums of links and tenants with the slices of the store, tests that links can hold what is promised of them, and looks
/// for damage of the file. Returns what is wrong, in words. Other processes may use the store meanwhile.
///
/// # Errors
/// If the store fails.
pub async fn check(store: &Store) -> Result<Vec<String>, StoreError> {
    let checked = async {
        let mut transaction = store.read().await?;
        let mut findings = match store.dialect() {
            Dialect::Sqlite => damage(&mut transaction).await?,
            Dialect::Postgres => Vec::new(),
        };
        let counted = Recount::of(&mut transaction, false).await?;
        findings.extend(counted.findings(&mut transaction).await?);
        Ok(findings)
    };
    checked.await.map_err(|source| StoreError::Statement {
        location: store.location().to_string(),
        source,
    })
}

async fn damage(connection: &mut AnyConnection) -> Result<Vec<String>, sqlx::Error> {
    let rows = sqlx::query("PRAGMA integrity_check(20)").fetch_all(connection);
    let lines = rows.await?.into_iter().map(|row| row.try_get(0));
    let lines: Vec<String> = lines.collect::<Result<_, _>>()?;
    let wrong = lines.into_iter().filter(|line| line != NOTHING_WRONG);
    Ok(wrong.map(|line| format!("SQLite: {line}")).collect())
}

/// Checks a store that was just opened, beside requests: findings are logged, and counted in the metrics.
pub(crate) async fn check_at_start(store: Store) {
    let findings = match check(&store).await {
        Ok(findings) => findings,
        Err(error) => {
            log::warn("store_not_checked", &[("reason", &error)]);
            return;
        }
    };
    for finding in findings.iter().take(LOGGED_MAX) {
        log::warn("store_wrong", &[("finding", finding)]);
    }
    if !findings.is_empty() {
        let advice =
            "promises may exceed what links can hold; `slicewise controller check` has all of it";
        log::warn(
            "store_wrong",
            &[("findings", &findings.len()), ("so", &advice)],
        );
    }
    store.set_findings(findings.len());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::Sql as _;
    use crate::store::testing::{in_transaction, with_store};

    #[test]
    fn a_store_is_checked_at_the_start_and_findings_are_counted() {
        for (statement, findings) in [
            ("UPDATE tenants SET slices = 0", 0),
            ("UPDATE tenants SET slices = 7, rate_bps = 9", 1),
        ] {
            with_store(async |store| {
                assert_eq!(store.findings(), None);
                in_transaction!(store, |tx| {
                    tx.change(statement, []).await?;
                    Ok(())
                });
                check_at_start(store.clone()).await;
                assert_eq!(store.findings(), Some(findings));
            });
        }
    }
}
