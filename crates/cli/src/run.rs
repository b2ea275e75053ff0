//! `slicewise run`: every policy under every load, then verdicts and a report.

use crate::Failure;
use crate::arguments::{BackendName, RunOptions};
use crate::captures;
use crate::check::{load_study, note_too_few_repetitions, warn};
use crate::executor::{self, Outcome, RunEvent};
use crate::exit::Exit;
use crate::progress::Progress;
use crate::report::{beside_default, write_report};
use crate::results::{open_results, results_failure, results_path};
use crate::seeds;
use crate::testbed_run;
use crate::{errln, noteln};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use slicewise_results::host::HostFacts;
use slicewise_results::{ResultsError, ResultsFolder};
use slicewise_sim::{Simulator, capture};
use slicewise_stats::record::RunKey;
use slicewise_stats::words;
use slicewise_study::{Backend, RunFilter, RunSpec, Study};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// Failed runs whose reasons are printed; the rest are only counted.
const FAILURES_PRINTED: usize = 10;

pub fn run(options: &RunOptions) -> Result<Exit, Failure> {
    let mut study = load_study(&options.study)?;
    warn(study.warnings());
    if options.quick {
        study = study.into_quick();
    }
    study.repetitions = options.repetitions.unwrap_or(study.repetitions);
    study.seed = options.seed.unwrap_or(study.seed);
    if let Some(count) = options.seeds {
        return seeds::run(options, &study, count);
    }
    match options.on {
        BackendName::Sim => simulate(options, &study),
        _ => testbed_run::run(options, study),
    }
}

fn simulate(options: &RunOptions, study: &Study) -> Result<Exit, Failure> {
    if options.tolerate_noise {
        return Err(Failure::mistake(
            "`--tolerate-noise` is for real packets: a simulation has none",
        ));
    }
    let runs = wanted_runs(options, study)?;
    let simulator = simulator(options, study)?;
    let description = study.description(env!("CARGO_PKG_VERSION"));
    let suffix = if options.quick { "-quick" } else { "" };
    let path = results_path(options.out.as_deref(), &study.name, suffix);
    let folder = open_results(&path, &description, options.replace)?;
    if let Some(root) = &options.captures {
        let names = &capture::FILE_NAMES;
        captures::check(
            root,
            names,
            capture::is_replaceable,
            (study, &runs),
            &folder,
        )?;
    }
    note_too_few_repetitions(study);
    let jobs = options.jobs.map_or_else(processors, NonZeroU32::get);
    let interrupt = on_interrupt("finishing the runs in progress")?;
    let work = Work {
        study,
        folder: &folder,
        backend: &simulator,
        runs: &runs,
        jobs,
        interrupt: &interrupt,
        what: "runs",
    };
    let (outcome, exit) = work.carry_out(Progress::new(runs.len() as u64))?;
    if let Some(captures) = &options.captures {
        captures::report(&outcome, captures);
    }
    report_of(options, &folder, &outcome, exit)
}

/// The runs that the command line asks for.
pub fn wanted_runs(options: &RunOptions, study: &Study) -> Result<Vec<RunSpec>, Failure> {
    let filter = RunFilter {
        policies: options.policies.clone(),
        scenarios: options.scenarios.clone(),
        ..RunFilter::default()
    };
    study.runs(&filter).map_err(Failure::mistake)
}

/// The simulator, with captures where they are asked for.
fn simulator(options: &RunOptions, study: &Study) -> Result<Simulator, Failure> {
    let simulator = Simulator::default();
    let Some(root) = &options.captures else {
        return Ok(simulator);
    };
    if !study.populations.is_empty() {
        return Err(Failure::mistake(
            "the slices of this study are populations, whose frames have no headers: they cannot be \
             captured",
        ));
    }
    if (study.scenarios.iter()).any(|scenario| !scenario.applications.is_empty()) {
        return Err(Failure::mistake(
            "sources of this study have an `application`, whose simulated connections cannot be captured: leave the \
             option out, choose scenarios of a study without such sources, or run it `--on gateway`",
        ));
    }
    let snap_bytes = options.snap_length.unwrap_or(capture::DEFAULT_SNAP_BYTES);
    Ok(simulator.with_captures(root.clone(), snap_bytes))
}

/// Runs to carry out, and by whom.
pub struct Work<'a> {
    pub study: &'a Study,
    pub folder: &'a ResultsFolder,
    pub backend: &'a (dyn Backend + Sync),
    pub runs: &'a [RunSpec],
    pub jobs: u32,
    pub interrupt: &'a AtomicBool,
    /// What they are called.
    pub what: &'static str,
}

impl Work<'_> {
    /// Carry them out, write down what the host took for it, and say what became of them.
    pub fn carry_out(&self, mut progress: Progress) -> Result<(Outcome, Exit), Failure> {
        let started = Instant::now();
        let outcome = executor::execute(
            self.study,
            self.folder,
            self.backend,
            self.runs,
            self.jobs as usize,
            self.interrupt,
            |event| match event {
                RunEvent::Finished(key, time) => {
                    progress.on_run(&key.policy, &key.scenario);
                    let took = words::time(time.elapsed_ns as f64);
                    progress.detail(&format!("{}: done in {took}", run_name(key)));
                }
                RunEvent::Resumed(key) => {
                    progress.on_run(&key.policy, &key.scenario);
                    progress.detail(&format!("{}: kept from before", run_name(key)));
                }
                RunEvent::Failed(key, reason) => {
                    progress.on_run(&key.policy, &key.scenario);
                    progress.detail(&format!("{}: failed: {reason}", run_name(key)));
                }
                RunEvent::Damaged(what) => {
                    progress.warn(&format!("warning: {what}: this run is repeated"));
                }
                RunEvent::NotWritten(_) => {}
            },
        );
        progress.finish();
        if let Some(error) = &outcome.stopped_by {
            print_failed(&outcome.failed);
            return Err(not_written(error, self.folder));
        }
        let host = HostFacts {
            jobs: self.jobs,
            runs_done: outcome.finished as u64,
            elapsed_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            simulated: outcome.times.clone(),
            ..HostFacts::of_this_host()
        };
        let host = host.with_times_of(self.folder.read_host());
        self.folder.write_host(&host).map_err(results_failure)?;
        let exit = conclude(&outcome, self.runs.len(), self.what);
        Ok((outcome, exit))
    }
}

fn run_name(key: &RunKey) -> String {
    format!("{} / {} / {:03}", key.policy, key.scenario, key.repetition)
}

/// The report of what is there, unless the user stopped it.
pub fn report_of(
    options: &RunOptions,
    folder: &ResultsFolder,
    outcome: &Outcome,
    exit: Exit,
) -> Result<Exit, Failure> {
    if outcome.finished + outcome.resumed > 0 && exit != Exit::Interrupted {
        let beside = beside_default(options.out.as_deref(), folder.path());
        let judged = write_report(folder, &beside, &options.judgement)?;
        if exit == Exit::Success {
            return Ok(judged);
        }
    }
    Ok(exit)
}

/// Say what became of the runs, on standard error.
fn conclude(outcome: &Outcome, total: usize, what: &str) -> Exit {
    if outcome.resumed > 0 {
        noteln!(
            "{} of {total} {what} were finished before and are kept",
            outcome.resumed
        );
    }
    print_failed(&outcome.failed);
    if outcome.interrupted {
        let done = outcome.finished + outcome.resumed;
        errln!(
            "stopped: {done} of {total} {what} are on disk; the same command continues with the rest"
        );
        Exit::Interrupted
    } else if outcome.failed.is_empty() {
        Exit::Success
    } else {
        Exit::Failure
    }
}

fn print_failed(failed: &[(RunKey, String)]) {
    for (key, reason) in failed.iter().take(FAILURES_PRINTED) {
        errln!(
            "error: policy {}, scenario {}, repetition {}: {reason}",
            key.policy,
            key.scenario,
            key.repetition
        );
    }
    if failed.len() > FAILURES_PRINTED {
        errln!(
            "error: and {} more runs failed",
            failed.len() - FAILURES_PRINTED
        );
    }
}

/// What stopped the study, and what became of the runs that were finished.
fn not_written(error: &ResultsError, folder: &ResultsFolder) -> Failure {
    let kept = folder.runs_on_disk();
    let what_next = match (error, kept) {
        (ResultsError::Gone { .. }, 0) => {
            "no finished run is left there: restore the folder to continue, or run the study \
             again"
                .to_owned()
        }
        (ResultsError::Gone { .. }, _) => format!(
            "{kept} finished runs are left there, but not the file that identifies their study: \
             restore it to continue, or run the study again into another folder"
        ),
        _ => format!(
            "the study has stopped; {kept} finished runs are on disk, and the same command continues \
             with the rest once the folder can be written"
        ),
    };
    Failure::system(format!("{error}; {what_next}"))
}

pub fn processors() -> u32 {
    thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX))
}

/// A flag that the first Ctrl-C or SIGTERM sets; the second ends the process at once.
///
/// `meanwhile` says what happens after the first.
pub fn on_interrupt(meanwhile: &'static str) -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let handler = Arc::clone(&flag);
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Failure::system(format!("cannot listen for Ctrl-C: {error}")))?;
    thread::spawn(move || {
        for signal in signals.forever() {
            if handler.swap(true, Ordering::Relaxed) {
                // The exit code that shells give a process that a signal ended.
                std::process::exit(128 + signal);
            }
            errln!("\n{meanwhile}; press Ctrl-C again to stop at once");
        }
    });
    Ok(flag)
}
