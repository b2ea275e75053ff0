//! Limits that charts draw beside measurements: guarantees, objectives, proved bounds and margins.

use crate::findings::Findings;
use serde::Serialize;
use slicewise_stats::description::SliceDescription;
use slicewise_stats::quantity::Quantity;
use slicewise_stats::verdict::{
    DecidedBy, ObjectiveIndicator, PolicyVerdict, Scale, objective_value,
};
use slicewise_stats::words::{rate, time};

/// A limit of one quantity of a slice.
#[derive(Debug, Serialize)]
pub(crate) struct Limit {
    /// Name of the quantity; "delay" and "pdv" stand for all statistics of them.
    pub(crate) metric: &'static str,
    pub(crate) slice: usize,
    /// `None` where it is of all policies.
    pub(crate) policy: Option<usize>,
    pub(crate) phase: Option<usize>,
    pub(crate) scenario: Option<usize>,
    pub(crate) value: f64,
    /// Share of packets that may be beyond it, where it is of a percentile.
    pub(crate) beyond: Option<f64>,
    /// "guarantee", "objective", "bound", "margin".
    pub(crate) kind: &'static str,
    /// Empty for one that the section explains.
    pub(crate) label: String,
}

impl Limit {
    /// True for a limit of a quantity. The page's script repeats this.
    pub(crate) fn applies_to(&self, quantity: &str) -> bool {
        let of_all = ["delay", "pdv"].contains(&self.metric) && quantity.starts_with(self.metric);
        of_all || quantity == self.metric
    }
}

/// Limits of all slices, policies and phases.
pub(crate) fn all(findings: &Findings) -> Vec<Limit> {
    let study = findings.study();
    let mut limits = Vec::new();
    if study.phases.is_empty() {
        promises(&study.slices, None, &mut limits);
    }
    for (index, phase) in study.phases.iter().enumerate() {
        promises(&phase.slices, Some(index), &mut limits);
    }
    for (policy, verdict) in findings.main().verdicts.policies.iter().enumerate() {
        let phase = (!study.phases.is_empty()).then(|| policy % study.phases.len());
        bounds(findings, (policy, phase), verdict, &mut limits);
        margins(findings, (policy, phase), verdict, &mut limits);
    }
    limits
}

/// Shares and objectives of slices.
fn promises(slices: &[SliceDescription], phase: Option<usize>, limits: &mut Vec<Limit>) {
    for (slice, description) in slices.iter().enumerate() {
        let limit = |metric, kind, value, label| Limit {
            metric,
            slice,
            policy: None,
            phase,
            scenario: None,
            value,
            beyond: None,
            kind,
            label,
        };
        let share = description.share_bits_per_second as f64;
        if share > 0.0 {
            let word = if description.guaranteed {
                "guaranteed"
            } else {
                "share"
            };
            let label = format!("{word} {}", rate(share));
            limits.push(limit("throughput", "guarantee", share, label));
        }
        let objectives = description.objective.iter().flat_map(|o| o.indicators());
        for (indicator, value) in objectives {
            let (metric, at) = match indicator {
                ObjectiveIndicator::Throughput => ("throughput", None),
                ObjectiveIndicator::LossRatio => ("loss_ratio", None),
                ObjectiveIndicator::Delay(at) => ("delay", Some(at)),
                ObjectiveIndicator::DelayVariation(at) => ("pdv", Some(at)),
                _ => continue,
            };
            let relation = indicator.relation();
            let at_percentile = at.map_or_else(String::new, |at| format!(" for {at}"));
            let text = objective_value(indicator, value);
            limits.push(Limit {
                beyond: at.map(|at| at.share_beyond()),
                ..limit(
                    metric,
                    "objective",
                    value,
                    format!("objective {relation} {text}{at_percentile}"),
                )
            });
        }
    }
}

/// Proved bounds that were compared with measurements.
fn bounds(
    findings: &Findings,
    (policy, phase): (usize, Option<usize>),
    verdict: &PolicyVerdict,
    limits: &mut Vec<Limit>,
) {
    let study = findings.study();
    for check in &verdict.isolation.bounds {
        let Some(slice) = study.slice_place(&check.slice) else {
            continue;
        };
        let bound = check.bound.end_to_end_ns() as f64;
        let name = study.policy_of_runs(&verdict.policy);
        let at = match check.way_unbounded {
            Some(_) => " at the scheduler",
            None => "",
        };
        limits.push(Limit {
            metric: "delay",
            slice,
            policy: Some(policy),
            phase,
            scenario: None,
            value: bound,
            beyond: None,
            kind: "bound",
            label: format!("bound proved by {name}{at}: {}", time(bound)),
        });
    }
}

/// Margins of influence, of slices that it decides about: what the slice got in the reference scenario, and the
/// worsening that is tolerated.
fn margins(
    findings: &Findings,
    (policy, phase): (usize, Option<usize>),
    verdict: &PolicyVerdict,
    limits: &mut Vec<Limit>,
) {
    let study = findings.study();
    let reference = study.scenarios.iter().position(|s| s.reference);
    let reference = reference.and_then(|scenario| findings.cell(policy, scenario));
    let influence = verdict.isolation.deciding_influence.iter();
    for test in influence.flat_map(|i| &i.tests) {
        let numbers = &test.numbers;
        let scenario = numbers.scenario.as_ref();
        let scenario = scenario.and_then(|name| study.scenario_place(name));
        let slice = study.slice_place(&numbers.slice);
        let Some((scenario, slice)) = scenario.zip(slice) else {
            continue;
        };
        let quantity = match numbers.indicator {
            Some(Quantity::Throughput) => Quantity::Throughput,
            Some(Quantity::LossRatio) => Quantity::LossRatio,
            Some(Quantity::DelayMean | Quantity::QueueingDelayMean) => Quantity::DelayMean,
            Some(Quantity::DelayP99 | Quantity::QueueingDelayP99) => Quantity::DelayP99,
            _ => continue,
        };
        let slices = reference.iter().flat_map(|cell| &cell.slices);
        let mut own = slices.filter(|of| of.slice == numbers.slice);
        let Some(mean) = own.next().and_then(|of| Some(of.steady.of(quantity)?.mean)) else {
            continue;
        };
        limits.push(Limit {
            metric: quantity.name(),
            slice,
            policy: Some(policy),
            phase,
            scenario: Some(scenario),
            value: mean + tolerated(numbers, quantity, mean),
            beyond: None,
            kind: "margin",
            label: String::new(),
        });
    }
}

/// Change from the reference that is tolerated. Queueing delay and delay differ by the smallest delay, so that a change of one is
/// the same change of the other.
fn tolerated(numbers: &DecidedBy, quantity: Quantity, reference: f64) -> f64 {
    let worsening = match numbers.scale {
        Scale::Relative => numbers.margin * numbers.reference.unwrap_or(reference),
        _ => numbers.margin,
    };
    if quantity.is_better_if_more() {
        -worsening
    } else {
        worsening
    }
}
