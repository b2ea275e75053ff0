//! `slicewise compare`: did anything get worse from one results folder to another?

use crate::Failure;
use crate::arguments::{CompareFailOn, CompareOptions};
use crate::errln;
use crate::exit::Exit;
use crate::output::{self, colours, columns};
use serde::Serialize;
use slicewise_report::comparison::{FolderComparison, compare_folders, headline, table};
use slicewise_stats::verdict::comparison::Change;

/// The version of [`Document`]: it changes where a key changes its meaning or goes.
const SCHEMA_VERSION: u32 = 2;

/// Document that `--json` prints: docs/compare.md describes it.
#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    summary: Summary,
    #[serde(flatten)]
    comparison: &'a FolderComparison,
}

#[derive(Serialize)]
struct Summary {
    figures: usize,
    worse: usize,
    better: usize,
    same: usize,
    not_worse: usize,
    inconclusive: usize,
}

pub fn compare(options: &CompareOptions) -> Result<Exit, Failure> {
    let comparison = compare_folders(&options.a, &options.b).map_err(|error| {
        if error.is_users_mistake() {
            Failure::mistake(error)
        } else {
            Failure::system(error)
        }
    })?;
    for (side, folder) in [("A", &comparison.a), ("B", &comparison.b)] {
        for damaged in &folder.damaged_runs {
            errln!("warning: {side}: left out: {damaged}");
        }
    }
    if comparison.margins_differ {
        errln!("note: the margins of A and B differ; both are judged by those of A");
    }
    if comparison.a.study != comparison.b.study {
        errln!(
            "note: A is of study `{}`, B of study `{}`: what has the same name in both is compared",
            comparison.a.study,
            comparison.b.study
        );
    }
    if options.json {
        output::json(&document(&comparison)?);
    } else {
        let table = table(&comparison, options.all, columns(), colours());
        output::coloured_line(table.trim_end());
    }
    Ok(options
        .fail_on
        .map_or(Exit::Success, |fail_on| gate(&comparison, fail_on)))
}

fn document(comparison: &FolderComparison) -> Result<serde_json::Value, Failure> {
    let results = &comparison.results;
    let document = Document {
        schema_version: SCHEMA_VERSION,
        summary: Summary {
            figures: results.figures.len(),
            worse: results.count(Change::Worse),
            better: results.count(Change::Better),
            same: results.count(Change::Same),
            not_worse: results.count(Change::NotWorse),
            inconclusive: results.count(Change::Inconclusive),
        },
        comparison,
    };
    serde_json::to_value(&document)
        .map_err(|error| Failure::system(format!("cannot write the comparison as JSON: {error}")))
}

/// [`Exit::Verdict`] where something is what `fail_on` names, which is printed on standard error.
fn gate(comparison: &FolderComparison, fail_on: CompareFailOn) -> Exit {
    let results = &comparison.results;
    let fails = |change| {
        change == Change::Worse
            || (change == Change::Inconclusive && fail_on == CompareFailOn::Inconclusive)
    };
    let mut failed: Vec<String> = Vec::new();
    if results.figures.iter().any(|figure| fails(figure.outcome)) {
        failed.push(headline(results));
    }
    failed.extend(
        (results.verdicts.iter())
            .filter(|verdict| fails(verdict.change))
            .map(|verdict| {
                let (policy, attribute) = (&verdict.policy, verdict.attribute);
                format!("{policy}: {attribute} {} → {}", verdict.a, verdict.b)
            }),
    );
    if fail_on == CompareFailOn::Inconclusive {
        let missing = (results.only_in_a.iter()).map(|place| format!("{place}: only in A"));
        failed.extend(missing);
        let skipped = results.not_compared.iter();
        failed.extend(skipped.map(|s| format!("{}: not compared: {}", s.place, s.why)));
    }
    for reason in &failed {
        errln!("failed: {reason}");
    }
    if failed.is_empty() {
        Exit::Success
    } else {
        Exit::Verdict
    }
}
