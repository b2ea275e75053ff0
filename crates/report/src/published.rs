//! Published figures beside ours: in words, and on the page.

use crate::markup::{Prose, Section, cards, outcome};
use maud::{Markup, html};
use slicewise_stats::description::{Basis, Expected, PublishedFigure};
use slicewise_stats::estimate::Interval;
use slicewise_stats::published::{OurFigure, PublishedComparison, PublishedOutcome};
use slicewise_stats::words::{percent, signed};

/// Describes whether ours agrees.
pub(crate) const fn outcome_word(outcome: PublishedOutcome) -> &'static str {
    match outcome {
        PublishedOutcome::Agrees => "agrees",
        PublishedOutcome::Undecided => "undecided",
        PublishedOutcome::Differs => "differs",
        PublishedOutcome::NotMeasured => "not measured",
    }
}

/// Returns the sign to draw.
pub(crate) const fn outcome_sign(outcome: PublishedOutcome) -> &'static str {
    match outcome {
        PublishedOutcome::Agrees => "holds",
        PublishedOutcome::Differs => "broken",
        PublishedOutcome::Undecided | PublishedOutcome::NotMeasured => "inconclusive",
    }
}

/// Basis of a published figure, in words.
pub(crate) const fn basis_word(basis: Basis) -> &'static str {
    match basis {
        Basis::Predicted => "predicted",
        Basis::Calibrated => "calibrated",
        Basis::Entailed => "entailed",
    }
}

/// Note beside the outcome of a figure with a wide tolerance.
pub(crate) const ORDER_OF_MAGNITUDE: &str = "order of magnitude";

/// Counts of published figures by outcome and basis, as "15 of 20 predicted figures agree, 4 differ, 1 is undecided;
/// not counted: 3 calibrated, 2 entailed". `None` where no figure was measured.
#[must_use]
pub fn headline<'a>(figures: impl IntoIterator<Item = &'a PublishedComparison>) -> Option<String> {
    use PublishedOutcome::{Agrees, Differs, NotMeasured, Undecided};
    let all: Vec<_> = figures.into_iter().collect();
    if all.iter().all(|figure| figure.outcome == NotMeasured) {
        return None;
    }
    let of = |basis| all.iter().filter(move |c| c.figure.basis == basis);
    let count = |outcome| of(Basis::Predicted).filter(move |c| c.outcome == outcome);
    let agreeing = count(Agrees).count();
    let wide = count(Agrees).filter(|c| c.figure.is_order_of_magnitude());
    let predicted = match of(Basis::Predicted).count() {
        0 => "No published figure is predicted".to_owned(),
        1 => format!("{agreeing} of 1 predicted figure agrees"),
        all => format!("{agreeing} of {all} predicted figures agree"),
    };
    let verb = |count: usize, one: &str, several: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {several}")),
    };
    let mut parts = vec![match wide.count() {
        0 => predicted,
        wide => format!("{predicted} ({wide} in {ORDER_OF_MAGNITUDE})"),
    }];
    parts.extend(verb(count(Differs).count(), "differs", "differ"));
    parts.extend(verb(
        count(Undecided).count(),
        "is undecided",
        "are undecided",
    ));
    parts.extend(verb(
        count(NotMeasured).count(),
        "was not measured",
        "were not measured",
    ));
    let others = [Basis::Calibrated, Basis::Entailed].map(|basis| {
        let others = of(basis).count();
        (others > 0).then(|| format!("{others} {}", basis_word(basis)))
    });
    let others: Vec<String> = others.into_iter().flatten().collect();
    let predicted = parts.join(", ");
    Some(match others.len() {
        0 => predicted,
        _ => format!("{predicted}; not counted: {}", others.join(", ")),
    })
}

/// Describes the subject of a figure: metric, slice, cells, and the reference of a relative figure.
fn subject(figure: &PublishedFigure) -> String {
    let mut parts = vec![figure.metric.words()];
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

/// Describes the published value, with the tolerance that "about" is taken to mean.
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
            "decided by policy {policy}, scenario {scenario}; {agreeing} of {cells} cells agree"
        ),
    }
}

fn quantity(figure: &PublishedFigure, value: f64) -> String {
    if figure.relative_to.is_some() {
        return signed(&percent(value));
    }
    figure.metric.quantity.unit().text(value, 6)
}

pub(crate) fn section(figures: &[PublishedComparison]) -> Option<Section> {
    if figures.is_empty() {
        return None;
    }
    let body = html! {
        p.note {
            @if let Some(headline) = headline(figures) { (headline) ". " }
            (KEY)
        }
        (table(figures, "published-table"))
    };
    Some(Section::new("published", "Published", body).headed("Compared with published figures"))
}

/// How to read the table.
const KEY: &str = "A calibrated figure is one that a constant of the study was derived from; an entailed one follows from its \
    configuration. A figure agrees if our 90 % interval lies inside what was published, and differs if it lies outside \
    after correction for all comparisons of the study. The last column explains known differences.";

/// Figures that differ first, then those that are undecided.
pub(crate) fn table(figures: &[PublishedComparison], id: &str) -> Markup {
    let mut figures: Vec<&PublishedComparison> = figures.iter().collect();
    figures.sort_by_key(|comparison| match comparison.outcome {
        PublishedOutcome::Differs => 0,
        PublishedOutcome::Undecided => 1,
        PublishedOutcome::Agrees => 2,
        PublishedOutcome::NotMeasured => 3,
    });
    html! {
        div.table-frame id=(id) { (cards(&HEAD, &html! { @for figure in figures { (row(figure)) } })) }
    }
}

const HEAD: [&str; 7] = [
    "Published",
    "Where",
    "Expected",
    "Ours",
    "Basis",
    "Result",
    "Explanation",
];

fn row(comparison: &PublishedComparison) -> Markup {
    let [_, place, of, by_us, basis, result, explanation] = HEAD;
    let figure = &comparison.figure;
    let sign = outcome_sign(comparison.outcome);
    let seen_in = seen_in(comparison);
    html! { tr role="row" {
        th.claim scope="row" role="rowheader" {
            (Prose(&figure.claim))
            @if !figure.source.is_empty() { span.quiet { " (" (Prose(&figure.source)) ")" } }
        }
        td role="cell" data-label=(place) { (Prose(&subject(figure))) }
        td role="cell" data-label=(of) {
            (Prose(&expected(figure)))
            @if !figure.tolerance_from.is_empty() { span.said { (Prose(&figure.tolerance_from)) } }
        }
        td role="cell" data-label=(by_us) {
            (Prose(&ours(comparison)))
            @if !seen_in.is_empty() { span.said { (Prose(&seen_in)) } }
        }
        td role="cell" data-label=(basis) { (basis_word(figure.basis)) }
        td role="cell" data-label=(result) {
            (outcome(sign, outcome_word(comparison.outcome)))
            @if let Some(strip) = Strip::of(comparison) { (strip.markup(sign)) }
            @if figure.is_order_of_magnitude() { span.said { (ORDER_OF_MAGNITUDE) } }
        }
        td.explanation role="cell" data-label=(explanation) {
            (Prose(&figure.explanation))
            @if figure.explanation.is_empty() && sign == "broken" { span.quiet { "not explained" } }
        }
    } }
}

/// Our value and its interval beside the band that was expected, on one linear scale from 0 to 100.
#[derive(Debug, PartialEq)]
struct Strip {
    band: [f64; 2],
    interval: [f64; 2],
    value: f64,
}

impl Strip {
    /// `None` where nothing was measured.
    fn of(comparison: &PublishedComparison) -> Option<Self> {
        let ours = comparison.ours.as_ref()?;
        let value = ours.value;
        let interval = [ours.interval.low, ours.interval.high].map(|end| end.unwrap_or(value));
        let Interval { low, high } = comparison.figure.expected.range();
        let values = [Some(value), Some(interval[0]), Some(interval[1]), low, high];
        let known = || values.into_iter().flatten().filter(|v| v.is_finite());
        let least = known().fold(f64::INFINITY, f64::min);
        let most = known().fold(f64::NEG_INFINITY, f64::max);
        let span = if most > least { most - least } else { 1.0 };
        let place = |v: f64| (8.0 + 84.0 * (v - least) / span).clamp(0.0, 100.0);
        Some(Self {
            band: [low.map_or(0.0, place), high.map_or(100.0, place)],
            interval: interval.map(place),
            value: place(value),
        })
    }

    fn markup(&self, sign: &str) -> Markup {
        let [low, high] = self.band;
        let width = (high - low).max(1.0);
        let [from, to] = self.interval;
        html! { svg class=(format!("strip {sign}")) viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
            line x1="0" y1="5" x2="100" y2="5" stroke="var(--rule)" stroke-width="0.6" {}
            rect.band x=(round(low)) y="1" width=(round(width)) height="8" {}
            line x1=(round(from)) y1="5" x2=(round(to)) y2="5" stroke="currentColor" stroke-width="1.4" {}
            ellipse cx=(round(self.value)) cy="5" rx="2" ry="3" fill="currentColor" {}
        } }
    }
}

/// Thousandths are no pixels.
fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::{Colours, published_table_text};
    use slicewise_stats::description::{Basis, Cell};
    use slicewise_stats::quantity::Quantity;

    fn figure() -> PublishedFigure {
        PublishedFigure {
            claim: String::new(),
            source: String::new(),
            metric: Quantity::DelayMean.into(),
            policies: vec!["bandwidth".to_owned()],
            scenarios: vec!["5".to_owned(), "6".to_owned()],
            phase: None,
            slice: Some("critical".to_owned()),
            queue: None,
            relative_to: None,
            basis: Basis::Predicted,
            expected: Expected::About {
                value: 400_000.0,
                tolerance: 0.25,
            },
            tolerance_from: String::new(),
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
            metric: Quantity::LossRatio.into(),
            expected: Expected::About {
                value: 0.0,
                tolerance: 0.001,
            },
            ..figure()
        };
        assert_eq!(expected(&nothing), "0 % ± 0.1 %");
    }

    fn compared(basis: Basis, outcome: PublishedOutcome, tolerance: f64) -> PublishedComparison {
        PublishedComparison {
            figure: PublishedFigure {
                basis,
                claim: "a claim".to_owned(),
                tolerance_from: "one digit".to_owned(),
                expected: Expected::About {
                    value: 400_000.0,
                    tolerance,
                },
                ..figure()
            },
            outcome,
            ours: None,
            difference: None,
            difference_relative: None,
            cells: 1,
            cells_agreeing: 0,
        }
    }

    #[test]
    fn the_headline_counts_predicted_figures_by_outcome_and_others_by_basis() {
        use Basis::{Calibrated, Entailed, Predicted};
        use PublishedOutcome::{Agrees, Differs, NotMeasured, Undecided};
        let of = |figures: &[(Basis, PublishedOutcome)]| {
            let figures = figures.iter().enumerate();
            // The first one has a wide tolerance.
            let tolerance = |index| if index == 0 { 0.25 } else { 0.2 };
            let compared: Vec<_> = figures
                .map(|(index, &(basis, outcome))| compared(basis, outcome, tolerance(index)))
                .collect();
            headline(&compared).unwrap_or_default()
        };
        let all = [
            (Predicted, Agrees),
            (Predicted, Agrees),
            (Predicted, Differs),
            (Predicted, Differs),
            (Predicted, Undecided),
            (Predicted, NotMeasured),
            (Calibrated, Agrees),
            (Calibrated, Differs),
            (Entailed, Agrees),
        ];
        assert_eq!(
            of(&all),
            "2 of 6 predicted figures agree (1 in order of magnitude), 2 differ, 1 is undecided, 1 was not measured; \
             not counted: 2 calibrated, 1 entailed"
        );
        assert_eq!(
            of(&all[1..2]),
            "1 of 1 predicted figure agrees (1 in order of magnitude)"
        );
        assert_eq!(of(&all[2..3]), "0 of 1 predicted figure agrees, 1 differs");
        assert_eq!(
            of(&all[8..]),
            "No published figure is predicted; not counted: 1 entailed"
        );
        assert_eq!((of(&all[5..6]), of(&[])), (String::new(), String::new()));
    }

    #[test]
    fn a_row_shows_basis_and_reason_of_the_tolerance_and_that_it_is_wide() {
        let of = |tolerance| {
            let figure = compared(Basis::Calibrated, PublishedOutcome::Undecided, tolerance);
            row(&figure).into_string()
        };
        let wide = of(0.25);
        for shown in ["calibrated", "undecided", "one digit", ORDER_OF_MAGNITUDE] {
            assert!(wide.contains(shown), "{shown}: {wide}");
        }
        assert!(!of(0.2).contains(ORDER_OF_MAGNITUDE));
    }

    #[test]
    fn a_strip_has_our_value_where_it_is_beside_the_expected_band() {
        let strip = |expected, value| {
            let mut comparison = compared(Basis::Predicted, PublishedOutcome::Differs, 0.25);
            comparison.figure.expected = expected;
            comparison.ours = Some(OurFigure {
                value,
                interval: Interval {
                    low: Some(value - 1.0),
                    high: Some(value + 1.0),
                },
                policy: String::new(),
                scenario: String::new(),
                slice: None,
                repetitions: 2,
                p_value: None,
            });
            Strip::of(&comparison).unwrap()
        };
        let inside = strip(
            Expected::Between {
                low: 0.0,
                high: 84.0,
            },
            21.0,
        );
        assert_eq!(inside.band, [8.0, 92.0]);
        assert_eq!((inside.value, inside.interval), (29.0, [28.0, 30.0]));
        let below = strip(Expected::AtLeast { value: 84.0 }, 1.0);
        assert_eq!((below.value, below.band), (9.0, [92.0, 100.0]));
    }

    #[test]
    fn the_terminal_shows_basis_and_outcome_of_each_figure() {
        let figures = [
            compared(Basis::Predicted, PublishedOutcome::Undecided, 0.25),
            compared(Basis::Entailed, PublishedOutcome::Agrees, 0.2),
        ];
        let table = published_table_text(&figures, 80, Colours::None).unwrap();
        insta::assert_snapshot!(table, @"
        ────────────────────────────────────────────────────────────────────────
         Published  Expected       Ours          Basis      Result
        ════════════════════════════════════════════════════════════════════════
         a claim    400 µs ± 25 %  not measured  predicted  undecided, order of
                                                            magnitude
         a claim    400 µs ± 20 %  not measured  entailed   agrees
        ────────────────────────────────────────────────────────────────────────
        ");
    }
}
