//! Files that are either there whole or not at all.

use super::ResultsError;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Ends the name of a file that is being written; a killed process leaves such files behind.
pub(crate) const TEMPORARY_SUFFIX: &str = ".partial";

static NEXT_TEMPORARY: AtomicU64 = AtomicU64::new(0);

/// A file under a temporary name in its folder; [`commit`](Self::commit) gives it its name. Dropped
/// without commit, it is removed.
///
/// Renaming is atomic; the data is not forced to the disk, because a file that a power cut leaves
/// short is detected when it is read.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    writer: Option<BufWriter<File>>,
    temporary: PathBuf,
    target: PathBuf,
}

impl AtomicFile {
    pub(crate) fn create(target: &Path) -> Result<Self, ResultsError> {
        let number = NEXT_TEMPORARY.fetch_add(1, Ordering::Relaxed);
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let temporary = target.with_file_name(format!(
            ".{name}.{}-{number}{TEMPORARY_SUFFIX}",
            std::process::id()
        ));
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&temporary)
            .map_err(|e| ResultsError::io("write", target, e))?;
        let writer = Some(BufWriter::with_capacity(1 << 16, file));
        Ok(Self {
            writer,
            temporary,
            target: target.to_owned(),
        })
    }

    /// Give the file its name, replacing what had it.
    pub(crate) fn commit(mut self) -> Result<(), ResultsError> {
        let renamed = match self.writer.take() {
            Some(mut writer) => writer.flush(),
            None => Ok(()),
        }
        .and_then(|()| fs::rename(&self.temporary, &self.target));
        renamed.map_err(|e| {
            // The error is told; a file left behind is swept when the folder is next used.
            let _ = fs::remove_file(&self.temporary);
            ResultsError::io("write", &self.target, e)
        })
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut self.writer {
            Some(writer) => writer.write(bytes),
            None => Err(std::io::Error::other("the file is finished")),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
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
pub(crate) fn write_file(target: &Path, bytes: &[u8]) -> Result<(), ResultsError> {
    let mut file = AtomicFile::create(target)?;
    file.write_all(bytes)
        .map_err(|e| ResultsError::io("write", target, e))?;
    file.commit()
}
