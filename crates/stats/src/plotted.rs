//! Values of the figures that a study declares.

use crate::description::StudyDescription;
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
    /// Runs.
    pub runs: u32,
    /// On the horizontal axis, where that is a quantity; `None` if no run has it.
    pub x: Option<Estimate>,
    /// On the vertical axis; `None` if no run has it.
    pub y: Option<Estimate>,
    /// Points of a distribution: value and share of values up to it.
    pub distribution: Vec<(Estimate, f64)>,
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
        let cell = |scenario: &usize| measure.cell(plot, policy, *scenario);
        scenarios.iter().filter_map(cell).collect::<Vec<_>>()
    });
    cells.collect()
}

struct Measure<'a> {
    study: &'a StudyDescription,
    observations: &'a Observations,
    confidence: f64,
}

impl Measure<'_> {
    fn cell(&self, plot: &PlotDescription, policy: usize, scenario: usize) -> Option<PlotCell> {
        let runs = self.observations.cell(policy, scenario).count();
        let value = |of: &PlotValue| {
            let slice = of.slice.as_deref();
            self.estimate(of.metric, (slice, of.queue.as_deref()), policy, scenario)
        };
        (runs > 0).then(|| PlotCell {
            policy,
            scenario,
            runs: u32::try_from(runs).unwrap_or(u32::MAX),
            x: match &plot.x {
                PlotX::Value(of) => value(of),
                _ => None,
            },
            y: plot.y.as_ref().and_then(value),
            distribution: match &plot.x {
                PlotX::Distribution(of) => self.distribution(of, policy, scenario),
                _ => Vec::new(),
            },
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

    fn distribution(
        &self,
        of: &PlotDistribution,
        policy: usize,
        scenario: usize,
    ) -> Vec<(Estimate, f64)> {
        let percentiles = of.of.percentiles();
        if percentiles.is_empty() {
            return self.of_episodes(of, policy, scenario);
        }
        let estimate = |quantity: Quantity| {
            let slice = Some(of.slice.as_str());
            self.estimate(quantity.into(), (slice, None), policy, scenario)
        };
        let points = percentiles.into_iter();
        points
            .filter_map(|(quantity, share)| Some((estimate(quantity)?, share)))
            .collect()
    }

    /// Empirical distribution over the episodes of all runs; a value has as many samples as episodes have it.
    fn of_episodes(
        &self,
        of: &PlotDistribution,
        policy: usize,
        scenario: usize,
    ) -> Vec<(Estimate, f64)> {
        let Some(slice) = self.study.slice_place(&of.slice) else {
            return Vec::new();
        };
        let runs = self.observations.cell(policy, scenario);
        let episodes = runs.filter_map(|run| run.slices.get(slice));
        let episodes = episodes.flat_map(|slice| &slice.each_loss_episode);
        let values = episodes.map(|episode| match of.of {
            Distributed::LossEpisodeLength => episode.length_ns as f64,
            _ => episode.lost_frames as f64,
        });
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let count = values.len() as f64;
        let mut points: Vec<(Estimate, f64)> = Vec::new();
        for (place, value) in (1u32..).zip(values) {
            let share = f64::from(place) / count;
            match points.last_mut() {
                Some((last, reached)) if last.mean == value => {
                    last.samples += 1;
                    *reached = share;
                }
                _ => points.extend(Estimate::of(&[value], self.confidence).map(|e| (e, share))),
            }
        }
        points
    }
}
