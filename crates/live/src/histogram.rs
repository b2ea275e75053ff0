//! Distributions of times, in fixed memory.

use slicewise_units::Duration;

/// Buckets per power of two: a bucket is at most a quarter wider than its lower end.
const STEPS: usize = 4;
/// Powers of two distinguished, from 2^10 ns (about 1 us) on; below it, and beyond 2^34 ns (17 s), there
/// is one bucket each.
const POWERS: usize = 24;
const FIRST_POWER: u32 = 10;
/// Buckets in all.
pub const BUCKETS: usize = STEPS * POWERS + 2;

/// How often each time occurred, with a resolution of a quarter or better between 1 us and 17 s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    counts: [u64; BUCKETS],
    count: u64,
    sum_ns: u64,
    largest: Duration,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Histogram {
    /// Without times.
    pub const EMPTY: Self = Self {
        counts: [0; BUCKETS],
        count: 0,
        sum_ns: 0,
        largest: Duration::ZERO,
    };

    /// Count one time.
    #[inline]
    pub fn record(&mut self, time: Duration) {
        if let Some(count) = self.counts.get_mut(bucket(time.nanos())) {
            *count += 1;
        }
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(time.nanos());
        self.largest = self.largest.max(time);
    }

    /// Times counted.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    #[must_use]
    pub const fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_ns)
    }

    /// The longest.
    #[must_use]
    pub const fn largest(&self) -> Duration {
        self.largest
    }

    /// A time that `thousandths` of all times do not exceed: the upper end of its bucket, or the
    /// longest time if that is less. Zero if none was counted.
    #[must_use]
    pub fn quantile(&self, thousandths: u64) -> Duration {
        let rank = (u128::from(self.count) * u128::from(thousandths)).div_ceil(1000);
        let rank = u64::try_from(rank).unwrap_or(u64::MAX).max(1);
        let mut below = 0;
        for (index, count) in self.counts.iter().enumerate() {
            below += count;
            if below >= rank {
                return upper_end(index).min(self.largest);
            }
        }
        self.largest
    }

    /// Times of at most the upper end of each bucket, by that end; the last is without end.
    pub fn cumulative(&self) -> impl Iterator<Item = (Duration, u64)> {
        let mut below = 0;
        self.counts.iter().enumerate().map(move |(index, count)| {
            below += count;
            (upper_end(index), below)
        })
    }

    /// Times longer than `limit`, up to the width of a bucket: those in buckets that end beyond it,
    /// but for its own.
    #[must_use]
    pub fn count_above(&self, limit: Duration) -> u64 {
        let own = bucket(limit.nanos());
        self.counts.iter().skip(own + 1).sum()
    }

    /// Count what `other` has counted, too.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.largest = self.largest.max(other.largest);
    }
}

#[inline]
fn bucket(nanos: u64) -> usize {
    let Some(power) = nanos.checked_ilog2().filter(|&power| power >= FIRST_POWER) else {
        return 0;
    };
    let step = (nanos >> (power - 2)) & 3;
    let index = (power - FIRST_POWER) as usize * STEPS + usize::try_from(step).unwrap_or(0) + 1;
    index.min(BUCKETS - 1)
}

/// Effectively exclusive: recorded times are whole nanoseconds.
fn upper_end(index: usize) -> Duration {
    if index >= BUCKETS - 1 {
        return Duration::MAX;
    }
    let power = FIRST_POWER + u32::try_from(index / STEPS).unwrap_or(0);
    let step = (index % STEPS) as u64;
    Duration::from_nanos((1u64 << power) + (step << (power - 2)) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_time_lies_in_its_bucket_and_the_bucket_is_at_most_a_quarter_wide(
            nanos in 1u64..30_000_000_000,
        ) {
            let index = bucket(nanos);
            prop_assert!(nanos <= upper_end(index).nanos());
            if index > 0 {
                let below = upper_end(index - 1).nanos();
                prop_assert!(below < nanos);
                if index < BUCKETS - 1 {
                    prop_assert!((upper_end(index).nanos() - below) * 4 <= below + 1);
                }
            }
        }
    }

    #[test]
    fn quantiles_are_never_too_small_nor_beyond_the_longest() {
        let mut histogram = Histogram::default();
        (1..=1000).for_each(|i| histogram.record(Duration::from_micros(i)));
        let median = histogram.quantile(500);
        assert!(median >= Duration::from_micros(500), "{median}");
        assert!(median <= Duration::from_micros(625), "{median}");
        assert_eq!(histogram.quantile(1000), Duration::from_millis(1));
        assert_eq!(Histogram::default().quantile(500), Duration::ZERO);
    }
}
