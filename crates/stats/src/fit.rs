//! Least-squares fits of a straight line and of an exponential curve, with intervals of their parameters (Student).

use crate::estimate::{Interval, t_quantile, valid_confidence};
use serde::{Deserialize, Serialize};

/// Form of the curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FitKind {
    /// y = a + b x.
    Linear,
    /// y = a exp(b x), fitted as ln y = ln a + b x.
    Exponential,
}

/// A parameter and its two-sided interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// Estimate.
    pub value: f64,
    /// Interval.
    pub interval: Interval,
}

/// A fitted curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// Form of the curve.
    pub kind: FitKind,
    /// a: the value at x = 0.
    pub intercept: Parameter,
    /// b: of a line in units of y per unit of x; of an exponential curve in 1 per unit of x.
    pub slope: Parameter,
    /// Square root of the sum of squared residuals over n − 2; of ln y for an exponential curve.
    pub residual_standard_error: f64,
    /// Number of points.
    pub points: usize,
}

/// Reason why points have no fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoFit {
    /// Fewer than three points: nothing is left to estimate an error from.
    TooFewPoints,
    /// All points have the same x.
    SameX,
    /// A value that has no logarithm.
    NotPositive,
}

impl Fit {
    /// Fits points (x, y); intervals have this confidence.
    ///
    /// # Errors
    /// See [`NoFit`].
    pub fn of(kind: FitKind, points: &[(f64, f64)], confidence: f64) -> Result<Self, NoFit> {
        if points.len() < 3 {
            return Err(NoFit::TooFewPoints);
        }
        if kind == FitKind::Exponential && points.iter().any(|(_, y)| *y <= 0.0) {
            return Err(NoFit::NotPositive);
        }
        let transformed = |y: f64| match kind {
            FitKind::Linear => y,
            FitKind::Exponential => y.ln(),
        };
        let count = points.len() as f64;
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (mean_x, mean_y) = (mean(&|(x, _)| *x), mean(&|(_, y)| transformed(*y)));
        let deviations = || {
            let of = |(x, y): &(f64, f64)| (x - mean_x, transformed(*y) - mean_y);
            points.iter().map(of)
        };
        let squares: f64 = deviations().map(|(x, _)| x * x).sum();
        if squares <= 0.0 {
            return Err(NoFit::SameX);
        }
        let slope = deviations().map(|(x, y)| x * y).sum::<f64>() / squares;
        let intercept = mean_y - slope * mean_x;
        let residuals: f64 = deviations().map(|(x, y)| (y - slope * x).powi(2)).sum();
        let freedom = count - 2.0;
        let error = (residuals / freedom).sqrt();
        let quantile = t_quantile(0.5 + valid_confidence(confidence) / 2.0, freedom);
        let parameter = |value: f64, standard_error: f64, of: fn(f64) -> f64| {
            let half_width = quantile * standard_error;
            Parameter {
                value: of(value),
                interval: Interval {
                    low: Some(of(value - half_width)),
                    high: Some(of(value + half_width)),
                },
            }
        };
        let of_intercept = error * (1.0 / count + mean_x * mean_x / squares).sqrt();
        let back: fn(f64) -> f64 = match kind {
            FitKind::Linear => |a| a,
            FitKind::Exponential => f64::exp,
        };
        Ok(Self {
            kind,
            intercept: parameter(intercept, of_intercept, back),
            slope: parameter(slope, error / squares.sqrt(), |b| b),
            residual_standard_error: error,
            points: points.len(),
        })
    }

    /// Value of the curve.
    #[must_use]
    pub fn at(&self, x: f64) -> f64 {
        let (a, b) = (self.intercept.value, self.slope.value);
        match self.kind {
            FitKind::Linear => a + b * x,
            FitKind::Exponential => a * (b * x).exp(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// First data set of F. J. Anscombe, *The American Statistician* 27, 1973.
    const ANSCOMBE: [(f64, f64); 11] = [
        (10.0, 8.04),
        (8.0, 6.95),
        (13.0, 7.58),
        (9.0, 8.81),
        (11.0, 8.33),
        (14.0, 9.96),
        (6.0, 7.24),
        (4.0, 4.26),
        (12.0, 10.84),
        (7.0, 4.82),
        (5.0, 5.68),
    ];

    fn is_near(parameter: Parameter, expected: [f64; 3], tolerance: f64) {
        let Interval { low, high } = parameter.interval;
        let found = [parameter.value, low.unwrap(), high.unwrap()];
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() < tolerance, "{found} {expected}");
        }
    }

    #[test]
    fn a_line_has_the_published_parameters() {
        let fit = Fit::of(FitKind::Linear, &ANSCOMBE, 0.95).unwrap();
        // Standard errors 1.1247 and 0.1179 with 9 degrees of freedom, times 2.262157.
        is_near(fit.intercept, [3.000_09, 0.455_8, 5.544_4], 1e-3);
        is_near(fit.slope, [0.500_09, 0.233_4, 0.766_8], 1e-3);
        assert!((fit.residual_standard_error - 1.236_6).abs() < 1e-4);
        assert_eq!(fit.points, 11);
    }

    #[test]
    fn an_exponential_curve_is_a_line_of_logarithms() {
        let exponentials = ANSCOMBE.map(|(x, y)| (x, y.exp()));
        let fit = Fit::of(FitKind::Exponential, &exponentials, 0.95).unwrap();
        is_near(fit.slope, [0.500_09, 0.233_4, 0.766_8], 1e-3);
        let of_line = [3.000_09_f64, 0.455_8, 5.544_4];
        is_near(fit.intercept, of_line.map(f64::exp), 0.3);
        assert!((fit.residual_standard_error - 1.236_6).abs() < 1e-4);
        assert!((fit.at(2.0) - (3.000_09 + 2.0 * 0.500_09_f64).exp()).abs() < 0.01);
    }

    #[test]
    fn points_without_a_fit_say_why() {
        let of = |kind, points: &[(f64, f64)]| Fit::of(kind, points, 0.95).unwrap_err();
        let two = [(0.0, 1.0), (1.0, 2.0)];
        assert_eq!(of(FitKind::Linear, &two), NoFit::TooFewPoints);
        assert_eq!(of(FitKind::Linear, &[(1.0, 1.0); 3]), NoFit::SameX);
        let with_zero = [(0.0, 1.0), (1.0, 0.0), (2.0, 3.0)];
        assert_eq!(of(FitKind::Exponential, &with_zero), NoFit::NotPositive);
        assert!(Fit::of(FitKind::Linear, &with_zero, 0.95).is_ok());
    }

    proptest! {
        #[test]
        fn a_curve_through_all_points_is_found(a in 0.1f64..9.0, b in -0.9f64..0.9, step in 0.1f64..2.0, n in 3u32..12) {
            for kind in [FitKind::Linear, FitKind::Exponential] {
                let y = |x: f64| match kind {
                    FitKind::Linear => a + b * x,
                    FitKind::Exponential => a * (b * x).exp(),
                };
                let xs = (0..n).map(|i| 1.0 + f64::from(i) * step);
                let points: Vec<_> = xs.map(|x| (x, y(x))).collect();
                let fit = Fit::of(kind, &points, 0.95).unwrap();
                prop_assert!((fit.intercept.value - a).abs() < 1e-6 * a.max(1.0));
                prop_assert!((fit.slope.value - b).abs() < 1e-6);
                prop_assert!(fit.residual_standard_error < 1e-6);
            }
        }

        #[test]
        fn residuals_of_a_line_have_no_mean_and_no_slope(points in prop::collection::vec((-9.0f64..9.0, -9.0f64..9.0), 3..20)) {
            if let Ok(fit) = Fit::of(FitKind::Linear, &points, 0.95) {
                // A nearly vertical line has no numbers to compare.
                prop_assume!(fit.slope.value.abs() < 1e3);
                let residuals = || points.iter().map(|(x, y)| (x, y - fit.at(*x)));
                prop_assert!(residuals().map(|(_, r)| r).sum::<f64>().abs() < 1e-6);
                prop_assert!(residuals().map(|(x, r)| x * r).sum::<f64>().abs() < 1e-5);
            }
        }
    }
}
