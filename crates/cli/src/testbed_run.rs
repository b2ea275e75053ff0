//! `slicewise run --on gateway|tc|dpdk|lab.yaml`: the study on real packets, and beside it what the simulator predicts
//! of the same.

use crate::Failure;
use crate::arguments::{BackendName, RunOptions};
use crate::captures;
use crate::execution::{Execution, on_interrupt, processors, report_of, wanted_runs};
use crate::executor::Work;
use crate::exit::Exit;
use crate::lab;
use crate::load::note_before_runs;
use crate::progress::Progress;
use crate::results::{open_results, results_failure, results_path};
use crate::{errln, noteln};
use indicatif::HumanDuration;
use slicewise_model::policy::PolicyParams;
use slicewise_results::{ResultsFolder, Unsupported};
use slicewise_sim::Simulator;
use slicewise_stats::description::{StudyDescription, Unbounded};
use slicewise_stats::prediction::OfferedTraffic;
use slicewise_study::{Backend, Pacing, RunSpec, Study, StudyPolicy, TcpProfile};
use slicewise_testbed::{
    CAPTURE_NAMES, DeviceKind, DpdkProgram, Lease, LeaseError, Notice, Replay, Testbed, Tool,
    check_sources, missing_features,
};
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time to build up and take down a run, beside its duration, seconds: for the estimate that is printed at the start.
const OVERHEAD_SECONDS: u64 = 3;

pub fn run(options: &RunOptions, study: Study) -> Result<Exit, Failure> {
    if options.snap_length.is_some() {
        return Err(Failure::mistake(
            "`--snap-length` is for the simulator: captures of real packets keep 128 bytes of each",
        ));
    }
    let lab = lab::loaded(&options.on)?;
    if lab.is_none() {
        tools_are_there()?;
    }
    let as_written = study.clone();
    let study = study
        .into_testbed(options.on.pacing().unwrap_or(Pacing::Departures))
        .map_err(Failure::mistake)?;
    let wanted = runs_to_send(options, &study)?;
    let interrupt = on_interrupt("ending this run and cleaning up")?;
    let reserved = match lab {
        Some(lab) => lab::device(lab, (&study, &wanted), &interrupt)?.map(|device| (device, None)),
        None => {
            let device = device(options, &study)?;
            lease(&interrupt)?.map(|lease| (device, Some(lease)))
        }
    };
    let Some((device, lease)) = reserved else {
        return Ok(Exit::Interrupted);
    };
    let mut unsupported = unsupported(&study, &wanted, &device, lease.as_ref())?;
    let can_run = |index: usize| {
        let name = study.policies.get(index).map(|policy| &policy.name);
        wanted.iter().any(|run| run.policy == index)
            && !unsupported.iter().any(|one| Some(&one.policy) == name)
    };
    let again = measured_already(&as_written, &study, can_run);
    unsupported.extend(again);
    for one in &unsupported {
        errln!(
            "{}: not on {}: {}",
            one.policy,
            device.info().id,
            one.reason
        );
    }
    let asked_for: BTreeSet<usize> = wanted.iter().map(|run| run.policy).collect();
    let mut runs = ordered(wanted, &study, &unsupported);
    if device.is_set_by_hand() {
        runs.sort_by_key(|run| run.policy);
    }
    if runs.is_empty() {
        return Err(Failure::mistake(format!(
            "none of these policies can be run on {}",
            device.info().id
        )));
    }
    let description = describe(&study, &device);
    let path = results_path(options.out.as_deref(), &study, &options.suffix());
    let folder = open_results(&path, &description, options.force())?;
    if let Some(root) = &options.captures {
        let is_free = |path: &Path| Ok(path.symlink_metadata().is_err());
        captures::check(root, &CAPTURE_NAMES, is_free, (&study, &runs), &folder)?;
    }
    note_before_runs(&study);
    note_other_profiles(&study);
    if let Some(note) = study.descriptors_without_effect() {
        noteln!("note: {note}");
    }
    tell_unsupported(&folder, &study, &asked_for, unsupported)?;
    let predicted = predict(options, &study, &folder, &runs, &interrupt)?;
    if predicted == Exit::Interrupted {
        return Ok(Exit::Interrupted);
    }
    let measured = measure(options, &study, &folder, &runs, (device, lease), &interrupt)?;
    Ok(match measured {
        Exit::Success => predicted,
        other => other,
    })
}

/// The runs that are wanted of a study for a testbed: its hosts can send all of them.
pub fn runs_to_send(options: &RunOptions, study: &Study) -> Result<Vec<RunSpec>, Failure> {
    let wanted = wanted_runs(&options.selection, study)?;
    can_be_sent(study, &wanted, &options.on)?;
    Ok(wanted)
}

/// Real packets are sent by the TCP of this machine.
fn note_other_profiles(study: &Study) {
    let applications = study.scenarios.iter().flat_map(|s| &s.applications);
    let others = applications.filter(|source| source.transport.profile != TcpProfile::Linux);
    let names: BTreeSet<&str> = others.map(|source| source.name.as_str()).collect();
    if !names.is_empty() {
        let names: Vec<&str> = names.into_iter().collect();
        noteln!(
            "the profile of `transport` is for the simulator; on real packets these sources use the TCP of this kernel: {}",
            names.join(", ")
        );
    }
}

/// All that are missing are named at once.
fn tools_are_there() -> Result<(), Failure> {
    let missing = Tool::missing();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|tool| tool.name()).collect();
    let mut packages: Vec<&str> = missing.iter().map(|tool| tool.package()).collect();
    packages.dedup();
    Err(Failure::mistake(format!(
        "real packets require programs that are not installed: {}; apt-get install {}",
        names.join(", "),
        packages.join(" ")
    )))
}

fn device(options: &RunOptions, study: &Study) -> Result<DeviceKind, Failure> {
    match &options.on {
        BackendName::Tc => return Ok(DeviceKind::Tc),
        BackendName::Dpdk => {
            let program = DpdkProgram::find().map_err(Failure::mistake)?;
            return Ok(DeviceKind::Dpdk(program));
        }
        BackendName::Gateway | BackendName::Sim | BackendName::Lab(_) => {}
    }
    let program = std::env::current_exe().map_err(|error| {
        Failure::system(format!("cannot find the executable of slicewise: {error}"))
    })?;
    let file = std::path::absolute(&options.selection.study).map_err(|error| {
        Failure::system(format!("{}: {error}", options.selection.study.display()))
    })?;
    Ok(DeviceKind::Gateway {
        program,
        study: file,
        case: case_of(study),
        digest: study.digest().to_owned(),
    })
}

/// The study as one of several, for a gateway that reads the file: a point by its coordinates, for a search adds points
/// that the file does not have; by its name where coordinates would not be read back.
fn case_of(study: &Study) -> Option<String> {
    let coordinates = study.coordinates.iter();
    let coordinates: Vec<String> = coordinates
        .map(|value| format!("{}={}", value.axis, value.text))
        .collect();
    let is_plain = coordinates.iter().all(|one| !one.contains(','));
    match coordinates.is_empty() || !is_plain {
        true => study.case.clone(),
        false => Some(coordinates.join(",")),
    }
}

/// Every scenario that is wanted can be offered by hosts of a testbed.
fn can_be_sent(study: &Study, wanted: &[RunSpec], on: &BackendName) -> Result<(), Failure> {
    let of_scenario = |index| wanted.iter().any(|run| run.scenario == index);
    let scenarios = study.scenarios.iter().enumerate();
    scenarios
        .filter(|(index, _)| of_scenario(*index))
        .try_for_each(|(index, scenario)| match on {
            BackendName::Lab(_) => slicewise_testbed::lab::check_sources(scenario),
            _ => check_sources(study, index),
        })
        .map_err(Failure::mistake)
}

/// `None` where the user stopped waiting for it.
fn lease(interrupt: &AtomicBool) -> Result<Option<Lease>, Failure> {
    let waiting =
        || noteln!("another testbed is running on this machine: waiting for it to finish");
    let left_over = |what: &str| noteln!("deleted {what}, left by a testbed that was killed");
    let is_interrupted = || interrupt.load(Ordering::Relaxed);
    match Lease::take(waiting, left_over, is_interrupted) {
        Ok(lease) => Ok(Some(lease)),
        Err(LeaseError::Interrupted) => Ok(None),
        Err(error @ LeaseError::Privileges) => Err(Failure::mistake(error)),
        Err(error @ (LeaseError::Folder { .. } | LeaseError::LeftOver(_))) => {
            Err(Failure::system(error))
        }
    }
}

/// Policies that the device cannot run, and why.
fn unsupported(
    study: &Study,
    wanted: &[RunSpec],
    device: &DeviceKind,
    lease: Option<&Lease>,
) -> Result<Vec<Unsupported>, Failure> {
    let missing = lease.map_or_else(
        || Ok(Vec::new()),
        |lease| missing_features(lease, device.features()).map_err(Failure::system),
    )?;
    let policies = study.policies.iter().enumerate();
    let is_wanted = |index| wanted.iter().any(|run| run.policy == index);
    let refused = policies.filter_map(|(index, policy)| {
        if !is_wanted(index) {
            return None;
        }
        let reasons = device.supports(policy, study, &missing).err()?;
        let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
        Some(Unsupported {
            policy: policy.name.clone(),
            reason: reasons.join("; "),
        })
    });
    Ok(refused.collect())
}

/// Policies that differ from an earlier one by their modelled devices alone, which are one device on a testbed.
fn measured_already(
    as_written: &Study,
    study: &Study,
    can_run: impl Fn(usize) -> bool,
) -> Vec<Unsupported> {
    let runs_as = |study: &Study, one: usize, other: usize| {
        let policies = (study.policies.get(one)).zip(study.policies.get(other));
        policies.is_some_and(|(one, other)| {
            let params = PolicyParams {
                name: other.params.name.clone(),
                ..one.params.clone()
            };
            let device = |policy: &StudyPolicy| policy.device.unwrap_or(study.dut);
            params == other.params && device(one) == device(other)
        })
    };
    let of_phases = |one, other| {
        let mut phases = study.phases.iter();
        phases.all(|phase| runs_as(&phase.study, one, other))
    };
    let alike = (0..study.policies.len())
        .filter(|one| can_run(*one))
        .filter_map(|one| {
            let earlier = (0..one).find(|&other| {
                can_run(other)
                    && !runs_as(as_written, one, other)
                    && runs_as(study, one, other)
                    && of_phases(one, other)
            })?;
            Some((study.policies.get(one)?, study.policies.get(earlier)?))
        });
    alike
        .map(|(policy, earlier)| Unsupported {
            policy: policy.name.clone(),
            reason: format!(
                "it differs from {} by the device that is modelled, and here it would be the same run",
                earlier.name
            ),
        })
        .collect()
}

/// Writes down what cannot be run, and keeps the entries of policies that were not selected this time.
fn tell_unsupported(
    folder: &ResultsFolder,
    study: &Study,
    asked_for: &BTreeSet<usize>,
    unsupported: Vec<Unsupported>,
) -> Result<(), Failure> {
    let mut all = folder.read_unsupported().map_err(results_failure)?;
    all.retain(|one| {
        let policy = study.policies.iter().position(|p| p.name == one.policy);
        policy.is_some_and(|policy| !asked_for.contains(&policy))
    });
    all.extend(unsupported);
    folder.write_unsupported(&all).map_err(results_failure)
}

/// Repetition by repetition, and within each in an order that only seeds determine: what changes about the
/// machine meanwhile is spread over all cells.
fn ordered(mut runs: Vec<RunSpec>, study: &Study, unsupported: &[Unsupported]) -> Vec<RunSpec> {
    runs.retain(|run| {
        let policy = study.policies.get(run.policy);
        policy.is_some_and(|policy| unsupported.iter().all(|one| one.policy != policy.name))
    });
    runs.sort_by_key(|run| (run.repetition, run.seed));
    runs
}

/// The study as it is on a live device. A proved bound of delay presupposes departures on time and bursts as
/// promised, which a host that others use cannot vouch for: none is judged.
fn describe(study: &Study, device: &DeviceKind) -> StudyDescription {
    let mut description = study.description(env!("CARGO_PKG_VERSION"));
    description.backend = device.info().id.to_owned();
    description.dut = device.describe(study.dut.capacity());
    for policy in &mut description.policies {
        let why = "the bound is proved for frames that leave on time, which a shared host cannot guarantee";
        let scenario = study.scenarios.first().map(|s| s.name.clone());
        // Nor is the scheduler's part, which is not measured.
        for unbounded in &mut policy.unbounded {
            unbounded.scheduler_ns = None;
        }
        let bounds = std::mem::take(&mut policy.delay_bounds);
        let unbounded = bounds.into_keys().map(|slice| Unbounded {
            slice,
            scenario: scenario.clone().unwrap_or_default(),
            why: why.to_owned(),
            scheduler_ns: None,
        });
        policy.unbounded.extend(unbounded);
    }
    description
}

/// Simulates the same runs before they are measured.
fn predict(
    options: &RunOptions,
    study: &Study,
    folder: &ResultsFolder,
    runs: &[RunSpec],
    interrupt: &AtomicBool,
) -> Result<Exit, Failure> {
    let description = study.description(env!("CARGO_PKG_VERSION"));
    let path = folder.prediction_path(OfferedTraffic::AsStudied);
    let folder = open_results(&path, &description, options.force())?;
    noteln!("predicting {} runs", runs.len());
    let work = Work {
        study,
        folder: &folder,
        backend: &Simulator::default(),
        runs,
        transactions: false,
    };
    let execution = Execution {
        works: &[work],
        jobs: options.jobs.map_or_else(processors, NonZeroU32::get),
        interrupt,
        what: "predictions",
    };
    let progress = Progress::new(runs.len() as u64);
    let (_, exit) = execution.carry_out(progress, |_, _, _| {})?;
    Ok(exit)
}

/// Simulates each run that is taken once more, of the packets that were sent in it.
fn replay(
    options: &RunOptions,
    study: &Study,
    folder: &ResultsFolder,
    notice: Notice,
) -> Result<Replay, Failure> {
    let description = study.description(env!("CARGO_PKG_VERSION"));
    let path = folder.prediction_path(OfferedTraffic::AsSent);
    let folder = open_results(&path, &description, options.force())?;
    let study = study.clone();
    Ok(Box::new(move |run, sources| {
        let simulated = Simulator::offering(sources).run(&study, run);
        let written = match simulated {
            Ok(record) => folder.write_run(&record).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(why) = written {
            notice(&format!(
                "a run was measured but could not be simulated again: {why}"
            ));
        }
    }))
}

fn measure(
    options: &RunOptions,
    study: &Study,
    folder: &ResultsFolder,
    runs: &[RunSpec],
    (device, lease): (DeviceKind, Option<Lease>),
    interrupt: &Arc<AtomicBool>,
) -> Result<Exit, Failure> {
    let seconds = study.duration.nanos() / 1_000_000_000 + OVERHEAD_SECONDS;
    let kept = usize::try_from(folder.runs_on_disk()).unwrap_or(usize::MAX);
    let left = runs.len().saturating_sub(kept);
    noteln!(
        "measuring {} runs on {}, {} at least",
        runs.len(),
        device.info().id,
        HumanDuration(Duration::from_secs(left as u64 * seconds))
    );
    let progress = Progress::new(runs.len() as u64);
    let mut testbed = Testbed::new(
        device,
        lease,
        Arc::clone(interrupt),
        Box::new(progress.printer()),
    );
    if let Some(root) = &options.captures {
        testbed = testbed.with_captures(root.clone());
    }
    let replay = replay(options, study, folder, Box::new(progress.printer()))?;
    testbed = testbed.with_replay(replay);
    if options.tolerate_noise {
        testbed = testbed.tolerating_noise();
    }
    let work = Work {
        study,
        folder,
        backend: &testbed,
        runs,
        transactions: false,
    };
    let execution = Execution {
        works: &[work],
        jobs: 1,
        interrupt,
        what: "runs",
    };
    let (outcomes, exit) = execution.carry_out(progress, |_, _, _| {})?;
    if let Some(captures) = &options.captures {
        captures::report(&outcomes, captures);
    }
    report_of(options, folder, &outcomes, exit)
}
