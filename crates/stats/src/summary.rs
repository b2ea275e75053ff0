//! Means over repetitions with confidence intervals, for each policy × scenario × slice.

use crate::application_summary::{self, ApplicationSummary};
use crate::description::StudyDescription;
use crate::estimate::{Estimate, valid_confidence};
use crate::observations::{Observations, RecordError, RunObservation};
pub use crate::quantity::Estimates;
use crate::quantity::Quantity;
use crate::record::{Figures, RunRecord};

/// All cells of a study that have runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Name of the study.
    pub study: String,
    /// Confidence of every interval, two-sided.
    pub confidence: f64,
    /// Repetitions requested by the study.
    pub repetitions: u32,
    /// Cells with at least one run: policies in the order of the study, then scenarios.
    pub cells: Vec<CellSummary>,
}

/// One policy under one scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct CellSummary {
    /// Policy name.
    pub policy: String,
    /// Scenario name.
    pub scenario: String,
    /// Number of runs, at least 1.
    pub repetitions: u32,
    /// The transient.
    pub transient: TransientSummary,
    /// In the order of the study.
    pub slices: Vec<SliceSummary>,
    /// Sources with an application, after the transient.
    pub applications: Vec<ApplicationSummary>,
    /// All slices together, after the transient.
    pub aggregate: Estimates,
}

/// The transients of a cell's runs.
#[derive(Debug, Clone, PartialEq)]
pub struct TransientSummary {
    /// Runs with a transient.
    pub found: u32,
    /// Runs that reached no steady state, or were too short to show one.
    pub not_reached: u32,
    /// Its end, ns, over the runs that have one.
    pub end_ns: Option<Estimate>,
    /// Rate received by all slices before its end, bit/s, over the same runs.
    pub throughput_before_bits_per_second: Option<Estimate>,
    /// Rate received by all slices after it, bit/s, over all runs.
    pub throughput_after_bits_per_second: Option<Estimate>,
}

/// One slice in one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct SliceSummary {
    /// Slice name.
    pub slice: String,
    /// After the transient.
    pub steady: Estimates,
    /// Over the whole run.
    pub whole: Estimates,
}

/// Accepts records one by one, and keeps only their scalars.
#[derive(Debug, Clone)]
pub struct SummaryBuilder<'a> {
    study: &'a StudyDescription,
    observations: Observations,
    runs: u64,
}

impl<'a> SummaryBuilder<'a> {
    /// No records yet; `study` as it is judged ([`StudyDescription::by_phase`]).
    #[must_use]
    pub fn new(study: &'a StudyDescription) -> Self {
        Self {
            study,
            observations: Observations::default(),
            runs: 0,
        }
    }

    /// Keep the scalars of a run, or of each of its phases.
    ///
    /// # Errors
    /// See [`Observations::add`].
    pub fn add(&mut self, record: &RunRecord) -> Result<(), RecordError> {
        let records = record.by_phase();
        (records.iter()).try_for_each(|record| self.observations.add(self.study, record))?;
        self.runs += 1;
        Ok(())
    }

    /// The scalars, for verdicts and published figures.
    #[must_use]
    pub fn observations(&self) -> &Observations {
        &self.observations
    }

    /// How many runs were added: one with phases counts once.
    #[must_use]
    pub const fn runs(&self) -> u64 {
        self.runs
    }

    /// True where runs name the policy, by its place in the study, `name`.
    #[must_use]
    pub fn is_run_as(&self, policy: usize, name: &str) -> bool {
        let policy = self.study.policies.get(policy);
        policy.is_some_and(|policy| self.study.policy_of_runs(&policy.name) == name)
    }

    /// True where a run of the policy was added, by its place in the study.
    #[must_use]
    pub fn has_runs_of_policy(&self, policy: usize) -> bool {
        self.observations.has_runs_of_policy(policy)
    }

    /// The summary of the runs added so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let study = self.study;
        let confidence = valid_confidence(study.margins.confidence);
        let mut cells = Vec::new();
        for (policy, policy_description) in study.policies.iter().enumerate() {
            for (scenario, scenario_description) in study.scenarios.iter().enumerate() {
                let runs: Vec<_> = self.observations.cell(policy, scenario).collect();
                if !runs.is_empty() {
                    let names = (&*policy_description.name, &*scenario_description.name);
                    cells.push(summarise_cell(study, names, &runs, confidence));
                }
            }
        }
        Summary {
            study: study.name.clone(),
            confidence,
            repetitions: study.repetitions,
            cells,
        }
    }
}

/// The summary of `records`, all of `study`.
///
/// # Errors
/// See [`Observations::add`].
pub fn summarise(study: &StudyDescription, records: &[RunRecord]) -> Result<Summary, RecordError> {
    let mut builder = SummaryBuilder::new(study);
    records.iter().try_for_each(|record| builder.add(record))?;
    Ok(builder.summary())
}

fn summarise_cell(
    study: &StudyDescription,
    (policy, scenario): (&str, &str),
    runs: &[&RunObservation],
    confidence: f64,
) -> CellSummary {
    let figures = |of: &dyn Fn(&RunObservation) -> Option<Figures>| {
        let figures: Vec<Figures> = runs.iter().filter_map(|run| of(run)).collect();
        let values = |quantity: Quantity| {
            let values = figures.iter().filter_map(|figures| quantity.over(figures));
            values.collect()
        };
        Estimates::new(Quantity::of_spans(), values, confidence)
    };
    let slices = study
        .slices
        .iter()
        .enumerate()
        .map(|(index, slice)| SliceSummary {
            slice: slice.name.clone(),
            steady: figures(&|run| run.slices.get(index).map(|s| s.steady)),
            whole: figures(&|run| run.slices.get(index).map(|s| s.whole)),
        });
    CellSummary {
        applications: application_summary::summarise(runs, confidence),
        policy: policy.to_owned(),
        scenario: scenario.to_owned(),
        repetitions: count(runs.iter()),
        transient: summarise_transients(runs, confidence),
        slices: slices.collect(),
        aggregate: figures(&|run| Some(run.aggregate)),
    }
}

fn summarise_transients(runs: &[&RunObservation], confidence: f64) -> TransientSummary {
    let transients = || runs.iter().map(|run| run.transient);
    let found = || transients().filter(|t| t.end_ns > 0);
    let estimate = |values: Vec<f64>| Estimate::of(&values, confidence);
    TransientSummary {
        found: count(found()),
        not_reached: count(transients().filter(|t| !t.steady_state_reached)),
        end_ns: estimate(found().map(|t| t.end_ns as f64).collect()),
        throughput_before_bits_per_second: estimate(
            found()
                .map(|t| t.throughput_before_bits_per_second)
                .collect(),
        ),
        throughput_after_bits_per_second: estimate(
            transients()
                .map(|t| t.throughput_after_bits_per_second)
                .collect(),
        ),
    }
}

fn count<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}
