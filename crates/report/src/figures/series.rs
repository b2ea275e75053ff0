//! Figures over the time of a run.

use super::axis::Axis;
use super::canvas::{HAIR, THIN};
use super::figure::{Figure, Level, Panel, Point, Series, Shape};
use super::{Drawing, count};
use crate::curves::{BinnedRun, BinnedSlice};
use crate::signs;

/// The line of the `index`th slice: solid, and dashed where colours repeat.
fn line(index: usize) -> signs::Sign {
    signs::Sign {
        dash: signs::DASHES[index / signs::SLICES.len() % signs::DASHES.len()],
        ..signs::slice(index)
    }
}

/// A value for each bin; `None` where there is none.
type Values = Vec<Option<f64>>;

/// Rate, loss and delay of one run above each other.
pub(super) fn of_run(drawing: &Drawing<'_>, run: &BinnedRun, scenario: &str) -> Figure {
    let slices: Vec<SliceSeries> = run
        .slices
        .iter()
        .map(|slice| SliceSeries::of(run, slice))
        .collect();
    let mut panels = panels(drawing, run, &slices);
    for (index, slice) in slices.iter().enumerate() {
        let lines = [
            (0, &slice.sent, HAIR),
            (0, &slice.received, WIDE),
            (1, &slice.loss, THIN),
            (2, &slice.delay, THIN),
        ];
        for (panel, values, width) in lines {
            panels[panel].series.push(Series {
                name: drawing.slice_name(index).to_owned(),
                sign: line(index),
                shape: Shape::Line,
                width,
                points: points(run, values.iter().copied()),
            });
        }
    }
    let shaded = match (
        run.left_out.is_empty(),
        drawing.findings.study().phases.is_empty(),
    ) {
        (true, _) => "",
        (false, true) => "; shaded: the initial transient",
        (false, false) => "; shaded: phases settle",
    };
    Figure {
        subject: format!(
            "Rate, loss and mean delay of each slice over time under policy {}, scenario {scenario}, repetition {}",
            run.policy_name, run.repetition
        ),
        how: format!("Thin lines: sent; thick lines: received{shaded}."),
        panels,
    }
}

/// Panels of rate, loss and delay with their limits.
fn panels(drawing: &Drawing<'_>, run: &BinnedRun, slices: &[SliceSeries]) -> Vec<Panel> {
    let limits = ["throughput", "loss_ratio", "delay"].map(|metric| levels(drawing, run, metric));
    let largest = |of: fn(&SliceSeries) -> [&Values; 2], limits: &[Level]| {
        let values = slices.iter().flat_map(of).flatten().flatten().copied();
        values
            .chain(limits.iter().map(|level| level.value))
            .fold(0.0, f64::max)
    };
    let bins = run.slices.iter().map(|s| s.sent.len()).max();
    let seconds = || Axis::seconds(count(bins.unwrap_or_default()) * run.bin_seconds());
    let rate = largest(|s| [&s.sent, &s.received], &limits[0]);
    let delays = slices
        .iter()
        .flat_map(|slice| &slice.delay)
        .flatten()
        .copied();
    let axes = [
        Axis::from_zero(
            "rate",
            if rate >= 1e10 {
                ("Gbit/s", 1e9)
            } else {
                ("Mbit/s", 1e6)
            },
            rate,
        ),
        Axis::from_zero("loss", ("%", 0.01), largest(|s| [&s.loss; 2], &limits[1])),
        Axis::time(
            "delay",
            delays.chain(limits[2].iter().map(|level| level.value)),
        ),
    ];
    let mut panels = Vec::new();
    for (axis, limits) in axes.into_iter().zip(limits) {
        let shaded = run
            .left_out
            .iter()
            .map(|part| (part.from_ns as f64 / 1e9, part.to_ns as f64 / 1e9));
        panels.push(Panel {
            limits,
            shaded: shaded.collect(),
            ..Panel::new(seconds(), axis)
        });
    }
    panels
}

/// Limits of all slices under the run's policy; none where they are too many to be read.
fn levels(drawing: &Drawing<'_>, run: &BinnedRun, metric: &str) -> Vec<Level> {
    let findings = drawing.findings;
    let base = findings.base_of(run.policy);
    let slices = 0..run.slices.len();
    let limits = slices.flat_map(|slice| drawing.limits(metric, slice, Some(run.scenario)));
    let own = limits.filter(|limit| {
        limit.kind != "margin"
            && limit
                .policy
                .is_none_or(|policy| findings.base_of(policy) == base)
    });
    let levels = own.map(|limit| {
        let label = format!("{}: {}", drawing.slice_name(limit.slice), limit.label);
        Level {
            label,
            colour: signs::slice(limit.slice).colour,
            ..drawing.level(limit)
        }
    });
    let levels: Vec<Level> = levels.collect();
    if levels.len() > MOST_LIMITS {
        Vec::new()
    } else {
        levels
    }
}

/// Sources that one figure shows.
const SOURCES_DRAWN: usize = 8;

/// Window and round-trip time of the first connection of each source, above each other; `None` where no source is an
/// application.
pub(super) fn of_applications(run: &BinnedRun, scenario: &str) -> Option<Figure> {
    let drawn = run
        .applications
        .get(..SOURCES_DRAWN.min(run.applications.len()))?;
    let bins = drawn
        .iter()
        .map(|(_, series)| series.first_rtt_ns.len())
        .max()?;
    let value = |value: &Option<u64>| value.map(|value| value as f64);
    let windows = drawn
        .iter()
        .flat_map(|(_, series)| &series.first_window_bytes);
    let largest = windows.filter_map(value).fold(0.0, f64::max);
    let times = drawn.iter().flat_map(|(_, series)| &series.first_rtt_ns);
    let seconds = || Axis::seconds(count(bins) * run.bin_seconds());
    let mut panels = vec![
        Panel::new(seconds(), Axis::from_zero("window", ("kB", 1e3), largest)),
        Panel::new(
            seconds(),
            Axis::time("round-trip time", times.filter_map(value)),
        ),
    ];
    for (index, (source, series)) in drawn.iter().enumerate() {
        for (panel, values) in panels
            .iter_mut()
            .zip([&series.first_window_bytes, &series.first_rtt_ns])
        {
            panel.series.push(Series {
                name: source.clone(),
                sign: signs::policy(index),
                shape: Shape::Line,
                width: THIN,
                points: points(run, values.iter().map(value)),
            });
        }
    }
    Some(Figure {
        subject: format!(
            "Congestion window and round-trip time of the first connection of each source under policy {}, scenario {scenario}, repetition {}",
            run.policy_name, run.repetition
        ),
        how: String::new(),
        panels,
    })
}

/// Values in the middle of their bins.
fn points(run: &BinnedRun, values: impl Iterator<Item = Option<f64>>) -> Vec<Point> {
    let width = run.bin_seconds();
    let values = values.enumerate();
    values
        .map(|(bin, value)| Point::of((count(bin) + 0.5) * width, value))
        .collect()
}

/// The series of one slice in the units in which they are drawn: rates in bit/s, the loss ratio, mean delay in ns.
struct SliceSeries {
    sent: Values,
    received: Values,
    loss: Values,
    delay: Values,
}

impl SliceSeries {
    fn of(run: &BinnedRun, slice: &BinnedSlice) -> Self {
        let rate = |bytes: &u64| Some(*bytes as f64 * 8.0 / run.bin_seconds());
        let loss =
            |(lost, sent): (&u32, &u32)| (*sent > 0).then(|| f64::from(*lost) / f64::from(*sent));
        Self {
            sent: slice.sent.iter().map(rate).collect(),
            received: slice.received.iter().map(rate).collect(),
            loss: slice.lost.iter().zip(&slice.frames).map(loss).collect(),
            delay: (slice.delay_mean_ns.iter())
                .map(|ns| ns.map(|ns| ns as f64))
                .collect(),
        }
    }
}

/// Width of lines of what was received, pt.
const WIDE: f64 = 1.25;
/// Limits of one panel that have room for their names.
const MOST_LIMITS: usize = 6;
