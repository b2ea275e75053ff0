//! Predictions of a simulation compared with measurements on real packets, per cell.
//!
//! A quantity is predicted where it is shown to be equivalent (D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987): both one-sided
//! bounds of the difference lie within a tolerance. That is the study's own margin for throughput and loss, and for the median delay what
//! shows whether frames waited ([`DELAY_WITHIN_NS`]).

use crate::compare;
use crate::description::StudyDescription;
use crate::estimate::{Estimate, Interval, Sample, valid_confidence};
use crate::observations::{Observations, RunObservation, SliceObservation};
use crate::quantity::{Quantity, Unit};
use crate::tail::Tail;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// How far a predicted median delay may be off, ns.
///
/// A frame of 1500 bytes occupies a link of 35 Mbit/s for 343 µs: a prediction within a third of that
/// shows whether the median frame waited for another one. A tighter limit makes no sense for a
/// measurement in software, whose own noise is tens of microseconds.
pub const DELAY_WITHIN_NS: u64 = 100_000;

/// Quantities that are predicted, in output order.
pub const PREDICTED: [Quantity; 3] = [
    Quantity::Throughput,
    Quantity::LossRatio,
    Quantity::DelayP50,
];

/// Value from a moment on, or after the transient where it is not known from there; `None` without samples.
fn value(quantity: Quantity, slice: &SliceObservation, from_ns: Option<u64>) -> Option<f64> {
    let is_from = |tail: &&Tail| Some(tail.from_ns) == from_ns;
    match slice.tails.iter().find(is_from) {
        Some(tail) => quantity.over(&tail.figures),
        None => quantity.over(&slice.steady),
    }
}

/// Traffic offered to the simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OfferedTraffic {
    /// As in the study, drawn from its seeds: known before anything is measured.
    AsStudied,
    /// Exactly the packets sent, at the same times: remaining differences are due to the device.
    AsSent,
}

impl OfferedTraffic {
    /// Both, in output order.
    pub const ALL: [Self; 2] = [Self::AsStudied, Self::AsSent];
}

impl fmt::Display for OfferedTraffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::AsStudied => "as studied",
            Self::AsSent => "as sent",
        })
    }
}

/// Quality of a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PredictionOutcome {
    /// Both bounds of the difference are within the tolerance.
    Met,
    /// Both are beyond it, on the same side.
    Missed,
    /// Neither: one side has no value, or repetitions do not tell.
    NotDecided,
}

impl PredictionOutcome {
    /// The target is met.
    #[must_use]
    pub const fn is_met(self) -> bool {
        matches!(self, Self::Met)
    }
}

impl fmt::Display for PredictionOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Met => "met",
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
    /// Traffic offered to the simulator.
    pub traffic: OfferedTraffic,
    /// Quantity that is compared; its unit is that of every number here.
    pub quantity: Quantity,
    /// Begin of the span that both sides are compared over, ns: the later end of their transients; of packets as sent the latest of all
    /// pairs. `None` where each is compared after its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_ns: Option<u64>,
    /// Measured, with its two-sided interval.
    pub measured: Option<Estimate>,
    /// Predicted, with its two-sided interval.
    pub predicted: Option<Estimate>,
    /// Measured − predicted.
    pub difference: Option<f64>,
    /// One-sided bounds of the difference, each at the confidence of the study; unbounded where a side has one repetition only. Of traffic as
    /// studied by Welch's test; of traffic as sent by that of Student, on the differences of each run and its replay.
    pub interval: Interval,
    /// Tolerated difference.
    pub tolerance: f64,
    /// Quality of the prediction.
    pub outcome: PredictionOutcome,
}

/// Compare all that was measured with what was predicted of it: cells, slices and quantities of which
/// either side has a value; where traffic was as sent, of runs that were replayed.
///
/// Both are of one study, whose description may differ in what does not name policies, scenarios and
/// slices.
#[must_use]
pub fn compare_with_prediction(
    traffic: OfferedTraffic,
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
            let starts = common_starts(traffic, &runs, &predicted_runs);
            for (slice, slice_description) in measured.slices.iter().enumerate() {
                let name = &slice_description.name;
                let predicted_slice = predicted.slices.iter().position(|s| s.name == *name);
                for quantity in PREDICTED {
                    let mut sides = Sides {
                        measured: values(&runs, Some(slice), quantity, &starts),
                        predicted: values(&predicted_runs, predicted_slice, quantity, &starts),
                        from_ns: starts.values().copied().max(),
                    };
                    if traffic == OfferedTraffic::AsSent {
                        sides.keep_common();
                    }
                    let place = (names.0.as_str(), names.1.as_str(), name.as_str());
                    figures.extend(figure(measured, place, (traffic, quantity), &sides));
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

/// Where runs that are compared begin to be, by repetition, ns: none of them has a transient from there on. Packets as sent are compared
/// run by run, others all together. None where each run has figures of its own steady state alone.
fn common_starts(
    traffic: OfferedTraffic,
    measured: &[&RunObservation],
    predicted: &[&RunObservation],
) -> BTreeMap<u32, u64> {
    let all = || measured.iter().chain(predicted).copied();
    let repetitions: BTreeSet<u32> = all().map(|run| run.repetition).collect();
    let start = |repetition: &u32| {
        let are_compared = |run: &&RunObservation| {
            traffic == OfferedTraffic::AsStudied || run.repetition == *repetition
        };
        let runs: Vec<_> = all().filter(are_compared).collect();
        Some((*repetition, common_start(&runs)?))
    };
    repetitions.iter().filter_map(start).collect()
}

/// The first moment from which all these runs have figures and none of them has a transient.
fn common_start(runs: &[&RunObservation]) -> Option<u64> {
    let ends = || runs.iter().map(|run| run.transient.end_ns);
    let (first, last) = (ends().min()?, ends().max()?);
    let moments = |run: &RunObservation| -> Vec<u64> {
        let tails = run.slices.first().map(|slice| slice.tails.iter());
        tails
            .into_iter()
            .flatten()
            .map(|tail| tail.from_ns)
            .collect()
    };
    let from_ns = moments(runs.first()?).into_iter().find(|at| *at >= last)?;
    let all_have_it = runs.iter().all(|run| moments(run).contains(&from_ns));
    (first < last && all_have_it).then_some(from_ns)
}

/// The values of each side, by repetition.
struct Sides {
    measured: BTreeMap<u32, f64>,
    predicted: BTreeMap<u32, f64>,
    from_ns: Option<u64>,
}

impl Sides {
    /// Leave only repetitions that both have.
    fn keep_common(&mut self) {
        self.measured.retain(|r, _| self.predicted.contains_key(r));
        self.predicted.retain(|r, _| self.measured.contains_key(r));
    }

    /// Measured − predicted, of each repetition that both have.
    fn differences(&self) -> Vec<f64> {
        let measured = self.measured.iter();
        measured
            .filter_map(|(r, value)| Some(value - self.predicted.get(r)?))
            .collect()
    }
}

fn values(
    runs: &[&RunObservation],
    slice: Option<usize>,
    quantity: Quantity,
    starts: &BTreeMap<u32, u64>,
) -> BTreeMap<u32, f64> {
    let Some(slice) = slice else {
        return BTreeMap::new();
    };
    let figures = (runs.iter()).filter_map(|run| Some((run.repetition, run.slices.get(slice)?)));
    figures
        .filter_map(|(repetition, slice)| {
            let from_ns = starts.get(&repetition).copied();
            Some((repetition, value(quantity, slice, from_ns)?))
        })
        .collect()
}

/// `None` where neither side has a value.
fn figure(
    study: &StudyDescription,
    (policy, scenario, slice): (&str, &str, &str),
    (traffic, quantity): (OfferedTraffic, Quantity),
    sides: &Sides,
) -> Option<PredictedFigure> {
    let measured: Vec<f64> = sides.measured.values().copied().collect();
    let predicted: Vec<f64> = sides.predicted.values().copied().collect();
    if measured.is_empty() && predicted.is_empty() {
        return None;
    }
    let confidence = valid_confidence(study.margins.confidence);
    let samples = Sample::of(&measured).zip(Sample::of(&predicted));
    let difference = samples.map(|(measured, predicted)| measured.mean - predicted.mean);
    let interval = match traffic {
        OfferedTraffic::AsStudied => samples
            .and_then(|(measured, predicted)| compare::difference(&measured, &predicted))
            .map(|c| c.one_sided_bounds(confidence)),
        OfferedTraffic::AsSent => {
            Sample::of(&sides.differences()).map(|sample| sample.one_sided_bounds(confidence))
        }
    };
    let interval = interval.unwrap_or(Interval::UNBOUNDED);
    let tolerance = tolerance(study, quantity, samples.map_or(0.0, |(_, p)| p.mean));
    Some(PredictedFigure {
        policy: policy.to_owned(),
        scenario: scenario.to_owned(),
        slice: slice.to_owned(),
        traffic,
        quantity,
        from_ns: sides.from_ns,
        measured: Estimate::of(&measured, confidence),
        predicted: Estimate::of(&predicted, confidence),
        difference,
        interval,
        tolerance,
        outcome: outcome(interval, tolerance),
    })
}

/// The tolerance of the study; for delay, [`DELAY_WITHIN_NS`].
fn tolerance(study: &StudyDescription, quantity: Quantity, predicted: f64) -> f64 {
    match quantity.unit() {
        Unit::Ratio => study.margins.loss_absolute,
        Unit::Time => DELAY_WITHIN_NS as f64,
        _ => study.margins.throughput_relative * predicted.abs(),
    }
}

fn outcome(interval: Interval, tolerance: f64) -> PredictionOutcome {
    match (interval.low, interval.high) {
        (Some(low), Some(high)) if -tolerance <= low && high <= tolerance => PredictionOutcome::Met,
        (Some(low), _) if low > tolerance => PredictionOutcome::Missed,
        (_, Some(high)) if high < -tolerance => PredictionOutcome::Missed,
        _ => PredictionOutcome::NotDecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::Capacity;
    use proptest::prelude::*;

    fn study() -> StudyDescription {
        StudyDescription {
            seed: 1,
            backend: "gateway".to_owned(),
            repetitions: 3,
            duration_ns: 1,
            capacity: Capacity {
                varies: false,
                bits_per_second: 1,
                frame_overhead_bytes: 0,
                in_atm_cells: false,
            },
            ..StudyDescription::default()
        }
    }

    fn sides(measured: &[f64], predicted: &[f64]) -> Sides {
        let by_repetition = |values: &[f64]| (0u32..).zip(values.iter().copied()).collect();
        Sides {
            measured: by_repetition(measured),
            predicted: by_repetition(predicted),
            from_ns: None,
        }
    }

    fn judged(quantity: Quantity, measured: &[f64], predicted: &[f64]) -> PredictedFigure {
        let what = (OfferedTraffic::AsStudied, quantity);
        let sides = sides(measured, predicted);
        figure(&study(), ("p", "s", "slice"), what, &sides).unwrap()
    }

    #[test]
    fn each_run_is_compared_with_its_own_replay() {
        let what = (OfferedTraffic::AsSent, Quantity::LossRatio);
        let mut sides = sides(&[0.1, 0.2, 0.3], &[0.099, 0.198, 0.3, 0.9]);
        sides.keep_common();
        let found = figure(&study(), ("p", "s", "slice"), what, &sides).unwrap();
        // Between runs loss scatters by 0.1, between a run and its replay by 0.001.
        assert!((found.difference.unwrap() - 0.001).abs() < 1e-9);
        let Interval { low, high } = found.interval;
        assert!(
            low.unwrap() > -0.002 && high.unwrap() < 0.004,
            "{low:?} {high:?}"
        );
        assert_eq!(found.predicted.unwrap().samples, 3);
    }

    #[test]
    fn a_rate_is_predicted_where_it_is_shown_to_be_within_the_margin() {
        use PredictionOutcome::{Met, Missed, NotDecided};
        for (measured, predicted, outcome) in [
            (&[99.5, 99.5][..], &[100.0, 100.0][..], Met),
            (&[99.0, 99.0], &[100.0, 100.0], Met),
            // No difference is shown, and a small one is not.
            (&[80.0, 100.0, 110.0], &[100.0, 100.0, 100.0], NotDecided),
            (&[99.5, 98.5, 100.5], &[100.0, 100.0, 100.0], NotDecided),
            (&[95.0, 95.1, 94.9], &[100.0, 100.0, 100.0], Missed),
            (&[105.0, 105.1, 104.9], &[100.0, 100.0, 100.0], Missed),
            // One repetition shows nothing of the others.
            (&[99.5], &[100.0], NotDecided),
            (&[90.0], &[100.0], NotDecided),
            (&[90.0, 91.0], &[], NotDecided),
        ] {
            let figure = judged(Quantity::Throughput, measured, predicted);
            assert_eq!(figure.outcome, outcome, "{measured:?} {predicted:?}");
        }
    }

    #[test]
    fn a_loss_ratio_is_compared_with_the_absolute_margin() {
        let loss = |measured: &[f64]| judged(Quantity::LossRatio, measured, &[0.0, 0.0, 0.0]);
        let few = loss(&[0.000_5, 0.000_6, 0.000_4]);
        assert_eq!(few.outcome, PredictionOutcome::Met);
        let many = loss(&[0.02, 0.021, 0.019]);
        assert_eq!(many.outcome, PredictionOutcome::Missed);
        assert!((many.difference.unwrap() - 0.02).abs() < 1e-12);
    }

    #[test]
    fn a_delay_is_predicted_within_100_us() {
        let delay =
            |measured: &[f64]| judged(Quantity::DelayP50, measured, &[500e3, 500e3, 500e3]).outcome;
        assert_eq!(delay(&[570e3, 580e3, 590e3]), PredictionOutcome::Met);
        assert_eq!(delay(&[590e3, 600e3, 610e3]), PredictionOutcome::NotDecided);
        assert_eq!(delay(&[601e3, 601e3, 601e3]), PredictionOutcome::Missed);
        assert_eq!(delay(&[100e3, 800e3, 1e6]), PredictionOutcome::NotDecided);
        assert_eq!(delay(&[]), PredictionOutcome::NotDecided);
    }

    #[test]
    fn values_missing_on_both_sides_are_not_compared() {
        for traffic in OfferedTraffic::ALL {
            let what = (traffic, Quantity::DelayP50);
            assert_eq!(
                figure(&study(), ("p", "s", "slice"), what, &sides(&[], &[])),
                None
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn equal_values_count_as_predicted(
            value in 0.0f64..1e9,
        ) {
            for quantity in PREDICTED {
                let values = [value; 3];
                let figure = judged(quantity, &values, &values);
                prop_assert!(figure.outcome.is_met());
                prop_assert_eq!(figure.difference, Some(0.0));
            }
        }
    }

    #[test]
    fn outcomes_are_told_in_words() {
        let told = [
            PredictionOutcome::Met,
            PredictionOutcome::Missed,
            PredictionOutcome::NotDecided,
        ]
        .map(|outcome| outcome.to_string());
        assert_eq!(told, ["met", "missed", "not decided"]);
    }
}
