//! Influence: does a guaranteed slice get worse service when another one overloads? In each repetition every indicator is held against
//! that of the reference scenario with the same random numbers.

use super::indicator::{Span, sends};
use super::not_judged::{NotJudged, Skipped};
use super::not_shown;
use super::runs::{Run, RunCount, repetitions_to_decide};
use super::{DecidedBy, Outcome, Scale, indicator};
use crate::description::{Margins, StudyDescription};
use crate::estimate::Sample;
use crate::observations::{Observations, RunObservation};
use crate::quantity::Quantity;
use serde::{Deserialize, Serialize};

/// The comparison of every guaranteed slice with itself in the reference scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InfluenceVerdict {
    /// `Holds` (no influence beyond the margins), `Broken`, `Inconclusive` or `NotTested`.
    pub outcome: Outcome,
    /// Where it is broken: the worst breach. Where it holds: the closest call. Where it is
    /// inconclusive: the least decided test.
    pub decided_by: Option<DecidedBy>,
    /// The first scenario, in the order of the study, in which it is broken.
    pub first_broken: Option<String>,
    /// Repetitions that would decide it; `None` where it is decided or no number within reason would.
    pub repetitions_needed: Option<u32>,
    /// Every test: by slice, scenario, indicator.
    pub tests: Vec<InfluenceTest>,
}

/// One test: one indicator of one slice in one scenario against the reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InfluenceTest {
    /// `Holds`, `Broken` or `Inconclusive`.
    pub outcome: Outcome,
    /// The numbers.
    pub numbers: DecidedBy,
    /// Repetitions that would decide it; `None` where it is decided or no number within reason would.
    pub repetitions_needed: Option<u32>,
    /// ns of delay in a second: the delay still grows, so that it cannot be shown to be within the margin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growing_per_second: Option<f64>,
}

/// An increase of delay by this part of what a slice needs is no damage: its limit / 10.
const SHARE_OF_DELAY_OBJECTIVE: u64 = 10;

/// Compare every guaranteed slice of a policy with its reference; what cannot be compared goes to
/// `not_judged`.
pub(super) fn judge(
    study: &StudyDescription,
    observations: &Observations,
    policy: usize,
    not_judged: &mut Vec<NotJudged>,
) -> InfluenceVerdict {
    let mut comparing = Comparing {
        study,
        observations,
        policy,
        tests: Vec::new(),
        not_judged,
    };
    if let Some(reference) = study.scenarios.iter().position(|s| s.reference) {
        for slice in (0..study.slices.len()).filter(|&s| study.slices[s].guaranteed) {
            for scenario in (0..study.scenarios.len()).filter(|&s| !study.scenarios[s].reference) {
                comparing.compare_cells(slice, scenario, reference);
            }
        }
    }
    let number = comparing.tests.len();
    let tests = comparing.tests.into_iter();
    conclude(study, tests.map(|test| test.decided(number)).collect())
}

impl InfluenceVerdict {
    /// Returns the conclusion from the tests of these slices alone.
    pub(super) fn of_slices(&self, study: &StudyDescription, slices: &[&str]) -> Self {
        let of_slices = |test: &&InfluenceTest| slices.contains(&test.numbers.slice.as_str());
        let tests = self.tests.iter().filter(of_slices).cloned();
        conclude(study, tests.collect())
    }
}

fn conclude(study: &StudyDescription, tests: Vec<InfluenceTest>) -> InfluenceVerdict {
    let outcome = Outcome::of_all(tests.iter().map(|test| test.outcome));
    let of = |outcome: Outcome| tests.iter().filter(move |t| t.outcome == outcome);
    let deciding = match outcome {
        Outcome::Broken => largest(of(Outcome::Broken), |t| severity(t, t.numbers.statistic)),
        Outcome::Holds => largest(tests.iter(), closeness),
        // One that leans to broken decides alone.
        _ => largest(
            of(outcome).filter(|test| test.numbers.runs.leans_to_broken()),
            InfluenceTest::strength,
        )
        .or_else(|| largest(of(outcome), |test| -test.strength())),
    };
    let first_broken = study
        .scenarios
        .iter()
        .map(|s| &s.name)
        .find(|name| of(Outcome::Broken).any(|t| t.numbers.scenario.as_ref() == Some(name)));
    InfluenceVerdict {
        outcome,
        decided_by: deciding.map(|test| test.numbers.clone()),
        first_broken: first_broken.cloned(),
        repetitions_needed: match outcome {
            Outcome::Inconclusive => repetitions_to_decide(
                of(outcome)
                    .map(|test| (test.numbers.runs.leans_to_broken(), test.repetitions_needed)),
            ),
            _ => None,
        },
        tests,
    }
}

struct Comparing<'a> {
    study: &'a StudyDescription,
    observations: &'a Observations,
    policy: usize,
    /// Their outcomes are decided when there are all.
    tests: Vec<InfluenceTest>,
    not_judged: &'a mut Vec<NotJudged>,
}

impl<'a> Comparing<'a> {
    fn compare_cells(&mut self, slice: usize, scenario: usize, reference: usize) {
        let mut pairs = match self.comparable(slice, scenario, reference) {
            Ok(pairs) => pairs,
            Err(skipped) => return self.skip(slice, scenario, skipped),
        };
        let of = |scenario| self.observations.sample(self.study, self.policy, scenario);
        let sample = of(scenario).of_pairs(of(reference));
        pairs.truncate(sample.distinct());
        let both = || pairs.iter().flat_map(Pair::both);
        let has_applications = has_applications(both(), slice);
        if !has_applications && both().any(|run| run.has_no_delays) {
            let why = "its delays are unknown: the clocks of the two ends disagree";
            self.skip(slice, scenario, Skipped::missing(why));
        }
        let margins = self.margins(slice, &pairs);
        let smallest_ns = self.observations.smallest_delay_ns(self.policy, slice);
        let throughput = throughput_indicator(&pairs, slice, margins.throughput_relative);
        let indicators = if has_applications {
            self.of_applications(&pairs, slice, scenario)
        } else {
            indicator::of_packets(margins.delay_of, throughput).to_vec()
        };
        for quantity in indicators {
            let of = |run| indicator::value(quantity, run, slice, smallest_ns);
            let values: Vec<PairOfValues> = pairs
                .iter()
                .filter_map(|pair| {
                    Some(PairOfValues {
                        treatment: of(pair.treatment)?,
                        reference: of(pair.reference)?,
                        is_steady: pair.both().iter().all(|run| is_settled(run, slice)),
                    })
                })
                .collect();
            let none = RunCount {
                sample,
                ..RunCount::none(&margins)
            };
            let Some(numbers) = pairs_of(quantity, &values, &margins, none) else {
                // Without a packet there is no delay; throughput and loss show that.
                continue;
            };
            if quantity.is_better_if_more() && numbers.reference <= Some(0.0) {
                let why = "it received nothing in the reference scenario";
                return self.skip(slice, scenario, Skipped::missing(why));
            }
            let growing_per_second = (numbers.margin_ns())
                .and_then(|limit| growing(&pairs, slice, limit, none.confidence));
            self.tests.push(InfluenceTest {
                outcome: Outcome::Inconclusive,
                numbers: DecidedBy {
                    scenario: Some(self.study.scenarios[scenario].name.clone()),
                    slice: self.study.slices[slice].name.clone(),
                    ..numbers
                },
                repetitions_needed: None,
                growing_per_second,
            });
        }
    }

    /// The repetitions in which a slice can be compared, or why there are none.
    fn comparable(
        &self,
        slice: usize,
        scenario: usize,
        reference: usize,
    ) -> Result<Vec<Pair<'a>>, Skipped> {
        let has_runs = |scenario| {
            let mut runs = self.observations.cell(self.policy, scenario);
            runs.next().is_some()
        };
        if !has_runs(reference) {
            return Err(Skipped::no_runs("the reference scenario has no runs"));
        }
        if !has_runs(scenario) {
            return Err(Skipped::no_runs("the scenario has no runs"));
        }
        let mut pairs = pairs(self.observations, self.policy, scenario, reference);
        if pairs.is_empty() {
            let why = "it has no repetition in common with the reference scenario";
            return Err(Skipped::no_runs(why));
        }
        if has_applications(pairs.iter().flat_map(Pair::both), slice) {
            // What they send is what they get: they exceed nothing.
            return Ok(pairs);
        }
        let share = self.study.slices[slice].share_bits_per_second as f64;
        let most = share * (1.0 + self.study.margins.throughput_relative);
        let offers_more = |offered: Option<f64>| offered.is_some_and(|offered| offered > most);
        if offers_more(mean_offered(pairs.iter().map(|pair| pair.treatment), slice))
            && !offers_more(mean_offered(pairs.iter().map(|pair| pair.reference), slice))
        {
            return Err(Skipped::own("it exceeds its own guarantee there"));
        }
        // Nothing can be asked of a slice that sends nothing.
        pairs.retain(|pair| sends(pair.treatment, slice, Span::Steady));
        if pairs.is_empty() {
            return Err(Skipped::own("it sends nothing there"));
        }
        pairs.retain(|pair| sends(pair.reference, slice, Span::Steady));
        if pairs.is_empty() {
            let why = "it sends nothing in the reference scenario";
            return Err(Skipped::missing(why));
        }
        Ok(pairs)
    }

    /// Returns the indicators that are compared for a slice's applications. How long transfers take depends on what the
    /// slice got beyond its share, too, where the reference left it some.
    fn of_applications(
        &mut self,
        pairs: &[Pair<'_>],
        slice: usize,
        scenario: usize,
    ) -> Vec<Quantity> {
        let share = self.study.slices[slice].share_bits_per_second as f64;
        let most = share * (1.0 + self.study.margins.throughput_relative);
        let of_slice = pairs
            .iter()
            .filter_map(|pair| pair.reference.slices.get(slice));
        let served: Vec<f64> = of_slice.map(|slice| slice.served_bits_per_second).collect();
        let goodput = Quantity::GoodputWithinShare;
        if Sample::of(&served).is_none_or(|served| served.mean <= most) {
            return [goodput].into_iter().chain(indicator::TIMES).collect();
        }
        let has_times = |pair: &Pair<'_>| {
            let time = |time| indicator::value(time, pair.reference, slice, 0);
            indicator::TIMES.map(time).iter().any(Option::is_some)
        };
        if pairs.iter().any(has_times) {
            let why = "the reference leaves it more than its share: times are not compared, only its goodput within the share";
            self.skip(slice, scenario, Skipped::own(why));
        }
        vec![goodput]
    }

    /// The margins of the study, made those of a slice: a service is not asked for less than it needs, nor for more than can be resolved.
    fn margins(&self, slice: usize, pairs: &[Pair<'_>]) -> Margins {
        let margins = &self.study.margins;
        let objective = self.study.slices[slice].objective;
        let of_objective = objective.and_then(|objective| objective.delay);
        let of_objective =
            of_objective.map_or(0, |delay| delay.limit_ns / SHARE_OF_DELAY_OBJECTIVE);
        let loss = objective.and_then(|objective| objective.loss_ratio);
        Margins {
            delay_resolution_ns: (margins.delay_resolution_ns)
                .max(idle_delay(pairs.iter().flat_map(Pair::both)))
                .max(of_objective)
                .max(self.study.policies[self.policy].round_ns),
            loss_absolute: loss.unwrap_or(f64::INFINITY).min(margins.loss_absolute),
            ..*margins
        }
    }

    fn skip(&mut self, slice: usize, scenario: usize, skipped: Skipped) {
        let scenario = self.study.scenarios[scenario].name.clone();
        let slice = self.study.slices[slice].name.clone();
        self.not_judged.push(skipped.not_judged(scenario, slice));
    }
}

/// Returns true if a slice has applications in all of these runs.
pub(super) fn has_applications<'a>(
    mut runs: impl Iterator<Item = &'a RunObservation>,
    slice: usize,
) -> bool {
    let has_some = |run: &RunObservation| Some(run.slices.get(slice)?.applications.is_some());
    runs.all(|run| has_some(run) == Some(true))
}

fn is_settled(run: &RunObservation, slice: usize) -> bool {
    run.slices
        .get(slice)
        .is_some_and(|slice| !slice.is_unsettled)
}

/// The received rate where a slice sends the same in both scenarios, within the margin, and else its share of what it
/// sends: whoever sends less receives less. TCP, and a paused host, send less *because* they
/// receive less, and are compared by their rate.
fn throughput_indicator(pairs: &[Pair<'_>], slice: usize, margin: f64) -> Quantity {
    let treatment = mean_offered(pairs.iter().map(|pair| pair.treatment), slice);
    let reference = mean_offered(pairs.iter().map(|pair| pair.reference), slice);
    let reacts = pairs
        .iter()
        .flat_map(Pair::both)
        .any(|run| run.slices.get(slice).is_some_and(|slice| slice.reacts));
    match treatment.zip(reference) {
        Some((treatment, reference))
            if !reacts && (treatment - reference).abs() > margin * reference =>
        {
            Quantity::ReceivedShare
        }
        _ => Quantity::Throughput,
    }
}

/// The runs of both scenarios by repetition: those of one repetition share their random numbers.
fn pairs(
    observations: &Observations,
    policy: usize,
    scenario: usize,
    reference: usize,
) -> Vec<Pair<'_>> {
    observations
        .cell(policy, scenario)
        .filter_map(|treatment| {
            let reference = observations.run(policy, reference, treatment.repetition)?;
            Some(Pair {
                treatment,
                reference,
            })
        })
        .collect()
}

/// One repetition of a scenario and of the reference.
struct Pair<'a> {
    treatment: &'a RunObservation,
    reference: &'a RunObservation,
}

impl<'a> Pair<'a> {
    fn both(&self) -> [&'a RunObservation; 2] {
        [self.treatment, self.reference]
    }
}

/// Delay resolution of these runs: the mean of their idle 99th percentiles, ns.
pub(super) fn idle_delay<'a>(runs: impl Iterator<Item = &'a RunObservation>) -> u64 {
    let idle: Vec<u64> = runs.filter_map(|run| run.idle_delay_p99_ns).collect();
    let sum = idle.iter().copied().fold(0, u64::saturating_add);
    sum.checked_div(idle.len() as u64).unwrap_or(0)
}

/// Mean rate offered by a slice over runs, bit/s.
pub(super) fn mean_offered<'a>(
    runs: impl Iterator<Item = &'a RunObservation>,
    slice: usize,
) -> Option<f64> {
    let values: Vec<f64> = runs
        .filter_map(|run| Some(run.slices.get(slice)?.steady.offered_bits_per_second))
        .collect();
    Sample::of(&values).map(|sample| sample.mean)
}

/// An indicator in a repetition of the scenario and of the reference.
#[derive(Debug, Clone)]
pub(super) struct PairOfValues {
    pub treatment: f64,
    pub reference: f64,
    pub is_steady: bool,
}

impl PairOfValues {
    /// How much worse the treatment is; `None` where it is relative to nothing.
    fn worsening(&self, indicator: Quantity, scale: Scale) -> Option<f64> {
        let difference = match indicator.is_better_if_more() {
            true => self.reference - self.treatment,
            false => self.treatment - self.reference,
        };
        match scale {
            Scale::Relative => (self.reference > 0.0).then(|| difference / self.reference),
            _ => Some(difference),
        }
    }

    /// Returns true if it is worse by more than the margin of this repetition.
    fn is_beyond(&self, indicator: Quantity, margins: &Margins) -> bool {
        let (scale, margin) = margin(indicator, self.reference, margins);
        let worsening = self.worsening(indicator, scale);
        worsening.is_some_and(|worsening| worsening > margin)
    }

    /// With treatment and reference exchanged.
    pub fn mirrored(&self) -> Self {
        Self {
            treatment: self.reference,
            reference: self.treatment,
            ..*self
        }
    }

    fn run(&self, indicator: Quantity, margins: &Margins) -> Run {
        match self.is_beyond(indicator, margins) {
            true => Run::Beyond,
            false if !self.is_steady => Run::Unsettled,
            false if self.mirrored().is_beyond(indicator, margins) => Run::Better,
            false => Run::Within,
        }
    }
}

/// An indicator in pairs of runs; `None` without any.
pub(super) fn pairs_of(
    indicator: Quantity,
    pairs: &[PairOfValues],
    margins: &Margins,
    none: RunCount,
) -> Option<DecidedBy> {
    let mean = |of: fn(&PairOfValues) -> f64| {
        let values: Vec<f64> = pairs.iter().map(of).collect();
        Sample::of(&values).map(|sample| sample.mean)
    };
    let means = PairOfValues {
        treatment: mean(|pair| pair.treatment)?,
        reference: mean(|pair| pair.reference)?,
        is_steady: true,
    };
    let (scale, margin) = margin(indicator, means.reference, margins);
    let worst = pairs
        .iter()
        .filter_map(|pair| pair.worsening(indicator, scale))
        .reduce(f64::max);
    let runs = pairs.iter().map(|pair| pair.run(indicator, margins));
    // Each run of the reference against the one before.
    let scattered = pairs.windows(2).filter(|two| {
        let pair = PairOfValues {
            treatment: two[1].reference,
            reference: two[0].reference,
            is_steady: true,
        };
        pair.run(indicator, margins) != Run::Within
    });
    let none = RunCount {
        scattered: u32::try_from(scattered.count()).unwrap_or(u32::MAX),
        ..none
    };
    Some(DecidedBy {
        scenario: None,
        slice: String::new(),
        indicator: Some(indicator),
        reference: Some(means.reference),
        treatment: Some(means.treatment),
        statistic: means.worsening(indicator, scale).unwrap_or(0.0),
        worst,
        scale,
        margin,
        runs: none.with(runs),
    })
}

/// ns of delay in a second, if that of a slice grows by more than a tenth of `limit_ns` in the scenario or in the reference.
fn growing(pairs: &[Pair<'_>], slice: usize, limit_ns: f64, confidence: f64) -> Option<f64> {
    [0, 1]
        .into_iter()
        .filter_map(|side| {
            let runs = pairs.iter().map(|pair| pair.both()[side]);
            let slices = runs.filter_map(|run| run.slices.get(slice));
            not_shown::growing(limit_ns, slices, confidence)
        })
        .reduce(f64::max)
}

impl InfluenceTest {
    /// Decide one of `tests`.
    fn decided(self, tests: usize) -> Self {
        let runs = self.numbers.runs;
        let outcome = match runs.outcome(tests) {
            Outcome::Holds if self.growing_per_second.is_some() => Outcome::Inconclusive,
            outcome => outcome,
        };
        Self {
            outcome,
            repetitions_needed: (outcome == Outcome::Inconclusive
                && self.growing_per_second.is_none())
            .then(|| runs.runs_needed(tests))
            .flatten(),
            ..self
        }
    }

    /// The evidence for what it leans to: none where more runs would not decide it.
    fn strength(&self) -> f64 {
        match self.growing_per_second {
            Some(_) => 0.0,
            None => self.numbers.runs.strength(),
        }
    }
}

/// The larger of the margins of an indicator whose reference this is, and its unit.
pub(super) fn margin(indicator: Quantity, reference: f64, margins: &Margins) -> (Scale, f64) {
    let resolution = margins.delay_resolution_ns as f64;
    match indicator {
        _ if indicator.is_better_if_more() => (Scale::Relative, margins.throughput_relative),
        Quantity::LossRatio => (Scale::RatioDifference, margins.loss_absolute),
        // Without delay in the reference there is no relative change.
        _ if reference <= 0.0 || resolution >= margins.delay_relative * reference => {
            (Scale::Nanoseconds, resolution)
        }
        _ => (Scale::Relative, margins.delay_relative),
    }
}

/// The first of the tests with the largest value.
fn largest<'a>(
    tests: impl Iterator<Item = &'a InfluenceTest>,
    value: impl Fn(&InfluenceTest) -> f64,
) -> Option<&'a InfluenceTest> {
    let mut found: Option<(&InfluenceTest, f64)> = None;
    for test in tests {
        let value = value(test);
        if found.is_none_or(|(_, most)| value > most) {
            found = Some((test, value));
        }
    }
    found.map(|(test, _)| test)
}

/// How many margins a worsening is: tests of different units can be ranked by it.
fn severity(test: &InfluenceTest, worsening: f64) -> f64 {
    let margin = test.numbers.margin;
    if margin > 0.0 {
        worsening / margin
    } else if worsening > 0.0 {
        f64::INFINITY
    } else {
        worsening
    }
}

/// How close the worst run of a test that holds is to its margin.
fn closeness(test: &InfluenceTest) -> f64 {
    severity(test, test.numbers.worst.unwrap_or(test.numbers.statistic))
}
