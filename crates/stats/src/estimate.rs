//! Means over repetitions and their confidence intervals.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Size, mean and variance of independent values, one per repetition.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Number of values, at least 1.
    pub count: u32,
    /// Mean.
    pub mean: f64,
    /// Sample variance (divisor n − 1); `None` for a single value, whose variance is unknown.
    pub variance: Option<f64>,
}

impl Sample {
    /// The sample of `values`; `None` where there are none.
    ///
    /// Equal values have exactly that mean and variance 0, regardless of rounding.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let &first = values.first()?;
        let count = u32::try_from(values.len()).unwrap_or(u32::MAX);
        if values.iter().all(|&value| value == first) {
            return Some(Self {
                count,
                mean: first,
                variance: (count > 1).then_some(0.0),
            });
        }
        let mean = values.iter().sum::<f64>() / f64::from(count);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self {
            count,
            mean,
            variance: Some(squares / f64::from(count - 1)),
        })
    }

    /// Variance of the mean, and its degrees of freedom; `None` for a single value.
    pub(crate) fn variance_of_mean(&self) -> Option<(f64, f64)> {
        self.variance.map(|variance| {
            (
                variance / f64::from(self.count),
                f64::from(self.count) - 1.0,
            )
        })
    }

    /// Two-sided interval of the mean (Student's t).
    #[must_use]
    pub fn interval(&self, confidence: f64) -> Interval {
        let confidence = valid_confidence(confidence);
        self.interval_at(0.5 + confidence / 2.0)
    }

    /// Both one-sided bounds of the mean, each at `confidence`.
    #[must_use]
    pub fn one_sided_bounds(&self, confidence: f64) -> Interval {
        self.interval_at(valid_confidence(confidence))
    }

    fn interval_at(&self, probability: f64) -> Interval {
        let Some((variance, freedom)) = self.variance_of_mean() else {
            return Interval::UNBOUNDED;
        };
        let half_width = if variance == 0.0 {
            0.0
        } else {
            t_quantile(probability, freedom) * variance.sqrt()
        };
        Interval {
            low: Some(self.mean - half_width),
            high: Some(self.mean + half_width),
        }
    }
}

/// A range of values; `None` where it has no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Lower bound.
    pub low: Option<f64>,
    /// Upper bound.
    pub high: Option<f64>,
}

impl Interval {
    /// Everything: nothing is known.
    pub const UNBOUNDED: Self = Self {
        low: None,
        high: None,
    };

    /// Returns true if every value of `self` is in `range`.
    #[must_use]
    pub fn is_inside(self, range: Self) -> bool {
        let above = |low| self.low.is_some_and(|own| own >= low);
        let below = |high| self.high.is_some_and(|own| own <= high);
        range.low.is_none_or(above) && range.high.is_none_or(below)
    }

    /// Returns true if no value of `self` is in `range`.
    #[must_use]
    pub fn is_outside(self, range: Self) -> bool {
        let ends_below = |(high, low)| high < low;
        self.high.zip(range.low).is_some_and(ends_below)
            || range.high.zip(self.low).is_some_and(ends_below)
    }

    /// The interval of `1 − x` where `self` is the interval of `x`.
    #[must_use]
    pub fn one_minus(self) -> Self {
        Self {
            low: self.high.map(|high| 1.0 - high),
            high: self.low.map(|low| 1.0 - low),
        }
    }

    /// The interval of `x − 1` where `self` is the interval of `x`.
    #[must_use]
    pub fn minus_one(self) -> Self {
        Self {
            low: self.low.map(|low| low - 1.0),
            high: self.high.map(|high| high - 1.0),
        }
    }
}

/// A mean over repetitions, with its two-sided confidence interval.
///
/// The interval is Student's, symmetrical about the mean: that of a quantity which cannot be
/// negative may still begin below 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// Repetitions.
    pub samples: u32,
    /// Mean.
    pub mean: f64,
    /// Standard deviation between repetitions; `None` for a single one.
    pub standard_deviation: Option<f64>,
    /// Interval of the mean; unbounded for a single repetition.
    pub interval: Interval,
}

impl Estimate {
    /// The mean of `values` with its interval; `None` where there are none.
    #[must_use]
    pub fn of(values: &[f64], confidence: f64) -> Option<Self> {
        let sample = Sample::of(values)?;
        Some(Self {
            samples: sample.count,
            mean: sample.mean,
            standard_deviation: sample.variance.map(f64::sqrt),
            interval: sample.interval(confidence),
        })
    }

    /// Half the width of the interval: what is written after ±. `None` for a single repetition.
    #[must_use]
    pub fn half_width(&self) -> Option<f64> {
        self.interval.high.map(|high| high - self.mean)
    }
}

/// The value that Student's t with `freedom` degrees of freedom stays below with `probability`.
pub(crate) fn t_quantile(probability: f64, freedom: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, freedom) {
        Ok(student) if freedom < MANY_FREEDOM => student.inverse_cdf(probability),
        _ => {
            // Abramowitz and Stegun 26.7.5; the inverse beta function loses digits here.
            let z = normal_quantile(probability);
            let first = (z.powi(3) + z) / 4.0;
            let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
            z + first / freedom + second / (freedom * freedom)
        }
    }
}

/// The value that a standard normal variable stays below with `probability`.
pub(crate) fn normal_quantile(probability: f64) -> f64 {
    Normal::standard().inverse_cdf(probability)
}

/// A confidence valid for tests: a study file is checked before, but no value may turn a
/// verdict into NaN.
pub(crate) fn valid_confidence(confidence: f64) -> f64 {
    if confidence.is_finite() {
        confidence.clamp(0.5, 0.999_999)
    } else {
        0.95
    }
}

/// From here on two terms of the expansion about the normal distribution give nine digits; from
/// its cube on none is needed.
const MANY_FREEDOM: f64 = 1e3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_quantiles_equal_the_tables() {
        for (probability, freedom, expected) in [
            (0.975, 1.0, 12.706_204_736),
            (0.95, 1.0, 6.313_751_515),
            (0.975, 9.0, 2.262_157_163),
            (0.95, 9.0, 1.833_112_933),
            (0.95, 18.0, 1.734_063_607),
            (0.999, 9.0, 4.296_805_663),
            (0.975, 30.0, 2.042_272_456),
            (0.975, 999.0, 1.962_341_461),
            (0.975, 1e3, 1.962_339_081),
            (0.975, 1e6, 1.959_966_357),
            (0.975, 1e12, 1.959_963_985),
        ] {
            let quantile = t_quantile(probability, freedom);
            assert!(
                (quantile - expected).abs() < 1e-6,
                "{probability} {freedom}: {quantile}"
            );
        }
    }

    #[test]
    fn the_interval_is_students() {
        // 1..5: mean 3, variance 2.5, t(0.975, 4) = 2.776445: half width 1.963243.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).unwrap();
        assert_eq!((estimate.samples, estimate.mean), (5, 3.0));
        assert!((estimate.half_width().unwrap() - 1.963_243_16).abs() < 1e-6);
    }

    #[test]
    fn equal_values_have_exactly_no_variance() {
        // The sum of ten times 0.1 is not 1.
        let sample = Sample::of(&[0.1; 10]).unwrap();
        assert_eq!((sample.mean, sample.variance), (0.1, Some(0.0)));
        assert_eq!(
            sample.interval(0.95),
            Interval {
                low: Some(0.1),
                high: Some(0.1)
            }
        );
    }

    #[test]
    fn a_single_value_bounds_nothing() {
        let estimate = Estimate::of(&[4.0], 0.95).unwrap();
        assert_eq!(estimate.interval, Interval::UNBOUNDED);
        assert_eq!(estimate.half_width(), None);
        assert_eq!(Estimate::of(&[], 0.95), None);
    }
}
