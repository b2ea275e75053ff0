//! Measured studies: the runs were carried out by others, and what is left of them is captures.

use crate::params::{ScenarioParams, SourceHeaders};
use crate::study::Study;
use slicewise_model::ClassMap;
use slicewise_stats::description::StudyDescription;
use slicewise_units::Duration;
use std::path::PathBuf;

/// How captures are to be read, and what they are of.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredStudy {
    /// The study as far as judging and reporting needs it. Without policies and scenarios where the
    /// file only tells slices; the number of repetitions is 0 where it does not say.
    pub description: StudyDescription,
    /// Which packets are whose, in the order of the slices.
    pub matches: Vec<ClassMap>,
    /// Width of a bin of the time series.
    pub bin: Duration,
    /// How long traffic was offered in a run, where that is known.
    pub duration: Option<Duration>,
    /// Where the captures are, where the file says so.
    pub captures: Option<CapturePatterns>,
    /// For each scenario and slice: the headers of the slice's first source, whose inter-arrival
    /// times are measured. None where the study does not know its sources: then the first flow
    /// seen.
    pub first_sources: Vec<Vec<Option<SourceHeaders>>>,
}

/// Paths of captures, with `{policy}`, `{scenario}`, `{repetition}` and `*` in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturePatterns {
    /// Folder of the study file: paths are relative to it.
    pub folder: PathBuf,
    /// Captured where packets were sent.
    pub sent: String,
    /// Captured where they were received.
    pub received: String,
    /// Captured in between, in the order packets pass.
    pub via: Vec<String>,
    /// Whoever has not arrived after so long is lost.
    pub loss_timeout: Option<Duration>,
}

impl CapturePatterns {
    /// The path of one run's captures. Still with `*` where the file has it.
    #[must_use]
    pub fn of_run(&self, pattern: &str, policy: &str, scenario: &str, repetition: u32) -> PathBuf {
        let path = pattern
            .replace("{policy}", policy)
            .replace("{scenario}", scenario)
            .replace("{repetition}", &format!("{repetition:03}"));
        self.folder.join(path)
    }
}

impl MeasuredStudy {
    /// Returns the measured study for captures of runs of `study`, which can be simulated.
    #[must_use]
    pub fn of_study(study: &Study, program_version: &str) -> Self {
        let first_source = |scenario: &ScenarioParams, slice: usize| {
            let of_sources = scenario.sources.iter().map(|s| (s.slice, s.headers));
            let of_applications = scenario.applications.iter().map(|s| (s.slice, s.headers));
            let mut all = of_sources.chain(of_applications);
            all.find(|(of, _)| *of == slice).map(|(_, headers)| headers)
        };
        let of_scenario = |scenario| {
            let slices = 0..study.slices.len();
            slices.map(|slice| first_source(scenario, slice)).collect()
        };
        let mut description = study.description(program_version);
        // What the simulator does not model is nothing that captures lack.
        description.assumptions.truncate(study.assumptions.len());
        // Packets passed the whole configuration.
        for policy in &mut description.policies {
            policy.not_judged = None;
        }
        Self {
            description,
            matches: study.slices.iter().map(|s| s.matches.clone()).collect(),
            bin: study.measure.bin,
            duration: Some(study.duration),
            captures: None,
            first_sources: study.scenarios.iter().map(of_scenario).collect(),
        }
    }
}
