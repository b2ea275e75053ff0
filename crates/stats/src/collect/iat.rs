//! Inter-arrival times of one source at one point: exact moments and a histogram.

use super::histogram::{Histogram, Pages};
use crate::record::IatFigures;
use slicewise_units::Instant;

/// Running sums over the inter-arrival times of one source at one point, as integers, so that the variance
/// is exact for any length.
#[derive(Debug, Clone)]
pub(super) struct IatState {
    /// When the last packet passed; [`Instant::MAX`] before the first.
    last: Instant,
    samples: u64,
    sum_ns: u128,
    sum_of_squares_ns2: Wide,
    max_ns: u64,
    histogram: Histogram,
    pages: Pages,
}

impl IatState {
    pub fn new() -> Self {
        Self {
            last: Instant::MAX,
            samples: 0,
            sum_ns: 0,
            sum_of_squares_ns2: Wide::ZERO,
            max_ns: 0,
            histogram: Histogram::EMPTY,
            pages: Pages::default(),
        }
    }

    pub fn reset(&mut self) {
        let mut pages = std::mem::take(&mut self.pages);
        pages.clear();
        *self = Self {
            pages,
            ..Self::new()
        };
    }

    /// A packet passes at `now`. One that is reported after a later one neither ends an interval nor begins one, so that
    /// all intervals together last from the first packet to the last.
    #[inline(always)]
    pub fn on_packet(&mut self, now: Instant) {
        let last = self.last;
        if now < last {
            if last == Instant::MAX {
                self.last = now;
            }
            return;
        }
        self.last = now;
        let interval_ns = now.saturating_since(last).nanos();
        self.samples += 1;
        self.sum_ns += u128::from(interval_ns);
        let square = u128::from(interval_ns) * u128::from(interval_ns);
        self.sum_of_squares_ns2 = self.sum_of_squares_ns2.plus(Wide::from(square));
        self.max_ns = self.max_ns.max(interval_ns);
        self.pages.record(&mut self.histogram, interval_ns);
    }

    pub fn figures(&self, max_points: usize) -> IatFigures {
        if self.samples == 0 {
            return IatFigures::default();
        }
        IatFigures {
            samples: self.samples,
            mean_ns: self.sum_ns as f64 / self.samples as f64,
            variance_ns2: self.variance_ns2(),
            cdf: self
                .pages
                .distribution(std::iter::once(&self.histogram))
                .cdf(max_points, self.max_ns),
        }
    }

    /// Sample variance (divisor n − 1); 0 for less than two samples.
    ///
    /// (n Σx² − (Σx)²) / (n (n − 1)). The numerator is exact: n and x are below 2⁶⁴, so both terms are
    /// below 2²⁵⁶. Only the division rounds, so the variance is never negative.
    fn variance_ns2(&self) -> f64 {
        if self.samples < 2 {
            return 0.0;
        }
        let n = u128::from(self.samples);
        let scaled = self.sum_of_squares_ns2.times(self.samples);
        let numerator = scaled.minus(Wide::square(self.sum_ns));
        numerator.to_f64() / (n * (n - 1)) as f64
    }
}

/// An unsigned integer of 256 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wide {
    high: u128,
    low: u128,
}

impl Wide {
    const ZERO: Self = Self { high: 0, low: 0 };

    const fn from(low: u128) -> Self {
        Self { high: 0, low }
    }

    const fn plus(self, other: Self) -> Self {
        let (low, carry) = self.low.overflowing_add(other.low);
        let high = self.high.wrapping_add(other.high);
        Self {
            high: high.wrapping_add(carry as u128),
            low,
        }
    }

    /// `other` is at most `self`.
    const fn minus(self, other: Self) -> Self {
        let (low, borrow) = self.low.overflowing_sub(other.low);
        let high = self.high.wrapping_sub(other.high);
        Self {
            high: high.wrapping_sub(borrow as u128),
            low,
        }
    }

    const fn product(one: u128, other: u64) -> Self {
        let other = other as u128;
        let low = (one & LOW_HALF) * other;
        let high = (one >> 64) * other;
        let shifted = Self {
            high: high >> 64,
            low: high << 64,
        };
        shifted.plus(Self::from(low))
    }

    const fn times(self, factor: u64) -> Self {
        let low = Self::product(self.low, factor);
        Self {
            high: low
                .high
                .wrapping_add(self.high.wrapping_mul(factor as u128)),
            low: low.low,
        }
    }

    /// The square of `number`.
    const fn square(number: u128) -> Self {
        let low = Self::product(number, (number & LOW_HALF) as u64);
        let high = Self::product(number, (number >> 64) as u64);
        low.plus(Self {
            high: high.high << 64 | high.low >> 64,
            low: high.low << 64,
        })
    }

    fn to_f64(self) -> f64 {
        self.high as f64 * 2_f64.powi(128) + self.low as f64
    }
}

const LOW_HALF: u128 = u64::MAX as u128;

#[cfg(test)]
mod tests {
    use super::*;

    fn figures_of(times_ns: &[u64]) -> IatFigures {
        let mut state = IatState::new();
        for &at in times_ns {
            state.on_packet(Instant::from_nanos(at));
        }
        state.figures(200)
    }

    #[test]
    fn mean_and_variance_are_those_of_the_intervals() {
        // Intervals 1, 3, 5: mean 3, sample variance 4.
        let figures = figures_of(&[10, 11, 14, 19]);
        assert_eq!(
            (figures.samples, figures.mean_ns, figures.variance_ns2),
            (3, 3.0, 4.0)
        );
    }

    #[test]
    fn variance_survives_a_large_mean() {
        // Intervals of an hour, ± 1 ns: Σx² − (Σx)²/n in floats would give 0 or noise.
        let hour = 3_600_000_000_000;
        let figures = figures_of(&[0, hour - 1, 2 * hour, 3 * hour - 1, 4 * hour]);
        assert!(
            (figures.variance_ns2 - 4.0 / 3.0).abs() < 1e-9,
            "{}",
            figures.variance_ns2
        );
    }

    #[test]
    fn intervals_of_the_run_before_are_forgotten() {
        let figures = |state: &mut IatState, times: [u64; 3]| {
            for at in times {
                state.on_packet(Instant::from_nanos(at));
            }
            let figures = state.figures(200);
            state.reset();
            figures
        };
        let mut used = IatState::new();
        drop(figures(&mut used, [0, 5_000, 5_001]));
        let expected = figures(&mut IatState::new(), [0, 1, 5_001]);
        assert_eq!(figures(&mut used, [0, 1, 5_001]), expected);
    }

    #[test]
    fn one_packet_has_no_interval() {
        assert_eq!(figures_of(&[5]), IatFigures::default());
    }

    #[test]
    fn squares_are_exact_up_to_the_largest_number() {
        let square = |high, low| Wide { high, low };
        // (2⁶⁴ + 3)² = 2¹²⁸ + 6 · 2⁶⁴ + 9; (2¹²⁸ − 1)² = 2²⁵⁶ − 2¹²⁹ + 1.
        assert_eq!(Wide::square((1 << 64) + 3), square(1, (6 << 64) + 9));
        assert_eq!(Wide::square(1 << 127), square(1 << 126, 0));
        assert_eq!(Wide::square(u128::MAX), square(u128::MAX - 1, 1));
    }

    /// Digits to base 2³², the lowest first: as many as are needed.
    #[derive(Debug, Clone, Default)]
    struct Digits(Vec<u64>);

    impl Digits {
        fn of(number: u64) -> Self {
            Self(vec![number & 0xffff_ffff, number >> 32])
        }

        fn carried(columns: Vec<u128>) -> Self {
            let mut carry = 0;
            let mut digits = Vec::new();
            for column in columns.into_iter().chain([0; 4]) {
                carry += column;
                digits.push((carry & 0xffff_ffff) as u64);
                carry >>= 32;
            }
            Self(digits)
        }

        fn plus(&self, other: &Self) -> Self {
            let mut columns = vec![0; self.0.len().max(other.0.len())];
            for number in [self, other] {
                for (column, digit) in columns.iter_mut().zip(&number.0) {
                    *column += u128::from(*digit);
                }
            }
            Self::carried(columns)
        }

        fn squared(&self) -> Self {
            let mut columns = vec![0; self.0.len() * 2];
            for (i, one) in self.0.iter().enumerate() {
                for (j, other) in self.0.iter().enumerate() {
                    columns[i + j] += u128::from(*one) * u128::from(*other);
                }
            }
            Self::carried(columns)
        }

        fn to_f64(&self) -> f64 {
            let digits = self.0.iter().rev();
            digits.fold(0.0, |sum, digit| sum * 2_f64.powi(32) + *digit as f64)
        }
    }

    /// Σ (x − y)² over all pairs / (n (n − 1)): no difference of large numbers, so nothing cancels.
    fn variance_of_pairs(intervals: &[u64]) -> f64 {
        let mut sum = Digits::default();
        for (i, one) in intervals.iter().enumerate() {
            for other in &intervals[i + 1..] {
                sum = sum.plus(&Digits::of(one.abs_diff(*other)).squared());
            }
        }
        let n = intervals.len() as f64;
        sum.to_f64() / (n * (n - 1.0))
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(500))]

        #[test]
        fn variance_of_any_stamps_is_that_of_exact_integers(
            wild in proptest::collection::vec(proptest::prelude::any::<u64>(), 0..12),
            near in proptest::collection::vec(0_u64..2_000_000, 0..12),
            base in proptest::prelude::any::<u64>(),
        ) {
            let near = near.into_iter().map(|offset| base.saturating_add(offset));
            let times: Vec<u64> = near.chain(wild).collect();
            let latest = times.iter().scan(0, |latest, &at| {
                let is_in_order = at >= *latest;
                *latest = at.max(*latest);
                Some(is_in_order.then_some(at))
            });
            let in_order: Vec<u64> = latest.flatten().collect();
            let intervals: Vec<u64> = in_order.windows(2).map(|pair| pair[1] - pair[0]).collect();
            proptest::prop_assume!(intervals.len() > 1);
            let IatFigures { samples, mean_ns, variance_ns2: variance, .. } = figures_of(&times);
            proptest::prop_assert_eq!(samples, intervals.len() as u64);
            let lasted = (in_order[in_order.len() - 1] - in_order[0]) as f64;
            proptest::prop_assert!((mean_ns * samples as f64 - lasted).abs() <= lasted * 1e-14);
            let expected = variance_of_pairs(&intervals);
            proptest::prop_assert!(variance >= 0.0);
            proptest::prop_assert!(
                (variance - expected).abs() <= expected * 1e-14,
                "{variance} instead of {expected}"
            );
        }
    }
}
