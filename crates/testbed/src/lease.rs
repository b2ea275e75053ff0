//! One testbed at a time per machine, and cleanup after a killed one.
//!
//! Two would share processors and disturb each other's measurements. The lock is held by the kernel and
//! released with the process. A testbed lists its namespaces before creating them, so that the next one
//! can delete what a killed one left, and nothing else.

use crate::command::{self, Tool};
use slicewise_live::sys::signals;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Folder of the lock and the lists: gone after a reboot, as namespaces are.
const FOLDER: &str = "/run/slicewise";
/// Overrides the folder: testbeds with different folders do not wait for each other.
const FOLDER_VARIABLE: &str = "SLICEWISE_RUN_DIR";
/// Prefix of all names a testbed creates.
pub(crate) const PREFIX: &str = "slicewise-";
/// Privileges by their numbers in `capabilities(7)`: network administration, packet sockets, and the mounts
/// that namespaces with names are.
const CAPABILITIES: [u32; 3] = [12, 13, 21];
/// Where `ip netns` keeps namespaces.
const NAMESPACES: &str = "/run/netns";
const RETRY: Duration = Duration::from_millis(250);

/// Exclusive use of this machine as a testbed.
#[derive(Debug)]
pub struct Lease {
    _lock: File,
    list: PathBuf,
    /// List of folders created by testbeds.
    folders: PathBuf,
}

/// Why there is no lease.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Without root.
    #[error("real packets require root (for namespaces and captures): run it with sudo")]
    Privileges,
    /// The folder is not writable.
    #[error("{path}: {error}")]
    Folder {
        /// The folder or file.
        path: String,
        /// Error of the system.
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
    /// Wait until no other testbed runs on this machine, then delete what a killed one left. `on_wait`
    /// is called once if there is something to wait for; `on_left_over` with a description of each
    /// deletion.
    ///
    /// # Errors
    /// Without root, if leftovers cannot be deleted, or if interrupted.
    pub fn take(
        on_wait: impl FnOnce(),
        mut on_left_over: impl FnMut(&str),
        is_interrupted: impl Fn() -> bool,
    ) -> Result<Self, LeaseError> {
        if !may_make_hosts() {
            return Err(LeaseError::Privileges);
        }
        let folder = folder();
        let at = |path: &Path| {
            let path = path.display().to_string();
            move |error| LeaseError::Folder { path, error }
        };
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        let path = folder.join("testbed.lock");
        // Who may open it may hold it.
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(&path)
            .map_err(at(&path))?;
        let mut on_wait = Some(on_wait);
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(at(&path)(error)),
                Err(TryLockError::WouldBlock) if is_interrupted() => {
                    return Err(LeaseError::Interrupted);
                }
                Err(TryLockError::WouldBlock) => {
                    if let Some(notify) = on_wait.take() {
                        notify();
                    }
                    thread::sleep(RETRY);
                }
            }
        }
        let lease = Self {
            _lock: lock,
            list: folder.join("namespaces"),
            folders: folder.join("folders"),
        };
        for name in left_over() {
            delete_namespace(&name).map_err(LeaseError::LeftOver)?;
            on_left_over(&format!("namespace {name}"));
        }
        write_list(&lease.list, &[]).map_err(at(&lease.list))?;
        for left in folders_on(&lease.folders) {
            fs::remove_dir_all(&left).map_err(at(&left))?;
            on_left_over(&format!("folder {}", left.display()));
        }
        write_list(&lease.folders, &[]).map_err(at(&lease.folders))?;
        Ok(lease)
    }

    /// List these namespaces as ours, before they are created.
    pub(crate) fn owns(&self, names: &[String]) -> io::Result<()> {
        // Namespaces that could not be deleted stay on the list.
        let mut all = still_there(&self.list, Path::new(NAMESPACES));
        all.retain(|name| !names.contains(name));
        all.extend_from_slice(names);
        write_list(&self.list, &all)
    }

    /// Write down that these folders are to be deleted, before they are made.
    pub(crate) fn owns_folders(&self, folders: &[&Path]) -> io::Result<()> {
        let names = folders.iter().map(|folder| folder.display().to_string());
        write_list(&self.folders, &names.collect::<Vec<_>>())
    }
}

/// Folder of the lock and the lists.
pub(crate) fn folder() -> PathBuf {
    let named = std::env::var_os(FOLDER_VARIABLE).filter(|path| !path.is_empty());
    named.map_or_else(|| PathBuf::from(FOLDER), PathBuf::from)
}

/// Returns true if this process has the privileges that a testbed needs, or if they are unknown.
fn may_make_hosts() -> bool {
    fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| capabilities(&status))
        .is_none_or(|mine| CAPABILITIES.iter().all(|one| mine >> one & 1 == 1))
}

/// The effective capabilities.
fn capabilities(status: &str) -> Option<u64> {
    let set = (status.lines()).find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(set.trim(), 16).ok()
}

/// Atomically: the whole list, or the previous one.
fn write_list(path: &Path, names: &[String]) -> io::Result<()> {
    let new = path.with_extension("new");
    // Left by a killed testbed; whatever it is, nothing is written into it.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::create_new(&new)?;
    for name in names {
        writeln!(file, "{name}")?;
    }
    file.sync_all()?;
    fs::rename(new, path)
}

/// Path of a namespace of `ip netns`.
pub(crate) fn namespace(name: &str) -> PathBuf {
    Path::new(NAMESPACES).join(name)
}

/// The lines of a list; empty if there is no list.
fn read_list(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Network namespaces created and not deleted by a testbed: one that is running, or was killed.
pub(crate) fn left_over() -> Vec<String> {
    still_there(&folder().join("namespaces"), Path::new(NAMESPACES))
}

/// The listed namespaces that exist: files in a folder.
fn still_there(list: &Path, namespaces: &Path) -> Vec<String> {
    let mut names = read_list(list);
    let is_ours = |name: &str| name.starts_with(PREFIX) && !name.contains('/');
    names.retain(|name| is_ours(name) && namespaces.join(name).exists());
    names
}

/// Folders created and not deleted by a testbed: one that is running, or was killed.
pub(crate) fn left_over_folders() -> Vec<PathBuf> {
    folders_on(&folder().join("folders"))
}

/// The listed folders that exist and have our prefix.
fn folders_on(list: &Path) -> Vec<PathBuf> {
    let is_ours = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        let is_folder = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        name.is_some_and(is_folder_name) && path.is_absolute() && is_folder
    };
    let mut folders: Vec<PathBuf> = read_list(list).into_iter().map(PathBuf::from).collect();
    folders.retain(|path| is_ours(path));
    folders
}

/// As [`crate::workspace`] names folders: with the number of a process.
fn is_folder_name(name: &str) -> bool {
    let parts = name
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(process, what)| {
        process.parse::<u32>().is_ok() && ["files", "captures"].contains(&what)
    })
}

/// Delete a namespace and kill what still runs in it.
pub(crate) fn delete_namespace(name: &str) -> Result<(), String> {
    if let Ok(pids) = command::output(Tool::Ip, &["netns", "pids", name]) {
        for pid in pids.split_whitespace().filter_map(|pid| pid.parse().ok()) {
            // It may have ended by itself.
            let _ = signals::kill(pid);
        }
    }
    command::output(Tool::Ip, &["netns", "delete", name]).map(drop)
}

/// The process that holds the lock, if the kernel reports it; needs no privileges.
pub(crate) fn holder() -> Option<u32> {
    let inode = fs::metadata(folder().join("testbed.lock")).ok()?.ino();
    holder_of(inode, &fs::read_to_string("/proc/locks").ok()?)
}

/// Parses a line like `1: FLOCK  ADVISORY  WRITE 1234 00:1a:5678 0 EOF`, where the last of the three
/// numbers is that of the file. Waiters have an arrow after the first number.
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
    fn the_lock_holder_is_distinguished_from_waiters() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 00:1a:42 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 8 00:1a:142 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 9 00:1a:42 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 10 00:1a:42 0 EOF\n";
        assert_eq!(holder_of(42, locks), Some(9));
        assert_eq!(holder_of(2, locks), None);
    }

    #[test]
    fn leftovers_are_listed_existing_namespaces_with_our_prefix() {
        let folder = tempfile::tempdir().unwrap();
        let (list, namespaces) = (
            folder.path().join("namespaces"),
            folder.path().join("netns"),
        );
        assert!(still_there(&list, &namespaces).is_empty());
        fs::create_dir(&namespaces).unwrap();
        for name in ["slicewise-1-sink", "slicewise-other", "office"] {
            File::create(namespaces.join(name)).unwrap();
        }
        File::create(folder.path().join("slicewise-x")).unwrap();
        let listed = [
            "",
            "slicewise-1-generator",
            "slicewise-1-sink",
            "office",
            "slicewise-1-sink/../../slicewise-x",
        ];
        write_list(&list, &listed.map(str::to_owned)).unwrap();
        assert_eq!(still_there(&list, &namespaces), ["slicewise-1-sink"]);
    }

    #[test]
    fn only_a_folder_with_our_prefix_is_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["slicewise-1-files", "thesis"] {
            fs::create_dir(at(name)).unwrap();
        }
        let list = at("folders");
        let listed = ["slicewise-1-files", "slicewise-3-files", "thesis"]
            .map(|name| at(name).display().to_string());
        write_list(&list, &listed).unwrap();
        assert_eq!(folders_on(&list), [at("slicewise-1-files")]);
    }

    #[test]
    fn privileges_are_those_in_effect() {
        let status = "Name:\tslicewise\nCapPrm:\t000001ffffffffff\nCapEff:\t0000000000203000\n";
        let mine = capabilities(status).unwrap();
        assert!(CAPABILITIES.iter().all(|one| mine >> one & 1 == 1));
        assert_eq!(mine.count_ones(), 3);
        assert_eq!(capabilities("Name:\tslicewise\n"), None);
    }
}
