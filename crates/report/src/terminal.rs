//! Verdicts, and what slices by the thousand got, as plain text for a terminal.

use crate::attribute::{AttributeText, attributes};
use crate::captured::{CapturedFindings, FlowFinding};
use crate::flows;
use crate::populations::{PopulationFinding, grouped, memory, time_a_frame};
use crate::published::{expected, ours, outcome_sign, outcome_word};
use crate::side::{Side, main_first, scalability};
use crate::text_table::{or_dash, time_or_dash};
use crate::unbroken;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Row, Table, TableStyle,
    Width,
};
use slicewise_stats::application_summary::ApplicationQuantity;
use slicewise_stats::description::StudyDescription;
use slicewise_stats::published::PublishedComparison;
use slicewise_stats::record::RunKey;
use slicewise_stats::summary::Summary;
use slicewise_stats::verdict::{Outcome, PolicyVerdict, VerdictTable};
use slicewise_stats::words::{count, digits, percent, time};

/// Whether outcomes are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// By escape sequences of ANSI terminals.
    Ansi,
    /// Text alone.
    None,
}

/// `verdicts` as a table: one row per policy, each verdict with the number that decided it, and the published one
/// beside it.
///
/// `width` is the terminal's, in columns; no line is wider than that, nor than 120. `None` where nothing was
/// judged.
#[must_use]
pub fn verdict_table_text(verdicts: &VerdictTable, width: u16, colours: Colours) -> Option<String> {
    if !verdicts.says_something() {
        return None;
    }
    let header = [
        "Policy",
        "Performance isolation",
        "Resource reallocation",
        "Scalability",
        "Published",
    ];
    let mut table = ruled_table(header, width, UTF8_HORIZONTAL_ONLY);
    for verdict in &verdicts.policies {
        table.add_row(row(verdict));
    }
    at_least(&mut table, 0, 11);
    at_least(&mut table, 4, 20);
    Some(coloured(&text(&table), colours))
}

/// What "holds" means after a first look, whose repetitions exclude little; `None` where it was none, or nothing
/// holds.
#[must_use]
pub fn quick_note(study: &StudyDescription, verdicts: &VerdictTable) -> Option<String> {
    let holds = verdicts.policies.iter().any(|policy| {
        [policy.isolation.outcome, policy.reallocation.outcome].contains(&Outcome::Holds)
    });
    let excluded = percent(study.margins.rare_runs);
    (study.is_quick && holds).then(|| {
        format!("A quick look: \"holds\" excludes only effects in {excluded} of runs or more.")
    })
}

/// The verdicts of several back ends: one row per policy, one column per back end with "isolation /
/// reallocation", and the published verdicts on both. `None` where there is one only.
///
/// No line is wider than `width`, nor than 120.
#[must_use]
pub fn beside_table_text(sides: &[Side], width: u16, colours: Colours) -> Option<String> {
    if sides.len() < 2 {
        return None;
    }
    let mut header = vec!["Policy".to_owned(), "Published".to_owned()];
    header.extend(sides.iter().map(|s| format!("{}\n{}", s.name, extent(s))));
    header.push("Scalability".to_owned());
    let mut table = ruled_table(header, width, UTF8_HORIZONTAL_ONLY);
    let verdicts = main_first(sides).flat_map(|side| &side.verdicts.policies);
    let mut known: Vec<&str> = Vec::new();
    for first in verdicts {
        if known.contains(&first.policy.as_str()) {
            continue;
        }
        known.push(&first.policy);
        let of_first = attributes(first);
        let mut row = vec![first.policy.clone(), published_pair(&of_first)];
        row.extend(sides.iter().map(|side| {
            let verdict = side.verdict(&first.policy);
            verdict.map_or_else(|| "–".to_owned(), verdict_pair)
        }));
        row.extend(scalability(&first.policy, sides).map(|text| text.word));
        table.add_row(row);
    }
    at_least(&mut table, 0, 11);
    at_least(&mut table, 2 + sides.len(), 13);
    let text = coloured(&text(&table), colours);
    Some(format!(
        "Isolation / reallocation; each back end is judged by its own runs\n{text}"
    ))
}

/// "2 × 40 s, 2 scenarios".
#[expect(clippy::cast_precision_loss, reason = "a time that is shown")]
fn extent(side: &Side) -> String {
    let scenarios = count(side.covered_scenarios().count() as u64, "scenario");
    match side.study.duration_ns {
        0 => format!("{} runs each, {scenarios}", side.study.repetitions),
        ns => {
            let duration = one_word(&time(ns as f64));
            let runs = format!("{}{NO_BREAK}×{NO_BREAK}{duration}", side.study.repetitions);
            format!("{runs}, {scenarios}")
        }
    }
}

/// "holds / broken", each with a sign where it is not what was published.
fn verdict_pair(verdict: &PolicyVerdict) -> String {
    if let Some(why) = &verdict.not_supported {
        return format!("not supported: {why}");
    }
    let [isolation, reallocation, _] = attributes(verdict);
    if verdict.not_run {
        return isolation.word;
    }
    [isolation, reallocation]
        .map(|text| match text.agrees {
            Some(false) => format!("{}{NO_BREAK}≠", marked(&text)),
            _ => marked(&text),
        })
        .join(" / ")
}

fn published_pair(attributes: &[AttributeText]) -> String {
    let published: Vec<&str> = attributes
        .iter()
        .take(2)
        .filter_map(|a| a.published.as_deref())
        .collect();
    if published.is_empty() {
        return "–".to_owned();
    }
    published.join(" / ")
}

/// A table without lines between rows.
pub(crate) fn plain_table(header: impl Into<Row>, width: u16) -> Table {
    let style = UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none());
    ruled_table(header, width, style)
}

fn ruled_table(header: impl Into<Row>, width: u16, style: TableStyle) -> Table {
    let mut table = Table::new();
    table
        .load_style(style)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width.clamp(NARROWEST, WIDEST))
        .set_header(header);
    table
}

/// Make a column at least so wide.
fn at_least(table: &mut Table, column: usize, width: u16) {
    if let Some(column) = table.column_mut(column) {
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width)));
    }
}

/// The lines of a table, without the padding of its last column and with plain spaces.
pub(crate) fn text(table: &Table) -> String {
    table
        .lines()
        .map(|line| line.trim_end().replace(NO_BREAK, " ") + "\n")
        .collect()
}

/// The word of an outcome between marks that take no room, so that a table's layout does not depend on colours.
fn marked(attribute: &AttributeText) -> String {
    marked_as(attribute.sign, &attribute.word)
}

/// The same of any word, by the outcome whose colour it has.
pub(crate) fn marked_as(sign_wanted: &str, word: &str) -> String {
    let word = one_word(word);
    let mut signs = MARKS.iter();
    match signs.find(|(sign, ..)| *sign == sign_wanted) {
        Some((_, mark, _)) => format!("{mark}{word}{END_MARK}"),
        None => word,
    }
}

/// `text` with its marks replaced by colours, or by nothing.
pub(crate) fn coloured(text: &str, colours: Colours) -> String {
    let escape = |code: &'static str| if colours == Colours::Ansi { code } else { "" };
    let ended = text.replace(END_MARK, escape("\u{1b}[0m"));
    MARKS.iter().fold(ended, |text, (_, mark, code)| {
        text.replace(*mark, escape(code))
    })
}

/// What applications got: one row per policy, scenario and source. `None` where there is no application, or there are
/// more rows than a summary has room for: the report shows them.
#[must_use]
pub fn application_table_text(summary: &Summary, width: u16) -> Option<String> {
    const COLUMNS: [(&str, ApplicationQuantity); 5] = [
        ("Goodput", ApplicationQuantity::Goodput),
        ("RTT", ApplicationQuantity::RttMean),
        ("Latency: 99 %", ApplicationQuantity::RequestLatencyP99),
        ("Flow time", ApplicationQuantity::CompletionTimeMean),
        ("Quality", ApplicationQuantity::QualityMean),
    ];
    let cells = summary.cells.iter();
    let rows: Vec<_> = cells
        .flat_map(|cell| cell.applications.iter().map(move |of| (cell, of)))
        .filter_map(|(cell, of)| Some((cell, of, of.source.as_ref()?)))
        .collect();
    if rows.is_empty() || rows.len() > MOST_APPLICATION_ROWS {
        return None;
    }
    let is_there = |(_, quantity): &&(_, ApplicationQuantity)| {
        rows.iter().any(|(_, of, _)| of.of(*quantity).is_some())
    };
    let columns: Vec<_> = COLUMNS.iter().filter(is_there).collect();
    let mut header = vec!["Policy", "Scenario", "Source"];
    header.extend(columns.iter().map(|(head, _)| head));
    let mut table = plain_table(header, width);
    at_least(&mut table, 3, 14);
    for (cell, of, source) in &rows {
        let mut row = vec![
            cell.policy.clone(),
            cell.scenario.clone(),
            (*source).clone(),
        ];
        row.extend(columns.iter().map(|(_, quantity)| {
            or_dash(of.of(*quantity), |estimate| {
                one_word(&quantity.text(estimate.mean))
            })
        }));
        table.add_row(row);
    }
    Some(text(&table))
}

/// Published figures beside ours, a row each. `None` where there are none, or more than a summary has room for: the report
/// shows them.
#[must_use]
pub fn published_table_text(
    published: &[PublishedComparison],
    width: u16,
    colours: Colours,
) -> Option<String> {
    if published.is_empty() || published.len() > MOST_PUBLISHED_ROWS {
        return None;
    }
    let mut table = plain_table(["Published", "Expected", "Ours", "Result"], width);
    for comparison in published {
        let figure = &comparison.figure;
        let sign = outcome_sign(comparison.outcome);
        table.add_row([
            figure.claim.clone(),
            expected(figure),
            ours(comparison),
            marked_as(sign, outcome_word(comparison.outcome)),
        ]);
    }
    Some(coloured(&text(&table), colours))
}

/// What populations got: one row per policy and scenario, the largest delay of each population beside
/// its proved bound. `None` for a study without any.
///
/// No line is wider than `width`, nor than 120.
#[must_use]
pub fn population_table_text(findings: &[PopulationFinding], width: u16) -> Option<String> {
    let mut slices: Vec<(usize, &str)> = Vec::new();
    for finding in findings {
        let slice = (finding.slice_index, finding.slice.as_str());
        if !slices.contains(&slice) {
            slices.push(slice);
        }
    }
    if slices.is_empty() {
        return None;
    }
    slices.sort_unstable();
    let timed = findings.iter().any(|finding| finding.ns_a_frame.is_some());
    let mut header = vec!["Policy".to_owned(), "Slices".to_owned()];
    header.extend(
        slices
            .iter()
            .map(|(_, name)| format!("Largest delay of {name}")),
    );
    header.extend(["Excess, turns apart".to_owned(), "State".to_owned()]);
    header.extend(timed.then(|| "Time per frame".to_owned()));
    let mut table = plain_table(header, width);
    let of_one_cell = |a: &PopulationFinding, b: &PopulationFinding| {
        (&a.policy, &a.scenario) == (&b.policy, &b.scenario)
    };
    let mut above = None;
    for cell in findings.chunk_by(of_one_cell) {
        let policy = cell.first().map(|finding| finding.policy.as_str());
        let name = policy.filter(|_| policy != above).unwrap_or_default();
        table.add_row(population_row(name, cell, &slices, timed));
        above = policy;
    }
    // Names stay whole, unless that leaves too little room for numbers.
    let longest = findings.iter().map(|f| f.policy.chars().count()).max();
    let room = u16::try_from(longest.unwrap_or(0).min(20)).unwrap_or(20) + 2;
    at_least(&mut table, 0, room);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    Some(text(&table))
}

/// The flows that sent most bytes, ten at most: one row per flow. `None` where nothing was captured.
///
/// No line is wider than `width`, nor than 120.
#[must_use]
pub fn flow_table_text(captured: &CapturedFindings, width: u16) -> Option<String> {
    let shown = captured
        .flows
        .get(..FLOWS_SHOWN.min(captured.flows.len()))?;
    if shown.is_empty() {
        return None;
    }
    let with_slice = !shown.iter().all(is_named_by_flow);
    let run_name: Option<fn(&RunKey) -> String> = (captured.run_count > 1)
        .then_some(|run| format!("{}, {}, {}", run.policy, run.scenario, run.repetition));
    let flows = flows::table(shown, &flows::IN_TERMINAL, run_name, with_slice);
    let mut table = plain_table(flows.head, width);
    let mut longest = Vec::new();
    for mut row in flows.rows {
        let numbers = row.iter_mut().skip(flows.names);
        numbers.for_each(|number| *number = one_word(number));
        let lengths = row
            .iter()
            .skip(flows.names)
            .map(|text| text.chars().count());
        longest.resize(row.len() - flows.names, 0);
        for (longest, length) in longest.iter_mut().zip(lengths) {
            *longest = length.max(*longest);
        }
        table.add_row(row);
    }
    keep_whole(&mut table, flows.names, &longest, width);
    for column in table.column_iter_mut().skip(flows.names) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = text(&table);
    if captured.flow_count > shown.len() as u64 {
        text.push_str(&format!(
            "The {} of {} flows that sent most bytes; the others are in data/flows.csv\n",
            shown.len(),
            captured.flow_count
        ));
    }
    Some(text)
}

/// Columns of numbers are as wide as the longest of each, where that leaves room for those of words.
fn keep_whole(table: &mut Table, first_number: usize, longest: &[usize], width: u16) {
    const PADDING: usize = 2;
    const WORDS: usize = 16;
    let numbers: usize = longest.iter().map(|longest| longest + PADDING).sum();
    if numbers + first_number * WORDS > usize::from(width) {
        return;
    }
    for (column, longest) in table.column_iter_mut().skip(first_number).zip(longest) {
        let room = u16::try_from(longest + PADDING).unwrap_or(u16::MAX);
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(room)));
    }
}

/// Where nobody named slices, a flow without tag is one: its name says nothing new.
fn is_named_by_flow(finding: &FlowFinding) -> bool {
    let FlowFinding { flow, .. } = finding;
    flow.slice.contains(&flow.flow.source) && flow.slice.contains(&flow.flow.destination)
}

fn population_row(
    policy: &str,
    cell: &[PopulationFinding],
    slices: &[(usize, &str)],
    timed: bool,
) -> Vec<String> {
    let first = cell.first();
    let mut row = vec![
        policy.to_owned(),
        or_dash(first, |f| one_word(&grouped(f.all_slices))),
    ];
    row.extend(slices.iter().map(|(slice, _)| {
        let mut populations = cell.iter();
        or_dash(populations.find(|f| f.slice_index == *slice), largest_delay)
    }));
    let apart = cell.iter().filter_map(PopulationFinding::turns_apart);
    row.push(or_dash(apart.reduce(f64::max), |turns| digits(turns, 2)));
    row.push(or_dash(first, |f| {
        one_word(&memory(f.state_bytes_in_all()))
    }));
    row.extend(timed.then(|| {
        let time = first.and_then(|f| f.ns_a_frame);
        or_dash(time, |ns| one_word(&time_a_frame(ns)))
    }));
    row
}

/// "24.73 µs ≤ 120 µs" where a bound is proved.
fn largest_delay(finding: &PopulationFinding) -> String {
    let largest = one_word(&time_or_dash(finding.delay_max_ns));
    match (finding.delay_max_ns, finding.delay_bound_ns) {
        (Some(measured), Some(bound)) => {
            let sign = if measured <= bound { '≤' } else { '>' };
            let bound = format!("{sign} {}", time_or_dash(Some(bound)));
            format!("{largest} {}", one_word(&bound))
        }
        _ => largest,
    }
}

/// On one line; thousands are set apart by a plain space, as a terminal may not know a narrow one.
pub(crate) fn one_word(number: &str) -> String {
    number.replace([' ', '\u{202f}'], &NO_BREAK.to_string())
}

fn row(verdict: &PolicyVerdict) -> Vec<Cell> {
    let attributes = attributes(verdict);
    let mut cells = vec![Cell::new(&verdict.policy)];
    cells.extend(attributes.iter().map(|attribute| {
        let deciding = unbroken::unbroken(&attribute.deciding);
        Cell::new(format!("{}\n{deciding}", marked(attribute)))
    }));
    cells.push(Cell::new(published(&attributes)));
    cells
}

/// The published verdicts in the order of the columns, and which of them ours differ from.
fn published(attributes: &[AttributeText]) -> String {
    let published: Vec<&str> = attributes
        .iter()
        .filter_map(|a| a.published.as_deref())
        .collect();
    if published.is_empty() {
        return "–".to_owned();
    }
    let differing: Vec<&str> = attributes
        .iter()
        .filter(|a| a.agrees == Some(false))
        .map(|a| a.key)
        .collect();
    let compared = attributes.iter().any(|a| a.agrees.is_some());
    let verdict = match differing.as_slice() {
        [] if compared => "= agrees".to_owned(),
        [] => "not comparable".to_owned(),
        keys => format!("≠ differs: {}", keys.join(", ")),
    };
    format!("{}\n{verdict}", published.join(" / "))
}

/// Each outcome's mark, a character without width (invisible operators of Unicode), and its bold colour.
const MARKS: [(&str, char, &str); 4] = [
    ("holds", '\u{2061}', "\u{1b}[1;32m"),
    ("broken", '\u{2062}', "\u{1b}[1;31m"),
    ("partial", '\u{2063}', "\u{1b}[1;33m"),
    ("inconclusive", '\u{2064}', "\u{1b}[1;33m"),
];
const END_MARK: char = '\u{2060}';
const NO_BREAK: char = '\u{a0}';
/// Flows that a terminal shows.
const FLOWS_SHOWN: usize = 10;
const NARROWEST: u16 = 80;
const WIDEST: u16 = 120;
/// More published figures than this are no summary.
const MOST_PUBLISHED_ROWS: usize = 60;
/// More rows than this are no summary.
const MOST_APPLICATION_ROWS: usize = 16;
