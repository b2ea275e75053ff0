//! Verdicts under several seeds, for a terminal and as a table.

use crate::data::{DataFolder, SeedVerdicts, write_seed_verdicts};
use crate::error::ReportError;
use crate::terminal::{align_numbers, folded, plain_table, text};
use comfy_table::ColumnConstraint;
use slicewise_stats::description::StudyDescription;
use slicewise_stats::seeds::{Attribute, SeedRow, SeedTable};
use slicewise_stats::verdict::Outcome;
use slicewise_stats::words::count;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The table as CSV, in its folder.
pub const CSV: &str = "seed_verdicts.csv";
/// The same as Parquet.
pub const PARQUET: &str = "seed_verdicts.parquet";
/// Seeds that are named where verdicts contradict.
const SEEDS_NAMED: usize = 5;

/// Returns true if a file at `path`, which has one of these names, is such a table: with the columns that this program
/// writes, or Parquet.
#[must_use]
pub fn is_seed_table(path: &Path) -> bool {
    let header = SeedVerdicts::SCHEMA.header();
    let magic = match path.extension() {
        Some(extension) if extension == "csv" => header.as_bytes(),
        _ => b"PAR1",
    };
    if !path.symlink_metadata().is_ok_and(|found| found.is_file()) {
        return false;
    }
    let mut head = vec![0; magic.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == magic
}

/// One row a policy and attribute: under how many seeds each verdict came out, and under how many it is the
/// published one; then what to conclude.
///
/// No line of the table is wider than `width`, nor than 120.
#[must_use]
pub fn seed_table_text(seeds: &SeedTable, width: u16) -> String {
    let header = "Policy | Attribute | Holds | Partial | Broken | Incon-\nclusive | Published,\nours the same";
    let mut table = plain_table(header.split(" | "), width);
    let mut above = None;
    for row in &seeds.rows {
        let name = Some(row.policy.as_str()).filter(|policy| above != Some(*policy));
        table.add_row([
            folded(name.unwrap_or_default(), width),
            row.attribute.to_string(),
            tally(row, Outcome::Holds),
            match row.attribute {
                Attribute::Isolation => String::new(),
                Attribute::Reallocation => tally(row, Outcome::Partial),
            },
            tally(row, Outcome::Broken),
            match row.seeds_with(Outcome::NotTested).count() {
                0 => tally(row, Outcome::Inconclusive),
                _ => "not\ntested".to_owned(),
            },
            published(row),
        ]);
        above = Some(&row.policy);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    align_numbers(&mut table, 2..6);
    let mut printed = text(table);
    for line in conclusions(seeds) {
        printed.push_str(&line);
        printed.push('\n');
    }
    printed
}

/// Under how many seeds; a dash for none.
fn tally(row: &SeedRow, outcome: Outcome) -> String {
    match row.seeds_with(outcome).count() {
        0 => "–".to_owned(),
        seeds => seeds.to_string(),
    }
}

/// Describes the published verdict, and under how many seeds ours is the same.
fn published(row: &SeedRow) -> String {
    let said = match row.published {
        Some(true) => "yes",
        Some(false) => "no",
        None => return "–".to_owned(),
    };
    format!("{said}, {} of {}", row.agreeing(), row.verdicts.len())
}

fn conclusions(seeds: &SeedTable) -> Vec<String> {
    let mut lines: Vec<String> = seeds
        .rows
        .iter()
        .filter(|row| row.is_contradictory())
        .map(contradiction)
        .collect();
    if lines.is_empty() {
        lines.push("No verdict holds under one seed and is broken under another".to_owned());
    }
    let compared: Vec<&SeedRow> = seeds
        .rows
        .iter()
        .filter(|row| row.published.is_some())
        .collect();
    if !compared.is_empty() {
        let agreeing: usize = compared.iter().map(|row| row.agreeing()).sum();
        let all = seeds.seeds();
        let agrees = |row: &&SeedRow, seed: &u64| {
            row.verdicts
                .get(seed)
                .is_some_and(|v| v.agrees == Some(true))
        };
        let whole = all
            .iter()
            .filter(|seed| compared.iter().all(|row| agrees(row, seed)))
            .count();
        lines.push(format!(
            "Published verdicts: {agreeing} of {} agree; under {whole} of {} all {} do",
            compared.len() * all.len(),
            count(all.len() as u64, "seed"),
            compared.len(),
        ));
    }
    lines
}

/// Which seeds to look at.
fn contradiction(row: &SeedRow) -> String {
    let under = |outcome| {
        let seeds: Vec<String> = row
            .seeds_with(outcome)
            .map(|seed| seed.to_string())
            .collect();
        let named = seeds.get(..SEEDS_NAMED).unwrap_or(&seeds).join(", ");
        match seeds.len().saturating_sub(SEEDS_NAMED) {
            0 => named,
            more => format!("{named} and {more} more"),
        }
    };
    format!(
        "Contradiction: {} of `{}` holds under seed {} and is broken under {}",
        row.attribute,
        row.policy,
        under(Outcome::Holds),
        under(Outcome::Broken)
    )
}

/// Write `seed_verdicts.csv` and `.parquet` into `folder`: one row a policy, attribute and seed.
///
/// # Errors
/// Where it cannot be written.
pub fn write_seed_table(
    folder: &Path,
    study: &StudyDescription,
    seeds: &SeedTable,
) -> Result<(), ReportError> {
    write_seed_verdicts(&DataFolder::new(folder.to_owned(), study), seeds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use slicewise_stats::seeds::SeedVerdict;

    /// Verdicts under the seeds from 40 on.
    fn row(
        policy: &str,
        attribute: Attribute,
        published: Option<bool>,
        outcomes: &[Outcome],
    ) -> SeedRow {
        let verdict = |outcome: &Outcome| SeedVerdict {
            outcome: *outcome,
            agrees: match outcome {
                Outcome::Holds => published,
                Outcome::Broken => published.map(|yes| !yes),
                Outcome::Partial => published.map(|_| false),
                Outcome::Inconclusive | Outcome::NotTested => None,
            },
        };
        SeedRow {
            policy: policy.to_owned(),
            attribute,
            published,
            verdicts: (40..).zip(outcomes.iter().map(verdict)).collect(),
        }
    }

    #[test]
    fn says_how_often_each_verdict_came_out_and_which_contradict() {
        use Outcome::{Broken, Holds, Inconclusive, NotTested, Partial};
        let (isolation, reallocation) = (Attribute::Isolation, Attribute::Reallocation);
        let mut many = vec![Holds; 7];
        many.push(Broken);
        let table = SeedTable {
            rows: vec![
                row("priority", isolation, Some(true), &many),
                row("priority", reallocation, Some(true), &[Holds; 8]),
                row(
                    "wred-with-a-long-name",
                    isolation,
                    Some(false),
                    &[&[Inconclusive; 5][..], &[Broken; 3]].concat(),
                ),
                row(
                    "wred-with-a-long-name",
                    reallocation,
                    Some(false),
                    &[&[Partial; 2][..], &[Broken; 6]].concat(),
                ),
                row("ours", isolation, None, &[Holds; 8]),
                row("ours", reallocation, None, &[NotTested; 8]),
            ],
        };
        let printed = seed_table_text(&table, 80);
        assert!(
            printed
                .lines()
                .take(12)
                .all(|line| line.chars().count() <= 80)
        );
        insta::assert_snapshot!(printed, @"
        ───────────────────────────────────────────────────────────────────────────
         Policy       Attribute     Holds  Partial  Broken   Incon-  Published,
                                                            clusive  ours the same
        ═══════════════════════════════════════════════════════════════════════════
         priority     isolation         7                1        –  yes, 7 of 8
                      reallocation      8        –       –        –  yes, 8 of 8
         wred-with-   isolation         –                3        5  no, 3 of 8
         a-long-name
                      reallocation      –        2       6        –  no, 6 of 8
         ours         isolation         8                –        –  –
                      reallocation      –        –       –      not  –
                                                             tested
        ───────────────────────────────────────────────────────────────────────────
        Contradiction: isolation of `priority` holds under seed 40, 41, 42, 43, 44 and 2 more and is broken under 47
        Published verdicts: 24 of 32 agree; under 2 of 8 seeds all 4 do
        ");
    }

    #[test]
    fn says_that_nothing_contradicts_and_leaves_out_publications_where_there_are_none() {
        let rows = vec![row(
            "ours",
            Attribute::Isolation,
            None,
            &[Outcome::Holds, Outcome::Inconclusive],
        )];
        insta::assert_snapshot!(seed_table_text(&SeedTable { rows }, 80), @"
        ───────────────────────────────────────────────────────────────────
         Policy  Attribute  Holds  Partial  Broken   Incon-  Published,
                                                    clusive  ours the same
        ═══════════════════════════════════════════════════════════════════
         ours    isolation      1                –        1  –
        ───────────────────────────────────────────────────────────────────
        No verdict holds under one seed and is broken under another
        ");
    }
}
