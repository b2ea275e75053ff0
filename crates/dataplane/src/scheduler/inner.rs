//! Inner nodes: which of its children a node lets send.
//!
//! A node sees positions, offers and lengths, never the tree. It asks for the offers of the children
//! that decide; the tree notifies it of each child that gets its first frame and of each frame that
//! leaves.

use super::choice::{Offers, Step};
use super::deficit_round_robin::DeficitRoundRobin;
use super::minimum_share::MinimumShare;
use super::shaper::Shaper;
use super::strict_priority::StrictPriority;
use slicewise_units::{FrameLengths, Instant};

/// A node over children, which it knows by their position.
#[derive(Debug)]
#[repr(u8)]
pub enum Inner {
    /// Limits its only child to a rate.
    Shaper(Shaper),
    /// The first child that may send.
    StrictPriority(StrictPriority),
    /// Turns by weight.
    DeficitRoundRobin(DeficitRoundRobin),
    /// Guaranteed minimums first, the excess by weight.
    MinimumShare(MinimumShare),
}

impl Inner {
    /// The next step towards the node's offer, some child having frames.
    #[inline]
    pub(super) fn select<'a>(&mut self, offers: impl FnOnce() -> Offers<'a>) -> Step {
        // What an arm does not need of the offers is not prepared for it.
        match self {
            Self::Shaper(node) => node.select(offers()),
            Self::StrictPriority(node) => node.select(offers()),
            Self::DeficitRoundRobin(node) => node.select(offers()),
            Self::MinimumShare(node) => node.select(offers()),
        }
    }

    /// Whether it goes on with the child at `position`, which has just sent a frame and offers the `next` one.
    #[inline]
    pub(super) fn goes_on(&self, position: u32, next: impl FnOnce() -> FrameLengths) -> bool {
        match self {
            Self::StrictPriority(_) => true,
            Self::DeficitRoundRobin(node) => node.goes_on(position, next()),
            Self::Shaper(_) | Self::MinimumShare(_) => false,
        }
    }

    /// The child at `position` had no frames, and has some now. Returns whether that is true of the node,
    /// too; a shaper has no other child.
    #[inline]
    pub(super) fn on_backlogged(&mut self, position: u32) -> bool {
        match self {
            Self::Shaper(_) => true,
            Self::StrictPriority(node) => node.on_backlogged(position),
            Self::DeficitRoundRobin(node) => node.on_backlogged(position),
            Self::MinimumShare(node) => node.on_backlogged(position),
        }
    }

    /// A frame that the child at `position` offered has left, its last one if it is `emptied`. Returns
    /// whether it was the node's last one, too.
    #[inline]
    pub(super) fn on_departure(
        &mut self,
        position: u32,
        lengths: FrameLengths,
        emptied: bool,
        now: Instant,
    ) -> bool {
        match self {
            Self::Shaper(node) => {
                node.on_departure(lengths, now);
                emptied
            }
            Self::StrictPriority(node) => node.on_departure(position, emptied),
            Self::DeficitRoundRobin(node) => node.on_departure(position, lengths, emptied),
            Self::MinimumShare(node) => node.on_departure(position, lengths, emptied, now),
        }
    }
}
