//! Axes and signs of declared figures.

use super::fits::curve_values;
use super::{Declared, Entry, Line, axis_name};
use crate::figures::axis::Axis;
use crate::figures::canvas::{THIN, line_width};
use crate::figures::estimates::Places;
use crate::figures::figure::{Panel, Point, Series, Shape};
use slicewise_stats::description::number_and_unit;
use slicewise_stats::estimate::Estimate;
use slicewise_stats::plot::{PlotDistribution, PlotValue, PlotX};
use slicewise_stats::plotted::PlotCell;
use slicewise_stats::quantity::Unit;

impl<'a> Declared<'a> {
    /// A quantity over names, which are rows, or over numbers.
    pub(super) fn over_places(&self, lines: &[Line<'a>], how: &mut Vec<String>) -> Panel {
        let Some(y) = &self.plot.y else {
            return Panel::new(Axis::around("", &[0.0]), Axis::around("", &[0.0]));
        };
        let places = self.places(lines);
        let mut drawn = Vec::new();
        for (member, line) in lines.iter().enumerate() {
            let points = line.entries.iter().filter_map(|entry| {
                let estimate = entry.cell.y.as_ref()?;
                let at = places.at(self.place_of(*entry, &places)?, member, lines.len());
                let point = places.point(at, estimate.mean, ends(estimate));
                Some(Point {
                    label: entry.label(),
                    ..point
                })
            });
            let mut points: Vec<Point> = points.collect();
            let is_joined = matches!(places, Places::Numbers(..)) && line.is_curve();
            if is_joined {
                points.sort_by(|a, b| a.x.total_cmp(&b.x));
            }
            // Signs of a row stand beside each other; others may hide one another.
            let width = match is_joined {
                true => line_width(member, lines.len()),
                false => THIN,
            };
            drawn.push(series(line, self.shape(is_joined), width, points));
        }
        let values = estimates(lines, |cell| cell.y.as_ref());
        let name = axis_name(y);
        let unit = y.metric.quantity.unit();
        if matches!(places, Places::Rows(..)) {
            let mut panel = Panel::new(suited(&name, unit, &values, &[]), places.axis());
            panel.series = with_points(drawn);
            return panel;
        }
        let x = places.axis();
        let curves = self.fits(&drawn, (&x, &suited(&name, unit, &values, &[])), lines, how);
        let y = suited(&name, unit, &values, &curve_values(&curves));
        let mut panel = Panel::new(x, y);
        panel.series = with_points(drawn.into_iter().chain(curves));
        panel
    }

    /// Signs that no line joins where curves are fitted to them.
    fn shape(&self, is_joined: bool) -> Shape {
        match is_joined && self.plot.fits.is_empty() {
            true => Shape::SignedLine,
            false => Shape::Signs,
        }
    }

    fn places(&self, lines: &[Line<'a>]) -> Places<'a> {
        let entries = || lines.iter().flat_map(|line| &line.entries);
        let names = |of: fn(Entry<'a>) -> &'a str| {
            let mut names: Vec<String> = Vec::new();
            for name in entries().map(|entry| of(*entry)) {
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            }
            names
        };
        let of_scenario = |entry: &Entry<'a>| entry.scenario().map_or("", |s| s.x.as_str());
        match self.plot.x {
            PlotX::Policy => Places::Rows("policy", names(Entry::policy)),
            PlotX::Case => Places::Rows("case", names(Entry::row)),
            PlotX::CaseNumber => numbers(entries().map(|entry| entry.case_x)),
            PlotX::ScenarioNumber => numbers(entries().map(of_scenario)),
            _ => Places::Rows("scenario", names(Entry::scenario_name)),
        }
    }

    fn place_of(&self, entry: Entry<'a>, places: &Places<'_>) -> Option<usize> {
        let scenario = entry.scenario()?;
        match places {
            Places::Rows(_, names) => {
                let name = match self.plot.x {
                    PlotX::Policy => entry.policy(),
                    PlotX::Case => entry.row(),
                    _ => scenario.name.as_str(),
                };
                names.iter().position(|known| known == name)
            }
            Places::Numbers(_, values) => {
                let (value, _) = match self.plot.x {
                    PlotX::CaseNumber => number_and_unit(entry.case_x)?,
                    _ => number_and_unit(&scenario.x)?,
                };
                values.iter().position(|known| *known == value)
            }
            Places::Times(_) => None,
        }
    }

    /// Two quantities over each other. Points are joined in the order of their scenarios' numbers, where all state one.
    pub(super) fn scatter(
        &self,
        x: &PlotValue,
        lines: &[Line<'a>],
        how: &mut Vec<String>,
    ) -> Panel {
        let Some(y) = &self.plot.y else {
            return Panel::new(Axis::around("", &[0.0]), Axis::around("", &[0.0]));
        };
        let number = |entry: &Entry<'a>| Some(number_and_unit(&entry.scenario()?.x)?.0);
        let mut all = lines.iter().flat_map(|line| &line.entries);
        let is_joined = all.all(|entry| number(entry).is_some());
        let drawn = lines.iter().enumerate().map(|(member, line)| {
            let mut entries = line.entries.clone();
            if is_joined {
                entries.sort_by(|a, b| {
                    number(a)
                        .unwrap_or(0.0)
                        .total_cmp(&number(b).unwrap_or(0.0))
                });
            }
            let points = entries.iter().filter_map(|entry| {
                let (x, y) = (entry.cell.x.as_ref()?, entry.cell.y.as_ref()?);
                Some(Point {
                    interval: ends(y),
                    across: ends(x),
                    label: entry.label(),
                    ..Point::of(x.mean, Some(y.mean))
                })
            });
            let width = line_width(member, lines.len());
            series(line, self.shape(is_joined), width, points.collect())
        });
        let drawn: Vec<Series> = drawn.collect();
        if is_joined && self.plot.fits.is_empty() {
            how.push("Lines join signs in the order of the scenarios' numbers.".to_owned());
        }
        let of_x = estimates(lines, |cell| cell.x.as_ref());
        let of_y = estimates(lines, |cell| cell.y.as_ref());
        let unit = |value: &PlotValue| value.metric.quantity.unit();
        let axis = suited(&axis_name(x), unit(x), &of_x, &[]);
        let other = suited(&axis_name(y), unit(y), &of_y, &[]);
        let curves = self.fits(&drawn, (&axis, &other), lines, how);
        let other = suited(&axis_name(y), unit(y), &of_y, &curve_values(&curves));
        let mut panel = Panel::new(axis, other);
        panel.series = with_points(drawn.into_iter().chain(curves));
        panel
    }
}

/// Distributions as steps of known values, or percentiles as joined signs.
pub(super) fn distribution(of: &PlotDistribution, lines: &[Line<'_>]) -> Panel {
    let entries = lines.iter().flat_map(|line| &line.entries);
    let values = entries.flat_map(|entry| &entry.cell.distribution);
    let values: Vec<Estimate> = values.map(|(value, _)| *value).collect();
    let name = format!("{} of {}", of.of.words(), of.slice);
    let x = suited(&name, of.of.quantity().unit(), &values, &[]);
    let is_known = of.of.percentiles().is_empty();
    let (members, _) = of.of.members();
    let name = format!("{members} with at most this");
    let y = match is_known {
        true => Axis::from_zero(&name, ("%", 0.01), 1.0),
        false => Axis::tail(&name),
    };
    let mut panel = Panel::new(x, y);
    for (member, line) in lines.iter().enumerate() {
        let (shape, points) = match is_known {
            true => (Shape::Steps, pooled(line)),
            false => (Shape::SignedLine, percentiles(line)),
        };
        let width = line_width(member, lines.len());
        let drawn = series(line, shape, width, points);
        panel.series.extend(with_points([drawn]));
    }
    panel
}

fn percentiles(line: &Line<'_>) -> Vec<Point> {
    let points = line.entries.iter().flat_map(|entry| {
        let point = |(value, share): &(Estimate, f64)| Point {
            across: ends(value),
            label: entry.label(),
            ..Point::of(value.mean, Some(*share))
        };
        entry
            .cell
            .distribution
            .iter()
            .map(point)
            .collect::<Vec<_>>()
    });
    points.collect()
}

/// Distribution of the values of all cells of a line together.
fn pooled(line: &Line<'_>) -> Vec<Point> {
    let distributions = line.entries.iter().map(|entry| &entry.cell.distribution);
    let values = distributions.flatten();
    let mut values: Vec<(f64, f64)> = values
        .map(|(value, _)| (value.mean, f64::from(value.samples)))
        .collect();
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: f64 = values.iter().map(|(_, times)| times).sum();
    let mut reached = 0.0;
    let mut points: Vec<Point> = Vec::new();
    for (value, times) in values {
        reached += times;
        let share = Some(reached / all);
        match points.last_mut() {
            Some(last) if last.x == value => last.y = share,
            _ => points.push(Point::of(value, share)),
        }
    }
    points
}

fn series(line: &Line<'_>, shape: Shape, width: f64, points: Vec<Point>) -> Series {
    Series {
        name: line.name.clone(),
        sign: line.sign,
        shape,
        width,
        points,
    }
}

/// Lines that have something to draw; the caption names the others.
fn with_points(all: impl IntoIterator<Item = Series>) -> Vec<Series> {
    let all = all.into_iter();
    all.filter(|series| !series.points.is_empty()).collect()
}

fn numbers<'a>(places: impl Iterator<Item = &'a str>) -> Places<'a> {
    let mut values: Vec<f64> = Vec::new();
    let mut unit = "";
    for (value, of) in places.filter_map(number_and_unit) {
        unit = of;
        if !values.contains(&value) {
            values.push(value);
        }
    }
    Places::Numbers(unit, values)
}

/// Estimates along an axis.
fn estimates(lines: &[Line<'_>], of: fn(&PlotCell) -> Option<&Estimate>) -> Vec<Estimate> {
    let entries = lines.iter().flat_map(|line| &line.entries);
    entries
        .filter_map(|entry| of(entry.cell).copied())
        .collect()
}

fn ends(estimate: &Estimate) -> Option<(f64, f64)> {
    let interval = estimate.interval;
    let ends = interval.low.zip(interval.high);
    ends.filter(|(low, high)| high > low)
}

/// An axis with room for all estimates and for `more`: from zero, or logarithmic where values lie far apart.
pub(super) fn suited(quantity: &str, unit: Unit, estimates: &[Estimate], more: &[f64]) -> Axis {
    let means = estimates.iter().map(|estimate| estimate.mean);
    let least = means.clone().fold(f64::INFINITY, f64::min);
    let most = means.clone().fold(0.0, f64::max);
    let interval_ends = estimates.iter().filter_map(ends);
    let interval_ends = interval_ends.flat_map(|(low, high)| [low, high]);
    let values = means.chain(interval_ends).chain(more.iter().copied());
    let largest = values.clone().fold(0.0, f64::max);
    let labels = match unit {
        Unit::Time if largest >= 1e9 => ("s", 1e9),
        Unit::Time if largest >= 1e6 => ("ms", 1e6),
        Unit::Time => ("µs", 1e3),
        Unit::TimeSquared => ("ms²", 1e12),
        Unit::Rate if largest >= 1e10 => ("Gbit/s", 1e9),
        Unit::Rate => ("Mbit/s", 1e6),
        Unit::Ratio => ("%", 0.01),
        Unit::Bytes => ("kB", 1e3),
        Unit::Statistic => ("", 1.0),
        Unit::PerSecond(name) | Unit::Number(name) => (name, 1.0),
    };
    match (least > 0.0 && most / least > FAR_APART, unit) {
        (true, Unit::Time) => Axis::time(quantity, values),
        (true, _) => Axis::logarithmic(quantity, labels, values),
        (false, _) => Axis::from_zero(quantity, labels, largest),
    }
}

/// Values from whose ratio on an axis is logarithmic.
const FAR_APART: f64 = 20.0;
