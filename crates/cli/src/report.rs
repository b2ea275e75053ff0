//! `slicewise report`: the report again, from a results folder alone.

use crate::Failure;
use crate::arguments::JudgementOptions;
use crate::exit::Exit;
use crate::judgement::{as_json, gate, selected};
use crate::output::{self, colours, columns};
use crate::{errln, noteln, outln};
use slicewise_report::captured::{CapturedFindings, warnings};
use slicewise_report::side::Side;
use slicewise_report::{Findings, ReportError, prediction, published_headline, terminal};
use slicewise_results::{ResultsError, ResultsFolder};
use slicewise_stats::backend::{BACK_ENDS, BackendInfo, BackendKind};
use std::path::{Path, PathBuf};

/// Judge what is in the folder and in those `beside` it, write the report, and print the verdicts.
/// [`Exit::Verdict`] where one of them is what `judgement` fails on: of `policies`, or of all where none is named.
pub fn write_report(
    folder: &ResultsFolder,
    beside: &[PathBuf],
    judgement: &JudgementOptions,
    policies: &[String],
) -> Result<Exit, Failure> {
    let report = slicewise_report::write_beside(folder, beside).map_err(|error| {
        // Verdicts need no room on a disk.
        if error.is_unwritten()
            && !judgement.json
            && let Ok(findings) = slicewise_report::judge(folder, beside)
        {
            print_tables(folder, &findings, judgement.explain);
        }
        report_failure(error, folder.path())
    })?;
    for damaged in &report.findings.main().damaged_runs {
        errln!("warning: left out: {damaged}");
    }
    if report.findings.main().finished_runs < report.findings.main().expected_runs {
        noteln!(
            "note: made from {} of {} runs: verdicts that need the others say so",
            report.findings.main().finished_runs,
            report.findings.main().expected_runs
        );
    }
    for (side, damaged) in left_out_beside(&report.findings.sides) {
        errln!("warning: {side}: left out: {damaged}");
    }
    for (run, warning) in captured_warnings(&report.findings.captured) {
        noteln!("note: {run}{warning}");
    }
    if judgement.json {
        output::json(&as_json(folder, &report.findings, policies)?);
    } else {
        print_tables(folder, &report.findings, judgement.explain);
        outln!("Report: {}", report.html.display());
    }
    Ok(judgement.fail_on.map_or(Exit::Success, |fail_on| {
        gate(&selected(&report.findings, policies), fail_on)
    }))
}

/// Why there is no report, and what became of the runs.
pub fn report_failure(error: ReportError, folder: &Path) -> Failure {
    match error {
        error if error.is_users_mistake() => Failure::mistake(error),
        error if error.is_unwritten() => Failure::system(format!(
            "{error}; all finished runs are on disk, and `slicewise report {}` makes the report once the folder can be \
             written",
            folder.display()
        )),
        error => Failure::system(error),
    }
}

/// Verdicts as a matrix, or each with what decided it.
pub fn verdicts_text(findings: &Findings, explain: bool) -> Option<String> {
    let side = findings.main();
    match explain {
        true => terminal::verdict_table_text(&side.verdicts, columns(), colours()),
        false => terminal::verdict_matrix_text(&side.study, &side.verdicts, columns(), colours()),
    }
}

fn print_tables(folder: &ResultsFolder, findings: &Findings, explain: bool) {
    if let Some(table) = verdicts_text(findings, explain) {
        output::coloured_line(&table);
        for note in terminal::rests_on(folder.study()) {
            outln!("{note}");
        }
        if let Some(note) = terminal::quick_note(folder.study(), &findings.main().verdicts) {
            outln!("{note}");
        }
    } else if findings.captured.run_count == 0
        && findings.populations.is_empty()
        && let Some(table) = terminal::measured_table_text(&[findings], columns(), colours())
    {
        output::coloured_line(&table);
    }
    if let Some(table) = terminal::beside_table_text(&findings.sides, columns(), colours()) {
        output::coloured_line(&table);
    }
    for line in findings.sides.iter().flat_map(prediction::findings) {
        outln!("{line}");
    }
    if let Some(line) = findings.link_losses.text() {
        outln!("{line}");
    }
    if let Some(line) = findings.changes.text() {
        outln!("{line}");
    }
    let summary = &findings.main().summary;
    if let Some(table) = terminal::application_table_text(summary, columns()) {
        outln!("{table}");
    }
    if let Some(table) = terminal::population_table_text(&findings.populations, columns()) {
        outln!("{table}");
    }
    // Flows are what one has captured; what a testbed of ours sent is known, and is there many times.
    if !folder.study().is_on_testbed()
        && let Some(table) = terminal::flow_table_text(&findings.captured, columns())
    {
        outln!("{table}");
    }
    if let Some(line) = published_headline(&findings.published) {
        outln!("{line}; each is in the report");
    }
}

/// Records of the folders beside that are no part of the report.
fn left_out_beside(sides: &[Side]) -> impl Iterator<Item = (&str, &str)> {
    let beside = sides.iter().filter(|side| !side.is_main);
    beside.flat_map(|side| {
        let damaged = side.damaged_runs.iter();
        damaged.map(|text| (side.name.as_str(), text.as_str()))
    })
}

/// Returns the results beside a report that `slicewise run` makes in `path`: the [`siblings`], where results go to the
/// folder they go to by default.
pub fn beside_default(out: Option<&Path>, path: &Path) -> Vec<PathBuf> {
    match out {
        Some(_) => Vec::new(),
        None => siblings(path),
    }
}

/// The other results of the study beside the results folder `path`: those of the simulator, the gateway, DPDK
/// and Linux tc in folders of the names that `slicewise run` gives them.
///
/// Folders that hold nothing that can be set beside it are left out, with a note where they should.
pub fn siblings(path: &Path) -> Vec<PathBuf> {
    let Ok(folder) = ResultsFolder::open(path) else {
        return Vec::new();
    };
    let study = folder.study().name.clone();
    let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let parent = match path.parent() {
        Some(parent) => parent.to_owned(),
        None => return Vec::new(),
    };
    let suffixes = BACK_ENDS.into_iter().filter_map(suffix);
    let candidates = suffixes
        .flat_map(|suffix| [suffix.clone(), suffix + "-quick"])
        .map(|suffix| parent.join(format!("{study}{suffix}")));
    let mut found = Vec::new();
    for candidate in candidates {
        if !candidate.is_dir() || resolved(&candidate) == resolved(path) {
            continue;
        }
        match can_be_beside(&candidate, &study) {
            Ok(true) => found.push(candidate),
            Ok(false) => {}
            Err(why) => noteln!("note: not shown side by side: {why}"),
        }
    }
    found
}

/// False for a folder of something else, or without runs; an error if that cannot be determined.
fn can_be_beside(path: &Path, study: &str) -> Result<bool, ResultsError> {
    match ResultsFolder::open(path) {
        Ok(folder) => {
            let has_runs = folder.runs_on_disk() > 0
                || folder.read_unsupported().is_ok_and(|list| !list.is_empty());
            Ok(folder.study().name == study && has_runs)
        }
        Err(ResultsError::NoResults { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the suffix that `slicewise run` adds to a study's name to name the results folder of a back end; `None` for
/// one that it does not run.
fn suffix(back_end: BackendInfo) -> Option<String> {
    match back_end.kind {
        BackendKind::Simulated => Some(String::new()),
        BackendKind::Testbed => Some(format!("-{}", back_end.id)),
        BackendKind::Captured => None,
    }
}

/// Runs whose warnings are printed; those of the others are in the report.
const RUNS_WARNED: usize = 5;

/// Returns the warnings for readers of figures from captures, each with its run where there are several.
fn captured_warnings(captured: &CapturedFindings) -> Vec<(String, String)> {
    let mut notes = Vec::new();
    for run in captured.runs.iter().take(RUNS_WARNED) {
        let key = &run.run;
        let name = match captured.run_count {
            1 => String::new(),
            _ => format!(
                "{} / {} / {:03}: ",
                key.policy, key.scenario, key.repetition
            ),
        };
        notes.extend(
            warnings(&run.capture)
                .into_iter()
                .map(|text| (name.clone(), text)),
        );
    }
    notes
}
