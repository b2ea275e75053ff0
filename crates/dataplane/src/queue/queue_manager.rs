//! Queue managers: which frames are dropped or marked before the limit of their queue is reached.
//!
//! A manager has a file of its own, and an arm in each function here.

mod codel;
pub(super) mod dualpi2;
mod pie;
mod red;
mod updates;

use super::pool::QueuedFrame;
use crate::frame::DropReason;
use codel::{CoDel, CoDelState};
use dualpi2::DualPi2State;
use pie::PieState;
use rand_core::Rng;
use red::RedState;
use slicewise_model::QueueManager as Params;
use slicewise_units::Instant;

/// Manager of a queue, or of the queues of flows, with a state for each of them.
#[derive(Debug, Clone)]
pub(super) enum Manager {
    TailDrop,
    Red(Box<[RedState]>),
    CoDel(CoDel, Box<[CoDelState]>),
    Pie(Box<[PieState]>),
    /// Of two queues together.
    DualPi2(Box<DualPi2State>),
}

/// Backlog of one queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Backlog {
    pub(super) packets: u32,
    pub(super) bytes: u64,
}

/// A frame about to leave.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    /// When it joined the queue.
    pub arrival: Instant,
    /// Bytes in the queue behind it.
    pub bytes_behind: u64,
    /// It is ECN-capable.
    pub is_ecn_capable: bool,
    /// Its slice has no more waiting, this frame included, than its guarantee allows: neither dropped nor marked.
    pub is_protected: bool,
}

/// Decision on a frame about to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    /// It leaves.
    Send,
    /// It leaves with a congestion mark.
    Mark,
    /// It is dropped for this reason, and the next frame is a candidate at the same time. Never the last.
    Drop(DropReason),
}

impl Manager {
    /// True if `params` may drop a frame about to leave, so that the next one is known only once it has been judged.
    pub(super) const fn judges_departures(params: &Params) -> bool {
        match params {
            Params::CoDel(_) | Params::DualPi2(_) => true,
            Params::TailDrop | Params::Red(_) | Params::Pie(_) => false,
        }
    }

    /// Manager of so many empty queues.
    pub(super) fn new(params: &Params, queues: usize) -> Self {
        match params {
            Params::TailDrop => Self::TailDrop,
            Params::Red(wred) => Self::Red(vec![RedState::new(wred); queues].into()),
            Params::CoDel(codel) => {
                Self::CoDel(CoDel::new(codel), vec![CoDelState::NEW; queues].into())
            }
            Params::Pie(pie) => Self::Pie(vec![PieState::new(pie); queues].into()),
            Params::DualPi2(dualpi2) => Self::DualPi2(Box::new(DualPi2State::new(dualpi2))),
        }
    }

    /// Decide on a frame that arrives at `queue`, in which `backlog` waits; it may get a congestion mark.
    ///
    /// # Errors
    /// The reason to drop it.
    #[inline]
    pub(super) fn on_arrival(
        &mut self,
        queue: usize,
        backlog: Backlog,
        queued: &mut QueuedFrame,
        random: &mut impl Rng,
    ) -> Result<(), DropReason> {
        match self {
            Self::TailDrop | Self::CoDel(..) | Self::DualPi2(_) => Ok(()),
            Self::Red(states) => states[queue].on_frame(backlog.packets, queued, random),
            Self::Pie(states) => states[queue].on_arrival(backlog, queued, random),
        }
    }

    /// Decide on a frame of `queue` that is about to leave at `now`.
    #[inline]
    pub(super) fn on_departure(
        &mut self,
        queue: usize,
        candidate: Candidate,
        now: Instant,
    ) -> Decision {
        match self {
            Self::TailDrop | Self::Red(_) => Decision::Send,
            Self::CoDel(codel, states) => codel.judge(&mut states[queue], candidate, now),
            Self::Pie(states) => {
                states[queue].on_departure(candidate, now);
                Decision::Send
            }
            Self::DualPi2(state) => state.judge(queue, candidate, now),
        }
    }

    /// The last frame of `queue` has left by `now`.
    #[inline]
    pub(super) fn on_empty(&mut self, queue: usize, now: Instant) {
        match self {
            Self::TailDrop => {}
            Self::DualPi2(state) => state.on_empty(queue),
            Self::Red(states) => states[queue].on_empty(now),
            Self::Pie(states) => states[queue].on_empty(),
            Self::CoDel(codel, states) => codel.on_empty(&mut states[queue]),
        }
    }

    /// Continue with the state of the queues of `old`, if it is of the same kind; there are as many.
    pub(super) fn resume_from(&mut self, old: &Self) {
        match (self, old) {
            (Self::Red(states), Self::Red(old)) => {
                let states = states.iter_mut().zip(old);
                states.for_each(|(state, old)| state.resume_from(old));
            }
            (Self::CoDel(_, states), Self::CoDel(_, old)) => states.clone_from(old),
            (Self::Pie(states), Self::Pie(old)) => {
                let states = states.iter_mut().zip(old);
                states.for_each(|(state, old)| state.resume_from(old));
            }
            (Self::DualPi2(state), Self::DualPi2(old)) => state.resume_from(old),
            _ => {}
        }
    }
}
