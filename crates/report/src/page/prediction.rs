//! The page's section on predictions.

use super::markup::{Prose, Section};
use super::object::{EstimateView, estimate, object};
use crate::findings::Findings;
use crate::prediction;
use crate::side::Side;
use maud::html;
use serde::Serialize;
use slicewise_stats::prediction::{PredictedFigure, PredictionOutcome, Quantity};

object! {
    Predictions<'a>(sides: &'a [Side]) {
        rows: Vec<Row<'a>> = sides.iter().flat_map(rows).collect(),
    }
}

object! {
    Row<'a>(side: &'a Side, first: &'a PredictedFigure, figures: &'a [PredictedFigure]) {
        /// Back end, policy, scenario, slice, which packets were simulated.
        names: [String; 5] = [
            side.name.clone(),
            first.policy.clone(),
            first.scenario.clone(),
            first.slice.clone(),
            first.traffic.to_string(),
        ],
        figures: [Option<Figure<'a>>; 3] = Quantity::ALL.map(|quantity| {
            figures.iter().find(|f| f.quantity == quantity).map(Figure::of)
        }),
    }
}

object! {
    Figure<'a>(figure: &'a PredictedFigure) {
        outcome: &'a str = match figure.outcome {
            PredictionOutcome::WithinInterval | PredictionOutcome::WithinTolerance => "holds",
            PredictionOutcome::Missed => "broken",
            PredictionOutcome::NotDecided => "inconclusive",
        },
        measured: Option<EstimateView> = estimate(figure.measured.as_ref()),
        predicted: Option<EstimateView> = estimate(figure.predicted.as_ref()),
        difference: Option<EstimateView> =
            figure.difference.map(|mean| (mean, figure.interval.low, figure.interval.high)),
        decided_by: String = prediction::decided_by(figure),
    }
}

/// Figures of one slice beside each other.
fn rows(side: &Side) -> impl Iterator<Item = Row<'_>> {
    let of_one_slice = |a: &PredictedFigure, b: &PredictedFigure| {
        (&a.policy, &a.scenario, &a.slice, a.traffic)
            == (&b.policy, &b.scenario, &b.slice, b.traffic)
    };
    let cells = side.prediction.chunk_by(of_one_slice);
    cells.filter_map(move |figures| Some(Row::of(side, figures.first()?, figures)))
}

/// `None` where nothing was predicted.
pub(super) fn script<'a>(findings: &'a Findings) -> Option<Predictions<'a>> {
    let sides = &findings.sides;
    let is_predicted = sides.iter().any(|side| !side.prediction.is_empty());
    is_predicted.then(|| Predictions::of(sides))
}

pub(super) fn section(findings: &Findings) -> Option<Section> {
    let found: Vec<String> = findings
        .sides
        .iter()
        .flat_map(prediction::findings)
        .collect();
    if found.is_empty() {
        return None;
    }
    let within = prediction::delay_within();
    let note = format!(
        "Each cell was also simulated, with the same policies, scenarios, repetitions and duration. \
         Throughput and loss are predicted where the interval of the difference contains 0, or where \
         the difference is below what the study's margins call irrelevant; the median delay where it \
         is off by {within} at most. Packets as studied were simulated beforehand; for packets as sent, each run was \
         simulated again with the packets that were sent in it, at their times. A difference found only in the first is due to the traffic, such as the phases of real senders, not to the device."
    );
    let body = html! {
        @for text in &found { p.finding { (Prose(&format!("{text}."))) } }
        p.note { (Prose(&note)) }
        div.table-frame.scripted #prediction-table {}
    };
    Some(Section::new("prediction", "Prediction", body).headed("Prediction and measurement"))
}
