//! The folder on this machine, and what of it is known to be in storage.

use crate::MirrorError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Copies of one location that processes may use at a time.
const MAX_COPIES: u32 = 64;

/// State of a file by which a change is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    inode: u64,
    pub(crate) bytes: u64,
    seconds: i64,
    nanoseconds: i64,
}

impl Stamp {
    /// The state of a file when it had so many bytes.
    pub(crate) fn with_bytes(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }

    fn of(found: &Metadata) -> Self {
        Self {
            inode: found.ino(),
            bytes: found.len(),
            seconds: found.mtime(),
            nanoseconds: found.mtime_nsec(),
        }
    }
}

/// A file as it is in storage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    /// Tag of the object.
    pub tag: String,
    /// State of the file with the same bytes.
    pub stamp: Stamp,
}

/// Files that are known to be in storage, by their path in the folder.
pub(crate) type KnownFiles = BTreeMap<String, Known>;

/// A folder on this machine.
#[derive(Debug)]
pub(crate) struct Copy {
    /// The files.
    pub files: PathBuf,
    state: PathBuf,
    /// Held while this process uses it.
    _lock: File,
}

impl Copy {
    /// The first copy below `folder` that no other process uses.
    pub(crate) fn open(folder: &Path) -> Result<Self, MirrorError> {
        for number in 0..MAX_COPIES {
            let copy = folder.join(number.to_string());
            let failed = |error| MirrorError::copy("write", &copy, error);
            fs::create_dir_all(&copy).map_err(failed)?;
            let lock = File::create(copy.join("lock")).map_err(failed)?;
            match lock.try_lock() {
                Err(fs::TryLockError::WouldBlock) => {}
                Err(fs::TryLockError::Error(error)) => return Err(failed(error)),
                Ok(()) => {
                    return Ok(Self {
                        files: copy.join("files"),
                        state: copy.join("state.json"),
                        _lock: lock,
                    });
                }
            }
        }
        let error = io::Error::other("too many commands use it");
        Err(MirrorError::copy("lock", folder, error))
    }

    /// Returns what is known; nothing where that cannot be read, so that everything is fetched anew.
    pub(crate) fn known(&self) -> KnownFiles {
        let text = fs::read(&self.state).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    pub(crate) fn remember(&self, known: &KnownFiles) -> Result<(), MirrorError> {
        let failed = |error| MirrorError::copy("write", &self.state, error);
        let text = serde_json::to_vec(known).map_err(|error| failed(error.into()))?;
        write(&self.state, &text).map_err(failed)
    }

    /// State of each file, by its path in the folder. Names that begin with a point are of files being written, or locks.
    pub(crate) fn stamps(&self) -> Result<BTreeMap<String, Stamp>, MirrorError> {
        let mut found = BTreeMap::new();
        let mut folders = vec![(self.files.clone(), String::new())];
        while let Some((folder, before)) = folders.pop() {
            let failed = |error| MirrorError::copy("read", &folder, error);
            let entries = match fs::read_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries.map_err(failed)?,
            };
            for entry in entries {
                let entry = entry.map_err(failed)?;
                let Ok(name) = entry.file_name().into_string() else {
                    continue;
                };
                if name.starts_with('.') {
                    continue;
                }
                let metadata = match entry.metadata() {
                    // It was given another name meanwhile.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    metadata => metadata.map_err(failed)?,
                };
                let path = format!("{before}{name}");
                if metadata.is_dir() {
                    folders.push((entry.path(), format!("{path}/")));
                } else if metadata.is_file() {
                    found.insert(path, Stamp::of(&metadata));
                }
            }
        }
        Ok(found)
    }

    /// The bytes of a file, and its state with these bytes: of a file of lines, only whole ones.
    pub(crate) fn read(&self, file: &str) -> io::Result<(Vec<u8>, Stamp)> {
        let path = self.files.join(file);
        let stamp = Stamp::of(&fs::metadata(&path)?);
        let mut bytes = fs::read(path)?;
        if file.ends_with(".jsonl") {
            let whole = bytes.iter().rposition(|byte| *byte == b'\n');
            bytes.truncate(whole.map_or(0, |last| last + 1));
        }
        // If it grew meanwhile, or is longer, it differs from this state, and is put again.
        let bytes_read = bytes.len() as u64;
        Ok((bytes, stamp.with_bytes(bytes_read)))
    }

    /// Writes a file, whole or not at all, and returns its state.
    pub(crate) fn write(&self, file: &str, bytes: &[u8]) -> Result<Stamp, MirrorError> {
        let path = self.files.join(file);
        let written = write(&path, bytes).and_then(|()| fs::metadata(&path));
        let found = written.map_err(|error| MirrorError::copy("write", &path, error))?;
        Ok(Stamp::of(&found))
    }

    /// Removes a file, and folders that it leaves empty.
    pub(crate) fn remove(&self, file: &str) -> Result<(), MirrorError> {
        let path = self.files.join(file);
        fs::remove_file(&path).map_err(|error| MirrorError::copy("remove", &path, error))?;
        let folders = path.ancestors().skip(1);
        for folder in folders.take_while(|folder| folder.starts_with(&self.files)) {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.fetched"));
    fs::write(&temporary, bytes)?;
    fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_of_records_are_put_and_the_rest_is_known_to_be_missing() {
        let folder = tempfile::tempdir().unwrap();
        let copy = Copy::open(folder.path()).unwrap();
        copy.write("runs/a/b.jsonl", b"one\ntwo\nthr").unwrap();
        let (bytes, stamp) = copy.read("runs/a/b.jsonl").unwrap();
        assert_eq!(bytes, b"one\ntwo\n");
        assert_ne!(copy.stamps().unwrap()["runs/a/b.jsonl"], stamp);
        copy.write("runs/a/b.jsonl", b"one\ntwo\nthree\n").unwrap();
        let (_, stamp) = copy.read("runs/a/b.jsonl").unwrap();
        assert_eq!(copy.stamps().unwrap()["runs/a/b.jsonl"], stamp);
    }

    #[test]
    fn files_being_written_and_locks_are_no_files_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let copy = Copy::open(folder.path()).unwrap();
        for file in [".lock", "runs/a/.b.jsonl.7-1.partial", "runs/a/b.jsonl"] {
            copy.write(file, b"x").unwrap();
        }
        let stamps = copy.stamps().unwrap();
        assert_eq!(stamps.keys().collect::<Vec<_>>(), ["runs/a/b.jsonl"]);
    }

    #[test]
    fn two_processes_have_a_copy_each_and_a_later_one_the_first_again() {
        let folder = tempfile::tempdir().unwrap();
        let first = Copy::open(folder.path()).unwrap();
        let second = Copy::open(folder.path()).unwrap();
        assert_ne!(first.files, second.files);
        let files = first.files.clone();
        drop(first);
        assert_eq!(Copy::open(folder.path()).unwrap().files, files);
    }
}
