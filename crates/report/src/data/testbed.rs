//! Back ends, and how runs on real packets went.

use super::column::{Run, columns};
use super::folder::DataFolder;
use super::table::write_or_remove;
use crate::error::ReportError;
use crate::side::Side;
use crate::testbed::TestbedRun;
use slicewise_stats::testbed::{SenderRecord, TestbedRecord};

columns! {
    /// Device and study that a back end ran.
    BackEnds<'a> = "back_ends" (side: &'a Side) {
        back_end: &str = &side.name,
        device: &str = &side.study.dut,
        study_digest: &str = &side.study.digest,
        repetitions: u32 = side.study.repetitions,
        duration_ns: u64 = side.study.duration_ns,
        scenarios: String = side.covered_scenarios().collect::<Vec<_>>().join(", "),
        fields side: u64 { expected_runs finished_runs }
        first_began_ns: Option<u64> = side.testbed.began_ns().map(|(first, _)| first),
        last_began_ns: Option<u64> = side.testbed.began_ns().map(|(_, last)| last),
    }
}

columns! {
    /// A run of a back end.
    TestbedRunOf<'a>(side: &'a Side, run: &'a TestbedRun) {
        back_end: &str = &side.name,
        ..Run(&run.run),
    }
}

columns! {
    /// How a run went.
    Runs<'a> = "testbed_runs" (side: &'a Side, run: &'a TestbedRun, live: &'a TestbedRecord) {
        ..TestbedRunOf(side, run),
        began_ns: u64 = live.began_ns,
        device: &str = &live.device,
        rejected_attempts: u64 = live.rejected.len() as u64,
        rejected: Option<String> = listed(&live.rejected),
        tolerated: Option<String> = listed(&live.tolerated),
        baseline_sent_frames: u64 = live.baseline.sent_frames,
        baseline_samples: u64 = live.baseline.samples,
        baseline_p50_ns: Option<u64> = heard(live, live.baseline.p50_ns),
        baseline_p99_ns: Option<u64> = heard(live, live.baseline.p99_ns),
        baseline_max_ns: Option<u64> = heard(live, live.baseline.max_ns),
        fields live: f64 { steal_ratio idle_ratio }
        longest_pause_ns: u64 = live.longest_pause_ns,
        least_offered_ratio: f64 = live.least_offered_ratio,
        clock_offset_ns: Option<f64> = live.clocks.map(|c| c.offset_ns as f64),
        clock_bound_ns: Option<u64> = live.clocks.map(|c| c.bound_ns),
        departed_frames: Option<u64> = live.departures.map(|d| d.frames),
        late_departed_frames: Option<u64> = live.departures.map(|d| d.late_frames),
        late_ns: Option<u64> = live.departures.map(|d| d.late_ns),
        lost_link_time_ns: Option<u64> = live.departures.map(|d| d.lost_link_time_ns),
        capture_drops: Option<u64> = run.capture_drops,
        versions: String = versions(live),
    }
}

columns! {
    /// How punctual a sender was.
    Senders<'a> = "testbed_senders" (side: &'a Side, run: &'a TestbedRun, sender: &'a SenderRecord) {
        ..TestbedRunOf(side, run),
        source: &str = &sender.source,
        fields sender: u64 { sent_frames refused_frames lateness_p50_ns lateness_p99_ns lateness_max_ns }
    }
}

/// Write back ends where there are several, and how runs on real packets went where there were any.
pub(super) fn write(folder: &DataFolder, sides: &[Side]) -> Result<(), ReportError> {
    let back_ends = (sides.len() > 1).then(|| sides.iter().map(BackEnds::row));
    write_or_remove(folder, BackEnds::SCHEMA, back_ends)?;
    let is_live = sides.iter().any(|side| !side.testbed.is_empty());
    let runs = || {
        let of = |side| move |run| (side, run);
        sides
            .iter()
            .flat_map(move |side| side.testbed.runs.iter().map(of(side)))
    };
    let rows = runs().map(|(side, run): (_, &TestbedRun)| Runs::row(side, run, &run.testbed));
    write_or_remove(folder, Runs::SCHEMA, is_live.then_some(rows))?;
    let senders = runs().flat_map(|(side, run)| {
        let senders = run.testbed.senders.iter();
        senders.map(move |sender| Senders::row(side, run, sender))
    });
    write_or_remove(folder, Senders::SCHEMA, is_live.then_some(senders))
}

/// A figure of the idle baseline; `None` where no probe arrived.
fn heard(live: &TestbedRecord, ns: u64) -> Option<u64> {
    (live.baseline.samples > 0).then_some(ns)
}

/// `None` for an empty text.
fn listed(texts: &[String]) -> Option<String> {
    Some(texts.join("; ")).filter(|text| !text.is_empty())
}

fn versions(live: &TestbedRecord) -> String {
    let versions = live.versions.iter();
    let texts: Vec<String> = versions
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    texts.join("; ")
}
