//! Heat maps: a quantity over the two axes of a sweep, a panel for each policy.

use super::panels::suited;
use super::{Declared, Entry, axis_name};
use crate::figures::axis::Axis;
use crate::figures::canvas::{INK, Place, Rgb, THIN};
use crate::figures::figure::{Figure, Panel, Point, Series, Shape};
use crate::figures::heat_map::colour;
use crate::findings::Findings;
use crate::signs::{CIRCLE, CROSS, Sign};
use slicewise_stats::description::Coordinate;
use slicewise_stats::estimate::{Estimate, Interval};
use slicewise_stats::plot::PlotX;
use slicewise_stats::quantity::Unit;
use slicewise_stats::verdict::Outcome;
use std::collections::BTreeMap;

/// Findings of points of a sweep, by the name of the point.
pub(in crate::figures) type PointsByName<'a> = BTreeMap<&'a str, &'a Findings>;

/// Cells of all panels.
struct Grid {
    x: Axis,
    y: Axis,
    colours: Axis,
    unit: Unit,
    /// Values of both axes in ascending order, and the edges between them.
    values: [Vec<f64>; 2],
    edges: [Vec<f64>; 2],
}

impl<'a> Declared<'a> {
    /// Heat map of the quantity over both axes of a sweep; `None` unless the sweep has two axes of numbers, and values of
    /// one were combined with values of the other.
    pub(in crate::figures) fn map(&self, points: &PointsByName<'_>) -> Option<Figure> {
        let of = self.plot.y.as_ref()?;
        if !matches!(self.plot.x, PlotX::Case | PlotX::CaseNumber) {
            return None;
        }
        let entries = self.entries();
        let [first, second] = entries.first()?.study.coordinates.as_slice() else {
            return None;
        };
        let place = |entry: &Entry<'a>| match entry.study.coordinates.as_slice() {
            [x, y] if x.unit == first.unit && y.unit == second.unit => Some((x.number?, y.number?)),
            _ => None,
        };
        let places: Vec<Place> = entries.iter().map(place).collect::<Option<_>>()?;
        let columns = combined(places.iter().copied());
        let shown = places.iter().filter(|(x, _)| columns.contains(x));
        let rows = combined(shown.map(|(x, y)| (*y, *x)));
        if columns.len() < 2 || rows.len() < 2 {
            return None;
        }
        let (x, x_edges) = Axis::of_cells(&name(first), &columns);
        let (y, y_edges) = Axis::of_cells(&name(second), &rows);
        let means = entries.iter().filter_map(|entry| entry.cell.y);
        let means = means.map(|estimate| Estimate {
            interval: Interval::default(),
            ..estimate
        });
        let unit = of.metric.quantity.unit();
        let grid = Grid {
            x,
            y,
            colours: suited(&axis_name(of), unit, &means.collect::<Vec<_>>(), &[]),
            unit,
            values: [columns, rows],
            edges: [x_edges, y_edges],
        };
        let mut how = vec![
            "A cell has the colour of the mean over its repetitions; hatched cells were not run or have no value.".to_owned(),
        ];
        let between = places.iter().copied();
        let between = between.filter(|place| grid.cell(*place).is_none());
        match distinct(between).len() {
            0 => {}
            1 => how.push("1 point between others is not drawn.".to_owned()),
            more => how.push(format!("{more} points between others are not drawn.")),
        }
        let panels = grid.panels(&entries, &places, points);
        let mut series = panels.iter().flat_map(|panel| &panel.series);
        if series.any(|series| series.shape == Shape::Mark) {
            how.push(
                "A cross: performance isolation is broken; a dot: it is undecided.".to_owned(),
            );
        }
        how.extend(self.left_out(&entries));
        let title = self.title();
        let over = [first, second].map(|of| title.strip_suffix(&format!(" over {}", of.axis)));
        let subject = over.into_iter().flatten().next().unwrap_or(&title);
        Some(Figure {
            subject: format!("{subject} over {} and {}", first.axis, second.axis),
            how: how.join(" "),
            panels,
        })
    }
}

impl Grid {
    fn panels(
        &self,
        entries: &[Entry<'_>],
        places: &[Place],
        points: &PointsByName<'_>,
    ) -> Vec<Panel> {
        let mut titles: Vec<[&str; 3]> = Vec::new();
        for entry in entries {
            if !titles.contains(&key(*entry)) {
                titles.push(key(*entry));
            }
        }
        let differs =
            |part: usize| part == 0 || titles.iter().any(|of| of[part] != titles[0][part]);
        let differing = [0, 1, 2].map(differs);
        let panels = titles.iter().map(|title| {
            let own = entries.iter().zip(places);
            let own = own.filter(|(entry, _)| key(**entry) == *title);
            let own = own.filter_map(|(entry, place)| Some((self.cell(*place)?, *entry)));
            let parts = title.iter().zip(differing);
            let parts = parts.filter(|(part, differs)| *differs && !part.is_empty());
            let parts: Vec<&str> = parts.map(|(part, _)| *part).collect();
            self.panel(&parts.join(", "), &own.collect(), points)
        });
        panels.collect()
    }

    /// Column and row.
    fn cell(&self, (x, y): Place) -> Option<(usize, usize)> {
        let [columns, rows] = &self.values;
        let column = columns.iter().position(|value| *value == x)?;
        Some((column, rows.iter().position(|value| *value == y)?))
    }

    fn panel(
        &self,
        title: &str,
        own: &BTreeMap<(usize, usize), Entry<'_>>,
        points: &PointsByName<'_>,
    ) -> Panel {
        let mut panel = Panel::new(self.x.clone(), self.y.clone());
        title.clone_into(&mut panel.title);
        panel.colours = Some(self.colours.clone());
        let mut broken = marks("isolation broken", CROSS);
        let mut undecided = marks("isolation undecided", CIRCLE);
        let [columns, rows] = &self.values;
        for (row, y) in rows.iter().enumerate() {
            for (column, x) in columns.iter().enumerate() {
                let entry = own.get(&(column, row));
                let estimate = entry.and_then(|entry| entry.cell.y);
                let point = Point {
                    across: self.extent(0, column),
                    interval: self.extent(1, row),
                    label: estimate.map_or_else(String::new, |of| self.unit.text(of.mean, 6)),
                    ..Point::of(*x, Some(*y))
                };
                let fill = estimate.map(|of| colour(self.colours.place(of.mean)));
                panel.series.push(cell(title, fill, point));
                let marks = match entry.and_then(|entry| outcome(*entry, points)) {
                    Some(Outcome::Broken) => &mut broken,
                    Some(Outcome::Inconclusive) => &mut undecided,
                    _ => continue,
                };
                marks.points.push(Point::of(*x, Some(*y)));
            }
        }
        let marks = [broken, undecided].into_iter();
        panel
            .series
            .extend(marks.filter(|marks| !marks.points.is_empty()));
        panel
    }

    fn extent(&self, axis: usize, index: usize) -> Option<(f64, f64)> {
        let edges = &self.edges[axis];
        edges.get(index).copied().zip(edges.get(index + 1).copied())
    }
}

/// Policy, scenario and point of the path, which have a panel.
fn key(entry: Entry<'_>) -> [&str; 3] {
    [entry.policy(), entry.scenario_name(), entry.cell.point]
}

/// Verdict on the isolation of the policy at this point.
fn outcome(entry: Entry<'_>, points: &PointsByName<'_>) -> Option<Outcome> {
    let verdicts = &points.get(entry.case())?.main().verdicts.policies;
    let verdict = verdicts.iter().find(|of| of.policy == entry.policy())?;
    let is_judged = !verdict.not_run && verdict.not_supported.is_none();
    is_judged.then_some(verdict.isolation.outcome)
}

fn cell(title: &str, fill: Option<Rgb>, point: Point) -> Series {
    Series {
        name: title.to_owned(),
        sign: Sign {
            colour: fill.unwrap_or(INK),
            marker: CIRCLE,
            dash: None,
        },
        shape: if fill.is_some() {
            Shape::Cell
        } else {
            Shape::NoValue
        },
        width: THIN,
        points: vec![point],
    }
}

fn marks(name: &str, marker: &'static [Place]) -> Series {
    Series {
        name: name.to_owned(),
        sign: Sign {
            colour: INK,
            marker,
            dash: None,
        },
        shape: Shape::Mark,
        width: THIN,
        points: Vec::new(),
    }
}

/// Values of the first axis that were combined with most values of the second, in ascending order. Others were added
/// where a verdict changes, or drawn at random.
fn combined(places: impl Iterator<Item = Place>) -> Vec<f64> {
    let places = distinct(places);
    let mut others: Vec<f64> = places.iter().map(|(_, other)| *other).collect();
    others.sort_by(f64::total_cmp);
    others.dedup();
    let columns = places.chunk_by(|a, b| a.0 == b.0);
    let columns = columns.filter(|column| column.len() * 2 > others.len());
    columns
        .filter_map(|column| Some(column.first()?.0))
        .collect()
}

/// Each once, in ascending order.
fn distinct(places: impl Iterator<Item = Place>) -> Vec<Place> {
    let mut places: Vec<Place> = places.collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    places.dedup();
    places
}

/// "load (%)".
fn name(of: &Coordinate) -> String {
    match of.unit.as_str() {
        "" => of.axis.clone(),
        unit => format!("{} ({unit})", of.axis),
    }
}
