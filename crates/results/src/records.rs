//! Records of the runs of a policy under a scenario: one file, one line each.
//!
//! A record is appended by one call. A killed process so leaves whole lines and at most the beginning of another one, which
//! nobody reads and the next record replaces; a whole record whose line feed alone is missing, as editors leave it, counts. A run that is done again is appended as well: of two lines of a repetition the
//! last one counts. As soon as all repetitions are there, lines are put in their order, so that the same runs make the
//! same file, whoever carried them out and in whichever order.

use crate::atomic::AtomicFile;
use crate::checksum::{self, Form};
use crate::names::RECORD_BYTES;
use crate::open::{self, ReadError};
use crate::{Action, ResultsError};
use slicewise_stats::path::path_component;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Bytes at the start of a line in which its repetition is looked for.
const HEAD_BYTES: u64 = 1 << 16;
/// Followed by the repetition, and not part of any text: there, quotes are escaped.
const REPETITION: &[u8] = br#""repetition":"#;

/// The file of a policy under a scenario.
pub(crate) fn path(root: &Path, policy: &str, scenario: &str) -> PathBuf {
    let folder = root.join("runs").join(path_component(policy));
    folder.join(format!("{}.jsonl", path_component(scenario)))
}

/// Where a record lies in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    /// From 1.
    number: u64,
    start: u64,
    /// Without the line feed.
    bytes: u64,
}

/// A record's text, as it lies in its file.
#[derive(Debug)]
pub(crate) struct RecordText {
    /// From 1.
    pub line: u64,
    pub text: Vec<u8>,
}

/// State of a file by which a change by somebody else is noticed: inode, length and time of change.
type Stamp = (u64, u64, SystemTime);

fn stamp(file: &File) -> io::Result<Stamp> {
    let found = file.metadata()?;
    Ok((found.ino(), found.len(), found.modified()?))
}

/// Lines of one file.
#[derive(Debug, Default)]
struct Index {
    stamp: Option<Stamp>,
    /// By repetition: the last line of each.
    lines: BTreeMap<u32, Line>,
    /// Numbers of the lines whose repetition cannot be read.
    unknown: Vec<u64>,
    /// Number of lines.
    count: u64,
    /// Where the last whole line ends, in bytes.
    end: u64,
    /// The last line has no line feed.
    is_open: bool,
}

impl Index {
    /// Read the file again if it is not as it was.
    fn follow(&mut self, file: &File) -> io::Result<()> {
        let stamp = stamp(file)?;
        if self.stamp != Some(stamp) {
            *self = Self::of(file, stamp.1)?;
            self.stamp = Some(stamp);
        }
        Ok(())
    }

    fn of(file: &File, length: u64) -> io::Result<Self> {
        let mut index = Self::default();
        let mut reader = BufReader::with_capacity(1 << 16, file.take(length));
        let mut head = Vec::new();
        loop {
            head.clear();
            let mut bytes = (&mut reader)
                .take(HEAD_BYTES)
                .read_until(b'\n', &mut head)? as u64;
            if bytes == HEAD_BYTES && !head.ends_with(b"\n") {
                bytes += reader.skip_until(b'\n')? as u64;
            }
            if bytes == 0 {
                return Ok(index);
            }
            let mut last = [0];
            file.read_exact_at(&mut last, index.end + bytes - 1)?;
            if last != *b"\n" {
                // The beginning of a line, or all of it.
                index.is_open = is_whole(file, index.end, bytes)?;
                if index.is_open {
                    index.push(repetition(&head), bytes + 1);
                    index.end -= 1;
                }
                return Ok(index);
            }
            index.push(repetition(&head), bytes);
        }
    }

    /// Adds a line of so many bytes with its line feed.
    fn push(&mut self, repetition: Option<u32>, bytes: u64) {
        self.count += 1;
        let line = Line {
            number: self.count,
            start: self.end,
            bytes: bytes.saturating_sub(1),
        };
        self.end += bytes;
        match repetition {
            Some(repetition) => {
                self.lines.insert(repetition, line);
            }
            None => self.unknown.push(self.count),
        }
    }

    /// Returns true if each repetition below `repetitions` has a line.
    fn is_complete(&self, repetitions: u32) -> bool {
        let wanted = repetitions as usize;
        self.lines.len() >= wanted && self.lines.range(..repetitions).count() == wanted
    }

    /// Returns true if each line is of a repetition, and of a later one than the line before.
    fn is_in_order(&self) -> bool {
        let numbers = self.lines.values().map(|line| line.number);
        numbers.eq(1..=self.count)
    }
}

/// Returns true if these bytes of a file are a record as it was sealed.
fn is_whole(file: &File, start: u64, bytes: u64) -> io::Result<bool> {
    if bytes > RECORD_BYTES {
        return Ok(false);
    }
    let line = Line {
        number: 0,
        start,
        bytes,
    };
    let mut text = text_of(file, line)?;
    Ok(checksum::unseal(&mut text, Form::Compact).is_ok())
}

/// The repetition in the first bytes of a record.
fn repetition(head: &[u8]) -> Option<u32> {
    let name = head
        .windows(REPETITION.len())
        .position(|bytes| bytes == REPETITION)?;
    let rest = head.get(name + REPETITION.len()..)?;
    let digits = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(rest.get(..digits)?).ok()?.parse().ok()
}

/// Files of records, and where each record lies in them, as far as they were looked at.
#[derive(Debug, Default)]
pub(crate) struct RecordFiles(Mutex<BTreeMap<PathBuf, Index>>);

impl RecordFiles {
    /// The record of a repetition; `None` where the file has none.
    pub(crate) fn read(
        &self,
        path: &Path,
        repetition: u32,
    ) -> Result<Option<RecordText>, ReadError> {
        let Some(file) = open::regular(path)? else {
            return Ok(None);
        };
        let line = self.look(path, &file, |index| index.lines.get(&repetition).copied())?;
        let Some(line) = line else {
            return Ok(None);
        };
        if line.bytes > RECORD_BYTES {
            return Err(ReadError::TooLarge(RECORD_BYTES));
        }
        Ok(Some(RecordText {
            line: line.number,
            text: text_of(&file, line)?,
        }))
    }

    /// Returns true if the file has a record of a repetition, sound or not.
    pub(crate) fn has(&self, path: &Path, repetition: u32) -> Result<bool, ReadError> {
        let Some(file) = open::regular(path)? else {
            return Ok(false);
        };
        Ok(self.look(path, &file, |index| index.lines.contains_key(&repetition))?)
    }

    /// Repetitions of which the file has a record, sound or not.
    pub(crate) fn repetitions(&self, path: &Path) -> Result<Vec<u32>, ReadError> {
        let Some(file) = open::regular(path)? else {
            return Ok(Vec::new());
        };
        let repetitions = |index: &Index| index.lines.keys().copied().collect();
        Ok(self.look(path, &file, repetitions)?)
    }

    /// Numbers of the lines that are of no repetition that can be read, where one of the first `repetitions` is missing:
    /// each may have been its record.
    pub(crate) fn unknown(&self, path: &Path, repetitions: u32) -> Result<Vec<u64>, ReadError> {
        let Some(file) = open::regular(path)? else {
            return Ok(Vec::new());
        };
        let unknown = |index: &Index| match index.is_complete(repetitions) {
            true => Vec::new(),
            false => index.unknown.clone(),
        };
        Ok(self.look(path, &file, unknown)?)
    }

    /// Append the record of a repetition of `repetitions`; then put lines in order if it was the last one missing.
    ///
    /// # Errors
    /// Where the file cannot be written, or is none; no part of the record stays in it.
    pub(crate) fn append(
        &self,
        path: &Path,
        (repetition, repetitions): (u32, u32),
        mut record: Vec<u8>,
    ) -> Result<(), ResultsError> {
        let mut file = open::to_append(path)?;
        record.push(b'\n');
        let mut files = self.lock();
        let index = files.entry(path.to_owned()).or_default();
        let failed = |error| ResultsError::io(Action::Write, path, error);
        index.follow(&file).map_err(failed)?;
        if index.is_open {
            file.write_all(b"\n").map_err(failed)?;
            index.end += 1;
            index.is_open = false;
            index.stamp = stamp(&file).ok();
        }
        // A killed process left the beginning of a line.
        if index.stamp.is_some_and(|stamp| stamp.1 > index.end) {
            file.set_len(index.end).map_err(failed)?;
        }
        if let Err(error) = file.write_all(&record) {
            // The rest of it is no line, and so no record.
            let _ = file.set_len(index.end);
            return Err(failed(error));
        }
        index.push(Some(repetition), record.len() as u64);
        index.stamp = stamp(&file).ok();
        if index.is_complete(repetitions) && !index.is_in_order() {
            put_in_order(path, &file, index)?;
            files.remove(path);
        }
        Ok(())
    }

    fn look<T>(&self, path: &Path, file: &File, of: impl FnOnce(&Index) -> T) -> io::Result<T> {
        let mut files = self.lock();
        let index = files.entry(path.to_owned()).or_default();
        index.follow(file)?;
        Ok(of(index))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Index>> {
        // An index that is wrong is found out by the checksums.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn text_of(file: &File, line: Line) -> io::Result<Vec<u8>> {
    let bytes = usize::try_from(line.bytes).map_err(io::Error::other)?;
    let mut text = vec![0; bytes];
    file.read_exact_at(&mut text, line.start)?;
    Ok(text)
}

/// Replace the file by one with the lines that count, by repetition.
fn put_in_order(path: &Path, file: &File, index: &Index) -> Result<(), ResultsError> {
    let mut ordered = AtomicFile::create(path)?;
    for line in index.lines.values() {
        text_of(file, *line)
            .and_then(|text| ordered.write_all(&text))
            .and_then(|()| ordered.write_all(b"\n"))
            .map_err(|error| ResultsError::io(Action::Write, path, error))?;
    }
    ordered.commit()
}

#[cfg(test)]
mod tests;
