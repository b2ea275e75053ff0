//! How good predictions were: in words, and figure by figure.

use crate::markup::{Prose, Section};
use crate::object::{EstimateView, estimate, object};
use crate::side::Side;
use maud::html;
use serde::Serialize;
use slicewise_stats::prediction::{
    DELAY_WITHIN_NS, OfferedTraffic, PREDICTED, PredictedFigure, PredictionOutcome,
};
use slicewise_stats::quantity::Unit;
use slicewise_stats::words::{points, time};

/// How many figures of a side were predicted, a line for each traffic that was simulated: "40 of 48 figures
/// of gateway were predicted: throughput 16 of 16, …".
pub fn findings(side: &Side) -> impl Iterator<Item = String> {
    let of = |traffic| finding(side, traffic);
    OfferedTraffic::ALL.into_iter().filter_map(of)
}

fn finding(side: &Side, traffic: OfferedTraffic) -> Option<String> {
    let all = || side.prediction.iter().filter(|f| f.traffic == traffic);
    let total = all().count();
    if total == 0 {
        return None;
    }
    let met = all().filter(|f| f.outcome.is_met()).count();
    let parts = PREDICTED.map(|quantity| {
        let of_it = || all().filter(|f| f.quantity == quantity);
        let met = of_it().filter(|f| f.outcome.is_met()).count();
        let within = match quantity.unit() {
            Unit::Time => format!(" within {}", delay_within()),
            _ => String::new(),
        };
        format!("{}{within} {met} of {}", quantity.words(), of_it().count())
    });
    let undecided = all()
        .filter(|f| f.outcome == PredictionOutcome::NotDecided)
        .count();
    let undecided = match undecided {
        0 => String::new(),
        n => format!("; {n} not decided"),
    };
    let what = match traffic {
        OfferedTraffic::AsStudied => "were predicted",
        OfferedTraffic::AsSent => "are reproduced by simulating the packets that were sent",
    };
    Some(format!(
        "{met} of {total} figures of {} {what}: {}{undecided}",
        side.name,
        parts.join(", ")
    ))
}

/// "100 µs".
fn delay_within() -> String {
    time(DELAY_WITHIN_NS as f64)
}

/// Describes the comparison that decided the outcome.
fn decided_by(figure: &PredictedFigure) -> String {
    let tolerance = match figure.quantity.unit() {
        Unit::Ratio => points(figure.tolerance),
        unit => unit.text(figure.tolerance, 4),
    };
    match figure.outcome {
        PredictionOutcome::Met => format!("shown to be within {tolerance}"),
        PredictionOutcome::Missed => format!("shown to be more than {tolerance}"),
        PredictionOutcome::NotDecided if figure.measured.is_none() => "nothing measured".to_owned(),
        PredictionOutcome::NotDecided if figure.predicted.is_none() => {
            "nothing predicted".to_owned()
        }
        PredictionOutcome::NotDecided => format!("{tolerance} or more: not shown either way"),
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
        figures: [Option<Figure<'a>>; 3] = PREDICTED.map(|quantity| {
            figures.iter().find(|f| f.quantity == quantity).map(Figure::of)
        }),
    }
}

object! {
    Figure<'a>(figure: &'a PredictedFigure) {
        outcome: &'a str = match figure.outcome {
            PredictionOutcome::Met => "holds",
            PredictionOutcome::Missed => "broken",
            PredictionOutcome::NotDecided => "inconclusive",
        },
        measured: Option<EstimateView> = estimate(figure.measured.as_ref()),
        predicted: Option<EstimateView> = estimate(figure.predicted.as_ref()),
        difference: Option<EstimateView> =
            figure.difference.map(|mean| (mean, figure.interval.low, figure.interval.high)),
        decided_by: String = decided_by(figure),
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
pub(crate) fn script(sides: &[Side]) -> Option<Vec<Row<'_>>> {
    let rows: Vec<Row<'_>> = sides.iter().flat_map(rows).collect();
    (!rows.is_empty()).then_some(rows)
}

pub(crate) fn section(sides: &[Side]) -> Option<Section> {
    let found: Vec<String> = sides.iter().flat_map(findings).collect();
    if found.is_empty() {
        return None;
    }
    let within = delay_within();
    let note = format!(
        "Each cell was also simulated, with the same policies, scenarios, repetitions and duration. \
         Both are compared from the later end of their transients on. A figure is predicted where both bounds of the difference are within what the study's margins call \
         irrelevant, for the median delay within {within}. Packets as studied were simulated beforehand; for packets as sent, each run was \
         simulated again with the packets that were sent in it, at their times. A difference found only in the first is due to the traffic, such as the phases of real senders, not to the device."
    );
    let body = html! {
        @for text in &found { p.finding { (Prose(&format!("{text}."))) } }
        p.note { (Prose(&note)) }
        div.table-frame.scripted #prediction-table {}
    };
    Some(Section::new("prediction", "Prediction", body).headed("Prediction and measurement"))
}
