//! Comparing the means of two independent samples: their difference and their ratio (Fieller).
//!
//! Degrees of freedom are Welch's and Satterthwaite's, so that the two variances
//! need not be equal; for a ratio they are those of `treatment − θ × reference` at the estimated ratio
//! θ, and the same for every θ. Where nothing varies, the comparison is exact.

use crate::estimate::{Interval, Sample, t_quantile, valid_confidence};

/// An estimated contrast of two means: a difference or a ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    kind: Kind,
    treatment: f64,
    reference: f64,
    /// Variances of the two means.
    treatment_variance: f64,
    reference_variance: f64,
    freedom: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Difference,
    Ratio,
}

/// `treatment − reference` (B. L. Welch, Biometrika 34, 1947). `None` where a sample is a single
/// value, whose variance is unknown.
#[must_use]
pub fn difference(treatment: &Sample, reference: &Sample) -> Option<Comparison> {
    Comparison::new(Kind::Difference, treatment, reference, 1.0)
}

/// `treatment / reference` of two means that are not negative (E. C. Fieller, J. R. Stat. Soc. B
/// 16, 1954; with unequal variances: A. C. Tamhane and B. R. Logan, J. Biopharm. Stat. 14, 2004).
/// `None` where a sample is a single value, or where the reference is not above 0.
#[must_use]
pub fn ratio(treatment: &Sample, reference: &Sample) -> Option<Comparison> {
    if reference.mean <= 0.0 || treatment.mean < 0.0 {
        return None;
    }
    Comparison::new(
        Kind::Ratio,
        treatment,
        reference,
        treatment.mean / reference.mean,
    )
}

impl Comparison {
    /// The contrast is that of `treatment − slope × reference`.
    fn new(kind: Kind, treatment: &Sample, reference: &Sample, slope: f64) -> Option<Self> {
        let (treatment_variance, treatment_freedom) = treatment.variance_of_mean()?;
        let (reference_variance, reference_freedom) = reference.variance_of_mean()?;
        let scaled = slope * slope * reference_variance;
        let sum = treatment_variance + scaled;
        // Relative weights: their squares cannot underflow to 0 / 0.
        let freedom = if sum > 0.0 {
            let (weight, other) = (treatment_variance / sum, scaled / sum);
            1.0 / (weight * weight / treatment_freedom + other * other / reference_freedom)
        } else {
            treatment_freedom + reference_freedom
        };
        Some(Self {
            kind,
            treatment: treatment.mean,
            reference: reference.mean,
            treatment_variance,
            reference_variance,
            freedom,
        })
    }

    /// The difference, or the ratio.
    #[must_use]
    pub fn estimate(&self) -> f64 {
        match self.kind {
            Kind::Difference => self.treatment - self.reference,
            Kind::Ratio => self.treatment / self.reference,
        }
    }

    /// True if neither sample varies: the estimate is exact, as far as these samples show.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.treatment_variance + self.reference_variance == 0.0
    }

    /// Degrees of freedom of Student's t.
    #[must_use]
    pub fn freedom(&self) -> f64 {
        self.freedom
    }

    /// Two-sided interval.
    #[must_use]
    pub fn interval(&self, confidence: f64) -> Interval {
        self.interval_at(0.5 + valid_confidence(confidence) / 2.0)
    }

    /// Both one-sided bounds, each at `confidence`.
    #[must_use]
    pub fn one_sided_bounds(&self, confidence: f64) -> Interval {
        self.interval_at(valid_confidence(confidence))
    }

    fn interval_at(&self, probability: f64) -> Interval {
        let estimate = self.estimate();
        if self.is_exact() {
            return Interval {
                low: Some(estimate),
                high: Some(estimate),
            };
        }
        let quantile = t_quantile(probability, self.freedom);
        match self.kind {
            Kind::Difference => {
                let error = (self.treatment_variance + self.reference_variance).sqrt();
                let half_width = quantile * error;
                Interval {
                    low: Some(estimate - half_width),
                    high: Some(estimate + half_width),
                }
            }
            Kind::Ratio => self.fieller(quantile),
        }
    }

    /// The ratios θ for which `treatment − θ × reference` is within `quantile` standard errors of
    /// 0: between the roots of aθ² − 2bθ + c. There is no upper one where the reference itself is
    /// not clearly above 0.
    fn fieller(&self, quantile: f64) -> Interval {
        let squared = quantile * quantile;
        let a = self.reference * self.reference - squared * self.reference_variance;
        let b = self.treatment * self.reference;
        let c = self.treatment * self.treatment - squared * self.treatment_variance;
        // b² − ac without cancellation of its large terms.
        let discriminant = squared
            * (self.reference * self.reference * self.treatment_variance
                + self.treatment * self.treatment * self.reference_variance
                - squared * self.treatment_variance * self.reference_variance);
        // Where the reference is clearly above 0 there are two roots, but for rounding.
        let discriminant = if a > 0.0 {
            discriminant.max(0.0)
        } else {
            discriminant
        };
        if discriminant < 0.0 {
            return Interval::UNBOUNDED;
        }
        let larger = b + discriminant.sqrt();
        // c / larger is the lower root (Viète), where that is on the branch that counts.
        let low = (larger > 0.0 && (a > 0.0 || c > 0.0)).then(|| c / larger);
        let high = (a > 0.0).then(|| larger / a);
        Interval { low, high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn sample(values: &[f64]) -> Sample {
        Sample::of(values).unwrap()
    }

    #[test]
    fn welch_equals_a_worked_example() {
        // Variances 2.5 and 10 of 5 values each: s.e. √2.5, ν = 6.25 / (0.25/4 + 4/4) = 5.88235.
        let a = sample(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        let b = sample(&[2.0, 4.0, 6.0, 8.0, 10.0]);
        let difference = difference(&a, &b).unwrap();
        assert_eq!(difference.estimate(), -3.0);
        assert!((difference.freedom() - 5.882_352_941).abs() < 1e-9);
        let half = difference.interval(0.95).high.unwrap() + 3.0;
        assert!((half / 2.5f64.sqrt() - 2.458_9).abs() < 1e-3, "{half}");
    }

    #[test]
    fn the_freedom_of_a_ratio_is_that_of_the_contrast_at_the_estimate() {
        // Variances of the means 0.5 and 2, ratio 1/2: 0.5 and 0.5 of 4 degrees each.
        let a = sample(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        let b = sample(&[2.0, 4.0, 6.0, 8.0, 10.0]);
        let compared = ratio(&a, &b).unwrap();
        assert_eq!(compared.estimate(), 0.5);
        assert!((compared.freedom() - 8.0).abs() < 1e-9);
    }

    #[test]
    fn fieller_bounds_are_where_the_test_of_the_ratio_turns() {
        let treatment = sample(&[10.2, 11.0, 9.7, 10.5]);
        let reference = sample(&[4.9, 5.3, 5.0, 5.6, 4.7]);
        let ratio = ratio(&treatment, &reference).unwrap();
        let bounds = ratio.one_sided_bounds(0.95);
        // The contrast is as many of its standard errors away from 0 as the quantile says.
        let quantile = t_quantile(0.95, ratio.freedom);
        for (bound, sign) in [(bounds.low, 1.0), (bounds.high, -1.0)] {
            let bound = bound.unwrap();
            let error = ratio.treatment_variance + bound * bound * ratio.reference_variance;
            let distance = ratio.treatment - bound * ratio.reference;
            assert!((sign * distance / error.sqrt() - quantile).abs() < 1e-9);
        }
        assert!(bounds.low.unwrap() < ratio.estimate() && ratio.estimate() < bounds.high.unwrap());
    }

    #[test]
    fn a_ratio_to_a_reference_that_may_be_zero_has_no_upper_bound() {
        let ratio = ratio(&sample(&[10.0, 10.1, 9.9]), &sample(&[0.1, 2.0, 0.3])).unwrap();
        let interval = ratio.interval(0.95);
        assert_eq!(interval.high, None);
        assert!(interval.low.unwrap() > 0.0);
    }

    #[test]
    fn a_ratio_of_two_means_that_may_both_be_zero_has_no_bounds() {
        // Means 1 with standard error 1: t(0.82, 2) = 1.18 of them reach below 0.
        let wide = sample(&[0.0, 2.0]);
        let compared = ratio(&wide, &wide).unwrap();
        assert_eq!(compared.one_sided_bounds(0.82), Interval::UNBOUNDED);
        // 1.06 do too, and 0.82 do not.
        assert_eq!(compared.one_sided_bounds(0.80), Interval::UNBOUNDED);
        let bounds = compared.one_sided_bounds(0.75);
        assert!(bounds.low.unwrap() > 0.0 && bounds.high.unwrap() > 1.0);
    }

    #[test]
    fn without_variance_the_comparison_is_exact() {
        let five = sample(&[5.0, 5.0]);
        for compared in [
            difference(&five, &five).unwrap(),
            ratio(&five, &five).unwrap(),
        ] {
            let value = compared.estimate();
            assert_eq!(
                compared.interval(0.95),
                Interval {
                    low: Some(value),
                    high: Some(value)
                }
            );
        }
    }

    #[test]
    fn a_single_value_or_a_reference_of_zero_cannot_be_compared() {
        let (one, two) = (sample(&[5.0]), sample(&[5.0, 6.0]));
        assert_eq!(difference(&one, &two), None);
        assert_eq!(ratio(&two, &one), None);
        assert_eq!(ratio(&two, &sample(&[0.0, 0.0])), None);
    }

    /// Standard normal deviates (Box and Muller 1958).
    struct Normals(Xoshiro256PlusPlus);

    impl Normals {
        fn next(&mut self) -> f64 {
            let mut unit = || ((self.0.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
            let (a, b) = (unit(), unit());
            (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
        }

        fn sample(&mut self, count: usize, mean: f64, deviation: f64) -> Sample {
            let values: Vec<_> = (0..count).map(|_| mean + deviation * self.next()).collect();
            sample(&values)
        }
    }

    /// Share of 4,000 simulated studies whose two-sided and lower and upper intervals cover.
    fn coverage(count: usize, deviations: (f64, f64)) -> [f64; 3] {
        let mut normals = Normals(Xoshiro256PlusPlus::seed_from_u64(7));
        let truth = 0.3 / 0.2;
        let mut covered = [0u32; 3];
        for _ in 0..4000 {
            let treatment = normals.sample(count, 0.3, deviations.0);
            let reference = normals.sample(count, 0.2, deviations.1);
            let compared = ratio(&treatment, &reference).unwrap();
            let two_sided = compared.interval(0.95);
            let one_sided = compared.one_sided_bounds(0.95);
            let above = |bound: Option<f64>| bound.is_none_or(|low| low <= truth);
            let below = |bound: Option<f64>| bound.is_none_or(|high| truth <= high);
            covered[0] += u32::from(above(two_sided.low) && below(two_sided.high));
            covered[1] += u32::from(above(one_sided.low));
            covered[2] += u32::from(below(one_sided.high));
        }
        covered.map(|count| f64::from(count) / 4000.0)
    }

    #[test]
    fn fieller_covers_the_true_ratio_as_often_as_it_claims() {
        for (count, deviations) in [(10, (0.02, 0.02)), (10, (0.1, 0.01)), (5, (0.02, 0.03))] {
            for share in coverage(count, deviations) {
                assert!(
                    (0.938..0.972).contains(&share),
                    "{count} {deviations:?}: {share}"
                );
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn no_comparison_is_nan_and_every_interval_holds_its_estimate(
            a_values in prop::collection::vec(0.0f64..1e12, 2..8),
            b_values in prop::collection::vec(0.0f64..1e12, 2..8),
        ) {
            let (a, b) = (sample(&a_values), sample(&b_values));
            for compared in difference(&a, &b).into_iter().chain(ratio(&a, &b)) {
                let interval = compared.interval(0.95);
                let estimate = compared.estimate();
                let slack = estimate.abs() * 1e-9;
                prop_assert!(interval.low.is_none_or(|low| low <= estimate + slack));
                prop_assert!(interval.high.is_none_or(|high| high >= estimate - slack));
            }
        }
    }
}
