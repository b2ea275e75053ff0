//! Published figures and ours.

use super::folder::DataFolder;
use super::table::{Column, Kind, Schema, TableWriter};
use crate::error::ReportError;
use crate::published::{metric_name, metric_unit};
use slicewise_stats::description::Expected;
use slicewise_stats::published::{PublishedComparison, PublishedOutcome};

pub(crate) const PUBLISHED: Schema = Schema {
    name: "published",
    columns: &[
        Column::new("claim", Kind::Text),
        Column::new("source", Kind::Text),
        Column::new("metric", Kind::Text),
        Column::new("unit", Kind::Text),
        Column::optional("relative_to_policy", Kind::Text),
        Column::optional("relative_to_scenario", Kind::Text),
        Column::optional("expected_low", Kind::Real),
        Column::optional("expected_value", Kind::Real),
        Column::optional("expected_high", Kind::Real),
        Column::new("outcome", Kind::Text),
        Column::optional("our_policy", Kind::Text),
        Column::optional("our_scenario", Kind::Text),
        Column::optional("our_slice", Kind::Text),
        Column::optional("our_value", Kind::Real),
        Column::optional("our_interval_low", Kind::Real),
        Column::optional("our_interval_high", Kind::Real),
        Column::optional("our_repetitions", Kind::Integer),
        Column::optional("p_value", Kind::Real),
        Column::optional("difference", Kind::Real),
        Column::optional("difference_relative", Kind::Real),
        Column::new("cells", Kind::Integer),
        Column::new("cells_agreeing", Kind::Integer),
        Column::new("explanation", Kind::Text),
    ],
};

/// Write every published figure beside ours.
pub(crate) fn write_published(
    folder: &DataFolder,
    comparisons: &[PublishedComparison],
) -> Result<(), ReportError> {
    let mut table = TableWriter::create(folder, PUBLISHED)?;
    for comparison in comparisons {
        let figure = &comparison.figure;
        let (low, value, high) = range(figure.expected);
        let relative_to = figure.relative_to.as_ref();
        let ours = comparison.ours.as_ref();
        table.row(&[
            figure.claim.as_str().into(),
            figure.source.as_str().into(),
            metric_name(figure.metric).into(),
            if relative_to.is_some() {
                "relative"
            } else {
                metric_unit(figure.metric)
            }
            .into(),
            relative_to.and_then(|cell| cell.policy.as_deref()).into(),
            relative_to.and_then(|cell| cell.scenario.as_deref()).into(),
            low.into(),
            value.into(),
            high.into(),
            outcome_name(comparison.outcome).into(),
            ours.map(|o| o.policy.as_str()).into(),
            ours.map(|o| o.scenario.as_str()).into(),
            ours.and_then(|o| o.slice.as_deref()).into(),
            ours.map(|o| o.value).into(),
            ours.and_then(|o| o.interval.low).into(),
            ours.and_then(|o| o.interval.high).into(),
            ours.map(|o| o.repetitions).into(),
            ours.and_then(|o| o.p_value).into(),
            comparison.difference.into(),
            comparison.difference_relative.into(),
            comparison.cells.into(),
            comparison.cells_agreeing.into(),
            figure.explanation.as_str().into(),
        ])?;
    }
    table.finish()
}

/// Lower end, value and upper end of what agrees.
fn range(expected: Expected) -> (Option<f64>, Option<f64>, Option<f64>) {
    match expected {
        Expected::About { value, tolerance } => {
            let allowed = if value == 0.0 {
                tolerance
            } else {
                tolerance * value.abs()
            };
            (Some(value - allowed), Some(value), Some(value + allowed))
        }
        Expected::Between { low, high } => (Some(low), None, Some(high)),
        Expected::AtLeast { value } => (Some(value), None, None),
        Expected::AtMost { value } => (None, None, Some(value)),
    }
}

fn outcome_name(outcome: PublishedOutcome) -> &'static str {
    match outcome {
        PublishedOutcome::Agrees => "agrees",
        PublishedOutcome::Differs => "differs",
        PublishedOutcome::NotMeasured => "not_measured",
    }
}
