//! Estimates over repetitions, beside other back ends, predictions and publications.

use super::column::{Value, columns, variant};
use super::folder::DataFolder;
use super::table::{TableWriter, write_or_remove, write_table};
use crate::error::ReportError;
use crate::findings::Findings;
use crate::populations::PopulationFinding;
use crate::side::Side;
use slicewise_stats::description::{Expected, PublishedFigure};
use slicewise_stats::estimate::Estimate;
use slicewise_stats::prediction::PredictedFigure;
use slicewise_stats::published::{OurFigure, PublishedComparison};
use slicewise_stats::quantity::Quantity;
use slicewise_stats::summary::{CellSummary, Estimates, Summary};

columns! {
    /// An estimate of a quantity.
    Estimated<'a>(quantity: &'static str, estimate: &Estimate, confidence: f64) {
        quantity: &str = quantity,
        repetitions: u32 = estimate.samples,
        mean: f64 = estimate.mean,
        standard_deviation: Option<f64> = estimate.standard_deviation,
        interval_low: Option<f64> = estimate.interval.low,
        interval_high: Option<f64> = estimate.interval.high,
        confidence: f64 = confidence,
    }
}

columns! {
    /// A quantity of a slice in a cell, or of all of them together.
    Cells<'a> = "cells" (
        cell: &'a CellSummary, slice: Option<&'a str>, span: &'static str,
        (quantity, estimate): (&'static str, &'a Estimate), confidence: f64
    ) {
        policy: &str = &cell.policy,
        scenario: &str = &cell.scenario,
        slice: Option<&str> = slice,
        span: &str = span,
        ..Estimated(quantity, estimate, confidence),
    }
}

columns! {
    /// A quantity of a slice in a cell on one of several back ends.
    BesideCells<'a> = "beside_cells" (
        side: &'a Side, cell: &'a CellSummary, slice: &'a str,
        (quantity, estimate): (&'static str, &'a Estimate)
    ) {
        back_end: &str = &side.name,
        policy: &str = &cell.policy,
        scenario: &str = &cell.scenario,
        slice: &str = slice,
        ..Estimated(quantity, estimate, side.summary.confidence),
    }
}

columns! {
    /// A quantity as measured and as predicted.
    Predictions<'a> = "prediction" (side: &'a Side, figure: &'a PredictedFigure) {
        back_end: &str = &side.name,
        policy: &str = &figure.policy,
        scenario: &str = &figure.scenario,
        slice: &str = &figure.slice,
        traffic: String = variant(figure.traffic),
        quantity: &str = figure.quantity.column(),
        from_ns: Option<u64> = figure.from_ns,
        measured: Option<f64> = figure.measured.map(|e| e.mean),
        measured_low: Option<f64> = figure.measured.and_then(|e| e.interval.low),
        measured_high: Option<f64> = figure.measured.and_then(|e| e.interval.high),
        predicted: Option<f64> = figure.predicted.map(|e| e.mean),
        predicted_low: Option<f64> = figure.predicted.and_then(|e| e.interval.low),
        predicted_high: Option<f64> = figure.predicted.and_then(|e| e.interval.high),
        difference: Option<f64> = figure.difference,
        interval_low: Option<f64> = figure.interval.low,
        interval_high: Option<f64> = figure.interval.high,
        tolerance: f64 = figure.tolerance,
        outcome: String = variant(figure.outcome),
        confidence: f64 = side.summary.confidence,
    }
}

columns! {
    /// A published figure and ours.
    Published<'a> = "published" (
        comparison: &'a PublishedComparison, figure: &'a PublishedFigure, ours: Option<&'a OurFigure>
    ) {
        claim: &str = &figure.claim,
        source: &str = &figure.source,
        metric: String = variant(figure.metric),
        unit: &str = match figure.relative_to {
            Some(_) => "relative",
            None => figure.metric.quantity.unit().name(),
        },
        relative_to_policy: Option<&str> = figure.relative_to.as_ref().and_then(|to| to.policy.as_deref()),
        relative_to_scenario: Option<&str> = figure.relative_to.as_ref().and_then(|to| to.scenario.as_deref()),
        basis: String = variant(figure.basis),
        expected_low: Option<f64> = figure.expected.range().low,
        expected_value: Option<f64> = value(figure.expected),
        expected_high: Option<f64> = figure.expected.range().high,
        tolerance_from: &str = &figure.tolerance_from,
        outcome: String = variant(comparison.outcome),
        our_policy: Option<&str> = ours.map(|o| o.policy.as_str()),
        our_scenario: Option<&str> = ours.map(|o| o.scenario.as_str()),
        our_slice: Option<&str> = ours.and_then(|o| o.slice.as_deref()),
        our_value: Option<f64> = ours.map(|o| o.value),
        our_interval_low: Option<f64> = ours.and_then(|o| o.interval.low),
        our_interval_high: Option<f64> = ours.and_then(|o| o.interval.high),
        our_repetitions: Option<u32> = ours.map(|o| o.repetitions),
        p_value: Option<f64> = ours.and_then(|o| o.p_value),
        fields comparison: Option<f64> { difference difference_relative }
        fields comparison: u32 { cells cells_agreeing }
        explanation: &str = &figure.explanation,
    }
}

columns! {
    /// Results of a population. Times of the host are not among them: they are no results.
    Populations<'a> = "populations" (finding: &'a PopulationFinding) {
        policy: &str = &finding.policy,
        scenario: &str = &finding.scenario,
        slice: &str = &finding.slice,
        slices: u32 = finding.slices,
        all_slices: u64 = finding.all_slices,
        repetitions: u32 = finding.repetitions,
        backlogged: bool = finding.backlogged,
        fields finding: Option<u64> { delay_max_ns delay_bound_ns }
        least_bytes_per_weight: Option<u64> = finding.bytes_per_weight.map(|(least, _)| least),
        most_bytes_per_weight: Option<u64> = finding.bytes_per_weight.map(|(_, most)| most),
        fields finding: u64 { turn_bytes state_bytes }
    }
}

/// Write all of them; those of other back ends and of predictions only where there are any.
pub(super) fn write(folder: &DataFolder, findings: &Findings) -> Result<(), ReportError> {
    let published = findings.published.iter();
    let published = published.map(|c| Published::row(c, &c.figure, c.ours.as_ref()));
    let populations = findings.populations.iter().map(Populations::row);
    write_cells(folder, [(Vec::new(), findings)])?;
    write_table(folder, Published::SCHEMA, published)?;
    write_table(folder, Populations::SCHEMA, populations)?;
    let sides = &findings.sides;
    let beside = (sides.len() > 1).then(|| sides.iter().flat_map(beside_cells));
    write_or_remove(folder, BesideCells::SCHEMA, beside)?;
    let is_predicted = sides.iter().any(|side| !side.prediction.is_empty());
    let predictions = |side| move |figure| Predictions::row(side, figure);
    let predictions = sides
        .iter()
        .flat_map(|side| side.prediction.iter().map(predictions(side)));
    write_or_remove(
        folder,
        Predictions::SCHEMA,
        is_predicted.then_some(predictions),
    )
}

/// Write the estimates of several cases, each with the values that its rows begin with.
pub(super) fn write_cells<'a>(
    folder: &DataFolder,
    cases: impl IntoIterator<Item = (Vec<Value<'static>>, &'a Findings)>,
) -> Result<(), ReportError> {
    let mut table = TableWriter::create(folder, Cells::SCHEMA)?;
    for (first, findings) in cases {
        table.begin_rows(first);
        let rows = cells(&findings.main().summary);
        rows.iter().try_for_each(|row| table.row(row))?;
    }
    table.finish()
}

fn cells(summary: &Summary) -> Vec<Vec<Value<'_>>> {
    let mut rows = Vec::new();
    for cell in &summary.cells {
        let mut add = |slice, span, estimate| {
            rows.push(Cells::row(cell, slice, span, estimate, summary.confidence));
        };
        for slice in &cell.slices {
            for (span, estimates) in [("steady", &slice.steady), ("whole", &slice.whole)] {
                named(estimates).for_each(|estimate| add(Some(&slice.slice), span, estimate));
            }
        }
        named(&cell.aggregate).for_each(|estimate| add(None, "steady", estimate));
        let transient = &cell.transient;
        let throughput = &transient.throughput_before_bits_per_second;
        for (name, estimate) in [
            ("end_ns", &transient.end_ns),
            (Quantity::Throughput.column(), throughput),
        ] {
            let estimate = estimate.as_ref().map(|estimate| (name, estimate));
            estimate
                .into_iter()
                .for_each(|estimate| add(None, "transient", estimate));
        }
    }
    rows
}

fn beside_cells(side: &Side) -> impl Iterator<Item = Vec<Value<'_>>> {
    side.summary.cells.iter().flat_map(move |cell| {
        cell.slices.iter().flat_map(move |slice| {
            let row = move |estimate| BesideCells::row(side, cell, &slice.slice, estimate);
            named(&slice.steady).map(row)
        })
    })
}

fn named(estimates: &Estimates) -> impl Iterator<Item = (&'static str, &Estimate)> {
    estimates
        .iter()
        .map(|(quantity, estimate)| (quantity.column(), estimate))
}

/// The published value, where it is one.
const fn value(expected: Expected) -> Option<f64> {
    match expected {
        Expected::About { value, .. } => Some(value),
        Expected::Between { .. } | Expected::AtLeast { .. } | Expected::AtMost { .. } => None,
    }
}
