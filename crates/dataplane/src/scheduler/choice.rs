//! Input of an inner node's choice, and its answer.

use super::leaf::LeafNode;
use super::offer::{Head, Offer};
use super::place::Child;
use crate::queue::FramePool;
use slicewise_units::Instant;

/// Offers of the children of a node at `now`, as far as they were asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offers<'a> {
    /// The children, in order.
    pub(super) children: &'a [Child],
    /// All leaves of the tree.
    pub(super) leaves: &'a [LeafNode],
    pub(super) pool: &'a FramePool,
    pub(super) now: Instant,
}

impl Offers<'_> {
    /// The offer of the child at `position`; `None` where it must be asked.
    #[inline]
    pub(super) fn of(&self, position: u32) -> Option<Offer> {
        let offer = self.children.get(position as usize)?.offer;
        (self.now < offer.until).then_some(offer)
    }

    /// The frame of an offer that is ready.
    #[inline]
    pub(super) fn head(&self, offer: Offer) -> Head {
        self.leaves[offer.leaf as usize].head(self.pool)
    }
}

/// A step of an inner node towards its own offer: that, or the child to ask first. It fits in two registers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step(Offer);

impl Step {
    /// The offer of the child at this position decides: ask it, then repeat the step.
    #[inline]
    pub(super) const fn ask(position: u32) -> Self {
        Self(Offer {
            until: Instant::ZERO,
            leaf: position,
        })
    }

    /// The node's own offer, which holds for some time.
    #[inline]
    pub(super) const fn answer(offer: Offer) -> Self {
        Self(offer)
    }

    /// The node's own offer.
    ///
    /// # Errors
    /// The position of the child to ask.
    #[inline]
    pub(super) fn answered(self) -> Result<Offer, u32> {
        if self.0.until == Instant::ZERO {
            Err(self.0.leaf)
        } else {
            Ok(self.0)
        }
    }

    /// The node's own offer, unknown where a child must be asked.
    #[inline]
    pub(super) fn known(self) -> Offer {
        self.answered().unwrap_or(Offer::UNKNOWN)
    }
}
