//! Periodic updates without a timer.

use slicewise_units::{Duration, Instant};

/// Most updates that are made up for at once; in an empty queue, the state of a manager no longer changes noticeably
/// after so many.
const MAX_DUE: u64 = 1_000;

/// Updates that are made up for when a frame arrives or leaves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Updates {
    period: Duration,
    /// [`Instant::ZERO`] before the first frame.
    next: Instant,
}

impl Updates {
    /// Updates every `period`, from the first frame on.
    pub(super) const fn every(period: Duration) -> Self {
        Self {
            period,
            next: Instant::ZERO,
        }
    }

    /// Number of updates that have become due by `now`; from now on they are made.
    pub(super) fn take_due(&mut self, now: Instant) -> u64 {
        if self.next == Instant::ZERO {
            self.next = now.saturating_add(self.period);
        }
        if now < self.next {
            return 0;
        }
        let late = now.saturating_since(self.next).nanos();
        let due = 1 + late / self.period.nanos().max(1);
        let periods = Duration::from_nanos(self.period.nanos().saturating_mul(due));
        self.next = self.next.saturating_add(periods);
        due.min(MAX_DUE)
    }

    /// Continue where `old` is if the period is the same; another one begins with the next frame.
    pub(super) fn resume_from(&mut self, old: Self) {
        if self.period == old.period {
            *self = old;
        }
    }
}
