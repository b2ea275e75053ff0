//! State that a gateway keeps on its disk, to start from it without the controller.
//!
//! A log to which changes are appended, each in a line with a checksum, and which is written anew once it is much longer
//! than what it states. A generation is complete when its record is there; what follows the last one is ignored, so that
//! a crash in the middle of a write leaves the state of before. A new file replaces the old one by its name, in one step.

mod record;

pub(crate) use record::{Header, Record};

use slicewise_api::GatewaySlice;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The version of the format.
const VERSION: u32 = 1;
/// A log is written anew if it is longer than this, and three times as long as when it was last written.
const LEAST_REWRITTEN_BYTES: u64 = 1 << 20;
/// How long to wait for a process that uses the file, and how often to look.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);
const LOCK_PAUSE: Duration = Duration::from_millis(1);
/// Bytes of a first line: two names and a number.
const LONGEST_HEADER_BYTES: u64 = 4 << 10;

/// Why a state file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It cannot be read or created.
    #[error(
        "{path}: {doing}: {error}; the gateway keeps its slices in this file, so it needs a folder to which it may write"
    )]
    System {
        /// The file.
        path: PathBuf,
        /// Operation that was tried.
        doing: &'static str,
        /// Error of the operating system.
        error: io::Error,
    },
    /// Another process uses it.
    #[error("{path} is used by another gateway: give each gateway a state file of its own")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A newer version wrote it.
    #[error(
        "{path} has format {found}, and this version reads up to {VERSION}: start the version that wrote it, or move the \
         file away to get the slices from the controller"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format that it states.
        found: u32,
    },
    /// It belongs to another gateway or link.
    #[error(
        "{path} is the state of link `{link}` of gateway `{gateway}`: name another file in `state`, or move this one away"
    )]
    Other {
        /// The file.
        path: PathBuf,
        /// The gateway that it states.
        gateway: String,
        /// The link that it states.
        link: String,
    },
    /// It is no state file.
    #[error("{path} is not a state file of a gateway: name another file in `state`")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
}

/// Contents of a state file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The last complete generation.
    pub(crate) generation: u64,
    /// The slices that are to be in force.
    pub(crate) slices: BTreeMap<String, GatewaySlice>,
    /// Slices that were removed, which the controller does not know yet.
    pub(crate) removed: BTreeSet<String>,
    /// Slices that could not be put in force.
    pub(crate) refused: BTreeSet<String>,
}

impl Kept {
    pub(crate) fn apply(&mut self, record: Record) {
        match record {
            Record::Header(_) => {}
            Record::Put(slice) => {
                self.removed.remove(&slice.name);
                self.slices.insert(slice.name.clone(), *slice);
            }
            Record::Remove(name) => {
                self.slices.remove(&name);
                self.removed.insert(name);
            }
            Record::Gone(names) => names.iter().for_each(|name| {
                self.removed.remove(name);
            }),
            Record::Refused(names) => self.refused = names.into_iter().collect(),
            Record::Generation(generation) => self.generation = generation,
        }
    }
}

/// A state file that is in use.
#[derive(Debug)]
pub(crate) struct Store {
    path: PathBuf,
    header: Header,
    file: File,
    /// Bytes of whole records.
    len: u64,
    /// The same when it was last written anew.
    rewritten_len: u64,
    /// The last write failed: the file has to be written anew.
    is_behind: bool,
}

/// A state file as it was found.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) store: Store,
    pub(crate) kept: Kept,
    /// Warning about it.
    pub(crate) warning: Option<String>,
}

impl Store {
    /// Open a state file, or create it.
    pub(crate) fn open(path: &Path, gateway: &str, link: &str) -> Result<Opened, StateError> {
        let system = |doing| {
            move |error| StateError::System {
                path: path.to_owned(),
                doing,
                error,
            }
        };
        let header = Header {
            version: VERSION,
            gateway: gateway.to_owned(),
            link: link.to_owned(),
            instance: String::new(),
            store: String::new(),
        };
        // Neither a link, which would be replaced, nor a pipe, which would be waited for.
        if std::fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
            let path = path.to_owned();
            return Err(StateError::Foreign { path });
        }
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(system("cannot open it"))?;
        lock(&file, path)?;
        let mut bytes = Vec::new();
        (&file)
            .read_to_end(&mut bytes)
            .map_err(system("cannot read it"))?;
        let mut store = Self {
            path: path.to_owned(),
            header,
            file,
            len: 0,
            rewritten_len: 0,
            is_behind: false,
        };
        let (kept, warning) = store.read(&bytes)?;
        // What asks for everything has to be asked for after the next start, too.
        let is_incomplete = kept.generation == 0 && warning.is_some();
        let is_unnamed = store.header.instance.is_empty();
        if is_unnamed {
            store.header.instance = new_instance().map_err(system("cannot name it"))?;
        }
        if store.len == 0 || is_incomplete || is_unnamed {
            store.rewrite(&kept).map_err(system("cannot write to it"))?;
        } else if store.len < bytes.len() as u64 {
            let truncated = store.file.set_len(store.len);
            truncated.map_err(system("cannot write to it"))?;
        }
        Ok(Opened {
            store,
            kept,
            warning,
        })
    }

    /// Reads the contents of the file, up to its last complete generation.
    fn read(&mut self, bytes: &[u8]) -> Result<(Kept, Option<String>), StateError> {
        let path = self.path.clone();
        if bytes.is_empty() {
            return Ok((Kept::default(), None));
        }
        let mut lines = bytes.split_inclusive(|&byte| byte == b'\n');
        let first = lines.next().unwrap_or_default();
        let header = first.strip_suffix(b"\n").unwrap_or(first);
        match Record::read(header) {
            Some(Record::Header(found)) if found.version == VERSION => {
                let Header {
                    gateway,
                    link,
                    instance,
                    store,
                    ..
                } = found;
                if (&gateway, &link) != (&self.header.gateway, &self.header.link) {
                    return Err(StateError::Other {
                        path,
                        gateway,
                        link,
                    });
                }
                self.header.instance = instance;
                self.header.store = store;
            }
            _ => match record::version_of(header) {
                Some(found) if found > VERSION => return Err(StateError::Newer { path, found }),
                _ => return Err(StateError::Foreign { path }),
            },
        }
        let (mut kept, mut pending) = (Kept::default(), Vec::new());
        let mut at = first.len() as u64;
        self.len = at;
        let mut damaged = None;
        for line in lines {
            let record = line.strip_suffix(b"\n").and_then(Record::read);
            let Some(record) = record else {
                damaged = Some(at);
                break;
            };
            at += line.len() as u64;
            let is_complete = matches!(record, Record::Generation(_));
            // These are not part of a generation.
            let is_apart = matches!(record, Record::Gone(_) | Record::Refused(_));
            pending.push(record);
            if is_complete || is_apart && pending.len() == 1 {
                pending.drain(..).for_each(|record| kept.apply(record));
                self.len = at;
            }
        }
        self.rewritten_len = self.len;
        let lost = bytes.len() as u64 - self.len;
        let Some(damaged) = damaged else {
            return Ok((kept, None));
        };
        let rest = usize::try_from(damaged).ok().and_then(|at| bytes.get(at..));
        let ends = rest.unwrap_or_default().iter();
        let is_torn = ends.filter(|&&byte| byte == b'\n').count() <= 1;
        if is_torn {
            let warning = format!(
                "its last write was not completed: {lost} B after generation {} are ignored, and asked for again",
                kept.generation
            );
            return Ok((kept, Some(warning)));
        }
        let copy = self.keep_damaged()?;
        let warning = format!(
            "it is damaged at byte {damaged}: the gateway starts from generation {}, which is before, and asks the controller \
             for all of its slices; a copy is kept as {}",
            kept.generation,
            copy.display()
        );
        kept.generation = 0;
        Ok((kept, Some(warning)))
    }

    /// Copy a damaged file, so that nothing of it is overwritten.
    fn keep_damaged(&self) -> Result<PathBuf, StateError> {
        let mut copy = self.path.clone().into_os_string();
        copy.push(".damaged");
        let mut number = 1;
        while Path::new(&copy).exists() {
            number += 1;
            copy = self.path.clone().into_os_string();
            copy.push(format!(".damaged-{number}"));
        }
        let copied = std::fs::copy(&self.path, &copy);
        copied.map_err(|error| {
            // Each start would leave another part of it, and take more room.
            let _ = std::fs::remove_file(&copy);
            StateError::System {
                path: self.path.clone(),
                doing: "it is damaged, and cannot be copied",
                error,
            }
        })?;
        Ok(copy.into())
    }

    /// Append records, which are on the disk when it returns; `kept` states what they lead to. After a failure the next call
    /// writes the whole state.
    pub(crate) fn append(
        &mut self,
        records: &[Record],
        kept: impl FnOnce() -> Kept,
    ) -> io::Result<()> {
        let is_long = self.len > LEAST_REWRITTEN_BYTES && self.len / 3 > self.rewritten_len.max(1);
        if self.is_behind || is_long {
            return self.rewrite(&kept());
        }
        let mut lines = Vec::new();
        records.iter().for_each(|record| record.write(&mut lines));
        self.is_behind = true;
        self.file.seek(SeekFrom::Start(self.len))?;
        self.file.write_all(&lines)?;
        self.file.sync_data()?;
        self.len += lines.len() as u64;
        self.is_behind = false;
        Ok(())
    }

    /// Which gateway of its name this is.
    pub(crate) fn instance(&self) -> &str {
        &self.header.instance
    }

    /// Identity of the controller's store that the slices are of; empty for none.
    pub(crate) fn followed(&self) -> &str {
        &self.header.store
    }

    /// Follows another store of a controller with the next append: the file is written anew with both, or stays as it is.
    pub(crate) fn follow(&mut self, store: String) {
        self.header.store = store;
        self.is_behind = true;
    }

    /// Returns true if the file on the disk is behind.
    pub(crate) const fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Write the whole state to a new file, which then replaces the old one.
    pub(crate) fn rewrite(&mut self, kept: &Kept) -> io::Result<()> {
        self.is_behind = true;
        let mut new = self.path.clone().into_os_string();
        new.push(".new");
        let mut lines = Vec::new();
        Record::Header(self.header.clone()).write(&mut lines);
        for slice in kept.slices.values() {
            Record::Put(Box::new(slice.clone())).write(&mut lines);
        }
        for name in &kept.removed {
            Record::Remove(name.clone()).write(&mut lines);
        }
        if !kept.refused.is_empty() {
            Record::Refused(kept.refused.iter().cloned().collect()).write(&mut lines);
        }
        Record::Generation(kept.generation).write(&mut lines);
        let file = write_new(Path::new(&new), &lines)?;
        std::fs::rename(&new, &self.path)?;
        let folder = self.path.parent().filter(|path| path.as_os_str() != "");
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        self.file = file;
        self.len = lines.len() as u64;
        self.rewritten_len = self.len;
        self.is_behind = false;
        Ok(())
    }
}

/// 128 random bits, in hexadecimal digits.
fn new_instance() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

fn write_new(path: &Path, lines: &[u8]) -> io::Result<File> {
    remove_own(path)?;
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create_new(true);
    let mut file = options.open(path)?;
    let written = file.try_lock().map_err(io::Error::from);
    let written = written.and_then(|()| file.write_all(lines));
    let written = written.and_then(|()| file.sync_all());
    written.inspect_err(|_| {
        // What of it was written takes room that others may need.
        let _ = std::fs::remove_file(path);
    })?;
    Ok(file)
}

/// Remove what a gateway that was killed while it wrote has left behind.
fn remove_own(path: &Path) -> io::Result<()> {
    let Ok(found) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    let mut first = Vec::new();
    if found.is_file() {
        let file = File::open(path)?;
        io::BufReader::new(file.take(LONGEST_HEADER_BYTES)).read_until(b'\n', &mut first)?;
    }
    let line = first.strip_suffix(b"\n").unwrap_or(&first);
    // It may have been killed before it wrote anything.
    if found.is_file() && (found.len() == 0 || record::version_of(line).is_some()) {
        return std::fs::remove_file(path);
    }
    let problem = format!("{} is there, and is not of a gateway", path.display());
    Err(io::Error::new(io::ErrorKind::AlreadyExists, problem))
}

/// A process that was killed has the file until the kernel has closed its interfaces: wait for it.
fn lock(file: &File, path: &Path) -> Result<(), StateError> {
    let path = path.to_owned();
    let began_at = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if began_at.elapsed() < LOCK_PATIENCE => {
                std::thread::sleep(LOCK_PAUSE);
            }
            Err(TryLockError::WouldBlock) => return Err(StateError::InUse { path }),
            Err(TryLockError::Error(error)) => {
                return Err(StateError::System {
                    path,
                    doing: "cannot lock it",
                    error,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests;
