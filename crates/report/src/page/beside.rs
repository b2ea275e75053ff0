//! The page's section on other back ends: verdicts and figures side by side.

use crate::attribute::{AttributeText, attributes};
use crate::findings::Findings;
use crate::markup::{Prose, Section, outcome};
use crate::object::{SliceFigures, object, slice_figures};
use crate::side::{Side, main_first, scalability};
use maud::{Markup, html};
use serde::Serialize;
use slicewise_stats::description::SliceDescription;
use slicewise_stats::summary::CellSummary;
use slicewise_stats::verdict::PolicyVerdict;
use slicewise_stats::words::percent;

object! {
    Beside<'a>(findings: &'a Findings, (policies, scenarios): (&[&'a str], Vec<&'a str>)) {
        sides: Vec<&'a str> = findings.sides.iter().map(|side| side.name.as_str()).collect(),
        verdicts: Vec<Policy<'a>> = policies.iter().map(|policy| Policy::of(policy, &findings.sides)).collect(),
        scenarios: Vec<&'a str> = scenarios.clone(),
        /// The one that is shown first: the heaviest that more than one back end has.
        first_scenario: usize = scenarios.iter()
            .rposition(|scenario| covering(&findings.sides, scenario) > 1)
            .unwrap_or_default(),
        /// By side, then policy (as in `verdicts`), then scenario; `None` where no run is finished.
        figures: Vec<Vec<Vec<Option<Cell>>>> = {
            let slices = &findings.study().slices;
            let cell = |side: &Side, policy, scenario| Some(Cell::of(side.cell(policy, scenario)?, slices));
            let of_policy = |side, policy| scenarios.iter().map(|s| cell(side, policy, s)).collect();
            let of_side = |side| policies.iter().map(|policy| of_policy(side, policy)).collect();
            findings.sides.iter().map(of_side).collect()
        },
    }
}

object! {
    Policy<'a>(policy: &'a str, sides: &[Side]) {
        policy: &'a str = policy,
        /// By side: whether it cannot express the policy.
        unsupported: Vec<bool> = sides.iter()
            .map(|side| side.verdict(policy).is_some_and(|v| v.not_supported.is_some()))
            .collect(),
    }
}

object! {
    /// A policy in a scenario on one back end.
    Cell(cell: &CellSummary, slices: &[SliceDescription]) {
        repetitions: u32 = cell.repetitions,
        /// As in the study of the report; `None` where there is no slice of that name.
        slices: Vec<Option<SliceFigures>> = slices.iter()
            .map(|slice| Some(slice_figures(cell.slices.iter().find(|s| s.slice == slice.name)?)))
            .collect(),
    }
}

/// How many sides have runs of a scenario.
fn covering(sides: &[Side], scenario: &str) -> usize {
    let covers = |side: &&Side| side.covered_scenarios().any(|name| name == scenario);
    sides.iter().filter(covers).count()
}

/// `None` where there is no folder beside.
pub(super) fn script<'a>(findings: &'a Findings) -> Option<Beside<'a>> {
    let scenarios = names(&findings.sides, |side| side.covered_scenarios().collect());
    let names = (&*policies(&findings.sides), scenarios);
    (findings.sides.len() > 1).then(|| Beside::of(findings, names))
}

fn policies(sides: &[Side]) -> Vec<&str> {
    names(sides, |side| {
        let policies = side.study.policies.iter();
        policies.map(|policy| policy.name.as_str()).collect()
    })
}

/// Names of all sides, each once, in the order in which they are met: this report's own side first.
fn names<'a>(sides: &'a [Side], of: impl Fn(&'a Side) -> Vec<&'a str>) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for name in main_first(sides).flat_map(of) {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

pub(super) fn section(findings: &Findings) -> Option<Section> {
    let sides = &findings.sides;
    if sides.len() < 2 {
        return None;
    }
    let body = html! {
        p.note { "The same study on several back ends; each is judged on its own runs. Their scenarios and numbers of repetitions may differ." }
        (verdicts(sides))
        dl.behind { @for side in sides { div {
            dt { (side.name) }
            dd {
                (Prose(&basis(side, sides)))
                // The page names those of this folder above.
                @if !side.is_main && !side.damaged_runs.is_empty() {
                    ul { @for text in &side.damaged_runs { li { "Left out: " (Prose(text)) } } }
                }
            }
        } } }
        div.scripted {
            h3 { "Figures" }
            p.note { "Means over repetitions with their " (percent(findings.main().summary.confidence)) " confidence intervals, after the transient." }
            div.controls {
                label { "Scenario " select #beside-scenario {} }
                label { "Delay " select #beside-delay {} }
            }
            div.charts #beside-charts {}
            div.table-frame #beside-figures {}
        }
    };
    Some(Section::new("beside", "Side by side", body))
}

fn basis(side: &Side, sides: &[Side]) -> String {
    let mut basis = side.basis();
    let main = sides.iter().find(|side| side.is_main);
    if main.is_some_and(|main| main.study.digest != side.study.digest) {
        basis.push_str("; of another version of the study");
    }
    basis
}

/// The verdicts of several back ends.
fn verdicts(sides: &[Side]) -> Markup {
    let rows = policies(sides);
    let rows = rows
        .into_iter()
        .map(|policy| (policy, published(policy, sides)));
    let rows: Vec<(&str, Vec<String>)> = rows.collect();
    let is_published = rows.iter().any(|(_, published)| !published.is_empty());
    html! {
        div.table-frame #beside-verdicts { table {
            thead {
                tr {
                    th scope="col" rowspan="2" { "Policy" }
                    @if is_published { th scope="col" rowspan="2" { "Published" } }
                    @for side in sides { th.begins-side scope="colgroup" colspan="2" { (side.name) } }
                    th.begins-side scope="col" rowspan="2" { "Scalability" }
                }
                tr { @for _ in sides {
                    th.begins-side scope="col" { "Isolation" }
                    th scope="col" { "Reallocation" }
                } }
            }
            tbody { @for (policy, published) in &rows { tr {
                th scope="row" { (policy) }
                @if is_published {
                    td {
                        @for text in published { span.said { (Prose(text)) } }
                        @if published.is_empty() { "–" }
                    }
                }
                @for side in sides { (side_cells(side.verdict(policy))) }
                @let scalability = scalability(policy, sides);
                td.begins-side title=[scalability.as_ref().map(|s| &s.reason)] {
                    (scalability.as_ref().map_or("–", |s| &s.word))
                }
            } } }
        } }
    }
}

/// A line per attribute; empty where nothing was published.
fn published(policy: &str, sides: &[Side]) -> Vec<String> {
    let first = main_first(sides).find_map(|side| side.verdict(policy));
    let texts = first.map(attributes).into_iter().flatten();
    texts
        .filter_map(|a| Some(format!("{}: {}", a.key, a.published?)))
        .collect()
}

/// Cells of one side: "not supported" is written once, over both columns.
fn side_cells(verdict: Option<&PolicyVerdict>) -> Markup {
    let Some([isolation, reallocation, _]) = verdict.map(attributes) else {
        return html! { td.begins-side { "–" } td { "–" } };
    };
    if isolation.sign == "unsupported" {
        return html! { td.begins-side colspan="2" { (side_cell(&isolation)) } };
    }
    html! {
        td.begins-side title=(isolation.reason) { (side_cell(&isolation)) }
        td title=(reallocation.reason) { (side_cell(&reallocation)) }
    }
}

fn side_cell(attribute: &AttributeText) -> Markup {
    html! {
        (outcome(attribute.sign, &attribute.word))
        span.deciding { (Prose(&attribute.deciding)) }
        @if attribute.agrees == Some(false) { span.said.differ { "≠ published" } }
    }
}
