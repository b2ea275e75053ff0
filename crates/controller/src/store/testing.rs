//! A store of SQLite for tests of this crate, and how its statements are carried out.

use super::{Location, Request, Store, work};
use crate::sql::{Answer, Failed, RowExt, Tx};
use futures_util::future::BoxFuture;
use sqlx::AssertSqlSafe;
use std::sync::{Arc, Mutex};

/// Do something with a new store.
pub(crate) fn with_store<T>(test: impl AsyncFnOnce(&Store) -> T) -> T {
    let folder = tempfile::tempdir().unwrap();
    let location = Location::Sqlite(folder.path().join("store.sqlite"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::open(&location).await.unwrap();
        let done = test(&store).await;
        store.close().await;
        done
    })
}

/// Change the store.
pub(crate) async fn change<W>(store: &Store, change: W)
where
    W: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<(), Failed>> + Send + 'static,
{
    // A test whose transaction fails is not carried out again.
    let change = Arc::new(Mutex::new(Some(change)));
    let work = work(move |tx| {
        Box::pin(async move {
            let change = change.lock().unwrap().take();
            change.unwrap()(tx).await?;
            Ok(Answer::empty())
        })
    });
    store
        .writer()
        .change(Request::default(), work)
        .await
        .unwrap();
}

/// Changes the store by a block with a transaction.
macro_rules! in_transaction {
    ($store:expr, |$tx:pat_param| $work:block) => {
        $crate::store::testing::change($store, move |$tx| Box::pin(async move $work)).await
    };
}
pub(crate) use in_transaction;

/// The only number that a statement finds.
pub(crate) async fn number(store: &Store, select: &'static str) -> i64 {
    let row = sqlx::query(select).fetch_one(store.pool()).await.unwrap();
    row.integer("number").unwrap()
}

/// How SQLite carries a statement out: by which indexes, and what it reads whole.
pub(crate) async fn plan(store: &Store, statement: &str) -> String {
    let plan = format!("EXPLAIN QUERY PLAN {statement}");
    let parameters = statement.matches('$').count();
    let mut plan = sqlx::query(AssertSqlSafe(plan));
    for _ in 0..parameters {
        plan = plan.bind("a");
    }
    let rows = plan.fetch_all(store.pool()).await.unwrap();
    let lines: Vec<String> = rows.iter().map(|row| row.text("detail").unwrap()).collect();
    lines.join("\n")
}
