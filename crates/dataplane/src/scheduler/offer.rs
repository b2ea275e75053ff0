//! Offer of a node of the tree to its parent: the frame it would send, or when to ask again.

use crate::guaranteed::SliceId;
use crate::hqos::HqosPlace;
use slicewise_units::{FrameLengths, Instant};

/// A queue: a leaf, and a slice of it if that is a guaranteed scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId {
    /// Position of the leaf in its tree.
    pub(crate) leaf: u32,
    /// Index of the slice; [`NO_SLICE`] in other leaves.
    slice: u32,
}

const NO_SLICE: u32 = u32::MAX;

impl QueueId {
    /// No queue.
    pub(crate) const NONE: Self = Self::of(u32::MAX);

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

    /// A place in a hierarchy.
    pub(crate) const fn of_place(leaf: u32, place: HqosPlace) -> Self {
        Self {
            leaf,
            slice: place.packed(),
        }
    }

    /// The slice of a guaranteed leaf, or a place packed. In other leaves none that exists.
    #[inline]
    pub(crate) const fn slice(self) -> SliceId {
        SliceId::new(self.slice)
    }
}

/// The frame that a leaf would send.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    /// Its slice, in a guaranteed leaf.
    pub(super) slice: SliceId,
    /// Its lengths.
    pub(super) lengths: FrameLengths,
    /// It belongs to a priority class, or leaves under its slice's guarantee.
    pub(super) priority: bool,
}

/// The answer of a node with frames waiting: the leaf whose head it would send, or that none may
/// leave yet. It holds until its time comes, a frame leaves the node, or another frame becomes the first
/// of one of its queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offer {
    /// From then on the answer may be another, though nothing arrived or left: a frame that is
    /// ahead of this one waits for a shaper, or earns its minimum.
    pub(super) until: Instant,
    /// Position of the leaf; [`NO_LEAF`] where no frame may leave before `until`.
    pub(super) leaf: u32,
}

/// No leaf.
const NO_LEAF: u32 = u32::MAX;
/// Beside the position of a leaf: its head may leave, but only from when the offer expires. Trees have fewer leaves.
const PROMISED: u32 = 1 << 31;

impl Offer {
    /// No answer: it has expired at any time.
    pub(super) const UNKNOWN: Self = Self::wait(Instant::ZERO);

    /// No frame may leave before `until`.
    #[inline]
    pub(super) const fn wait(until: Instant) -> Self {
        Self {
            until,
            leaf: NO_LEAF,
        }
    }

    /// As [`wait`](Self::wait), and from `at` on the head of `leaf` may leave, if no other becomes the first of a queue
    /// until then. Only the root keeps promises; a parent asks again.
    #[inline]
    pub(super) const fn promise(leaf: u32, at: Instant) -> Self {
        Self {
            until: at,
            leaf: leaf | PROMISED,
        }
    }

    /// The leaf whose head may leave at `now`, as was [promised](Self::promise).
    #[inline]
    pub(super) fn promised(&self, now: Instant) -> Option<u32> {
        let is_due = self.until <= now && self.leaf >= PROMISED && self.leaf != NO_LEAF;
        is_due.then_some(self.leaf & !PROMISED)
    }

    /// The head of `leaf` may leave, whatever the time.
    #[inline]
    pub(super) const fn ready(leaf: u32) -> Self {
        Self {
            until: Instant::MAX,
            leaf,
        }
    }

    /// The leaf whose head may leave now.
    #[inline]
    pub(super) fn ready_leaf(&self) -> Option<u32> {
        self.is_ready().then_some(self.leaf)
    }

    /// True where a frame may leave.
    #[inline]
    pub(super) const fn is_ready(&self) -> bool {
        self.leaf < PROMISED
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
