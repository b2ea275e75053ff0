//! The section of a study's timeline: its phases, and what the changes between them did.

use super::markup::{Section, table};
use crate::findings::Findings;
use crate::text_table::TextTable;
use maud::html;
use slicewise_stats::phase::PhaseDescription;
use slicewise_stats::words::time;

/// `None` where nothing changes during a run.
pub(super) fn section(findings: &Findings) -> Option<Section> {
    let study = findings.study();
    if study.phases.is_empty() {
        return None;
    }
    let body = html! {
        p.note {
            "During every run the study changes what is in the table. Each phase is measured from the end of its settling time and \
             judged for itself: a policy in a phase is named policy/phase everywhere on this page."
        }
        (table(&phases(&study.phases)))
        @let changes = changes(findings);
        @if !changes.rows.is_empty() {
            h3 { "Effect of the changes on frames" }
            p.note { "Changes of a policy while frames waited in the device, in all runs: how many frames waited, how many of them the changes dropped, and how many frames of the phase were received after one that their flow had sent later (RFC 4737). A change must neither drop nor reorder. A policy may reorder by itself: frames of one flow wait in several queues where the colours of a class choose queues." }
            (table(&changes))
        }
    };
    Some(Section::new("timeline", "Timeline", body))
}

fn phases(phases: &[PhaseDescription]) -> TextTable {
    let head = ["Phase", "Begins", "Measured", "What changes"];
    let rows = phases.iter().map(|phase| {
        let measured = [phase.measured_from_ns, phase.ends_ns].map(|ns| time(ns as f64));
        let mut changes = phase.changes.join("; ");
        if !phase.title.is_empty() && !changes.is_empty() {
            changes = format!("{}: {changes}", phase.title);
        }
        vec![
            phase.name.clone(),
            time(phase.begins_ns as f64),
            format!("{} to {}", measured[0], measured[1]),
            if changes.is_empty() {
                "–".to_owned()
            } else {
                changes
            },
        ]
    });
    TextTable::new(&head, 1, rows.collect())
}

fn changes(findings: &Findings) -> TextTable {
    let study = findings.study();
    let head = [
        "Policy in phase",
        "Changes",
        "Frames waiting",
        "Lost",
        "Reordered",
        "Refused",
    ];
    let judged = study.policies.iter();
    let rows = judged.filter_map(|policy| {
        let effect = findings.changes.of(&policy.name)?;
        (effect.runs > 0).then(|| {
            let refused: Vec<&str> = effect.refused.iter().map(String::as_str).collect();
            vec![
                policy.name.clone(),
                effect.runs.to_string(),
                effect.waiting_frames.to_string(),
                effect.lost_frames.to_string(),
                effect.reordered_frames.to_string(),
                if refused.is_empty() {
                    "–".to_owned()
                } else {
                    refused.join("; ")
                },
            ]
        })
    });
    TextTable::new(&head, 1, rows.collect())
}
