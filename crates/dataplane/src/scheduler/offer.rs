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

/// The answer of a node with frames waiting: the frame it would send, or that none may leave yet. It
/// holds until its time comes, a frame leaves the node, or another frame becomes the first of one of
/// its queues.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    /// From then on the answer may be another, though nothing arrived or left: a frame that is
    /// ahead of this one waits for a shaper, or earns its minimum.
    pub(super) until: Instant,
    /// The queue it waits in.
    pub(super) queue: QueueId,
    /// Its lengths.
    pub(super) lengths: FrameLengths,
    /// It belongs to a priority class, or leaves under its slice's guarantee.
    pub(super) priority: bool,
    /// It may leave; else no frame may before `until`, and the other fields have no meaning.
    pub(super) is_ready: bool,
}

const _: () = assert!(size_of::<Offer>() == 32, "two offers to a cache line");

impl Offer {
    /// No answer: it has expired at any time.
    pub(super) const UNKNOWN: Self = Self::wait(Instant::ZERO);

    /// No frame may leave before `until`.
    #[inline]
    pub(super) const fn wait(until: Instant) -> Self {
        Self {
            until,
            queue: QueueId::of(0),
            lengths: FrameLengths {
                l2_bytes: 0,
                l3_offset: 0,
            },
            priority: false,
            is_ready: false,
        }
    }

    /// This frame may leave, whatever the time.
    #[inline]
    pub(super) const fn ready(queue: QueueId, lengths: FrameLengths, priority: bool) -> Self {
        Self {
            until: Instant::MAX,
            queue,
            lengths,
            priority,
            is_ready: true,
        }
    }

    /// The same answer, valid at most until `until`.
    #[inline]
    pub(super) fn until(mut self, until: Instant) -> Self {
        self.until = until.min(self.until);
        self
    }

    /// It must be asked for again.
    #[inline]
    pub(super) const fn forget(&mut self) {
        self.until = Instant::ZERO;
    }
}

/// What the children of a node offer at `now`, as far as they were asked.
#[derive(Debug, Clone, Copy)]
pub struct Offers<'a> {
    /// The offers of all nodes.
    pub(super) all: &'a [Offer],
    /// Where those of the children begin.
    pub(super) first: u32,
    pub(super) now: Instant,
}

impl<'a> Offers<'a> {
    /// The offer of the child at `position`; `None` where it must be asked.
    #[inline]
    pub(super) fn of(&self, position: u32) -> Option<&'a Offer> {
        let offer = &self.all[(self.first + position) as usize];
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
