//! Published figures compared with ours: the value, its interval, the difference, and whether they
//! agree.

use crate::compare;
use crate::description::{Expected, Metric, PublishedFigure, StudyDescription};
use crate::estimate::{Interval, Sample, valid_confidence};
use crate::ks::{self, KolmogorovSmirnov};
use crate::observations::{Observations, RunObservation};
use serde::{Deserialize, Serialize};

/// A published figure and ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedComparison {
    /// The published figure.
    pub figure: PublishedFigure,
    /// Whether ours agrees.
    pub outcome: PublishedOutcome,
    /// Ours, for the cell with the largest deviation; `None` if not measured.
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

/// Whether a published figure and ours agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishedOutcome {
    /// Our estimate agrees in every cell the publication covers.
    Agrees,
    /// It differs in some cell.
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
    /// Two-sided interval of it; unbounded for extremes and single repetitions.
    pub interval: Interval,
    /// Runs it is made from.
    pub repetitions: u32,
    /// p-value of a Kolmogorov–Smirnov statistic.
    pub p_value: Option<f64>,
}

/// Compare every published figure of `study` with ours, in the order of the study.
#[must_use]
pub fn compare(study: &StudyDescription, observations: &Observations) -> Vec<PublishedComparison> {
    study
        .published
        .iter()
        .map(|figure| compare_figure(study, observations, figure))
        .collect()
}

fn compare_figure(
    study: &StudyDescription,
    observations: &Observations,
    figure: &PublishedFigure,
) -> PublishedComparison {
    let mut ours = Vec::new();
    for slice in slices_of(study, figure) {
        let measure = Measure {
            study,
            observations,
            figure,
            slice,
        };
        for policy in places(&study.policies, &figure.policies, |p| &p.name) {
            for scenario in places(&study.scenarios, &figure.scenarios, |s| &s.name) {
                ours.extend(measure.cell(policy, scenario));
            }
        }
    }
    if figure.metric == Metric::DelayMin && figure.relative_to.is_none() {
        // The smallest of all packets is one value, wherever it was seen.
        ours = ours
            .into_iter()
            .min_by(|a, b| a.value.total_cmp(&b.value))
            .into_iter()
            .collect();
    }
    let excess = |our: &OurFigure| figure.expected.excess(our.value);
    let agreeing = ours.iter().filter(|our| excess(our) <= 0.0).count();
    let outcome = match ours.len() {
        0 => PublishedOutcome::NotMeasured,
        cells if cells == agreeing => PublishedOutcome::Agrees,
        _ => PublishedOutcome::Differs,
    };
    let cells = ours.len();
    let worst = ours.into_iter().reduce(|worst, our| {
        if excess(&our) > excess(&worst) {
            our
        } else {
            worst
        }
    });
    let published = worst.as_ref().map(|our| figure.expected.nearest(our.value));
    let difference = worst
        .as_ref()
        .zip(published)
        .map(|(our, published)| our.value - published);
    PublishedComparison {
        figure: figure.clone(),
        outcome,
        ours: worst,
        difference,
        difference_relative: difference
            .zip(published.filter(|&p| p != 0.0))
            .map(|(difference, published)| difference / published.abs()),
        cells: u32::try_from(cells).unwrap_or(u32::MAX),
        cells_agreeing: u32::try_from(agreeing).unwrap_or(u32::MAX),
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

    /// How far `ours` is outside the published value; 0 or negative if it agrees.
    #[must_use]
    pub fn excess(&self, ours: f64) -> f64 {
        match *self {
            Self::About { value, tolerance } => {
                let allowed = if value == 0.0 {
                    tolerance
                } else {
                    tolerance * value.abs()
                };
                (ours - value).abs() - allowed
            }
            Self::Between { low, high } => (low - ours).max(ours - high),
            Self::AtLeast { value } => value - ours,
            Self::AtMost { value } => ours - value,
        }
    }
}

/// Indices in the study of those that a figure names: all if it names none.
fn places<T>(all: &[T], named: &[String], name: impl Fn(&T) -> &String) -> Vec<usize> {
    (0..all.len())
        .filter(|&i| named.is_empty() || named.contains(name(&all[i])))
        .collect()
}

/// The slices a figure is measured in; `None` is all slices together. A source belongs to a
/// slice: without one named, inter-arrival times are those of every slice.
fn slices_of(study: &StudyDescription, figure: &PublishedFigure) -> Vec<Option<usize>> {
    use Metric::{IatKolmogorovSmirnov, IatMean, IatSamples, IatVariance};
    let of_source = matches!(
        figure.metric,
        IatKolmogorovSmirnov | IatMean | IatSamples | IatVariance
    );
    match &figure.slice {
        Some(name) => study
            .slices
            .iter()
            .position(|s| &s.name == name)
            .map(Some)
            .into_iter()
            .collect(),
        None if of_source => (0..study.slices.len()).map(Some).collect(),
        None => vec![None],
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
    fn cell(&self, policy: usize, scenario: usize) -> Option<OurFigure> {
        let (value, interval, repetitions, p_value) = match self.figure.metric {
            Metric::IatKolmogorovSmirnov => {
                let (test, repetitions) = self.largest_distance(policy, scenario)?;
                (
                    test.statistic,
                    Interval::UNBOUNDED,
                    repetitions,
                    Some(test.p_value),
                )
            }
            Metric::DelayMin => {
                let (value, repetitions) = self.smallest(policy, scenario)?;
                (value, Interval::UNBOUNDED, repetitions, None)
            }
            _ => {
                let (value, interval, repetitions) = self.mean(policy, scenario)?;
                (value, interval, repetitions, None)
            }
        };
        Some(OurFigure {
            policy: self.study.policies.get(policy)?.name.clone(),
            scenario: self.study.scenarios.get(scenario)?.name.clone(),
            slice: self
                .slice
                .and_then(|s| self.study.slices.get(s))
                .map(|s| s.name.clone()),
            value,
            interval,
            repetitions,
            p_value,
        })
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
        self.observations.values(policy, scenario, |run| {
            value(self.study, self.figure, run, self.slice)
        })
    }

    fn mean(&self, policy: usize, scenario: usize) -> Option<(f64, Interval, u32)> {
        let confidence = valid_confidence(self.study.margins.confidence);
        let own = Sample::of(&self.values(policy, scenario))?;
        if self.figure.relative_to.is_none() {
            return Some((own.mean, own.interval(confidence), own.count));
        }
        let (other_policy, other_scenario) = self.other(policy, scenario)?;
        let other = Sample::of(&self.values(other_policy, other_scenario))?;
        if other.mean <= 0.0 {
            return None;
        }
        let interval = compare::ratio(&own, &other).map_or(Interval::UNBOUNDED, |ratio| {
            ratio.interval(confidence).minus_one()
        });
        Some((own.mean / other.mean - 1.0, interval, own.count))
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
            .filter(|observed| observed.iat_samples > 0)
            .collect();
        let pairs = sources.iter().enumerate().flat_map(|(i, a)| {
            sources[i + 1..]
                .iter()
                .filter_map(|b| ks::of_cdfs(&a.iat_cdf, a.iat_samples, &b.iat_cdf, b.iat_samples))
        });
        let largest = pairs.reduce(|a, b| if b.statistic > a.statistic { b } else { a })?;
        Some((largest, u32::try_from(sources.len()).unwrap_or(u32::MAX)))
    }
}

/// The value of a metric in one run, of one slice or of all together; `None` where the run has
/// none.
fn value(
    study: &StudyDescription,
    figure: &PublishedFigure,
    run: &RunObservation,
    slice: Option<usize>,
) -> Option<f64> {
    let observed = match slice {
        Some(slice) => Some(run.slices.get(slice)?),
        None => None,
    };
    let steady = observed.map_or(&run.aggregate, |slice| &slice.steady);
    let delay = &steady.delay;
    let of_delay = |value: f64| (delay.samples > 0).then_some(value);
    let transient = &run.transient;
    match figure.metric {
        Metric::Throughput => Some(steady.throughput_bits_per_second),
        Metric::LossRatio => (steady.sent_frames > 0).then_some(steady.loss_ratio),
        Metric::LossEpisodeLength => observed?.loss_episodes.mean_length_ns(),
        Metric::LossEpisodeFrames => observed?.loss_episodes.mean_lost_frames(),
        Metric::LossEpisodeRatio => observed?.loss_episodes.loss_ratio(),
        Metric::QueueLength => {
            let mut queues = run.queues.iter();
            let queue = queues.find(|queue| Some(&queue.queue) == figure.queue.as_ref())?;
            Some(queue.mean_frames)
        }
        Metric::DelayMean => of_delay(delay.mean_ns),
        Metric::DelayMeanWhole => whole_delay_mean(run, slice),
        Metric::DelayMin => whole(run, slice)
            .filter(|f| f.delay.samples > 0)
            .map(|f| f.delay.min_ns as f64)
            .reduce(f64::min),
        Metric::DelayP50 => of_delay(delay.p50_ns as f64),
        Metric::DelayP99 => of_delay(delay.p99_ns as f64),
        Metric::DelayMax => of_delay(delay.max_ns as f64),
        Metric::IatSamples => observed.map(|slice| slice.iat_samples as f64),
        Metric::IatMean => observed
            .filter(|s| s.iat_samples > 0)
            .map(|s| s.iat_mean_ns),
        Metric::IatVariance => observed
            .filter(|s| s.iat_samples > 1)
            .map(|s| s.iat_variance_ns2),
        // A distance between two runs is not a value of one.
        Metric::IatKolmogorovSmirnov => None,
        Metric::TransientEnd => transient
            .steady_state_reached
            .then_some(transient.end_ns as f64),
        Metric::TransientThroughput => {
            (transient.end_ns > 0).then_some(transient.throughput_before_bits_per_second)
        }
        Metric::AggregateThroughput => Some(transient.throughput_after_bits_per_second),
        Metric::Goodput
        | Metric::RttMean
        | Metric::RequestsAchieved
        | Metric::RequestLatencyMean
        | Metric::RequestLatencyP99
        | Metric::CompletionTimeMean
        | Metric::QualityMean => {
            let name = &study.slices.get(slice?)?.name;
            let own = run.applications.iter().filter(|of| &of.slice == name);
            figure.metric.of_applications()?.of(own)
        }
    }
}

/// Figures over the whole run, of one slice or of each.
fn whole(
    run: &RunObservation,
    slice: Option<usize>,
) -> impl Iterator<Item = &crate::record::Figures> {
    let slices = match slice {
        Some(slice) => run.slices.get(slice..=slice).unwrap_or_default(),
        None => &run.slices,
    };
    slices.iter().map(|observed| &observed.whole)
}

fn whole_delay_mean(run: &RunObservation, slice: Option<usize>) -> Option<f64> {
    let samples: u64 = whole(run, slice).map(|f| f.delay.samples).sum();
    let sum: f64 = whole(run, slice)
        .map(|f| f.delay.mean_ns * f.delay.samples as f64)
        .sum();
    (samples > 0).then(|| sum / samples as f64)
}
