//! Estimates over repetitions: one row a quantity of a slice in a cell.

use super::folder::DataFolder;
use super::table::{Column, Kind, Schema, TableWriter, Value};
use crate::error::ReportError;
use slicewise_stats::estimate::Estimate;
use slicewise_stats::summary::{FiguresSummary, Summary};

pub(crate) const CELLS: Schema = Schema {
    name: "cells",
    columns: &[
        Column::new("policy", Kind::Text),
        Column::new("scenario", Kind::Text),
        Column::optional("slice", Kind::Text),
        Column::new("span", Kind::Text),
        Column::new("quantity", Kind::Text),
        Column::new("repetitions", Kind::Integer),
        Column::new("mean", Kind::Real),
        Column::optional("standard_deviation", Kind::Real),
        Column::optional("interval_low", Kind::Real),
        Column::optional("interval_high", Kind::Real),
        Column::new("confidence", Kind::Real),
    ],
};

/// Write every estimate of `summary`.
pub(crate) fn write_cells(folder: &DataFolder, summary: &Summary) -> Result<(), ReportError> {
    let mut table = TableWriter::create(folder, CELLS)?;
    for cell in &summary.cells {
        let mut rows =
            |slice: Option<&str>, span: &str, name: &str, estimate: Option<&Estimate>| {
                let Some(estimate) = estimate else {
                    return Ok(());
                };
                table.row(&[
                    cell.policy.as_str().into(),
                    cell.scenario.as_str().into(),
                    slice.into(),
                    span.into(),
                    name.into(),
                    estimate.samples.into(),
                    estimate.mean.into(),
                    estimate.standard_deviation.into(),
                    estimate.interval.low.into(),
                    estimate.interval.high.into(),
                    Value::Real(summary.confidence),
                ])
            };
        for slice in &cell.slices {
            for (span, figures) in [("steady", &slice.steady), ("whole", &slice.whole)] {
                for (name, estimate) in quantities(figures) {
                    rows(Some(&slice.slice), span, name, estimate)?;
                }
            }
        }
        for (name, estimate) in quantities(&cell.aggregate) {
            rows(None, "steady", name, estimate)?;
        }
        let transient = &cell.transient;
        rows(None, "transient", "end_ns", transient.end_ns.as_ref())?;
        rows(
            None,
            "transient",
            "throughput_bits_per_second",
            transient.throughput_before_bits_per_second.as_ref(),
        )?;
    }
    table.finish()
}

/// The estimates of a summary under the names of the `runs` table's columns.
pub(crate) fn quantities(figures: &FiguresSummary) -> [(&'static str, Option<&Estimate>); 23] {
    [
        (
            "offered_bits_per_second",
            figures.offered_bits_per_second.as_ref(),
        ),
        (
            "throughput_bits_per_second",
            figures.throughput_bits_per_second.as_ref(),
        ),
        ("loss_ratio", figures.loss_ratio.as_ref()),
        ("delay_mean_ns", figures.delay_mean_ns.as_ref()),
        ("delay_p50_ns", figures.delay_p50_ns.as_ref()),
        ("delay_p90_ns", figures.delay_p90_ns.as_ref()),
        ("delay_p95_ns", figures.delay_p95_ns.as_ref()),
        ("delay_p99_ns", figures.delay_p99_ns.as_ref()),
        ("delay_p999_ns", figures.delay_p999_ns.as_ref()),
        ("delay_p9999_ns", figures.delay_p9999_ns.as_ref()),
        ("delay_p99999_ns", figures.delay_p99999_ns.as_ref()),
        ("delay_max_ns", figures.delay_max_ns.as_ref()),
        ("pdv_mean_ns", figures.pdv_mean_ns.as_ref()),
        ("pdv_p50_ns", figures.pdv_p50_ns.as_ref()),
        ("pdv_p95_ns", figures.pdv_p95_ns.as_ref()),
        ("pdv_p99_ns", figures.pdv_p99_ns.as_ref()),
        ("pdv_p999_ns", figures.pdv_p999_ns.as_ref()),
        ("pdv_max_ns", figures.pdv_max_ns.as_ref()),
        ("ipdv_mean_ns", figures.ipdv_mean_ns.as_ref()),
        ("ipdv_p95_ns", figures.ipdv_p95_ns.as_ref()),
        ("ipdv_p99_ns", figures.ipdv_p99_ns.as_ref()),
        ("ipdv_p999_ns", figures.ipdv_p999_ns.as_ref()),
        ("ipdv_max_ns", figures.ipdv_max_ns.as_ref()),
    ]
}
