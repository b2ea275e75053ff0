//! Copies of folders in object storage, while a command works in them.

use super::Use;
use crate::execution::stop_runs;
use crate::exit::Exit;
use crate::output::show_as;
use crate::{Failure, errln, noteln};
use slicewise_mirror::{Access, Location, Mirror, MirrorError};
use slicewise_stats::words::count;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Seconds from one time that changes are put to the next, unless this variable says otherwise.
const INTERVAL: u64 = 30;
const INTERVAL_VARIABLE: &str = "SLICEWISE_PUT_SECONDS";
/// When changes are put first, so that a missing permission is noticed before hours of computing.
const FIRST: Duration = Duration::from_secs(1);
/// Changes are put at most this part of the time: a file that grows is put whole each time.
const SHARE: u32 = 20;

/// Copies that a command works in.
pub struct Copies {
    written: Vec<Writer>,
    reported: Vec<Mirror>,
    /// Their files must not be changed by another command meanwhile.
    _read: Vec<Mirror>,
}

impl Copies {
    /// Fetches the results in these folders, which get the paths of their copies.
    pub fn open(folders: Vec<(&mut PathBuf, Use)>) -> Result<Self, Failure> {
        let (cache, interval) = (cache_folder()?, interval()?);
        let (mut written, mut reported, mut read) = (Vec::new(), Vec::new(), Vec::new());
        for (folder, intended) in folders {
            let location = Location::parse(&folder.to_string_lossy()).map_err(failure)?;
            let access = match intended {
                Use::Read => Access::Read,
                Use::Collect => Access::Collect,
                Use::Report | Use::Write => Access::Write,
            };
            let mirror = Mirror::open(location, &cache, access).map_err(failure)?;
            mirror.folder().clone_into(folder);
            describe(&mirror, (intended == Use::Write).then_some(interval));
            show_as(folder, mirror.location().to_string());
            match intended {
                Use::Read | Use::Collect => read.push(mirror),
                Use::Report => reported.push(mirror),
                Use::Write => written.push(Writer::start(mirror, interval)),
            }
        }
        Ok(Self {
            written,
            reported,
            _read: read,
        })
    }

    /// Puts what has changed, whatever became of the command.
    pub fn conclude(self, result: Result<Exit, Failure>) -> Result<Exit, Failure> {
        let written = self.written.into_iter().try_for_each(Writer::finish);
        let put = written.and_then(|()| self.reported.into_iter().try_for_each(put_report));
        match (result, put) {
            (Err(first), Err(second)) => {
                first.print();
                Err(second)
            }
            (result, Ok(())) => result,
            (Ok(_), Err(failure)) => Err(failure),
        }
    }
}

/// Says where the copy is, and what becomes of changes.
fn describe(mirror: &Mirror, interval: Option<Duration>) {
    let address = mirror.location();
    let changes = interval.map_or_else(String::new, |interval| {
        format!(
            "; changes are put every {} s and at the end",
            interval.as_secs()
        )
    });
    noteln!(
        "{address}: {} fetched into its copy {}{changes}",
        count(mirror.fetched() as u64, "file"),
        mirror.folder().display()
    );
    if mirror.dropped() > 0 {
        errln!(
            "warning: {address}: dropped from its copy, because other files were put since: {} that could not be put",
            count(mirror.dropped() as u64, "file")
        );
    }
}

fn put_report(mut mirror: Mirror) -> Result<(), Failure> {
    match mirror.put() {
        Err(error @ MirrorError::NoPermission { .. }) => {
            errln!("warning: {error}; the report is in the copy on this machine alone");
            Ok(())
        }
        put => put.map(drop).map_err(unsent),
    }
}

/// Puts changes of a copy from time to time.
struct Writer {
    mirror: Arc<Mutex<Mirror>>,
    end: Sender<()>,
    /// Returns why it stopped the runs.
    thread: JoinHandle<Option<MirrorError>>,
}

impl Writer {
    fn start(mirror: Mirror, interval: Duration) -> Self {
        let mirror = Arc::new(Mutex::new(mirror));
        let (end, ended) = mpsc::channel();
        let shared = Arc::clone(&mirror);
        let thread = thread::spawn(move || {
            let mut wait = interval.min(FIRST);
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                let begin = Instant::now();
                match put(&shared) {
                    Ok(()) => {}
                    Err(error) if error.is_temporary() => {
                        errln!("warning: {error}; it is tried again");
                    }
                    Err(error) => {
                        errln!("changes cannot be put any more: finishing the runs in progress");
                        stop_runs();
                        return Some(error);
                    }
                }
                wait = interval.max(begin.elapsed() * SHARE);
            }
            None
        });
        Self {
            mirror,
            end,
            thread,
        }
    }

    fn finish(self) -> Result<(), Failure> {
        // It has ended where it could not put.
        let _ = self.end.send(());
        let stopped_by = self.thread.join().ok().flatten();
        put(&self.mirror).map_err(unsent)?;
        stopped_by.map_or(Ok(()), |error| Err(failure(error)))
    }
}

/// An error after which files are in the copy that are not in storage.
fn unsent(error: MirrorError) -> Failure {
    match error {
        // They are dropped for those of the other command.
        MirrorError::Changed { .. } => failure(error),
        error => failure(error).with_advice(
            "(what was not put is kept on this machine, and the same command goes on with it)",
        ),
    }
}

fn put(mirror: &Mutex<Mirror>) -> Result<(), MirrorError> {
    // What is known of objects is checked by the storage.
    let mut mirror = mirror.lock().unwrap_or_else(PoisonError::into_inner);
    mirror.put().map(drop)
}

fn failure(error: MirrorError) -> Failure {
    if error.is_users_mistake() {
        Failure::mistake(error)
    } else {
        Failure::system(error)
    }
}

fn cache_folder() -> Result<PathBuf, Failure> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = variable("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")));
    let cache = cache.ok_or_else(|| {
        Failure::mistake(
            "there is no folder for copies of object storage: set XDG_CACHE_HOME, or HOME",
        )
    })?;
    Ok(cache.join("slicewise").join("s3"))
}

fn interval() -> Result<Duration, Failure> {
    let Ok(text) = std::env::var(INTERVAL_VARIABLE) else {
        return Ok(Duration::from_secs(INTERVAL));
    };
    let seconds = text
        .parse()
        .ok()
        .filter(|seconds| (1..=86_400).contains(seconds));
    seconds.map(Duration::from_secs).ok_or_else(|| {
        Failure::mistake(format!(
            "{INTERVAL_VARIABLE} is `{text}`: expected seconds, from 1 to 86400"
        ))
    })
}
