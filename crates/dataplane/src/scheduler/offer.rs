//! What a node of the tree offers its parent: the frame it would send, or when to ask again.

use crate::guaranteed::SliceId;
use slicewise_units::{FrameLengths, Instant};

/// A queue: a leaf, and a slice of it if that is a guaranteed scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueueId {
    /// Position of the leaf in its tree.
    pub(crate) leaf: u32,
    /// The slice.
    pub(crate) slice: Option<SliceId>,
}

/// The frame that a node would send.
#[derive(Debug, Clone, Copy)]
pub struct Head {
    /// The queue it waits in.
    pub queue: QueueId,
    /// Its lengths.
    pub lengths: FrameLengths,
    /// It belongs to a priority class, or leaves under its slice's guarantee.
    pub priority: bool,
    /// From then on another frame may be first, though nothing arrived or left: one that is
    /// ahead of this one waits for a shaper, or earns its minimum.
    pub changes_at: Instant,
}

/// The answer of a node with frames waiting. It holds until its time comes, a frame leaves the
/// node, or another frame becomes the first of one of its queues.
#[derive(Debug, Clone, Copy)]
pub enum Offer {
    /// This frame may leave.
    Ready(Head),
    /// No frame may leave before this time.
    Wait(Instant),
}

impl Offer {
    /// When to ask again, having asked at `now`; `None` where only a new frame could change the
    /// answer.
    pub(crate) fn poll_at(&self, now: Instant) -> Option<Instant> {
        match *self {
            Self::Ready(_) => Some(now),
            Self::Wait(until) => (until < Instant::MAX).then_some(until),
        }
    }

    /// When it expires.
    #[inline]
    fn changes_at(&mut self) -> &mut Instant {
        match self {
            Self::Ready(head) => &mut head.changes_at,
            Self::Wait(until) => until,
        }
    }

    /// The same answer, valid at most until `until`.
    #[inline]
    pub(super) fn until(mut self, until: Instant) -> Self {
        let changes_at = self.changes_at();
        *changes_at = until.min(*changes_at);
        self
    }

    /// The same answer, valid at least at `now`: an answer that has expired when it is given would be
    /// asked for again without end.
    #[inline]
    pub(super) fn valid_at(mut self, now: Instant) -> Self {
        let changes_at = self.changes_at();
        if *changes_at <= now {
            *changes_at = Instant::from_nanos(now.nanos().saturating_add(1));
        }
        self
    }
}

/// What the children of a node offer at `now`, as far as they were asked.
#[derive(Debug, Clone, Copy)]
pub struct Offers<'a> {
    pub(super) known: &'a [Option<Offer>],
    pub(super) now: Instant,
}

impl Offers<'_> {
    /// The offer of the child at `position`; `None` where it must be asked.
    #[inline]
    pub(super) fn of(&self, position: u32) -> Option<Offer> {
        self.known[position as usize].filter(|offer| match offer {
            Offer::Ready(head) => self.now < head.changes_at,
            Offer::Wait(until) => self.now < *until,
        })
    }
}

/// A step of an inner node towards its own offer.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// The offer of the child at this position decides: ask it, then repeat the step.
    Ask(u32),
    /// The node's offer.
    Offer(Offer),
}
