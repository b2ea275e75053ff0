//! Verdicts, and what slices by the thousand got, as plain text for a terminal.

mod listing;
mod series;
mod verdict_matrix;

pub use listing::{Column, Listing, wrapped};
pub use series::{case_table_text, measured_table_text, sweep_table_text};
pub use verdict_matrix::verdict_matrix_text;

use crate::attribute::{AttributeText, attributes};
use crate::captured::{CapturedFindings, FlowFinding};
use crate::flows;
use crate::populations::{PopulationFinding, grouped, memory, time_a_frame};
use crate::published::{
    ORDER_OF_MAGNITUDE, basis_word, expected, ours, outcome_sign, outcome_word,
};
use crate::side::{Side, main_first, scalability};
use crate::text_table::{or_dash, time_or_dash};
use crate::unbroken;
use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Row, Table, TableStyle,
    Width,
};
use slicewise_stats::description::StudyDescription;
use slicewise_stats::published::PublishedComparison;
use slicewise_stats::quantity::Quantity;
use slicewise_stats::record::RunKey;
use slicewise_stats::summary::Summary;
use slicewise_stats::verdict::{Outcome, PolicyVerdict, VerdictTable};
use slicewise_stats::words::{count, digits, percent, time};

/// Colouring of outcomes.
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
    let mut header = vec![
        "Policy",
        "Performance isolation",
        "Resource reallocation",
        "Scalability",
    ];
    let mut policies = verdicts.policies.iter();
    let has_published = policies.any(|policy| policy.published.is_some());
    header.extend(has_published.then_some("Published"));
    let mut table = plain_table(header, width);
    for verdict in &verdicts.policies {
        table.add_row(row(verdict, has_published, width));
    }
    Some(coloured(&text(table), colours))
}

/// Explains the meaning of "holds" after a first look, whose repetitions exclude little; `None` where it was none, or
/// nothing holds.
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

/// The assumptions that verdicts depend on (`rests_on`), one line for each policy that states some.
pub fn rests_on(study: &StudyDescription) -> impl Iterator<Item = String> {
    let policies = study
        .policies
        .iter()
        .filter(|policy| !policy.rests_on.is_empty());
    policies.map(|policy| format!("{} rests on {}", policy.name, policy.rests_on.join("; ")))
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
    let mut table = plain_table(header, width);
    let verdicts = main_first(sides).flat_map(|side| &side.verdicts.policies);
    let mut known: Vec<&str> = Vec::new();
    for first in verdicts {
        if known.contains(&first.policy.as_str()) {
            continue;
        }
        known.push(&first.policy);
        let of_first = attributes(first);
        let mut row = vec![folded(&first.policy, width), published_pair(&of_first)];
        row.extend(sides.iter().map(|side| {
            let verdict = side.verdict(&first.policy);
            verdict.map_or_else(|| "–".to_owned(), verdict_pair)
        }));
        row.extend(scalability(&first.policy, sides).map(|text| text.word));
        table.add_row(row);
    }
    let text = coloured(&text(table), colours);
    Some(format!(
        "Isolation / reallocation; each back end is judged by its own runs\n{text}"
    ))
}

/// "2 × 40 s, 2 scenarios".
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

/// A rule below the head; [`lines_of`] adds those above and below the table.
const RULES: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('═'));

/// A table no wider than `width` and [`WIDEST`]: cells are broken into lines.
pub(crate) fn plain_table(header: impl Into<Row>, width: u16) -> Table {
    let mut table = Table::new();
    table
        .load_style(RULES)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width.min(WIDEST))
        .set_header(header);
    table
}

/// Align columns of numbers on the right.
pub(crate) fn align_numbers(table: &mut Table, columns: impl std::ops::RangeBounds<usize>) {
    let indexed = table.column_iter_mut().enumerate();
    for (_, column) in indexed.filter(|(index, _)| columns.contains(index)) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// The lines of a table, without the padding of its last column and with plain spaces. Words are not broken: where that
/// takes more than the table's width, each row becomes a table of its own.
pub(crate) fn text(mut table: Table) -> String {
    let width = table.width().unwrap_or(WIDEST);
    for column in 0..table.column_iter().count() {
        keep_words(&mut table, column);
    }
    match rule_of(&table).chars().count() <= usize::from(width) {
        true => lines_of(&table),
        false => row_by_row(&table, width),
    }
}

/// Each row as a table with a line for each column that is not empty.
fn row_by_row(table: &Table, width: u16) -> String {
    let cells = |row: &Row| -> Vec<String> { row.cell_iter().map(Cell::content).collect() };
    let in_one_line = |head: String| head.replace("-\n", "").replace('\n', " ");
    let header = table.header().map(cells).unwrap_or_default();
    let (mut text, mut name, mut rule) = (String::new(), String::new(), String::new());
    for row in table.row_iter().map(cells) {
        let mut columns = header.iter().cloned().map(in_one_line).zip(row);
        let (head, first) = columns.next().unwrap_or_default();
        // It is left out where it is that of the row above.
        if !first.is_empty() {
            name = first;
        }
        let mut table = plain_table([head, name.replace("-\n", "-")], width);
        for (head, cell) in columns.filter(|(_, cell)| !cell.is_empty()) {
            table.add_row([head, cell]);
        }
        fill_width(&mut table, width);
        // The rule below a row is that above the next one.
        let lines = lines_of(&table);
        let (above, below) = lines.trim_end().rsplit_once('\n').unwrap_or_default();
        text = text + above + "\n";
        below.clone_into(&mut rule);
    }
    text + &rule + "\n"
}

/// Make a column as wide as its longest word.
fn keep_words(table: &mut Table, column: usize) {
    let width = Width::Fixed(longest_word(table, column));
    if let Some(column) = table.column_mut(column) {
        column.set_constraint(ColumnConstraint::LowerBoundary(width));
    }
}

/// How wide a column has to be for its longest word.
fn longest_word(table: &Table, column: usize) -> u16 {
    let cells = table.column_cells_with_header_iter(column).flatten();
    let words = cells.flat_map(|cell| {
        let content = cell.content();
        let words = content.split([' ', '\n']);
        words
            .map(|word| word.chars().filter(|c| !is_mark(*c)).count())
            .max()
    });
    let longest = u16::try_from(words.max().unwrap_or(0));
    longest.unwrap_or(u16::MAX).saturating_add(PADDING)
}

/// Of two columns, make the second one as wide as there is room beside the first one, whose texts may take two lines.
fn fill_width(table: &mut Table, width: u16) {
    let texts = table.column_max_content_widths().first().copied();
    let texts = texts.unwrap_or_default().saturating_add(PADDING);
    let first = match texts <= width / 3 {
        true => texts,
        false => longest_word(table, 0),
    };
    let second = width.saturating_sub(first).max(PADDING + 1);
    for (column, room) in table.column_iter_mut().zip([first, second]) {
        column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(room)));
    }
}

/// A name in lines that end at its hyphens, unless the terminal is wide.
pub(crate) fn folded(name: &str, width: u16) -> String {
    const LONGEST: usize = 11;
    if width >= WIDEST {
        return name.to_owned();
    }
    let mut lines = vec![String::new()];
    for part in name.split_inclusive('-') {
        match lines.last_mut() {
            Some(line)
                if line.is_empty() || line.chars().count() + part.chars().count() <= LONGEST =>
            {
                line.push_str(part)
            }
            _ => lines.push(part.to_owned()),
        }
    }
    lines.join("\n")
}

fn lines_of(table: &Table) -> String {
    let rule = rule_of(table);
    let lines = table
        .lines()
        .map(|line| line.trim_end().replace(NO_BREAK, " "));
    let lines = std::iter::once(rule.clone()).chain(lines).chain([rule]);
    lines.map(|line| line + "\n").collect()
}

/// A rule as wide as the table.
fn rule_of(table: &Table) -> String {
    let mut lines = table.lines();
    let rule = lines.find(|line| line.starts_with('═'));
    rule.unwrap_or_default().replace('═', "─")
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
        Some((_, _, mark, _)) => format!("{mark}{word}{END_MARK}"),
        None => word,
    }
}

/// `text` with its marks replaced by colours, or by nothing.
#[must_use]
pub fn coloured(text: &str, colours: Colours) -> String {
    let escape = |code: &'static str| if colours == Colours::Ansi { code } else { "" };
    let ended = text.replace(END_MARK, escape("\u{1b}[0m"));
    MARKS.iter().fold(ended, |text, (_, _, mark, code)| {
        text.replace(*mark, escape(code))
    })
}

/// Table of the results of applications: one row per policy, scenario and source. `None` where there is no application,
/// or there are more rows than a summary has room for: the report shows them.
#[must_use]
pub fn application_table_text(summary: &Summary, width: u16) -> Option<String> {
    const COLUMNS: [(&str, Quantity); 5] = [
        ("Goodput", Quantity::Goodput),
        ("RTT", Quantity::RttMean),
        ("Latency: 99 %", Quantity::RequestLatencyP99),
        ("Flow time", Quantity::CompletionTimeMean),
        ("Quality", Quantity::QualityMean),
    ];
    let cells = summary.cells.iter();
    let rows: Vec<_> = cells
        .flat_map(|cell| cell.applications.iter().map(move |of| (cell, of)))
        .filter_map(|(cell, of)| Some((cell, of, of.source.as_ref()?)))
        .collect();
    if rows.is_empty() || rows.len() > MOST_APPLICATION_ROWS {
        return None;
    }
    let is_there = |(_, quantity): &&(_, Quantity)| {
        rows.iter()
            .any(|(_, of, _)| of.estimates.of(*quantity).is_some())
    };
    let columns: Vec<_> = COLUMNS.iter().filter(is_there).collect();
    let mut header = vec!["Policy", "Scenario", "Source"];
    header.extend(columns.iter().map(|(head, _)| head));
    let mut table = plain_table(header, width);
    for (cell, of, source) in &rows {
        let mut row = vec![
            cell.policy.clone(),
            cell.scenario.clone(),
            (*source).clone(),
        ];
        row.extend(columns.iter().map(|(_, quantity)| {
            or_dash(of.estimates.of(*quantity), |estimate| {
                one_word(&quantity.unit().text(estimate.mean, 4))
            })
        }));
        table.add_row(row);
    }
    align_numbers(&mut table, 3..);
    Some(text(table))
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
    let mut table = plain_table(["Published", "Expected", "Ours", "Basis", "Result"], width);
    for comparison in published {
        let figure = &comparison.figure;
        let sign = outcome_sign(comparison.outcome);
        let result = marked_as(sign, outcome_word(comparison.outcome));
        table.add_row([
            figure.claim.clone(),
            expected(figure),
            ours(comparison),
            basis_word(figure.basis).to_owned(),
            match figure.is_order_of_magnitude() {
                true => format!("{result}, {ORDER_OF_MAGNITUDE}"),
                false => result,
            },
        ]);
    }
    Some(coloured(&text(table), colours))
}

/// Table of the results of populations: one row per policy and scenario, the largest delay of each population beside
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
    align_numbers(&mut table, 1..);
    Some(text(table))
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
    let with_slice = !shown.iter().all(FlowFinding::names_its_slice);
    let run_name: Option<fn(&RunKey) -> String> = (captured.run_count > 1)
        .then_some(|run| format!("{}, {}, {}", run.policy, run.scenario, run.repetition));
    let flows = flows::table(shown, &flows::IN_TERMINAL, run_name, with_slice);
    let mut table = plain_table(flows.head, width);
    for mut row in flows.rows {
        let numbers = row.iter_mut().skip(flows.names);
        numbers.for_each(|number| *number = one_word(number));
        table.add_row(row);
    }
    align_numbers(&mut table, flows.names..);
    let mut text = text(table);
    if captured.flow_count > shown.len() as u64 {
        text.push_str(&format!(
            "The {} of {} flows that sent most bytes; the others are in data/flows.csv\n",
            shown.len(),
            captured.flow_count
        ));
    }
    Some(text)
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

fn row(verdict: &PolicyVerdict, has_published: bool, width: u16) -> Vec<Cell> {
    let attributes = attributes(verdict);
    let mut cells = vec![Cell::new(folded(&verdict.policy, width))];
    cells.extend(attributes.iter().map(|attribute| {
        let deciding = unbroken::unbroken(&attribute.deciding);
        Cell::new(format!("{}\n{deciding}", marked(attribute)))
    }));
    cells.extend(has_published.then(|| Cell::new(published(&attributes))));
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

/// Each outcome's sign in a matrix, its mark, a character without width (invisible operators of Unicode), and its bold colour.
const MARKS: [(&str, char, char, &str); 4] = [
    ("holds", '✓', '\u{2061}', "\u{1b}[1;32m"),
    ("broken", '✗', '\u{2062}', "\u{1b}[1;31m"),
    ("partial", '~', '\u{2063}', "\u{1b}[1;33m"),
    ("inconclusive", '?', '\u{2064}', "\u{1b}[1;33m"),
];
const END_MARK: char = '\u{2060}';

fn is_mark(c: char) -> bool {
    c == END_MARK || MARKS.iter().any(|(_, _, mark, _)| *mark == c)
}

const NO_BREAK: char = '\u{a0}';
/// Flows that a terminal shows.
const FLOWS_SHOWN: usize = 10;
const WIDEST: u16 = 120;
/// Of a cell, on both sides together.
const PADDING: u16 = 2;
/// More published figures than this are no summary.
const MOST_PUBLISHED_ROWS: usize = 60;
/// More rows than this are no summary.
const MOST_APPLICATION_ROWS: usize = 16;
