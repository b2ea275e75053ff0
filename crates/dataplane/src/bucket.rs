//! The token bucket under every meter and shaper.

use slicewise_model::Rate;
use slicewise_units::{ByteCount, Credit, Duration, FrameLengths, Instant};

/// A token bucket: earns credit at a rate up to a burst, starts full, never drifts.
///
/// Credit is kept in nanobits, so what is earned over any number of calls equals exactly what
/// is earned in one. Calls with `now` going backwards earn nothing.
#[derive(Debug, Clone, Copy)]
pub struct TokenBucket {
    rate: Rate,
    burst: Credit,
    credit: Credit,
    updated: Instant,
}

impl TokenBucket {
    /// A bucket that is full at `now`.
    #[must_use]
    pub fn full(rate: Rate, burst: ByteCount, now: Instant) -> Self {
        let burst = Credit::for_bytes(burst);
        Self { rate, burst, credit: burst, updated: now }
    }

    /// Earn what is due at `now`; returns the credit.
    #[inline]
    pub fn refill(&mut self, now: Instant) -> Credit {
        let earned = Credit::earned(self.rate.rate, now.saturating_since(self.updated));
        self.updated = self.updated.max(now);
        self.credit = (self.credit + earned).min(self.burst);
        self.credit
    }

    /// Earn what is due at `now` beyond the burst: returns what did not fit.
    pub fn refill_with_overflow(&mut self, now: Instant) -> Credit {
        let earned = Credit::earned(self.rate.rate, now.saturating_since(self.updated));
        self.updated = self.updated.max(now);
        let total = self.credit + earned;
        self.credit = total.min(self.burst);
        total - self.credit
    }

    /// Put credit in by hand, up to the burst.
    pub fn deposit(&mut self, credit: Credit) {
        self.credit = (self.credit + credit).min(self.burst);
    }

    /// What a frame costs here.
    #[inline]
    #[must_use]
    pub fn cost(&self, frame: FrameLengths) -> Credit {
        Credit::for_bytes(self.rate.accounting.count(frame))
    }

    /// True where `cost` could never be saved up.
    #[must_use]
    pub fn never_conforms(&self, cost: Credit) -> bool {
        cost > self.burst
    }

    /// Credit as of the last refill.
    #[must_use]
    pub const fn credit(&self) -> Credit {
        self.credit
    }

    /// Spend, into debt if need be.
    #[inline]
    pub fn spend(&mut self, cost: Credit) {
        self.credit -= cost;
    }

    /// When `cost` will be there, as of the last refill; `None` if never.
    #[must_use]
    pub fn ready_at(&self, cost: Credit) -> Option<Instant> {
        if cost > self.burst {
            return None;
        }
        let wait: Duration = (cost - self.credit).time_to_earn(self.rate.rate)?;
        Some(self.updated.saturating_add(wait))
    }

    /// Rate and accounting.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }
}
