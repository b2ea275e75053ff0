//! One task that changes the store. Requests that wait share a transaction, so that a disk which takes milliseconds to make a
//! commit durable does not limit the number of changes. A request is answered after the commit.

use super::checkpoint::{self, Wanted};
use super::jobs::{Claim, Job, Jobs, Queued, Request, Withdrawing, Work, next};
use super::queue::FairQueue;
use super::tidy::{Kept, Tidy};
use super::{Progress, announce};
use crate::log;
use crate::refusal::Refusal;
use crate::sql::{Answer, Dialect, Failed, RowExt, Sql, StoreClock, Tx, values};
use futures_util::FutureExt;
use slicewise_api::EventKind;
use sqlx::{AnyPool, Executor};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, oneshot, watch};
use tokio::task::JoinHandle;

/// Requests of one transaction.
const MOST_TOGETHER: usize = 64;
/// Time after which a transaction takes no further request: those it has are answered when it is committed.
const TOGETHER: Duration = Duration::from_millis(50);
/// How long a request waits for its turn.
const TURN_PATIENCE: Duration = Duration::from_secs(10);
/// How long an answer is kept for its idempotency key, milliseconds: a day.
const ANSWER_KEPT_MS: u64 = 24 * 3600 * 1000;
/// Events that are kept.
const EVENTS_KEPT: u64 = 1_000_000;
/// Generations that gateways can catch up with change by change.
pub(crate) const CHANGES_KEPT: u64 = 100_000;

/// Totals of the writer, for metrics.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) transactions: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) nanos: AtomicU64,
}

/// Hands requests to the task.
#[derive(Clone)]
pub(crate) struct Writer {
    jobs: Arc<FairQueue<Queued>>,
    totals: Arc<Totals>,
    task: Arc<Mutex<Option<JoinHandle<()>>>>,
    stop: watch::Sender<bool>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl Writer {
    /// `pool` has one connection, which nobody else uses: so its cache stays valid. `readers` move the log.
    pub(super) fn start(
        pool: AnyPool,
        readers: AnyPool,
        dialect: Dialect,
        clock: StoreClock,
        progress: watch::Sender<Progress>,
    ) -> Self {
        let jobs: Arc<FairQueue<Queued>> = Arc::default();
        let (stop, stopped) = watch::channel(false);
        let totals = Arc::new(Totals::default());
        let (commits, committed) = watch::channel(());
        let long_log = Wanted::default();
        if dialect == Dialect::Sqlite {
            tokio::spawn(checkpoint::run(readers, committed, Arc::clone(&long_log)));
        }
        let task = Task {
            pool,
            dialect,
            clock,
            progress,
            totals: Arc::clone(&totals),
            commits,
            long_log,
            tidy: Tidy::new(Kept {
                answers_ms: ANSWER_KEPT_MS,
                events: EVENTS_KEPT,
                generations: CHANGES_KEPT,
            }),
        };
        let task = tokio::spawn(task.run(Arc::clone(&jobs), stopped));
        Self {
            jobs,
            totals,
            task: Arc::new(Mutex::new(Some(task))),
            stop,
        }
    }

    pub(crate) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Do `work` in a transaction, and answer when it is committed. Whatever becomes of the caller, it is done whole or not at all; where the caller leaves before its turn,
    /// not at all.
    pub(crate) async fn change(
        &self,
        request: Request,
        work: Box<dyn Work>,
    ) -> Result<Answer, Refusal> {
        let (answer, mut answered) = oneshot::channel();
        let (claim, party) = (Claim::new(work), request.party.clone());
        let queued = Queued {
            request,
            work: claim.clone(),
            answer,
        };
        if !self.jobs.push(&party, queued) {
            return Err(match self.is_working() {
                true => Refusal::overloaded(),
                false => Refusal::stopping(),
            });
        }
        let withdrawing = Withdrawing(claim);
        let mut done = tokio::time::timeout(TURN_PATIENCE, &mut answered)
            .await
            .ok();
        if done.is_none() {
            if withdrawing.0.take().is_some() {
                return Err(Refusal::overloaded());
            }
            done = Some(answered.await);
        }
        let done = done.and_then(Result::ok);
        done.unwrap_or_else(|| Err(Refusal::stopping()))
    }

    /// Returns true if changes are carried out.
    pub(crate) fn is_working(&self) -> bool {
        !self.jobs.is_closed()
    }

    pub(super) async fn stop(&self) {
        self.stop.send_replace(true);
        if let Some(task) = self.task.lock().await.take() {
            // It ended, or panicked: there is nothing more to finish.
            let _ = task.await;
        }
    }
}

struct Task {
    pool: AnyPool,
    dialect: Dialect,
    clock: StoreClock,
    progress: watch::Sender<Progress>,
    totals: Arc<Totals>,
    /// Tells of commits.
    commits: watch::Sender<()>,
    long_log: Wanted,
    tidy: Tidy,
}

/// Closes the queue when the task ends, whatever ended it.
struct Closing(Arc<FairQueue<Queued>>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Task {
    async fn run(mut self, queue: Arc<FairQueue<Queued>>, mut stopped: watch::Receiver<bool>) {
        let _closing = Closing(Arc::clone(&queue));
        loop {
            tokio::select! {
                biased;
                () = queue.wait() => {},
                _ = stopped.wait_for(|stop| *stop) => return,
            }
            let started = Instant::now();
            self.totals.transactions.fetch_add(1, Ordering::Relaxed);
            let count = self.together(&queue).await;
            self.totals.requests.fetch_add(count, Ordering::Relaxed);
            let nanos = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.totals.nanos.fetch_add(nanos, Ordering::Relaxed);
            if self.long_log.swap(false, Ordering::Relaxed) {
                // Where it fails, it is wanted again.
                let _ = checkpoint::checkpoint(&self.pool).await;
            }
        }
    }

    /// Carry out what waits in one transaction, and answer it; returns the number of requests. Where one of them makes it fail, each is carried out on its own: so none fails
    /// because of another.
    async fn together(&mut self, queue: &FairQueue<Queued>) -> u64 {
        let mut jobs = Vec::with_capacity(MOST_TOGETHER);
        let done = self.attempt(Jobs::Waiting(queue, &mut jobs)).await;
        let count = jobs.len() as u64;
        match done {
            Ok(answers) => {
                for (job, answer) in jobs.into_iter().zip(answers) {
                    // Who has left does not need the answer.
                    let _ = job.answer.send(answer);
                }
            }
            Err(Undone::Work(error)) if jobs.len() > 1 => {
                self.failed(&error, jobs.len());
                self.alone(jobs).await;
            }
            Err(Undone::Work(failure)) => self.refuse(jobs, &failure),
            Err(Undone::Store(error)) => {
                // Nobody waits in turn for a store that does not answer.
                let free = MOST_TOGETHER - jobs.len();
                jobs.extend(std::iter::from_fn(|| next(queue, Duration::MAX)).take(free));
                self.refuse(jobs, &Failure::Store(error));
            }
        }
        count
    }

    /// Carry out each of `jobs` in a transaction of its own.
    async fn alone(&mut self, jobs: Vec<Job>) {
        let mut jobs = jobs.into_iter();
        for job in jobs.by_ref() {
            match self.attempt(Jobs::Taken(&job)).await {
                Ok(answers) => {
                    let answer = answers.into_iter().next();
                    let answer = answer.unwrap_or_else(|| Err(Refusal::defect()));
                    let _ = job.answer.send(answer);
                }
                Err(Undone::Work(error)) => self.refuse([job], &error),
                Err(Undone::Store(error)) => {
                    self.refuse([job], &Failure::Store(error));
                    break;
                }
            }
        }
        // The store does not answer: nobody waits for that many times.
        let away = Failure::Store(sqlx::Error::PoolTimedOut);
        let others: Vec<Job> = jobs.collect();
        if !others.is_empty() {
            self.refuse(others, &away);
        }
    }

    fn failed(&self, failure: &Failure, requests: usize) {
        self.totals.failures.fetch_add(1, Ordering::Relaxed);
        let reason: &dyn std::fmt::Display = match failure {
            Failure::Store(error) => error,
            Failure::Panic => &"a request met a defect of the controller",
        };
        log::warn(
            "store_failed",
            &[("reason", &reason), ("requests", &requests)],
        );
    }

    fn refuse(&self, jobs: impl IntoIterator<Item = Job>, failure: &Failure) {
        let jobs: Vec<Job> = jobs.into_iter().collect();
        self.failed(failure, jobs.len());
        for job in jobs {
            let refusal = match failure {
                Failure::Store(error) => Refusal::store(error),
                Failure::Panic => Refusal::defect(),
            };
            let _ = job.answer.send(Err(refusal));
        }
    }

    /// Carry out `jobs` in one transaction.
    async fn attempt(
        &mut self,
        mut jobs: Jobs<'_>,
    ) -> Result<Vec<Result<Answer, Refusal>>, Undone> {
        let tx = Tx::begin(&self.pool, self.dialect, &self.clock).await;
        let mut tx = tx.map_err(Undone::Store)?;
        let (mut answers, begun) = (Vec::new(), Instant::now());
        while answers.len() < MOST_TOGETHER {
            let within = TOGETHER.saturating_sub(begun.elapsed());
            let Some(job) = jobs.next(answers.len(), within) else {
                break;
            };
            let started = Instant::now();
            let done = one(&mut tx, &job.request, job.work.again());
            let done = AssertUnwindSafe(done).catch_unwind().await;
            jobs.charge(started.elapsed());
            let done = done.map_err(|_| Undone::Work(Failure::Panic))?;
            answers.push(done.map_err(|error| Undone::Work(Failure::Store(error)))?);
        }
        self.tidy
            .on_transaction(&mut tx)
            .await
            .map_err(Undone::Store)?;
        let written = tx.write_down().await;
        written.map_err(|error| Undone::Work(Failure::Store(error)))?;
        // Whether it is committed is not known after an error: it is not carried out again.
        let numbers = tx.commit().await.map_err(Undone::Store)?;
        self.commits.send_replace(());
        let progress = Progress {
            generation: numbers.generation,
            event: numbers.event,
        };
        announce(&self.progress, progress);
        Ok(answers)
    }
}

/// Why a transaction is not done.
enum Undone {
    /// A request failed, and nothing is committed.
    Work(Failure),
    /// The store did not begin, tidy or commit.
    Store(sqlx::Error),
}

enum Failure {
    Store(sqlx::Error),
    Panic,
}

/// One request: a refused one leaves nothing but notes.
async fn one(
    tx: &mut Tx,
    request: &Request,
    work: Box<dyn Work>,
) -> Result<Result<Answer, Refusal>, sqlx::Error> {
    if let Some((key, hash)) = &request.key
        && let Some(before) = answered(tx, &request.actor, key, hash).await?
    {
        return Ok(before);
    }
    let mark = tx.mark();
    tx.connection().execute("SAVEPOINT request").await?;
    let result = match work.carry_out(tx).await {
        Ok(answer) => Ok(answer),
        Err(Failed::Refused(refusal)) => {
            tx.connection()
                .execute("ROLLBACK TO SAVEPOINT request")
                .await?;
            tx.return_to(mark);
            Err(Refusal {
                is_audited: !request.line.is_empty(),
                ..*refusal
            })
        }
        Err(Failed::Store(error)) => return Err(error),
    };
    tx.connection().execute("RELEASE SAVEPOINT request").await?;
    if let Err(refusal) = &result
        && let Some(note) = refusal.note.clone()
    {
        tx.note(EventKind::SliceRefused, *note);
    }
    if !request.line.is_empty() {
        let (status, detail) = match &result {
            Ok(answer) => (answer.status, ""),
            Err(refusal) => (refusal.problem.status, refusal.problem.detail.as_str()),
        };
        tx.audit(&request.actor, &request.line, status, detail);
    }
    if let Some((key, hash)) = &request.key {
        remember(tx, &request.actor, key, hash, &result).await?;
    }
    Ok(result)
}

/// The answer to an earlier request with this key.
async fn answered(
    tx: &mut Tx,
    actor: &str,
    key: &str,
    hash: &str,
) -> Result<Option<Result<Answer, Refusal>>, sqlx::Error> {
    let select = "SELECT request_hash, status, version, body FROM idempotency \
                  WHERE actor = $1 AND idempotency_key = $2 AND at_age_ms >= $3";
    let since = tx.age_ms.saturating_sub(ANSWER_KEPT_MS);
    let row = tx.row(select, values![actor, key, since]).await?;
    let Some(row) = row else { return Ok(None) };
    if row.text("request_hash")? != hash {
        return Ok(Some(Err(Refusal::key_used())));
    }
    let status = u16::try_from(row.natural("status")?).unwrap_or(500);
    if status >= 400 {
        return Ok(Some(Err(Refusal {
            problem: row.json("body")?,
            note: None,
            is_audited: true,
        })));
    }
    Ok(Some(Ok(Answer {
        status,
        version: row.maybe_natural("version")?,
        body: row.text("body")?,
    })))
}

async fn remember(
    tx: &mut Tx,
    actor: &str,
    key: &str,
    hash: &str,
    result: &Result<Answer, Refusal>,
) -> Result<(), sqlx::Error> {
    let (status, version, body) = match result {
        Ok(answer) => (answer.status, answer.version, answer.body.clone()),
        Err(refusal) => {
            let body = serde_json::to_string(&refusal.problem);
            let body = body.map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
            (refusal.problem.status, None, body)
        }
    };
    // One that is too old to count may still be there.
    let insert = "INSERT INTO idempotency (actor, idempotency_key, request_hash, at_age_ms, status, version, body) \
                  VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (actor, idempotency_key) DO UPDATE SET \
                  request_hash = excluded.request_hash, at_age_ms = excluded.at_age_ms, status = excluded.status, \
                  version = excluded.version, body = excluded.body";
    let values = values![actor, key, hash, tx.age_ms, status, version, body];
    tx.change(insert, values).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::with_store;
    use crate::store::work;

    /// Carried out in one transaction: those in `jobs` come while another one is carried out.
    async fn together(
        store: &crate::store::Store,
        statements: [&'static str; 3],
    ) -> [Result<Answer, Refusal>; 3] {
        let (begun, begins) = oneshot::channel();
        let (go, goes) = oneshot::channel::<()>();
        let pair = Arc::new(std::sync::Mutex::new(Some((begun, goes))));
        let first = work(move |_| {
            let pair = pair.lock().unwrap().take();
            Box::pin(async move {
                // Carried out again, it waits for nobody.
                if let Some((begun, goes)) = pair {
                    begun.send(()).unwrap();
                    goes.await.unwrap();
                }
                Ok(Answer::empty())
            })
        });
        let change = |statement: &'static str| {
            let work = work(move |tx| {
                Box::pin(async move {
                    assert_ne!(statement, "panic");
                    tx.connection().execute(statement).await?;
                    Ok(Answer::empty())
                })
            });
            store.writer().change(Request::default(), work)
        };
        let first = store.writer().change(Request::default(), first);
        let others = async {
            begins.await.unwrap();
            let free = async {
                // The three wait by now: they were begun before.
                go.send(()).unwrap();
            };
            let [a, b, c] = statements.map(change);
            let (a, b, c, ()) = tokio::join!(a, b, c, free);
            [a, b, c]
        };
        let (first, others) = tokio::join!(first, others);
        first.unwrap();
        others
    }

    #[test]
    fn a_request_that_fails_or_panics_does_not_take_others_along() {
        with_store(async |store| {
            let add = "INSERT INTO tenants (name, weight, most_slices, most_rate_bps, slices, rate_bps) VALUES ('red', 1, -1, -1, 0, 0)";
            let change = "UPDATE tenants SET weight = weight + 1";
            for (wrong, status) in [("INSERT INTO nothing VALUES (1)", 503), ("panic", 500)] {
                let before = store.writer().totals().transactions.load(Ordering::Relaxed);
                let [a, b, c] = together(store, [change, wrong, change]).await;
                let after = store.writer().totals().transactions.load(Ordering::Relaxed);
                assert!(
                    (1..=2).contains(&(after - before)),
                    "the three came together"
                );
                assert!(a.is_ok() && c.is_ok(), "{a:?} {c:?}");
                assert_eq!(b.unwrap_err().problem.status, status);
                assert!(store.writer().is_working());
            }
            let weight = "SELECT weight AS number FROM tenants WHERE name = 'default'";
            let weight = crate::store::testing::number(store, weight).await;
            assert_eq!(weight, 5, "each was carried out once");
            let [added, again, _] = together(store, [add, add, change]).await;
            assert_eq!((added.is_ok(), again.is_ok()), (true, false));
        });
    }

    #[test]
    fn a_request_whose_client_leaves_before_its_turn_is_not_carried_out() {
        with_store(async |store| {
            let change = |statement: &'static str| {
                let work = work(move |tx| {
                    Box::pin(async move {
                        tx.connection().execute(statement).await?;
                        Ok(Answer::empty())
                    })
                });
                store.writer().change(Request::default(), work)
            };
            let (begun, begins) = oneshot::channel();
            let (go, goes) = oneshot::channel::<()>();
            let pair = Arc::new(std::sync::Mutex::new(Some((begun, goes))));
            let first = work(move |_| {
                let (begun, goes) = pair.lock().unwrap().take().unwrap();
                Box::pin(async move {
                    begun.send(()).unwrap();
                    goes.await.unwrap();
                    Ok(Answer::empty())
                })
            });
            let first = store.writer().change(Request::default(), first);
            let leaving = async {
                begins.await.unwrap();
                let kept = Arc::new(());
                let held = Arc::clone(&kept);
                let leaves = work(move |tx| {
                    let _held = Arc::clone(&held);
                    Box::pin(async move {
                        tx.connection()
                            .execute("UPDATE tenants SET weight = 7")
                            .await?;
                        Ok(Answer::empty())
                    })
                });
                let left = store.writer().change(Request::default(), leaves);
                assert!(tokio::time::timeout(Duration::ZERO, left).await.is_err());
                assert_eq!(Arc::strong_count(&kept), 1, "nothing of it is kept");
                go.send(()).unwrap();
            };
            let (first, ()) = tokio::join!(first, leaving);
            first.unwrap();
            change("UPDATE tenants SET most_slices = 3").await.unwrap();
            let weight = "SELECT weight AS number FROM tenants WHERE name = 'default'";
            assert_eq!(crate::store::testing::number(store, weight).await, 1);
        });
    }
}
