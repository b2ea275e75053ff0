//! Objectives: does a slice get the service it needs, in every scenario in which it stays within its own
//! share?

use super::influence::sends;
use super::isolation::Skipped;
use super::repetitions::{Contrast, Rules};
use super::shown;
use super::{NotJudged, Outcome};
use crate::application::ApplicationRecord;
use crate::description::{SliceDescription, StudyDescription};
use crate::estimate::{Interval, Sample};
use crate::holm;
use crate::objective::{Objective, Percentile};
use crate::observations::{Observations, RunObservation};
use crate::pooled::PooledShare;
use serde::{Deserialize, Serialize};

/// Whether slices with objectives meet them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectivesVerdict {
    /// `Holds` (every objective is met), `Broken` (one is missed), `Inconclusive` or `NotTested`.
    pub outcome: Outcome,
    /// The missed objective that is farthest off; where all are met, the one with the least headroom; where
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
    /// A percentile of one-way delay of all packets sent, ns: at most. Of one that is lost it is infinite.
    Delay(Percentile),
    /// A percentile of packet delay variation (RFC 5481), ns: at most.
    DelayVariation(Percentile),
    /// Goodput of applications, bit/s: at least.
    Goodput,
    /// A percentile of the completion time of flows, ns: at most. One in progress has taken the time until now.
    CompletionTime(Percentile),
    /// A percentile of the latency of all requests due, ns: at most.
    RequestLatency(Percentile),
    /// Share of intervals in which all objectives of packets and of goodput are met: at least.
    Availability,
}

impl ObjectiveIndicator {
    /// Whether more of it is better.
    #[must_use]
    pub const fn is_at_least(self) -> bool {
        matches!(self, Self::Throughput | Self::Goodput | Self::Availability)
    }

    /// Whether it is a rate, which a slice gets no more of than it asks for.
    const fn is_rate(self) -> bool {
        matches!(self, Self::Throughput | Self::Goodput)
    }

    /// Whether it needs the clocks of both ends.
    pub(super) const fn is_delay(self) -> bool {
        matches!(self, Self::Delay(_) | Self::DelayVariation(_))
    }

    /// Whether it is of applications instead of packets.
    const fn is_of_applications(self) -> bool {
        matches!(
            self,
            Self::Goodput | Self::CompletionTime(_) | Self::RequestLatency(_)
        )
    }

    /// Whether an application is of the kind that has it.
    const fn is_had_by(self, application: &ApplicationRecord) -> bool {
        match self {
            Self::CompletionTime(_) => application.flows.is_some(),
            Self::RequestLatency(_) => application.requests.is_some(),
            _ => true,
        }
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
    /// What it was held against: `limit`, but for the rate of a slice that hardly sends or asks for as much.
    pub held_against: f64,
    /// Where that is less than `limit`: the rate that the slice sends or asks for, bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<f64>,
    /// False where the slice sends too little to meet it: it is missed, or inconclusive.
    pub can_be_met: bool,
    /// Mean over repetitions; `None` where it is infinite, as it is of some repetition.
    pub mean: Option<f64>,
    /// Repetitions whose value is infinite: too many packets were lost for the percentile, or all of them.
    pub repetitions_infinite: u32,
    /// Mean over repetitions of the packets lost / sent.
    pub loss_ratio: f64,
    /// One-sided bounds of the mean, each at the confidence of the table; none where it is infinite.
    pub interval: Interval,
    /// False where every repetition has the same value.
    pub varies: bool,
    /// Headroom from the worse bound to the limit, as a share of the limit (for availability: of the
    /// allowed unavailability): 1 if nothing of the limit is used, 0 at the limit, negative beyond.
    /// `None` for a single repetition, and if the mean is infinite.
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
    /// Packets of all repetitions and those of them lost or late, where the objective is of a share of packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<PooledShare>,
    /// ns of delay in a second: the delay still grows, so that the objective cannot be shown to be met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growing_per_second: Option<f64>,
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
    drafts: Vec<Draft>,
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
        let skip = |skipped: Skipped| skipped.not_judged(scenario.to_owned(), slice.name.clone());
        let sending: Vec<&RunObservation> = runs
            .iter()
            .copied()
            .filter(|run| sends(run, index))
            .collect();
        let of_slices = || sending.iter().filter_map(|run| run.slices.get(index));
        let offered_by_run: Vec<f64> = of_slices()
            .map(|slice| slice.steady.offered_bits_per_second)
            .collect();
        let Some(offered) = Sample::of(&offered_by_run).map(|sample| sample.mean) else {
            self.not_judged.push(skip(if runs.is_empty() {
                Skipped::no_runs("the scenario has no runs")
            } else {
                Skipped::own("it sends nothing there")
            }));
            return;
        };
        let margin = self.study.margins.throughput_relative;
        let exceeds = offered > slice.share_bits_per_second as f64 * (1.0 + margin);
        let is_held_back = of_slices().any(|slice| slice.is_held_back);
        let applications = of_slices().filter_map(|slice| slice.applications);
        let wants_all = applications
            .clone()
            .any(|applications| applications.wants_all);
        let may_have_enough = applications
            .clone()
            .any(|applications| applications.may_have_enough);
        if exceeds && applications.count() > 0 {
            let why = "its applications take more than its share there: of its objectives, only throughput and goodput are judged";
            self.not_judged.push(skip(Skipped::own(why)));
        } else if exceeds {
            let why = "it exceeds its own share there";
            return self.not_judged.push(skip(Skipped::own(why)));
        }
        let has_no_delays = sending.iter().any(|run| run.has_no_delays);
        if has_no_delays && (objective.delay.is_some() || objective.delay_variation.is_some()) {
            let why = "its delays are unknown: the clocks of the two ends disagree";
            self.not_judged.push(skip(Skipped::missing(why)));
        }
        let losses: Vec<f64> = of_slices().map(|slice| slice.steady.loss_ratio).collect();
        let loss_ratio = Sample::of(&losses).map_or(0.0, |sample| sample.mean);
        let judged = objective.indicators();
        for (indicator, limit) in judged.filter(|(indicator, _)| !exceeds || indicator.is_rate()) {
            let values: Vec<f64> = sending
                .iter()
                .filter_map(|run| indicator.of(run, index))
                .collect();
            let demand: Option<Vec<f64>> = match indicator {
                // What wants all, or is held back, sends less because it receives less.
                ObjectiveIndicator::Throughput => {
                    (!wants_all && !is_held_back).then(|| offered_by_run.clone())
                }
                // They ask for what they get, and perhaps for more.
                ObjectiveIndicator::Goodput if may_have_enough => Some(values.clone()),
                ObjectiveIndicator::Goodput => of_slices()
                    .map(|slice| slice.applications?.goodput_asked_bits_per_second)
                    .collect(),
                _ => None,
            };
            let (asked, values) = match demand {
                Some(demand) => Asked::of_rate(indicator, (limit, margin), &values, &demand),
                None if indicator.is_rate() => {
                    // What takes all there is gets its share at best, or as much as it was seen to get.
                    let share = slice.share_bits_per_second as f64;
                    let asked = Asked {
                        best: values.iter().copied().fold(share, f64::max),
                        ..Asked::of(indicator, limit)
                    };
                    (asked, values)
                }
                None => (Asked::of(indicator, limit), values),
            };
            let Some(mut draft) = draft(asked, &values, self.rules) else {
                let has_application = |run: &&RunObservation| {
                    let mut own = (run.applications.iter()).filter(|it| it.slice == slice.name);
                    own.any(|application| indicator.is_had_by(application))
                };
                if indicator.is_of_applications() && !sending.iter().any(has_application) {
                    let why = format!("no application of it there has a {indicator}");
                    self.not_judged.push(skip(Skipped::own(why)));
                } else if !(has_no_delays && indicator.is_delay()) {
                    let why = format!("no run has a value for its {indicator}");
                    self.not_judged.push(skip(Skipped::missing(why)));
                }
                continue;
            };
            draft.test.slice.clone_from(&slice.name);
            scenario.clone_into(&mut draft.test.scenario);
            draft.test.loss_ratio = loss_ratio;
            draft.test.packets = shown::packets(indicator, of_slices(), self.rules.confidence);
            draft.test.growing_per_second = shown::growing(indicator, limit, of_slices());
            self.drafts.push(draft);
        }
    }

    fn conclude(self) -> ObjectivesVerdict {
        let raw: Vec<f64> = (self.drafts.iter()).map(|d| d.test.p_missed).collect();
        let drafts = self.drafts.into_iter().zip(holm::holm_adjusted(&raw));
        let tests: Vec<ObjectiveTest> = drafts
            .map(|(draft, p_missed)| draft.decide(p_missed, raw.len(), self.rules))
            .collect();
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
            self.goodput_bits_per_second
                .map(|rate| (ObjectiveIndicator::Goodput, rate as f64)),
            (self.completion_time).map(|time| {
                (
                    ObjectiveIndicator::CompletionTime(time.at),
                    time.limit_ns as f64,
                )
            }),
            (self.request_latency).map(|time| {
                (
                    ObjectiveIndicator::RequestLatency(time.at),
                    time.limit_ns as f64,
                )
            }),
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
        match self {
            Self::Throughput => Some(observation.served_bits_per_second),
            Self::LossRatio => Some(figures.loss_ratio),
            Self::Availability => observation.availability,
            Self::Goodput => Some(observation.applications?.goodput_bits_per_second),
            Self::CompletionTime(_) => Some(observation.completion_time_ns? as f64),
            Self::RequestLatency(_) => Some(observation.request_latency_ns? as f64),
            _ if run.has_no_delays => None,
            Self::Delay(at) => {
                let of_sent = observation.delay_of_sent.filter(|delay| delay.at == at)?;
                Some(of_sent.ns.map_or(f64::INFINITY, |ns| ns as f64))
            }
            Self::DelayVariation(_) if delay.samples == 0 => {
                (figures.lost_frames > 0).then_some(f64::INFINITY)
            }
            Self::DelayVariation(at) => {
                let smallest_ns = observation.whole.delay.min_ns;
                Some(at.of(delay).saturating_sub(smallest_ns) as f64)
            }
        }
    }
}

/// What is asked of a slice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub indicator: ObjectiveIndicator,
    pub limit: f64,
    pub held_against: f64,
    pub can_be_met: bool,
    /// What a run that was not seen could show at best.
    pub best: f64,
}

impl Asked {
    pub fn of(indicator: ObjectiveIndicator, limit: f64) -> Self {
        Self {
            indicator,
            limit,
            held_against: limit,
            can_be_met: true,
            best: match indicator {
                ObjectiveIndicator::Availability => 1.0,
                _ => 0.0,
            },
        }
    }

    /// Of a rate, and the values to hold against it: of each run what it received and what it sent or asked for.
    ///
    /// Nobody receives more than is sent: each run is asked for no more than it sent, less the margin. Its value is
    /// shifted by as much as that differs from the mean over runs, so that each run is compared with its own. The
    /// objective can only be met where the slice sends as much, within the margin.
    fn of_rate(
        indicator: ObjectiveIndicator,
        (limit, margin): (f64, f64),
        received: &[f64],
        sent: &[f64],
    ) -> (Self, Vec<f64>) {
        let asked: Vec<f64> = (sent.iter())
            .map(|sent| limit.min((1.0 - margin) * sent))
            .collect();
        let mean = |values: &[f64]| Sample::of(values).map_or(0.0, |sample| sample.mean);
        let (held_against, offered) = (mean(&asked), mean(sent));
        let pairs = received.iter().zip(&asked);
        let values = pairs
            .map(|(received, asked)| received + (held_against - asked))
            .collect();
        let asked = Self {
            held_against,
            can_be_met: offered >= (1.0 - margin) * limit,
            best: offered,
            ..Self::of(indicator, limit)
        };
        (asked, values)
    }

    /// The worse, the larger.
    fn sign(&self) -> f64 {
        if self.indicator.is_at_least() {
            -1.0
        } else {
            1.0
        }
    }

    /// How far the mean is beyond the limit, which lies farther from the best by 1 / `share`.
    fn contrast(&self, sample: &Sample, share: f64) -> Option<Contrast> {
        let limit = self.best + (self.held_against - self.best) / share;
        Some(Contrast {
            distance: self.sign() * (sample.mean - limit),
            variance: sample.variance?,
        })
    }

    /// From the worse bound to what it is held against, as a share of the limit.
    fn room(&self, interval: Interval) -> Option<f64> {
        let worse = if self.indicator.is_at_least() {
            interval.low
        } else {
            interval.high
        };
        let room = self.sign() * (self.held_against - worse?);
        let scale = match self.indicator {
            ObjectiveIndicator::Availability => 1.0 - self.limit,
            _ => self.limit,
        };
        // Where the limit is nothing at all, there is no room, or less than none.
        Some(if scale > 0.0 {
            room / scale
        } else if room < 0.0 {
            -1.0
        } else {
            0.0
        })
    }
}

/// A test before the correction of `p_missed` for many.
pub(super) struct Draft {
    pub test: ObjectiveTest,
    asked: Asked,
    /// `None` where a value is infinite.
    sample: Option<Sample>,
}

/// The test of one objective, not yet corrected and without its names; `None` where there are no values.
pub(super) fn draft(asked: Asked, values: &[f64], rules: Rules) -> Option<Draft> {
    if values.is_empty() {
        return None;
    }
    let count = |is: &dyn Fn(f64) -> bool| {
        let counted = values.iter().filter(|&&value| is(value));
        u32::try_from(counted.count()).unwrap_or(u32::MAX)
    };
    let runs = count(&|_| true);
    let infinite = count(&f64::is_infinite);
    let beyond = count(&|value| asked.sign() * (value - asked.held_against) > 0.0);
    let sample = Sample::of(values).filter(|_| infinite == 0);
    let (p_met, p_missed) = match &sample {
        Some(sample) => {
            let p_values = |share| {
                let contrast = asked.contrast(sample, share);
                contrast.map_or((1.0, 1.0), |contrast| contrast.p_values(runs))
            };
            (p_values(1.0).0, p_values(rules.seen_share(runs)).1)
        }
        // There is no mean: what counts is how many runs are beyond the limit.
        None if runs < 2 => (1.0, 1.0),
        None if infinite == runs => (1.0, 0.0),
        None => (0.0, rules.p_frequent(runs, beyond)),
    };
    let interval = sample.map_or(Interval::UNBOUNDED, |s| {
        s.one_sided_bounds(rules.confidence)
    });
    let is_lowered = asked.held_against < asked.limit;
    let test = ObjectiveTest {
        slice: String::new(),
        scenario: String::new(),
        indicator: asked.indicator,
        limit: asked.limit,
        held_against: asked.held_against,
        offered: is_lowered.then_some(asked.best),
        can_be_met: asked.can_be_met,
        mean: sample.map(|sample| sample.mean),
        repetitions_infinite: infinite,
        loss_ratio: 0.0,
        interval,
        varies: sample.is_none_or(|sample| sample.variance != Some(0.0)),
        room: asked.room(interval),
        repetitions: runs,
        repetitions_beyond: beyond,
        outcome: Outcome::Inconclusive,
        p_met: if asked.can_be_met {
            p_met.max(rules.p_rare(runs, beyond))
        } else {
            1.0
        },
        p_missed,
        repetitions_needed: None,
        packets: None,
        growing_per_second: None,
    };
    Some(Draft {
        test,
        asked,
        sample,
    })
}

impl Draft {
    /// Decide one of `tests`.
    fn decide(self, p_missed: f64, tests: usize, rules: Rules) -> ObjectiveTest {
        let is_shown = !self.test.lacks_packets() && self.test.growing_per_second.is_none();
        let outcome = if self.test.p_met <= rules.alpha() && is_shown {
            Outcome::Holds
        } else if self.test.p_met > rules.alpha() && p_missed <= rules.alpha() {
            Outcome::Broken
        } else {
            Outcome::Inconclusive
        };
        ObjectiveTest {
            outcome,
            p_missed,
            repetitions_needed: (outcome == Outcome::Inconclusive)
                .then(|| self.repetitions_needed(tests, rules))
                .flatten(),
            ..self.test
        }
    }

    fn repetitions_needed(&self, tests: usize, rules: Rules) -> Option<u32> {
        if self.test.growing_per_second.is_some() {
            return None;
        }
        if self.test.p_met <= rules.alpha() {
            return self.test.repetitions_with_packets(rules.confidence);
        }
        let seen = (self.test.repetitions, self.test.repetitions_beyond);
        let Some(sample) = self.sample else {
            return rules.runs_to_decide_share(seen, tests);
        };
        let at_limit = self.asked.contrast(&sample, 1.0);
        if at_limit.is_some_and(|contrast| contrast.distance <= 0.0) && !self.asked.can_be_met {
            return None;
        }
        let contrast = at_limit
            .map(|at_limit| move |share| self.asked.contrast(&sample, share).unwrap_or(at_limit));
        let contrast = contrast.as_ref().map(|of| of as &dyn Fn(f64) -> Contrast);
        rules.runs_to_decide(seen, tests, contrast)
    }
}
