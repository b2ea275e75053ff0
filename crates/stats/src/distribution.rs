//! An empirical distribution as counts in bins: quantiles and distribution function.

use crate::record::{CdfPoint, DelayFigures};

/// Number, sum and extremes of samples, exactly; the corresponding [`Distribution`] has the resolution
/// of its bins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moments {
    /// Number of samples.
    pub samples: u64,
    /// Their sum, ns.
    pub sum_ns: u128,
    /// The smallest, ns; the largest integer where there are no samples.
    pub min_ns: u64,
    /// The largest, ns; 0 where there are no samples.
    pub max_ns: u64,
}

impl Default for Moments {
    fn default() -> Self {
        Self::NONE
    }
}

impl Moments {
    /// Moments of no samples.
    pub const NONE: Self = Self {
        samples: 0,
        sum_ns: 0,
        min_ns: u64::MAX,
        max_ns: 0,
    };

    /// Count one sample.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.samples += 1;
        self.sum_ns += u128::from(value_ns);
        self.min_ns = self.min_ns.min(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
    }

    /// Returns the moments of both sets of samples.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        Self {
            samples: self.samples + other.samples,
            sum_ns: self.sum_ns + other.sum_ns,
            min_ns: self.min_ns.min(other.min_ns),
            max_ns: self.max_ns.max(other.max_ns),
        }
    }

    /// Mean by how much samples are above `floor_ns`, which none is below, ns; 0 without samples.
    #[must_use]
    pub fn mean_above_ns(&self, floor_ns: u64) -> f64 {
        if self.samples == 0 {
            return 0.0;
        }
        let floor = u128::from(floor_ns) * u128::from(self.samples);
        self.sum_ns.saturating_sub(floor) as f64 / self.samples as f64
    }

    /// The figures of these samples, with percentiles from their distribution; all 0 without samples.
    #[must_use]
    pub fn figures(&self, distribution: &Distribution) -> DelayFigures {
        if self.samples == 0 {
            return DelayFigures::default();
        }
        const PER_100_000: [u32; 7] = [50_000, 90_000, 95_000, 99_000, 99_900, 99_990, 99_999];
        let quantiles = distribution.quantiles(PER_100_000.map(|of| (of, 100_000)));
        // A bin's upper edge may lie past the largest sample, which is known exactly.
        let [p50_ns, p90_ns, p95_ns, p99_ns, p999_ns, p9999_ns, p99999_ns] =
            quantiles.map(|quantile| quantile.clamp(self.min_ns, self.max_ns));
        DelayFigures {
            samples: self.samples,
            mean_ns: self.mean_above_ns(0),
            min_ns: self.min_ns,
            p50_ns,
            p90_ns,
            p95_ns,
            p99_ns,
            p999_ns,
            p9999_ns,
            p99999_ns,
            max_ns: self.max_ns,
        }
    }
}

/// Samples counted in bins of increasing value.
///
/// A bin is identified by its upper edge, the largest value it can hold: a quantile is therefore never
/// too small, and at most one bin width too large.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Distribution {
    /// Upper edge and count of each bin that is not empty, edges increasing.
    bins: Vec<(u64, u64)>,
    total: u64,
}

impl Distribution {
    /// Append a bin; empty ones are skipped.
    ///
    /// Edges must come in increasing order: a smaller or equal one is counted in the last bin.
    pub fn push(&mut self, upper_edge: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.total = self.total.saturating_add(count);
        match self.bins.last_mut() {
            Some((last_edge, last_count)) if *last_edge >= upper_edge => {
                *last_count = last_count.saturating_add(count);
            }
            _ => self.bins.push((upper_edge, count)),
        }
    }

    /// Returns the samples of a distribution function that was made of so many, at its points.
    #[must_use]
    pub fn of_cdf(points: &[CdfPoint], samples: u64) -> Self {
        let mut distribution = Self::default();
        for CdfPoint(value, fraction) in points {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it saturates"
            )]
            let reached = (fraction * samples as f64).round() as u64;
            distribution.push(*value, reached.saturating_sub(distribution.total));
        }
        distribution
    }

    /// The bins that are not empty: upper edge and count.
    #[must_use]
    pub fn bins(&self) -> &[(u64, u64)] {
        &self.bins
    }

    /// Number of samples.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Both distributions' samples together.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        if self.bins.is_empty() {
            return other.clone();
        }
        let mut merged = Self::default();
        let (mut left, mut right) = (self.bins.as_slice(), other.bins.as_slice());
        while let (Some(&(a, count_a)), Some(&(b, count_b))) = (left.first(), right.first()) {
            if a <= b {
                merged.push(a, count_a);
                left = &left[1..];
            } else {
                merged.push(b, count_b);
                right = &right[1..];
            }
        }
        for &(edge, count) in left.iter().chain(right) {
            merged.push(edge, count);
        }
        merged
    }

    /// Smallest edge with at least `numerator / denominator` of the samples at or below it;
    /// 0 without samples.
    #[must_use]
    pub fn quantile(&self, numerator: u32, denominator: u32) -> u64 {
        let [quantile] = self.quantiles([(numerator, denominator)]);
        quantile
    }

    /// [Quantiles](Self::quantile) that increase, found in one pass.
    fn quantiles<const N: usize>(&self, fractions: [(u32, u32); N]) -> [u64; N] {
        let (mut bins, mut seen, mut edge) = (self.bins.iter(), 0u64, 0);
        fractions.map(|(numerator, denominator)| {
            let wanted = (u128::from(self.total) * u128::from(numerator))
                .div_ceil(u128::from(denominator.max(1)));
            let wanted = u64::try_from(wanted).unwrap_or(u64::MAX).max(1);
            while seen < wanted
                && let Some(&(next, count)) = bins.next()
            {
                (edge, seen) = (next, seen.saturating_add(count));
            }
            edge
        })
    }

    /// Smallest edge with at least `rank` samples (1 at least) at or below it; `None` where there are fewer.
    #[must_use]
    pub fn at_rank(&self, rank: u64) -> Option<u64> {
        let mut left = rank.max(1);
        for &(edge, count) in &self.bins {
            if count >= left {
                return Some(edge);
            }
            left -= count;
        }
        None
    }

    /// The distribution function in at most `max_points` points (2 at least), values capped at
    /// `max_value`, the largest sample.
    ///
    /// Read as a step function, it is exact at every point and nowhere too low by more than
    /// 1 / (`max_points` − 1).
    #[must_use]
    pub fn cdf(&self, max_points: usize, max_value: u64) -> Vec<CdfPoint> {
        let total = self.total as f64;
        let every_bin = self.bins.len() <= max_points;
        let step = 1.0 / (max_points.max(2) - 1) as f64;
        let mut points: Vec<CdfPoint> = Vec::with_capacity(self.bins.len().min(max_points));
        let (mut seen, mut written) = (0u64, 0.0);
        for (index, &(edge, count)) in self.bins.iter().enumerate() {
            seen += count;
            let is_last = index + 1 == self.bins.len();
            let fraction = if is_last { 1.0 } else { seen as f64 / total };
            if every_bin || is_last || fraction - written >= step {
                points.push(CdfPoint(edge.min(max_value), fraction));
                written = fraction;
            }
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(bins: &[(u64, u64)]) -> Distribution {
        let mut distribution = Distribution::default();
        for &(edge, count) in bins {
            distribution.push(edge, count);
        }
        distribution
    }

    #[test]
    fn a_quantile_is_the_smallest_edge_that_holds_its_share() {
        let distribution = of(&[(10, 50), (20, 49), (30, 1)]);
        assert_eq!(distribution.quantile(0, 100), 10);
        assert_eq!(distribution.quantile(50, 100), 10);
        assert_eq!(distribution.quantile(51, 100), 20);
        assert_eq!(distribution.quantile(99, 100), 20);
        assert_eq!(distribution.quantile(999, 1000), 30);
    }

    #[test]
    fn a_quantile_of_nothing_is_zero() {
        assert_eq!(Distribution::default().quantile(1, 2), 0);
    }

    #[test]
    fn merging_counts_equal_edges_once() {
        let merged = of(&[(1, 2), (5, 1)]).merged(&of(&[(1, 3), (9, 1)]));
        assert_eq!(merged, of(&[(1, 5), (5, 1), (9, 1)]));
    }

    #[test]
    fn points_of_a_cdf_are_as_far_apart_as_the_error_allows() {
        let bins: Vec<_> = (1..=10).map(|edge| (edge, 1)).collect();
        let points = of(&bins).cdf(3, u64::MAX);
        assert_eq!(points, [CdfPoint(5, 0.5), CdfPoint(10, 1.0)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_cdf_rises_to_one_within_its_points_and_its_error(
            counts in prop::collection::vec(0u64..1000, 1..2000),
            max_points in 2usize..300,
        ) {
            let bins: Vec<_> = counts.iter().enumerate().map(|(i, &c)| (i as u64 * 3, c)).collect();
            let distribution = of(&bins);
            let cdf = distribution.cdf(max_points, u64::MAX);
            prop_assert!(cdf.len() <= max_points);
            prop_assert!(cdf.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1));
            if distribution.total() > 0 {
                prop_assert_eq!(cdf.last().map(|p| p.1), Some(1.0));
            }
            let (mut seen, mut next, mut written) = (0, 0, 0.0);
            for &(edge, count) in distribution.bins() {
                seen += count;
                if cdf.get(next).is_some_and(|p| p.0 == edge) {
                    written = cdf[next].1;
                    next += 1;
                }
                let exact = seen as f64 / distribution.total() as f64;
                prop_assert!(exact - written <= 1.0 / (max_points - 1) as f64 + 1e-12);
                prop_assert!(written <= exact + 1e-12);
            }
        }
    }
}
