//! Plan of an analysis: one pair of captures, a folder of runs, or the runs of a measured study.

use super::files::{self, FoundRun, RunFiles};
use crate::Failure;
use crate::arguments::AnalyseOptions;
use sha2::{Digest, Sha256};
use slicewise_analysis::{MatchedSlice, RunLength, SliceRule};
use slicewise_stats::backend::CAPTURES;
use slicewise_stats::description::{
    Capacity, PolicyDescription, Scalability, ScenarioDescription, SliceLimit, StudyDescription,
};
use slicewise_stats::record::RunKey;
use slicewise_study::MeasuredStudy;
use slicewise_units::Duration;
use slicewise_wire::Headers;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Everything that is to be analysed.
#[derive(Debug)]
pub struct Plan {
    /// The study the runs are of. Without slices where these are found in the captures.
    pub description: StudyDescription,
    /// Width of a bin.
    pub bin: Duration,
    pub loss_timeout: Duration,
    pub runs: Vec<PlannedRun>,
}

/// One run.
#[derive(Debug)]
pub struct PlannedRun {
    pub key: RunKey,
    pub files: RunFiles,
    pub slices: SliceRule,
    pub length: Option<RunLength>,
}

/// RFC 7680 leaves the threshold to who measures; five seconds are beyond any queue.
const LOSS_TIMEOUT: Duration = Duration::from_secs(5);
const BIN: Duration = Duration::from_millis(50);
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Names under which one pair of captures is filed.
const ONE_POLICY: &str = "as-captured";
const ONE_SCENARIO: &str = "as-captured";

/// Returns the plan for the arguments.
pub fn plan(options: &AnalyseOptions) -> Result<Plan, Failure> {
    if options.loss_timeout == Some(Duration::ZERO) {
        return Err(Failure::mistake("--loss-timeout: must be longer than zero"));
    }
    let study = match options.study.as_ref().or(options.slices.as_ref()) {
        Some(path) => Some(
            MeasuredStudy::load(path, VERSION).map_err(|found| Failure::mistakes(found, path))?,
        ),
        None => None,
    };
    let found = match (&options.study, &options.runs, study.as_ref()) {
        (Some(path), None, Some(study)) => runs_of_study(path, study)?,
        (None, Some(folder), _) => files::runs_below(folder)?,
        _ => vec![one_run(options)?],
    };
    let mut plan = Plan {
        bin: options
            .interval
            .unwrap_or_else(|| study.as_ref().map_or(BIN, |study| study.bin)),
        loss_timeout: loss_timeout(options, study.as_ref()),
        description: describe(options, study.as_ref(), &found)?,
        runs: Vec::new(),
    };
    if let Some(reference) = &options.reference {
        set_reference(&mut plan.description, reference)?;
    }
    for run in found {
        plan.runs
            .push(planned(options, study.as_ref(), &plan, run)?);
    }
    plan.description.digest = digest(options, &plan, plan.runs.iter())?;
    let of_policy = |policy: &PolicyDescription| {
        let of_scenario = |scenario: &ScenarioDescription| {
            let runs = plan.runs.iter();
            let of = |run: &&PlannedRun| {
                (&run.key.policy, &run.key.scenario) == (&policy.name, &scenario.name)
            };
            digest(options, &plan, runs.filter(of))
        };
        plan.description.scenarios.iter().map(of_scenario).collect()
    };
    let policies = plan.description.policies.iter();
    plan.description.inputs = policies.map(of_policy).collect::<Result<_, _>>()?;
    for run in &mut plan.runs {
        let key = &mut run.key;
        key.inputs = plan
            .description
            .inputs_of(&key.policy, &key.scenario)
            .to_owned();
    }
    Ok(plan)
}

fn loss_timeout(options: &AnalyseOptions, study: Option<&MeasuredStudy>) -> Duration {
    let of_study = study.and_then(|study| study.captures.as_ref()?.loss_timeout);
    options.loss_timeout.or(of_study).unwrap_or(LOSS_TIMEOUT)
}

fn one_run(options: &AnalyseOptions) -> Result<FoundRun, Failure> {
    let mut files = RunFiles {
        sent: files::matching_any(&options.sent)?,
        received: files::matching_any(&options.received)?,
        via: Vec::new(),
    };
    for pattern in &options.via {
        files.via.push(files::matching(pattern)?);
    }
    if let Some(file) = files.first_given_twice() {
        return Err(Failure::mistake(format!(
            "{}: given twice; each measuring point needs its own files",
            file.display()
        )));
    }
    Ok(FoundRun {
        policy: ONE_POLICY.to_owned(),
        scenario: ONE_SCENARIO.to_owned(),
        repetition: 0,
        files,
    })
}

/// The runs of a measured study, where it says that their captures are.
fn runs_of_study(path: &Path, study: &MeasuredStudy) -> Result<Vec<FoundRun>, Failure> {
    let Some(captures) = &study.captures else {
        return Err(Failure::mistake(format!(
            "{}: it does not say where the captures are: add `captures`, or name them with `--sent` and \
             `--received` with `--slices {0}`",
            path.display()
        )));
    };
    let description = &study.description;
    let mut runs = Vec::new();
    for policy in &description.policies {
        for scenario in &description.scenarios {
            for repetition in 0..description.repetitions.max(1) {
                let (policy, scenario) = (policy.name.clone(), scenario.name.clone());
                let files_of = |pattern: &str| {
                    files::matching(&captures.of_run(pattern, &policy, &scenario, repetition))
                };
                let via: Result<_, _> = captures.via.iter().map(|point| files_of(point)).collect();
                let files = RunFiles {
                    sent: files_of(&captures.sent)?,
                    received: files_of(&captures.received)?,
                    via: via?,
                };
                runs.push(FoundRun {
                    policy,
                    scenario,
                    repetition,
                    files,
                });
            }
        }
    }
    Ok(runs)
}

/// The study as far as it is known: names come from a file, or from folders.
fn describe(
    options: &AnalyseOptions,
    study: Option<&MeasuredStudy>,
    found: &[FoundRun],
) -> Result<StudyDescription, Failure> {
    let mut description = study.map_or_else(unnamed, |study| study.description.clone());
    let is_one = options.study.is_none() && options.runs.is_none();
    if is_one {
        // Of a study's policies and scenarios, this is none in particular.
        description.policies = vec![policy(ONE_POLICY)];
        description.scenarios = vec![scenario(ONE_SCENARIO)];
        description.published.clear();
    }
    if description.policies.is_empty() {
        description.policies = unique(found, |run| &run.policy).map(policy).collect();
    }
    if description.scenarios.is_empty() {
        description.scenarios = unique(found, |run| &run.scenario).map(scenario).collect();
    }
    let repetitions = found.iter().map(|run| run.repetition + 1).max();
    description.repetitions = repetitions.unwrap_or(1);
    for run in found {
        known(
            "policy",
            &run.policy,
            description.policies.iter().map(|p| &p.name),
        )?;
        known(
            "scenario",
            &run.scenario,
            description.scenarios.iter().map(|s| &s.name),
        )?;
    }
    if study.is_none() && options.runs.is_some() {
        let folder = options.runs.as_deref().unwrap_or(Path::new(""));
        return Err(Failure::mistake(format!(
            "{}: cannot assign packets to slices: give `--slices FILE`, a file with `slices:`, or the \
             study that was run",
            folder.display()
        )));
    }
    Ok(description)
}

fn unique(found: &[FoundRun], name: fn(&FoundRun) -> &String) -> impl Iterator<Item = &str> {
    let names: std::collections::BTreeSet<&str> =
        found.iter().map(|run| name(run).as_str()).collect();
    names.into_iter()
}

fn known<'a>(
    what: &str,
    name: &str,
    mut names: impl Iterator<Item = &'a String>,
) -> Result<(), Failure> {
    if names.any(|known| known == name) {
        return Ok(());
    }
    Err(Failure::mistake(format!(
        "there are captures of {what} `{name}`, which the study does not define"
    )))
}

fn set_reference(description: &mut StudyDescription, reference: &str) -> Result<(), Failure> {
    let mut names = description.scenarios.iter().map(|scenario| &scenario.name);
    if !names.any(|name| name == reference) {
        let names = description.scenarios.iter().map(|scenario| &*scenario.name);
        return Err(Failure::mistake(format!(
            "--reference {reference}: no scenario has that name, only {}",
            names.collect::<Vec<_>>().join(", ")
        )));
    }
    for scenario in &mut description.scenarios {
        scenario.reference = scenario.name == reference;
    }
    Ok(())
}

fn planned(
    options: &AnalyseOptions,
    study: Option<&MeasuredStudy>,
    plan: &Plan,
    run: FoundRun,
) -> Result<PlannedRun, Failure> {
    let scenarios = &plan.description.scenarios;
    let scenario = scenarios.iter().position(|s| s.name == run.scenario);
    let first_sources = scenario.and_then(|index| study?.first_sources.get(index));
    let slices = match study {
        None => SliceRule::Automatic,
        Some(study) => {
            let slices = study.description.slices.iter().zip(&study.matches);
            let matched = slices.enumerate().map(|(index, (slice, matches))| {
                let source = first_sources.and_then(|sources| *sources.get(index)?);
                MatchedSlice {
                    name: slice.name.clone(),
                    matches: matches.clone(),
                    first_source: source.as_ref().map(Headers::from),
                    objective: slice.objective,
                }
            });
            SliceRule::Matched(matched.collect())
        }
    };
    let duration = options.duration.or(study.and_then(|study| study.duration));
    let cycle_ns = scenario.map_or(0, |index| scenarios[index].cycle_ns);
    let length = duration.map(|duration| RunLength {
        start_ns: None,
        duration,
        cycle: Duration::from_nanos(cycle_ns),
    });
    if let Some(length) = length
        && !length
            .duration
            .nanos()
            .is_multiple_of(plan.bin.nanos().max(1))
    {
        return Err(Failure::mistake(format!(
            "the run of {} is not a whole number of intervals of {}",
            length.duration, plan.bin
        )));
    }
    Ok(PlannedRun {
        key: RunKey {
            policy: run.policy,
            scenario: run.scenario,
            repetition: run.repetition,
            seed: plan.description.seed,
            inputs: String::new(),
        },
        files: run.files,
        slices,
        length,
    })
}

/// A study of which nothing is known but its captures.
fn unnamed() -> StudyDescription {
    StudyDescription {
        name: "captures".to_owned(),
        title: "Captures".to_owned(),
        program_version: VERSION.to_owned(),
        backend: CAPTURES.id.to_owned(),
        dut: "not stated (measured from captures)".to_owned(),
        repetitions: 1,
        capacity: Capacity {
            varies: false,
            bits_per_second: 0,
            frame_overhead_bytes: 0,
            in_atm_cells: false,
        },
        ..StudyDescription::default()
    }
}

fn policy(name: &str) -> PolicyDescription {
    PolicyDescription {
        name: name.to_owned(),
        title: name.to_owned(),
        configuration: String::new(),
        scalability: Scalability {
            slices: SliceLimit::NotStated,
            limited_by: "none is stated".to_owned(),
            source: "not visible in captures".to_owned(),
        },
        delay_bounds: BTreeMap::new(),
        round_ns: 0,
        unbounded: Vec::new(),
        not_judged: None,
        rests_on: Vec::new(),
        published_verdict: None,
        phase: None,
    }
}

fn scenario(name: &str) -> ScenarioDescription {
    ScenarioDescription {
        name: name.to_owned(),
        title: name.to_owned(),
        ..ScenarioDescription::default()
    }
}

/// Returns a digest of all that the records of `runs` depend on: how they are analysed, and their files by name, length
/// and time of change. Their content would take as long to read as the analysis.
fn digest<'a>(
    options: &AnalyseOptions,
    plan: &Plan,
    runs: impl Iterator<Item = &'a PlannedRun>,
) -> Result<String, Failure> {
    let mut hash = Sha256::new();
    let mut part = |text: String| {
        hash.update(text.len().to_le_bytes());
        hash.update(text.as_bytes());
    };
    part(format!(
        "{} {} {} {}",
        plan.bin.nanos(),
        plan.loss_timeout.nanos(),
        options.accept_clock_estimate,
        options.inner,
    ));
    for run in runs {
        part(format!("{:?} {:?} {:?}", run.key, run.slices, run.length));
        for file in run.files.all() {
            part(file.display().to_string());
            let facts = std::fs::metadata(file)
                .ok()
                .filter(std::fs::Metadata::is_file);
            let Some(facts) = facts else {
                // Standard input and pipes hold something else each time.
                part(format!(
                    "{} {:?}",
                    std::process::id(),
                    std::time::SystemTime::now()
                ));
                continue;
            };
            let changed = facts.modified().ok();
            let changed = changed.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
            part(format!("{} {changed:?}", facts.len()));
        }
    }
    let mut text = String::new();
    for byte in hash.finalize() {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}
