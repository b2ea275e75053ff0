//! Performance isolation: non-inferiority of each guaranteed slice under another slice's overload.

use super::{BoundCheck, DecidedBy, Indicator, Outcome, Scale, TestName, bound};
use crate::compare::{self, Comparison};
use crate::description::{Margins, StudyDescription};
use crate::estimate::{Interval, Sample, valid_confidence};
use crate::holm;
use crate::observations::{Observations, RunObservation};
use crate::power;
use serde::{Deserialize, Serialize};

/// The verdict on performance isolation, and every test behind it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IsolationVerdict {
    /// `Holds`, `Broken`, `Inconclusive` or `NotTested`.
    pub outcome: Outcome,
    /// Where it is broken: the worst breach. Where it holds: the closest call. Where it is
    /// inconclusive: the least decided test.
    pub decided_by: Option<DecidedBy>,
    /// The first scenario, in the order of the study, in which it is broken.
    pub first_broken: Option<String>,
    /// Repetitions that would decide it, by a power calculation; `None` where it is decided or no
    /// number within reason would.
    pub repetitions_needed: Option<u32>,
    /// Every test: by slice, scenario, indicator.
    pub tests: Vec<IsolationTest>,
    /// Proved bounds of delay against the largest delays measured; empty where the policy proves
    /// none. One packet above its bound breaks isolation, whatever the tests say.
    pub bounds: Vec<BoundCheck>,
    /// What could not be judged.
    pub not_judged: Vec<NotJudged>,
}

/// One test: one indicator of one slice in one scenario against the reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IsolationTest {
    /// `Holds`, `Broken` or `Inconclusive`.
    pub outcome: Outcome,
    /// The numbers; `p_value` is that of the outcome.
    pub numbers: DecidedBy,
    /// Small where the worsening is within the margin. Not corrected: isolation holds only if all
    /// tests do (an intersection–union test, R. L. Berger 1982).
    pub p_holds: f64,
    /// Small where the worsening is beyond the margin. Corrected for all tests of the policy
    /// (Holm): one of them breaks it.
    pub p_broken: f64,
    /// Repetitions that would decide it; `None` where it is decided or no number within reason
    /// would.
    pub repetitions_needed: Option<u32>,
}

/// A slice that could not be judged in a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotJudged {
    /// Scenario.
    pub scenario: String,
    /// Slice.
    pub slice: String,
    /// Why, in words.
    pub why: String,
    /// True where isolation cannot be said to hold without it.
    pub missing: bool,
    /// True where it is only the bound of its delay that could not be judged.
    #[serde(default)]
    pub only_bound: bool,
}

/// Judge one policy, told by its place in the study.
pub(super) fn judge(
    study: &StudyDescription,
    observations: &Observations,
    policy: usize,
) -> IsolationVerdict {
    let mut judgement = Judgement {
        study,
        drafts: Vec::new(),
        bounds: bound::check(study, observations, policy),
        not_judged: bound::not_judged(study, policy),
    };
    if let Some(reference) = study.scenarios.iter().position(|s| s.reference) {
        let reference: Vec<_> = observations.cell(policy, reference).collect();
        for slice in (0..study.slices.len()).filter(|&s| study.slices[s].guaranteed) {
            for scenario in (0..study.scenarios.len()).filter(|&s| !study.scenarios[s].reference) {
                let treatment: Vec<_> = observations.cell(policy, scenario).collect();
                judgement.compare_cells(slice, scenario, &reference, &treatment);
            }
        }
    }
    judgement.conclude()
}

const INDICATORS: [Indicator; 4] = [
    Indicator::Throughput,
    Indicator::LossRatio,
    Indicator::DelayMean,
    Indicator::DelayP99,
];

impl Indicator {
    /// The indicator of a slice in one run; `None` where the run has none.
    fn of(self, run: &RunObservation, slice: usize) -> Option<f64> {
        let figures = &run.slices.get(slice)?.steady;
        let delay = &figures.delay;
        match self {
            Self::Throughput => Some(figures.throughput_bits_per_second),
            Self::LossRatio => (figures.sent_frames > 0).then_some(figures.loss_ratio),
            Self::DelayMean => (delay.samples > 0).then_some(delay.mean_ns),
            Self::DelayP99 => (delay.samples > 0).then_some(delay.p99_ns as f64),
        }
    }
}

/// A test before the correction for many.
struct Draft {
    numbers: DecidedBy,
    p_holds: f64,
    p_broken: f64,
    /// Distance of the contrast from the margin, and its variance with one repetition each:
    /// `None` for a single repetition.
    contrast: Option<(f64, f64)>,
}

struct Judgement<'a> {
    study: &'a StudyDescription,
    drafts: Vec<Draft>,
    bounds: Vec<BoundCheck>,
    not_judged: Vec<NotJudged>,
}

impl Judgement<'_> {
    fn compare_cells(
        &mut self,
        slice: usize,
        scenario: usize,
        reference: &[&RunObservation],
        treatment: &[&RunObservation],
    ) {
        let description = &self.study.slices[slice];
        let scenario = &self.study.scenarios[scenario].name;
        let margins = &self.study.margins;
        let margins = &Margins {
            delay_resolution_ns: (margins.delay_resolution_ns)
                .max(idle_delay(reference.iter().chain(treatment))),
            ..*margins
        };
        let mut skip = |why: &str, missing| {
            self.not_judged.push(NotJudged {
                scenario: scenario.clone(),
                slice: description.name.clone(),
                why: why.to_owned(),
                missing,
                only_bound: false,
            });
        };
        if reference.is_empty() {
            return skip("the reference scenario has no runs", true);
        }
        if treatment.is_empty() {
            return skip("the scenario has no runs", true);
        }
        let most = description.share_bits_per_second as f64 * (1.0 + margins.throughput_relative);
        let offers_more = |runs: &[&RunObservation]| {
            mean_offered(runs, slice).is_some_and(|offered| offered > most)
        };
        if offers_more(treatment) && !offers_more(reference) {
            return skip("it exceeds its own guarantee there", false);
        }
        if reference
            .iter()
            .chain(treatment)
            .any(|run| run.has_no_delays)
        {
            let why = "its delays are not known: the clocks of the two ends disagree";
            skip(why, true);
        }
        for indicator in INDICATORS {
            let sample = |runs: &[&RunObservation]| {
                let values: Vec<_> = runs.iter().filter_map(|r| indicator.of(r, slice)).collect();
                Sample::of(&values)
            };
            let (Some(reference), Some(treatment)) = (sample(reference), sample(treatment)) else {
                // Without a packet there is no delay; throughput and loss tell of that.
                continue;
            };
            if indicator == Indicator::Throughput && reference.mean <= 0.0 {
                skip("it received nothing in the reference scenario", true);
                break;
            }
            let mut draft = test(indicator, &treatment, &reference, margins);
            draft.numbers.scenario = Some(scenario.clone());
            draft.numbers.slice.clone_from(&description.name);
            self.drafts.push(draft);
        }
    }

    fn conclude(self) -> IsolationVerdict {
        let confidence = valid_confidence(self.study.margins.confidence);
        let raw: Vec<f64> = self.drafts.iter().map(|draft| draft.p_broken).collect();
        let count = raw.len();
        let tests: Vec<IsolationTest> = self
            .drafts
            .into_iter()
            .zip(holm::holm_adjusted(&raw))
            .map(|(draft, p_broken)| draft.decide(p_broken, count, confidence))
            .collect();

        let of = |outcome: Outcome| tests.iter().filter(move |t| t.outcome == outcome);
        let over_bound = |name: &String| {
            self.bounds
                .iter()
                .any(|check| check.outcome == Outcome::Broken && check.scenario == *name)
        };
        let breaks_bound = self.bounds.iter().any(|c| c.outcome == Outcome::Broken);
        let outcome = if breaks_bound || of(Outcome::Broken).next().is_some() {
            Outcome::Broken
        } else if tests.is_empty() {
            Outcome::NotTested
        } else if of(Outcome::Inconclusive).next().is_some()
            || self.not_judged.iter().any(|n| n.missing)
        {
            Outcome::Inconclusive
        } else {
            Outcome::Holds
        };
        let deciding = match outcome {
            Outcome::Broken => largest(of(Outcome::Broken), |t| severity(t, t.numbers.statistic)),
            Outcome::Holds => largest(tests.iter(), closeness),
            _ => largest(of(Outcome::Inconclusive), |t| t.p_holds.min(t.p_broken)),
        };
        IsolationVerdict {
            outcome,
            decided_by: deciding.map(|test| test.numbers.clone()),
            first_broken: self
                .study
                .scenarios
                .iter()
                .map(|s| &s.name)
                .find_map(|name| {
                    let is_broken = over_bound(name)
                        || of(Outcome::Broken).any(|t| t.numbers.scenario.as_ref() == Some(name));
                    is_broken.then(|| name.clone())
                }),
            repetitions_needed: match outcome {
                Outcome::Inconclusive => repetitions_to_decide(&tests),
                _ => None,
            },
            tests,
            bounds: self.bounds,
            not_judged: self.not_judged,
        }
    }
}

/// What the delays of these runs cannot resolve: the mean of their idle 99th percentiles, ns.
fn idle_delay<'a>(runs: impl Iterator<Item = &'a &'a RunObservation>) -> u64 {
    let idle: Vec<u64> = runs.filter_map(|run| run.idle_delay_p99_ns).collect();
    let sum = idle.iter().copied().fold(0, u64::saturating_add);
    sum.checked_div(idle.len() as u64).unwrap_or(0)
}

fn mean_offered(runs: &[&RunObservation], slice: usize) -> Option<f64> {
    let values: Vec<f64> = runs
        .iter()
        .filter_map(|run| Some(run.slices.get(slice)?.steady.offered_bits_per_second))
        .collect();
    Sample::of(&values).map(|sample| sample.mean)
}

impl Draft {
    fn decide(mut self, p_broken: f64, tests: usize, confidence: f64) -> IsolationTest {
        let alpha = 1.0 - confidence;
        let (outcome, p_value) = if self.p_holds <= alpha {
            (Outcome::Holds, self.p_holds)
        } else if p_broken <= alpha {
            (Outcome::Broken, p_broken)
        } else {
            (Outcome::Inconclusive, self.p_holds.min(p_broken))
        };
        self.numbers.p_value = self.contrast.map(|_| p_value);
        let repetitions_needed = match (outcome, self.contrast) {
            (Outcome::Inconclusive, None) => Some(2),
            (Outcome::Inconclusive, Some((distance, variance))) => {
                // To show a breach, the strictest step of Holm's correction must be passed.
                let level = if distance > 0.0 {
                    1.0 - alpha / tests.max(1) as f64
                } else {
                    confidence
                };
                power::repetitions_needed(distance, variance, level, 2)
            }
            _ => None,
        };
        IsolationTest {
            outcome,
            numbers: self.numbers,
            p_holds: self.p_holds,
            p_broken,
            repetitions_needed,
        }
    }
}

/// Compare one indicator of a treatment with the reference.
fn test(indicator: Indicator, treatment: &Sample, reference: &Sample, margins: &Margins) -> Draft {
    let resolution = margins.delay_resolution_ns as f64;
    let (test, scale, margin) = match indicator {
        Indicator::Throughput => (
            TestName::FiellerRatio,
            Scale::Relative,
            margins.throughput_relative,
        ),
        Indicator::LossRatio => (
            TestName::WelchDifference,
            Scale::RatioDifference,
            margins.loss_absolute,
        ),
        Indicator::DelayMean | Indicator::DelayP99 => {
            // The larger of the two margins, in the unit in which it is stated.
            if resolution >= margins.delay_relative * reference.mean {
                (TestName::WelchDifference, Scale::Nanoseconds, resolution)
            } else {
                (
                    TestName::FiellerRatio,
                    Scale::Relative,
                    margins.delay_relative,
                )
            }
        }
    };
    let falls = indicator == Indicator::Throughput;
    // The contrast is treatment − slope × reference; at the margin it is `limit` (or a ratio of
    // that).
    let (comparison, limit, slope, offset) = match test {
        TestName::FiellerRatio => {
            let limit = if falls { 1.0 - margin } else { 1.0 + margin };
            (compare::ratio(treatment, reference), limit, limit, 0.0)
        }
        _ => (
            compare::difference(treatment, reference),
            margin,
            1.0,
            margin,
        ),
    };
    let distance = treatment.mean - slope * reference.mean - offset;
    let variance = treatment
        .variance
        .zip(reference.variance)
        .map(|(t, r)| t + slope * slope * r);
    let worsening = match (test, falls) {
        (TestName::FiellerRatio, true) => 1.0 - treatment.mean / reference.mean,
        (TestName::FiellerRatio, false) => treatment.mean / reference.mean - 1.0,
        _ => treatment.mean - reference.mean,
    };
    let (p_holds, p_broken) =
        comparison.map_or((1.0, 1.0), |comparison| p_values(&comparison, limit, falls));
    let bounds = comparison.map_or(Interval::UNBOUNDED, |comparison| {
        comparison.one_sided_bounds(margins.confidence)
    });
    let interval = match (test, falls) {
        (TestName::FiellerRatio, true) => bounds.one_minus(),
        (TestName::FiellerRatio, false) => bounds.minus_one(),
        _ => bounds,
    };
    Draft {
        numbers: DecidedBy {
            test,
            scenario: None,
            slice: String::new(),
            indicator: Some(indicator),
            reference: Some(reference.mean),
            treatment: Some(treatment.mean),
            statistic: worsening,
            scale,
            interval,
            margin,
            p_value: None,
        },
        p_holds,
        p_broken,
        contrast: variance.map(|variance| (if falls { -distance } else { distance }, variance)),
    }
}

/// p-values of "within the margin" and "beyond it". The margin itself is within.
fn p_values(comparison: &Comparison, limit: f64, falls: bool) -> (f64, f64) {
    if comparison.is_exact() {
        let estimate = comparison.estimate();
        let within = if falls {
            estimate >= limit
        } else {
            estimate <= limit
        };
        return if within { (0.0, 1.0) } else { (1.0, 0.0) };
    }
    let (above, below) = (comparison.p_above(limit), comparison.p_below(limit));
    if falls {
        (above, below)
    } else {
        (below, above)
    }
}

/// The first of the tests with the largest value.
fn largest<'a>(
    tests: impl Iterator<Item = &'a IsolationTest>,
    value: impl Fn(&IsolationTest) -> f64,
) -> Option<&'a IsolationTest> {
    let mut found: Option<(&IsolationTest, f64)> = None;
    for test in tests {
        let value = value(test);
        if found.is_none_or(|(_, most)| value > most) {
            found = Some((test, value));
        }
    }
    found.map(|(test, _)| test)
}

/// How many margins a worsening is: tests of different units can be ranked by it.
fn severity(test: &IsolationTest, worsening: f64) -> f64 {
    let margin = test.numbers.margin;
    if margin > 0.0 {
        worsening / margin
    } else if worsening > 0.0 {
        f64::INFINITY
    } else {
        worsening
    }
}

/// How near the bound of a test that holds comes to its margin.
fn closeness(test: &IsolationTest) -> f64 {
    severity(test, test.numbers.interval.high.unwrap_or(f64::INFINITY))
}

/// Every test that leans towards "holds" must be decided; of those that lean towards "broken",
/// one is enough.
fn repetitions_to_decide(tests: &[IsolationTest]) -> Option<u32> {
    let open = || tests.iter().filter(|t| t.outcome == Outcome::Inconclusive);
    let leans_to_broken = |t: &&IsolationTest| t.numbers.statistic > t.numbers.margin;
    if open().any(|t| leans_to_broken(&t)) {
        return open()
            .filter(leans_to_broken)
            .filter_map(|t| t.repetitions_needed)
            .min();
    }
    open()
        .map(|t| t.repetitions_needed)
        .collect::<Option<Vec<_>>>()?
        .into_iter()
        .max()
}
