//! The page's section on published figures beside ours.

use super::markup::{Prose, Section, outcome};
use crate::findings::Findings;
use crate::published::{expected, ours, outcome_sign, outcome_word, seen_in, subject};
use maud::{Markup, html};
use slicewise_stats::published::{PublishedComparison, PublishedOutcome};

pub(super) fn section(findings: &Findings) -> Option<Section> {
    let figures = &findings.published;
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

pub(super) fn table(figures: &[PublishedComparison], id: &str) -> Markup {
    html! {
        div.table-frame id=(id) { table.cards role="table" {
            thead role="rowgroup" { tr role="row" { @for text in HEAD { th scope="col" role="columnheader" { (text) } } } }
            tbody role="rowgroup" { @for figure in figures { (row(figure)) } }
        } }
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
