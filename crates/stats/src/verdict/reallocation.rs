//! Resource reallocation: how much of the capacity that guaranteed slices leave does best effort get?

use super::repetitions::{Contrast, Rules};
use super::{DecidedBy, Outcome, Scale, TestName};
use crate::description::{Margins, StudyDescription};
use crate::estimate::{Interval, Sample, valid_confidence};
use crate::observations::Observations;
use crate::opportunity::Opportunity;
use crate::power;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The verdict on resource reallocation, over all scenarios in which there was something to
/// reallocate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReallocationVerdict {
    /// `Holds`, `Broken`, `Partial`, `Inconclusive` (too few repetitions) or `NotTested`.
    pub outcome: Outcome,
    /// The numbers: `statistic` is the reallocated fraction, `margin` the threshold it was held
    /// against (for a partial one, that of "holds").
    pub decided_by: Option<DecidedBy>,
    /// Repetitions that would show the mean to be on the side of the thresholds where it lies; `None` where it is decided or no
    /// number within reason would.
    pub repetitions_needed: Option<u32>,
    /// Scenarios in which there was something to reallocate, in the order of the study.
    pub scenarios: Vec<ScenarioReallocation>,
}

/// The reallocated fraction in one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioReallocation {
    /// Scenario.
    pub scenario: String,
    /// Mean reallocated fraction over repetitions.
    pub fraction: f64,
    /// One-sided bounds of it, each at the confidence of the table.
    pub interval: Interval,
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
    let confidence = valid_confidence(study.margins.confidence);
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
                interval: sample.one_sided_bounds(confidence),
                repetitions: sample.count,
                windows: here.iter().map(|o| o.windows).fold(0, u32::saturating_add),
            });
        }
    }
    let fractions: Vec<f64> = pooled.values().filter_map(Opportunity::fraction).collect();
    let Some(sample) = Sample::of(&fractions) else {
        return ReallocationVerdict {
            outcome: Outcome::NotTested,
            decided_by: None,
            repetitions_needed: None,
            scenarios,
        };
    };
    let total = pooled
        .values()
        .fold(Opportunity::default(), |sum, run| sum.plus(*run));
    let rate = |bytes: f64| (total.seconds > 0.0).then(|| bytes * 8.0 / total.seconds);
    let mut verdict = conclude(study, &fractions, &sample, scenarios);
    if let Some(numbers) = &mut verdict.decided_by {
        numbers.reference = rate(total.available_bytes);
        numbers.treatment = rate(total.taken_bytes);
    }
    verdict
}

fn conclude(
    study: &StudyDescription,
    fractions: &[f64],
    sample: &Sample,
    scenarios: Vec<ScenarioReallocation>,
) -> ReallocationVerdict {
    let margins = &study.margins;
    let rules = Rules::of(margins);
    let interval = sample.one_sided_bounds(rules.confidence);
    let (holds, broken) = (margins.reallocation_holds, margins.reallocation_broken);
    // What the means show; the margin and the repetitions beyond it.
    let (of_means, margin, beyond) = match (interval.low, interval.high) {
        (Some(low), _) if low >= holds => (Outcome::Holds, holds, count(fractions, |f| f < holds)),
        (_, Some(high)) if high <= broken => {
            (Outcome::Broken, broken, count(fractions, |f| f > broken))
        }
        (low, high) => {
            let is_between =
                low.is_some_and(|low| low > broken) && high.is_some_and(|high| high < holds);
            let outcome = if is_between {
                Outcome::Partial
            } else {
                Outcome::Inconclusive
            };
            (outcome, holds, count(fractions, |f| f < holds))
        }
    };
    let excludes_rare = rules.p_rare(sample.count, beyond) <= rules.alpha();
    let outcome = match of_means {
        Outcome::Holds | Outcome::Broken if !excludes_rare => Outcome::Inconclusive,
        outcome => outcome,
    };
    let best_effort = study
        .slices
        .iter()
        .filter(|s| !s.guaranteed)
        .map(|s| s.name.as_str());
    ReallocationVerdict {
        outcome,
        decided_by: Some(DecidedBy {
            test: TestName::StudentMean,
            scenario: match &*scenarios {
                [only] => Some(only.scenario.clone()),
                _ => None,
            },
            slice: best_effort.collect::<Vec<_>>().join(", "),
            indicator: None,
            reference: None,
            treatment: None,
            statistic: sample.mean,
            scale: Scale::Fraction,
            interval,
            margin,
            repetitions: sample.count,
            repetitions_beyond: beyond,
            varies: sample.variance != Some(0.0),
            p_value: None,
        }),
        repetitions_needed: match outcome {
            Outcome::Inconclusive => repetitions_needed(margins, fractions, sample),
            _ => None,
        },
        scenarios,
    }
}

/// Repetitions after which the mean would be shown to be beyond a threshold, or between both.
fn repetitions_needed(margins: &Margins, fractions: &[f64], sample: &Sample) -> Option<u32> {
    let rules = Rules::of(margins);
    let Some(variance) = sample.variance else {
        return rules.runs_to_decide((1, 0), 1, None);
    };
    let (distance, beyond) = if sample.mean >= margins.reallocation_holds {
        let beyond = count(fractions, |f| f < margins.reallocation_holds);
        (margins.reallocation_holds - sample.mean, beyond)
    } else if sample.mean <= margins.reallocation_broken {
        let beyond = count(fractions, |f| f > margins.reallocation_broken);
        (sample.mean - margins.reallocation_broken, beyond)
    } else {
        let distance = (sample.mean - margins.reallocation_broken)
            .min(margins.reallocation_holds - sample.mean);
        return power::fewest(|runs| power::suffices(runs, distance, variance, rules.confidence));
    };
    rules.runs_to_show_within((sample.count, beyond), Contrast { distance, variance })
}

fn count(fractions: &[f64], beyond: impl Fn(f64) -> bool) -> u32 {
    let beyond = fractions.iter().filter(|&&fraction| beyond(fraction));
    u32::try_from(beyond.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_beyond_the_threshold_ask_for_more_and_those_at_it_do_not() {
        let margins = Margins {
            rare_runs: 0.1,
            reallocation_holds: 0.95,
            reallocation_broken: 0.05,
            ..Margins::default()
        };
        let rules = Rules::of(&margins);
        let needed = rules.runs_to_exclude_rare(40, 1);
        assert!(needed > rules.runs_to_exclude_rare(40, 0));
        for (usual, at, beyond) in [(1.0, 0.95, 0.94), (0.0, 0.05, 0.06)] {
            let mut fractions = [usual; 40];
            (fractions[3], fractions[5], fractions[7]) = (at, at, beyond);
            let sample = Sample::of(&fractions).unwrap();
            assert_eq!(repetitions_needed(&margins, &fractions, &sample), needed);
        }
    }
}
