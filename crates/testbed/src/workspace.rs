//! Where the files of an attempt go.

use crate::error::AttemptError;
use crate::lease::{Lease, PREFIX};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Room that must be left: less is none, for a file system keeps some for itself.
const ROOM_BYTES: usize = 1 << 16;

/// A folder for one attempt, deleted with all that is in it when this is dropped.
#[derive(Debug)]
pub(crate) struct Workspace {
    temporary: PathBuf,
    /// Where captures go instead, to stay.
    kept: Option<PathBuf>,
}

impl Workspace {
    /// Make it. Captures go to `kept`, a folder that stays, or else into it.
    ///
    /// It is this user's alone, for others may be allowed to write beside it, and on the list, for the next
    /// testbed.
    pub(crate) fn new(lease: &Lease, kept: Option<&Path>) -> Result<Self, AttemptError> {
        let temporary = std::env::temp_dir().join(format!("{PREFIX}{}-files", std::process::id()));
        // The next testbed may be started elsewhere.
        let temporary = std::path::absolute(&temporary).map_err(failed(&temporary))?;
        lease.owns_folder(&temporary).map_err(AttemptError::failed(
            "the list of folders to be deleted cannot be written",
        ))?;
        make_anew(&temporary).map_err(failed(&temporary))?;
        // From here on it is deleted.
        let workspace = Self {
            temporary,
            kept: kept.map(Path::to_path_buf),
        };
        if let Some(kept) = kept {
            fs::create_dir_all(kept).map_err(failed(kept))?;
        }
        Ok(workspace)
    }

    /// Where programs put what they need while they run: killed, they leave it there.
    pub(crate) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Where captures go.
    pub(crate) fn captures(&self) -> &Path {
        self.kept.as_deref().unwrap_or(&self.temporary)
    }

    /// An error where not everything can have been written: tcpdump, for one, does not say so.
    pub(crate) fn check_room(&self) -> Result<(), AttemptError> {
        check_room(&self.temporary)?;
        self.kept.as_deref().map_or(Ok(()), check_room)
    }
}

/// This user's alone, and empty.
fn make_anew(folder: &Path) -> io::Result<()> {
    if folder.symlink_metadata().is_ok() {
        fs::remove_dir_all(folder)?;
    }
    DirBuilder::new().mode(0o700).create(folder)
}

fn failed(path: &Path) -> impl Fn(io::Error) -> AttemptError + use<> {
    let path = path.display().to_string();
    move |error| AttemptError::Failed(format!("{path}: {error}"))
}

fn check_room(folder: &Path) -> Result<(), AttemptError> {
    let file = folder.join("room");
    let written = fs::write(&file, [0xa5; ROOM_BYTES])
        .and_then(|()| File::open(&file).and_then(|file| file.sync_all()));
    // Whatever became of it.
    let _ = fs::remove_file(&file);
    written.map_err(failed(folder))
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // What cannot be deleted now is on the list, for the next testbed.
        let _ = fs::remove_dir_all(&self.temporary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_room_is_left_as_it_was_and_one_without_is_named() {
        let folder = tempfile::tempdir().unwrap();
        check_room(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let missing = folder.path().join("missing");
        let error = check_room(&missing).unwrap_err().to_string();
        assert!(error.contains(&missing.display().to_string()), "{error}");
    }
}
