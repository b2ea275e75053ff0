//! Strict priority: always the first child, in order, that may send.
//!
//! A child that must wait for its shaper does not delay those after it.

use super::choice::{Offers, Step};
use super::offer::Offer;
use slicewise_model::MAX_PRIORITY_LEVELS;
use slicewise_units::Instant;

// Levels, and what has none below them, are found by their bit in a word.
const _: () = assert!(MAX_PRIORITY_LEVELS < u64::BITS as usize);

/// Which children have frames; bit 0 is served first.
#[derive(Debug, Clone, Default)]
pub struct StrictPriority {
    backlogged: u64,
}

impl StrictPriority {
    /// No child has frames.
    #[must_use]
    pub const fn new() -> Self {
        Self { backlogged: 0 }
    }

    #[inline]
    pub(super) const fn on_backlogged(&mut self, position: u32) -> bool {
        let was_empty = self.backlogged == 0;
        self.backlogged |= 1 << position;
        was_empty
    }

    /// The first child that has frames.
    #[inline]
    pub(super) const fn first(&self) -> u32 {
        self.backlogged.trailing_zeros()
    }

    #[inline]
    pub(super) const fn on_departure(&mut self, position: u32, emptied: bool) -> bool {
        if emptied {
            self.backlogged &= !(1 << position);
        }
        self.backlogged == 0
    }

    #[inline]
    pub(super) fn select(&self, offers: Offers<'_>) -> Step {
        let mut remaining = self.backlogged;
        // When a child that was passed over may send.
        let mut earliest = Instant::MAX;
        while remaining != 0 {
            let position = remaining.trailing_zeros();
            remaining &= remaining - 1;
            match offers.of(position) {
                None => return Step::ask(position),
                Some(offer) if offer.is_ready() => return Step::answer(offer.until(earliest)),
                Some(offer) => earliest = earliest.min(offer.until),
            }
        }
        Step::answer(Offer::wait(earliest))
    }
}
