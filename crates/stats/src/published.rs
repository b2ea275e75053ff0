//! Published figures compared with ours: the value, its interval, the difference, and whether they
//! agree.

use crate::compare::{self, Comparison};
use crate::description::{Expected, PublishedFigure, StudyDescription};
use crate::estimate::{Interval, Sample};
use crate::ks::{self, KolmogorovSmirnov};
use crate::observations::{Observations, RunObservation};
use crate::quantity::{Quantity, Subject};
use serde::{Deserialize, Serialize};

/// A published figure and ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedComparison {
    /// The published figure.
    pub figure: PublishedFigure,
    /// Outcome of the comparison.
    pub outcome: PublishedOutcome,
    /// Ours, in the cell that decides: of the cells with this outcome, the one with the largest deviation;
    /// `None` if not measured.
    pub ours: Option<OurFigure>,
    /// Ours − published, in the metric's unit: published is the value, or the end of the range
    /// that is nearest; 0 within a range.
    pub difference: Option<f64>,
    /// The same relative to the published value; `None` where that is 0.
    pub difference_relative: Option<f64>,
    /// Cells that the figure was compared in.
    pub cells: u32,
    /// Cells that agree.
    pub cells_agreeing: u32,
}

/// Outcome of comparing a published figure with ours; that of several cells is the last of these that a cell has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishedOutcome {
    /// The 90 % interval of ours lies inside what was published, in every cell the publication covers.
    Agrees,
    /// Neither is shown: more repetitions would decide, unless ours lies at the edge of what was published.
    Undecided,
    /// The interval of ours lies outside what was published in some cell, after correction for all cells
    /// that the study compares.
    Differs,
    /// No run has the figure, or the study has no such cell.
    NotMeasured,
}

/// Our value of a published figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OurFigure {
    /// Policy.
    pub policy: String,
    /// Scenario.
    pub scenario: String,
    /// Slice; `None` for a figure of all slices together.
    pub slice: Option<String>,
    /// The value, in the metric's unit, or the relative change.
    pub value: f64,
    /// Two-sided 90 % interval of it; unbounded for extremes and single repetitions.
    pub interval: Interval,
    /// Runs it is made from.
    pub repetitions: u32,
    /// p-value of a Kolmogorov–Smirnov statistic.
    pub p_value: Option<f64>,
}

/// Probability of error that decisions share: two-sided for "agrees", over all cells for "differs".
const ERROR: f64 = 0.1;

/// Compare every published figure of `study` with ours, in the order of the study.
///
/// "Differs" is corrected (Bonferroni) for the number of cells that all figures of the study are compared in,
/// whatever their basis: a figure of several cells differs where one of them does, so that each is a test.
/// "Agrees" needs no correction, because a figure agrees only where all its cells do.
///
/// A cell without an interval (a single repetition, a smallest delay, a Kolmogorov–Smirnov distance) is decided
/// by its value alone.
#[must_use]
pub fn compare(study: &StudyDescription, observations: &Observations) -> Vec<PublishedComparison> {
    let figures = study.published.iter();
    let measured: Vec<_> = figures
        .map(|figure| (figure, cells_of(study, observations, figure)))
        .collect();
    let tests: usize = measured.iter().map(|(_, cells)| cells.len()).sum();
    let confidence = 1.0 - ERROR / tests.max(1) as f64;
    let compared = measured.into_iter();
    compared
        .map(|(figure, cells)| compare_figure(figure, cells, confidence))
        .collect()
}

/// Our value in every cell that a figure applies to and that has one.
fn cells_of(
    study: &StudyDescription,
    observations: &Observations,
    figure: &PublishedFigure,
) -> Vec<MeasuredCell> {
    let mut slices = study.slices.iter();
    let slice = (figure.slice.as_ref()).map(|name| slices.position(|slice| slice.name == *name));
    if slice == Some(None) {
        return Vec::new();
    }
    let measure = Measure {
        study,
        observations,
        figure,
        slice: slice.flatten(),
    };
    let mut cells = Vec::new();
    for policy in places(&study.policies, &figure.policies, |p| &p.name) {
        for scenario in places(&study.scenarios, &figure.scenarios, |s| &s.name) {
            cells.extend(measure.cell(policy, scenario));
        }
    }
    if figure.metric.quantity == Quantity::DelayMin && figure.relative_to.is_none() {
        // The smallest of all packets is one value, wherever it was seen.
        cells = cells
            .into_iter()
            .min_by(|a, b| a.ours.value.total_cmp(&b.ours.value))
            .into_iter()
            .collect();
    }
    cells
}

fn compare_figure(
    figure: &PublishedFigure,
    cells: Vec<MeasuredCell>,
    confidence: f64,
) -> PublishedComparison {
    let expected = figure.expected;
    let count = |cells: usize| u32::try_from(cells).unwrap_or(u32::MAX);
    let decided: Vec<_> = cells
        .into_iter()
        .map(|cell| (cell.outcome(expected, confidence), cell.ours))
        .collect();
    let agrees = |(outcome, _): &&(_, _)| *outcome == PublishedOutcome::Agrees;
    let (cells, cells_agreeing) = (decided.len(), decided.iter().filter(agrees).count());
    let rank = |(outcome, ours): &(_, OurFigure)| (*outcome, expected.excess(ours.value));
    let deciding = decided
        .into_iter()
        .reduce(|worst, cell| match rank(&cell) > rank(&worst) {
            true => cell,
            false => worst,
        });
    let (outcome, ours) = deciding
        .map_or((PublishedOutcome::NotMeasured, None), |(outcome, ours)| {
            (outcome, Some(ours))
        });
    let published = ours.as_ref().map(|our| expected.nearest(our.value));
    let difference = ours
        .as_ref()
        .zip(published)
        .map(|(our, published)| our.value - published);
    PublishedComparison {
        figure: figure.clone(),
        outcome,
        ours,
        difference,
        difference_relative: difference
            .zip(published.filter(|&p| p != 0.0))
            .map(|(difference, published)| difference / published.abs()),
        cells: count(cells),
        cells_agreeing: count(cells_agreeing),
    }
}

impl Expected {
    /// The published value nearest to `ours`.
    #[must_use]
    pub fn nearest(&self, ours: f64) -> f64 {
        match *self {
            Self::About { value, .. } | Self::AtLeast { value } | Self::AtMost { value } => value,
            Self::Between { low, high } => ours.max(low).min(high),
        }
    }

    /// Range that agrees.
    #[must_use]
    pub fn range(&self) -> Interval {
        let (low, high) = match *self {
            Self::About { value, tolerance } => {
                let allowed = if value == 0.0 {
                    tolerance
                } else {
                    tolerance * value.abs()
                };
                (Some(value - allowed), Some(value + allowed))
            }
            Self::Between { low, high } => (Some(low), Some(high)),
            Self::AtLeast { value } => (Some(value), None),
            Self::AtMost { value } => (None, Some(value)),
        };
        Interval { low, high }
    }

    /// Distance of `ours` outside the range that agrees; 0 or negative inside.
    #[must_use]
    pub fn excess(&self, ours: f64) -> f64 {
        let Interval { low, high } = self.range();
        let below = low.map_or(f64::NEG_INFINITY, |low| low - ours);
        below.max(high.map_or(f64::NEG_INFINITY, |high| ours - high))
    }
}

/// Indices in the study of those that a figure names: all if it names none.
fn places<T>(all: &[T], named: &[String], name: impl Fn(&T) -> &String) -> Vec<usize> {
    (0..all.len())
        .filter(|&i| named.is_empty() || named.contains(name(&all[i])))
        .collect()
}

/// Our figure in one cell, and its distribution over repetitions.
struct MeasuredCell {
    ours: OurFigure,
    spread: Spread,
}

/// Distribution of our figure over repetitions.
enum Spread {
    /// Not known: an extreme, or a single repetition.
    Unknown,
    /// Student's, of a mean.
    Mean(Sample),
    /// Fieller's, of a ratio less 1.
    Ratio(Comparison),
}

impl Spread {
    /// Two-sided interval; `None` where there is no distribution.
    fn interval(&self, confidence: f64) -> Option<Interval> {
        match self {
            Self::Unknown => None,
            Self::Mean(sample) => Some(sample.interval(confidence)),
            Self::Ratio(ratio) => Some(ratio.interval(confidence).minus_one()),
        }
    }
}

impl MeasuredCell {
    /// Outcome in this cell, with the confidence that "differs" needs.
    fn outcome(&self, expected: Expected, confidence: f64) -> PublishedOutcome {
        let range = expected.range();
        let value = Interval {
            low: Some(self.ours.value),
            high: Some(self.ours.value),
        };
        let interval = |confidence| self.spread.interval(confidence).unwrap_or(value);
        if interval(1.0 - ERROR).is_inside(range) {
            PublishedOutcome::Agrees
        } else if interval(confidence).is_outside(range) {
            PublishedOutcome::Differs
        } else {
            PublishedOutcome::Undecided
        }
    }
}

/// One figure, measured in one slice or all together.
struct Measure<'a> {
    study: &'a StudyDescription,
    observations: &'a Observations,
    figure: &'a PublishedFigure,
    slice: Option<usize>,
}

impl Measure<'_> {
    fn cell(&self, policy: usize, scenario: usize) -> Option<MeasuredCell> {
        let mut p_value = None;
        let (value, spread, repetitions) = match self.figure.metric.quantity {
            Quantity::IatKolmogorovSmirnov => {
                let (test, repetitions) = self.largest_distance(policy, scenario)?;
                p_value = Some(test.p_value);
                (test.statistic, Spread::Unknown, repetitions)
            }
            Quantity::DelayMin => {
                let (value, repetitions) = self.smallest(policy, scenario)?;
                (value, Spread::Unknown, repetitions)
            }
            _ => self.mean(policy, scenario)?,
        };
        let interval = spread.interval(1.0 - ERROR);
        let ours = OurFigure {
            policy: self.study.policies.get(policy)?.name.clone(),
            scenario: self.study.scenarios.get(scenario)?.name.clone(),
            slice: self.figure.slice.clone(),
            value,
            interval: interval.unwrap_or(Interval::UNBOUNDED),
            repetitions,
            p_value,
        };
        Some(MeasuredCell { ours, spread })
    }

    /// The cell that a relative figure is compared with: `None` where the study has none, or
    /// where it is the same cell.
    fn other(&self, policy: usize, scenario: usize) -> Option<(usize, usize)> {
        let cell = self.figure.relative_to.as_ref()?;
        let other_policy = match &cell.policy {
            Some(name) => self.study.policies.iter().position(|p| &p.name == name)?,
            None => policy,
        };
        let other_scenario = match &cell.scenario {
            Some(name) => self.study.scenarios.iter().position(|s| &s.name == name)?,
            None => scenario,
        };
        ((other_policy, other_scenario) != (policy, scenario))
            .then_some((other_policy, other_scenario))
    }

    fn values(&self, policy: usize, scenario: usize) -> Vec<f64> {
        let subject = Subject {
            slice: self.slice.zip(self.figure.slice.as_deref()),
            queue: self.figure.queue.as_deref(),
        };
        let metric = self.figure.metric;
        let value = |run: &RunObservation| metric.of(run, subject);
        self.observations.values(policy, scenario, value)
    }

    fn mean(&self, policy: usize, scenario: usize) -> Option<(f64, Spread, u32)> {
        let own = Sample::of(&self.values(policy, scenario))?;
        if self.figure.relative_to.is_none() {
            let spread = match own.variance {
                Some(_) => Spread::Mean(own),
                None => Spread::Unknown,
            };
            return Some((own.mean, spread, own.count));
        }
        let (other_policy, other_scenario) = self.other(policy, scenario)?;
        let other = Sample::of(&self.values(other_policy, other_scenario))?;
        if other.mean <= 0.0 {
            return None;
        }
        let spread = compare::ratio(&own, &other).map_or(Spread::Unknown, Spread::Ratio);
        Some((own.mean / other.mean - 1.0, spread, own.count))
    }

    fn smallest(&self, policy: usize, scenario: usize) -> Option<(f64, u32)> {
        let least = |values: &[f64]| values.iter().copied().reduce(f64::min);
        let values = self.values(policy, scenario);
        let own = least(&values)?;
        let repetitions = u32::try_from(values.len()).unwrap_or(u32::MAX);
        if self.figure.relative_to.is_none() {
            return Some((own, repetitions));
        }
        let (other_policy, other_scenario) = self.other(policy, scenario)?;
        let other = least(&self.values(other_policy, other_scenario))?;
        (other > 0.0).then(|| (own / other - 1.0, repetitions))
    }

    /// The largest Kolmogorov–Smirnov distance between the inter-arrival times of any two
    /// repetitions. As a relative change it would have no meaning.
    fn largest_distance(&self, policy: usize, scenario: usize) -> Option<(KolmogorovSmirnov, u32)> {
        if self.figure.relative_to.is_some() {
            return None;
        }
        let slice = self.slice?;
        let sources: Vec<_> = self
            .observations
            .cell(policy, scenario)
            .filter_map(|run| run.slices.get(slice))
            .filter(|observed| observed.iat.samples > 0)
            .collect();
        let pairs = sources.iter().enumerate().flat_map(|(i, a)| {
            sources[i + 1..]
                .iter()
                .filter_map(|b| ks::of_cdfs(&a.iat.cdf, a.iat.samples, &b.iat.cdf, b.iat.samples))
        });
        let largest = pairs.reduce(|a, b| if b.statistic > a.statistic { b } else { a })?;
        Some((largest, u32::try_from(sources.len()).unwrap_or(u32::MAX)))
    }
}
