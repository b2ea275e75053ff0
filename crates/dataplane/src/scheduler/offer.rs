//! What a node of the tree offers its parent: the frame it would send, or when to ask again.

use crate::guaranteed::SliceId;
use slicewise_units::{FrameLengths, Instant};

/// A queue: a leaf, and a slice of it if that is a guaranteed scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueueId {
    /// Position of the leaf in its tree.
    pub(crate) leaf: u32,
    /// Index of the slice; [`NO_SLICE`] in other leaves.
    slice: u32,
}

const NO_SLICE: u32 = u32::MAX;

impl QueueId {
    /// The only queue of a leaf.
    pub(crate) const fn of(leaf: u32) -> Self {
        Self {
            leaf,
            slice: NO_SLICE,
        }
    }

    /// A slice of a guaranteed leaf.
    pub(crate) const fn of_slice(leaf: u32, slice: SliceId) -> Self {
        Self {
            leaf,
            slice: slice.index(),
        }
    }

    /// The slice of a guaranteed leaf. In other leaves none that exists.
    #[inline]
    pub(crate) const fn slice(self) -> SliceId {
        SliceId::new(self.slice)
    }
}

/// The frame that a node would send.
#[derive(Debug, Clone, Copy)]
pub struct Head {
    /// The queue it waits in.
    pub(crate) queue: QueueId,
    /// Its lengths.
    pub(crate) lengths: FrameLengths,
    /// It belongs to a priority class, or leaves under its slice's guarantee.
    pub(crate) priority: bool,
}

/// The answer of a node with frames waiting. It holds until its time comes, a frame leaves the
/// node, or another frame becomes the first of one of its queues.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    /// The frame that may leave; `None` where none may before `until`.
    pub(super) head: Option<Head>,
    /// From then on the answer may be another, though nothing arrived or left: a frame that is
    /// ahead of this one waits for a shaper, or earns its minimum.
    pub(super) until: Instant,
}

impl Offer {
    /// No answer: it has expired at any time.
    pub(super) const UNKNOWN: Self = Self::wait(Instant::ZERO);

    /// No frame may leave before `until`.
    #[inline]
    pub(super) const fn wait(until: Instant) -> Self {
        Self { head: None, until }
    }

    /// This frame may leave, whatever the time.
    #[inline]
    pub(super) const fn ready(queue: QueueId, lengths: FrameLengths, priority: bool) -> Self {
        Self {
            head: Some(Head {
                queue,
                lengths,
                priority,
            }),
            until: Instant::MAX,
        }
    }

    /// The same answer, valid at most until `until`.
    #[inline]
    pub(super) fn until(self, until: Instant) -> Self {
        Self {
            until: until.min(self.until),
            ..self
        }
    }
}

/// What the children of a node offer at `now`, as far as they were asked.
#[derive(Debug, Clone, Copy)]
pub struct Offers<'a> {
    pub(super) known: &'a [Offer],
    pub(super) now: Instant,
}

impl<'a> Offers<'a> {
    /// The offer of the child at `position`; `None` where it must be asked.
    #[inline]
    pub(super) fn of(&self, position: u32) -> Option<&'a Offer> {
        let offer = &self.known[position as usize];
        (self.now < offer.until).then_some(offer)
    }
}

/// A step of an inner node towards its own offer.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// The offer of the child at this position decides: ask it, then repeat the step.
    Ask(u32),
    /// The frame that the child at this position offers, which is first at most until this time.
    Choose(u32, Instant),
    /// No frame may leave before this time.
    Wait(Instant),
}
