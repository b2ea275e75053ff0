//! A timeline: its phases, and what the changes between them did to frames in all runs.

use crate::markup::{Section, table};
use crate::text_table::TextTable;
use maud::html;
use slicewise_stats::description::StudyDescription;
use slicewise_stats::phase::{PhaseDescription, PhaseRecord, policy_in_phase};
use slicewise_stats::record::RunRecord;
use slicewise_stats::words::{count, time};
use std::collections::{BTreeMap, BTreeSet};

/// Effects of changes, by the phase that each began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// By the name of the policy in the phase.
    by_policy: BTreeMap<String, Effect>,
}

/// Effect of the change at the beginning of a phase, in all runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Effect {
    /// Runs in which the device was changed.
    runs: u64,
    /// Frames that waited in it, in all of them.
    waiting_frames: u64,
    /// Waiting frames that the changes dropped.
    lost_frames: u64,
    /// Frames received after one that their flow sent later, in the whole phase.
    reordered_frames: u64,
    /// Why a change was refused.
    refused: BTreeSet<String>,
}

impl Changes {
    pub(crate) fn on_run(&mut self, record: &RunRecord) {
        for phase in &record.phases {
            let name = policy_in_phase(&record.key.policy, &phase.phase);
            self.by_policy.entry(name).or_default().add(phase);
        }
    }

    /// A line for a terminal; `None` where no device was changed. Reordered frames are left to the page: a policy may
    /// reorder them itself, by queues that colours choose.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let all = || self.by_policy.values().filter(|effect| effect.runs > 0);
        let sum = |of: fn(&Effect) -> u64| all().map(of).fold(0, u64::saturating_add);
        let changes = sum(|effect| effect.runs);
        if changes == 0 {
            return None;
        }
        let refused: BTreeSet<&String> = all().flat_map(|effect| &effect.refused).collect();
        let mut text = format!(
            "Changes: {} while {} waited; {} lost by them",
            count(changes, "change"),
            count(sum(|effect| effect.waiting_frames), "frame"),
            sum(|effect| effect.lost_frames),
        );
        for reason in refused {
            text.push_str(&format!("; refused: {reason}"));
        }
        Some(text)
    }
}

impl Effect {
    fn add(&mut self, phase: &PhaseRecord) {
        let slices = phase.slices.iter();
        self.reordered_frames += slices.map(|slice| slice.reordered_frames).sum::<u64>();
        if let Some(change) = &phase.change {
            self.runs += 1;
            self.waiting_frames += change.waiting_frames;
            self.lost_frames += change.lost_frames;
            self.refused.extend(change.refused.clone());
        }
    }
}

/// `None` where nothing changes during a run.
pub(crate) fn section(study: &StudyDescription, effects: &Changes) -> Option<Section> {
    if study.phases.is_empty() {
        return None;
    }
    let body = html! {
        p.note {
            "During every run the study changes what is in the table. Each phase is measured from the end of its settling time and \
             judged for itself: a policy in a phase is named policy/phase everywhere on this page."
        }
        (table(&phases(&study.phases)))
        @let changes = changes(study, effects);
        @if !changes.rows.is_empty() {
            h3 { "Effect of the changes on frames" }
            p.note { "Changes of a policy while frames waited in the device, in all runs: how many frames waited, how many of them the changes dropped, and how many frames of the phase were received after one that their flow had sent later (RFC 4737). A change must neither drop nor reorder. A policy may reorder by itself: frames of one flow wait in several queues where the colours of a class choose queues." }
            (table(&changes))
        }
    };
    Some(Section::new("timeline", "Timeline", body))
}

fn phases(phases: &[PhaseDescription]) -> TextTable {
    let head = "Phase | Begins | Measured | What changes";
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
    TextTable::new(head, 1, rows.collect())
}

fn changes(study: &StudyDescription, effects: &Changes) -> TextTable {
    let head = "Policy in phase | Changes | Frames waiting | Lost | Reordered | Refused";
    let judged = study.policies.iter();
    let rows = judged.filter_map(|policy| {
        let effect = effects.by_policy.get(&policy.name)?;
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
    TextTable::new(head, 1, rows.collect())
}
