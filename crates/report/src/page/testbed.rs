//! The page's section on how runs on real packets went.

use super::markup::{Section, list, table};
use crate::findings::Findings;
use crate::populations::grouped;
use crate::side::Side;
use crate::testbed::{TestbedSummary, part_of, run_name, utc};
use crate::text_table::{TextTable, or_dash, time_or_dash};
use maud::{Markup, html};
use slicewise_stats::words::percent;

pub(super) fn section(findings: &Findings) -> Option<Section> {
    let live = || findings.sides.iter().filter(|s| !s.testbed.is_empty());
    live().next()?;
    let body = html! {
        p.note { "Conditions on the machine that carried real packets, not results: its delay when idle, processor time taken by others, lateness of senders and departures, and rejected attempts. A delay below the idle delay, or a tail no longer than the idle tail, shows nothing about a policy." }
        div #testbed-tables { @for side in live() { (of_side(side)) } }
    };
    Some(Section::new("testbed", "Testbed", body).headed("How the testbed performed"))
}

fn of_side(side: &Side) -> Markup {
    let testbed = &side.testbed;
    let (rejected, tolerated) = (testbed.rejected(), testbed.tolerated());
    let folded = |texts: &[String], one: &str, more: &str| {
        html! { details {
            summary { (texts.len()) " " (if texts.len() == 1 { one } else { more }) }
            (list(texts))
        } }
    };
    html! {
        h3 { (side.name) }
        (table(&policies(side)))
        p.key { (testbed.versions().join("; ")) }
        @if rejected.is_empty() { p.key { "No attempt was rejected." } }
        @else { (folded(&rejected, "attempt was rejected and repeated", "attempts were rejected and repeated")) }
        @if !tolerated.is_empty() {
            (folded(&tolerated, "run was accepted although the machine was noisy", "runs were accepted although the machine was noisy"))
        }
        details {
            summary { "The order of runs" }
            ol { @for run in testbed.in_order() { li { (run_name(&run.run)) " (" (utc(run.testbed.began_ns)) ")" } } }
        }
    }
}

/// A row a policy, and one for all of them.
fn policies(side: &Side) -> TextTable {
    let head = [
        "Policy",
        "Runs",
        "Idle delay: median",
        "99 %, worst",
        "largest",
        "Steal: mean",
        "largest",
        "Processors idle: mean",
        "smallest",
        "Sender late: 99 %, worst",
        "largest",
        "Late departures",
        "Rejected attempts",
        "Missed by captures",
    ];
    let judged = side.study.policies.iter();
    let mut policies: Vec<&str> = judged.map(|p| side.study.policy_of_runs(&p.name)).collect();
    policies.dedup();
    let mut rows: Vec<Vec<String>> = policies
        .into_iter()
        .map(|policy| (policy, side.testbed.summary(Some(policy))))
        .filter(|(_, summary)| summary.runs > 0)
        .map(|(policy, summary)| row(policy, &summary))
        .collect();
    rows.push(row("all", &side.testbed.summary(None)));
    TextTable::new(&head, 1, rows)
}

fn row(name: &str, summary: &TestbedSummary) -> Vec<String> {
    let mut row = vec![name.to_owned(), grouped(summary.runs)];
    let baseline = summary.baseline_ns;
    row.extend((0..3).map(|figure| time_or_dash(baseline.and_then(|b| b.get(figure).copied()))));
    row.extend(
        [summary.steal_ratio, summary.idle_ratio]
            .concat()
            .into_iter()
            .map(percent),
    );
    let lateness = summary.lateness_ns;
    row.extend((0..2).map(|figure| time_or_dash(lateness.and_then(|l| l.get(figure).copied()))));
    row.extend([
        or_dash(summary.departures, late),
        grouped(summary.rejected),
        or_dash(summary.capture_drops, grouped),
    ]);
    row
}

fn late([late, all]: [u64; 2]) -> String {
    let share = late as f64 / all.max(1) as f64;
    format!("{} ({})", percent(share), part_of([late, all]))
}
