//! Runs that are carried out, and what is said of them.

use crate::Failure;
use crate::arguments::{BackendName, RunOptions, Selection};
use crate::executor::{self, Outcome, RunEvent, Work};
use crate::exit::Exit;
use crate::judgement;
use crate::progress::Progress;
use crate::report::{beside_default, write_report};
use crate::results::{named_path, results_failure};
use crate::transactions;
use crate::{errln, noteln};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use slicewise_results::host::HostFacts;
use slicewise_results::{ResultsError, ResultsFolder};
use slicewise_stats::record::RunKey;
use slicewise_stats::words;
use slicewise_study::{RunFilter, RunSpec, Study};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Instant;

/// Failed runs whose reasons are printed; the rest are only counted.
const FAILURES_PRINTED: usize = 10;

/// The study with what the command line says instead.
pub fn as_asked(selection: &Selection, mut study: Study) -> Study {
    if selection.quick {
        study = study.into_quick();
    }
    study.repetitions = selection.repetitions.unwrap_or(study.repetitions);
    study.seed = selection.seed.unwrap_or(study.seed);
    study
}

/// The runs that the command line asks for.
pub fn wanted_runs(selection: &Selection, study: &Study) -> Result<Vec<RunSpec>, Failure> {
    let filter = RunFilter {
        policies: selection.policies.clone(),
        scenarios: selection.scenarios.clone(),
        ..RunFilter::default()
    };
    study.runs(&filter).map_err(Failure::mistake)
}

/// Returns the options with which a shard of the study, or series, of that name is carried out: in a folder of its own unless
/// the user names one. `None` without a shard.
pub fn options_of_shard(options: &RunOptions, name: &str) -> Result<Option<RunOptions>, Failure> {
    let Some(shard) = options.shard else {
        return Ok(None);
    };
    check_options_of_shard(options)?;
    let folder = format!("{name}{}{}", options.suffix(), shard.suffix());
    Ok(Some(RunOptions {
        out: Some(named_path(options.out.as_deref(), &folder)),
        ..options.clone()
    }))
}

/// Options that make no sense with a shard.
fn check_options_of_shard(options: &RunOptions) -> Result<(), Failure> {
    let why = if options.on != BackendName::Sim {
        "`--shard` is for the simulator: runs on real packets depend on the machine; leave out `--on`"
    } else if options.seeds.is_some() {
        "`--seeds` keeps no runs that could be collected: leave out `--shard`, or run a shard for each `--seed`"
    } else if options.captures.is_some() {
        "`slicewise collect` collects no captures: leave out `--shard`, or capture single policies and scenarios \
         (`--policy`, `--scenario`)"
    } else {
        return judgement::refuse_for_shard(&options.judgement);
    };
    Err(Failure::mistake(why))
}

/// The runs that the command line asks for of each study: those of the shard, if it names one.
pub fn runs_of_shard(
    options: &RunOptions,
    studies: &[Study],
) -> Result<Vec<Vec<RunSpec>>, Failure> {
    let runs = studies.iter();
    let runs = runs.map(|study| wanted_runs(&options.selection, study));
    let all = runs.collect::<Result<Vec<_>, _>>()?;
    let mut runs = all.clone();
    if let Some(shard) = options.shard {
        let total: usize = runs.iter().map(Vec::len).sum();
        shard.select(studies, &mut runs)?;
        shard.note(runs.iter().map(Vec::len).sum(), total);
    }
    transactions::check(options, studies, &all, &runs)?;
    Ok(runs)
}

/// Runs to carry out.
pub struct Execution<'a> {
    pub works: &'a [Work<'a>],
    pub jobs: u32,
    pub interrupt: &'a AtomicBool,
    /// Noun for the runs, for messages.
    pub what: &'static str,
}

impl Execution<'_> {
    /// Carry them out, write down what the host took for it, and say what became of them. `after` is called after each
    /// run, with the number of its work and its repetition.
    pub fn carry_out(
        &self,
        mut progress: Progress,
        mut after: impl FnMut(&Progress, usize, u32),
    ) -> Result<(Vec<Outcome>, Exit), Failure> {
        let started = Instant::now();
        let jobs = self.jobs as usize;
        let outcomes = executor::execute(self.works, jobs, self.interrupt, |number, event| {
            let key = match event {
                RunEvent::Finished(key, time) => {
                    let took = words::time(time.elapsed_ns as f64);
                    progress.detail(&format!("{}: done in {took}", self.run_name(number, key)));
                    key
                }
                RunEvent::Resumed(key) => {
                    progress.detail(&format!("{}: kept from before", self.run_name(number, key)));
                    key
                }
                RunEvent::Copied(key) => {
                    progress.detail(&format!(
                        "{}: as in another case",
                        self.run_name(number, key)
                    ));
                    key
                }
                RunEvent::Failed(key, reason) => {
                    progress.detail(&format!("{}: failed: {reason}", self.run_name(number, key)));
                    key
                }
                RunEvent::Damaged(what) => {
                    progress.warn(&format!("warning: {what}: this run is repeated"));
                    return;
                }
                RunEvent::NotWritten(_) => return,
            };
            progress.on_run(&self.policy_name(number, &key.policy), &key.scenario);
            after(&progress, number, key.repetition);
        });
        progress.finish();
        for (outcome, work) in outcomes.iter().zip(self.works) {
            if let Some(error) = &outcome.stopped_by {
                self.print_failed(&outcomes);
                return Err(not_written(error, work.folder));
            }
        }
        let elapsed = started.elapsed();
        for (outcome, work) in outcomes.iter().zip(self.works) {
            let host = HostFacts {
                jobs: self.jobs,
                runs_done: outcome.finished as u64,
                elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
                simulated: outcome.times.clone(),
                ..HostFacts::of_this_host()
            };
            let host = host.with_times_of(work.folder.read_host());
            work.folder.write_host(&host).map_err(results_failure)?;
        }
        let exit = self.conclude(&outcomes);
        Ok((outcomes, exit))
    }

    /// A policy, and of which study where there are several.
    fn policy_name(&self, work: usize, policy: &str) -> String {
        match self.works.get(work) {
            Some(work) if self.works.len() > 1 => format!("{}: {policy}", work.study.name),
            _ => policy.to_owned(),
        }
    }

    fn run_name(&self, work: usize, key: &RunKey) -> String {
        let policy = self.policy_name(work, &key.policy);
        format!("{policy} / {} / {:03}", key.scenario, key.repetition)
    }

    /// Say what became of the runs, on standard error.
    fn conclude(&self, outcomes: &[Outcome]) -> Exit {
        let total: usize = self.works.iter().map(|work| work.runs.len()).sum();
        let resumed: usize = outcomes.iter().map(|outcome| outcome.resumed).sum();
        let finished: usize = outcomes.iter().map(|outcome| outcome.finished).sum();
        let copied: usize = outcomes.iter().map(|outcome| outcome.copied).sum();
        let what = self.what;
        if resumed > 0 {
            noteln!("{resumed} of {total} {what} were finished before and are kept");
        }
        if copied > 0 {
            noteln!(
                "{copied} of {total} {what} are the same in several cases, and were carried out once"
            );
        }
        self.print_failed(outcomes);
        if outcomes.iter().any(|outcome| outcome.interrupted) {
            let done = finished + resumed + copied;
            errln!(
                "stopped: {done} of {total} {what} are on disk; the same command continues with the rest"
            );
            Exit::Interrupted
        } else if outcomes.iter().all(|outcome| outcome.failed.is_empty()) {
            Exit::Success
        } else {
            Exit::Failure
        }
    }

    fn print_failed(&self, outcomes: &[Outcome]) {
        let failed = outcomes.iter().enumerate();
        let failed = failed.flat_map(|(number, outcome)| {
            let failed = outcome.failed.iter();
            failed.map(move |(key, reason)| (number, key, reason))
        });
        for (number, key, reason) in failed.clone().take(FAILURES_PRINTED) {
            errln!(
                "error: policy {}, scenario {}, repetition {}: {reason}",
                self.policy_name(number, &key.policy),
                key.scenario,
                key.repetition
            );
        }
        let count = failed.count();
        if count > FAILURES_PRINTED {
            errln!("error: and {} more runs failed", count - FAILURES_PRINTED);
        }
    }
}

/// The report of what is there, unless the user stopped it.
pub fn report_of(
    options: &RunOptions,
    folder: &ResultsFolder,
    outcomes: &[Outcome],
    exit: Exit,
) -> Result<Exit, Failure> {
    let has_runs = outcomes.iter().any(Outcome::has_runs);
    if has_runs && exit != Exit::Interrupted {
        let beside = beside_default(options.out.as_deref(), folder.path());
        let judged = write_report(
            folder,
            &beside,
            &options.judgement,
            &options.selection.policies,
        )?;
        if exit == Exit::Success {
            return Ok(judged);
        }
    }
    Ok(exit)
}

/// Reports the error that stopped the study, and how many finished runs are on disk.
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

static INTERRUPT: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// A flag that the first Ctrl-C or SIGTERM sets; the second ends the process at once. All of a process is one.
///
/// `meanwhile` says what happens after the first.
pub fn on_interrupt(meanwhile: &'static str) -> Result<Arc<AtomicBool>, Failure> {
    if let Some(flag) = INTERRUPT.get() {
        return Ok(Arc::clone(flag));
    }
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Failure::system(format!("cannot listen for Ctrl-C: {error}")))?;
    let flag = Arc::clone(INTERRUPT.get_or_init(Arc::default));
    let handler = Arc::clone(&flag);
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

/// Stops runs as the first Ctrl-C does.
#[cfg(feature = "s3")]
pub fn stop_runs() {
    if let Some(flag) = INTERRUPT.get() {
        flag.store(true, Ordering::Relaxed);
    }
}
