//! The tables of applications: what each source got in a run, over time, and over repetitions.

use super::column::{Run, Value, at, columns};
use super::estimates::Estimated;
use super::folder::DataFolder;
use super::table::{Tables, write_or_remove};
use crate::error::ReportError;
use slicewise_stats::application::{
    ApplicationRecord, FlowFigures, RequestFigures, TransportFigures, VideoFigures,
};
use slicewise_stats::application_summary::ApplicationSummary;
use slicewise_stats::estimate::Estimate;
use slicewise_stats::quantity::Quantity;
use slicewise_stats::record::{CdfPoint, DelayFigures, RunKey, RunRecord};
use slicewise_stats::summary::{CellSummary, Summary};

columns! {
    /// The application of one source in a run.
    Applications<'a> = "applications" (key: &'a RunKey, source: &'a ApplicationRecord) {
        ..Run(key),
        source: &str = &source.source,
        slice: &str = &source.slice,
        ..Transport(&source.transport),
        failed_connections: u64 = source.failures.iter().map(|failure| failure.connections).sum(),
        ..Requests(source.requests.as_ref()),
        ..Flows(source.flows.as_ref()),
        ..Video(source.video.as_ref()),
    }
}

columns! {
    /// Its connections together.
    Transport<'a>(of: &TransportFigures) {
        fields of: u64 { span_ns connections }
        goodput_bits_per_second: f64 = of.goodput_bits_per_second,
        fields of: u64 { segments retransmitted_segments timeouts recoveries rtt_samples }
        rtt_mean_ns: Option<f64> = (of.rtt_samples > 0).then_some(of.rtt_mean_ns),
        rtt_min_ns: Option<u64> = (of.rtt_samples > 0).then_some(of.rtt_min_ns),
        rtt_max_ns: Option<u64> = (of.rtt_samples > 0).then_some(of.rtt_max_ns),
        window_mean_bytes: Option<f64> = (of.window_samples > 0).then_some(of.window_mean_bytes),
        fairness: Option<f64> = of.fairness,
    }
}

columns! {
    /// Of requests at a constant rate.
    Requests<'a>(of: Option<&RequestFigures>) {
        requests_offered_per_second: Option<f64> = of.map(|of| of.offered_per_second),
        requests_achieved_per_second: Option<f64> = of.map(|of| of.achieved_per_second),
        requests_unanswered: Option<u64> = of.map(|of| of.unanswered),
        request_latency_mean_ns: Option<f64> = times(of.map(|of| of.latency), |of| of.mean_ns),
        request_latency_p50_ns: Option<u64> = times(of.map(|of| of.latency), |of| of.p50_ns),
        request_latency_p90_ns: Option<u64> = times(of.map(|of| of.latency), |of| of.p90_ns),
        request_latency_p99_ns: Option<u64> = times(of.map(|of| of.latency), |of| of.p99_ns),
        request_latency_p999_ns: Option<u64> = times(of.map(|of| of.latency), |of| of.p999_ns),
        request_latency_max_ns: Option<u64> = times(of.map(|of| of.latency), |of| of.max_ns),
        response_time_mean_ns: Option<f64> = times(of.map(|of| of.response_time), |of| of.mean_ns),
        response_time_p99_ns: Option<u64> = times(of.map(|of| of.response_time), |of| of.p99_ns),
    }
}

columns! {
    /// Of flows with an end.
    Flows<'a>(of: Option<&FlowFigures>) {
        flows_completed: Option<u64> = of.map(|of| of.completed),
        completion_time_mean_ns: Option<f64> = times(of.map(|of| of.completion_time), |of| of.mean_ns),
        completion_time_p50_ns: Option<u64> = times(of.map(|of| of.completion_time), |of| of.p50_ns),
        completion_time_p90_ns: Option<u64> = times(of.map(|of| of.completion_time), |of| of.p90_ns),
        completion_time_p99_ns: Option<u64> = times(of.map(|of| of.completion_time), |of| of.p99_ns),
        completion_time_max_ns: Option<u64> = times(of.map(|of| of.completion_time), |of| of.max_ns),
        flow_rate_mean_bits_per_second: Option<f64> = of.and_then(|of| of.rate_mean_bits_per_second),
    }
}

columns! {
    /// Of video.
    Video<'a>(of: Option<&VideoFigures>) {
        video_clients: Option<u64> = of.map(|of| of.clients),
        video_segments: Option<u64> = of.map(|of| of.segments),
        quality_mean: Option<f64> = of.and_then(|of| of.quality_mean),
        quality_least: Option<f64> = of.and_then(|of| of.quality_least),
        bit_rate_mean_bits_per_second: Option<f64> = of.and_then(|of| of.bit_rate_mean),
        switches_per_minute: Option<f64> = of.and_then(|of| of.switches_per_minute),
        start_up_mean_ns: Option<f64> = of.and_then(|of| of.start_up_mean_ns),
        stalls: Option<u64> = of.map(|of| of.stalls),
        stalled_ratio: Option<f64> = of.and_then(|of| of.stalled_ratio),
    }
}

columns! {
    /// An interval of a run.
    Bins<'a> = "application_series" (record: &'a RunRecord, source: &'a ApplicationRecord, bin: usize) {
        ..Run(&record.key),
        source: &str = &source.source,
        start_ns: u64 = record.bin_ns.saturating_mul(bin as u64),
        goodput_bytes: u64 = at(&source.series.goodput_bytes, bin).unwrap_or(0),
        retransmitted_segments: u32 = at(&source.series.retransmitted_segments, bin).unwrap_or(0),
        rtt_mean_ns: Option<u64> = at(&source.series.rtt_mean_ns, bin).flatten(),
        first_window_bytes: Option<u64> = at(&source.series.first_window_bytes, bin).flatten(),
        first_rtt_ns: Option<u64> = at(&source.series.first_rtt_ns, bin).flatten(),
    }
}

columns! {
    /// A point of the distribution of times of an application in a run.
    Times<'a> = "application_times" (key: &'a RunKey, source: &'a ApplicationRecord, (point, share): (CdfPoint, f64)) {
        ..Run(key),
        source: &str = &source.source,
        slice: &str = &source.slice,
        of: &str = if source.requests.is_some() { "request_latency" } else { "completion_time" },
        time_ns: u64 = point.0,
        share_of_finished: f64 = point.1,
        share_of_all: f64 = point.1 * share,
    }
}

columns! {
    /// A figure of an application over repetitions.
    Cells<'a> = "application_cells" (
        cell: &'a CellSummary, of: &'a ApplicationSummary, (quantity, estimate): (Quantity, &'a Estimate), confidence: f64
    ) {
        policy: &str = &cell.policy,
        scenario: &str = &cell.scenario,
        source: Option<&str> = of.source.as_deref(),
        slice: &str = &of.slice,
        ..Estimated(quantity.column(), estimate, confidence),
    }
}

fn times<T>(of: Option<DelayFigures>, time: fn(&DelayFigures) -> T) -> Option<T> {
    of.filter(|of| of.samples > 0).as_ref().map(time)
}

/// Writes the results of applications in a run; the tables begin with the first run that has some.
pub(super) fn on_run(tables: &mut Tables, record: &RunRecord) -> Result<(), ReportError> {
    let mut phases = record.phases.iter();
    if record.applications.is_empty() && phases.all(|phase| phase.applications.is_empty()) {
        return Ok(());
    }
    tables.begin([Applications::SCHEMA, Bins::SCHEMA, Times::SCHEMA])?;
    sources(tables, record)?;
    for view in record.by_phase() {
        for source in &*view.applications {
            let (finished, all) = source.finished().unwrap_or((0, 1));
            let share = finished as f64 / all as f64;
            let points = source.times.iter();
            let rows = points.map(|point| Times::row(&view.key, source, (*point, share)));
            tables.rows(Times::SCHEMA, rows)?;
        }
    }
    for source in &record.applications {
        let bins = 0..source.series.goodput_bytes.len();
        let rows = bins.map(|bin| Bins::row(record, source, bin));
        tables.rows(Bins::SCHEMA, rows)?;
    }
    Ok(())
}

/// Writes a row for each source of a run, and each of its phases.
pub(super) fn sources(tables: &mut Tables, record: &RunRecord) -> Result<(), ReportError> {
    record.by_phase().iter().try_for_each(|view| {
        let sources = view.applications.iter();
        let rows = sources.map(|source| Applications::row(&view.key, source));
        tables.rows(Applications::SCHEMA, rows)
    })
}

/// Estimates of applications; the table is there where a cell has some.
pub(super) fn write_cells(folder: &DataFolder, summary: &Summary) -> Result<(), ReportError> {
    let mut rows = cells(summary).peekable();
    let has_some = rows.peek().is_some();
    write_or_remove(folder, Cells::SCHEMA, has_some.then_some(rows))
}

/// Rows of the estimates of applications.
pub(super) fn cells(summary: &Summary) -> impl Iterator<Item = Vec<Value<'_>>> {
    summary.cells.iter().flat_map(move |cell| {
        let of_all = cell.applications.iter();
        let figures = of_all.flat_map(|of| of.estimates.iter().map(move |estimate| (of, estimate)));
        figures.map(move |(of, estimate)| Cells::row(cell, of, estimate, summary.confidence))
    })
}
