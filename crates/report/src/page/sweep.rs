//! The points of a sweep on the page over them: a map of verdicts, with where along the first axis they hold.

use crate::attribute::AttributeText;
use crate::markup::{Prose, icon, outcome};
use crate::sweep::{MapRow, VerdictMap};
use crate::unbroken::unbroken;
use maud::{Markup, html};
use slicewise_stats::description::Coordinate;

/// A table for each attribute: a row for each policy and values of the other axes, a column for each value of the first.
pub(super) fn maps(maps: &[VerdictMap]) -> Markup {
    html! {
        @for map in maps {
            h3 { (map.title()) }
            div.table-frame { table.map {
                thead {
                    tr {
                        th scope="col" rowspan="2" { "Policy" }
                        @for axis in map.other_axes() { th scope="col" rowspan="2" { (axis) } }
                        th scope="col" rowspan="2" { "Holds" }
                        th scope="col" rowspan="2" { "Broken" }
                        th.point scope="colgroup" colspan=(map.shown().count()) { (map.axis()) }
                    }
                    tr { @for place in map.shown() { th.point scope="col" { (unbroken(&map.columns[place].text)) } } }
                }
                tbody { @for (index, row) in map.rows.iter().enumerate() {
                    @let is_first = index == 0 || map.rows[index - 1].policy != row.policy;
                    tr.begins[is_first] {
                        th scope="row" { @if is_first { (row.policy) } }
                        @for value in &row.at { td { (Prose(&value.text)) } }
                        td { (unbroken(&map.extent(row, "holds"))) }
                        td { (unbroken(&map.extent(row, "broken"))) }
                        @for place in map.shown() { (point(row, &map.columns[place], row.cells[place].as_ref())) }
                    }
                } }
            } }
        }
        @if !maps.is_empty() {
            p.key.signs { @for sign in ["holds", "partial", "broken", "inconclusive"] { (outcome(sign, sign)) " " } }
        }
    }
}

fn point(row: &MapRow, value: &Coordinate, cell: Option<&AttributeText>) -> Markup {
    let Some(text) = cell else {
        return html! { td.point {} };
    };
    let at = format!(
        "{}, {} {}: {}",
        row.policy, value.axis, value.text, text.reason
    );
    html! {
        td.point {
            span class=(format!("verdict {}", text.sign)) role="img" aria-label=(at) title=(at) { (icon(text.sign)) }
        }
    }
}
