//! Runs: what an executor is asked to do, and the seam it does it behind.

use crate::Study;
use slicewise_stats::record::{RunKey, RunRecord};

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
    /// Seed of everything random in traffic and hosts: depends on scenario and repetition only,
    /// so that every policy is offered the same packets (common random numbers).
    pub traffic_seed: u64,
}

impl RunSpec {
    /// What the record of this run is filed under; `None` where the spec is not of this study.
    #[must_use]
    pub fn key(&self, study: &Study) -> Option<RunKey> {
        Some(RunKey {
            policy: study.policies.get(self.policy)?.name.clone(),
            scenario: study.scenarios.get(self.scenario)?.name.clone(),
            repetition: self.repetition,
            seed: self.seed,
        })
    }
}

/// Something that can execute runs: the simulator, a gateway, a device in a laboratory.
pub trait Backend {
    /// Name, as written in results: "simulator".
    fn name(&self) -> &str;

    /// Whether several runs may go on at once; a real device carries out one at a time.
    fn is_concurrent(&self) -> bool {
        true
    }

    /// Carry out one run.
    ///
    /// # Errors
    /// Where the back end cannot do what the run asks, or fails doing it. The other runs of the
    /// study are not affected.
    fn run(&self, study: &Study, run: &RunSpec) -> Result<RunRecord, RunError>;
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
        /// What it lacks.
        what: String,
    },
    /// A file the run needs could not be used.
    #[error("{path}: {problem}")]
    Input {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// It started, and failed.
    #[error("{0}")]
    Failed(String),
}
