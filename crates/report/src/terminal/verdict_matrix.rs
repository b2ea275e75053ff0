//! Verdicts as a matrix: a line for each policy.

use super::{Colours, PADDING, WIDEST, coloured, is_mark, marked_as, one_word, plain_table, text};
use crate::matrix::{self, Matrix};
use crate::page::wording::answer;
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
    let mut columns = vec![matrix_column(
        "policy",
        "",
        matrix.rows.iter().map(|row| row.policy.clone()),
    )];
    columns.extend(matrix.head.iter().enumerate().map(|(index, head)| {
        let cells = matrix.rows.iter().filter_map(|row| row.cells.get(index));
        matrix_column(&head.name, &head.limit, cells.map(cell_text))
    }));
    let shown = columns_that_fit(&columns, width);
    let mut table = plain_table(columns.iter().take(shown).map(|it| &it.head), width);
    for row in 0..matrix.rows.len() {
        let columns = columns.iter().take(shown);
        table.add_row(columns.filter_map(|column| column.cells.get(row)));
    }
    let mut lines = coloured(&text(table), colours);
    let legend = [
        ("✓", "holds"),
        ("✗", "broken"),
        ("~", "partial"),
        ("?", "undecided"),
        ("≠", "not as published"),
    ];
    let cells = || columns.iter().flat_map(|column| &column.cells);
    let used = legend
        .iter()
        .filter(|(sign, _)| cells().any(|cell| cell.contains(sign)));
    let used: Vec<String> = used.map(|(sign, word)| format!("{sign} {word}")).collect();
    lines.push_str(&format!("{}\n", used.join("  ")));
    let left: Vec<&str> = matrix
        .head
        .iter()
        .skip(shown - 1)
        .map(|head| head.name.as_str())
        .collect();
    if !left.is_empty() {
        lines.push_str(&format!(
            "Not shown: {} (see the report).\n",
            left.join(", ")
        ));
    }
    for verdict in &verdicts.policies {
        if let Some(others) = &verdict.not_judged {
            lines.push_str(&format!("{}: not judged: {others}\n", verdict.policy));
        }
    }
    Some(format!("{lines}\n{}", answer(study, verdicts, &matrix)))
}

/// A column of the matrix.
struct MatrixColumn {
    head: String,
    cells: Vec<String>,
}

impl MatrixColumn {
    fn width(&self) -> usize {
        let lines = self
            .cells
            .iter()
            .flat_map(|cell| cell.lines())
            .chain(self.head.lines());
        let widths = lines.map(|line| line.chars().filter(|c| !is_mark(*c)).count());
        widths.max().unwrap_or(0) + usize::from(PADDING)
    }
}

fn matrix_column(name: &str, limit: &str, cells: impl Iterator<Item = String>) -> MatrixColumn {
    let head = format!("{}\n{}", one_word(name), one_word(limit));
    MatrixColumn {
        head: head.trim_end().to_owned(),
        cells: cells.collect(),
    }
}

/// "✗ 17.1 % lost", and whether it is what was published.
fn cell_text(cell: &matrix::Cell) -> String {
    let sign = match cell.sign {
        _ if cell.number == cell.word => "",
        "holds" => "✓ ",
        "broken" => "✗ ",
        "partial" => "~ ",
        "inconclusive" => "? ",
        _ => "",
    };
    let differs = matches!(cell.published, Some((_, Some(false))));
    let number = format!("{sign}{}{}", cell.number, if differs { " ≠" } else { "" });
    marked_as(cell.sign, &number)
}

/// How many columns there is room for: the policy and two properties at least.
fn columns_that_fit(columns: &[MatrixColumn], width: u16) -> usize {
    let room = usize::from(width.min(WIDEST));
    let widths = columns.iter().scan(0, |used, column| {
        *used += column.width();
        Some(*used)
    });
    widths
        .take_while(|used| *used <= room)
        .count()
        .max(3)
        .min(columns.len())
}
