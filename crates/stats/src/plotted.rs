//! Values of the figures that a study declares.

use crate::application::ApplicationRecord;
use crate::description::StudyDescription;
use crate::distribution::Distribution;
use crate::estimate::{Estimate, valid_confidence};
use crate::observations::{Observations, RunObservation};
use crate::plot::{Distributed, PlotDescription, PlotDistribution, PlotValue, PlotX};
use crate::quantity::{Metric, Quantity, Subject};

/// Values of a figure in one policy under one scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct PlotCell {
    /// Policy, by its place in the study.
    pub policy: usize,
    /// Scenario, by its place in the study.
    pub scenario: usize,
    /// Point at which intervals of a distribution were measured, "as sent" or "as received"; empty for all else.
    pub point: &'static str,
    /// Runs.
    pub runs: u32,
    /// On the horizontal axis, where that is a quantity; `None` if no run has it.
    pub x: Option<Estimate>,
    /// On the vertical axis; `None` if no run has it.
    pub y: Option<Estimate>,
    /// Points of a distribution: value and share of values up to it. Those without a value are beyond all.
    pub distribution: Vec<(Estimate, f64)>,
    /// Share of what a distribution is of that has no value: frames lost, requests unanswered, flows in progress.
    pub without_value: f64,
}

/// Values of a figure in every cell that it draws and that has runs, in the order of the study.
#[must_use]
pub fn cells(
    plot: &PlotDescription,
    study: &StudyDescription,
    observations: &Observations,
) -> Vec<PlotCell> {
    let is_named =
        |names: &[String], name: &str| names.is_empty() || names.iter().any(|n| n == name);
    let policies = study.policies.iter().enumerate().filter(|(_, policy)| {
        is_named(&plot.policies, &policy.name)
            || is_named(&plot.policies, study.policy_of_runs(&policy.name))
    });
    let scenarios = study.scenarios.iter().enumerate();
    let scenarios: Vec<usize> = scenarios
        .filter(|(_, scenario)| is_named(&plot.scenarios, &scenario.name))
        .map(|(index, _)| index)
        .collect();
    let measure = Measure {
        study,
        observations,
        confidence: valid_confidence(study.margins.confidence),
    };
    let cells = policies.flat_map(|(policy, _)| {
        let of_scenario = |scenario: &usize| measure.of_cell(plot, policy, *scenario);
        scenarios.iter().flat_map(of_scenario).collect::<Vec<_>>()
    });
    cells.collect()
}

struct Measure<'a> {
    study: &'a StudyDescription,
    observations: &'a Observations,
    confidence: f64,
}

impl Measure<'_> {
    fn of_cell(&self, plot: &PlotDescription, policy: usize, scenario: usize) -> Vec<PlotCell> {
        let points: &[&str] = match &plot.x {
            PlotX::Distribution(of) if of.of == Distributed::Iat => &[SENT, RECEIVED],
            _ => &[""],
        };
        let cell = |point: &&'static str| self.cell(plot, point, policy, scenario);
        points.iter().filter_map(cell).collect()
    }

    fn cell(
        &self,
        plot: &PlotDescription,
        point: &'static str,
        policy: usize,
        scenario: usize,
    ) -> Option<PlotCell> {
        let runs = self.observations.cell(policy, scenario).count();
        let value = |of: &PlotValue| {
            let slice = of.slice.as_deref();
            self.estimate(of.metric, (slice, of.queue.as_deref()), policy, scenario)
        };
        let (distribution, without_value) = match &plot.x {
            PlotX::Distribution(of) if of.of == Distributed::Iat => {
                (self.of_intervals(of, point, policy, scenario), 0.0)
            }
            PlotX::Distribution(of) => self.distribution(plot, of, policy, scenario),
            _ => (Vec::new(), 0.0),
        };
        (runs > 0).then(|| PlotCell {
            policy,
            scenario,
            point,
            runs: u32::try_from(runs).unwrap_or(u32::MAX),
            x: match &plot.x {
                PlotX::Value(of) => value(of),
                _ => None,
            },
            y: plot.y.as_ref().and_then(value),
            distribution,
            without_value,
        })
    }

    fn estimate(
        &self,
        metric: Metric,
        (slice, queue): (Option<&str>, Option<&str>),
        policy: usize,
        scenario: usize,
    ) -> Option<Estimate> {
        let slice = match slice {
            Some(name) => Some((self.study.slice_place(name)?, name)),
            None => None,
        };
        let subject = Subject { slice, queue };
        let value = |run: &RunObservation| metric.of(run, subject);
        let values = self.observations.values(policy, scenario, value);
        Estimate::of(&values, self.confidence)
    }

    /// Points of a distribution, and the share that has no value.
    fn distribution(
        &self,
        plot: &PlotDescription,
        of: &PlotDistribution,
        policy: usize,
        scenario: usize,
    ) -> (Vec<(Estimate, f64)>, f64) {
        let percentiles = of.of.percentiles();
        if percentiles.is_empty() {
            let place = self.study.plots.iter().position(|other| other == plot);
            return (self.of_values((of, place), policy, scenario), 0.0);
        }
        let slice = self.study.slice_place(&of.slice);
        let runs = self.observations.cell(policy, scenario);
        let samples = runs.filter_map(|run| sample(of, slice?, run));
        let (values, shares): (Vec<u64>, Vec<f64>) = samples.unzip();
        let fewest = values.into_iter().filter(|values| *values > 0).min();
        let share = Estimate::of(&shares, self.confidence).map_or(1.0, |share| share.mean);
        let estimate = |quantity: Quantity| {
            let slice = Some(of.slice.as_str());
            self.estimate(quantity.into(), (slice, None), policy, scenario)
        };
        let points = percentiles.into_iter();
        let points = points
            .filter(|(_, part)| is_within(*part, fewest.unwrap_or(0)))
            .filter_map(|(quantity, part)| Some((estimate(quantity)?, part * share)));
        (points.collect(), 1.0 - share)
    }

    /// Empirical distribution over the values of all runs, each with as many samples as it has.
    fn of_values(
        &self,
        (of, place): (&PlotDistribution, Option<usize>),
        policy: usize,
        scenario: usize,
    ) -> Vec<(Estimate, f64)> {
        let Some(slice) = self.study.slice_place(&of.slice) else {
            return Vec::new();
        };
        let runs = self.observations.cell(policy, scenario);
        let distributed = runs.filter_map(|run| Some(&run.slices.get(slice)?.distributed));
        let values = distributed.flatten();
        let values = values.filter(|(plot, _)| Some(*plot) == place);
        let values = values.flat_map(|(_, values)| values);
        self.empirical(values.map(|value| (*value, 1)).collect())
    }

    /// The same over inter-arrival times, as exact as their distribution in each run.
    fn of_intervals(
        &self,
        of: &PlotDistribution,
        point: &str,
        policy: usize,
        scenario: usize,
    ) -> Vec<(Estimate, f64)> {
        let Some(slice) = self.study.slice_place(&of.slice) else {
            return Vec::new();
        };
        let runs = self.observations.cell(policy, scenario);
        let slices = runs.filter_map(|run| run.slices.get(slice));
        let mut values = Vec::new();
        for slice in slices {
            let iat = match point {
                RECEIVED => slice.received_iat.as_ref(),
                _ => Some(&slice.iat),
            };
            let times = iat.map(|iat| Distribution::of_cdf(&iat.cdf, iat.samples));
            for (value, count) in times.iter().flat_map(Distribution::bins) {
                values.push((*value as f64, u32::try_from(*count).unwrap_or(u32::MAX)));
            }
        }
        self.empirical(values)
    }

    /// Distribution of values, each of which occurs so many times.
    fn empirical(&self, mut values: Vec<(f64, u32)>) -> Vec<(Estimate, f64)> {
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let count: f64 = values.iter().map(|(_, times)| f64::from(*times)).sum();
        let mut reached = 0.0;
        let mut points: Vec<(Estimate, f64)> = Vec::new();
        for (value, times) in values.into_iter().filter(|(_, times)| *times > 0) {
            reached += f64::from(times);
            let share = reached / count;
            match points.last_mut() {
                Some((last, up_to)) if last.mean == value => {
                    last.samples = last.samples.saturating_add(times);
                    *up_to = share;
                }
                _ => {
                    let estimate = Estimate::of(&[value], self.confidence);
                    let estimate = estimate.map(|one| Estimate {
                        samples: times,
                        ..one
                    });
                    points.extend(estimate.map(|estimate| (estimate, share)));
                }
            }
        }
        points
    }
}

/// Inter-arrival times at the first point: no policy changes them.
pub const SENT: &str = "as sent";
/// Inter-arrival times at the last point.
const RECEIVED: &str = "as received";

/// Number of values of a run that percentiles are of, and their share of all that could have one; `None` without any.
fn sample(of: &PlotDistribution, slice: usize, run: &RunObservation) -> Option<(u64, f64)> {
    if matches!(of.of, Distributed::Delay | Distributed::Pdv) {
        let steady = &run.slices.get(slice)?.steady;
        let arrived = 1.0 - steady.loss_ratio;
        return (steady.sent_frames > 0).then_some((steady.delay.samples, arrived));
    }
    let own = run.applications.iter().filter(|own| {
        let has_its = match of.of {
            Distributed::RequestLatency => own.requests.is_some(),
            _ => own.flows.is_some(),
        };
        has_its && own.slice == of.slice
    });
    let counts = own.filter_map(ApplicationRecord::finished);
    let (values, all) = counts.reduce(|one, other| {
        let values = one.0.saturating_add(other.0);
        (values, one.1.saturating_add(other.1))
    })?;
    Some((values, values as f64 / all as f64))
}

/// Returns true if one of so many values lies beyond the percentile, so that it is not just the largest of them.
fn is_within(part: f64, values: u64) -> bool {
    values as f64 * (1.0 - part) > 1.0 - 1e-6
}
