//! Resource reallocation: how much of the capacity that guaranteed slices leave does best effort get?

use super::runs::{Run, RunCount, SampleKind};
use super::{DecidedBy, Outcome, Scale};
use crate::description::StudyDescription;
use crate::estimate::Sample;
use crate::observations::Observations;
use crate::opportunity::Opportunity;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The verdict on resource reallocation, over all scenarios in which there was something to
/// reallocate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReallocationVerdict {
    /// `Holds`, `Broken`, `Partial`, `Inconclusive` (too few repetitions) or `NotTested`.
    pub outcome: Outcome,
    /// Outcome of most runs, whether or not they show it of all: `Holds`, `Broken` or `Partial`.
    pub claimed: Outcome,
    /// The numbers: `statistic` is the mean reallocated fraction, `margin` the threshold of what is claimed (for a partial one, that of
    /// "holds"), and runs beyond are those in which it is not the case.
    pub decided_by: Option<DecidedBy>,
    /// Repetitions that would decide it; `None` where it is decided or no number within reason would.
    pub repetitions_needed: Option<u32>,
    /// Scenarios in which there was something to reallocate, in the order of the study.
    pub scenarios: Vec<ScenarioReallocation>,
    /// It is not tested because the rate that slices share changes during a run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rate_varies: bool,
}

/// The reallocated fraction in one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioReallocation {
    /// Scenario.
    pub scenario: String,
    /// Mean reallocated fraction over repetitions.
    pub fraction: f64,
    /// Fraction of the repetition with the smallest.
    pub least: f64,
    /// Repetitions with an opportunity.
    pub repetitions: u32,
    /// Windows with an opportunity, in all repetitions.
    pub windows: u32,
}

/// Judge one policy, given by its index in the study.
pub(super) fn judge(
    study: &StudyDescription,
    observations: &Observations,
    policy: usize,
) -> ReallocationVerdict {
    let mut pooled: BTreeMap<u32, Opportunity> = BTreeMap::new();
    let mut scenarios = Vec::new();
    for (index, scenario) in study.scenarios.iter().enumerate() {
        let mut here = Vec::new();
        for run in observations.cell(policy, index) {
            let repetition = pooled.entry(run.repetition).or_default();
            *repetition = repetition.plus(run.opportunity);
            here.push(run.opportunity);
        }
        let fractions: Vec<f64> = here.iter().filter_map(Opportunity::fraction).collect();
        if let Some(sample) = Sample::of(&fractions) {
            scenarios.push(ScenarioReallocation {
                scenario: scenario.name.clone(),
                fraction: sample.mean,
                least: fractions.iter().copied().fold(f64::INFINITY, f64::min),
                repetitions: sample.count,
                windows: here.iter().map(|o| o.windows).fold(0, u32::saturating_add),
            });
        }
    }
    let fractions: Vec<f64> = pooled.values().filter_map(Opportunity::fraction).collect();
    let Some(sample) = Sample::of(&fractions) else {
        return ReallocationVerdict {
            outcome: Outcome::NotTested,
            claimed: Outcome::NotTested,
            decided_by: None,
            repetitions_needed: None,
            scenarios,
            rate_varies: study.capacity.varies,
        };
    };
    let total = pooled
        .values()
        .fold(Opportunity::default(), |sum, run| sum.plus(*run));
    let rate = |bytes: f64| (total.seconds > 0.0).then(|| bytes * 8.0 / total.seconds);
    let kind = (0..study.scenarios.len())
        .filter(|&scenario| observations.cell(policy, scenario).next().is_some())
        .map(|scenario| observations.sample(study, policy, scenario))
        .reduce(|one, other| match one == other {
            true => one,
            false => SampleKind::Sample,
        })
        .unwrap_or(SampleKind::Sample);
    let mut verdict = conclude(study, &fractions, kind, &sample, scenarios);
    if let Some(numbers) = &mut verdict.decided_by {
        numbers.reference = rate(total.available_bytes);
        numbers.treatment = rate(total.taken_bytes);
    }
    verdict
}

fn conclude(
    study: &StudyDescription,
    fractions: &[f64],
    kind: SampleKind,
    sample: &Sample,
    scenarios: Vec<ScenarioReallocation>,
) -> ReallocationVerdict {
    let margins = &study.margins;
    let none = RunCount {
        sample: kind,
        ..RunCount::none(margins)
    };
    let (most, least) = (margins.reallocation_holds, margins.reallocation_broken);
    let fractions = &fractions[..kind.distinct().min(fractions.len())];
    let count = |is_within: &dyn Fn(f64) -> bool| {
        let runs = fractions.iter().map(|&fraction| match is_within(fraction) {
            true => Run::Within,
            false => Run::Beyond,
        });
        none.with(runs)
    };
    // Each claim is one of all runs, as that of an objective is.
    let mut claims = [
        (Outcome::Holds, most, count(&|fraction| fraction >= most)),
        (Outcome::Broken, least, count(&|fraction| fraction <= least)),
        (
            Outcome::Partial,
            most,
            count(&|fraction| fraction > least && fraction < most),
        ),
    ];
    claims.sort_by_key(|(_, _, runs)| runs.beyond);
    let [(claimed, margin, runs), ..] = claims;
    let outcome = match runs.outcome(1) {
        Outcome::Holds => claimed,
        _ => Outcome::Inconclusive,
    };
    let best_effort = study
        .slices
        .iter()
        .filter(|s| !s.guaranteed)
        .map(|s| s.name.as_str());
    let worst = match claimed {
        Outcome::Broken => f64::max,
        _ => f64::min,
    };
    ReallocationVerdict {
        outcome,
        claimed,
        decided_by: Some(DecidedBy {
            scenario: match &*scenarios {
                [only] => Some(only.scenario.clone()),
                _ => None,
            },
            slice: best_effort.collect::<Vec<_>>().join(", "),
            indicator: None,
            reference: None,
            treatment: None,
            statistic: sample.mean,
            worst: fractions.iter().copied().reduce(worst),
            scale: Scale::Fraction,
            margin,
            runs,
        }),
        repetitions_needed: match outcome {
            Outcome::Inconclusive => (runs.runs_needed(1))
                .filter(|&needed| runs.scaled_to(needed).outcome(1) == Outcome::Holds),
            _ => None,
        },
        scenarios,
        rate_varies: false,
    }
}
