//! Copies of folders in object storage, while a command works in them.

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
    /// Their files must not be changed by another command meanwhile.
    _read: Vec<Mirror>,
}

impl Copies {
    /// Fetches the results in these folders, which get the paths of their copies.
    pub fn open(folders: Vec<(&mut PathBuf, bool)>) -> Result<Self, Failure> {
        let (cache, interval) = (cache_folder()?, interval()?);
        let (mut written, mut read) = (Vec::new(), Vec::new());
        for (folder, is_written) in folders {
            let location = Location::parse(&folder.to_string_lossy()).map_err(failure)?;
            let address = location.to_string();
            let access = match is_written {
                true => Access::Write,
                false => Access::Read,
            };
            let mirror = Mirror::open(location, &cache, access).map_err(failure)?;
            let fetched = count(mirror.fetched() as u64, "file");
            mirror.folder().clone_into(folder);
            let copy = folder.display();
            match is_written {
                true => noteln!(
                    "{address}: {fetched} fetched into the copy {copy}; changes are put after each {} s and at the end",
                    interval.as_secs()
                ),
                false => noteln!("{address}: {fetched} fetched into the copy {copy}"),
            }
            match mirror.dropped() {
                0 => {}
                dropped => errln!(
                    "warning: {address}: {} that an earlier command had not put {} dropped, because another command has \
                     put some since",
                    count(dropped as u64, "file"),
                    if dropped == 1 { "was" } else { "were" }
                ),
            }
            show_as(folder, address);
            match is_written {
                true => written.push(Writer::start(mirror, interval)),
                false => read.push(mirror),
            }
        }
        Ok(Self {
            written,
            _read: read,
        })
    }

    /// Puts what has changed, whatever became of the command.
    pub fn conclude(self, result: Result<Exit, Failure>) -> Result<Exit, Failure> {
        let put = self.written.into_iter().try_for_each(Writer::finish);
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

/// Puts changes of a copy from time to time.
struct Writer {
    mirror: Arc<Mutex<Mirror>>,
    end: Sender<()>,
    thread: JoinHandle<()>,
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
                        errln!("warning: {error}; it is tried again")
                    }
                    Err(_) => {
                        errln!("changes cannot be put any more: finishing the runs in progress");
                        return stop_runs();
                    }
                }
                wait = interval.max(begin.elapsed() * SHARE);
            }
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
        let _ = self.thread.join();
        put(&self.mirror).map_err(|error| {
            let is_lost = matches!(error, MirrorError::Changed { .. });
            let failure = failure(error);
            match is_lost {
                true => failure,
                false => failure.with_advice(
                    "(what was not put is kept on this machine, and the same command goes on with it)",
                ),
            }
        })
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
