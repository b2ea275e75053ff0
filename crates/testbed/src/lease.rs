//! One testbed at a time on a machine, and nothing left behind by one that was killed.
//!
//! Two would share processors, and each would spoil the other's measurement. The lock is the kernel's and
//! goes with the process. What namespaces a testbed makes is written down before it makes them, so that the
//! next one can take away what a killed one left, and nothing else.

use crate::command::{self, Tool};
use slicewise_live::sys::signals;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Where the lock and the list lie: gone after a reboot, as namespaces are.
const FOLDER: &str = "/run/slicewise";
const RETRY: Duration = Duration::from_millis(250);

/// The right to use this machine as a testbed.
#[derive(Debug)]
pub struct Lease {
    _lock: File,
    list: PathBuf,
}

/// Why there is no lease.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The folder cannot be written.
    #[error("{path}: {error}: a testbed needs root")]
    Folder {
        /// The folder or file.
        path: String,
        /// What the system answered.
        error: io::Error,
    },
    /// A namespace of a testbed that was killed cannot be deleted.
    #[error("{0}")]
    LeftOver(String),
    /// The user stopped waiting.
    #[error("stopped while another testbed was running")]
    Interrupted,
}

impl Lease {
    /// Wait until no other testbed runs on this machine, then take away what a killed one left. `on_wait` is
    /// told once that there is something to wait for; `on_left_over` of each namespace that was deleted.
    ///
    /// # Errors
    /// Without root, or where what was left cannot be deleted; or once `is_interrupted` says so.
    pub fn take(
        on_wait: impl FnOnce(),
        mut on_left_over: impl FnMut(&str),
        is_interrupted: impl Fn() -> bool,
    ) -> Result<Self, LeaseError> {
        let folder = Path::new(FOLDER);
        let at = |path: &Path| {
            let path = path.display().to_string();
            move |error| LeaseError::Folder { path, error }
        };
        fs::create_dir_all(folder).map_err(at(folder))?;
        let path = folder.join("testbed.lock");
        let lock = File::create(&path).map_err(at(&path))?;
        let mut on_wait = Some(on_wait);
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(at(&path)(error)),
                Err(TryLockError::WouldBlock) if is_interrupted() => {
                    return Err(LeaseError::Interrupted);
                }
                Err(TryLockError::WouldBlock) => {
                    if let Some(tell) = on_wait.take() {
                        tell();
                    }
                    thread::sleep(RETRY);
                }
            }
        }
        let lease = Self {
            _lock: lock,
            list: folder.join("namespaces"),
        };
        for name in left_over() {
            delete_namespace(&name).map_err(LeaseError::LeftOver)?;
            on_left_over(&name);
        }
        lease.write(&[]).map_err(at(&lease.list))?;
        Ok(lease)
    }

    /// Write down that these namespaces are ours, before they are made.
    pub(crate) fn owns(&self, names: &[String]) -> io::Result<()> {
        self.write(names)
    }

    fn write(&self, names: &[String]) -> io::Result<()> {
        let mut file = File::create(&self.list)?;
        for name in names {
            writeln!(file, "{name}")?;
        }
        file.sync_all()
    }
}

/// Network namespaces that a testbed made and did not delete: of one that runs, or was killed.
#[must_use]
pub fn left_over() -> Vec<String> {
    let mut text = String::new();
    let read = File::open(Path::new(FOLDER).join("namespaces"))
        .and_then(|mut file| file.read_to_string(&mut text));
    if read.is_err() {
        return Vec::new();
    }
    let exists = |name: &&str| !name.is_empty() && Path::new("/run/netns").join(name).exists();
    text.lines().filter(exists).map(str::to_owned).collect()
}

/// Delete a namespace and end what still runs in it.
pub(crate) fn delete_namespace(name: &str) -> Result<(), String> {
    if let Ok(pids) = command::output(Tool::Ip, &["netns", "pids", name]) {
        for pid in pids.split_whitespace().filter_map(|pid| pid.parse().ok()) {
            // It may have ended by itself.
            let _ = signals::kill(pid);
        }
    }
    command::output(Tool::Ip, &["netns", "delete", name]).map(drop)
}

/// Where the lock and the list lie.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(FOLDER)
}

/// The process that holds the lock, as far as the kernel tells; anybody may ask.
pub(crate) fn holder() -> Option<u32> {
    let inode = fs::metadata(folder().join("testbed.lock")).ok()?.ino();
    holder_of(inode, &fs::read_to_string("/proc/locks").ok()?)
}

/// Of a line like `1: FLOCK  ADVISORY  WRITE 1234 00:1a:5678 0 EOF`, where the last of the three numbers is
/// that of the file. Those who wait have an arrow behind the first number.
fn holder_of(inode: u64, locks: &str) -> Option<u32> {
    let ends = format!(":{inode}");
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [_, "FLOCK", _, _, pid, file, ..] if file.ends_with(&ends) => pid.parse().ok(),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_holds_the_lock_is_told_from_those_who_wait() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 00:1a:42 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 8 00:1a:142 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 9 00:1a:42 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 10 00:1a:42 0 EOF\n";
        assert_eq!(holder_of(42, locks), Some(9));
        assert_eq!(holder_of(2, locks), None);
    }
}
