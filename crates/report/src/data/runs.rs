//! Tables filled run by run, so that no more than one run is in memory.

use super::folder::DataFolder;
use super::table::{Column, Kind, Schema, TableWriter, Value};
use crate::error::ReportError;
use slicewise_stats::record::{CdfPoint, DelayFigures, Figures, RunKey, RunRecord, SliceRecord};

pub(crate) const RUNS: Schema = Schema {
    name: "runs",
    columns: &[
        Column::new("policy", Kind::Text),
        Column::new("scenario", Kind::Text),
        Column::new("repetition", Kind::Integer),
        Column::new("seed", Kind::Unsigned),
        Column::optional("slice", Kind::Text),
        Column::new("span", Kind::Text),
        Column::new("span_ns", Kind::Integer),
        Column::new("sent_frames", Kind::Integer),
        Column::new("sent_bytes", Kind::Integer),
        Column::new("received_frames", Kind::Integer),
        Column::new("received_bytes", Kind::Integer),
        Column::new("lost_frames", Kind::Integer),
        Column::new("offered_bits_per_second", Kind::Real),
        Column::new("throughput_bits_per_second", Kind::Real),
        Column::new("loss_ratio", Kind::Real),
        Column::new("delay_samples", Kind::Integer),
        Column::optional("delay_mean_ns", Kind::Real),
        Column::optional("delay_min_ns", Kind::Integer),
        Column::optional("delay_p50_ns", Kind::Integer),
        Column::optional("delay_p90_ns", Kind::Integer),
        Column::optional("delay_p95_ns", Kind::Integer),
        Column::optional("delay_p99_ns", Kind::Integer),
        Column::optional("delay_p999_ns", Kind::Integer),
        Column::optional("delay_p9999_ns", Kind::Integer),
        Column::optional("delay_p99999_ns", Kind::Integer),
        Column::optional("delay_max_ns", Kind::Integer),
        Column::optional("pdv_mean_ns", Kind::Real),
        Column::optional("pdv_p50_ns", Kind::Integer),
        Column::optional("pdv_p95_ns", Kind::Integer),
        Column::optional("pdv_p99_ns", Kind::Integer),
        Column::optional("pdv_p999_ns", Kind::Integer),
        Column::optional("pdv_max_ns", Kind::Integer),
        Column::new("ipdv_samples", Kind::Integer),
        Column::optional("ipdv_mean_ns", Kind::Real),
        Column::optional("ipdv_p95_ns", Kind::Integer),
        Column::optional("ipdv_p99_ns", Kind::Integer),
        Column::optional("ipdv_p999_ns", Kind::Integer),
        Column::optional("ipdv_max_ns", Kind::Integer),
        Column::optional("iat_samples", Kind::Integer),
        Column::optional("iat_mean_ns", Kind::Real),
        Column::optional("iat_variance_ns2", Kind::Real),
        Column::new("transient_end_ns", Kind::Integer),
        Column::new("steady_state_reached", Kind::Flag),
        Column::new("transient_throughput_bits_per_second", Kind::Real),
        Column::new("steady_throughput_bits_per_second", Kind::Real),
        Column::optional("scheduler_delay_max_ns", Kind::Integer),
        Column::optional("scheduler_after_eligible_max_ns", Kind::Integer),
    ],
};

pub(crate) const SERIES: Schema = Schema {
    name: "series",
    columns: &[
        Column::new("policy", Kind::Text),
        Column::new("scenario", Kind::Text),
        Column::new("repetition", Kind::Integer),
        Column::new("slice", Kind::Text),
        Column::new("start_ns", Kind::Integer),
        Column::new("sent_bytes", Kind::Integer),
        Column::new("received_bytes", Kind::Integer),
        Column::new("sent_frames", Kind::Integer),
        Column::new("lost_frames", Kind::Integer),
        Column::optional("delay_mean_ns", Kind::Integer),
        Column::optional("delay_max_ns", Kind::Integer),
    ],
};

pub(crate) const DELAY_CDF: Schema = Schema {
    name: "delay_cdf",
    columns: &[
        Column::new("policy", Kind::Text),
        Column::new("scenario", Kind::Text),
        Column::new("repetition", Kind::Integer),
        Column::new("slice", Kind::Text),
        Column::new("delay_ns", Kind::Integer),
        Column::new("fraction", Kind::Real),
    ],
};

pub(crate) const IAT_CDF: Schema = Schema {
    name: "iat_cdf",
    columns: &[
        Column::new("policy", Kind::Text),
        Column::new("scenario", Kind::Text),
        Column::new("repetition", Kind::Integer),
        Column::new("slice", Kind::Text),
        Column::new("iat_ns", Kind::Integer),
        Column::new("fraction", Kind::Real),
    ],
};

pub(crate) const DROPS: Schema = Schema {
    name: "drops",
    columns: &[
        Column::new("policy", Kind::Text),
        Column::new("scenario", Kind::Text),
        Column::new("repetition", Kind::Integer),
        Column::new("class", Kind::Text),
        Column::new("reason", Kind::Text),
        Column::new("frames", Kind::Integer),
    ],
};

pub(crate) const LINK_LOSSES: Schema = Schema {
    name: "link_losses",
    columns: &[
        Column::new("policy", Kind::Text),
        Column::new("scenario", Kind::Text),
        Column::new("repetition", Kind::Integer),
        Column::new("link", Kind::Text),
        Column::new("slice", Kind::Text),
        Column::new("reason", Kind::Text),
        Column::new("frames", Kind::Integer),
    ],
};

/// The tables that hold every run.
pub(crate) struct RunTables {
    runs: TableWriter,
    series: TableWriter,
    delay_cdf: TableWriter,
    iat_cdf: TableWriter,
    drops: TableWriter,
    link_losses: TableWriter,
}

impl RunTables {
    pub(crate) fn create(folder: &DataFolder) -> Result<Self, ReportError> {
        Ok(Self {
            runs: TableWriter::create(folder, RUNS)?,
            series: TableWriter::create(folder, SERIES)?,
            delay_cdf: TableWriter::create(folder, DELAY_CDF)?,
            iat_cdf: TableWriter::create(folder, IAT_CDF)?,
            drops: TableWriter::create(folder, DROPS)?,
            link_losses: TableWriter::create(folder, LINK_LOSSES)?,
        })
    }

    pub(crate) fn on_run(&mut self, record: &RunRecord) -> Result<(), ReportError> {
        let key = &record.key;
        for slice in &record.slices {
            self.runs
                .row(&run_row(record, Some(slice), "whole", &slice.whole))?;
            self.runs
                .row(&run_row(record, Some(slice), "steady", &slice.steady))?;
            self.series_rows(record, slice)?;
            distribution_rows(&mut self.delay_cdf, key, &slice.slice, &slice.delay_cdf)?;
            distribution_rows(&mut self.iat_cdf, key, &slice.slice, &slice.iat_sent.cdf)?;
        }
        self.runs
            .row(&run_row(record, None, "steady", &record.aggregate))?;
        for drop in &record.drops {
            self.drops.row(&[
                key.policy.as_str().into(),
                key.scenario.as_str().into(),
                key.repetition.into(),
                drop.class.as_str().into(),
                drop.reason.as_str().into(),
                drop.frames.into(),
            ])?;
        }
        for loss in &record.link_losses {
            self.link_losses.row(&[
                key.policy.as_str().into(),
                key.scenario.as_str().into(),
                key.repetition.into(),
                loss.link.as_str().into(),
                loss.slice.as_str().into(),
                loss.reason.as_str().into(),
                loss.frames.into(),
            ])?;
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<(), ReportError> {
        self.runs.finish()?;
        self.series.finish()?;
        self.delay_cdf.finish()?;
        self.iat_cdf.finish()?;
        self.drops.finish()?;
        self.link_losses.finish()
    }

    fn series_rows(&mut self, record: &RunRecord, slice: &SliceRecord) -> Result<(), ReportError> {
        let RunKey {
            policy,
            scenario,
            repetition,
            ..
        } = &record.key;
        let series = &slice.series;
        let bins = (0..)
            .zip(&series.sent_bytes)
            .zip(&series.received_bytes)
            .zip(&series.sent_frames)
            .zip(&series.lost_frames)
            .zip(&series.delay_mean_ns)
            .zip(&series.delay_max_ns);
        for ((((((bin, &sent), &received), &frames), &lost), mean), max) in bins {
            self.series.row(&[
                policy.as_str().into(),
                scenario.as_str().into(),
                (*repetition).into(),
                slice.slice.as_str().into(),
                record.bin_ns.saturating_mul(bin).into(),
                sent.into(),
                received.into(),
                frames.into(),
                lost.into(),
                (*mean).into(),
                (*max).into(),
            ])?;
        }
        Ok(())
    }
}

fn run_row<'a>(
    record: &'a RunRecord,
    slice: Option<&'a SliceRecord>,
    span: &'static str,
    figures: &Figures,
) -> Vec<Value<'a>> {
    let iat = slice.map(|s| &s.iat_sent);
    let transient = &record.transient;
    let scheduler = slice.and_then(|s| s.scheduler);
    let mut row: Vec<Value<'a>> = vec![
        record.key.policy.as_str().into(),
        record.key.scenario.as_str().into(),
        record.key.repetition.into(),
        Value::Unsigned(record.key.seed),
        slice.map(|s| s.slice.as_str()).into(),
        span.into(),
        figures.span_ns.into(),
        figures.sent_frames.into(),
        figures.sent_bytes.into(),
        figures.received_frames.into(),
        figures.received_bytes.into(),
        figures.lost_frames.into(),
        figures.offered_bits_per_second.into(),
        figures.throughput_bits_per_second.into(),
        figures.loss_ratio.into(),
    ];
    row.extend(delay_values(&figures.delay));
    row.extend(variation_values(figures));
    row.extend::<[Value<'a>; 9]>([
        iat.map(|i| i.samples).into(),
        iat.map(|i| i.mean_ns).into(),
        iat.map(|i| i.variance_ns2).into(),
        transient.end_ns.into(),
        transient.steady_state_reached.into(),
        transient.throughput_before_bits_per_second.into(),
        transient.throughput_after_bits_per_second.into(),
        scheduler.map(|s| s.delay_max_ns).into(),
        scheduler.and_then(|s| s.after_eligible_max_ns).into(),
    ]);
    row
}

/// The number of samples, then mean, smallest, percentiles and largest: nothing where there are no samples.
pub(super) fn delay_values(figures: &DelayFigures) -> [Value<'static>; 11] {
    let known = |ns: u64| Value::from((figures.samples > 0).then_some(ns));
    [
        figures.samples.into(),
        (figures.samples > 0).then_some(figures.mean_ns).into(),
        known(figures.min_ns),
        known(figures.p50_ns),
        known(figures.p90_ns),
        known(figures.p95_ns),
        known(figures.p99_ns),
        known(figures.p999_ns),
        known(figures.p9999_ns),
        known(figures.p99999_ns),
        known(figures.max_ns),
    ]
}

/// PDV, which has the samples of the delay, then IPDV with its own.
fn variation_values(figures: &Figures) -> [Value<'static>; 12] {
    let variation = &figures.variation;
    let has_pdv = figures.delay.samples > 0;
    let has_ipdv = variation.ipdv_samples > 0;
    let pdv = |ns: u64| Value::from(has_pdv.then_some(ns));
    let ipdv = |ns: u64| Value::from(has_ipdv.then_some(ns));
    [
        has_pdv.then_some(variation.pdv_mean_ns).into(),
        pdv(variation.pdv_p50_ns),
        pdv(variation.pdv_p95_ns),
        pdv(variation.pdv_p99_ns),
        pdv(variation.pdv_p999_ns),
        pdv(variation.pdv_max_ns),
        variation.ipdv_samples.into(),
        has_ipdv.then_some(variation.ipdv_mean_ns).into(),
        ipdv(variation.ipdv_p95_ns),
        ipdv(variation.ipdv_p99_ns),
        ipdv(variation.ipdv_p999_ns),
        ipdv(variation.ipdv_max_ns),
    ]
}

fn distribution_rows(
    table: &mut TableWriter,
    key: &RunKey,
    slice: &str,
    cdf: &[CdfPoint],
) -> Result<(), ReportError> {
    for CdfPoint(value, fraction) in cdf {
        table.row(&[
            key.policy.as_str().into(),
            key.scenario.as_str().into(),
            key.repetition.into(),
            slice.into(),
            (*value).into(),
            (*fraction).into(),
        ])?;
    }
    Ok(())
}
