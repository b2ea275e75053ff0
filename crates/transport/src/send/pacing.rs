//! Pacing: a burst leaves no sooner than the one before it has been paid for at the pacing rate, as Linux's `fq` does it.

use super::burst::of_product;
use slicewise_units::{Duration, Instant};

/// When the next burst may leave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pacer {
    next_at: Instant,
    is_waiting: bool,
}

impl Pacer {
    /// A burst of `bytes` leaves at `now`, at `rate` bytes a second.
    pub(crate) fn on_sent(&mut self, bytes: u64, rate: u64, now: Instant) {
        let nanos = of_product(bytes, 1_000_000_000, rate.max(1));
        self.next_at = now.max(self.next_at) + Duration::from_nanos(nanos);
        self.is_waiting = false;
    }

    /// Returns true if the next burst must wait.
    #[inline]
    pub(crate) fn holds_back(&mut self, now: Instant) -> bool {
        self.is_waiting = self.next_at > now;
        self.is_waiting
    }

    /// Time has passed.
    #[inline]
    pub(crate) fn on_time(&mut self, now: Instant) {
        self.is_waiting &= self.next_at > now;
    }

    /// When a burst that was held back may leave.
    #[inline]
    pub(crate) const fn waits_until(&self) -> Option<Instant> {
        if self.is_waiting {
            Some(self.next_at)
        } else {
            None
        }
    }
}
