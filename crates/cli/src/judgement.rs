//! Verdicts for scripts: as JSON, and as an exit code.

use crate::Failure;
use crate::arguments::{FailOn, JudgementOptions};
use crate::errln;
use crate::exit::Exit;
use serde::Serialize;
use slicewise_report::{Findings, MeasuredFigure, measured};
use slicewise_results::ResultsFolder;
use slicewise_stats::published::PublishedComparison;
use slicewise_stats::verdict::{Outcome, PolicyVerdict};
use std::path::Path;

/// The version of [`Judgement`]: it changes where a key changes its meaning or goes.
const SCHEMA_VERSION: u32 = 1;

/// Document that `--json` prints: docs/results.md describes it.
#[derive(Serialize)]
struct Judgement<'a> {
    schema_version: u32,
    study: &'a str,
    study_digest: &'a str,
    program_version: &'a str,
    seed: u64,
    expected_runs: u64,
    finished_runs: u64,
    /// Runs left out because their records are damaged, and why.
    damaged_runs: &'a [String],
    confidence: f64,
    policies: Vec<&'a PolicyVerdict>,
    published_figures: &'a [PublishedComparison],
    measured: Vec<MeasuredFigure<'a>>,
    /// Points of a sweep have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<&'a Path>,
}

/// Refuses to judge a shard: most verdicts need all runs.
pub fn refuse_for_shard(options: &JudgementOptions) -> Result<(), Failure> {
    if options.is_given() {
        return Err(Failure::mistake(
            "a shard is not judged: give `--json`, `--explain` and `--fail-on` to `slicewise collect`",
        ));
    }
    Ok(())
}

/// The verdicts on the policies that were selected by these names; on all where there is none.
pub fn selected<'a>(findings: &'a Findings, policies: &[String]) -> Vec<&'a PolicyVerdict> {
    let side = findings.main();
    let is_selected = |verdict: &&PolicyVerdict| {
        let name = side.study.policy_of_runs(&verdict.policy);
        policies.is_empty() || policies.iter().any(|policy| policy == name)
    };
    side.verdicts.policies.iter().filter(is_selected).collect()
}

/// The verdicts on these policies, and the published figures.
pub fn as_json(
    folder: &ResultsFolder,
    findings: &Findings,
    policies: &[String],
) -> Result<serde_json::Value, Failure> {
    let study = folder.study();
    let report = folder.report_path();
    let judgement = Judgement {
        schema_version: SCHEMA_VERSION,
        study: &study.name,
        study_digest: &study.digest,
        program_version: &study.program_version,
        seed: study.seed,
        expected_runs: findings.main().expected_runs,
        finished_runs: findings.main().finished_runs,
        damaged_runs: &findings.main().damaged_runs,
        confidence: findings.main().verdicts.confidence,
        policies: selected(findings, policies),
        published_figures: &findings.published,
        measured: measured(findings),
        report: report.exists().then_some(&*report),
    };
    serde_json::to_value(&judgement)
        .map_err(|error| Failure::system(format!("cannot write the verdicts as JSON: {error}")))
}

/// [`Exit::Verdict`] where a verdict is what `fail_on` names; the verdicts are printed on standard error.
pub fn gate(verdicts: &[&PolicyVerdict], fail_on: FailOn) -> Exit {
    let failing = failing(verdicts, fail_on);
    for verdict in &failing {
        errln!("failed: {verdict}");
    }
    if failing.is_empty() {
        Exit::Success
    } else {
        Exit::Verdict
    }
}

/// Verdicts that `fail_on` names, in words.
fn failing(verdicts: &[&PolicyVerdict], fail_on: FailOn) -> Vec<String> {
    let judged = verdicts.iter().flat_map(|policy| {
        [
            (policy, "isolation", policy.isolation.outcome),
            (policy, "reallocation", policy.reallocation.outcome),
        ]
    });
    let word = |outcome| match outcome {
        Outcome::Broken => Some("broken"),
        Outcome::Inconclusive if fail_on == FailOn::Inconclusive => Some("inconclusive"),
        _ => None,
    };
    let found: Vec<String> = judged
        .clone()
        .filter_map(|(policy, attribute, outcome)| {
            Some(format!(
                "{}: {attribute} is {}",
                policy.policy,
                word(outcome)?
            ))
        })
        .collect();
    let nothing_judged = judged
        .clone()
        .all(|(_, _, outcome)| outcome == Outcome::NotTested);
    if fail_on == FailOn::Inconclusive && nothing_judged {
        return vec!["no policy could be judged".to_owned()];
    }
    found
}
