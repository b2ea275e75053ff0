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
    /// In nanobits.
    burst: u128,
    /// By how much the credit is below the burst. Earning is then one subtraction that stops at zero.
    missing: u128,
    updated: Instant,
    /// The price of the last frame: consecutive ones often have the same size.
    last: Price,
}

/// The price of a frame in a bucket.
#[derive(Debug, Clone, Copy)]
struct Price {
    frame: FrameLengths,
    cost: Credit,
    /// See [`most_missing`].
    most_missing: u128,
}

/// How much credit may be [missing](TokenBucket::missing) when a frame leaves; it may leave a full bucket, whatever it costs.
const fn most_missing(burst: u128, cost: Credit) -> u128 {
    burst.saturating_sub(cost.nanobits().cast_unsigned())
}

impl Price {
    fn new(frame: FrameLengths, rate: Rate, burst: u128) -> Self {
        let cost = Credit::for_bytes(rate.accounting.count(frame));
        Self {
            frame,
            cost,
            most_missing: most_missing(burst, cost),
        }
    }
}

impl TokenBucket {
    /// A bucket that is full at `now`.
    #[must_use]
    pub fn full(rate: Rate, burst: ByteCount, now: Instant) -> Self {
        let burst = Credit::for_bytes(burst).nanobits().cast_unsigned();
        Self {
            rate,
            burst,
            missing: 0,
            updated: now,
            last: Price::new(FrameLengths::NONE, rate, burst),
        }
    }

    /// Earn what is due at `now`; returns the credit.
    #[inline]
    pub fn refill(&mut self, now: Instant) -> Credit {
        if now > self.updated {
            let earned = self.earn(now);
            self.missing = self.missing.saturating_sub(earned);
        }
        self.credit()
    }

    /// Earn what is due at `now`; returns the overflow beyond the burst.
    #[inline]
    pub fn refill_with_overflow(&mut self, now: Instant) -> Credit {
        let earned = self.earn(now);
        let overflow = earned.saturating_sub(self.missing);
        self.missing = self.missing.saturating_sub(earned);
        Credit::from_nanobits(i128::try_from(overflow).unwrap_or(i128::MAX))
    }

    /// Nanobits earned since the last call, not yet added.
    #[inline]
    fn earn(&mut self, now: Instant) -> u128 {
        let passed = now.saturating_since(self.updated);
        self.updated = self.updated.max(now);
        u128::from(self.rate.rate.bits_per_second()) * u128::from(passed.nanos())
    }

    /// Add credit explicitly, up to the burst.
    #[inline]
    pub const fn deposit(&mut self, credit: Credit) {
        debug_assert!(credit.nanobits() >= 0, "credit, not debt");
        let credit = credit.nanobits().cast_unsigned();
        self.missing = self.missing.saturating_sub(credit);
    }

    /// Set the credit explicitly, up to the burst.
    pub fn set_credit(&mut self, credit: Credit) {
        let missing = self.burst() - credit;
        self.missing = missing.nanobits().max(0).cast_unsigned();
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
    pub fn cost(&mut self, frame: FrameLengths) -> Credit {
        self.price(frame).cost
    }

    #[inline]
    fn price(&mut self, frame: FrameLengths) -> &Price {
        if frame != self.last.frame {
            self.last = Price::new(frame, self.rate, self.burst);
        }
        &self.last
    }

    /// Credit as of the last refill.
    #[inline]
    #[must_use]
    pub const fn credit(&self) -> Credit {
        Credit::from_nanobits(self.burst.cast_signed() - self.missing.cast_signed())
    }

    /// Spend, into debt if need be.
    #[inline]
    pub const fn spend(&mut self, cost: Credit) {
        debug_assert!(cost.nanobits() >= 0, "nothing is earned by spending");
        // Only 2^60 of the longest frames would exceed what this can hold.
        self.missing += cost.nanobits().cast_unsigned();
    }

    /// Earn what is due at `now`, and spend what a frame costs, into debt if need be.
    #[inline]
    pub fn charge(&mut self, frame: FrameLengths, now: Instant) {
        self.refill(now);
        let cost = self.cost(frame);
        self.spend(cost);
    }

    /// Spend `cost` if the credit as of the last refill covers it; otherwise spend nothing and return
    /// false.
    #[inline]
    #[must_use]
    pub fn try_spend(&mut self, cost: Credit) -> bool {
        let missing = self.missing + cost.nanobits().cast_unsigned();
        let covered = missing <= self.burst;
        if covered {
            self.missing = missing;
        }
        covered
    }

    /// When the credit will cover `cost`, as of the last refill; `None` if never.
    ///
    /// The first whole nanosecond at which a refill gives at least `cost`.
    #[inline]
    #[must_use]
    pub fn ready_at(&self, cost: Credit) -> Option<Instant> {
        if cost > self.burst() {
            return None;
        }
        let short = (self.missing).saturating_sub(most_missing(self.burst, cost));
        let wait = Credit::from_nanobits(short.cast_signed()).time_to_earn(self.rate.rate)?;
        Some(self.updated.saturating_add(wait))
    }

    /// Earn what is due at `now`; returns until when a frame has to wait, if it does: until the credit covers it or the bucket
    /// is full, which is enough for a frame longer than the burst. [`Instant::MAX`] for ever.
    #[inline]
    pub fn wait_until(&mut self, frame: FrameLengths, now: Instant) -> Option<Instant> {
        self.wait_until_owing(frame, Credit::ZERO, now)
    }

    /// The same of a frame that may leave on credit it does not have, while no more than `debt` is owed after it.
    #[inline(always)]
    pub fn wait_until_owing(
        &mut self,
        frame: FrameLengths,
        debt: Credit,
        now: Instant,
    ) -> Option<Instant> {
        self.refill(now);
        let most_missing = self.price(frame).most_missing + debt.nanobits().cast_unsigned();
        let short = self.missing.saturating_sub(most_missing);
        if short == 0 {
            return None;
        }
        let wait = Credit::from_nanobits(short.cast_signed()).time_to_earn(self.rate.rate);
        Some(wait.map_or(Instant::MAX, |wait| self.updated.saturating_add(wait)))
    }

    /// Rate and accounting.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Largest credit.
    #[must_use]
    pub const fn burst(&self) -> Credit {
        Credit::from_nanobits(self.burst.cast_signed())
    }
}

#[cfg(test)]
mod tests;
