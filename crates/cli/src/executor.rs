//! Carries out the runs of a study, several at a time; each finished run is on disk at once.

use slicewise_report::{ReportError, write_transactions};
use slicewise_results::host::RunTime;
use slicewise_results::{Action, AtomicFile, ResultsError, ResultsFolder};
use slicewise_stats::application::SourceTransactions;
use slicewise_stats::record::{RunKey, RunRecord};
use slicewise_study::{Backend, RunError, RunSpec, Study};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Outcome of one run.
#[derive(Debug)]
pub enum RunEvent {
    /// Carried out and written, and how long carrying out took.
    Finished(RunKey, RunTime),
    /// Its record of an earlier command is there and sound.
    Resumed(RunKey),
    /// It is the same run as one of another work, whose record it got.
    Copied(RunKey),
    /// A record was there but cannot be read or trusted; the run is carried out again.
    Damaged(String),
    /// No record: the back end failed.
    Failed(RunKey, String),
    /// No record, because it could not be written: nor could those of other runs.
    NotWritten(ResultsError),
}

/// Outcome of all runs.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Runs carried out.
    pub finished: usize,
    /// By policy, then scenario: how long those took.
    pub times: BTreeMap<String, BTreeMap<String, RunTime>>,
    /// Runs found finished.
    pub resumed: usize,
    /// Runs of which another work has the same.
    pub copied: usize,
    /// Runs that gave no record, and why.
    pub failed: Vec<(RunKey, String)>,
    /// Stopped before all were done.
    pub interrupted: bool,
    /// Results cannot be written any more, and why: no further runs were taken.
    pub stopped_by: Option<ResultsError>,
}

/// Runs of a study, by whom they are carried out, and where their records go.
pub struct Work<'a> {
    pub study: &'a Study,
    pub folder: &'a ResultsFolder,
    pub backend: &'a (dyn Backend + Sync),
    pub runs: &'a [RunSpec],
    /// Transactions are written, too.
    pub transactions: bool,
}

impl Work<'_> {
    /// Most transactions of a run that are to be written.
    pub fn transactions_of(&self, run: &RunSpec) -> u64 {
        match self.transactions {
            true => self.study.most_transactions(run.policy, run.scenario),
            false => 0,
        }
    }
}

/// Carry out the runs of `works`, at most `jobs` at a time, reporting each to `on_event` from this thread with the
/// number of its work. Runs of several works take turns, repetition by repetition, and one that several works have is
/// simulated once. Stops taking new runs once `interrupt` is set, or once a record could not be written; those going on
/// are finished.
pub fn execute(
    works: &[Work<'_>],
    jobs: usize,
    interrupt: &AtomicBool,
    mut on_event: impl FnMut(usize, &RunEvent),
) -> Vec<Outcome> {
    let stop = AtomicBool::new(false);
    let mut outcomes: Vec<Outcome> = works.iter().map(|_| Outcome::default()).collect();
    let is_concurrent = works.iter().all(|work| work.backend.is_concurrent());
    let jobs = if is_concurrent { jobs } else { 1 };
    // A record says nothing of single transactions.
    let may_share = is_concurrent && works.iter().all(|work| !work.transactions);
    for runs in turns(works, may_share) {
        in_parallel(
            &runs,
            jobs,
            &[interrupt, &stop],
            |turn, send| {
                run_one(turn, |event| {
                    if matches!(event, RunEvent::NotWritten(_)) {
                        stop.store(true, Ordering::Relaxed);
                    }
                    send((turn.number, event));
                });
            },
            |(number, event)| {
                on_event(number, &event);
                if let Some(outcome) = outcomes.get_mut(number) {
                    outcome.count(event);
                }
            },
        );
    }
    for (outcome, work) in outcomes.iter_mut().zip(works) {
        let done = outcome.finished + outcome.resumed + outcome.copied + outcome.failed.len();
        outcome.interrupted = done < work.runs.len() && outcome.stopped_by.is_none();
        outcome.failed.sort();
    }
    outcomes
}

/// A run, when it is its turn.
struct Turn<'a> {
    work: &'a Work<'a>,
    /// Of the work.
    number: usize,
    run: &'a RunSpec,
    /// The folder of a work that has the same run.
    same_in: Option<&'a ResultsFolder>,
}

/// All runs in the order in which they are taken: first those that no earlier work has, then those that one has, if they
/// may share a record.
fn turns<'a>(works: &'a [Work<'a>], may_share: bool) -> [Vec<Turn<'a>>; 2] {
    let mut first: HashMap<(&str, u32), &ResultsFolder> = HashMap::new();
    let (mut own, mut same) = (Vec::new(), Vec::new());
    for (number, work) in works.iter().enumerate() {
        for run in work.runs {
            let inputs = work.folder.study().inputs.get(run.policy);
            let inputs = inputs.and_then(|of_policy| of_policy.get(run.scenario));
            let key = inputs.map(|inputs| (inputs.as_str(), run.repetition));
            let same_in = key.and_then(|key| first.get(&key).copied());
            let turn = Turn {
                work,
                number,
                run,
                same_in: same_in.filter(|_| may_share),
            };
            if let Some(key) = key {
                first.entry(key).or_insert(work.folder);
            }
            match turn.same_in {
                Some(_) => same.push(turn),
                None => own.push(turn),
            }
        }
    }
    if works.len() > 1 {
        own.sort_by_key(|turn| turn.run.repetition);
    }
    [own, same]
}

impl Outcome {
    /// Some record is there.
    pub const fn has_runs(&self) -> bool {
        self.finished + self.resumed + self.copied > 0
    }

    fn count(&mut self, event: RunEvent) {
        match event {
            RunEvent::Finished(key, time) => {
                self.finished += 1;
                let scenarios = self.times.entry(key.policy).or_default();
                let total = scenarios.entry(key.scenario).or_default();
                *total = total.and(time);
            }
            RunEvent::Resumed(_) => self.resumed += 1,
            RunEvent::Copied(_) => self.copied += 1,
            RunEvent::Damaged(_) => {}
            RunEvent::Failed(key, reason) => self.failed.push((key, reason)),
            RunEvent::NotWritten(error) => {
                self.stopped_by.get_or_insert(error);
            }
        }
    }
}

/// Calls `work` for each of `runs`, at most `jobs` at a time, and `on_event` in this thread with what it
/// sends. Takes no further runs once one of `stops` is set; those going on are finished.
pub fn in_parallel<R: Sync, T: Send>(
    runs: &[R],
    jobs: usize,
    stops: &[&AtomicBool],
    work: impl Fn(&R, &dyn Fn(T)) + Sync,
    on_event: impl FnMut(T),
) {
    let next = AtomicUsize::new(0);
    let is_stopped = || stops.iter().any(|stop| stop.load(Ordering::Relaxed));
    let jobs = jobs.clamp(1, runs.len().max(1));
    // What is sent may be a record, and they are large: only a few wait.
    let (events, received) = mpsc::sync_channel(jobs);
    thread::scope(|scope| {
        for _ in 0..jobs {
            let (events, next, work, is_stopped) = (events.clone(), &next, &work, &is_stopped);
            scope.spawn(move || {
                while !is_stopped()
                    && let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    // The receiver outlives the threads; a send cannot fail.
                    work(run, &|event| drop(events.send(event)));
                }
            });
        }
        drop(events);
        received.iter().for_each(on_event);
    });
}

/// The record of a run, or why there is none; a defect in one run must not take the others with it. `None`
/// where the user stopped it.
pub fn record_of(
    study: &Study,
    backend: &dyn Backend,
    run: &RunSpec,
) -> Option<Result<RunRecord, String>> {
    caught(|| backend.run(study, run))
}

fn caught<T>(run: impl FnOnce() -> Result<T, RunError>) -> Option<Result<T, String>> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(result)) => Some(Ok(result)),
        Ok(Err(RunError::Interrupted)) => None,
        Ok(Err(error)) => Some(Err(error.to_string())),
        Err(panic) => {
            let what = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("no message");
            Some(Err(format!("a defect in slicewise: {what}")))
        }
    }
}

fn run_one(turn: &Turn<'_>, send: impl Fn(RunEvent)) {
    let Turn {
        work, run, same_in, ..
    } = turn;
    let &&Work {
        study,
        folder,
        backend,
        ..
    } = work;
    let Some(key) = run.key(study) else {
        debug_assert!(false, "runs are of this study");
        return;
    };
    let has_transactions = work.transactions_of(run) > 0;
    let before = match folder.read_run(&key) {
        Ok(Some(_)) if !has_transactions || folder.has_transactions(&key) => {
            return send(RunEvent::Resumed(key));
        }
        Ok(before) => before,
        Err(error) => {
            send(RunEvent::Damaged(error.to_string()));
            None
        }
    };
    let started = Instant::now();
    let same = same_in.and_then(|folder| folder.read_run(&key).ok()?);
    let is_copied = same.is_some();
    let result = match same {
        Some(same) => Some(Ok((same, Vec::new()))),
        None => caught(|| match has_transactions {
            true => backend.run_with_transactions(study, run),
            false => Ok((backend.run(study, run)?, Vec::new())),
        }),
    };
    let elapsed = started.elapsed();
    send(match result {
        Some(Ok((record, transactions))) => {
            let transactions = has_transactions.then_some(&*transactions);
            match write(folder, &record, transactions, before.as_ref()) {
                Ok(()) if is_copied => RunEvent::Copied(key),
                Ok(()) => RunEvent::Finished(key, run_time(&record, elapsed)),
                // A fault of this run alone.
                Err(error @ ResultsError::RefusedRecord { .. }) => {
                    RunEvent::Failed(key, error.to_string())
                }
                Err(error) => RunEvent::NotWritten(error),
            }
        }
        // Nothing became of it, and nothing is wrong with it.
        None => return,
        Some(Err(reason)) => RunEvent::Failed(key, reason),
    });
}

/// Writes the record of a run unless it was there `before`, then its transactions: a run that has them has a record.
fn write(
    folder: &ResultsFolder,
    record: &RunRecord,
    transactions: Option<&[SourceTransactions]>,
    before: Option<&RunRecord>,
) -> Result<(), ResultsError> {
    let file = transactions.map(|of| transactions_file(folder, &record.key, of));
    let file = file.transpose()?;
    match before {
        None => folder.write_run(record)?,
        Some(before) if before == record => {}
        Some(_) => {
            return Err(ResultsError::RefusedRecord {
                path: folder.records_path(&record.key.policy, &record.key.scenario),
                reason: "carried out again for its transactions, the run came out otherwise than its record, which stays: \
                         run the study into another folder (`--out DIR`)"
                    .to_owned(),
            });
        }
    }
    file.map_or(Ok(()), AtomicFile::commit)
}

fn transactions_file(
    folder: &ResultsFolder,
    key: &RunKey,
    transactions: &[SourceTransactions],
) -> Result<AtomicFile, ResultsError> {
    write_transactions(folder, key, transactions).map_err(|error| match error {
        ReportError::Results(error) => error,
        error => {
            let path = folder.transactions_path(key);
            ResultsError::io(Action::Write, path, io::Error::other(error))
        }
    })
}

/// The time stands beside the results, never in them: the same run gives the same record anywhere.
fn run_time(record: &RunRecord, elapsed: Duration) -> RunTime {
    let frames = record.slices.iter().map(|slice| slice.whole.sent_frames);
    RunTime {
        runs: 1,
        frames: frames.fold(0, u64::saturating_add),
        elapsed_ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
    }
}
