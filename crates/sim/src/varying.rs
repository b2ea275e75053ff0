//! When a link whose rate changes is free again.

use slicewise_traffic::RateSeries;
use slicewise_units::{ByteCount, Duration, Instant, NANOS_PER_SECOND};
use std::sync::Arc;

/// Serialization at a rate that changes. A frame occupies the link until the integral of the rate from its first bit on is its
/// length: what is still to be sent of it when the rate changes is sent at the new one, so none of the rate is lost while frames wait.
#[derive(Debug, Clone)]
pub(crate) struct VaryingClock {
    series: Arc<RateSeries>,
    /// The step at `free_at`, and when the repetition began that it is of.
    step: usize,
    began: Instant,
    /// The first whole nanosecond at which the link is free.
    free_at: Instant,
    /// Nanobits that it could send between the moment when it is really free and `free_at`.
    spare: u128,
}

impl VaryingClock {
    /// An idle link.
    pub(crate) const fn new(series: Arc<RateSeries>) -> Self {
        Self {
            series,
            step: 0,
            began: Instant::ZERO,
            free_at: Instant::ZERO,
            spare: 0,
        }
    }

    /// When the last bit of the last frame has been sent.
    pub(crate) const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Send `size` as soon as the link is free, not before `now`; returns when the last bit has left, rounded up to a nanosecond.
    pub(crate) fn send(&mut self, size: ByteCount, now: Instant) -> Instant {
        if self.free_at < now {
            self.free_at = now;
            self.spare = 0;
        }
        let mut work = u128::from(size.bytes()) * 8 * u128::from(NANOS_PER_SECOND);
        let saved = work.min(self.spare);
        work -= saved;
        self.spare -= saved;
        while work > 0 && self.free_at < Instant::MAX {
            let end = self.find_step();
            let rate = self.series.steps().get(self.step);
            let rate = rate.map_or(0, |step| u128::from(step.rate.bits_per_second()));
            let until_end = end.map_or(u128::MAX, |end| {
                end.saturating_since(self.free_at).nanos().into()
            });
            let needed = work.checked_div(rate).map_or(u128::MAX, |whole| {
                whole + u128::from(!work.is_multiple_of(rate))
            });
            let lasts = needed.min(until_end);
            let sent = lasts.saturating_mul(rate);
            self.spare = sent.saturating_sub(work);
            work = work.saturating_sub(sent);
            let lasts = Duration::from_nanos(u64::try_from(lasts).unwrap_or(u64::MAX));
            self.free_at = self.free_at.saturating_add(lasts);
        }
        self.free_at
    }

    /// Go on to the step at `free_at`; returns when it ends.
    fn find_step(&mut self) -> Option<Instant> {
        self.skip_repetitions();
        loop {
            let end = self.series.ends_at(self.step, self.began)?;
            if end > self.free_at {
                return Some(end);
            }
            self.step += 1;
            if self.step >= self.series.steps().len() {
                (self.step, self.began) = (0, end);
            }
        }
    }

    /// Go on to the repetition at `free_at`.
    fn skip_repetitions(&mut self) {
        if let Some(period) = self.series.period() {
            let since = self.free_at.saturating_since(self.began).nanos();
            let whole = since - since % period.nanos().max(1);
            if whole > 0 {
                self.began = self.began.saturating_add(Duration::from_nanos(whole));
                self.step = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests;
