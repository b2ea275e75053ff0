//! Everything a report is made of, gathered from the results folder in one pass.

use crate::captured::CapturedFindings;
use crate::curves::Curves;
use crate::error::ReportError;
use crate::link_losses::LinkLosses;
use crate::populations::{PopulationFinding, Populations};
use crate::side::{self, Side, without_folder};
use crate::testbed::Testbed;
use slicewise_results::host::HostFacts;
use slicewise_results::{ResultsError, ResultsFolder};
use slicewise_stats::description::StudyDescription;
use slicewise_stats::published::{self, PublishedComparison};
use slicewise_stats::record::RunRecord;
use slicewise_stats::summary::{CellSummary, Summary, SummaryBuilder};
use slicewise_stats::verdict::VerdictTable;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;

/// The results of all runs.
pub(crate) struct Findings<'a> {
    pub(crate) study: &'a StudyDescription,
    pub(crate) summary: Summary,
    pub(crate) verdicts: VerdictTable,
    pub(crate) published: Vec<PublishedComparison>,
    pub(crate) curves: Curves,
    /// Empty in a study without populations.
    pub(crate) populations: Vec<PopulationFinding>,
    /// Empty in a study of which nothing was captured.
    pub(crate) captured: CapturedFindings,
    pub(crate) link_losses: LinkLosses,
    pub(crate) expected_runs: u64,
    pub(crate) finished_runs: u64,
    /// Records that cannot be trusted, and why; without the folder, which says nothing of results.
    pub(crate) damaged_runs: Vec<String>,
    pub(crate) host: Option<HostFacts>,
    /// This folder and those beside it; only this one where there is none beside.
    pub(crate) sides: Vec<Side>,
}

impl<'a> Findings<'a> {
    /// Read every run once, giving it to `on_run` on the way; a few runs are in memory at a time.
    pub(crate) fn gather(
        folder: &'a ResultsFolder,
        beside: &[PathBuf],
        mut on_run: impl FnMut(&RunRecord) -> Result<(), ReportError>,
    ) -> Result<Self, ReportError> {
        let study = folder.study();
        let beside_sides = side::read_beside(folder, beside)?;
        let mut intake = Intake {
            builder: SummaryBuilder::new(study),
            curves: Curves::default(),
            populations: Populations::default(),
            captured: CapturedFindings::default(),
            testbed: Testbed::default(),
            link_losses: LinkLosses::default(),
            damaged_runs: Vec::new(),
        };
        // Reading is as much work as writing: each has a thread. Order is that of the folder.
        std::thread::scope(|scope| {
            let (sender, runs) = sync_channel(RUNS_READ_AHEAD);
            scope.spawn(move || {
                for run in folder.finished_runs() {
                    if sender.send(run).is_err() {
                        // Writing failed, and says why.
                        break;
                    }
                }
            });
            runs.into_iter()
                .try_for_each(|run| match intake.on_run(run, folder)? {
                    Some(record) => on_run(&record),
                    None => Ok(()),
                })
        })?;
        intake.curves.finish();
        let damaged_runs = intake.damaged_runs;
        let main = Side {
            is_main: true,
            ..side::judged(folder, &intake.builder, intake.testbed, damaged_runs)?
        };
        let host = folder.read_host();
        Ok(Self {
            study,
            summary: main.summary.clone(),
            verdicts: main.verdicts.clone(),
            published: published::compare(study, intake.builder.observations()),
            curves: intake.curves,
            populations: intake.populations.findings(host.as_ref()),
            captured: intake.captured,
            link_losses: intake.link_losses,
            expected_runs: main.expected_runs,
            finished_runs: main.finished_runs,
            damaged_runs: main.damaged_runs.clone(),
            host,
            sides: side::in_order(
                std::iter::once((main, folder.path().to_owned()))
                    .chain(beside_sides.into_iter().zip(beside.iter().cloned())),
            ),
        })
    }
}

impl Findings<'_> {
    /// True where there is one policy in one scenario: a chart that compares would have one bar.
    pub(crate) fn has_one_cell(&self) -> bool {
        let cells = (self.study.policies.len(), self.study.scenarios.len());
        cells == (1, 1) && self.populations.is_empty()
    }

    /// The estimates of a policy in a scenario, by their places in the study.
    pub(crate) fn cell(&self, policy: usize, scenario: usize) -> Option<&CellSummary> {
        let policy = &self.study.policies.get(policy)?.name;
        let scenario = &self.study.scenarios.get(scenario)?.name;
        let mut cells = self.summary.cells.iter();
        cells.find(|cell| cell.policy == *policy && cell.scenario == *scenario)
    }

    /// Place of the scenario with most load that has runs: studies are written from light to heavy.
    pub(crate) fn heaviest_scenario(&self) -> usize {
        let has_runs = |name: &str| self.summary.cells.iter().any(|cell| cell.scenario == name);
        let mut scenarios = self.study.scenarios.iter();
        scenarios.rposition(|s| has_runs(&s.name)).unwrap_or(0)
    }
}

/// Where runs go when they are read.
struct Intake<'a> {
    builder: SummaryBuilder<'a>,
    curves: Curves,
    populations: Populations,
    captured: CapturedFindings,
    testbed: Testbed,
    link_losses: LinkLosses,
    damaged_runs: Vec<String>,
}

impl Intake<'_> {
    /// The record, unless it is left out.
    fn on_run(
        &mut self,
        run: Result<RunRecord, ResultsError>,
        folder: &ResultsFolder,
    ) -> Result<Option<RunRecord>, ReportError> {
        let record = match run {
            Ok(record) => record,
            Err(error) if error.is_damaged_run() => {
                self.damaged_runs.push(format!(
                    "{}: this run must be repeated",
                    without_folder(&error, folder)
                ));
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        if let Err(error) = self.builder.add(&record) {
            self.damaged_runs.push(error.to_string());
            return Ok(None);
        }
        self.curves.on_run(&record, folder.study());
        self.populations.on_run(&record, folder.study());
        self.captured.on_run(&record);
        self.testbed.on_run(&record);
        self.link_losses.on_run(&record);
        Ok(Some(record))
    }
}

/// Enough that neither thread waits long for the other; a record is some 100 kB.
const RUNS_READ_AHEAD: usize = 4;
