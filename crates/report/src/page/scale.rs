//! The page's section on slices by the thousand.

use super::document::{PopulationView, PopulationsView};
use crate::findings::Findings;
use crate::populations::{self, PopulationFinding, grouped, memory};
use slicewise_stats::words::{digits, percent, time};

pub(crate) fn view(findings: &Findings<'_>) -> Option<PopulationsView> {
    if findings.populations.is_empty() {
        return None;
    }
    let rows = findings.populations.iter();
    Some(PopulationsView {
        finding: populations::finding(findings.study, &findings.populations),
        cost: cost(findings),
        rows: rows.map(|finding| row(findings, finding)).collect(),
    })
}

#[expect(clippy::cast_precision_loss, reason = "times that are printed")]
fn row(findings: &Findings<'_>, finding: &PopulationFinding) -> PopulationView {
    let study = findings.study;
    let mut policies = study.policies.iter();
    let mut scenarios = study.scenarios.iter();
    let time_of = |ns: Option<u64>| ns.map_or_else(none, |ns| time(ns as f64));
    PopulationView {
        policy: policies.position(|policy| policy.name == finding.policy),
        scenario: scenarios.position(|scenario| scenario.name == finding.scenario),
        slice: finding.slice_index,
        backlogged: finding.backlogged,
        all_slices: finding.all_slices,
        delay_max_ns: finding.delay_max_ns,
        delay_bound_ns: finding.delay_bound_ns,
        within_bound: finding.part_of_bound().map(|part| part <= 1.0),
        slices_text: grouped(finding.slices.into()),
        all_slices_text: grouped(finding.all_slices),
        delay_max: time_of(finding.delay_max_ns),
        delay_bound: time_of(finding.delay_bound_ns),
        part_of_bound: finding.part_of_bound().map_or_else(none, percent),
        bytes_per_weight: finding.bytes_per_weight.map_or_else(none, |(least, most)| {
            format!("{} to {} B", grouped(least), grouped(most))
        }),
        turns_apart: finding
            .turns_apart()
            .map_or_else(none, |turns| digits(turns, 2)),
        state: memory(finding.state_bytes),
        state_in_all: memory(finding.state_bytes_in_all()),
        ns_a_frame: finding
            .ns_a_frame
            .map_or_else(none, |ns| format!("{} ns", digits(ns, 3))),
    }
}

fn none() -> String {
    "–".to_owned()
}

/// What the times are of, and what they are not.
fn cost(findings: &Findings<'_>) -> String {
    let timed = findings.populations.iter().any(|f| f.ns_a_frame.is_some());
    let Some(host) = findings.host.as_ref().filter(|_| timed) else {
        return String::new();
    };
    let processor = if host.processor.is_empty() {
        String::new()
    } else {
        format!(" on {}", host.processor)
    };
    let company = match host.jobs {
        0 | 1 => String::new(),
        jobs => format!(", with {jobs} runs at a time"),
    };
    format!(
        "Time per frame is that of the whole simulation{processor}{company}: filling the \
         slices, traffic, scheduler and measurement. It describes the host and is not a result; it is an upper limit of the scheduler's time. Memory is the scheduler's state for slices, without queued frames."
    )
}
