//! The verdict table.

use super::document::{AttributeView, Document, TestView, VerdictView};
use super::markup::{Prose, icon, outcome};
use crate::unbroken::unbroken;
use maud::{Markup, html};

const ATTRIBUTES: [&str; 3] = [
    "Performance isolation",
    "Resource reallocation",
    "Scalability",
];

/// Nothing where nothing was judged: captures without a study.
pub(super) fn table(document: &Document<'_>) -> Markup {
    if document.verdicts.is_empty() {
        return html! {};
    }
    html! {
        div.table-frame #verdict-table {
            table.cards role="table" {
                thead role="rowgroup" { tr role="row" {
                    th scope="col" role="columnheader" { "Policy" }
                    @for title in ATTRIBUTES { th scope="col" role="columnheader" { (title) } }
                } }
                tbody role="rowgroup" { @for row in &document.verdicts { (policy(document, row)) } }
            }
        }
        p.key #verdict-key { @for text in &document.verdict_key { span { (Prose(text)) br; } } }
    }
}

fn policy(document: &Document<'_>, row: &VerdictView) -> Markup {
    let policy = document.policies.get(row.policy);
    let attributes = [&row.isolation, &row.reallocation, &row.scalability];
    html! {
        tr.verdict-row role="row" {
            th scope="row" role="rowheader" {
                (policy.map_or("", |p| &p.name))
                span.policy-title { (Prose(policy.map_or("", |p| &p.title))) }
            }
            @for (title, attribute) in ATTRIBUTES.into_iter().zip(attributes) {
                td role="cell" data-label=(title) { (cell(attribute)) }
            }
        }
        tr.reason role="row" { td colspan="4" role="cell" {
            details.why {
                summary { "Why?" }
                @for (title, attribute) in ATTRIBUTES.into_iter().zip(attributes) {
                    h4 { (title) }
                    p { (Prose(&attribute.reason)) }
                    @if !attribute.tests.is_empty() { (tests(&attribute.tests)) }
                }
            }
        } }
    }
}

fn cell(attribute: &AttributeView) -> Markup {
    let differs = attribute.agrees == Some(false);
    html! {
        (outcome(attribute.outcome, &attribute.word))
        span.deciding { (Prose(&attribute.deciding)) }
        @if let Some(published) = &attribute.published {
            span.said.differ[differs] {
                @match attribute.agrees {
                    Some(true) => (icon("agree")),
                    Some(false) => (icon("differ")),
                    None => {},
                }
                "published: " (unbroken(published)) @if differs { " (differs)" }
            }
        }
    }
}

fn tests(tests: &[TestView]) -> Markup {
    let head = [
        "Slice",
        "Indicator",
        "Scenario",
        "Measured",
        "Interval",
        "Margin",
        "p",
        "Outcome",
    ];
    html! {
        div.table-frame { table {
            thead { tr { @for text in head { th scope="col" { (text) } } } }
            tbody { @for test in tests {
                tr.decides[test.decides] {
                    @for text in [
                        &test.slice, &test.indicator, &test.scenario, &test.measured,
                        &test.interval, &test.margin, &test.p_value,
                    ] { td { (Prose(text)) } }
                    td { @if !test.word.is_empty() { (outcome(test.outcome, &test.word)) } }
                }
            } }
        } }
    }
}

/// The verdicts of several back ends.
pub(super) fn beside(document: &Document<'_>) -> Markup {
    let Some(beside) = &document.beside else {
        return html! {};
    };
    let published = beside.verdicts.iter().any(|row| !row.published.is_empty());
    html! {
        div.table-frame #beside-verdicts { table {
            thead {
                tr {
                    th scope="col" rowspan="2" { "Policy" }
                    @if published { th scope="col" rowspan="2" { "Published" } }
                    @for side in &beside.sides { th.begins-side scope="colgroup" colspan="2" { (side.name) } }
                    th.begins-side scope="col" rowspan="2" { "Scalability" }
                }
                tr { @for _ in &beside.sides {
                    th.begins-side scope="col" { "Isolation" }
                    th scope="col" { "Reallocation" }
                } }
            }
            tbody { @for row in &beside.verdicts { tr {
                th scope="row" { (row.policy) }
                @if published {
                    td {
                        @for text in &row.published { span.said { (Prose(text)) } }
                        @if row.published.is_empty() { "–" }
                    }
                }
                @for side in &row.sides { (side_cells(side.as_ref())) }
                td.begins-side title=[row.scalability.as_ref().map(|s| &s.reason)] {
                    (row.scalability.as_ref().map_or("–", |s| &s.word))
                }
            } } }
        } }
        dl.behind { @for side in &beside.sides { div {
            dt { (side.name) }
            dd {
                (Prose(&side.basis))
                @if !side.left_out.is_empty() {
                    ul { @for text in &side.left_out { li { "Left out: " (Prose(text)) } } }
                }
            }
        } } }
    }
}

/// What is not supported is written once, over both columns.
fn side_cells(pair: Option<&[AttributeView; 2]>) -> Markup {
    let Some([isolation, reallocation]) = pair else {
        return html! { td.begins-side { "–" } td { "–" } };
    };
    if isolation.outcome == "unsupported" {
        return html! { td.begins-side colspan="2" { (side_cell(isolation)) } };
    }
    html! {
        td.begins-side title=(isolation.reason) { (side_cell(isolation)) }
        td title=(reallocation.reason) { (side_cell(reallocation)) }
    }
}

fn side_cell(attribute: &AttributeView) -> Markup {
    html! {
        (outcome(attribute.outcome, &attribute.word))
        span.deciding { (Prose(&attribute.deciding)) }
        @if attribute.agrees == Some(false) { span.said.differ { "≠ published" } }
    }
}
