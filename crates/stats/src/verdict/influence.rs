//! Influence: does a guaranteed slice get worse service when another one overloads? Non-inferiority of
//! each indicator against the reference scenario, repetition by repetition.

use super::isolation::Skipped;
use super::repetitions::{Contrast, Rules};
use super::samples::Samples;
use super::{DecidedBy, Indicator, NotJudged, Outcome, Scale, TestName};
use crate::compare::Comparison;
use crate::description::{Margins, StudyDescription};
use crate::estimate::{Interval, Sample};
use crate::holm;
use crate::observations::{Observations, RunObservation};
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
    /// Repetitions that would decide it, by a power calculation; `None` where it is decided or no
    /// number within reason would.
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
        rules: Rules::of(&study.margins),
        drafts: Vec::new(),
        not_judged,
    };
    if let Some(reference) = study.scenarios.iter().position(|s| s.reference) {
        for slice in (0..study.slices.len()).filter(|&s| study.slices[s].guaranteed) {
            for scenario in (0..study.scenarios.len()).filter(|&s| !study.scenarios[s].reference) {
                comparing.compare_cells(slice, scenario, reference);
            }
        }
    }
    let (rules, drafts) = (comparing.rules, comparing.drafts);
    let raw: Vec<f64> = drafts.iter().map(|draft| draft.p_broken).collect();
    let count = raw.len();
    let tests: Vec<InfluenceTest> = drafts
        .into_iter()
        .zip(holm::holm_adjusted(&raw))
        .map(|(draft, p_broken)| draft.decide(p_broken, count, rules))
        .collect();
    conclude(study, tests)
}

fn conclude(study: &StudyDescription, tests: Vec<InfluenceTest>) -> InfluenceVerdict {
    let outcome = Outcome::of_all(tests.iter().map(|test| test.outcome));
    let of = |outcome: Outcome| tests.iter().filter(move |t| t.outcome == outcome);
    let deciding = match outcome {
        Outcome::Broken => largest(of(Outcome::Broken), |t| severity(t, t.numbers.statistic)),
        Outcome::Holds => largest(tests.iter(), closeness),
        _ => largest(of(Outcome::Inconclusive), |t| t.p_holds.min(t.p_broken)),
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
            Outcome::Inconclusive => repetitions_to_decide(&tests),
            _ => None,
        },
        tests,
    }
}

/// A test before the correction for many.
pub(super) struct Draft {
    pub numbers: DecidedBy,
    pub p_holds: f64,
    pub p_broken: f64,
    /// `None` for a single repetition.
    comparison: Option<Comparison>,
}

struct Comparing<'a> {
    study: &'a StudyDescription,
    observations: &'a Observations,
    policy: usize,
    rules: Rules,
    drafts: Vec<Draft>,
    not_judged: &'a mut Vec<NotJudged>,
}

impl<'a> Comparing<'a> {
    fn compare_cells(&mut self, slice: usize, scenario: usize, reference: usize) {
        let pairs = match self.comparable(slice, scenario, reference) {
            Ok(pairs) => pairs,
            Err(skipped) => return self.skip(slice, scenario, skipped),
        };
        let both = || pairs.iter().flat_map(Pair::both);
        let has_applications = has_applications(both(), slice);
        if !has_applications && both().any(|run| run.has_no_delays) {
            let why = "its delays are unknown: the clocks of the two ends disagree";
            self.skip(slice, scenario, Skipped::missing(why));
        }
        let margins = &self.study.margins;
        let margins = Margins {
            delay_resolution_ns: (margins.delay_resolution_ns)
                .max(idle_delay(pairs.iter().flat_map(Pair::both))),
            ..*margins
        };
        let smallest_ns = self.observations.smallest_delay_ns(self.policy, slice);
        let throughput = throughput_indicator(&pairs, slice, margins.throughput_relative);
        let indicators = if has_applications {
            self.of_applications(&pairs, slice, scenario)
        } else {
            Indicator::compared(margins.delay_of, throughput).to_vec()
        };
        for indicator in indicators {
            let values: Vec<(f64, f64)> = pairs
                .iter()
                .filter_map(|pair| {
                    let of = |run| indicator.of(run, slice, smallest_ns);
                    of(pair.treatment).zip(of(pair.reference))
                })
                .collect();
            let (treatment, reference): (Vec<f64>, Vec<f64>) = values.iter().copied().unzip();
            let Some(means) = Sample::of(&treatment).zip(Sample::of(&reference)) else {
                // Without a packet there is no delay; throughput and loss show that.
                continue;
            };
            if indicator.falls() && means.1.mean <= 0.0 {
                let why = "it received nothing in the reference scenario";
                return self.skip(slice, scenario, Skipped::missing(why));
            }
            let mut draft = test(
                indicator,
                Samples::Pairs(&values),
                &means,
                &margins,
                self.rules,
            );
            let name = &self.study.scenarios[scenario].name;
            draft.numbers.scenario = Some(name.clone());
            (draft.numbers.slice).clone_from(&self.study.slices[slice].name);
            self.drafts.push(draft);
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
        pairs.retain(|pair| sends(pair.treatment, slice));
        if pairs.is_empty() {
            return Err(Skipped::own("it sends nothing there"));
        }
        pairs.retain(|pair| sends(pair.reference, slice));
        if pairs.is_empty() {
            let why = "it sends nothing in the reference scenario";
            return Err(Skipped::missing(why));
        }
        Ok(pairs)
    }

    /// What is compared of a slice's applications. How long transfers take follows from what the slice got beyond its
    /// share, too, where the reference left it some.
    fn of_applications(
        &mut self,
        pairs: &[Pair<'_>],
        slice: usize,
        scenario: usize,
    ) -> Vec<Indicator> {
        let share = self.study.slices[slice].share_bits_per_second as f64;
        let most = share * (1.0 + self.study.margins.throughput_relative);
        let of_slice = pairs
            .iter()
            .filter_map(|pair| pair.reference.slices.get(slice));
        let served: Vec<f64> = of_slice.map(|slice| slice.served_bits_per_second).collect();
        let [goodput, times @ ..] = Indicator::of_applications(Indicator::GoodputWithinShare);
        if Sample::of(&served).is_none_or(|served| served.mean <= most) {
            return [goodput].into_iter().chain(times).collect();
        }
        let has_times = |pair: &Pair<'_>| {
            let is_there = |time: &Indicator| time.of(pair.reference, slice, 0).is_some();
            times.iter().any(is_there)
        };
        if pairs.iter().any(has_times) {
            let why = "the reference leaves it more than its share: times are not compared, only its goodput within the share";
            self.skip(slice, scenario, Skipped::own(why));
        }
        vec![goodput]
    }

    fn skip(&mut self, slice: usize, scenario: usize, skipped: Skipped) {
        let scenario = self.study.scenarios[scenario].name.clone();
        let slice = self.study.slices[slice].name.clone();
        self.not_judged.push(skipped.not_judged(scenario, slice));
    }
}

/// Whether a slice has applications in all of these runs.
pub(super) fn has_applications<'a>(
    mut runs: impl Iterator<Item = &'a RunObservation>,
    slice: usize,
) -> bool {
    let has_some = |run: &RunObservation| Some(run.slices.get(slice)?.applications.is_some());
    runs.all(|run| has_some(run) == Some(true))
}

/// Whether a slice sends anything in a run, after the transient.
pub(super) fn sends(run: &RunObservation, slice: usize) -> bool {
    run.slices
        .get(slice)
        .is_some_and(|slice| slice.steady.sent_frames > 0)
}

/// The received rate where a slice sends the same in both scenarios, within the margin, and else its share of what it
/// sends: whoever sends less receives less. TCP, and a paused host, send less *because* they
/// receive less, and are compared by their rate.
fn throughput_indicator(pairs: &[Pair<'_>], slice: usize, margin: f64) -> Indicator {
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
            Indicator::ReceivedShare
        }
        _ => Indicator::Throughput,
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

impl Draft {
    /// A treatment that cannot be worse, as the reference received nothing.
    pub fn cannot_worsen(indicator: Indicator, means: (Sample, Sample), rules: Rules) -> Self {
        let (treatment, reference) = means;
        Self {
            numbers: DecidedBy {
                test: TestName::PairedDifference,
                scenario: None,
                slice: String::new(),
                indicator: Some(indicator),
                reference: Some(reference.mean),
                treatment: Some(treatment.mean),
                statistic: 0.0,
                scale: Scale::Relative,
                interval: Interval::UNBOUNDED,
                margin: 0.0,
                repetitions: treatment.count.min(reference.count),
                repetitions_beyond: 0,
                varies: true,
                p_value: None,
            },
            p_holds: rules.p_rare(treatment.count, 0),
            p_broken: 1.0,
            comparison: None,
        }
    }

    pub fn decide(mut self, p_broken: f64, tests: usize, rules: Rules) -> InfluenceTest {
        let alpha = rules.alpha();
        let (outcome, p_value) = if self.p_holds <= alpha {
            (Outcome::Holds, self.p_holds)
        } else if p_broken <= alpha {
            (Outcome::Broken, p_broken)
        } else {
            (Outcome::Inconclusive, self.p_holds.min(p_broken))
        };
        self.numbers.p_value = self.comparison.map(|_| p_value);
        let (runs, beyond) = (self.numbers.repetitions, self.numbers.repetitions_beyond);
        let contrast = self.comparison.map(|comparison| {
            let numbers = &self.numbers;
            move |share: f64| contrast(&comparison, numbers, share)
        });
        let contrast = contrast.as_ref().map(|of| of as &dyn Fn(f64) -> Contrast);
        let repetitions_needed = (outcome == Outcome::Inconclusive)
            .then(|| rules.runs_to_decide((runs, beyond), tests, contrast))
            .flatten();
        InfluenceTest {
            outcome,
            numbers: self.numbers,
            p_holds: self.p_holds,
            p_broken,
            repetitions_needed,
        }
    }
}

/// Compare one indicator of a treatment and a reference; `means` are those of both.
pub(super) fn test(
    indicator: Indicator,
    samples: Samples<'_>,
    means: &(Sample, Sample),
    margins: &Margins,
    rules: Rules,
) -> Draft {
    let (treatment, reference) = means;
    let (is_ratio, scale, margin) = margin(indicator, reference.mean, margins);
    let comparison = samples.compare(is_ratio, means);
    let falls = indicator.falls();
    let sign = if falls { -1.0 } else { 1.0 };
    // A pair is a repetition; of independent samples the smaller one limits what is shown.
    let runs = treatment.count.min(reference.count);
    let numbers = DecidedBy {
        test: samples.test(is_ratio),
        scenario: None,
        slice: String::new(),
        indicator: Some(indicator),
        reference: Some(reference.mean),
        treatment: Some(treatment.mean),
        statistic: if is_ratio {
            sign * (treatment.mean / reference.mean - 1.0)
        } else {
            treatment.mean - reference.mean
        },
        scale,
        interval: worsening_bounds(comparison.as_ref(), indicator, rules.confidence, is_ratio),
        margin,
        repetitions: runs,
        repetitions_beyond: 0,
        varies: comparison.is_none_or(|comparison| !comparison.is_exact()),
        p_value: None,
    };
    let limit = limit(&numbers, 1.0);
    let beyond = samples.beyond(falls, |t, r| {
        let worse = if is_ratio {
            t - limit * r
        } else {
            t - r - limit
        };
        sign * worse > 0.0
    });
    let (p_holds, p_broken) = comparison.map_or((1.0, 1.0), |comparison| {
        let freedom = comparison.freedom();
        let p_values = |share| contrast(&comparison, &numbers, share).p_values_at(runs, freedom);
        let (within, _) = p_values(1.0);
        // Broken only if it would be so had the runs that were not seen shown no worsening.
        let (_, outside) = p_values(rules.seen_share(runs));
        (within.max(rules.p_rare(treatment.count, beyond)), outside)
    });
    Draft {
        numbers: DecidedBy {
            repetitions_beyond: beyond,
            ..numbers
        },
        p_holds,
        p_broken,
        comparison,
    }
}

/// The ratio or the difference that lies at the margin divided by `share`.
fn limit(numbers: &DecidedBy, share: f64) -> f64 {
    let margin = numbers.margin / share;
    let falls = numbers.indicator.is_some_and(Indicator::falls);
    match (numbers.scale == Scale::Relative, falls) {
        (true, true) => 1.0 - margin,
        (true, false) => 1.0 + margin,
        _ => margin,
    }
}

/// How far the treatment is beyond the margin divided by `share`.
fn contrast(comparison: &Comparison, numbers: &DecidedBy, share: f64) -> Contrast {
    let (distance, error) = comparison.distance_from(limit(numbers, share));
    let falls = numbers.indicator.is_some_and(Indicator::falls);
    Contrast {
        distance: if falls { -distance } else { distance },
        variance: error * error * f64::from(numbers.repetitions),
    }
}

/// The larger of the margins of an indicator, in the unit in which it is stated, and whether it is of a ratio.
fn margin(indicator: Indicator, reference: f64, margins: &Margins) -> (bool, Scale, f64) {
    let resolution = margins.delay_resolution_ns as f64;
    match indicator {
        _ if indicator.falls() => (true, Scale::Relative, margins.throughput_relative),
        Indicator::LossRatio => (false, Scale::RatioDifference, margins.loss_absolute),
        // Without delay in the reference there is no relative change.
        _ if reference <= 0.0 || resolution >= margins.delay_relative * reference => {
            (false, Scale::Nanoseconds, resolution)
        }
        _ => (true, Scale::Relative, margins.delay_relative),
    }
}

fn worsening_bounds(
    comparison: Option<&Comparison>,
    indicator: Indicator,
    confidence: f64,
    is_ratio: bool,
) -> Interval {
    let bounds = comparison.map_or(Interval::UNBOUNDED, |c| c.one_sided_bounds(confidence));
    match (is_ratio, indicator.falls()) {
        (true, true) => bounds.one_minus(),
        (true, false) => bounds.minus_one(),
        _ => bounds,
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

/// How close the bound of a test that holds is to its margin.
fn closeness(test: &InfluenceTest) -> f64 {
    severity(test, test.numbers.interval.high.unwrap_or(f64::INFINITY))
}

/// Every test that leans towards "holds" must be decided; of those that lean towards "broken",
/// one is enough.
fn repetitions_to_decide(tests: &[InfluenceTest]) -> Option<u32> {
    let open = || tests.iter().filter(|t| t.outcome == Outcome::Inconclusive);
    let leans_to_broken = |t: &&InfluenceTest| t.numbers.statistic > t.numbers.margin;
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
