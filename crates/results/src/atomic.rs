//! Files that are either there whole or not at all.

use crate::{Action, ResultsError};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Ends the name of a file that is being written; a killed process leaves such files behind.
const TEMPORARY_SUFFIX: &str = ".partial";
/// Names that are tried: each that is taken was left by a killed process, or put there by somebody else.
const NAMES_TRIED: u32 = 1_000;

static NEXT_TEMPORARY: AtomicU64 = AtomicU64::new(0);

/// A file under a temporary name in its folder; [`commit`](Self::commit) gives it its name. Dropped
/// without commit, it is removed.
///
/// The temporary file is always a new one: nothing is opened that was there before, and no link is
/// followed. Renaming is atomic, and replaces a link rather than what it points to. The data is not forced
/// to the disk, because a file that a power cut leaves short is detected when it is read.
#[derive(Debug)]
pub struct AtomicFile {
    writer: Option<BufWriter<File>>,
    temporary: PathBuf,
    target: PathBuf,
}

impl AtomicFile {
    /// Begin a file that is to become `target`.
    ///
    /// # Errors
    /// Where no file can be made in its folder.
    pub fn create(target: &Path) -> Result<Self, ResultsError> {
        let (file, temporary) =
            create_new(target).map_err(|e| ResultsError::io(Action::Write, target, e))?;
        let writer = Some(BufWriter::with_capacity(1 << 16, file));
        Ok(Self {
            writer,
            temporary,
            target: target.to_owned(),
        })
    }

    /// Give the file its name, replacing what had it.
    ///
    /// # Errors
    /// Where it cannot be written or renamed.
    pub fn commit(mut self) -> Result<(), ResultsError> {
        let renamed = match self.writer.take() {
            Some(mut writer) => writer.flush(),
            None => Ok(()),
        }
        .and_then(|()| fs::rename(&self.temporary, &self.target));
        renamed.map_err(|e| {
            // The error is reported; a file left behind is swept when the folder is next used.
            let _ = fs::remove_file(&self.temporary);
            ResultsError::io(Action::Write, &self.target, e)
        })
    }
}

/// A new file for what is to become `target`, and its path.
fn create_new(target: &Path) -> io::Result<(File, PathBuf)> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let process = std::process::id();
    let mut tried = 0;
    loop {
        let number = NEXT_TEMPORARY.fetch_add(1, Ordering::Relaxed);
        let temporary =
            target.with_file_name(format!(".{name}.{process}-{number}{TEMPORARY_SUFFIX}"));
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temporary)
        {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && tried < NAMES_TRIED => tried += 1,
            other => return other.map(|file| (file, temporary)),
        }
    }
}

/// The name that a file called `temporary` would have been given; `None` for a name that none has.
pub(crate) fn target_name(temporary: &str) -> Option<&str> {
    let rest = temporary
        .strip_prefix('.')?
        .strip_suffix(TEMPORARY_SUFFIX)?;
    let (name, number) = rest.rsplit_once('.')?;
    let (process, number) = number.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (is_number(process) && is_number(number)).then_some(name)
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.writer {
            Some(writer) => writer.write(bytes),
            None => Err(io::Error::other("the file is finished")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), BufWriter::flush)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if self.writer.take().is_some() {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Write `bytes` to `target` at once.
///
/// # Errors
/// Where it cannot be written.
pub fn write_file(target: &Path, bytes: &[u8]) -> Result<(), ResultsError> {
    let mut file = AtomicFile::create(target)?;
    file.write_all(bytes)
        .map_err(|e| ResultsError::io(Action::Write, target, e))?;
    file.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_it_gives_are_temporary() {
        assert_eq!(
            target_name(".rep-001.json.77-3.partial"),
            Some("rep-001.json")
        );
        for name in [
            "rep-001.json.77-3.partial",
            ".download.partial",
            ".rep-001.json.77-x.partial",
            ".rep-001.json.77-.partial",
            ".partial",
        ] {
            assert_eq!(target_name(name), None, "{name}");
        }
    }

    #[test]
    fn names_that_are_taken_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("file");
        let victim = folder.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        // Other tests take numbers meanwhile.
        let next = NEXT_TEMPORARY.load(Ordering::Relaxed);
        for number in next..next + 200 {
            let name = format!(".file.{}-{number}.partial", std::process::id());
            std::os::unix::fs::symlink(&victim, folder.path().join(name)).unwrap();
        }
        write_file(&target, b"ours").unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "ours");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
    }
}
