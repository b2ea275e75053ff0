//! The points of a sweep on the page over them: a map of verdicts, with where along the first axis they hold.

use crate::findings::Findings;
use crate::markup::{Prose, icon, list, outcome};
use crate::matrix::Cell;
use crate::sweep::{MapRow, VerdictMap, undecided};
use crate::unbroken::unbroken;
use maud::{Markup, html};
use slicewise_stats::description::Coordinate;
use slicewise_stats::words::percent;

/// A table for each attribute: a row for each policy and values of the other axes, a column for each value of the first.
/// Where isolation is undecided, what would decide.
pub(super) fn maps(maps: &[VerdictMap], points: &[&Findings]) -> Markup {
    let margins = points.first().map(|point| point.study().margins);
    let excluded = margins.map_or_else(String::new, |margins| percent(margins.rare_runs));
    let undecided = undecided(points);
    html! {
        @for map in maps {
            h3 { (map.title) }
            div.table-frame { table.map {
                thead {
                    tr {
                        th scope="col" rowspan="2" { "Policy" }
                        @for axis in map.map.other_axes() { th scope="col" rowspan="2" { (axis) } }
                        th scope="col" rowspan="2" { "Holds" }
                        th scope="col" rowspan="2" { "Broken" }
                        th.point scope="colgroup" colspan=(map.map.shown().count()) { (map.map.axis()) }
                    }
                    tr { @for place in map.map.shown() { th.point scope="col" { (unbroken(&map.map.columns[place].text)) } } }
                }
                tbody { @for (index, row) in map.map.rows.iter().enumerate() {
                    @let is_first = index == 0 || map.map.rows[index - 1].policy != row.policy;
                    tr.begins[is_first] {
                        th scope="row" { @if is_first { (row.policy) } }
                        @for value in &row.at { td { (Prose(&value.text)) } }
                        td { (unbroken(&map.extent(row, "holds"))) }
                        td { (unbroken(&map.extent(row, "broken"))) }
                        @for place in map.map.shown() { (point(row, &map.map.columns[place], row.cells[place].as_ref())) }
                    }
                } }
            } }
        }
        @if !maps.is_empty() {
            p.key.signs { @for sign in ["holds", "partial", "broken", "inconclusive"] { (outcome(sign, sign)) " " } }
            p.note { "“Holds”: beyond a limit in at most " (unbroken(&excluded)) " of runs (" code { "margins.rare_runs" } ")." }
            @if !undecided.is_empty() { (list(&undecided)) }
        }
    }
}

/// Sign and deciding number of a point, with the whole reason.
fn point(row: &MapRow<Cell>, value: &Coordinate, cell: Option<&Cell>) -> Markup {
    let Some(cell) = cell else {
        return html! { td.point {} };
    };
    let at = format!(
        "{}, {} {}: {}",
        row.policy, value.axis, value.text, cell.reason
    );
    let number = (cell.number != cell.word).then_some(&cell.number);
    html! {
        td.point title=(at) {
            span class=(format!("verdict {}", cell.sign)) role="img" aria-label=(at) { (icon(cell.sign)) }
            @if let Some(number) = number { (unbroken(number)) }
        }
    }
}
