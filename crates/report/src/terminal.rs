//! The verdict table as plain text, for a terminal.

use crate::attribute::{AttributeText, attributes};
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Cell, ColumnConstraint, ContentArrangement, Table, Width};
use slicewise_stats::verdict::{PolicyVerdict, VerdictTable};

/// `verdicts` as a table: one row a policy, each verdict with the number that decided it, and what
/// was published beside it.
///
/// `width` is the terminal's, in columns; no line is wider than that, nor than 120.
#[must_use]
pub fn verdict_table_text(verdicts: &VerdictTable, width: u16) -> String {
    let mut table = Table::new();
    table
        .load_style(UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width.clamp(NARROWEST, WIDEST))
        .set_header([
            "Policy",
            "Performance isolation",
            "Resource reallocation",
            "Scalability",
            "Published",
        ]);
    for verdict in &verdicts.policies {
        table.add_row(row(verdict));
    }
    if let Some(policy) = table.column_mut(0) {
        policy.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(11)));
    }
    if let Some(published) = table.column_mut(4) {
        published.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(20)));
    }
    // The table pads its last column, and spaces that must not break have done their work.
    table
        .lines()
        .map(|line| line.trim_end().replace(NO_BREAK, " ") + "\n")
        .collect()
}

fn row(verdict: &PolicyVerdict) -> Vec<Cell> {
    let attributes = attributes(verdict);
    let mut cells = vec![Cell::new(&verdict.policy)];
    cells.extend(attributes.iter().map(|attribute| {
        let deciding = attribute
            .deciding
            .replace(" %", "\u{a0}%")
            .replace(" points", "\u{a0}points");
        Cell::new(format!("{}\n{deciding}", attribute.word))
    }));
    cells.push(Cell::new(published(&attributes)));
    cells
}

/// The published verdicts in the order of the columns, and which of them ours differ from.
fn published(attributes: &[AttributeText]) -> String {
    let said: Vec<&str> = attributes
        .iter()
        .filter_map(|a| a.published.as_deref())
        .collect();
    if said.is_empty() {
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
    format!("{}\n{verdict}", said.join(" / "))
}

const NO_BREAK: char = '\u{a0}';
const NARROWEST: u16 = 80;
const WIDEST: u16 = 120;
