//! Part of the page about the study itself: title, notices and method.

use super::{verdicts, wording};
use crate::findings::Findings;
use crate::markup::{Prose, Section, facts, list};
use maud::{Markup, html};
use slicewise_stats::description::{PolicyDescription, StudyDescription};
use slicewise_stats::words::{count, time};

/// Title, description and what was run.
pub(super) fn masthead(findings: &Findings, title: &str) -> Markup {
    let study = findings.study();
    let number = |length: usize, one: &str, more: &str| {
        format!("{length} {}", if length == 1 { one } else { more })
    };
    let runs = format!(
        "{} × {} × {}",
        number(
            study.policies.len() / study.phases.len().max(1),
            "policy",
            "policies"
        ),
        number(findings.study().scenarios.len(), "scenario", "scenarios"),
        count(study.repetitions.into(), "repetition"),
    );
    let each = match study.duration_ns {
        0 => "duration of the captures".to_owned(),
        ns => format!("{} of traffic", time(ns as f64)),
    };
    html! {
        p.overline { "Slicewise report" }
        h1 #title { (Prose(title)) }
        (verdicts::answer(findings))
        p.lead { (Prose(&study.description)) }
        (facts([
            ("Device under test", study.dut.as_str()),
            ("Runs", &runs),
            ("Each run", &each),
            ("Publication", &study.source),
        ]))
    }
}

/// Runs that are missing or damaged.
pub(super) fn notices(findings: &Findings) -> Markup {
    html! {
        @if findings.main().finished_runs < findings.main().expected_runs {
            div.notice role="status" {
                (findings.main().finished_runs) " of " (findings.main().expected_runs) " runs are finished. The same command runs the rest; \
                 until then intervals are wider and verdicts may be inconclusive."
            }
        }
        @if !findings.main().damaged_runs.is_empty() {
            div.notice role="status" {
                (count(findings.main().damaged_runs.len() as u64, "damaged record")) " left out:"
                (list(&findings.main().damaged_runs))
            }
        }
    }
}

pub(super) fn method(findings: &Findings) -> Section {
    let study = findings.study();
    let program = format!("Slicewise {}", study.program_version);
    let host = findings
        .host
        .as_ref()
        .map(wording::host)
        .unwrap_or_default();
    let body = html! {
        div #method-text { @for text in wording::method(study, &findings.main().summary) { p { (Prose(&text)) } } }
        h3 { "Assumptions" }
        div #assumptions {
            @if study.assumptions.is_empty() { p.quiet { "None is declared." } }
            @else { (list(&study.assumptions)) }
        }
        h3 { "Policies as configured" }
        @for (name, policy) in configured(study) {
            details.configuration {
                summary { (name) }
                pre { @if policy.configuration.is_empty() { "(nothing configured)" } @else { (policy.configuration) } }
            }
        }
        h3 { "Provenance" }
        (facts([
            ("Study", study.name.as_str()),
            ("Digest of the study", &study.digest),
            ("Seed", &study.seed.to_string()),
            ("Program", &program),
        ]))
        p { "To run it again:" }
        pre { (wording::command(study)) }
        @if !host.is_empty() {
            p.quiet { "The host, which results do not depend on:" }
            (facts(host.iter().map(|(name, value)| (name.as_str(), value.as_str()))))
        }
        h3 { "Data" }
        p { "Every number of this page is in " code { "data/" } " as Parquet and CSV; figures for papers, drawn from the same numbers, are in " code { "figures/" } " as SVG and PDF." }
    };
    Section::new("method", "Method", body)
}

/// Policies and their names, each phase only where it has another configuration than the one before.
fn configured(study: &StudyDescription) -> Vec<(&str, &PolicyDescription)> {
    let mut shown: Vec<(&str, &PolicyDescription)> = Vec::new();
    for policy in &study.policies {
        let run_as = study.policy_of_runs(&policy.name);
        let before = shown
            .last()
            .filter(|(_, last)| study.policy_of_runs(&last.name) == run_as);
        match before {
            None => shown.push((run_as, policy)),
            Some((_, last)) if last.configuration != policy.configuration => {
                shown.push((&policy.name, policy));
            }
            Some(_) => {}
        }
    }
    shown
}
