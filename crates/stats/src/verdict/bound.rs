//! A proved bound of delay against what was measured: one packet above it is a counterexample.

use super::{IsolationVerdict, NotJudged, Outcome};
use crate::description::{DelayBound, StudyDescription};
use crate::observations::{Observations, RunObservation};
use serde::{Deserialize, Serialize};

/// The largest delay of a slice, in all runs in which it kept to its promise, against the bound
/// that its policy proves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundCheck {
    /// Slice.
    pub slice: String,
    /// The bound.
    pub bound: DelayBound,
    /// The largest one-way delay of any packet, the transient included, ns.
    pub largest_ns: u64,
    /// The scenario it was measured in.
    pub scenario: String,
    /// The repetition it was measured in, from 0.
    pub repetition: u32,
    /// Runs that were looked at.
    pub runs: u32,
    /// `Broken` where the largest delay is above the bound, else `Holds`. No statistics: a bound is
    /// of every packet.
    pub outcome: Outcome,
}

impl IsolationVerdict {
    /// The bound that is exceeded by the most; `None` where none is.
    #[must_use]
    pub fn broken_bound(&self) -> Option<&BoundCheck> {
        self.bounds
            .iter()
            .filter(|check| check.outcome == Outcome::Broken)
            .max_by_key(|check| check.largest_ns - check.bound.end_to_end_ns())
    }
}

/// Check every bound that a policy, told by its place in the study, proves.
pub(super) fn check(
    study: &StudyDescription,
    observations: &Observations,
    policy: usize,
) -> Vec<BoundCheck> {
    let bounds = &study.policies[policy].delay_bounds;
    let slices = study.slices.iter().enumerate();
    slices
        .filter_map(|(index, slice)| {
            let bound = *bounds.get(&slice.name)?;
            let most =
                slice.share_bits_per_second as f64 * (1.0 + study.margins.throughput_relative);
            check_slice(study, observations, (policy, index), bound, most)
        })
        .collect()
}

/// Where a policy promises a delay that has no bound.
pub(super) fn not_judged(study: &StudyDescription, policy: usize) -> Vec<NotJudged> {
    let unbounded = study.policies[policy].unbounded.iter();
    unbounded
        .map(|unbounded| NotJudged {
            scenario: unbounded.scenario.clone(),
            slice: unbounded.slice.clone(),
            why: unbounded.why.clone(),
            missing: false,
            only_bound: true,
        })
        .collect()
}

fn check_slice(
    study: &StudyDescription,
    observations: &Observations,
    (policy, slice): (usize, usize),
    bound: DelayBound,
    most_bits_per_second: f64,
) -> Option<BoundCheck> {
    let mut found: Option<BoundCheck> = None;
    let mut runs = 0u32;
    let name = &study.slices[slice].name;
    let unbounded = &study.policies[policy].unbounded;
    let is_bounded = |scenario: &str| {
        !unbounded
            .iter()
            .any(|u| u.slice == *name && u.scenario == scenario)
    };
    for (scenario, description) in study.scenarios.iter().enumerate() {
        if !is_bounded(&description.name) {
            continue;
        }
        for run in observations.cell(policy, scenario) {
            let Some(largest_ns) = largest(run, slice, most_bits_per_second) else {
                continue;
            };
            runs = runs.saturating_add(1);
            if found.as_ref().is_none_or(|f| largest_ns > f.largest_ns) {
                found = Some(BoundCheck {
                    slice: name.clone(),
                    bound,
                    largest_ns,
                    scenario: description.name.clone(),
                    repetition: run.repetition,
                    runs: 0,
                    outcome: if largest_ns > bound.end_to_end_ns() {
                        Outcome::Broken
                    } else {
                        Outcome::Holds
                    },
                });
            }
        }
    }
    found.map(|check| BoundCheck { runs, ..check })
}

/// `None` where the slice received nothing, or sent more than it was promised: the bound is not of
/// such packets.
fn largest(run: &RunObservation, slice: usize, most_bits_per_second: f64) -> Option<u64> {
    let figures = &run.slices.get(slice)?.whole;
    let keeps_to_it = figures.offered_bits_per_second <= most_bits_per_second;
    (keeps_to_it && figures.delay.samples > 0).then_some(figures.delay.max_ns)
}
