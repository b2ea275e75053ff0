//! Figures of applications: what those of a slice got, and the first connection of each source over time.

use super::axis::Axis;
use super::estimates::{Mark, bars};
use super::panel::{DrawError, Panel, figure};
use super::{APPLICATION_FIGURES, TALL, count, slice_name};
use crate::curves::BinnedRun;
use crate::findings::Findings;
use crate::signs::{self, Sign};
use slicewise_stats::application_summary::{ApplicationQuantity, ApplicationUnit};
use slicewise_stats::words::time;

/// Sources that one figure shows.
const SOURCES_DRAWN: usize = 8;

/// Names and drawings of what the applications of a slice have.
pub(super) fn of_slice(
    findings: &Findings,
    slice: usize,
) -> impl Iterator<Item = (&'static str, Result<String, DrawError>)> {
    APPLICATION_FIGURES
        .into_iter()
        .filter_map(move |(kind, title, quantity)| {
            let marks = marks(findings, slice, quantity);
            if marks.is_empty() {
                return None;
            }
            let y = axis(title, quantity, &marks);
            let title = format!("{title} of slice {}", slice_name(findings, slice));
            Some((kind, bars(findings, &title, &marks, &y, None)))
        })
}

fn marks<'a>(findings: &'a Findings, slice: usize, quantity: ApplicationQuantity) -> Vec<Mark<'a>> {
    let study = findings.study();
    let name = slice_name(findings, slice);
    let cells = findings.main().summary.cells.iter();
    let mark = |cell: &'a slicewise_stats::summary::CellSummary| {
        let own = || cell.applications.iter().filter(|of| of.slice == name);
        // All sources of the slice together stand behind them.
        let of = own()
            .find(|of| of.source.is_none())
            .or_else(|| own().next())?;
        Some(Mark {
            group: study.scenario_place(&cell.scenario)?,
            member: study.policy_place(&cell.policy)?,
            estimate: of.of(quantity)?,
        })
    };
    cells.filter_map(mark).collect()
}

fn axis(title: &str, quantity: ApplicationQuantity, marks: &[Mark<'_>]) -> Axis {
    let name = title.to_lowercase();
    let largest = marks.iter().map(Mark::highest).fold(0.0, f64::max);
    match quantity.unit() {
        ApplicationUnit::Time => {
            Axis::logarithmic(&name, marks.iter().flat_map(Mark::values), time)
        }
        ApplicationUnit::Rate => Axis::from_zero(&format!("{name}, Mbit/s"), largest, 1e6),
        ApplicationUnit::Ratio => Axis::from_zero(&format!("{name}, %"), largest, 0.01),
        ApplicationUnit::Bytes => Axis::from_zero(&format!("{name}, kB"), largest, 1e3),
        ApplicationUnit::Number => Axis::from_zero(&name, largest, 1.0),
    }
}

/// Window and round-trip time of the first connection of each source, above each other; `None` where no source is an
/// application.
pub(super) fn series(run: &BinnedRun, title: &str) -> Option<Result<String, DrawError>> {
    let drawn = run
        .applications
        .get(..SOURCES_DRAWN.min(run.applications.len()))?;
    let bins = drawn
        .iter()
        .map(|(_, series)| series.first_rtt_ns.len())
        .max()?;
    let width = run.bin_seconds();
    let value = |value: &Option<u64>| value.map(|value| value as f64);
    let points = |values: &[Option<u64>]| {
        let values: Vec<Option<f64>> = values.iter().map(value).collect();
        let values = values.into_iter().enumerate();
        values.map(move |(bin, value)| ((count(bin) + 0.5) * width, value))
    };
    let windows = drawn
        .iter()
        .flat_map(|(_, series)| &series.first_window_bytes);
    let largest = windows.filter_map(value).fold(0.0, f64::max);
    let times = drawn.iter().flat_map(|(_, series)| &series.first_rtt_ns);
    let end = count(bins) * width;
    let hidden = Axis::span("", end);
    let seconds = Axis::span("time since the start of the run, s", end);
    let window = Axis::from_zero("congestion window, kB", largest, 1e3);
    let trip = Axis::logarithmic("round-trip time", times.filter_map(value), time);
    let legend: Vec<(String, Sign)> = drawn
        .iter()
        .enumerate()
        .map(|(index, (source, _))| (source.clone(), signs::policy(index)))
        .collect();
    Some(figure(title, &legend, TALL, |area| {
        let (upper, lower) = area.split_vertically(TALL / 2);
        let mut windows = Panel::new(&upper, &hidden, &window)?;
        let mut trips = Panel::new(&lower, &seconds, &trip)?;
        for (index, (_, series)) in drawn.iter().enumerate() {
            let sign = signs::policy(index);
            windows.signed_line(points(&series.first_window_bytes), sign, 3)?;
            trips.signed_line(points(&series.first_rtt_ns), sign, 3)?;
        }
        Ok(())
    }))
}
