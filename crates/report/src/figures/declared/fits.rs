//! Curves fitted to the signs of declared figures.

use super::{Declared, Line, capitalised};
use crate::figures::axis::Axis;
use crate::figures::canvas::THIN;
use crate::figures::count;
use crate::figures::figure::{Point, Series, Shape};
use crate::signs::{self, Sign};
use slicewise_stats::fit::{Fit, FitKind, NoFit, Parameter};
use slicewise_stats::words::{digits, percent};

impl<'a> Declared<'a> {
    /// Curves fitted to each line, in the units of the axes; what they are goes into `how`.
    pub(super) fn fits(
        &self,
        drawn: &[Series],
        (x, y): (&Axis, &Axis),
        lines: &[Line<'a>],
        how: &mut Vec<String>,
    ) -> Vec<Series> {
        let confidence = self.confidence();
        let mut curves = Vec::new();
        for (series, line) in drawn.iter().zip(lines) {
            let points = series.points.iter();
            let points = points.filter_map(|point| Some((x.in_unit(point.x), y.in_unit(point.y?))));
            let points: Vec<(f64, f64)> = points.collect();
            for &kind in &self.plot.fits {
                let word = match kind {
                    FitKind::Linear => "linear",
                    FitKind::Exponential => "exponential",
                };
                let subject = format!("{word} fit of {}", line.name);
                match Fit::of(kind, &points, confidence) {
                    Ok(fit) => {
                        how.push(fit_text(&fit, &subject, confidence));
                        let (first, last) = ends_of(&points);
                        let curve = (0..=CURVE_STEPS).map(|step| {
                            let at = first + (last - first) * count(step) / count(CURVE_STEPS);
                            Point::of(x.in_data(at), Some(y.in_data(fit.at(at))))
                        });
                        let dash = match kind {
                            FitKind::Linear => None,
                            FitKind::Exponential => signs::DASHES[2],
                        };
                        curves.push(Series {
                            name: subject,
                            sign: Sign { dash, ..line.sign },
                            shape: Shape::Line,
                            width: THIN,
                            points: curve.collect(),
                        });
                    }
                    Err(why) => how.push(no_fit(why, &subject, points.len())),
                }
            }
        }
        curves
    }
}

pub(super) fn curve_values(curves: &[Series]) -> Vec<f64> {
    let points = curves.iter().flat_map(|curve| &curve.points);
    points.filter_map(|point| point.y).collect()
}

fn ends_of(points: &[(f64, f64)]) -> (f64, f64) {
    let xs = points.iter().map(|(x, _)| *x);
    let first = xs.clone().fold(f64::INFINITY, f64::min);
    (first, xs.fold(f64::NEG_INFINITY, f64::max))
}

/// Parameters of a fit, in the units of the axes.
fn fit_text(fit: &Fit, subject: &str, confidence: f64) -> String {
    let parameter = |parameter: Parameter| {
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| digits(value, 3));
        let interval = parameter.interval;
        let (low, high) = (number(interval.low), number(interval.high));
        format!("{} ({low} to {high})", digits(parameter.value, 3))
    };
    let (formula, of) = match fit.kind {
        FitKind::Linear => ("y = a + b x", ""),
        FitKind::Exponential => ("y = a exp(b x)", " of ln y"),
    };
    format!(
        "{} to {} signs by least squares: {formula}, a = {}, b = {} ({} confidence), residual standard error{of} {}.",
        capitalised(subject),
        fit.points,
        parameter(fit.intercept),
        parameter(fit.slope),
        percent(confidence),
        digits(fit.residual_standard_error, 3)
    )
}

fn no_fit(why: NoFit, subject: &str, points: usize) -> String {
    let why = match why {
        NoFit::TooFewPoints => format!("it has {points} signs, and a fit needs three"),
        NoFit::SameX => "all its signs are at one place".to_owned(),
        NoFit::NotPositive => "a value that is not above zero has no logarithm".to_owned(),
    };
    format!("No {subject}: {why}.")
}

/// Parts of a fitted curve.
const CURVE_STEPS: usize = 40;
