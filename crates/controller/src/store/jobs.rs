//! Requests on their way to the writer.

use super::queue::FairQueue;
use crate::actor::Actor;
use crate::refusal::Refusal;
use crate::sql::{Answer, Failed, Tx};
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// Work of a request in the transaction; the same again after a transaction that failed.
pub(crate) trait Work: Send + Sync {
    fn again(&self) -> Box<dyn Work>;
    fn carry_out(self: Box<Self>, tx: &mut Tx) -> BoxFuture<'_, Result<Answer, Failed>>;
}

impl<W> Work for W
where
    W: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<Answer, Failed>>
        + Clone
        + Send
        + Sync
        + 'static,
{
    fn again(&self) -> Box<dyn Work> {
        Box::new(self.clone())
    }

    fn carry_out(self: Box<Self>, tx: &mut Tx) -> BoxFuture<'_, Result<Answer, Failed>> {
        self(tx)
    }
}

/// `work` as [`Writer::change`](super::Writer::change) takes it.
pub(crate) fn work<W>(work: W) -> Box<dyn Work>
where
    W: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<Answer, Failed>>
        + Clone
        + Send
        + Sync
        + 'static,
{
    Box::new(work)
}

/// Has the writer of a store carry out a block with a transaction, and returns its answer after the commit.
macro_rules! carry_out {
    ($store:expr, $request:expr, |$tx:pat_param| $work:block) => {
        $store
            .writer()
            .change($request, $crate::store::work(move |$tx| Box::pin(async move $work)))
            .await
    };
}
pub(crate) use carry_out;

/// Who asks, and for what.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    /// Who.
    pub(crate) actor: String,
    /// Whose share of the writer's time it takes; empty for the controller's own.
    pub(crate) party: String,
    /// Method and path, for the audit log; empty for what no person asked for.
    pub(crate) line: String,
    /// Idempotency key, and a hash of the request.
    pub(crate) key: Option<(String, String)>,
}

impl Request {
    /// Returns a request for a message of a gateway, which the audit log leaves out.
    pub(crate) fn unlogged(actor: &Actor) -> Self {
        Self {
            party: actor.party(),
            ..Self::default()
        }
    }
}

/// A request that the writer carries out.
pub(super) struct Job {
    pub(super) request: Request,
    pub(super) work: Box<dyn Work>,
    pub(super) answer: oneshot::Sender<Result<Answer, Refusal>>,
}

/// A request that waits for the writer.
pub(super) struct Queued {
    pub(super) request: Request,
    pub(super) work: Claim,
    pub(super) answer: oneshot::Sender<Result<Answer, Refusal>>,
}

/// Work of a request, until the writer begins with it or its client waits no longer: whichever is first has it.
#[derive(Clone)]
pub(super) struct Claim(Arc<Mutex<Option<Box<dyn Work>>>>);

impl Claim {
    pub(super) fn new(work: Box<dyn Work>) -> Self {
        Self(Arc::new(Mutex::new(Some(work))))
    }

    /// `None` if it was taken before.
    pub(super) fn take(&self) -> Option<Box<dyn Work>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A client that leaves while its request waits leaves without it, and nothing of it is kept.
pub(super) struct Withdrawing(pub(super) Claim);

impl Drop for Withdrawing {
    fn drop(&mut self) {
        drop(self.0.take());
    }
}

/// The requests of a transaction.
pub(super) enum Jobs<'a> {
    /// Those that wait, and are taken one after another.
    Waiting(&'a FairQueue<Queued>, &'a mut Vec<Job>),
    /// One that was taken before.
    Taken(&'a Job),
}

impl Jobs<'_> {
    /// The next one, after `count`, if it will likely be done within that time; the first one in any case.
    pub(super) fn next(&mut self, count: usize, within: Duration) -> Option<&Job> {
        match self {
            Self::Waiting(queue, taken) => {
                let within = if count == 0 { Duration::MAX } else { within };
                taken.push(next(queue, within)?);
                taken.last()
            }
            Self::Taken(job) => (count == 0).then_some(*job),
        }
    }

    /// Counts how long the last one took.
    pub(super) fn charge(&self, took: Duration) {
        if let Self::Waiting(queue, taken) = self
            && let Some(job) = taken.last()
        {
            queue.charge(&job.request.party, took);
        }
    }
}

/// The next request whose client still waits for it.
pub(super) fn next(queue: &FairQueue<Queued>, within: Duration) -> Option<Job> {
    let mut queued = std::iter::from_fn(|| queue.pop(within));
    queued.find_map(|queued| {
        Some(Job {
            work: queued.work.take()?,
            request: queued.request,
            answer: queued.answer,
        })
    })
}
