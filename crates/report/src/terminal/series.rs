//! Results of several cases, or of the points of a sweep: verdicts, or the measured figures where nothing was judged.

use super::verdict_matrix::cell_text;
use super::{
    Colours, Column, Listing, MARKS, PADDING, WIDEST, align_numbers, coloured, marked_as, one_word,
    plain_table, text, wrapped,
};
use crate::answer::nothing_judged;
use crate::findings::Findings;
use crate::matrix::{Cell, Matrix};
use crate::measured::{self, MeasuredMap};
use crate::sweep::{AxisMap, MapRow, VerdictMap, undecided};
use comfy_table::Table;
use slicewise_stats::words::percent;

/// Text of a verdict at a point.
type CellText = fn(&Cell) -> String;
/// Texts of a row before those of its points.
type RowTexts<'a, T> = &'a dyn Fn(&MapRow<T>) -> Vec<String>;
/// Rows of a table; of more, the first and the last ones are shown.
const MAX_ROWS: usize = 24;
/// Tables of measured figures.
const MAX_TABLES: usize = 6;

/// Table for each attribute that was judged at the points of a sweep: where along the first axis it holds and is broken,
/// and verdict and deciding number at each value, where there is room. `None` of cases that are no points, of random
/// points, and where nothing was judged.
#[must_use]
pub fn sweep_table_text(points: &[&Findings], width: u16, colours: Colours) -> Option<String> {
    let maps = VerdictMap::of(points);
    let first = maps.first().and(points.first())?;
    let (mut texts, mut signs) = (String::new(), Vec::new());
    for of in &maps {
        let forms: [(Option<CellText>, bool); 5] = [
            (Some(cell_text), false),
            (Some(cell_text), true),
            (Some(sign), false),
            (Some(sign), true),
            (None, true),
        ];
        let tables = forms.map(|form| (form, verdict_table(of, form, width)));
        let [.., without] = &tables;
        let fitting = tables.iter().find(|(_, table)| fits(table, width));
        let ((form, is_short), table) = fitting.unwrap_or(without);
        if form.is_some() {
            let shown = of.map.shown();
            let shown =
                shown.flat_map(|place| of.map.rows.iter().map(move |row| &row.cells[place]));
            signs.extend(shown.flatten().map(|cell| cell.sign));
        }
        let unit = unit_of(&of.map, *is_short && form.is_some());
        let table = coloured(&text(table.clone()), colours);
        let rows = more(of.map.rows.len());
        texts.push_str(&format!("{}{unit}\n{table}{rows}\n", of.title));
    }
    let used = MARKS.iter().filter(|(name, ..)| signs.contains(name));
    let legend: Vec<String> = used
        .map(|(name, sign, ..)| format!("{sign} {name}"))
        .collect();
    let excluded = percent(first.study().margins.rare_runs);
    let holds = format!("\"holds\": beyond a limit in at most {excluded} of runs");
    let legend = legend.into_iter().chain([holds]).collect::<Vec<_>>();
    let mut say = |line: &str| texts.push_str(&(wrapped(line, width.into()) + "\n"));
    say(&legend.join("  "));
    let undecided = undecided(points);
    undecided.iter().take(MAX_ROWS).for_each(|line| say(line));
    if let Some(left_out) = undecided.len().checked_sub(MAX_ROWS + 1) {
        say(&format!(
            "and {} more undecided rows in the report",
            left_out + 1
        ));
    }
    Some(texts)
}

/// Verdicts on each case, a line for each policy, where too many cases are for tables of their own. `None` where nothing
/// was judged.
#[must_use]
pub fn case_table_text(cases: &[&Findings], width: u16, colours: Colours) -> Option<String> {
    let judged = |findings: &&&Findings| findings.main().verdicts.is_judged();
    let judged: Vec<&Findings> = cases.iter().filter(judged).copied().collect();
    let rows = judged.iter().flat_map(|findings| {
        let rows = Matrix::of(&findings.main().verdicts).rows.into_iter();
        rows.map(|row| {
            let cells = row.cells.iter().take(2).map(cell_text);
            let names = [name(findings), row.policy.clone()];
            names.into_iter().chain(cells).collect::<Vec<_>>()
        })
    });
    let heads = ["Case", "Policy"].map(Column::Name).into_iter();
    let heads = heads.chain(["Isolation", "Reallocation"].map(Column::Text));
    let table = listing(heads, rows.collect(), width, colours);
    (!judged.is_empty()).then_some(table)
}

/// Measured figures of cases in which nothing was judged: those that the study draws, or the main ones of each slice. Of the
/// points of a grid a table for each figure over the first axis, else a line for each case, policy, scenario and slice; then why
/// nothing was judged. `None` where nothing was measured.
#[must_use]
pub fn measured_table_text(cases: &[&Findings], width: u16, colours: Colours) -> Option<String> {
    let why = nothing_judged(cases.first()?.study());
    let why = wrapped(why, width.into()) + "\n";
    let (maps, others) = MeasuredMap::of(cases, MAX_TABLES);
    if !maps.is_empty() {
        let tables = maps.iter().map(|of| measured_map(of, width));
        let tables = tables.collect::<Vec<_>>().join("\n");
        let others = match others {
            0 => String::new(),
            count => format!("\n{count} more quantities in the report\n"),
        };
        return Some(format!("{tables}{others}\n{why}"));
    }
    let named: Vec<_> = cases.iter().map(|of| (name(of), *of)).collect();
    let table = measured::rows(&named);
    if table.rows.is_empty() {
        return None;
    }
    let heads = table.head.into_iter().enumerate();
    let heads = heads.map(|(place, head)| match place < table.names {
        true => Column::Name(head),
        false => Column::Number(head),
    });
    let rows = listing(heads, table.rows, width, colours);
    Some(format!("{rows}\n{why}"))
}

/// Name of a case, or of the study that is none.
fn name(findings: &Findings) -> String {
    let study = findings.study();
    study.case.as_ref().unwrap_or(&study.name).clone()
}

/// Rows in the width of the terminal, the first and the last ones of many.
fn listing(
    heads: impl IntoIterator<Item = Column>,
    rows: Vec<Vec<String>>,
    width: u16,
    colours: Colours,
) -> String {
    let mut listing = Listing::new(heads);
    let count = rows.len();
    for (place, row) in rows.into_iter().enumerate() {
        if is_shown(place, count) {
            listing.add(row);
        }
    }
    let table = listing.fitted(width.min(WIDEST), "see the report", colours);
    format!("{table}{}", more(count))
}

/// True of the first and the last rows.
const fn is_shown(place: usize, count: usize) -> bool {
    count <= MAX_ROWS || place < MAX_ROWS / 2 || place >= count - MAX_ROWS / 2
}

/// A line about the rows in the middle that are left out.
fn more(count: usize) -> String {
    match count.saturating_sub(MAX_ROWS) {
        0 => String::new(),
        left_out => {
            let shown = MAX_ROWS / 2;
            format!("The first and last {shown} rows; {left_out} more in the report\n")
        }
    }
}

fn fits(table: &Table, width: u16) -> bool {
    let widths = table.column_max_content_widths();
    let used: u16 = widths.iter().map(|column| column + PADDING).sum();
    used <= width.min(WIDEST)
}

fn verdict_table(
    map: &VerdictMap,
    (form, is_short): (Option<CellText>, bool),
    width: u16,
) -> Table {
    let extents = ["holds", "broken"];
    let heads = extents.map(|sign| format!("{sign}, by {}", map.map.axis()));
    let extents = |row: &MapRow<Cell>| extents.map(|sign| extent(map, row, sign)).to_vec();
    let places: Vec<usize> = map.map.shown().filter(|_| form.is_some()).collect();
    let form = form.unwrap_or(sign);
    let places = (&places[..], is_short);
    axis_table(&map.map, (&heads, &extents), places, &form, width)
}

/// One measured figure; values of the first axis for which there is no room are left out in the middle.
fn measured_map(of: &MeasuredMap, width: u16) -> String {
    let map = &of.map;
    let all: Vec<usize> = map.shown().collect();
    let drawn = |places: &[usize], is_short| {
        let none = |_: &MapRow<String>| Vec::new();
        let form = |value: &String| one_word(value);
        axis_table(map, (&[], &none), (places, is_short), &form, width)
    };
    let mut places = all.clone();
    let is_short = !fits(&drawn(&places, false), width);
    while places.len() > 2 && !fits(&drawn(&places, is_short), width) {
        places.remove(places.len() / 2);
    }
    let mut table = drawn(&places, is_short);
    align_numbers(&mut table, 1 + map.other_axes().count()..);
    let left_out = match all.len() - places.len() {
        0 => String::new(),
        count => format!("{count} more values of {} in the report\n", map.axis()),
    };
    let (unit, rows) = (unit_of(map, is_short), more(map.rows.len()));
    format!(
        "{}, by {}{unit}\n{}{left_out}{rows}",
        of.title,
        map.axis(),
        text(table)
    )
}

/// " (packets)" where values of the first axis are shown without their unit.
fn unit_of<T>(map: &AxisMap<T>, is_short: bool) -> String {
    let unit = map.unit().filter(|_| is_short);
    unit.map_or_else(String::new, |unit| format!(" ({unit})"))
}

/// A row for each policy and values of the other axes, a column for each of `places` along the first one.
fn axis_table<T>(
    map: &AxisMap<T>,
    (heads, first): (&[String], RowTexts<'_, T>),
    (places, is_short): (&[usize], bool),
    form: &dyn Fn(&T) -> String,
    width: u16,
) -> Table {
    let names = std::iter::once("policy".to_owned());
    let names = names.chain(map.other_axes().map(str::to_owned));
    let unit = map.unit().filter(|_| is_short).unwrap_or_default();
    let values = places.iter().map(|place| {
        let text = map.columns[*place].text.as_str();
        one_word(text.strip_suffix(unit).unwrap_or(text).trim_end())
    });
    let heads = names.chain(heads.iter().cloned()).chain(values);
    let mut table = plain_table(heads.collect::<Vec<_>>(), width);
    for (place, row) in map.rows.iter().enumerate() {
        if !is_shown(place, map.rows.len()) {
            continue;
        }
        let names = std::iter::once(row.policy.clone());
        let names = names.chain(row.at.iter().map(|value| value.text.clone()));
        let cells = places
            .iter()
            .map(|place| row.cells[*place].as_ref().map_or_else(String::new, form));
        table.add_row(names.chain(first(row)).chain(cells).collect::<Vec<_>>());
    }
    table
}

fn extent(map: &VerdictMap, row: &MapRow<Cell>, sign: &str) -> String {
    match map.extent(row, sign) {
        nowhere if nowhere.is_empty() => "–".to_owned(),
        somewhere => marked_as(sign, &somewhere),
    }
}

fn sign(cell: &Cell) -> String {
    let mark = MARKS.iter().find(|(name, ..)| *name == cell.sign);
    mark.map_or_else(String::new, |(name, sign, ..)| {
        marked_as(name, &sign.to_string())
    })
}
