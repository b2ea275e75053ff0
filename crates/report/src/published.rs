//! Published figures beside ours: in words, and on the page.

use crate::markup::{Prose, Section, cards, outcome};
use maud::{Markup, html};
use slicewise_stats::description::{Expected, Metric, PublishedFigure};
use slicewise_stats::published::{OurFigure, PublishedComparison, PublishedOutcome};
use slicewise_stats::words::{digits, percent, rate, signed, time};

/// A metric's unit in files, and the metric in words.
const fn described(metric: Metric) -> (&'static str, &'static str) {
    match metric {
        Metric::Throughput => ("bit/s", "throughput"),
        Metric::LossRatio => ("ratio", "loss"),
        Metric::LossEpisodeLength => ("ns", "length of a loss episode"),
        Metric::LossEpisodeFrames => ("frames", "frames lost in an episode"),
        Metric::LossEpisodeRatio => ("ratio", "loss in episodes"),
        Metric::QueueLength => ("frames", "mean queue length"),
        Metric::DelayMean => ("ns", "mean delay"),
        Metric::DelayMeanWhole => ("ns", "mean delay, transient included"),
        Metric::DelayMin => ("ns", "smallest delay"),
        Metric::DelayP50 => ("ns", "median delay"),
        Metric::DelayP99 => ("ns", "99th percentile of delay"),
        Metric::DelayMax => ("ns", "largest delay"),
        Metric::IatSamples => ("intervals", "number of inter-arrival times"),
        Metric::IatMean => ("ns", "mean inter-arrival time"),
        Metric::IatVariance => ("ns2", "variance of the inter-arrival time"),
        Metric::IatKolmogorovSmirnov => (
            "ratio",
            "Kolmogorov–Smirnov statistic of inter-arrival times",
        ),
        Metric::TransientEnd => ("ns", "end of the transient"),
        Metric::TransientThroughput => ("bit/s", "rate before the transient ends"),
        Metric::AggregateThroughput => ("bit/s", "rate of all slices"),
        Metric::Goodput => ("bit/s", "goodput"),
        Metric::RttMean => ("ns", "mean round-trip time"),
        Metric::RequestsAchieved => ("responses/s", "responses a second"),
        Metric::RequestLatencyMean => ("ns", "mean request latency"),
        Metric::RequestLatencyP99 => ("ns", "99th percentile of request latency"),
        Metric::CompletionTimeMean => ("ns", "mean completion time of flows"),
        Metric::QualityMean => ("quality", "mean quality of video"),
    }
}

/// A metric's unit in files.
pub(crate) const fn metric_unit(metric: Metric) -> &'static str {
    described(metric).0
}

/// Whether ours agrees, in words.
pub(crate) const fn outcome_word(outcome: PublishedOutcome) -> &'static str {
    match outcome {
        PublishedOutcome::Agrees => "agrees",
        PublishedOutcome::Differs => "differs",
        PublishedOutcome::NotMeasured => "not measured",
    }
}

/// What it is drawn as.
pub(crate) const fn outcome_sign(outcome: PublishedOutcome) -> &'static str {
    match outcome {
        PublishedOutcome::Agrees => "holds",
        PublishedOutcome::Differs => "broken",
        PublishedOutcome::NotMeasured => "inconclusive",
    }
}

/// What a figure is of: metric, slice, cells, and what it is relative to.
fn subject(figure: &PublishedFigure) -> String {
    let mut parts = vec![described(figure.metric).1.to_owned()];
    if let Some(slice) = &figure.slice {
        parts.push(format!("slice {slice}"));
    }
    let named = |what: &str, names: &[String]| match names {
        [] => None,
        [only] => Some(format!("{what} {only}")),
        several => Some(format!("{} {}", plural(what), several.join(", "))),
    };
    parts.extend(named("policy", &figure.policies));
    parts.extend(named("scenario", &figure.scenarios));
    let mut text = parts.join("; ");
    if let Some(cell) = &figure.relative_to {
        let other = [
            cell.policy.as_ref().map(|p| format!("policy {p}")),
            cell.scenario.as_ref().map(|s| format!("scenario {s}")),
        ];
        let other: Vec<String> = other.into_iter().flatten().collect();
        text.push_str(&format!("; change against {}", other.join(", ")));
    }
    text
}

fn plural(what: &str) -> String {
    match what.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{what}s"),
    }
}

/// What was published, with what "about" is taken to mean.
pub(crate) fn expected(figure: &PublishedFigure) -> String {
    let text_of = |value| quantity(figure, value);
    match figure.expected {
        Expected::About { value, tolerance } if value == 0.0 => {
            match text_of(tolerance).trim_start_matches('+') {
                // A tolerance too small to be seen is none.
                tolerance if tolerance == text_of(value) => text_of(value),
                tolerance => format!("{} ± {tolerance}", text_of(value)),
            }
        }
        Expected::About { value, tolerance } => {
            format!("{} ± {}", text_of(value), percent(tolerance))
        }
        Expected::Between { low, high } => format!("{} to {}", text_of(low), text_of(high)),
        Expected::AtLeast { value } => format!("at least {}", text_of(value)),
        Expected::AtMost { value } => format!("at most {}", text_of(value)),
    }
}

/// Ours, with its interval and where it was seen.
pub(crate) fn ours(comparison: &PublishedComparison) -> String {
    let Some(ours) = &comparison.ours else {
        return "not measured".to_owned();
    };
    let text_of = |value| quantity(&comparison.figure, value);
    let interval = match (ours.interval.low, ours.interval.high) {
        // A range that rounds to the value says nothing.
        (Some(low), Some(high)) if text_of(low) != text_of(high) => {
            format!(" ({} to {})", text_of(low), text_of(high))
        }
        _ => String::new(),
    };
    let p_value = match ours.p_value {
        Some(p) if p < 0.001 => format!(" (p = {p:.1e})"),
        Some(p) => format!(" (p = {p:.3})"),
        None => String::new(),
    };
    format!("{}{interval}{p_value}", text_of(ours.value))
}

/// The cell that ours was seen in, where the figure is of several; and how many of them agree.
fn seen_in(comparison: &PublishedComparison) -> String {
    match (
        &comparison.ours,
        comparison.cells,
        comparison.cells_agreeing,
    ) {
        (None, ..) | (_, 0 | 1, _) => String::new(),
        (_, cells, agreeing) if cells == agreeing => {
            format!("largest deviation of {cells} cells, which all agree")
        }
        (
            Some(OurFigure {
                policy, scenario, ..
            }),
            cells,
            agreeing,
        ) => format!(
            "largest deviation: policy {policy}, scenario {scenario}; {agreeing} of {cells} cells agree"
        ),
    }
}

fn quantity(figure: &PublishedFigure, value: f64) -> String {
    if figure.relative_to.is_some() {
        return signed(&percent(value));
    }
    match metric_unit(figure.metric) {
        "bit/s" => rate(value),
        "ns" => time(value),
        "ns2" => format!("{} ms²", digits(value / 1e12, 5)),
        "ratio" if matches!(figure.metric, Metric::LossRatio | Metric::LossEpisodeRatio) => {
            percent(value)
        }
        "ratio" => digits(value, 3),
        _ => digits(value, 6),
    }
}

pub(crate) fn section(figures: &[PublishedComparison]) -> Option<Section> {
    if figures.is_empty() {
        return None;
    }
    let agreeing = figures
        .iter()
        .filter(|figure| figure.outcome == PublishedOutcome::Agrees);
    let body = html! {
        p.note { (agreeing.count()) " of " (figures.len()) " published figures agree with ours. The last column explains known differences." }
        (table(figures, "published-table"))
    };
    Some(Section::new("published", "Published", body).headed("Compared with published figures"))
}

pub(crate) fn table(figures: &[PublishedComparison], id: &str) -> Markup {
    html! {
        div.table-frame id=(id) { (cards(&HEAD, &html! { @for figure in figures { (row(figure)) } })) }
    }
}

const HEAD: [&str; 6] = [
    "Published",
    "Where",
    "Expected",
    "Ours",
    "Result",
    "Explanation",
];

fn row(comparison: &PublishedComparison) -> Markup {
    let [_, place, of, by_us, result, explanation] = HEAD;
    let figure = &comparison.figure;
    let sign = outcome_sign(comparison.outcome);
    let seen_in = seen_in(comparison);
    html! { tr role="row" {
        th.claim scope="row" role="rowheader" {
            (Prose(&figure.claim))
            @if !figure.source.is_empty() { span.quiet { " (" (Prose(&figure.source)) ")" } }
        }
        td role="cell" data-label=(place) { (Prose(&subject(figure))) }
        td role="cell" data-label=(of) { (Prose(&expected(figure))) }
        td role="cell" data-label=(by_us) {
            (Prose(&ours(comparison)))
            @if !seen_in.is_empty() { span.said { (Prose(&seen_in)) } }
        }
        td role="cell" data-label=(result) { (outcome(sign, outcome_word(comparison.outcome))) }
        td.explanation role="cell" data-label=(explanation) {
            (Prose(&figure.explanation))
            @if figure.explanation.is_empty() && sign == "broken" { span.quiet { "not explained" } }
        }
    } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slicewise_stats::description::Cell;

    fn figure() -> PublishedFigure {
        PublishedFigure {
            claim: String::new(),
            source: String::new(),
            metric: Metric::DelayMean,
            policies: vec!["bandwidth".to_owned()],
            scenarios: vec!["5".to_owned(), "6".to_owned()],
            phase: None,
            slice: Some("critical".to_owned()),
            queue: None,
            relative_to: None,
            expected: Expected::About {
                value: 400_000.0,
                tolerance: 0.25,
            },
            explanation: String::new(),
        }
    }

    #[test]
    fn says_what_a_figure_is_of_and_what_was_expected() {
        let absolute = figure();
        assert_eq!(
            subject(&absolute),
            "mean delay; slice critical; policy bandwidth; scenarios 5, 6"
        );
        assert_eq!(expected(&absolute), "400 µs ± 25 %");

        let relative = PublishedFigure {
            relative_to: Some(Cell {
                policy: Some("priority".to_owned()),
                scenario: None,
            }),
            expected: Expected::Between {
                low: 0.9,
                high: 1.1,
            },
            ..figure()
        };
        assert_eq!(
            subject(&relative),
            "mean delay; slice critical; policy bandwidth; scenarios 5, 6; change against policy priority"
        );
        assert_eq!(expected(&relative), "+90 % to +110 %");

        let nothing = PublishedFigure {
            metric: Metric::LossRatio,
            expected: Expected::About {
                value: 0.0,
                tolerance: 0.001,
            },
            ..figure()
        };
        assert_eq!(expected(&nothing), "0 % ± 0.1 %");
    }
}
