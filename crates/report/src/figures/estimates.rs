//! Figures of estimates: of a study's policies by scenario, and of back ends beside each other by policy.

use super::axis::Axis;
use super::panel::{DrawError, Panel, Place, figure};
use super::{HEIGHT, INK, count, policy_legend, slice_name};
use crate::findings::Findings;
use crate::side::Side;
use crate::signs;
use slicewise_stats::estimate::Estimate;
use slicewise_stats::quantity::{Quantity, Unit};
use slicewise_stats::summary::CellSummary;
use slicewise_stats::words::time;

/// A figure of estimates.
#[derive(Clone, Copy)]
pub(crate) struct Drawn {
    /// Beginning of its file name.
    pub(crate) kind: &'static str,
    pub(crate) title: &'static str,
    axis: &'static str,
    quantity: Quantity,
}

const fn drawn(
    kind: &'static str,
    title: &'static str,
    axis: &'static str,
    quantity: Quantity,
) -> Drawn {
    Drawn {
        kind,
        title,
        axis,
        quantity,
    }
}

/// Figures of every slice.
#[rustfmt::skip]
const OF_SLICES: [Drawn; 4] = [
    drawn("throughput", "Throughput", "throughput", Quantity::Throughput),
    drawn("loss", "Loss", "loss", Quantity::LossRatio),
    drawn("delay-mean", "Mean one-way delay", "one-way delay", Quantity::DelayMean),
    drawn("delay-p99", "99th percentile of one-way delay", "one-way delay", Quantity::DelayP99),
];

/// Figures of slices that have applications with these quantities.
#[rustfmt::skip]
pub(crate) const OF_APPLICATIONS: [Drawn; 5] = [
    drawn("application-goodput", "Goodput", "goodput", Quantity::Goodput),
    drawn("application-rtt", "Mean round-trip time", "mean round-trip time", Quantity::RttMean),
    drawn("request-latency", "99th percentile of request latency", "99th percentile of request latency", Quantity::RequestLatencyP99),
    drawn("completion-time", "Mean completion time", "mean completion time", Quantity::CompletionTimeMean),
    drawn("quality", "Mean quality of video", "mean quality of video", Quantity::QualityMean),
];

impl Drawn {
    /// An axis that has room for all of `marks`, and for `level` if there is one.
    fn axis(self, marks: &[Mark<'_>], level: Option<f64>) -> Axis {
        let (unit, factor) = match self.quantity.unit() {
            Unit::Time => {
                return Axis::logarithmic(self.axis, marks.iter().flat_map(Mark::values), time);
            }
            Unit::Rate => (", Mbit/s", 1e6),
            Unit::Ratio => (", %", 0.01),
            Unit::Bytes => (", kB", 1e3),
            _ => ("", 1.0),
        };
        let highest = marks.iter().map(Mark::highest);
        let largest = highest.chain(level).fold(0.0, f64::max);
        Axis::from_zero(&format!("{}{unit}", self.axis), largest, factor)
    }
}

/// Estimate of a slice, or of all its applications together.
fn estimate<'a>(cell: &'a CellSummary, slice: &str, quantity: Quantity) -> Option<&'a Estimate> {
    let mut slices = cell.slices.iter();
    let of_slice = slices.find(|of| of.slice == slice)?.steady.of(quantity);
    let own = || cell.applications.iter().filter(|of| of.slice == slice);
    // All sources of the slice together stand behind them.
    let together = || {
        own()
            .find(|of| of.source.is_none())
            .or_else(|| own().next())
    };
    of_slice.or_else(|| together()?.estimates.of(quantity))
}

/// An estimate and where it is drawn: in which group, and as which of its members.
struct Mark<'a> {
    group: usize,
    member: usize,
    estimate: &'a Estimate,
}

impl Mark<'_> {
    /// Returns the values for which an axis needs room.
    fn values(&self) -> [f64; 3] {
        let low = self.estimate.interval.low.unwrap_or(0.0);
        [low, self.highest(), self.estimate.mean]
    }

    fn highest(&self) -> f64 {
        self.estimate.interval.high.unwrap_or(self.estimate.mean)
    }

    /// Where the room of its group begins that `width`, less than 1, leaves for members.
    fn left(&self, width: f64) -> f64 {
        count(self.group) + (1.0 - width) / 2.0
    }

    /// Both ends of its interval, where that is one.
    fn interval(&self) -> Option<(f64, f64)> {
        let interval = self.estimate.interval;
        interval
            .low
            .zip(interval.high)
            .filter(|(low, high)| high > low)
    }
}

fn marks<'a>(findings: &'a Findings, slice: &str, quantity: Quantity) -> Vec<Mark<'a>> {
    let study = findings.study();
    let cells = findings.main().summary.cells.iter();
    let mark = |cell: &'a CellSummary| {
        Some(Mark {
            group: study.scenario_place(&cell.scenario)?,
            member: study.policy_place(&cell.policy)?,
            estimate: estimate(cell, slice, quantity)?,
        })
    };
    cells.filter_map(mark).collect()
}

/// Kinds and drawings of what a slice and its applications got, by scenario.
pub(super) fn of_slice(
    findings: &Findings,
    slice: usize,
) -> impl Iterator<Item = (&'static str, Result<String, DrawError>)> {
    let name = slice_name(findings, slice);
    let drawing = move |drawn: Drawn| {
        let marks = marks(findings, name, drawn.quantity);
        let share = findings.study().slices.get(slice);
        let share = share
            .filter(|_| drawn.quantity == Quantity::Throughput)
            .map(|slice| slice.share_bits_per_second as f64)
            .filter(|share| *share > 0.0);
        let y = drawn.axis(&marks, share);
        let title = format!("{} of slice {name}", drawn.title);
        (drawn.kind, bars(findings, &title, &marks, &y, share))
    };
    let of_applications = OF_APPLICATIONS.into_iter();
    let of_applications =
        of_applications.filter(move |drawn| !marks(findings, name, drawn.quantity).is_empty());
    OF_SLICES.into_iter().chain(of_applications).map(drawing)
}

/// Bars with whiskers by scenario, and a level; points with whiskers on a logarithmic axis, where the length of
/// a bar would say nothing.
fn bars(
    findings: &Findings,
    title: &str,
    marks: &[Mark<'_>],
    y: &Axis,
    level: Option<f64>,
) -> Result<String, DrawError> {
    let study = findings.study();
    let scenarios: Vec<String> = study.scenarios.iter().map(|s| s.name.clone()).collect();
    let x = Axis::categories("scenario", &scenarios);
    figure(title, &policy_legend(findings), HEIGHT, |area| {
        let mut panel = Panel::new(area, &x, y)?;
        let width = BARS_WIDTH / count(study.policies.len()).max(1.0);
        for mark in marks {
            let sign = signs::policy(mark.member);
            let left = mark.left(BARS_WIDTH) + count(mark.member) * width;
            let centre = left + width / 2.0;
            let ink = if y.is_logarithmic() { sign.colour } else { INK };
            if !y.is_logarithmic() {
                let opposite = (left + width * 0.9, mark.estimate.mean);
                panel.rectangle((left + width * 0.1, 0.0), opposite, sign.colour, 1.0)?;
            }
            if let Some(interval) = mark.interval() {
                panel.whisker(centre, interval, width * 0.5, (ink, 2))?;
            }
            // A marker stands on its bar, or is the point itself.
            let (at, place) = if y.is_logarithmic() {
                (mark.estimate.mean, Place::Around)
            } else {
                (mark.highest(), Place::Above)
            };
            panel.point((centre, at), sign, (width, place))?;
        }
        level.map_or(Ok(()), |level| panel.level(level, INK))
    })
}

/// Names and drawings: what a guaranteed slice got in the heaviest scenario that more than one back end
/// has; none where there is no such scenario.
pub(crate) fn figures_beside(
    findings: &Findings,
    slice: usize,
) -> Vec<(&'static str, Result<String, DrawError>)> {
    let sides = &findings.sides;
    let is_guaranteed = findings
        .study()
        .slices
        .get(slice)
        .is_some_and(|s| s.guaranteed);
    let covers = |side: &&Side, scenario: &str| side.covered_scenarios().any(|s| s == scenario);
    let mut scenarios = findings.study().scenarios.iter().rev();
    let shared = scenarios.find(|scenario| {
        let covering = sides.iter().filter(|side| covers(side, &scenario.name));
        covering.count() > 1
    });
    let Some(scenario) = shared.filter(|_| is_guaranteed) else {
        return Vec::new();
    };
    let drawn = OF_SLICES
        .into_iter()
        .filter(|drawn| drawn.quantity != Quantity::Throughput);
    drawn
        .map(|drawn| (drawn.kind, points(findings, slice, &scenario.name, drawn)))
        .collect()
}

fn points(
    findings: &Findings,
    slice: usize,
    scenario: &str,
    drawn: Drawn,
) -> Result<String, DrawError> {
    let sides = &findings.sides;
    let name = slice_name(findings, slice);
    let marks = beside_marks(findings, name, scenario, drawn.quantity);
    let y = drawn.axis(&marks, None);
    let policies: Vec<String> = findings
        .study()
        .policies
        .iter()
        .map(|p| p.name.clone())
        .collect();
    let x = Axis::categories("policy", &policies);
    let title = format!("{} of slice {name}, scenario {scenario}", drawn.title);
    let legend: Vec<_> = sides
        .iter()
        .enumerate()
        .map(|(index, side)| (side.name.clone(), signs::slice(index)))
        .collect();
    figure(&title, &legend, HEIGHT, |area| {
        let mut panel = Panel::new(area, &x, &y)?;
        let width = POINTS_WIDTH / count(sides.len()).max(1.0);
        for mark in &marks {
            let sign = signs::slice(mark.member);
            let at = mark.left(POINTS_WIDTH) + (count(mark.member) + 0.5) * width;
            panel.point((at, mark.estimate.mean), sign, (width, Place::Around))?;
            if let Some(interval) = mark.interval() {
                panel.whisker(at, interval, width * 0.5, (sign.colour, 3))?;
            }
        }
        Ok(())
    })
}

/// In the order in which they are drawn; slices are found by name, as sides may differ.
fn beside_marks<'a>(
    findings: &'a Findings,
    slice: &str,
    scenario: &str,
    quantity: Quantity,
) -> Vec<Mark<'a>> {
    let sides = findings.sides.iter().enumerate();
    let of_side = |(index, side): (usize, &'a Side)| {
        let cells = side.summary.cells.iter();
        let marks = cells
            .filter(|cell| cell.scenario == scenario)
            .filter_map(move |cell| {
                Some(Mark {
                    group: findings.study().policy_place(&cell.policy)?,
                    member: index,
                    estimate: estimate(cell, slice, quantity)?,
                })
            });
        marks.collect::<Vec<_>>()
    };
    sides.flat_map(of_side).collect()
}

/// The part of a scenario's room that its bars take.
const BARS_WIDTH: f64 = 0.8;
/// The part of a policy's room that its points take.
const POINTS_WIDTH: f64 = 0.6;
