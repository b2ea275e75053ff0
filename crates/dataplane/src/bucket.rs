//! The token bucket under every meter and shaper.

use slicewise_model::Rate;
use slicewise_units::{ByteCount, Credit, FrameLengths, Instant};

/// A token bucket: earns credit at a rate up to a burst, starts full, never drifts.
///
/// Credit is kept in nanobits, so any number of calls earns exactly what one call earns. Calls with
/// `now` going backwards earn nothing.
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
        Self {
            rate,
            burst,
            credit: burst,
            updated: now,
        }
    }

    /// Earn what is due at `now`; returns the credit.
    #[inline]
    pub fn refill(&mut self, now: Instant) -> Credit {
        if now <= self.updated {
            return self.credit;
        }
        let total = self.credit + self.earn(now);
        self.credit = total.min(self.burst);
        self.credit
    }

    /// Earn what is due at `now`; returns the overflow beyond the burst.
    #[inline]
    pub fn refill_with_overflow(&mut self, now: Instant) -> Credit {
        let total = self.credit + self.earn(now);
        self.credit = total.min(self.burst);
        total - self.credit
    }

    /// Credit earned since the last call, not yet added.
    #[inline]
    fn earn(&mut self, now: Instant) -> Credit {
        let earned = Credit::earned(self.rate.rate, now.saturating_since(self.updated));
        self.updated = self.updated.max(now);
        earned
    }

    /// Add credit explicitly, up to the burst.
    #[inline]
    pub fn deposit(&mut self, credit: Credit) {
        self.credit = (self.credit + credit).min(self.burst);
    }

    /// Set the credit explicitly, up to the burst.
    pub fn set_credit(&mut self, credit: Credit) {
        self.credit = credit.min(self.burst);
    }

    /// Continue with the credit or debt that `old` has at `now`, up to this bucket's own burst: a
    /// change of rate or burst gives no fresh burst and forgives no debt.
    pub fn resume_from(&mut self, old: &Self, now: Instant) {
        let mut old = *old;
        let credit = old.refill(now);
        self.set_credit(credit);
        self.updated = old.updated;
    }

    /// Cost of a frame.
    #[inline]
    #[must_use]
    pub fn cost(&self, frame: FrameLengths) -> Credit {
        Credit::for_bytes(self.rate.accounting.count(frame))
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

    /// Spend `cost` if the credit as of the last refill covers it; otherwise spend nothing and return
    /// false.
    #[inline]
    #[must_use]
    pub fn try_spend(&mut self, cost: Credit) -> bool {
        let covered = self.credit >= cost;
        if covered {
            self.credit -= cost;
        }
        covered
    }

    /// When the credit will cover `cost`, as of the last refill; `None` if never.
    ///
    /// The first whole nanosecond at which a refill gives at least `cost`.
    #[must_use]
    pub fn ready_at(&self, cost: Credit) -> Option<Instant> {
        if cost > self.burst {
            return None;
        }
        let wait = (cost - self.credit).time_to_earn(self.rate.rate)?;
        Some(self.updated.saturating_add(wait))
    }

    /// Rate and accounting.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Largest credit.
    #[must_use]
    pub const fn burst(&self) -> Credit {
        self.burst
    }
}

#[cfg(test)]
mod tests;
