//! Token-bucket shaping of a subtree: output in any interval t is at most burst + rate·t.
//!
//! A frame leaves when the credit covers it, so a burst leaves at the speed of the underlying link and
//! the rate is met on average. A full bucket lets one frame pass even if it is longer than the burst,
//! and goes into debt for it: nothing is stuck forever.
//!
//! If priority may borrow, frames of priority classes leave at once and are charged anyway; the others
//! wait until the debt is paid. So does priority that owes what the rate earns in 200 ms: the rate holds for
//! it, too.

use super::choice::{Offers, Step};
use super::offer::Offer;
use crate::bucket::TokenBucket;
use slicewise_model::ShaperParams;
use slicewise_units::{Credit, Duration, FrameLengths, Instant};

/// Largest debt of priority, as time at the rate: the burst that IOS grants a priority class.
const MAX_DEBT: Duration = Duration::from_millis(200);

/// A shaper over one child.
#[derive(Debug, Clone)]
pub struct Shaper {
    bucket: TokenBucket,
    /// Largest debt of frames of priority classes.
    priority_debt: Credit,
}

impl Shaper {
    /// A shaper whose bucket is full at `now`.
    #[must_use]
    pub fn new(params: &ShaperParams, now: Instant) -> Self {
        let debt = match params.priority_borrows {
            true => Credit::for_bytes(params.rate.rate.bytes_in(MAX_DEBT)),
            false => Credit::ZERO,
        };
        Self {
            bucket: TokenBucket::full(params.rate, params.burst, now),
            priority_debt: debt,
        }
    }

    /// Keep the credit or debt of `old`, with this shaper's own rate and burst.
    pub(crate) fn resume_from(&mut self, old: &Self, now: Instant) {
        self.bucket.resume_from(&old.bucket, now);
    }

    #[inline(always)]
    pub(super) fn select(&mut self, offers: Offers<'_>) -> Step {
        let Some(below) = offers.of(0) else {
            return Step::ask(0);
        };
        if !below.is_ready() {
            return Step::answer(Offer::wait(below.until));
        }
        let head = offers.head(below);
        let debt = match head.priority {
            true => self.priority_debt,
            false => Credit::ZERO,
        };
        let covered = self.bucket.wait_until_owing(head.lengths, debt, offers.now);
        let Some(covered) = covered else {
            return Step::answer(below);
        };
        if below.until == Instant::MAX {
            return Step::answer(Offer::promise(below.leaf, covered));
        }
        // Before that another frame may come first, and cost less.
        Step::answer(Offer::wait(covered.min(below.until)))
    }

    #[inline]
    pub(super) fn on_departure(&mut self, lengths: FrameLengths, now: Instant) {
        self.bucket.charge(lengths, now);
    }
}
