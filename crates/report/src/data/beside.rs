//! Results folders beside each other: back ends, their verdicts and figures, what was predicted.

use super::cells::quantities;
use super::folder::DataFolder;
use super::table::{Column, Kind, Schema, TableWriter, Value};
use crate::attribute::attributes;
use crate::error::ReportError;
use crate::side::Side;
use slicewise_stats::estimate::Estimate;
use slicewise_stats::prediction::{OfferedTraffic, PredictedFigure, Quantity};

pub(crate) const BACK_ENDS: Schema = Schema {
    name: "back_ends",
    columns: &[
        Column::new("back_end", Kind::Text),
        Column::new("device", Kind::Text),
        Column::new("study_digest", Kind::Text),
        Column::new("repetitions", Kind::Integer),
        Column::new("duration_ns", Kind::Integer),
        Column::new("scenarios", Kind::Text),
        Column::new("expected_runs", Kind::Integer),
        Column::new("finished_runs", Kind::Integer),
        Column::optional("first_began_ns", Kind::Integer),
        Column::optional("last_began_ns", Kind::Integer),
    ],
};

pub(crate) const BESIDE_VERDICTS: Schema = Schema {
    name: "beside_verdicts",
    columns: &[
        Column::new("policy", Kind::Text),
        Column::new("back_end", Kind::Text),
        Column::new("attribute", Kind::Text),
        Column::new("verdict", Kind::Text),
        Column::new("reason", Kind::Text),
        Column::optional("published", Kind::Text),
        Column::optional("agrees", Kind::Flag),
        Column::new("confidence", Kind::Real),
    ],
};

pub(crate) const BESIDE_CELLS: Schema = Schema {
    name: "beside_cells",
    columns: &[
        Column::new("back_end", Kind::Text),
        Column::new("policy", Kind::Text),
        Column::new("scenario", Kind::Text),
        Column::new("slice", Kind::Text),
        Column::new("quantity", Kind::Text),
        Column::new("repetitions", Kind::Integer),
        Column::new("mean", Kind::Real),
        Column::optional("standard_deviation", Kind::Real),
        Column::optional("interval_low", Kind::Real),
        Column::optional("interval_high", Kind::Real),
        Column::new("confidence", Kind::Real),
    ],
};

pub(crate) const PREDICTION: Schema = Schema {
    name: "prediction",
    columns: &[
        Column::new("back_end", Kind::Text),
        Column::new("policy", Kind::Text),
        Column::new("scenario", Kind::Text),
        Column::new("slice", Kind::Text),
        Column::new("traffic", Kind::Text),
        Column::new("quantity", Kind::Text),
        Column::optional("measured", Kind::Real),
        Column::optional("measured_low", Kind::Real),
        Column::optional("measured_high", Kind::Real),
        Column::optional("predicted", Kind::Real),
        Column::optional("predicted_low", Kind::Real),
        Column::optional("predicted_high", Kind::Real),
        Column::optional("difference", Kind::Real),
        Column::optional("interval_low", Kind::Real),
        Column::optional("interval_high", Kind::Real),
        Column::new("tolerance", Kind::Real),
        Column::new("outcome", Kind::Text),
        Column::new("confidence", Kind::Real),
    ],
};

/// Write what other back ends came to; nothing where there is none beside.
pub(crate) fn write_beside(folder: &DataFolder, sides: &[Side]) -> Result<(), ReportError> {
    if sides.len() < 2 {
        return [BACK_ENDS, BESIDE_VERDICTS, BESIDE_CELLS]
            .into_iter()
            .try_for_each(|schema| folder.remove_table(schema));
    }
    let mut back_ends = TableWriter::create(folder, BACK_ENDS)?;
    let mut verdicts = TableWriter::create(folder, BESIDE_VERDICTS)?;
    let mut cells = TableWriter::create(folder, BESIDE_CELLS)?;
    for side in sides {
        let scenarios: Vec<&str> = side.covered_scenarios().collect();
        let began = side.testbed.began_ns();
        back_ends.row(&[
            side.name.as_str().into(),
            side.study.dut.as_str().into(),
            side.study.digest.as_str().into(),
            side.study.repetitions.into(),
            side.study.duration_ns.into(),
            scenarios.join(", ").as_str().into(),
            side.expected_runs.into(),
            side.finished_runs.into(),
            began.map(|(first, _)| first).into(),
            began.map(|(_, last)| last).into(),
        ])?;
        verdict_rows(&mut verdicts, side)?;
        cell_rows(&mut cells, side)?;
    }
    back_ends.finish()?;
    verdicts.finish()?;
    cells.finish()
}

/// Write what was measured beside what was predicted of it; nothing where nothing was.
pub(crate) fn write_prediction(folder: &DataFolder, sides: &[Side]) -> Result<(), ReportError> {
    if sides.iter().all(|side| side.prediction.is_empty()) {
        return folder.remove_table(PREDICTION);
    }
    let mut table = TableWriter::create(folder, PREDICTION)?;
    for side in sides {
        for figure in &side.prediction {
            table.row(&prediction_row(side, figure))?;
        }
    }
    table.finish()
}

fn verdict_rows(table: &mut TableWriter, side: &Side) -> Result<(), ReportError> {
    for verdict in &side.verdicts.policies {
        for attribute in attributes(verdict) {
            table.row(&[
                verdict.policy.as_str().into(),
                side.name.as_str().into(),
                attribute.key.into(),
                attribute.word.as_str().into(),
                attribute.reason.as_str().into(),
                attribute.published.as_deref().into(),
                attribute.agrees.into(),
                Value::Real(side.verdicts.confidence),
            ])?;
        }
    }
    Ok(())
}

fn cell_rows(table: &mut TableWriter, side: &Side) -> Result<(), ReportError> {
    for cell in &side.summary.cells {
        for slice in &cell.slices {
            for (name, estimate) in quantities(&slice.steady) {
                let Some(estimate) = estimate else {
                    continue;
                };
                table.row(&[
                    side.name.as_str().into(),
                    cell.policy.as_str().into(),
                    cell.scenario.as_str().into(),
                    slice.slice.as_str().into(),
                    name.into(),
                    estimate.samples.into(),
                    estimate.mean.into(),
                    estimate.standard_deviation.into(),
                    estimate.interval.low.into(),
                    estimate.interval.high.into(),
                    Value::Real(side.summary.confidence),
                ])?;
            }
        }
    }
    Ok(())
}

fn prediction_row<'a>(side: &'a Side, figure: &'a PredictedFigure) -> [Value<'a>; 18] {
    let [measured, predicted] = [&figure.measured, &figure.predicted].map(numbers);
    [
        side.name.as_str().into(),
        figure.policy.as_str().into(),
        figure.scenario.as_str().into(),
        figure.slice.as_str().into(),
        match figure.traffic {
            OfferedTraffic::AsStudied => "as_studied",
            OfferedTraffic::AsSent => "as_sent",
        }
        .into(),
        column(figure.quantity).into(),
        measured[0].into(),
        measured[1].into(),
        measured[2].into(),
        predicted[0].into(),
        predicted[1].into(),
        predicted[2].into(),
        figure.difference.into(),
        figure.interval.low.into(),
        figure.interval.high.into(),
        figure.tolerance.into(),
        outcome(figure).into(),
        Value::Real(side.summary.confidence),
    ]
}

/// Mean and interval.
fn numbers(estimate: &Option<Estimate>) -> [Option<f64>; 3] {
    let interval = estimate.map(|e| e.interval);
    [
        estimate.map(|e| e.mean),
        interval.and_then(|i| i.low),
        interval.and_then(|i| i.high),
    ]
}

/// As the `runs` table calls it.
const fn column(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Throughput => "throughput_bits_per_second",
        Quantity::LossRatio => "loss_ratio",
        Quantity::DelayP50 => "delay_p50_ns",
    }
}

const fn outcome(figure: &PredictedFigure) -> &'static str {
    use slicewise_stats::prediction::PredictionOutcome as Outcome;
    match figure.outcome {
        Outcome::WithinInterval => "within_interval",
        Outcome::WithinTolerance => "within_tolerance",
        Outcome::Missed => "missed",
        Outcome::NotDecided => "not_decided",
    }
}
