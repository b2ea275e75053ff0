//! Measured studies: the runs were carried out by others, and what is left of them is captures.

use crate::check::Checker;
use crate::diagnostics::Diagnostics;
use crate::file::{self, Node, Problems, Value};
use crate::load::Opened;
use crate::params::SourceHeaders;
use crate::spec::MeasuredStudySpec;
use crate::study::Study;
use slicewise_model::ClassMap;
use slicewise_stats::description::StudyDescription;
use slicewise_units::Duration;
use std::path::{Path, PathBuf};

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
    /// Read the file at `path`: a measured study, slices alone, or a study that can be simulated,
    /// of which names, slices and margins are taken.
    ///
    /// # Errors
    /// Everything found wrong with it, each with its place.
    pub fn load(path: &Path, program_version: &str) -> Result<Self, Diagnostics> {
        let Opened {
            name,
            text,
            files,
            mut sources,
        } = Opened::at(path)?;
        let mut problems = Problems::default();
        let root = file::load(&name, text, &files, &mut sources, &mut problems);
        if root.as_ref().is_some_and(can_be_simulated) {
            return Ok(Self::of_study(&Study::load(path)?, program_version));
        }
        let study = root.as_ref().and_then(|root| {
            let spec: MeasuredStudySpec = file::decode(root, &mut problems)?;
            let mut checker = Checker {
                problems: &mut problems,
                sources: &mut sources,
                files: &files,
                root,
            };
            let folder = path.parent().unwrap_or(Path::new(""));
            checker.measured(&spec, folder, &name, program_version)
        });
        match study {
            Some(study) if problems.is_empty() => Ok(study),
            _ => Err(problems.into_diagnostics(&sources)),
        }
    }

    /// What a study that can be simulated says of captures of its runs.
    #[must_use]
    pub fn of_study(study: &Study, program_version: &str) -> Self {
        let first_source = |scenario: &crate::ScenarioParams, slice: usize| {
            let mut sources = scenario.sources.iter();
            sources
                .find(|source| source.slice == slice)
                .map(|source| source.headers)
        };
        let of_scenario = |scenario| {
            let slices = 0..study.slices.len();
            slices.map(|slice| first_source(scenario, slice)).collect()
        };
        Self {
            description: study.description(program_version),
            matches: study.slices.iter().map(|s| s.matches.clone()).collect(),
            bin: study.measure.bin,
            duration: Some(study.duration),
            captures: None,
            first_sources: study.scenarios.iter().map(of_scenario).collect(),
        }
    }
}

/// Whether a file is a study with everything that running it takes.
fn can_be_simulated(root: &Node) -> bool {
    let has = |key: &str| root.entry(key).is_some();
    let models_a_device = root
        .entry("dut")
        .is_some_and(|(_, dut)| matches!(dut.value, Value::Mapping(_)));
    models_a_device || has("sources") || has("populations")
}
