//! Inner nodes: which of its children a node lets send.
//!
//! A node sees positions, offers and lengths, never the tree. It asks for the offers of the children
//! that decide; the tree notifies it of each child that gets its first frame and of each frame that
//! leaves.

use super::choice::{Offers, Step};
use super::deficit_round_robin::DeficitRoundRobin;
use super::minimum_share::MinimumShare;
use super::offer::Offer;
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

    /// Returns true if it sends from a child until that is empty, or its [turn](Self::turns) is over, if no other gets
    /// a frame; beside the turns of queues it does not count the bytes that it sends.
    #[inline]
    pub(super) const fn exhausts(&self, over_queues: bool) -> bool {
        match self {
            Self::StrictPriority(_) => true,
            Self::DeficitRoundRobin(_) => over_queues,
            Self::Shaper(_) | Self::MinimumShare(_) => false,
        }
    }

    /// The turns that end while a child has frames.
    #[inline]
    pub(super) const fn turns(&mut self) -> Option<&mut DeficitRoundRobin> {
        match self {
            Self::DeficitRoundRobin(node) => Some(node),
            _ => None,
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

    /// The child at `position` has lost its frames without sending them. Returns whether no other has any.
    pub(super) fn on_emptied(&mut self, position: u32) -> bool {
        match self {
            Self::Shaper(_) => true,
            Self::StrictPriority(node) => node.on_departure(position, true),
            Self::DeficitRoundRobin(node) => node.on_emptied(position),
            Self::MinimumShare(node) => node.on_emptied(position),
        }
    }

    /// Returns true if it makes the offer of the child at `position`, which has frames, without a decision.
    #[inline]
    pub(super) const fn offers_what(&self, position: u32) -> bool {
        matches!(self, Self::StrictPriority(node) if node.first() == position)
    }

    /// A frame that the child at `position` offered has left. What `departed` says of the child is then so of this node.
    ///
    /// It also says what it offers next, unless that is a decision which changes the node: that is made when it is asked, as
    /// another child may get a frame before, unless the node `is_asked` before anything else happens.
    #[inline(always)]
    pub(super) fn on_departure<'a>(
        &mut self,
        position: u32,
        departed: &mut Departed,
        is_asked: impl FnOnce() -> bool,
        offers: impl FnOnce() -> Offers<'a>,
    ) {
        let Departed {
            lengths,
            emptied,
            next,
            is_queue,
            now,
            ..
        } = *departed;
        departed.is_queue = false;
        departed.offer = Offer::UNKNOWN;
        match self {
            Self::Shaper(node) => {
                node.on_departure(lengths, now);
                departed.offer = node.select(offers()).known();
                departed.next = None;
            }
            Self::StrictPriority(node) => {
                departed.emptied = node.on_departure(position, emptied);
                if next.is_none() && !departed.emptied {
                    departed.offer = node.select(offers()).known();
                }
            }
            Self::DeficitRoundRobin(node) => {
                node.charge(position, lengths);
                departed.emptied = emptied && node.on_emptied(position);
                departed.next = next.filter(|&next| node.goes_on(position, next, is_queue));
            }
            Self::MinimumShare(node) => {
                departed.emptied = node.on_departure(position, lengths, emptied, now);
                departed.next = None;
                if !departed.emptied && is_asked() {
                    departed.offer = node.select(offers()).known();
                }
            }
        }
    }
}

/// A frame that has left a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Departed {
    pub(super) lengths: FrameLengths,
    /// It was the node's last one.
    pub(super) emptied: bool,
    /// The node offers the frame behind it as it offered this one.
    pub(super) next: Option<FrameLengths>,
    /// Offer of the node otherwise.
    pub(super) offer: Offer,
    /// The node is a queue: no arrival changes which frame is next.
    pub(super) is_queue: bool,
    pub(super) now: Instant,
}
