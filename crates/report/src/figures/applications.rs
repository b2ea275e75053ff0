//! The first connection of each source over time.

use super::axis::Axis;
use super::panel::{DrawError, Panel, figure};
use super::{TALL, count};
use crate::curves::BinnedRun;
use crate::signs::{self, Sign};
use slicewise_stats::words::time;

/// Sources that one figure shows.
const SOURCES_DRAWN: usize = 8;

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
