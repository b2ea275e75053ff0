//! `slicewise report`: the report again, from a results folder alone.

use crate::Failure;
use crate::arguments::ReportOptions;
use crate::exit::Exit;
use crate::results::results_failure;
use console::Term;
use slicewise_report::captured::{CapturedFindings, warnings};
use slicewise_report::layout::ResultsFolder;
use slicewise_report::terminal;
use slicewise_stats::published::{PublishedComparison, PublishedOutcome};

pub fn report(options: &ReportOptions) -> Result<Exit, Failure> {
    let folder = ResultsFolder::open(&options.results).map_err(results_failure)?;
    write_report(&folder)?;
    Ok(Exit::Success)
}

/// Judge what is in the folder, write the report, and print the verdicts.
pub fn write_report(folder: &ResultsFolder) -> Result<(), Failure> {
    let report = slicewise_report::write(folder).map_err(|error| {
        if error.is_users_mistake() {
            Failure::mistake(error)
        } else {
            Failure::system(error)
        }
    })?;
    for damaged in &report.damaged_runs {
        eprintln!("warning: left out: {damaged}");
    }
    if report.finished_runs < report.expected_runs {
        eprintln!(
            "note: made from {} of {} runs: verdicts that need the others say so",
            report.finished_runs, report.expected_runs
        );
    }
    println!(
        "{}",
        terminal::verdict_table_text(&report.verdicts, columns())
    );
    if let Some(table) = terminal::population_table_text(&report.populations, columns()) {
        println!("{table}");
    }
    if let Some(table) = terminal::flow_table_text(&report.captured, columns()) {
        println!("{table}");
    }
    for (run, warning) in captured_warnings(&report.captured) {
        eprintln!("note: {run}{warning}");
    }
    if let Some(line) = published_line(&report.published) {
        println!("{line}");
    }
    println!("Report: {}", report.html.display());
    Ok(())
}

/// Width of the terminal; where the output goes to a file, as wide as a table gets.
fn columns() -> u16 {
    Term::stdout()
        .size_checked()
        .map_or(u16::MAX, |(_, columns)| columns)
}

/// How many published figures ours agree with; `None` where the study has none.
fn published_line(published: &[PublishedComparison]) -> Option<String> {
    let count = |outcome| published.iter().filter(|p| p.outcome == outcome).count();
    let (agree, differ, missing) = (
        count(PublishedOutcome::Agrees),
        count(PublishedOutcome::Differs),
        count(PublishedOutcome::NotMeasured),
    );
    (!published.is_empty()).then(|| {
        format!(
            "Published figures: {agree} agree, {differ} differ, {missing} not measured in these \
             runs; each is in the report"
        )
    })
}

/// Runs whose warnings are printed; those of the others are in the report.
const RUNS_WARNED: usize = 5;

/// What whoever reads figures from captures has to know, each with its run where there are several.
fn captured_warnings(captured: &CapturedFindings) -> Vec<(String, String)> {
    let mut told = Vec::new();
    for run in captured.runs.iter().take(RUNS_WARNED) {
        let key = &run.run;
        let name = match captured.run_count {
            1 => String::new(),
            _ => format!(
                "{} / {} / {:03}: ",
                key.policy, key.scenario, key.repetition
            ),
        };
        told.extend(
            warnings(&run.capture)
                .into_iter()
                .map(|text| (name.clone(), text)),
        );
    }
    told
}
