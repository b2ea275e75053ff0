//! A proved delay bound compared with measurements: one packet above it is a counterexample.

use super::{IsolationVerdict, NotJudged, Outcome};
use crate::description::{DelayBound, StudyDescription};
use crate::observations::{Observations, RunObservation};
use serde::{Deserialize, Serialize};

/// The largest delay of a slice, over all runs in which it conformed, compared with the bound its policy
/// proves: end to end, or for the scheduler alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundCheck {
    /// Slice.
    pub slice: String,
    /// The bound; with nothing outside where `way_unbounded` is there.
    pub bound: DelayBound,
    /// The largest one-way delay of any packet, the transient included, ns. Where `way_unbounded` is
    /// there, the largest time from a packet's eligible time to its last bit on the port.
    pub largest_ns: u64,
    /// The scenario it was measured in.
    pub scenario: String,
    /// The repetition it was measured in, from 0.
    pub repetition: u32,
    /// Runs checked.
    pub runs: u32,
    /// `Broken` where the largest delay is above the bound, else `Holds`. No statistics: a bound is
    /// of every packet.
    pub outcome: Outcome,
    /// If only the scheduler's part is judged: why the path to the device has no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way_unbounded: Option<String>,
}

impl BoundCheck {
    /// The largest delay as a part of the bound: above 1 where it is broken.
    #[must_use]
    pub fn part(&self) -> f64 {
        self.largest_ns as f64 / self.bound.end_to_end_ns().max(1) as f64
    }

    /// How far the largest delay is above the bound, ns; negative where it is within.
    fn excess_ns(&self) -> i128 {
        i128::from(self.largest_ns) - i128::from(self.bound.end_to_end_ns())
    }
}

impl IsolationVerdict {
    /// The bound that is exceeded by the most; `None` where none is.
    #[must_use]
    pub fn broken_bound(&self) -> Option<&BoundCheck> {
        self.bounds
            .iter()
            .filter(|check| check.outcome == Outcome::Broken)
            .max_by_key(|check| check.excess_ns())
    }

    /// The bound that is exceeded by the most or, where none is, of which the largest delay takes the largest part; `None` without
    /// bounds.
    #[must_use]
    pub fn worst_bound(&self) -> Option<&BoundCheck> {
        let all = self.bounds.iter();
        (self.broken_bound()).or_else(|| all.max_by(|a, b| a.part().total_cmp(&b.part())))
    }
}

/// Check every bound that a policy, given by its place in the study, proves.
pub(super) fn check(
    study: &StudyDescription,
    observations: &Observations,
    policy: usize,
) -> Vec<BoundCheck> {
    (0..study.slices.len())
        .flat_map(|slice| check_slice(study, observations, (policy, slice)))
        .collect()
}

/// Guaranteed delays without a bound.
pub(super) fn not_judged(study: &StudyDescription, policy: usize) -> Vec<NotJudged> {
    let unbounded = study.policies[policy].unbounded.iter();
    unbounded
        .map(|unbounded| NotJudged {
            scenario: unbounded.scenario.clone(),
            slice: unbounded.slice.clone(),
            why: match unbounded.scheduler_ns {
                None => unbounded.why.clone(),
                Some(_) => format!(
                    "the path to the device has no bound, because {}",
                    unbounded.why
                ),
            },
            missing: false,
            only_bound: true,
            no_runs: false,
        })
        .collect()
}

/// End to end in the scenarios that have such a bound, and at the scheduler in those where only the
/// way to it has none: of each the packet nearest to its bound, or farthest above it.
fn check_slice(
    study: &StudyDescription,
    observations: &Observations,
    (policy, slice): (usize, usize),
) -> impl Iterator<Item = BoundCheck> + use<> {
    let description = &study.slices[slice];
    let name = &description.name;
    let most = description.share_bits_per_second as f64 * (1.0 + study.margins.throughput_relative);
    let policy_description = &study.policies[policy];
    let (mut end_to_end, mut at_scheduler) = (None, None);
    for (index, scenario) in study.scenarios.iter().enumerate() {
        let mut unbounded = policy_description.unbounded.iter();
        let unbounded = unbounded.find(|u| u.slice == *name && u.scenario == scenario.name);
        let (bound, found, way_unbounded) = match unbounded {
            None => match policy_description.delay_bounds.get(name) {
                Some(bound) => (*bound, &mut end_to_end, None),
                None => continue,
            },
            Some(unbounded) => match unbounded.scheduler_ns {
                Some(scheduler_ns) => {
                    let bound = DelayBound {
                        scheduler_ns,
                        outside_ns: 0,
                    };
                    (bound, &mut at_scheduler, Some(unbounded.why.clone()))
                }
                None => continue,
            },
        };
        for run in observations.cell(policy, index) {
            let Some(largest_ns) = largest(run, slice, most, way_unbounded.is_some()) else {
                continue;
            };
            let check = BoundCheck {
                slice: name.clone(),
                bound,
                largest_ns,
                scenario: scenario.name.clone(),
                repetition: run.repetition,
                runs: 1,
                outcome: if largest_ns > bound.end_to_end_ns() {
                    Outcome::Broken
                } else {
                    Outcome::Holds
                },
                way_unbounded: way_unbounded.clone(),
            };
            add(found, check);
        }
    }
    end_to_end.into_iter().chain(at_scheduler)
}

/// Keep the check closest to or farthest above its bound, and count the runs.
fn add(found: &mut Option<BoundCheck>, check: BoundCheck) {
    let runs = found.as_ref().map_or(0, |found| found.runs);
    if found
        .as_ref()
        .is_none_or(|found| check.excess_ns() > found.excess_ns())
    {
        *found = Some(check);
    }
    if let Some(found) = found {
        found.runs = runs.saturating_add(1);
    }
}

/// The largest delay of a slice in a run, end to end or at the scheduler. `None` where the slice
/// received nothing, or sent more than it was promised (the bound is not of such packets), or where
/// the time in the scheduler was not measured.
fn largest(
    run: &RunObservation,
    slice: usize,
    most_bits_per_second: f64,
    at_scheduler: bool,
) -> Option<u64> {
    let observation = run.slices.get(slice)?;
    let figures = &observation.whole;
    if figures.offered_bits_per_second > most_bits_per_second {
        return None;
    }
    if at_scheduler {
        return observation.scheduler?.after_eligible_max_ns;
    }
    (figures.delay.samples > 0).then_some(figures.delay.max_ns)
}
