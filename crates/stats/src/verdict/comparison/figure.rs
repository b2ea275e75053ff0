//! One indicator of two results: is the mean of one worse than that of the other by more than the margin?

use super::super::Indicator;
use super::super::Scale;
use super::super::influence::margin;
use super::super::runs::{Run, RunCount};
use super::{Change, ComparedNumbers, Outcome, TestName};
use crate::compare::{self, Comparison};
use crate::description::Margins;
use crate::estimate::{Interval, Sample};
use crate::power;

/// The values of one indicator on both sides, one per repetition.
#[derive(Debug, Clone, Copy)]
pub(super) enum Samples<'a> {
    /// (treatment, reference): the repetitions of both share their random numbers.
    Pairs(&'a [(f64, f64)]),
    /// Treatment and reference have nothing in common.
    Independent(&'a [f64], &'a [f64]),
}

impl Samples<'_> {
    fn compare(self, is_ratio: bool, means: &(Sample, Sample)) -> Option<Comparison> {
        let (treatment, reference) = means;
        match (self, is_ratio) {
            (Self::Pairs(pairs), true) => compare::paired_ratio(pairs),
            (Self::Pairs(pairs), false) => compare::paired_difference(pairs),
            (Self::Independent(..), true) => compare::ratio(treatment, reference),
            (Self::Independent(..), false) => compare::difference(treatment, reference),
        }
    }

    const fn test(self, is_ratio: bool) -> TestName {
        match (self, is_ratio) {
            (Self::Pairs(_), true) => TestName::PairedRatio,
            (Self::Pairs(_), false) => TestName::PairedDifference,
            (Self::Independent(..), true) => TestName::IndependentRatio,
            (Self::Independent(..), false) => TestName::IndependentDifference,
        }
    }

    /// Runs of the treatment, and those beyond the margin. A run without a partner is compared with the worst of the reference: with a
    /// fixed threshold their number is binomial.
    fn count(self, none: RunCount, falls: bool, is_beyond: impl Fn(f64, f64) -> bool) -> RunCount {
        let worse = if falls { f64::min } else { f64::max };
        let run = |treatment: f64, reference: f64| match is_beyond(treatment, reference) {
            true => Run::Beyond,
            false => Run::Within,
        };
        match self {
            Self::Pairs(pairs) => none.with(pairs.iter().map(|(t, r)| run(*t, *r))),
            Self::Independent(treatment, reference) => {
                let worst = reference.iter().copied().reduce(worse).unwrap_or(0.0);
                none.with(treatment.iter().map(|t| run(*t, worst)))
            }
        }
    }
}

/// A test in one direction.
pub(super) struct Test {
    pub numbers: ComparedNumbers,
    /// Runs of the treatment.
    runs: RunCount,
    /// Small where the treatment is not worse by more than the margin. Not corrected.
    pub p_not_worse: f64,
    /// Small where it is. Not corrected.
    pub p_worse: f64,
    /// `None` for a single repetition.
    comparison: Option<Comparison>,
}

impl Test {
    /// Of a treatment that cannot be worse, as the reference received nothing.
    pub fn cannot_worsen(indicator: Indicator, means: (Sample, Sample), none: RunCount) -> Self {
        let (treatment, reference) = means;
        Self {
            numbers: ComparedNumbers {
                test: TestName::PairedDifference,
                scenario: String::new(),
                slice: String::new(),
                indicator,
                reference: reference.mean,
                treatment: treatment.mean,
                statistic: 0.0,
                scale: Scale::Relative,
                interval: Interval::UNBOUNDED,
                margin: 0.0,
                repetitions: treatment.count.min(reference.count),
                repetitions_beyond: 0,
                varies: true,
                p_value: None,
            },
            runs: none.with((0..treatment.count).map(|_| Run::Within)),
            p_not_worse: 0.0,
            p_worse: 1.0,
            comparison: None,
        }
    }

    /// Compare one indicator of a treatment and a reference; `means` are those of both.
    pub fn of(
        indicator: Indicator,
        samples: Samples<'_>,
        means: &(Sample, Sample),
        margins: &Margins,
    ) -> Self {
        let (treatment, reference) = means;
        let none = RunCount::none(margins);
        let (scale, margin) = margin(indicator, reference.mean, margins);
        let is_ratio = scale == Scale::Relative;
        let comparison = samples.compare(is_ratio, means);
        let falls = indicator.falls();
        let sign = if falls { -1.0 } else { 1.0 };
        let numbers = ComparedNumbers {
            test: samples.test(is_ratio),
            scenario: String::new(),
            slice: String::new(),
            indicator,
            reference: reference.mean,
            treatment: treatment.mean,
            statistic: if is_ratio {
                sign * (treatment.mean / reference.mean - 1.0)
            } else {
                treatment.mean - reference.mean
            },
            scale,
            interval: worsening_bounds(comparison.as_ref(), indicator, none.confidence, is_ratio),
            margin,
            // A pair is a repetition; of independent samples the smaller one limits what is shown.
            repetitions: treatment.count.min(reference.count),
            repetitions_beyond: 0,
            varies: comparison.is_none_or(|comparison| !comparison.is_exact()),
            p_value: None,
        };
        let limit = limit(&numbers);
        let runs = samples.count(none, falls, |t, r| {
            let worse = if is_ratio {
                t - limit * r
            } else {
                t - r - limit
            };
            sign * worse > 0.0
        });
        let p_values = comparison.map_or((1.0, 1.0), |comparison| {
            let (above, below) = (comparison.p_above(limit), comparison.p_below(limit));
            if falls {
                (above, below)
            } else {
                (below, above)
            }
        });
        Self {
            numbers: ComparedNumbers {
                repetitions_beyond: runs.beyond,
                ..numbers
            },
            runs,
            p_not_worse: p_values.0,
            p_worse: p_values.1,
            comparison,
        }
    }

    /// Whether the treatment is shown not to be worse: its mean is within the margin, and so are enough runs.
    fn is_not_worse(&self) -> bool {
        self.runs.outcome(1) == Outcome::Holds && self.p_not_worse <= self.alpha()
    }

    fn alpha(&self) -> f64 {
        1.0 - self.runs.confidence
    }

    /// Repetitions of each side that would show on which side of its margin the mean is, one of `tests`.
    pub fn repetitions_needed(&self, tests: usize) -> Option<u32> {
        let of_runs = || match self.runs.outcome(1) {
            Outcome::Holds => Some(self.runs.runs),
            _ => self.runs.runs_needed(1),
        };
        let Some(comparison) = self.comparison else {
            return of_runs();
        };
        let (distance, error) = comparison.distance_from(limit(&self.numbers));
        let variance = error * error * f64::from(self.numbers.repetitions);
        let is_worse = (distance > 0.0) != self.numbers.indicator.falls();
        let level = match is_worse {
            // The strictest step of Holm's correction must be passed.
            true => 1.0 - self.alpha() / tests.max(1) as f64,
            false => self.runs.confidence,
        };
        let of_mean = power::fewest(|runs| power::suffices(runs, distance, variance, level));
        if is_worse {
            return of_mean;
        }
        of_mean.zip(of_runs()).map(|(mean, runs)| mean.max(runs))
    }
}

/// What the two tests come to together: is B worse, and is A?
pub(super) fn outcome((worse, p_worse): (&Test, f64), (better, p_better): (&Test, f64)) -> Change {
    if p_worse <= worse.alpha() {
        Change::Worse
    } else if p_better <= worse.alpha() {
        Change::Better
    } else if !worse.is_not_worse() {
        Change::Inconclusive
    } else if better.is_not_worse() {
        Change::Same
    } else {
        Change::NotWorse
    }
}

/// The ratio or the difference that lies at the margin.
fn limit(numbers: &ComparedNumbers) -> f64 {
    match (numbers.scale == Scale::Relative, numbers.indicator.falls()) {
        (true, true) => 1.0 - numbers.margin,
        (true, false) => 1.0 + numbers.margin,
        _ => numbers.margin,
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
