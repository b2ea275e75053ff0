//! Everything a report is made of, gathered from the results folder in one pass.

use crate::captured::CapturedFindings;
use crate::curves::Curves;
use crate::error::ReportError;
use crate::link_losses::LinkLosses;
use crate::populations::{PopulationFinding, Populations};
use crate::queues::Queues;
use crate::side::{self, Side, without_folder};
use crate::testbed::Testbed;
use crate::timeline::Changes;
use serde::Serialize;
use slicewise_results::host::HostFacts;
use slicewise_results::{ResultsError, ResultsFolder};
use slicewise_stats::description::{ScenarioDescription, StudyDescription, number_and_unit};
use slicewise_stats::plotted::{self, PlotCell};
use slicewise_stats::published::{self, PublishedComparison};
use slicewise_stats::record::RunRecord;
use slicewise_stats::summary::{CellSummary, SummaryBuilder};
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;

/// Findings of a report.
#[derive(Debug)]
pub struct Findings {
    /// The folder of the report and those beside it, each judged on its own.
    pub sides: Vec<Side>,
    /// Which of them is that of the report.
    main: usize,
    /// Published figures beside ours.
    pub published: Vec<PublishedComparison>,
    /// Values of each declared figure, in the order of the study.
    pub(crate) plots: Vec<Vec<PlotCell>>,
    /// Results of populations; empty in a study without populations.
    pub populations: Vec<PopulationFinding>,
    /// Flows and hops, and how runs were measured; empty where nothing was captured.
    pub captured: CapturedFindings,
    /// Losses on impaired links.
    pub link_losses: LinkLosses,
    /// Effects of a timeline's changes on frames.
    pub changes: Changes,
    /// Lengths of queues, and elephants.
    pub(crate) queues: Queues,
    pub(crate) curves: Curves,
    pub(crate) host: Option<HostFacts>,
}

impl Findings {
    /// Read every run once, giving it to `on_run` on the way; a few runs are in memory at a time.
    pub(crate) fn gather(
        folder: &ResultsFolder,
        beside: &[PathBuf],
        mut on_run: impl FnMut(&RunRecord) -> Result<(), ReportError>,
    ) -> Result<Self, ReportError> {
        let study = folder.judged();
        let beside_sides = side::read_beside(folder, beside)?;
        let mut intake = Intake {
            builder: SummaryBuilder::new(study),
            populations: Populations::default(),
            testbed: Testbed::default(),
            damaged_runs: Vec::new(),
            captured: CapturedFindings::default(),
            link_losses: LinkLosses::default(),
            changes: Changes::default(),
            queues: Queues::default(),
            curves: Curves::default(),
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
        intake.curves.end_cell();
        let damaged_runs = intake.damaged_runs;
        let main = Side {
            is_main: true,
            ..side::judged(folder, &intake.builder, intake.testbed, damaged_runs)?
        };
        let host = folder.read_host();
        let beside_sides = beside_sides.into_iter().zip(beside.iter().cloned());
        let main = std::iter::once((main, folder.path().to_owned()));
        let sides = side::in_order(main.chain(beside_sides));
        Ok(Self {
            main: sides.iter().position(|side| side.is_main).unwrap_or(0),
            sides,
            published: published::compare(study, intake.builder.observations()),
            plots: (study.plots.iter())
                .map(|plot| plotted::cells(plot, study, intake.builder.observations()))
                .collect(),
            populations: intake.populations.findings(host.as_ref()),
            captured: intake.captured,
            link_losses: intake.link_losses,
            changes: intake.changes,
            queues: intake.queues,
            curves: intake.curves,
            host,
        })
    }

    /// The findings without series and distributions, which take most of their room.
    pub(crate) fn without_curves(self) -> Self {
        Self {
            curves: Curves::default(),
            ..self
        }
    }

    /// The folder that the report is made of.
    #[must_use]
    pub fn main(&self) -> &Side {
        &self.sides[self.main]
    }

    pub(crate) fn study(&self) -> &StudyDescription {
        &self.main().study
    }

    /// True where there is one policy in one scenario: a chart that compares would have one bar.
    pub(crate) fn has_one_cell(&self) -> bool {
        let cells = (self.study().policies.len(), self.study().scenarios.len());
        cells == (1, 1) && self.populations.is_empty()
    }

    /// Place among the policies of runs of a policy in a phase.
    pub(crate) fn base_of(&self, policy: usize) -> usize {
        policy / self.study().phases.len().max(1)
    }

    /// Where scenarios stand, if all are numbers.
    pub(crate) fn x_axis(&self) -> Option<XAxis<'_>> {
        XAxis::of_scenarios(&self.study().scenarios)
    }

    /// The estimates of a policy in a scenario, by their places in the study.
    pub(crate) fn cell(&self, policy: usize, scenario: usize) -> Option<&CellSummary> {
        let policy = self.study().policies.get(policy)?;
        let scenario = self.study().scenarios.get(scenario)?;
        self.main().cell(&policy.name, &scenario.name)
    }

    /// Place of the scenario with most load that has runs: studies are written from light to heavy.
    pub(crate) fn heaviest_scenario(&self) -> usize {
        let has_runs = |name: &str| self.main().covered_scenarios().any(|it| it == name);
        let mut scenarios = self.study().scenarios.iter();
        scenarios.rposition(|s| has_runs(&s.name)).unwrap_or(0)
    }
}

/// The axis of scenarios that are numbers.
#[derive(Debug, Serialize)]
pub(crate) struct XAxis<'a> {
    /// Quantity and unit.
    pub(crate) unit: &'a str,
    /// In the order of the scenarios.
    pub(crate) values: Vec<f64>,
}

impl<'a> XAxis<'a> {
    /// `None` where some scenario states no number.
    fn of_scenarios(scenarios: &'a [ScenarioDescription]) -> Option<Self> {
        let places = scenarios
            .iter()
            .map(|scenario| number_and_unit(&scenario.x));
        let places: Vec<(f64, &str)> = places.collect::<Option<_>>()?;
        let (_, unit) = *places.first()?;
        let values = places.iter().map(|(value, _)| *value).collect();
        Some(Self { unit, values })
    }
}

/// Where runs go when they are read.
struct Intake<'a> {
    builder: SummaryBuilder<'a>,
    populations: Populations,
    testbed: Testbed,
    damaged_runs: Vec<String>,
    captured: CapturedFindings,
    link_losses: LinkLosses,
    changes: Changes,
    queues: Queues,
    curves: Curves,
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
        self.populations.on_run(&record, folder.judged());
        self.testbed.on_run(&record);
        self.curves.on_run(&record, folder.judged());
        self.captured.on_run(&record);
        self.link_losses.on_run(&record);
        self.changes.on_run(&record);
        self.queues.on_run(&record);
        Ok(Some(record))
    }
}

/// Enough that neither thread waits long for the other; a record is some 100 kB.
const RUNS_READ_AHEAD: usize = 4;
