//! Changes of slices while the gateway forwards, asked for by another thread: of single ones, or of all in a commit.
//!
//! Requests wait in a channel of bounded length; the forwarding thread carries out a few of them in each round, and
//! answers all of them in their order. Neither waits for the other: who asks may go on asking before it is answered.

use super::GatewayParams;
use crate::engine::{
    ClassesCounted, DirectedChange, Engine, EngineBasis, FlowsCounted, GoneSlice, NotChanged,
    PreparedDirections, ReplacedDirections,
};
use crate::sys::poll::Waker;
use slicewise_dataplane::{SliceChanged, Stale};
use slicewise_units::{BothWays, Instant, Way};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Requests that wait; who sends more waits.
const MOST_WAITING: usize = 256;
/// Requests carried out between two looks at the interfaces.
const MOST_PER_ROUND: usize = 8;
/// Classes whose counters are copied between two looks at the interfaces.
const MOST_COUNTED: u32 = 32;

/// Request to the forwarding thread.
#[derive(Debug)]
pub enum Request {
    /// Change a slice, in all directions that are named or in none.
    Change(Box<DirectedChange>),
    /// Count some classes of a direction, from this number on.
    Count {
        /// The direction.
        direction: Way,
        /// The first class.
        from: u32,
    },
    /// Count the flows of these slices from here on, and answer those of the slices named before.
    Flows(Vec<String>),
    /// Answer with the base for preparing a change of both directions.
    Basis,
    /// Commit a change of both directions.
    Commit(Box<PreparedDirections>),
}

/// Answer or report of the forwarding thread.
#[derive(Debug)]
pub enum Answer {
    /// To [`Request::Change`].
    Changed(Result<BothWays<Option<SliceChanged>>, NotChanged>),
    /// To [`Request::Count`]. Boxed: it is large, and changes are many.
    Counted(Box<ClassesCounted>),
    /// To [`Request::Flows`].
    Flows(Vec<FlowsCounted>),
    /// To [`Request::Basis`].
    Basis(Box<EngineBasis>),
    /// To [`Request::Commit`], with what is to be dropped.
    Committed(Result<Box<ReplacedDirections>, Stale>),
    /// No answer: the last frame of a slice that was removed has left.
    Gone(Box<GoneSlice>),
    /// No answer: another configuration is in force. Slices that were added are as they were.
    Reloaded(Box<GatewayParams>),
}

/// The gateway does not run any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the gateway has stopped")]
pub struct Ended;

/// Takes what the forwarding thread answers and reports. It must return at once.
pub type Answers = Box<dyn Fn(Answer) + Send>;

/// The end of the threads that ask.
#[derive(Debug, Clone)]
pub struct Control {
    requests: SyncSender<Request>,
    shared: Arc<Shared>,
}

/// The end of the forwarding thread.
pub struct Controlled {
    requests: Receiver<Request>,
    answers: Answers,
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Controlled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controlled").finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Shared {
    /// Requests may wait.
    is_asked: AtomicBool,
    waker: Waker,
}

/// Both ends of a channel, whose answers go to `answers`.
///
/// # Errors
/// Where the process has too many descriptors.
pub fn control(answers: Answers) -> io::Result<(Control, Controlled)> {
    let shared = Arc::new(Shared {
        is_asked: AtomicBool::new(false),
        waker: Waker::new()?,
    });
    let (requests, incoming) = sync_channel(MOST_WAITING);
    let control = Control {
        requests,
        shared: Arc::clone(&shared),
    };
    let controlled = Controlled {
        requests: incoming,
        answers,
        shared,
    };
    Ok((control, controlled))
}

impl Control {
    /// Ask. Waits while too many requests wait.
    ///
    /// # Errors
    /// If the gateway has stopped.
    pub fn request(&self, request: Request) -> Result<(), Ended> {
        self.requests.send(request).map_err(|_| Ended)?;
        if !self.shared.is_asked.swap(true, Ordering::AcqRel) {
            self.shared.waker.wake();
        }
        Ok(())
    }
}

impl Controlled {
    /// Carry out a few requests that wait, and report slices that are gone; returns whether more may wait. Work: bounded.
    pub fn carry_out(&self, engine: &mut Engine, now: Instant) -> bool {
        while let Some(gone) = engine.poll_gone() {
            (self.answers)(Answer::Gone(Box::new(gone)));
        }
        if !self.shared.is_asked.load(Ordering::Relaxed) {
            return false;
        }
        // Before the look: who asks later wakes.
        self.shared.is_asked.swap(false, Ordering::AcqRel);
        for _ in 0..MOST_PER_ROUND {
            let Ok(request) = self.requests.try_recv() else {
                return false;
            };
            let answer = match request {
                Request::Change(change) => Answer::Changed(engine.change_slice(*change, now)),
                Request::Flows(names) => Answer::Flows(engine.watch_flows(&names)),
                Request::Basis => Answer::Basis(Box::new(engine.basis())),
                Request::Commit(change) => {
                    let replaced = engine.commit(*change, now);
                    (self.answers)(Answer::Committed(replaced.map(Box::new)));
                    break;
                }
                Request::Count { direction, from } => {
                    let counted = engine.count_classes(direction, from, MOST_COUNTED, now);
                    (self.answers)(Answer::Counted(Box::new(counted)));
                    break;
                }
            };
            (self.answers)(answer);
        }
        self.shared.is_asked.store(true, Ordering::Release);
        true
    }

    /// Report that another configuration is in force.
    pub(super) fn on_reloaded(&self, params: &GatewayParams) {
        (self.answers)(Answer::Reloaded(Box::new(params.clone())));
    }

    /// Descriptor to wait for, beside frames.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.shared.waker.descriptor()
    }

    /// It was woken: the next wait sleeps again.
    pub fn on_woken(&self) {
        self.shared.waker.reset();
    }
}
