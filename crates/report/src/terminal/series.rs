//! Verdicts over the axes of a sweep: a line for each policy and values of all axes but the first.

use super::{Colours, MARKS, PADDING, WIDEST, coloured, marked_as, one_word, plain_table, text};
use crate::attribute::AttributeText;
use crate::findings::Findings;
use crate::sweep::{MapRow, VerdictMap};
use comfy_table::Table;

/// Table for each attribute that was judged at the points of a sweep: where along the first axis it holds and is broken,
/// and the verdict at each value, where there is room. `None` of cases that are no points, and of random ones.
#[must_use]
pub fn sweep_table_text(points: &[&Findings], width: u16, colours: Colours) -> Option<String> {
    let maps = VerdictMap::of(points);
    let of_map = |map: &VerdictMap| {
        let wide = table(map, true, width);
        let widths = wide.column_max_content_widths();
        let used: u16 = widths.iter().map(|column| column + PADDING).sum();
        let table = match used <= width.min(WIDEST) {
            true => wide,
            false => table(map, false, width),
        };
        format!("{}\n{}", map.title(), coloured(&text(table), colours))
    };
    let tables: Vec<String> = maps.iter().map(of_map).collect();
    let signs = MARKS
        .iter()
        .map(|(name, sign, ..)| format!("{sign} {name}"));
    let legend = signs.collect::<Vec<_>>().join("  ");
    (!tables.is_empty()).then(|| format!("{}\n{legend}\n", tables.join("\n")))
}

fn table(map: &VerdictMap, has_points: bool, width: u16) -> Table {
    let names = ["policy".to_owned()].into_iter();
    let names = names.chain(map.other_axes().map(str::to_owned));
    let extents = ["holds", "broken"].map(|sign| format!("{sign}, by {}", map.axis()));
    let shown: Vec<usize> = map.shown().filter(|_| has_points).collect();
    let values = shown
        .iter()
        .map(|place| one_word(&map.columns[*place].text));
    let mut table = plain_table(
        names.chain(extents).chain(values).collect::<Vec<_>>(),
        width,
    );
    for row in &map.rows {
        let names = std::iter::once(row.policy.clone());
        let names = names.chain(row.at.iter().map(|value| value.text.clone()));
        let extents = ["holds", "broken"].map(|sign| extent(map, row, sign));
        let cells = shown.iter().map(|place| sign(&row.cells[*place]));
        table.add_row(names.chain(extents).chain(cells).collect::<Vec<_>>());
    }
    table
}

fn extent(map: &VerdictMap, row: &MapRow, sign: &str) -> String {
    match map.extent(row, sign) {
        nowhere if nowhere.is_empty() => "–".to_owned(),
        somewhere => marked_as(sign, &somewhere),
    }
}

fn sign(cell: &Option<AttributeText>) -> String {
    let Some(text) = cell else {
        return String::new();
    };
    let mark = MARKS.iter().find(|(name, ..)| *name == text.sign);
    mark.map_or_else(String::new, |(name, sign, ..)| {
        marked_as(name, &sign.to_string())
    })
}
