//! Objectives: does a slice get the service it needs, in every scenario in which it stays within its own
//! share?

use super::Outcome;
use super::indicator::{Span, sends};
use super::not_judged::{NotJudged, Skipped};
use super::not_shown;
pub use super::objective_test::{ObjectiveIndicator, ObjectiveTest};
use super::runs::{Run, RunCount, SampleKind, repetitions_to_decide};
use crate::application_summary::SliceApplications;
use crate::description::{SliceDescription, StudyDescription};
use crate::objective::Objective;
use crate::observations::{Observations, RunObservation, SliceObservation};
use serde::{Deserialize, Serialize};

/// Verdict on slices with objectives: whether they meet them.
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
        tests: Vec::new(),
        not_judged,
    };
    for (index, slice) in study.slices.iter().enumerate() {
        let Some(objective) = slice.objective else {
            continue;
        };
        for (scenario, description) in study.scenarios.iter().enumerate() {
            let sample = observations.sample(study, policy, scenario);
            let runs: Vec<&RunObservation> =
                observations.distinct(sample, policy, scenario).collect();
            let runs = (&*runs, sample);
            judging.cell((index, slice), &description.name, &objective, runs);
        }
    }
    Some(judging.conclude())
}

struct Judging<'a> {
    study: &'a StudyDescription,
    /// Their outcomes are decided when there are all.
    tests: Vec<ObjectiveTest>,
    not_judged: &'a mut Vec<NotJudged>,
}

/// The runs of a scenario in which a slice sends something: after the transient, or at all, where what its applications got is judged,
/// which is of whole runs.
struct Sending<'a> {
    runs: Vec<&'a RunObservation>,
    sample: SampleKind,
    index: usize,
    slice: &'a SliceDescription,
    /// Rate that it sends in each run, bit/s.
    offered: Vec<f64>,
}

impl<'a> Sending<'a> {
    /// Those in which it sends in this span.
    fn within(
        span: Span,
        (runs, sample): (&[&'a RunObservation], SampleKind),
        (index, slice): (usize, &'a SliceDescription),
    ) -> Self {
        let runs: Vec<_> = (runs.iter().copied())
            .filter(|run| sends(run, index, span))
            .collect();
        let slices = runs.iter().filter_map(|run| run.slices.get(index));
        let offered = slices.map(|slice| span.of(slice).offered_bits_per_second);
        Self {
            offered: offered.collect(),
            runs,
            sample,
            index,
            slice,
        }
    }

    fn slices(&self) -> impl Iterator<Item = &'a SliceObservation> + Clone + '_ {
        self.runs
            .iter()
            .filter_map(|run| run.slices.get(self.index))
    }

    fn applications(&self) -> impl Iterator<Item = SliceApplications> + '_ {
        self.slices().filter_map(|slice| slice.applications)
    }

    /// Returns true if it sends more than its share, on average over runs.
    fn exceeds_share(&self, margin: f64) -> bool {
        let mean = self.offered.iter().sum::<f64>() / self.offered.len().max(1) as f64;
        mean > self.slice.share_bits_per_second as f64 * (1.0 + margin)
    }

    /// Returns true if completion times are final, as all flows of the slice have ended: a steady state would say no
    /// more.
    fn has_completed(&self, run: &RunObservation, indicator: ObjectiveIndicator) -> bool {
        let own = (run.applications.iter()).filter(|source| source.slice == self.slice.name);
        let mut flows = own.filter_map(|source| source.flows.as_ref());
        matches!(indicator, ObjectiveIndicator::CompletionTime(_))
            && flows.all(|flows| flows.completed == flows.time_of_begun.samples)
    }

    fn has_no_delays(&self) -> bool {
        self.runs.iter().any(|run| run.has_no_delays)
    }
}

impl Judging<'_> {
    fn cell(
        &mut self,
        (index, slice): (usize, &SliceDescription),
        scenario: &str,
        objective: &Objective,
        runs: (&[&RunObservation], SampleKind),
    ) {
        let skip = |skipped: Skipped| skipped.not_judged(scenario.to_owned(), slice.name.clone());
        let [steady, whole] =
            [Span::Steady, Span::Whole].map(|span| Sending::within(span, runs, (index, slice)));
        let has_applications = whole.applications().next().is_some();
        if runs.0.is_empty() {
            let why = Skipped::no_runs("the scenario has no runs");
            return self.not_judged.push(skip(why));
        }
        if steady.runs.is_empty() && !has_applications {
            let why = Skipped::own("it sends nothing there");
            return self.not_judged.push(skip(why));
        }
        let margin = self.study.margins.throughput_relative;
        let exceeds =
            steady.exceeds_share(margin) || (has_applications && whole.exceeds_share(margin));
        if exceeds && has_applications {
            let why = "its applications take more than its share there: of its objectives, only throughput and goodput are judged";
            self.not_judged.push(skip(Skipped::own(why)));
        } else if exceeds {
            let why = "it exceeds its own share there";
            return self.not_judged.push(skip(Skipped::own(why)));
        }
        if steady.runs.is_empty()
            && objective
                .indicators()
                .any(|(of, _)| !of.is_of_applications())
        {
            let why = "it sends nothing there after the transient: of its objectives, only those of applications are judged";
            self.not_judged.push(skip(Skipped::own(why)));
        }
        if steady.has_no_delays()
            && (objective.delay.is_some() || objective.delay_variation.is_some())
        {
            let why = "its delays are unknown: the clocks of the two ends disagree";
            self.not_judged.push(skip(Skipped::missing(why)));
        }
        let judged = objective.indicators();
        for (indicator, limit) in judged.filter(|(indicator, _)| !exceeds || indicator.is_rate()) {
            let sending = match indicator.is_of_applications() {
                true => &whole,
                false => &steady,
            };
            if sending.runs.is_empty() {
                continue;
            }
            match self.test(sending, indicator, limit) {
                Ok(test) => self.tests.push(ObjectiveTest {
                    scenario: scenario.to_owned(),
                    ..test
                }),
                Err(Some(skipped)) => self.not_judged.push(skip(skipped)),
                Err(None) => {}
            }
        }
    }

    /// The test of one objective, before it is decided, or why there is none where that is not said already.
    fn test(
        &self,
        sending: &Sending<'_>,
        indicator: ObjectiveIndicator,
        limit: f64,
    ) -> Result<ObjectiveTest, Option<Skipped>> {
        let margin = self.study.margins.throughput_relative;
        let demand = sending.demand(indicator);
        // What takes all there is gets its share at best, or as much as it was seen to get.
        let share = sending.slice.share_bits_per_second as f64;
        let results: Vec<RunResult> = (sending.runs.iter().enumerate())
            .filter_map(|(number, run)| {
                let value = indicator.of(run, sending.index)?;
                let (held_against, best) = match &demand {
                    // Nobody receives more than is sent.
                    Some(demand) => {
                        let sent = demand.get(number).copied().flatten()?;
                        (limit.min((1.0 - margin) * sent), sent)
                    }
                    None if indicator.is_rate() => (limit, share.max(value)),
                    None if indicator.is_at_least() => (limit, 1.0),
                    None => (limit, 0.0),
                };
                let slice = run.slices.get(sending.index)?;
                Some(RunResult {
                    value,
                    held_against,
                    best,
                    is_beyond: (slice.is_beyond(indicator))
                        .unwrap_or(indicator.sign() * (value - held_against) > 0.0),
                    is_steady: !slice.is_unsettled || sending.has_completed(run, indicator),
                    loss_ratio: slice.steady.loss_ratio,
                })
            })
            .collect();
        if results.is_empty() {
            return Err(sending.why_without(indicator));
        }
        let mean =
            |of: fn(&RunResult) -> f64| results.iter().map(of).sum::<f64>() / results.len() as f64;
        let offered = mean(|run| run.best);
        let held_against = match demand {
            Some(_) => mean(|run| run.held_against),
            None => limit,
        };
        let worst = (results
            .iter()
            .max_by(|a, b| b.room(indicator).total_cmp(&a.room(indicator))))
        .map(|run| (run.value, run.room(indicator)));
        let is_worst = |run: &&RunResult| worst.is_some_and(|w| w.1 == run.room(indicator));
        let worst_losses = results.iter().filter(is_worst).map(|run| run.loss_ratio);
        let is_known = |value: &f64| value.is_finite();
        let none = RunCount {
            sample: sending.sample,
            ..RunCount::none(&self.study.margins)
        };
        let runs = results.iter().map(|run| match run.is_beyond {
            true => Run::Beyond,
            false if !run.is_steady => Run::Unsettled,
            false => Run::Within,
        });
        let losses = sending.slices().map(|slice| slice.steady.loss_ratio);
        Ok(ObjectiveTest {
            slice: sending.slice.name.clone(),
            scenario: String::new(),
            indicator,
            limit,
            held_against,
            offered: (held_against < limit).then_some(offered),
            can_be_met: demand.is_none() || offered >= (1.0 - margin) * limit,
            mean: Some(mean(|run| run.value)).filter(is_known),
            worst: worst.map(|worst| worst.0).filter(is_known),
            room: worst.map(|worst| worst.1).filter(is_known),
            loss_ratio: losses.sum::<f64>() / sending.runs.len() as f64,
            worst_loss_ratio: worst_losses.fold(0.0, f64::max),
            runs: none.with(runs),
            outcome: Outcome::Inconclusive,
            repetitions_needed: None,
            projection: not_shown::projection(indicator, sending.slices(), none.sample),
            packets: not_shown::packets(indicator, sending.slices(), none.confidence),
            values: not_shown::values(indicator, &sending.runs, sending.index, &sending.slice.name),
            growing_per_second: not_shown::growing(
                not_shown::limit_of_growth(indicator, limit, sending.slice, &self.study.margins),
                sending.slices(),
                none.confidence,
            ),
        })
    }

    fn conclude(self) -> ObjectivesVerdict {
        let number = self.tests.len();
        let decided = self.tests.into_iter().map(|test| test.decided(number));
        let tests: Vec<ObjectiveTest> = decided.collect();
        let outcome = Outcome::of_all(tests.iter().map(|test| test.outcome));
        let room = |test: &&ObjectiveTest| test.room.unwrap_or(f64::NEG_INFINITY);
        let strength = |test: &&ObjectiveTest| test.strength();
        let of = |outcome| tests.iter().filter(move |t| t.outcome == outcome);
        let decided_by = match outcome {
            // One that leans to broken decides alone.
            Outcome::Inconclusive => (of(outcome).filter(|test| test.runs.leans_to_broken()))
                .max_by(|a, b| strength(a).total_cmp(&strength(b)))
                .or_else(|| of(outcome).min_by(|a, b| strength(a).total_cmp(&strength(b)))),
            _ => of(outcome).min_by(|a, b| room(a).total_cmp(&room(b))),
        };
        let first_missed = (self.study.scenarios.iter())
            .map(|s| &s.name)
            .find(|name| of(Outcome::Broken).any(|t| t.scenario == **name));
        ObjectivesVerdict {
            outcome,
            decided_by: decided_by.cloned(),
            first_missed: first_missed.cloned(),
            repetitions_needed: match outcome {
                Outcome::Inconclusive => repetitions_to_decide(of(outcome).map(|test| {
                    let needed = test.repetitions_needed;
                    (test.runs.leans_to_broken(), needed)
                })),
                _ => None,
            },
            tests,
        }
    }
}

impl Sending<'_> {
    /// Returns the rate that the slice asks for in each run, bit/s, where an objective is lowered to that; `None` where
    /// it is not.
    fn demand(&self, indicator: ObjectiveIndicator) -> Option<Vec<Option<f64>>> {
        let wants_all = self.applications().any(|of| of.wants_all);
        let is_held_back = self.slices().any(|slice| slice.is_held_back);
        match indicator {
            // What wants all, or is held back, sends less because it receives less.
            ObjectiveIndicator::Throughput => (!wants_all && !is_held_back)
                .then(|| self.offered.iter().copied().map(Some).collect()),
            // They ask for what they get, and perhaps for more.
            ObjectiveIndicator::Goodput if self.applications().any(|of| of.may_have_enough) => {
                let got = |run: &&RunObservation| indicator.of(run, self.index);
                Some(self.runs.iter().map(got).collect())
            }
            ObjectiveIndicator::Goodput => {
                let asked: Option<Vec<f64>> = (self.slices())
                    .map(|slice| slice.applications?.goodput_asked_bits_per_second)
                    .collect();
                asked.map(|asked| asked.into_iter().map(Some).collect())
            }
            _ => None,
        }
    }

    /// Why no run has a value; `None` where that is said of all its delays.
    fn why_without(&self, indicator: ObjectiveIndicator) -> Option<Skipped> {
        let has_application = |run: &&RunObservation| {
            let mut own = (run.applications.iter()).filter(|it| it.slice == self.slice.name);
            own.any(|application| indicator.is_had_by(application))
        };
        if indicator.is_of_applications() && !self.runs.iter().any(has_application) {
            let why = format!("no application of it there has a {indicator}");
            Some(Skipped::own(why))
        } else if self.has_no_delays() && indicator.is_delay() {
            None
        } else {
            let why = format!("no run has a value for its {indicator}");
            Some(Skipped::missing(why))
        }
    }
}

/// An objective in one run.
struct RunResult {
    value: f64,
    /// The objective, lowered to what the slice sends or asks for in this run.
    held_against: f64,
    /// Best possible value.
    best: f64,
    is_beyond: bool,
    is_steady: bool,
    /// Packets lost / sent.
    loss_ratio: f64,
}

impl RunResult {
    /// From the value to the limit, as a share of what lies between the limit and the best.
    fn room(&self, indicator: ObjectiveIndicator) -> f64 {
        let room = indicator.sign() * (self.held_against - self.value);
        let scale = indicator.sign() * (self.held_against - self.best);
        // Where the limit is the best that can be, there is no room, or less than none.
        if scale > 0.0 {
            room / scale
        } else if room < 0.0 {
            -1.0
        } else {
            0.0
        }
    }
}

impl ObjectiveTest {
    /// Decide one of `tests`.
    fn decided(self, tests: usize) -> Self {
        let outcome = match self.runs.outcome(tests) {
            Outcome::Holds if !self.can_be_met || self.is_short() => Outcome::Inconclusive,
            Outcome::Broken if self.is_beyond_by_being_short() => Outcome::Inconclusive,
            outcome => outcome,
        };
        let repetitions_needed = match outcome {
            Outcome::Inconclusive => self.runs_needed(tests),
            _ => None,
        };
        Self {
            outcome,
            repetitions_needed,
            ..self
        }
    }

    fn runs_needed(&self, tests: usize) -> Option<u32> {
        let leans_to_hold = !self.runs.leans_to_broken();
        if self.growing_per_second.is_some() || (leans_to_hold && !self.can_be_met) {
            return None;
        }
        let of_runs = match self.runs.outcome(tests) {
            Outcome::Inconclusive => self.runs.runs_needed(tests)?,
            _ => self.runs.runs,
        };
        if leans_to_hold && self.lacks_packets() {
            return Some(of_runs.max(self.runs_with_packets()?));
        }
        Some(of_runs)
    }

    /// The evidence for what it leans to: none where more runs would not decide it.
    fn strength(&self) -> f64 {
        if !self.can_be_met || self.is_short() {
            return 0.0;
        }
        self.runs.strength()
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
            (self.availability).map(|intervals| {
                let indicator = ObjectiveIndicator::Availability {
                    length_ns: intervals.length_ns,
                };
                (indicator, intervals.share)
            }),
        ]
        .into_iter()
        .flatten()
    }
}

impl SliceObservation {
    /// Returns true if more packets are late or lost than an objective of delay allows, in whole packets; `None` where
    /// that is not known.
    fn is_beyond(&self, indicator: ObjectiveIndicator) -> Option<bool> {
        let ObjectiveIndicator::Delay(at) = indicator else {
            return None;
        };
        let beyond = self.late_frames? + self.steady.lost_frames;
        let allowed = u64::from(100_000 - at.per_100_000());
        Some(beyond * 100_000 > self.steady.sent_frames * allowed)
    }
}

impl ObjectiveIndicator {
    /// The worse, the larger, if multiplied by this.
    const fn sign(self) -> f64 {
        if self.is_at_least() { -1.0 } else { 1.0 }
    }

    /// Its value for a slice in one run; `None` where the run has none.
    fn of(self, run: &RunObservation, slice: usize) -> Option<f64> {
        let observation = run.slices.get(slice)?;
        let figures = &observation.steady;
        let delay = &figures.delay;
        match self {
            Self::Throughput => Some(observation.served_bits_per_second),
            Self::LossRatio => Some(figures.loss_ratio),
            Self::Availability { .. } => observation.intervals?.share(),
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
