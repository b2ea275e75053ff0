//! The table of phases: one row a run, phase and slice.

use super::column::columns;
use super::table::TableOfSome;
use crate::error::ReportError;
use slicewise_stats::phase::{ChangeRecord, PhaseRecord, PhaseSliceRecord, policy_in_phase};
use slicewise_stats::record::RunRecord;

columns! {
    /// A slice in a phase of a run, and what the change did with which the phase began.
    Phases<'a> = "phases" (
        record: &'a RunRecord, phase: &'a PhaseRecord, slice: &'a str, figures: &PhaseSliceRecord
    ) {
        policy: String = policy_in_phase(&record.key.policy, &phase.phase),
        scenario: &str = &record.key.scenario,
        repetition: u32 = record.key.repetition,
        phase: &str = &phase.phase,
        measured_from_ns: u64 = phase.measured_from_ns,
        ends_ns: u64 = phase.ends_ns,
        slice: &str = slice,
        reordered_frames: u64 = figures.reordered_frames,
        waiting_frames: Option<u64> = change(phase).map(|change| change.waiting_frames),
        lost_by_change_frames: Option<u64> = change(phase).map(|change| change.lost_frames),
        refused: Option<&str> = change(phase).and_then(|change| change.refused.as_deref()),
    }
}

const fn change(phase: &PhaseRecord) -> Option<&ChangeRecord> {
    phase.change.as_ref()
}

/// Each slice in each phase of a run.
pub(super) fn on_run(table: &mut TableOfSome, record: &RunRecord) -> Result<(), ReportError> {
    for phase in &record.phases {
        for (slice, figures) in record.slices.iter().zip(&phase.slices) {
            table.row(&Phases::row(record, phase, &slice.slice, figures))?;
        }
    }
    Ok(())
}
