//! What the changes of a timeline did to frames, in all runs.

use slicewise_stats::phase::{PhaseRecord, policy_in_phase};
use slicewise_stats::record::RunRecord;
use slicewise_stats::words::count;
use std::collections::{BTreeMap, BTreeSet};

/// What changes did, by the phase that each began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// By the name of the policy in the phase.
    by_policy: BTreeMap<String, Effect>,
}

/// What the change at the beginning of a phase did, in all runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Effect {
    /// Runs in which the device was changed.
    pub(crate) runs: u64,
    /// Frames that waited in it, in all of them.
    pub(crate) waiting_frames: u64,
    /// Those of them that the changes dropped.
    pub(crate) lost_frames: u64,
    /// Frames received after one that their flow sent later, in the whole phase.
    pub(crate) reordered_frames: u64,
    /// Why a change was refused.
    pub(crate) refused: BTreeSet<String>,
}

impl Changes {
    pub(crate) fn on_run(&mut self, record: &RunRecord) {
        for phase in &record.phases {
            let name = policy_in_phase(&record.key.policy, &phase.phase);
            self.by_policy.entry(name).or_default().add(phase);
        }
    }

    /// What the change did with which `policy`, in its phase, began.
    pub(crate) fn of(&self, policy: &str) -> Option<&Effect> {
        self.by_policy.get(policy)
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
