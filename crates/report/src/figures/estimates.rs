//! Figures of estimates: of a study's policies by scenario, and of back ends beside each other by policy.

use super::axis::Axis;
use super::panel::{DrawError, Panel, Place, figure};
use super::{HEIGHT, INK, count, policy_legend, slice_name};
use crate::findings::Findings;
use crate::side::Side;
use crate::signs;
use slicewise_stats::estimate::Estimate;
use slicewise_stats::summary::SliceSummary;
use slicewise_stats::words::time;

/// What a figure of estimates shows.
#[derive(Clone, Copy)]
pub(super) struct Quantity {
    pub(super) file_name: &'static str,
    title: &'static str,
    of: fn(&SliceSummary) -> Option<&Estimate>,
    /// Name and factor of the unit; `None` for times on a logarithmic axis.
    unit: Option<(&'static str, f64)>,
}

pub(super) const QUANTITIES: [Quantity; 4] = [
    Quantity {
        file_name: "throughput",
        title: "Throughput",
        of: |slice| slice.steady.throughput_bits_per_second.as_ref(),
        unit: Some(("Mbit/s", 1e6)),
    },
    Quantity {
        file_name: "loss",
        title: "Loss",
        of: |slice| slice.steady.loss_ratio.as_ref(),
        unit: Some(("%", 0.01)),
    },
    Quantity {
        file_name: "delay-mean",
        title: "Mean one-way delay",
        of: |slice| slice.steady.delay_mean_ns.as_ref(),
        unit: None,
    },
    Quantity {
        file_name: "delay-p99",
        title: "99th percentile of one-way delay",
        of: |slice| slice.steady.delay_p99_ns.as_ref(),
        unit: None,
    },
];

impl Quantity {
    /// An axis that has room for all of `marks`, and for `level` if there is one.
    fn axis(self, marks: &[Mark<'_>], level: Option<f64>) -> Axis {
        let Some((unit, factor)) = self.unit else {
            return Axis::logarithmic("one-way delay", marks.iter().flat_map(Mark::values), time);
        };
        let highest = marks.iter().map(Mark::highest);
        let largest = highest.chain(level).fold(0.0, f64::max);
        let name = format!("{}, {unit}", self.title.to_lowercase());
        Axis::from_zero(&name, largest, factor)
    }
}

/// An estimate and where it is drawn: in which group, and as which of its members.
pub(super) struct Mark<'a> {
    pub(super) group: usize,
    pub(super) member: usize,
    pub(super) estimate: &'a Estimate,
}

impl Mark<'_> {
    /// What an axis has room for.
    pub(super) fn values(&self) -> [f64; 3] {
        let low = self.estimate.interval.low.unwrap_or(0.0);
        [low, self.highest(), self.estimate.mean]
    }

    pub(super) fn highest(&self) -> f64 {
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

fn marks<'a>(findings: &'a Findings, slice: usize, quantity: Quantity) -> Vec<Mark<'a>> {
    let study = findings.study();
    let cells = findings.main().summary.cells.iter();
    cells
        .filter_map(|cell| {
            Some(Mark {
                group: study.scenario_place(&cell.scenario)?,
                member: study.policy_place(&cell.policy)?,
                estimate: cell.slices.get(slice).and_then(quantity.of)?,
            })
        })
        .collect()
}

/// What a slice got, by scenario.
pub(super) fn estimates(
    findings: &Findings,
    slice: usize,
    quantity: Quantity,
) -> Result<String, DrawError> {
    let study = findings.study();
    let marks = marks(findings, slice, quantity);
    let share = study
        .slices
        .get(slice)
        .filter(|_| quantity.file_name == "throughput");
    let share = share
        .map(|s| s.share_bits_per_second as f64)
        .filter(|share| *share > 0.0);
    let y = quantity.axis(&marks, share);
    let title = format!(
        "{} of slice {}",
        quantity.title,
        slice_name(findings, slice)
    );
    bars(findings, &title, &marks, &y, share)
}

/// Bars with whiskers by scenario, and a level; points with whiskers on a logarithmic axis, where the length of
/// a bar would say nothing.
pub(super) fn bars(
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
    let drawn = QUANTITIES.iter().filter(|q| q.file_name != "throughput");
    drawn
        .map(|&quantity| {
            (
                quantity.file_name,
                points(findings, slice, &scenario.name, quantity),
            )
        })
        .collect()
}

fn points(
    findings: &Findings,
    slice: usize,
    scenario: &str,
    quantity: Quantity,
) -> Result<String, DrawError> {
    let sides = &findings.sides;
    let name = slice_name(findings, slice);
    let marks = beside_marks(findings, name, scenario, quantity);
    let y = quantity.axis(&marks, None);
    let policies: Vec<String> = findings
        .study()
        .policies
        .iter()
        .map(|p| p.name.clone())
        .collect();
    let x = Axis::categories("policy", &policies);
    let title = format!("{} of slice {name}, scenario {scenario}", quantity.title);
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
                let mut slices = cell.slices.iter();
                Some(Mark {
                    group: findings.study().policy_place(&cell.policy)?,
                    member: index,
                    estimate: (quantity.of)(slices.find(|s| s.slice == slice)?)?,
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
