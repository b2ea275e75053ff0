//! What a simulation predicted beside what was measured on real packets, cell by cell.
//!
//! Throughput and loss are predicted where the repetitions show no difference, or one that the
//! study's own margins call irrelevant; the median delay where it is close enough to tell whether
//! frames waited ([`DELAY_WITHIN_NS`]).

use crate::compare;
use crate::description::StudyDescription;
use crate::estimate::{Estimate, Interval, Sample, valid_confidence};
use crate::observations::{Observations, RunObservation};
use crate::record::Figures;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How far a predicted median delay may be off, ns.
///
/// A frame of 1500 bytes occupies a link of 35 Mbit/s for 343 µs: a prediction that is closer than a
/// third of that tells whether the middle frame waited for another one. Less cannot be asked of a
/// measurement in software, whose own noise is tens of microseconds.
pub const DELAY_WITHIN_NS: u64 = 100_000;

/// A quantity that is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Received rate, bit/s.
    Throughput,
    /// Lost frames / sent frames.
    LossRatio,
    /// Median one-way delay, ns.
    DelayP50,
}

impl Quantity {
    /// All of them, in the order in which they are told.
    pub const ALL: [Self; 3] = [Self::Throughput, Self::LossRatio, Self::DelayP50];

    /// Its value after the transient; `None` where no frame was sent, or none received.
    fn of(self, figures: &Figures) -> Option<f64> {
        match self {
            Self::Throughput => Some(figures.throughput_bits_per_second),
            Self::LossRatio => (figures.sent_frames > 0).then_some(figures.loss_ratio),
            Self::DelayP50 => (figures.delay.samples > 0).then_some(figures.delay.p50_ns as f64),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Throughput => "throughput",
            Self::LossRatio => "loss ratio",
            Self::DelayP50 => "median delay",
        })
    }
}

/// How good a prediction was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PredictionOutcome {
    /// The interval of the difference contains 0.
    WithinInterval,
    /// The difference is no more than the tolerance.
    WithinTolerance,
    /// Neither.
    Missed,
    /// One side has no value; or the difference is more than the tolerance, and repetitions are too few
    /// for an interval.
    NotDecided,
}

impl PredictionOutcome {
    /// The target is met.
    #[must_use]
    pub const fn is_met(self) -> bool {
        matches!(self, Self::WithinInterval | Self::WithinTolerance)
    }
}

impl fmt::Display for PredictionOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::WithinInterval => "within the interval",
            Self::WithinTolerance => "within the tolerance",
            Self::Missed => "missed",
            Self::NotDecided => "not decided",
        })
    }
}

/// One quantity of one slice in one cell: measured, and predicted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredictedFigure {
    /// Policy.
    pub policy: String,
    /// Scenario.
    pub scenario: String,
    /// Slice.
    pub slice: String,
    /// What is compared; its unit is that of every number here.
    pub quantity: Quantity,
    /// Measured, with its two-sided interval.
    pub measured: Option<Estimate>,
    /// Predicted, with its two-sided interval.
    pub predicted: Option<Estimate>,
    /// Measured − predicted.
    pub difference: Option<f64>,
    /// Two-sided interval of the difference (Welch); unbounded where a side has one repetition only.
    pub interval: Interval,
    /// A difference that counts as none.
    pub tolerance: f64,
    /// Whether it was predicted.
    pub outcome: PredictionOutcome,
}

/// Compare all that was measured with what was predicted of it: cells, slices and quantities of which
/// either side has a value.
///
/// Both are of one study, whose description may differ in what does not name policies, scenarios and
/// slices.
#[must_use]
pub fn compare_with_prediction(
    (measured, measurements): (&StudyDescription, &Observations),
    (predicted, predictions): (&StudyDescription, &Observations),
) -> Vec<PredictedFigure> {
    let mut figures = Vec::new();
    for (policy, policy_description) in measured.policies.iter().enumerate() {
        for (scenario, scenario_description) in measured.scenarios.iter().enumerate() {
            let runs: Vec<_> = measurements.cell(policy, scenario).collect();
            if runs.is_empty() {
                continue;
            }
            let names = (&policy_description.name, &scenario_description.name);
            let predicted_runs = runs_named(predicted, predictions, names);
            for (slice, slice_description) in measured.slices.iter().enumerate() {
                let name = &slice_description.name;
                let predicted_slice = predicted.slices.iter().position(|s| s.name == *name);
                for quantity in Quantity::ALL {
                    let sides = (
                        values(&runs, Some(slice), quantity),
                        values(&predicted_runs, predicted_slice, quantity),
                    );
                    let place = (names.0.as_str(), names.1.as_str(), name.as_str());
                    figures.extend(figure(measured, place, quantity, &sides));
                }
            }
        }
    }
    figures
}

fn runs_named<'a>(
    study: &StudyDescription,
    observations: &'a Observations,
    (policy, scenario): (&String, &String),
) -> Vec<&'a RunObservation> {
    let policy = study.policies.iter().position(|p| p.name == *policy);
    let scenario = study.scenarios.iter().position(|s| s.name == *scenario);
    match policy.zip(scenario) {
        Some((policy, scenario)) => observations.cell(policy, scenario).collect(),
        None => Vec::new(),
    }
}

fn values(runs: &[&RunObservation], slice: Option<usize>, quantity: Quantity) -> Vec<f64> {
    let Some(slice) = slice else {
        return Vec::new();
    };
    let figures = runs.iter().filter_map(|run| run.slices.get(slice));
    figures.filter_map(|s| quantity.of(&s.steady)).collect()
}

/// `None` where neither side has a value.
fn figure(
    study: &StudyDescription,
    (policy, scenario, slice): (&str, &str, &str),
    quantity: Quantity,
    (measured, predicted): &(Vec<f64>, Vec<f64>),
) -> Option<PredictedFigure> {
    if measured.is_empty() && predicted.is_empty() {
        return None;
    }
    let confidence = valid_confidence(study.margins.confidence);
    let sides = Sample::of(measured).zip(Sample::of(predicted));
    let difference = sides.map(|(measured, predicted)| measured.mean - predicted.mean);
    let interval = sides
        .and_then(|(measured, predicted)| compare::difference(&measured, &predicted))
        .map_or(Interval::UNBOUNDED, |c| c.interval(confidence));
    let tolerance = tolerance(study, quantity, sides.map_or(0.0, |(_, p)| p.mean));
    Some(PredictedFigure {
        policy: policy.to_owned(),
        scenario: scenario.to_owned(),
        slice: slice.to_owned(),
        quantity,
        measured: Estimate::of(measured, confidence),
        predicted: Estimate::of(predicted, confidence),
        difference,
        interval,
        tolerance,
        outcome: difference.map_or(PredictionOutcome::NotDecided, |difference| {
            outcome(quantity, difference, interval, tolerance)
        }),
    })
}

/// What the study itself calls no difference; of a delay, what [`DELAY_WITHIN_NS`] says.
fn tolerance(study: &StudyDescription, quantity: Quantity, predicted: f64) -> f64 {
    match quantity {
        Quantity::Throughput => study.margins.throughput_relative * predicted.abs(),
        Quantity::LossRatio => study.margins.loss_absolute,
        Quantity::DelayP50 => DELAY_WITHIN_NS as f64,
    }
}

fn outcome(
    quantity: Quantity,
    difference: f64,
    interval: Interval,
    tolerance: f64,
) -> PredictionOutcome {
    if difference.abs() <= tolerance {
        return PredictionOutcome::WithinTolerance;
    }
    match (interval.low, interval.high) {
        // A wide interval does not bring a delay closer.
        _ if quantity == Quantity::DelayP50 => PredictionOutcome::Missed,
        (Some(low), Some(high)) if low <= 0.0 && 0.0 <= high => PredictionOutcome::WithinInterval,
        (Some(_), Some(_)) => PredictionOutcome::Missed,
        _ => PredictionOutcome::NotDecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::{Capacity, Margins};
    use proptest::prelude::*;

    fn study() -> StudyDescription {
        StudyDescription {
            name: String::new(),
            title: String::new(),
            description: String::new(),
            source: String::new(),
            digest: String::new(),
            file_name: String::new(),
            seed: 1,
            program_version: String::new(),
            backend: "gateway".to_owned(),
            text_digest: String::new(),
            is_quick: false,
            dut: String::new(),
            assumptions: Vec::new(),
            repetitions: 3,
            duration_ns: 1,
            capacity: Capacity {
                bits_per_second: 1,
                frame_overhead_bytes: 0,
            },
            slices: Vec::new(),
            policies: Vec::new(),
            scenarios: Vec::new(),
            margins: Margins::default(),
            published: Vec::new(),
        }
    }

    fn judged(quantity: Quantity, measured: &[f64], predicted: &[f64]) -> PredictedFigure {
        let sides = (measured.to_vec(), predicted.to_vec());
        figure(&study(), ("p", "s", "slice"), quantity, &sides).unwrap()
    }

    #[test]
    fn a_rate_is_predicted_within_the_margin_or_where_repetitions_show_no_difference() {
        use PredictionOutcome::{Missed, NotDecided, WithinInterval, WithinTolerance};
        for (measured, predicted, outcome) in [
            (&[99.5, 99.5][..], &[100.0, 100.0][..], WithinTolerance),
            (
                &[80.0, 100.0, 110.0],
                &[100.0, 100.0, 100.0],
                WithinInterval,
            ),
            (&[95.0, 95.1, 94.9], &[100.0, 100.0, 100.0], Missed),
            // One repetition has no interval, but it can lie within a margin.
            (&[99.5], &[100.0], WithinTolerance),
            (&[90.0], &[100.0], NotDecided),
            (&[90.0, 91.0], &[], NotDecided),
        ] {
            let figure = judged(Quantity::Throughput, measured, predicted);
            assert_eq!(figure.outcome, outcome, "{measured:?} {predicted:?}");
        }
    }

    #[test]
    fn a_loss_ratio_is_held_against_the_absolute_margin() {
        let loss = |measured: &[f64]| judged(Quantity::LossRatio, measured, &[0.0, 0.0, 0.0]);
        let few = loss(&[0.000_5, 0.000_6, 0.000_4]);
        assert_eq!(few.outcome, PredictionOutcome::WithinTolerance);
        let many = loss(&[0.02, 0.021, 0.019]);
        assert_eq!(many.outcome, PredictionOutcome::Missed);
        assert!((many.difference.unwrap() - 0.02).abs() < 1e-12);
    }

    #[test]
    fn a_delay_is_predicted_within_100_us_however_wide_its_interval() {
        let delay =
            |measured: &[f64]| judged(Quantity::DelayP50, measured, &[500e3, 500e3, 500e3]).outcome;
        assert_eq!(
            delay(&[590e3, 600e3, 610e3]),
            PredictionOutcome::WithinTolerance
        );
        assert_eq!(delay(&[601e3, 601e3, 601e3]), PredictionOutcome::Missed);
        assert_eq!(delay(&[100e3, 800e3, 1e6]), PredictionOutcome::Missed);
        assert_eq!(delay(&[]), PredictionOutcome::NotDecided);
    }

    #[test]
    fn what_neither_side_has_is_not_compared() {
        let sides = (Vec::new(), Vec::new());
        assert_eq!(
            figure(&study(), ("p", "s", "slice"), Quantity::DelayP50, &sides),
            None
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn what_equals_the_prediction_is_predicted(
            values in prop::collection::vec(0.0f64..1e9, 1..6),
        ) {
            for quantity in Quantity::ALL {
                let figure = judged(quantity, &values, &values);
                prop_assert!(figure.outcome.is_met());
                prop_assert_eq!(figure.difference, Some(0.0));
            }
        }
    }
}
