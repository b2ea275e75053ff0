//! Objectives: does a slice get the service it needs, in every scenario in which it stays within its own
//! share?

use super::influence::mean_offered;
use super::repetitions::Rules;
use super::{NotJudged, Outcome};
use crate::description::{SliceDescription, StudyDescription};
use crate::estimate::{Interval, Sample, t_tail};
use crate::holm;
use crate::objective::{Objective, Percentile};
use crate::observations::{Observations, RunObservation};
use crate::power;
use crate::words;
use serde::{Deserialize, Serialize};

/// Whether slices with objectives meet them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectivesVerdict {
    /// `Holds` (every objective is met), `Broken` (one is missed), `Inconclusive` or `NotTested`.
    pub outcome: Outcome,
    /// The missed objective that is farthest off; where all are met, the one with the least room; where
    /// it is inconclusive, the least decided one.
    pub decided_by: Option<ObjectiveTest>,
    /// The first scenario, in the order of the study, in which an objective is missed.
    pub first_missed: Option<String>,
    /// Repetitions that would decide it; `None` where it is decided or no number within reason would.
    pub repetitions_needed: Option<u32>,
    /// Every test: by slice, scenario, objective.
    pub tests: Vec<ObjectiveTest>,
}

/// Indicator of an objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectiveIndicator {
    /// Rate received, bit/s: at least.
    Throughput,
    /// Lost packets / sent packets: at most.
    LossRatio,
    /// A percentile of one-way delay, ns: at most.
    Delay(Percentile),
    /// A percentile of packet delay variation (RFC 5481), ns: at most.
    DelayVariation(Percentile),
    /// Share of intervals in which all other objectives are met: at least.
    Availability,
}

impl ObjectiveIndicator {
    /// Whether more of it is better.
    #[must_use]
    pub const fn is_at_least(self) -> bool {
        matches!(self, Self::Throughput | Self::Availability)
    }
}

/// One objective of one slice in one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectiveTest {
    /// Slice.
    pub slice: String,
    /// Scenario.
    pub scenario: String,
    /// The indicator.
    pub indicator: ObjectiveIndicator,
    /// The objective, in the unit of the indicator.
    pub limit: f64,
    /// Mean over repetitions.
    pub mean: f64,
    /// One-sided bounds of the mean, each at the confidence of the table.
    pub interval: Interval,
    /// Headroom from the worse bound to the limit, as a share of the limit (for availability: of the
    /// allowed unavailability): 1 if nothing of the limit is used, 0 at the limit, negative beyond.
    /// `None` for a single repetition.
    pub room: Option<f64>,
    /// Repetitions.
    pub repetitions: u32,
    /// Repetitions beyond the limit.
    pub repetitions_beyond: u32,
    /// `Holds` where it is met, `Broken` where it is missed, or `Inconclusive`.
    pub outcome: Outcome,
    /// Small where it is met.
    pub p_met: f64,
    /// Small where it is missed. Corrected for all objectives of the policy (Holm).
    pub p_missed: f64,
    /// Repetitions that would decide it; `None` where it is decided or no number within reason would.
    pub repetitions_needed: Option<u32>,
}

/// Judge the objectives of every slice that states some; `None` where none does.
pub(super) fn judge(
    study: &StudyDescription,
    observations: &Observations,
    policy: usize,
    not_judged: &mut Vec<NotJudged>,
) -> Option<ObjectivesVerdict> {
    study.slices.iter().find_map(|slice| slice.objective)?;
    let mut judging = Judging {
        study,
        rules: Rules::of(&study.margins),
        drafts: Vec::new(),
        not_judged,
    };
    for (index, slice) in study.slices.iter().enumerate() {
        let Some(objective) = slice.objective else {
            continue;
        };
        for (scenario, description) in study.scenarios.iter().enumerate() {
            let runs: Vec<&RunObservation> = observations.cell(policy, scenario).collect();
            judging.cell((index, slice), &description.name, &objective, &runs);
        }
    }
    Some(judging.conclude())
}

struct Judging<'a> {
    study: &'a StudyDescription,
    rules: Rules,
    /// Tests before the correction of `p_missed` for many.
    drafts: Vec<ObjectiveTest>,
    not_judged: &'a mut Vec<NotJudged>,
}

impl Judging<'_> {
    fn cell(
        &mut self,
        (index, slice): (usize, &SliceDescription),
        scenario: &str,
        objective: &Objective,
        runs: &[&RunObservation],
    ) {
        let mut skip = |why: String, missing| {
            self.not_judged.push(NotJudged {
                scenario: scenario.to_owned(),
                slice: slice.name.clone(),
                why,
                missing,
                only_bound: false,
            });
        };
        let Some(offered) = mean_offered(runs.iter().copied(), index) else {
            return skip("the scenario has no runs".to_owned(), true);
        };
        let margin = self.study.margins.throughput_relative;
        if offered > slice.share_bits_per_second as f64 * (1.0 + margin) {
            return skip("it exceeds its own share there".to_owned(), false);
        }
        let has_no_delays = runs.iter().any(|run| run.has_no_delays);
        if has_no_delays && (objective.delay.is_some() || objective.delay_variation.is_some()) {
            let why = "its delays are unknown: the clocks of the two ends disagree";
            skip(why.to_owned(), true);
        }
        for (indicator, limit) in objective.indicators() {
            if indicator == ObjectiveIndicator::Throughput && offered < limit {
                let why = format!(
                    "it sends {}, less than its objective of {}: whether it would get more is not \
                     known",
                    words::rate(offered),
                    words::rate(limit)
                );
                skip(why, true);
                continue;
            }
            let values: Vec<f64> = runs
                .iter()
                .filter_map(|run| indicator.of(run, index))
                .collect();
            let Some(sample) = Sample::of(&values) else {
                if !has_no_delays {
                    skip(format!("no run has a value for its {indicator}"), true);
                }
                continue;
            };
            // What a run that was not seen could show at best.
            let best = match indicator {
                ObjectiveIndicator::Throughput => offered,
                ObjectiveIndicator::Availability => 1.0,
                _ => 0.0,
            };
            let mut draft = draft((indicator, limit, best), &values, &sample, self.rules);
            draft.slice.clone_from(&slice.name);
            scenario.clone_into(&mut draft.scenario);
            self.drafts.push(draft);
        }
    }

    fn conclude(self) -> ObjectivesVerdict {
        let raw: Vec<f64> = self.drafts.iter().map(|draft| draft.p_missed).collect();
        let alpha = self.rules.alpha();
        let mut tests = self.drafts;
        for (test, p_missed) in tests.iter_mut().zip(holm::holm_adjusted(&raw)) {
            test.p_missed = p_missed;
            test.outcome = if test.p_met <= alpha {
                Outcome::Holds
            } else if p_missed <= alpha {
                Outcome::Broken
            } else {
                Outcome::Inconclusive
            };
            if test.outcome != Outcome::Inconclusive {
                test.repetitions_needed = None;
            }
        }
        let outcome = Outcome::of_all(tests.iter().map(|test| test.outcome));
        let room = |test: &&ObjectiveTest| test.room.unwrap_or(f64::NEG_INFINITY);
        let of = |outcome| tests.iter().filter(move |t| t.outcome == outcome);
        let decided_by = match outcome {
            Outcome::Inconclusive => of(outcome)
                .max_by(|a, b| a.p_met.min(a.p_missed).total_cmp(&b.p_met.min(b.p_missed))),
            _ => of(outcome).min_by(|a, b| room(a).total_cmp(&room(b))),
        };
        let first_missed = (self.study.scenarios.iter())
            .map(|s| &s.name)
            .find(|name| of(Outcome::Broken).any(|t| t.scenario == **name));
        let needed: Option<Vec<u32>> = of(Outcome::Inconclusive)
            .map(|test| test.repetitions_needed)
            .collect();
        ObjectivesVerdict {
            outcome,
            decided_by: decided_by.cloned(),
            first_missed: first_missed.cloned(),
            repetitions_needed: needed
                .filter(|_| outcome == Outcome::Inconclusive)
                .and_then(|needed| needed.into_iter().max()),
            tests,
        }
    }
}

impl Objective {
    /// Every objective that is stated, with its limit in the unit of the indicator.
    pub fn indicators(&self) -> impl Iterator<Item = (ObjectiveIndicator, f64)> {
        let throughput = self.throughput_bits_per_second.map(|rate| rate as f64);
        [
            throughput.map(|limit| (ObjectiveIndicator::Throughput, limit)),
            self.loss_ratio
                .map(|limit| (ObjectiveIndicator::LossRatio, limit)),
            self.delay
                .map(|d| (ObjectiveIndicator::Delay(d.at), d.limit_ns as f64)),
            self.delay_variation
                .map(|d| (ObjectiveIndicator::DelayVariation(d.at), d.limit_ns as f64)),
            self.availability
                .map(|limit| (ObjectiveIndicator::Availability, limit)),
        ]
        .into_iter()
        .flatten()
    }
}

impl ObjectiveIndicator {
    /// Its value for a slice in one run; `None` where the run has none.
    fn of(self, run: &RunObservation, slice: usize) -> Option<f64> {
        let observation = run.slices.get(slice)?;
        let figures = &observation.steady;
        let delay = &figures.delay;
        let has_delays = delay.samples > 0 && !run.has_no_delays;
        match self {
            Self::Throughput => Some(figures.throughput_bits_per_second),
            Self::LossRatio => (figures.sent_frames > 0).then_some(figures.loss_ratio),
            Self::Delay(at) => has_delays.then(|| at.of(delay) as f64),
            Self::DelayVariation(at) => {
                has_delays.then(|| at.of(delay).saturating_sub(delay.min_ns) as f64)
            }
            Self::Availability => observation.availability,
        }
    }
}

/// The test of one objective, not yet corrected; without its names.
pub(super) fn draft(
    (indicator, limit, best): (ObjectiveIndicator, f64, f64),
    values: &[f64],
    sample: &Sample,
    rules: Rules,
) -> ObjectiveTest {
    // The worse, the larger.
    let sign = if indicator.is_at_least() { -1.0 } else { 1.0 };
    let is_beyond = |value: &&f64| sign * (**value - limit) > 0.0;
    let beyond = u32::try_from(values.iter().filter(is_beyond).count()).unwrap_or(u32::MAX);
    let strict = best + (limit - best) / rules.seen_share(sample.count);
    let interval = sample.one_sided_bounds(rules.confidence);
    let (p_met, _) = p_values(sample, sign, limit);
    let (_, p_missed) = p_values(sample, sign, strict);
    let worse = if indicator.is_at_least() {
        interval.low
    } else {
        interval.high
    };
    let scale = match indicator {
        ObjectiveIndicator::Availability => 1.0 - limit,
        _ => limit,
    };
    let of_mean = |limit: f64| {
        let distance = sample.mean - limit;
        power::repetitions_needed(distance, sample.variance?, rules.confidence, 1)
    };
    let repetitions_needed = if sample.variance.is_none() {
        Some(2)
    } else if sign * (sample.mean - limit) > 0.0 {
        of_mean(limit)
    } else {
        of_mean(limit)
            .zip(rules.runs_to_exclude_rare(sample.count, beyond))
            .map(|(mean, rare)| mean.max(rare))
    };
    ObjectiveTest {
        slice: String::new(),
        scenario: String::new(),
        indicator,
        limit,
        mean: sample.mean,
        interval,
        room: worse.map(|worse| {
            let room = sign * (limit - worse);
            // With a limit of zero, there is either full room or none.
            if scale > 0.0 {
                room / scale
            } else {
                room.signum().min(0.0)
            }
        }),
        repetitions: sample.count,
        repetitions_beyond: beyond,
        outcome: Outcome::Inconclusive,
        p_met: p_met.max(rules.p_rare(sample.count, beyond)),
        p_missed,
        repetitions_needed,
    }
}

/// p-values of "the mean is within the limit" and "beyond it" (Student's t), where `sign` is 1 for a limit
/// from above. Both are 1 where nothing is known of the scatter. The limit itself is within.
fn p_values(sample: &Sample, sign: f64, limit: f64) -> (f64, f64) {
    let distance = sign * (sample.mean - limit);
    match sample.variance_of_mean() {
        None => (1.0, 1.0),
        Some((variance, freedom)) if variance > 0.0 => {
            let t = distance / variance.sqrt();
            (t_tail(-t, freedom), t_tail(t, freedom))
        }
        Some(_) if distance > 0.0 => (1.0, 0.0),
        Some(_) => (0.0, 1.0),
    }
}
