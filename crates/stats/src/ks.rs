//! The two-sample Kolmogorov–Smirnov test.
//!
//! Implemented here because the statistics crate needs both complete samples in memory, and our
//! distributions are counts in bins or points of a distribution function.

use crate::record::CdfPoint;

/// Result of a two-sample Kolmogorov–Smirnov test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KolmogorovSmirnov {
    /// Largest distance between the two distribution functions.
    pub statistic: f64,
    /// Probability of a distance at least as large between samples of one distribution
    /// (asymptotic: N. Smirnov, Ann. Math. Stat. 19, 1948).
    pub p_value: f64,
}

/// Test two distribution functions, read as step functions, of `first_samples` and
/// `second_samples` samples; `None` where one is empty.
///
/// Of functions written down in `n` points the distance is known within 1 / (n − 1).
#[must_use]
pub fn of_cdfs(
    first: &[CdfPoint],
    first_samples: u64,
    second: &[CdfPoint],
    second_samples: u64,
) -> Option<KolmogorovSmirnov> {
    if first_samples == 0 || second_samples == 0 || first.is_empty() || second.is_empty() {
        return None;
    }
    let (mut left, mut right) = (first.iter().peekable(), second.iter().peekable());
    let (mut below_left, mut below_right, mut statistic) = (0.0, 0.0, 0.0f64);
    while let Some(value) = left
        .peek()
        .into_iter()
        .chain(right.peek())
        .map(|point| point.0)
        .min()
    {
        while let Some(point) = left.next_if(|point| point.0 <= value) {
            below_left = point.1;
        }
        while let Some(point) = right.next_if(|point| point.0 <= value) {
            below_right = point.1;
        }
        statistic = statistic.max((below_left - below_right).abs());
    }
    Some(judged(statistic, first_samples, second_samples))
}

fn judged(statistic: f64, first: u64, second: u64) -> KolmogorovSmirnov {
    let (first, second) = (first as f64, second as f64);
    let effective = first * second / (first + second);
    KolmogorovSmirnov {
        statistic,
        p_value: kolmogorov_tail(effective.sqrt() * statistic),
    }
}

/// Probability that a Kolmogorov variable exceeds `x`.
///
/// Two series of the same function: one converges fast for large `x`, the other (Jacobi's
/// transformation) for small `x`. Three terms of either give full precision.
fn kolmogorov_tail(x: f64) -> f64 {
    use std::f64::consts::PI;
    if x <= 0.0 {
        return 1.0;
    }
    if x < 1.18 {
        let term = |odd: f64| (-(odd * PI / x).powi(2) / 8.0).exp();
        let below = (2.0 * PI).sqrt() / x * (term(1.0) + term(3.0) + term(5.0));
        return (1.0 - below).clamp(0.0, 1.0);
    }
    let term = |k: f64| (-2.0 * (k * x).powi(2)).exp();
    (2.0 * (term(1.0) - term(2.0) + term(3.0))).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::Distribution;
    use proptest::prelude::*;

    #[test]
    fn kolmogorov_tail_equals_the_tables() {
        // Smirnov's function to 40 digits, and its usual critical values of 5, 1 and 0.1 %.
        for (x, tail) in [
            (0.30, 0.999_990_694),
            (0.50, 0.963_945_244),
            (0.83, 0.496_190_995),
            (1.00, 0.269_999_672),
            (1.17, 0.129_390_042),
            (1.19, 0.117_742_293),
            (1.358_1, 0.049_999_630),
            (1.627_6, 0.010_001_537),
            (1.949_5, 0.000_999_802),
        ] {
            assert!(
                (kolmogorov_tail(x) - tail).abs() < 1e-9,
                "{x}: {}",
                kolmogorov_tail(x)
            );
        }
        assert_eq!(kolmogorov_tail(0.0), 1.0);
    }

    #[test]
    fn the_two_series_meet() {
        let (low, high) = (kolmogorov_tail(1.18 - 1e-12), kolmogorov_tail(1.18));
        assert!((low - high).abs() < 5e-12);
    }

    #[test]
    fn published_p_values_follow_from_their_statistics() {
        // Grøsvik 2023: 54,384 inter-arrival times per run. Both statistics are rounded to four
        // places, which moves p by a few per cent and by a factor of two.
        let small = judged(0.0125, 54_384, 54_384);
        assert!(
            (small.p_value / 0.000_38 - 1.0).abs() < 0.15,
            "{}",
            small.p_value
        );
        let large = judged(0.0698, 54_384, 54_384);
        assert!(
            (large.p_value.log10() - 9.2e-116f64.log10()).abs() < 0.4,
            "{}",
            large.p_value
        );
    }

    #[test]
    fn a_distribution_function_without_samples_or_points_cannot_be_compared() {
        let points = [CdfPoint(1, 0.5), CdfPoint(2, 1.0)];
        assert!(of_cdfs(&points, 2, &points, 2).is_some());
        assert_eq!(of_cdfs(&points, 0, &points, 2), None);
        assert_eq!(of_cdfs(&points, 2, &points, 0), None);
        assert_eq!(of_cdfs(&[], 2, &points, 2), None);
        assert_eq!(of_cdfs(&points, 2, &[], 2), None);
    }

    fn counted(values: &[u64]) -> Distribution {
        let mut values = values.to_vec();
        values.sort_unstable();
        let mut distribution = Distribution::default();
        values.iter().for_each(|&value| distribution.push(value, 1));
        distribution
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn bins_and_points_agree_with_the_samples(
            a in prop::collection::vec(0u64..2000, 1..300),
            b in prop::collection::vec(0u64..2000, 1..300),
        ) {
            let below = |v: &[u64], x| v.iter().filter(|&&of| of <= x).count() as f64 / v.len() as f64;
            let distances = a.iter().chain(&b).map(|&x| (below(&a, x) - below(&b, x)).abs());
            let exact = distances.fold(0.0, f64::max);
            let (a, b) = (counted(&a), counted(&b));
            let all = |of: &Distribution| of.cdf(usize::MAX, u64::MAX);
            let binned = of_cdfs(&all(&a), a.total(), &all(&b), b.total()).unwrap();
            prop_assert!((binned.statistic - exact).abs() < 1e-9);
            let points = of_cdfs(
                &a.cdf(200, u64::MAX), a.total(), &b.cdf(200, u64::MAX), b.total(),
            ).unwrap();
            prop_assert!((points.statistic - exact).abs() <= 1.0 / 199.0 + 1e-9);
        }
    }
}
