//! How runs on real packets went.

use super::folder::DataFolder;
use super::table::{Column, Kind, Schema, TableWriter, Value};
use crate::error::ReportError;
use crate::side::Side;
use crate::testbed::LiveRun;

pub(crate) const TESTBED_RUNS: Schema = Schema {
    name: "testbed_runs",
    columns: &[
        Column::new("back_end", Kind::Text),
        Column::new("policy", Kind::Text),
        Column::new("scenario", Kind::Text),
        Column::new("repetition", Kind::Integer),
        Column::new("began_ns", Kind::Integer),
        Column::new("device", Kind::Text),
        Column::new("rejected_attempts", Kind::Integer),
        Column::optional("rejected", Kind::Text),
        Column::optional("tolerated", Kind::Text),
        Column::new("baseline_sent_frames", Kind::Integer),
        Column::new("baseline_samples", Kind::Integer),
        Column::optional("baseline_p50_ns", Kind::Integer),
        Column::optional("baseline_p99_ns", Kind::Integer),
        Column::optional("baseline_max_ns", Kind::Integer),
        Column::new("steal_ratio", Kind::Real),
        Column::new("idle_ratio", Kind::Real),
        Column::new("longest_pause_ns", Kind::Integer),
        Column::new("least_offered_ratio", Kind::Real),
        Column::optional("departed_frames", Kind::Integer),
        Column::optional("late_departed_frames", Kind::Integer),
        Column::optional("late_ns", Kind::Integer),
        Column::optional("capture_drops", Kind::Integer),
        Column::new("versions", Kind::Text),
    ],
};

pub(crate) const TESTBED_SENDERS: Schema = Schema {
    name: "testbed_senders",
    columns: &[
        Column::new("back_end", Kind::Text),
        Column::new("policy", Kind::Text),
        Column::new("scenario", Kind::Text),
        Column::new("repetition", Kind::Integer),
        Column::new("source", Kind::Text),
        Column::new("sent_frames", Kind::Integer),
        Column::new("refused_frames", Kind::Integer),
        Column::new("lateness_p50_ns", Kind::Integer),
        Column::new("lateness_p99_ns", Kind::Integer),
        Column::new("lateness_max_ns", Kind::Integer),
    ],
};

/// Write how runs on real packets went; nothing where there were none.
pub(crate) fn write_testbed(folder: &DataFolder, sides: &[Side]) -> Result<(), ReportError> {
    if sides.iter().all(|side| side.testbed.is_empty()) {
        folder.remove_table(TESTBED_RUNS)?;
        return folder.remove_table(TESTBED_SENDERS);
    }
    let mut runs = TableWriter::create(folder, TESTBED_RUNS)?;
    let mut senders = TableWriter::create(folder, TESTBED_SENDERS)?;
    for side in sides {
        for run in &side.testbed.runs {
            run_row(&mut runs, side, run)?;
            sender_rows(&mut senders, side, run)?;
        }
    }
    runs.finish()?;
    senders.finish()
}

fn key<'a>(side: &'a Side, run: &'a LiveRun) -> [Value<'a>; 4] {
    [
        side.name.as_str().into(),
        run.run.policy.as_str().into(),
        run.run.scenario.as_str().into(),
        run.run.repetition.into(),
    ]
}

fn run_row(table: &mut TableWriter, side: &Side, run: &LiveRun) -> Result<(), ReportError> {
    let live = &run.live;
    let baseline = live.baseline;
    let heard = |ns: u64| (baseline.samples > 0).then_some(ns);
    let rejected = live.rejected.join("; ");
    let tolerated = live.tolerated.join("; ");
    let versions: Vec<String> = live
        .versions
        .iter()
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    let versions = versions.join("; ");
    let mut row = key(side, run).to_vec();
    row.extend::<[Value<'_>; 19]>([
        live.began_ns.into(),
        live.device.as_str().into(),
        (live.rejected.len() as u64).into(),
        (!rejected.is_empty()).then_some(rejected.as_str()).into(),
        (!tolerated.is_empty()).then_some(tolerated.as_str()).into(),
        baseline.sent_frames.into(),
        baseline.samples.into(),
        heard(baseline.p50_ns).into(),
        heard(baseline.p99_ns).into(),
        heard(baseline.max_ns).into(),
        live.steal_ratio.into(),
        live.idle_ratio.into(),
        live.longest_pause_ns.into(),
        live.least_offered_ratio.into(),
        live.departures.map(|d| d.frames).into(),
        live.departures.map(|d| d.late_frames).into(),
        live.departures.map(|d| d.late_ns).into(),
        run.capture_drops.into(),
        versions.as_str().into(),
    ]);
    table.row(&row)
}

fn sender_rows(table: &mut TableWriter, side: &Side, run: &LiveRun) -> Result<(), ReportError> {
    for sender in &run.live.senders {
        let mut row = key(side, run).to_vec();
        row.extend::<[Value<'_>; 6]>([
            sender.source.as_str().into(),
            sender.sent_frames.into(),
            sender.refused_frames.into(),
            sender.lateness_p50_ns.into(),
            sender.lateness_p99_ns.into(),
            sender.lateness_max_ns.into(),
        ]);
        table.row(&row)?;
    }
    Ok(())
}
