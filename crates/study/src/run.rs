//! Runs: what an executor is asked to do, and the seam it does it behind.

use crate::Study;
use crate::diagnostics::suggestion;
use crate::seed::{device_seed, traffic_seed};
use slicewise_stats::application::SourceTransactions;
use slicewise_stats::backend::BackendInfo;
use slicewise_stats::record::{RunKey, RunRecord};
use slicewise_traffic::SourceError;
use std::path::Path;

/// One run of a study. Pure: the same study and the same spec give the same record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RunSpec {
    /// Index of the policy in the study.
    pub policy: usize,
    /// Index of the scenario in the study.
    pub scenario: usize,
    /// Repetition, from 0.
    pub repetition: u32,
    /// Seed of everything random in the device: depends on policy, scenario and repetition.
    pub seed: u64,
    /// The study's seed, from which those of its sources follow.
    pub study_seed: u64,
}

impl RunSpec {
    /// Seed of everything random in the source, or population, of that name: depends on the name and the
    /// repetition only, so that every policy and every scenario is offered the same packets of it
    /// (common random numbers).
    #[must_use]
    pub fn source_seed(&self, source: &str) -> u64 {
        traffic_seed(self.study_seed, source, self.repetition)
    }

    /// Returns the key of this run's record; `None` where the spec is not of this study.
    #[must_use]
    pub fn key(&self, study: &Study) -> Option<RunKey> {
        Some(RunKey {
            policy: study.policies.get(self.policy)?.name.clone(),
            scenario: study.scenarios.get(self.scenario)?.name.clone(),
            repetition: self.repetition,
            seed: self.seed,
            inputs: study.inputs(self.policy, self.scenario, self.study_seed)?,
        })
    }
}

/// Which runs of a study; the default is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only these policies; empty for all.
    pub policies: Vec<String>,
    /// Only these scenarios; empty for all.
    pub scenarios: Vec<String>,
    /// So many repetitions instead of the study's.
    pub repetitions: Option<u32>,
}

/// Why a filter does not fit a study.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The study has no such policy or scenario.
    #[error("the study has no {kind} `{name}`{}", help.as_ref().map(|h| format!(": {h}")).unwrap_or_default())]
    Unknown {
        /// "policy" or "scenario".
        kind: &'static str,
        /// The name asked for.
        name: String,
        /// Name that was probably meant.
        help: Option<String>,
    },
    /// No repetition at all was asked for.
    #[error("0 repetitions: there would be nothing to run")]
    NoRepetitions,
}

impl Study {
    /// The runs that `filter` leaves, by policy, scenario and repetition. The seed of a run depends
    /// on names, not on positions or on what else is run.
    ///
    /// # Errors
    /// Where the filter names a policy or a scenario that the study does not have.
    pub fn runs(&self, filter: &RunFilter) -> Result<Vec<RunSpec>, FilterError> {
        let names: Vec<&str> = self
            .policies
            .iter()
            .map(|policy| policy.name.as_str())
            .collect();
        let policies = indices("policy", &names, &filter.policies)?;
        let names: Vec<&str> = self.scenarios.iter().map(|s| s.name.as_str()).collect();
        let scenarios = indices("scenario", &names, &filter.scenarios)?;
        let repetitions = filter.repetitions.unwrap_or(self.repetitions);
        if repetitions == 0 {
            return Err(FilterError::NoRepetitions);
        }
        let mut runs = Vec::new();
        for &(policy, policy_name) in &policies {
            for &(scenario, scenario_name) in &scenarios {
                runs.extend((0..repetitions).map(|repetition| RunSpec {
                    policy,
                    scenario,
                    repetition,
                    seed: device_seed(self.seed, policy_name, scenario_name, repetition),
                    study_seed: self.seed,
                }));
            }
        }
        Ok(runs)
    }
}

/// Positions and names of what is wanted, in the study's order.
fn indices<'a>(
    kind: &'static str,
    names: &[&'a str],
    wanted: &[String],
) -> Result<Vec<(usize, &'a str)>, FilterError> {
    if let Some(unknown) = wanted.iter().find(|name| !names.contains(&name.as_str())) {
        let help = suggestion(unknown, names);
        return Err(FilterError::Unknown {
            kind,
            name: unknown.clone(),
            help,
        });
    }
    let all = names.iter().copied().enumerate();
    Ok(all
        .filter(|(_, name)| wanted.is_empty() || wanted.iter().any(|w| w == name))
        .collect())
}

/// Something that can execute runs: the simulator, a gateway, a device in a laboratory.
pub trait Backend {
    /// Which one it is.
    fn info(&self) -> BackendInfo;

    /// Returns true if several runs may go on at once; a real device carries out one at a time.
    fn is_concurrent(&self) -> bool {
        true
    }

    /// Carry out one run.
    ///
    /// # Errors
    /// Where the back end cannot do what the run asks, or fails doing it. The other runs of the
    /// study are not affected.
    fn run(&self, study: &Study, run: &RunSpec) -> Result<RunRecord, RunError>;

    /// Carry out one run, and return what its applications asked for, too: the record is that of [`run`](Self::run).
    ///
    /// # Errors
    /// As [`run`](Self::run); [`RunError::Unsupported`] unless the back end knows each of them.
    fn run_with_transactions(
        &self,
        _study: &Study,
        _run: &RunSpec,
    ) -> Result<(RunRecord, Vec<SourceTransactions>), RunError> {
        Err(RunError::Unsupported {
            backend: self.info().id.to_owned(),
            what: "transactions one by one".to_owned(),
        })
    }
}

/// Why a run gave no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The run is not one of this study.
    #[error("run {0:?} is not of this study")]
    UnknownRun(RunSpec),
    /// The study asks for something this back end does not have.
    #[error("{backend} cannot run this: {what}")]
    Unsupported {
        /// The back end.
        backend: String,
        /// Feature that it lacks.
        what: String,
    },
    /// A file the run needs could not be used.
    #[error("{path}: {problem}")]
    Input {
        /// The file.
        path: String,
        /// Description of the problem.
        problem: String,
    },
    /// It started, and failed.
    #[error("{0}")]
    Failed(String),
    /// The user stopped it.
    #[error("stopped")]
    Interrupted,
}

impl From<SourceError> for RunError {
    fn from(error: SourceError) -> Self {
        let input = |path: &Path, problem| Self::Input {
            path: path.display().to_string(),
            problem,
        };
        match &error {
            SourceError::RateZero(_) | SourceError::NeverOn(_) | SourceError::NoSize(_) => {
                Self::Failed(error.to_string())
            }
            SourceError::Unopened { path, error } => input(path, error.to_string()),
            SourceError::Replay { path, error } => input(path, error.to_string()),
        }
    }
}
