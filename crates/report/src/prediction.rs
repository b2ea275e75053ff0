//! How good predictions were, in words.

use crate::side::Side;
use slicewise_stats::prediction::{
    DELAY_WITHIN_NS, OfferedTraffic, PredictedFigure, PredictionOutcome, Quantity,
};
use slicewise_stats::words::{percent, points, rate, time};

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
    let parts = Quantity::ALL.map(|quantity| {
        let of_it = || all().filter(|f| f.quantity == quantity);
        let met = of_it().filter(|f| f.outcome.is_met()).count();
        let within = match quantity {
            Quantity::DelayP50 => format!(" within {}", delay_within()),
            Quantity::Throughput | Quantity::LossRatio => String::new(),
        };
        format!("{quantity}{within} {met} of {}", of_it().count())
    });
    let wide = all()
        .filter(|f| f.outcome == PredictionOutcome::WithinInterval)
        .count();
    let wide = match wide {
        0 => String::new(),
        n => format!("; {n} of these only because the interval of the difference contains 0"),
    };
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
        "{met} of {total} figures of {} {what}: {}{wide}{undecided}",
        side.name,
        parts.join(", ")
    ))
}

/// "100 µs".
pub(crate) fn delay_within() -> String {
    time(DELAY_WITHIN_NS as f64)
}

/// A value of the figure's quantity.
pub(crate) fn value(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::Throughput => rate(value),
        Quantity::LossRatio => percent(value),
        Quantity::DelayP50 => time(value),
    }
}

/// What the outcome was decided by.
pub(crate) fn decided_by(figure: &PredictedFigure) -> String {
    let tolerance = match figure.quantity {
        Quantity::LossRatio => points(figure.tolerance),
        quantity => value(quantity, figure.tolerance),
    };
    match figure.outcome {
        PredictionOutcome::WithinTolerance => format!("within {tolerance}"),
        PredictionOutcome::WithinInterval => "interval contains 0".to_owned(),
        PredictionOutcome::Missed => match figure.quantity {
            Quantity::DelayP50 => format!("more than {tolerance}"),
            _ => format!("more than {tolerance}, interval without 0"),
        },
        PredictionOutcome::NotDecided if figure.measured.is_none() => "nothing measured".to_owned(),
        PredictionOutcome::NotDecided if figure.predicted.is_none() => {
            "nothing predicted".to_owned()
        }
        PredictionOutcome::NotDecided => format!("more than {tolerance}, too few repetitions"),
    }
}
