//! `slicewise analyse`: the same figures, verdicts and report from captures of any testbed.

mod files;
mod plan;
mod progress;

use crate::Failure;
use crate::arguments::AnalyseOptions;
use crate::errln;
use crate::execution::on_interrupt;
use crate::exit::Exit;
use crate::judgement;
use crate::report::write_report;
use crate::results::{named_path, open_results, results_failure};
use crate::shard::Shard;
use plan::{Plan, PlannedRun};
use progress::Bytes;
use slicewise_analysis::{
    AnalysisError, AnalysisParams, FlowName, PacketFate, PacketSink, SliceRule,
    assured_forwarding_colour,
};
use slicewise_report::{PacketRow, PacketTable};
use slicewise_results::host::HostFacts;
use slicewise_results::{Force, ResultsFolder};
use slicewise_stats::description::{SliceDescription, StudyDescription};
use slicewise_stats::record::RunRecord;
use slicewise_wire::Headers;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

pub fn analyse(options: &AnalyseOptions) -> Result<Exit, Failure> {
    let mut plan = plan::plan(options)?;
    if let Some(shard) = options.shard {
        judgement::refuse_for_shard(&options.judgement)?;
        shard.select_by_bytes(&mut plan.runs, |run| run.files.bytes())?;
    }
    let suffix = options.shard.map_or_else(String::new, Shard::suffix);
    let name = format!("{}{suffix}", plan.description.name);
    let path = named_path(options.out.as_deref(), &name);
    let interrupt = on_interrupt("stopping")?;
    let mut work = Work {
        options,
        plan: &mut plan,
        path: &path,
        interrupt: &interrupt,
        failed: 0,
    };
    let started = Instant::now();
    let Some((folder, done)) = work.carry_out()? else {
        errln!("stopped: results so far are on disk; the same command continues with the rest");
        return Ok(Exit::Interrupted);
    };
    let failed = work.failed;
    let host = HostFacts {
        jobs: 1,
        runs_done: done,
        elapsed_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        ..HostFacts::of_this_host()
    };
    folder.write_host(&host).map_err(results_failure)?;
    let judged = match options.shard {
        Some(_) => Exit::Success,
        None => write_report(&folder, &[], &options.judgement, &[])?,
    };
    let exit = if failed == 0 { judged } else { Exit::Failure };
    Ok(match options.shard {
        Some(shard) => shard.conclude(&path, exit),
        None => exit,
    })
}

struct Work<'a> {
    options: &'a AnalyseOptions,
    plan: &'a mut Plan,
    path: &'a Path,
    interrupt: &'a AtomicBool,
    failed: usize,
}

impl Work<'_> {
    /// Analyse every run that is not in the results folder yet. None where that was interrupted.
    fn carry_out(&mut self) -> Result<Option<(ResultsFolder, u64)>, Failure> {
        let runs = std::mem::take(&mut self.plan.runs);
        let total = runs.len();
        // Refused now, rather than after hours of reading.
        let mut folder = self.open()?;
        let mut done = 0;
        for (number, run) in (1..).zip(&runs) {
            if self.is_done(&folder, run) {
                continue;
            }
            let label = (total > 1).then(|| {
                let key = &run.key;
                format!(
                    "{number}/{total}  {} / {} / {:03}",
                    key.policy, key.scenario, key.repetition
                )
            });
            match self.run(run, label.as_deref()) {
                Ok(record) => {
                    if matches!(run.slices, SliceRule::Automatic) {
                        folder = self.open_with(folder, slices_of(&record))?;
                    }
                    folder.write_run(&record).map_err(results_failure)?;
                    done += 1;
                }
                Err(AnalysisError::Interrupted) => return Ok(None),
                Err(error) if total == 1 => return Err(failure(&error)),
                Err(error) => {
                    self.failed += 1;
                    let key = &run.key;
                    errln!(
                        "error: policy {}, scenario {}, repetition {}: {error}",
                        key.policy,
                        key.scenario,
                        key.repetition
                    );
                }
            }
        }
        if folder.runs_on_disk() == 0 {
            return Err(Failure::mistake(
                "no run could be analysed: there is nothing to report",
            ));
        }
        Ok(Some((folder, done)))
    }

    /// Returns true if all results that are asked for lie in the folder.
    fn is_done(&self, folder: &ResultsFolder, run: &PlannedRun) -> bool {
        matches!(folder.read_run(&run.key), Ok(Some(_)))
            && (!self.options.packets || PacketTable::is_there(&self.packets(), &run.key))
    }

    fn packets(&self) -> PathBuf {
        self.path.join("packets")
    }

    fn open(&mut self) -> Result<ResultsFolder, Failure> {
        let description = &mut self.plan.description;
        let mut replace = self.options.replace;
        if let Ok(before) = ResultsFolder::open(self.path) {
            // Captures that could not be read do not keep others out.
            replace |= before.runs_on_disk() == 0 && !before.report_path().exists();
            // Slices that are only found in captures were found by an earlier command.
            if !replace && description.slices.is_empty() {
                description.slices.clone_from(&before.study().slices);
            }
        }
        let force = match replace {
            true => Force::Replace,
            false => Force::Refuse,
        };
        open_results(self.path, description, force)
    }

    /// The same folder, of a study whose slices are known now.
    fn open_with(
        &mut self,
        folder: ResultsFolder,
        slices: Vec<SliceDescription>,
    ) -> Result<ResultsFolder, Failure> {
        // Its lock is ours.
        drop(folder);
        self.plan.description.slices = slices;
        open_results(self.path, &self.plan.description, Force::Refuse)
    }

    fn run(&self, run: &PlannedRun, label: Option<&str>) -> Result<RunRecord, AnalysisError> {
        let params = AnalysisParams {
            sent: run.files.sent.clone(),
            via: run.files.via.clone(),
            received: run.files.received.clone(),
            slices: run.slices.clone(),
            bin: self.plan.bin,
            run: run.length,
            phases: Vec::new(),
            medians: false,
            loss_timeout: self.plan.loss_timeout,
            accept_clock_estimate: self.options.accept_clock_estimate,
            innermost: self.options.inner,
        };
        let bytes = Bytes::new(self.interrupt, label);
        let description = &self.plan.description;
        let mut packets = match self.options.packets {
            true => Some(
                Packets::create(&self.packets(), run, description)
                    .map_err(|error| AnalysisError::Sink(error.to_string()))?,
            ),
            false => None,
        };
        let sink = packets
            .as_mut()
            .map(|packets| packets as &mut dyn PacketSink);
        let record = slicewise_analysis::analyse(&params, run.key.clone(), &bytes, sink);
        bytes.finish();
        match (&record, packets) {
            (Ok(_), Some(packets)) => packets
                .table
                .finish()
                .map_err(|error| AnalysisError::Sink(error.to_string()))?,
            // Those of half a run would be taken for all.
            (Err(_), Some(packets)) => {
                drop(packets);
                let _ = PacketTable::remove(&self.packets(), &run.key);
            }
            _ => {}
        }
        record
    }
}

/// The slices that were found, of which nobody was promised anything.
fn slices_of(record: &RunRecord) -> Vec<SliceDescription> {
    let slices = record.slices.iter().map(|slice| SliceDescription {
        name: slice.slice.clone(),
        ..SliceDescription::default()
    });
    slices.collect()
}

/// Exit code 2 if the user can fix it.
fn failure(error: &AnalysisError) -> Failure {
    match error {
        AnalysisError::Sink(_) => Failure::system(error),
        _ => Failure::mistake(error),
    }
}

/// Packets, as they go to their table.
struct Packets {
    table: PacketTable,
    /// Made once a flow.
    names: HashMap<Headers, String>,
}

impl Packets {
    fn create(
        folder: &Path,
        run: &PlannedRun,
        study: &StudyDescription,
    ) -> Result<Self, slicewise_report::ReportError> {
        let table = PacketTable::create(folder, &run.key, study)?;
        let names = HashMap::new();
        Ok(Self { table, names })
    }
}

impl PacketSink for Packets {
    fn on_packet(&mut self, packet: &PacketFate<'_>) -> Result<(), String> {
        let flow = self
            .names
            .entry(*packet.headers)
            .or_insert_with(|| FlowName(packet.headers).to_string());
        let row = PacketRow {
            slice: packet.slice,
            flow,
            sequence: packet.sequence,
            sent_ns: packet.sent_ns,
            received_ns: packet.received_ns,
            bytes: packet.l2_bytes,
            colour: packet.received_dscp.and_then(assured_forwarding_colour),
        };
        self.table.row(&row).map_err(|error| error.to_string())
    }
}
