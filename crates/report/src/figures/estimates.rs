//! Figures of estimates: of a study's policies by scenario, and of back ends beside each other by policy.

use super::axis::Axis;
use super::canvas::{INK, THIN, line_width};
use super::figure::{Figure, Level, Panel, Point, Series, Shape};
use super::{Drawing, count};
use crate::findings::Findings;
use crate::limits::Limit;
use crate::side::Side;
use crate::signs::{self, Sign};
use slicewise_stats::estimate::Estimate;
use slicewise_stats::quantity::{Quantity, Unit};
use slicewise_stats::summary::CellSummary;
use slicewise_stats::words::{digits, percent};

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
const SLICE_FIGURES: [Drawn; 4] = [
    drawn("throughput", "Throughput", "throughput", Quantity::Throughput),
    drawn("loss", "Loss", "loss", Quantity::LossRatio),
    drawn("delay-mean", "Mean one-way delay", "mean one-way delay", Quantity::DelayMean),
    drawn("delay-p99", "99th percentile of one-way delay", "one-way delay at 99 %", Quantity::DelayP99),
];

/// Figures of slices that have applications with these quantities.
#[rustfmt::skip]
pub(crate) const APPLICATION_FIGURES: [Drawn; 5] = [
    drawn("application-goodput", "Goodput", "goodput", Quantity::Goodput),
    drawn("application-rtt", "Mean round-trip time", "mean round-trip time", Quantity::RttMean),
    drawn("request-latency", "99th percentile of request latency", "request latency at 99 %", Quantity::RequestLatencyP99),
    drawn("completion-time", "Mean completion time", "mean completion time", Quantity::CompletionTimeMean),
    drawn("quality", "Mean quality of video", "mean quality of video", Quantity::QualityMean),
];

impl Drawn {
    /// An axis with room for all of `marks` and `limits`.
    fn axis(self, marks: &[Mark<'_>], limits: &[&Limit]) -> Axis {
        let limits = limits.iter().map(|limit| limit.value);
        let values = marks.iter().flat_map(Mark::values).chain(limits);
        let largest = values.clone().filter(|v| v.is_finite()).fold(0.0, f64::max);
        let unit = match self.quantity.unit() {
            Unit::Time => return Axis::time(self.axis, values),
            Unit::Rate if largest >= 1e10 => ("Gbit/s", 1e9),
            Unit::Rate => ("Mbit/s", 1e6),
            Unit::Ratio => ("%", 0.01),
            Unit::Bytes => ("kB", 1e3),
            _ => ("", 1.0),
        };
        Axis::from_zero(self.axis, unit, largest)
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

/// An estimate and where it is drawn: at which place, and as which of its members.
struct Mark<'a> {
    place: usize,
    member: usize,
    estimate: &'a Estimate,
}

impl Mark<'_> {
    /// Returns the values for which an axis needs room.
    fn values(&self) -> [f64; 3] {
        let interval = self.estimate.interval;
        let mean = self.estimate.mean;
        [
            interval.low.unwrap_or(mean),
            mean,
            interval.high.unwrap_or(mean),
        ]
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

/// Places of marks along an axis.
pub(super) enum Places<'a> {
    /// A row for each name.
    Rows(&'static str, Vec<String>),
    /// Numbers of scenarios.
    Numbers(&'a str, Vec<f64>),
    /// Measured parts of phases, s.
    Times(Vec<(f64, f64)>),
}

impl Places<'_> {
    fn of<'a>(findings: &'a Findings) -> Places<'a> {
        let study = findings.study();
        let second = |ns: u64| ns as f64 / 1e9;
        if !study.phases.is_empty() {
            let phases = study.phases.iter();
            let phases = phases.map(|p| (second(p.measured_from_ns), second(p.ends_ns)));
            return Places::Times(phases.collect());
        }
        match findings.x_axis() {
            Some(axis) => Places::Numbers(axis.unit, axis.values),
            None => Places::Rows(
                "scenario",
                study.scenarios.iter().map(|s| s.name.clone()).collect(),
            ),
        }
    }

    /// Where a member stands at a place: those of one place beside each other, but over numbers.
    pub(super) fn at(&self, place: usize, member: usize, members: usize) -> f64 {
        let beside = count(member) - (count(members) - 1.0) / 2.0;
        match self {
            Self::Rows(..) => count(place) + 0.5 + beside / (count(members) + 1.0),
            Self::Numbers(_, values) => values.get(place).copied().unwrap_or(0.0),
            Self::Times(phases) => {
                let (from, to) = phases.get(place).copied().unwrap_or_default();
                (from + to) / 2.0 + beside * 0.7 * (to - from) / count(members)
            }
        }
    }

    pub(super) fn axis(&self) -> Axis {
        match self {
            Self::Rows(quantity, names) => Axis::categories(quantity, names.clone()),
            Self::Numbers(quantity, values) => Axis::around(quantity, values),
            Self::Times(phases) => Axis::seconds(phases.last().map_or(1.0, |(_, to)| *to)),
        }
    }

    /// A point of a value: rows have values on the x axis.
    pub(super) fn point(&self, at: f64, value: f64, interval: Option<(f64, f64)>) -> Point {
        let (x, y) = match self {
            Self::Rows(..) => (value, at),
            _ => (at, value),
        };
        Point {
            interval,
            ..Point::of(x, Some(y))
        }
    }

    /// Panel of marks: series of `members` and limits.
    fn panel(&self, value_axis: Axis, members: &[(String, Sign)], marks: &[Mark<'_>]) -> Panel {
        let mut panel = match self {
            Self::Rows(..) => Panel::new(value_axis, self.axis()),
            _ => Panel::new(self.axis(), value_axis),
        };
        for (member, (name, sign)) in members.iter().enumerate() {
            let own = marks.iter().filter(|mark| mark.member == member);
            let points = own.clone().map(|mark| {
                let at = self.at(mark.place, member, members.len());
                self.point(at, mark.estimate.mean, mark.interval())
            });
            let mut points: Vec<Point> = points.collect();
            let (shape, width) = match self {
                Self::Numbers(..) => (Shape::SignedLine, line_width(member, members.len())),
                _ => (Shape::Signs, THIN),
            };
            if shape == Shape::SignedLine {
                points.sort_by(|a, b| a.x.total_cmp(&b.x));
            }
            let series = Series {
                name: name.clone(),
                sign: *sign,
                shape,
                width,
                points,
            };
            panel.series.push(series.clone());
            if let Self::Times(phases) = self {
                // In a phase the value is of all of its time.
                let spans = own.flat_map(|mark| {
                    let (from, to) = phases.get(mark.place).copied().unwrap_or_default();
                    [Some(from), Some(to), None]
                        .map(|end| Point::of(end.unwrap_or(to), end.map(|_| mark.estimate.mean)))
                });
                let points = spans.collect();
                panel.series.push(Series {
                    shape: Shape::Line,
                    points,
                    ..series
                });
            }
        }
        panel
    }
}

/// Kinds and figures of what a slice and its applications got.
pub(super) fn of_slice(drawing: &Drawing<'_>, slice: usize) -> Vec<(&'static str, Figure)> {
    let findings = drawing.findings;
    let name = drawing.slice_name(slice);
    let drawn = SLICE_FIGURES.into_iter().chain(APPLICATION_FIGURES);
    let figures = drawn.enumerate().filter_map(|(index, drawn)| {
        let marks = marks(findings, name, drawn.quantity);
        let is_of_all = index < SLICE_FIGURES.len();
        (is_of_all || !marks.is_empty())
            .then(|| (drawn.kind, by_scenario(drawing, slice, drawn, &marks)))
    });
    figures.collect()
}

/// Places are scenarios, or phases of the heaviest scenario; members are policies.
fn marks<'a>(findings: &'a Findings, slice: &str, quantity: Quantity) -> Vec<Mark<'a>> {
    let study = findings.study();
    let phases = study.phases.len();
    let cells = findings.main().summary.cells.iter();
    let mark = |cell: &'a CellSummary| {
        let scenario = study.scenario_place(&cell.scenario)?;
        let policy = study.policy_place(&cell.policy)?;
        let place = match phases {
            0 => scenario,
            _ if scenario != findings.heaviest_scenario() => return None,
            _ => policy % phases,
        };
        Some(Mark {
            place,
            member: findings.base_of(policy),
            estimate: estimate(cell, slice, quantity)?,
        })
    };
    cells.filter_map(mark).collect()
}

fn by_scenario(drawing: &Drawing<'_>, slice: usize, drawn: Drawn, marks: &[Mark<'_>]) -> Figure {
    let findings = drawing.findings;
    let study = findings.study();
    let places = Places::of(findings);
    let scenario = (!study.phases.is_empty()).then(|| findings.heaviest_scenario());
    let limits = drawing.limits(drawn.quantity.name(), slice, scenario);
    let members = drawing.policies();
    let mut panel = places.panel(drawn.axis(marks, &limits), &members, marks);
    let (margins, limits): (Vec<&Limit>, Vec<&Limit>) =
        limits.iter().partition(|limit| limit.kind == "margin");
    panel.limits = limits
        .iter()
        .map(|limit| Level {
            on_x: matches!(places, Places::Rows(..)),
            ..drawing.level(limit)
        })
        .collect();
    for (member, (name, sign)) in members.iter().enumerate() {
        let own = margins
            .iter()
            .filter(|limit| limit.policy.map(|p| findings.base_of(p)) == Some(member));
        let points: Vec<Point> = own
            .filter_map(|limit| {
                let at = places.at(limit.phase.or(limit.scenario)?, member, members.len());
                Some(places.point(at, limit.value, None))
            })
            .collect();
        if !points.is_empty() {
            panel.series.push(Series {
                name: name.clone(),
                sign: *sign,
                shape: Shape::Margin,
                width: THIN,
                points,
            });
        }
    }
    let repetitions = marks.iter().map(|mark| mark.estimate.samples);
    let mut how = explained(findings, repetitions, drawn.quantity);
    if !margins.is_empty() {
        how.push_str("; a bar is the margin tolerated");
    }
    how.push('.');
    if let Some(heaviest) = scenario.and_then(|s| study.scenarios.get(s)) {
        let begins = study
            .phases
            .iter()
            .map(|p| format!("{} from {} s", p.name, digits(p.begins_ns as f64 / 1e9, 4)));
        let begins: Vec<String> = begins.collect();
        how.push_str(&format!(
            " Scenario {}, phases: {}.",
            heaviest.name,
            begins.join(", ")
        ));
    }
    Figure {
        subject: format!("{} of slice {}", drawn.title, drawing.slice_name(slice)),
        how,
        panels: vec![panel],
    }
}

/// Explains a sign and its whisker, without a full stop.
fn explained(
    findings: &Findings,
    repetitions: impl Iterator<Item = u32>,
    quantity: Quantity,
) -> String {
    let is_of_slices = SLICE_FIGURES.iter().any(|drawn| drawn.quantity == quantity);
    let span = if is_of_slices {
        "after the initial transient"
    } else {
        "in whole runs"
    };
    let all: Vec<u32> = repetitions.collect();
    let (fewest, most) = (all.iter().min(), all.iter().max());
    let many = match (fewest, most) {
        (Some(fewest), Some(most)) if fewest != most => format!("{fewest} to {most}"),
        _ => most.map_or_else(String::new, u32::to_string),
    };
    match most {
        None | Some(0 | 1) => format!("A sign is the value of one repetition {span}"),
        Some(_) => format!(
            "A sign is the mean of {many} repetitions {span}, its whisker the {} confidence interval of the mean",
            percent(findings.main().summary.confidence)
        ),
    }
}

/// Kinds and figures of what a guaranteed slice got in the heaviest scenario that more than one back end
/// has; none where there is no such scenario.
pub(super) fn figures_beside(drawing: &Drawing<'_>, slice: usize) -> Vec<(&'static str, Figure)> {
    let findings = drawing.findings;
    let sides = &findings.sides;
    let mut slices = findings.study().slices.iter();
    let is_guaranteed = slices.nth(slice).is_some_and(|s| s.guaranteed);
    let covers = |side: &&Side, scenario: &str| side.covered_scenarios().any(|s| s == scenario);
    let mut scenarios = findings.study().scenarios.iter().enumerate().rev();
    let shared = scenarios.find(|(_, scenario)| {
        let covering = sides.iter().filter(|side| covers(side, &scenario.name));
        covering.count() > 1
    });
    let Some((scenario, _)) = shared.filter(|_| is_guaranteed) else {
        return Vec::new();
    };
    let drawn = SLICE_FIGURES
        .into_iter()
        .filter(|drawn| drawn.quantity != Quantity::Throughput);
    drawn
        .map(|drawn| (drawn.kind, beside(drawing, slice, scenario, drawn)))
        .collect()
}

fn beside(drawing: &Drawing<'_>, slice: usize, scenario: usize, drawn: Drawn) -> Figure {
    let findings = drawing.findings;
    let study = findings.study();
    let name = drawing.slice_name(slice);
    let scenario_name = study.scenarios.get(scenario).map_or("", |s| &s.name);
    let marks = beside_marks(findings, name, scenario_name, drawn.quantity);
    let limits = drawing.limits(drawn.quantity.name(), slice, Some(scenario));
    let limits: Vec<&Limit> = limits
        .into_iter()
        .filter(|limit| limit.kind != "margin")
        .collect();
    let sides = findings.sides.iter().enumerate();
    let members = sides.map(|(index, side)| (side.name.clone(), signs::slice(index)));
    let members: Vec<_> = members.collect();
    let places = Places::Rows(
        "policy",
        study.policies.iter().map(|p| p.name.clone()).collect(),
    );
    let mut panel = places.panel(drawn.axis(&marks, &limits), &members, &marks);
    // Colours are those of back ends: a limit of one policy is drawn in its row.
    panel.limits = limits
        .iter()
        .map(|limit| Level {
            on_x: true,
            colour: INK,
            extent: limit
                .policy
                .map(|policy| (count(policy), count(policy) + 1.0)),
            ..drawing.level(limit)
        })
        .collect();
    let repetitions = marks.iter().map(|mark| mark.estimate.samples);
    Figure {
        subject: format!(
            "{} of slice {name} on several back ends, scenario {scenario_name}",
            drawn.title
        ),
        how: explained(findings, repetitions, drawn.quantity) + ".",
        panels: vec![panel],
    }
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
                    place: findings.study().policy_place(&cell.policy)?,
                    member: index,
                    estimate: estimate(cell, slice, quantity)?,
                })
            });
        marks.collect::<Vec<_>>()
    };
    sides.flat_map(of_side).collect()
}
