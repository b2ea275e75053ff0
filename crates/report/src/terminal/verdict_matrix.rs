//! Verdicts as a matrix: a line for each policy.

use super::{
    Colours, MARKS, PADDING, WIDEST, coloured, marked_as, one_word, plain_table, text, wrapped,
};
use crate::answer::answer;
use crate::matrix::{Cell, Matrix};
use comfy_table::Table;
use slicewise_stats::description::StudyDescription;
use slicewise_stats::verdict::VerdictTable;

/// `verdicts` as a matrix with one line per policy and a sign and one number per cell, what the signs mean, and a
/// sentence that answers the study's question.
///
/// The table is no wider than `width` columns, nor than 120; properties for which there is no room are named below it.
/// `None` where nothing was judged.
#[must_use]
pub fn verdict_matrix_text(
    study: &StudyDescription,
    verdicts: &VerdictTable,
    width: u16,
    colours: Colours,
) -> Option<String> {
    if !verdicts.says_something() {
        return None;
    }
    let matrix = Matrix::of(verdicts);
    let properties = properties_that_fit(&matrix, width);
    let mut lines = coloured(&text(table(&matrix, properties, width)), colours);
    let mut say = |line: &str| {
        lines.push_str(&wrapped(line, width.into()));
        lines.push('\n');
    };
    say(&legend(&matrix, properties));
    let left = matrix.head.iter().skip(properties);
    let left: Vec<&str> = left.map(|head| head.name.as_str()).collect();
    if !left.is_empty() {
        say(&format!("Not shown: {} (see the report).", left.join(", ")));
    }
    for verdict in &verdicts.policies {
        if let Some(others) = &verdict.not_judged {
            say(&format!("{}: not judged: {others}", verdict.policy));
        }
    }
    let answer = wrapped(&answer(study, verdicts, &matrix), width.into());
    Some(format!("{lines}\n{answer}"))
}

/// The first so many properties of all policies.
fn table(matrix: &Matrix, properties: usize, width: u16) -> Table {
    let head = matrix.head.iter().take(properties).map(|head| {
        let lines = [&head.name, &head.limit].map(|line| one_word(line));
        lines.join("\n").trim_end().to_owned()
    });
    let mut table = plain_table(std::iter::once("policy".to_owned()).chain(head), width);
    for row in &matrix.rows {
        let cells = row.cells.iter().take(properties).map(cell_text);
        table.add_row(std::iter::once(row.policy.clone()).chain(cells));
    }
    table
}

/// How many properties there is room for without a line broken: two at least.
fn properties_that_fit(matrix: &Matrix, width: u16) -> usize {
    let widths = table(matrix, matrix.head.len(), width).column_max_content_widths();
    let mut used = 0;
    let fitting = widths.iter().take_while(|column| {
        used += **column + PADDING;
        used <= width.min(WIDEST)
    });
    fitting.count().saturating_sub(1).max(2)
}

/// "✗ 17.1 % lost", and whether it is what was published.
pub(super) fn cell_text(cell: &Cell) -> String {
    let sign = sign(cell).map_or_else(String::new, |(sign, _)| format!("{sign} "));
    let differs = if differs(cell) { " ≠" } else { "" };
    marked_as(cell.sign, &format!("{sign}{}{differs}", cell.number))
}

/// The sign of a cell that has a number, and its meaning.
fn sign(cell: &Cell) -> Option<(char, &str)> {
    let (_, sign, ..) = MARKS.iter().find(|(name, ..)| *name == cell.sign)?;
    (cell.number != cell.word).then_some((*sign, cell.word.as_str()))
}

const fn differs(cell: &Cell) -> bool {
    matches!(cell.published, Some((_, Some(false))))
}

/// Legend of the signs in the first so many columns.
fn legend(matrix: &Matrix, properties: usize) -> String {
    let rows = matrix.rows.iter();
    let cells: Vec<&Cell> = rows
        .flat_map(|row| row.cells.iter().take(properties))
        .collect();
    let signs = MARKS.iter().filter_map(|(name, ..)| {
        let mut of_sign = cells.iter().filter(|cell| cell.sign == *name);
        let (sign, word) = of_sign.find_map(|cell| sign(cell))?;
        Some(format!("{sign} {word}"))
    });
    let differing = cells.iter().any(|cell| differs(cell));
    let differing = differing.then(|| "≠ not as published".to_owned());
    signs.chain(differing).collect::<Vec<_>>().join("  ")
}
