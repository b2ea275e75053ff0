//! Where the files of an attempt go.

use crate::lease::{Lease, PREFIX};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A folder for one attempt, deleted with all that is in it when this is dropped.
#[derive(Debug)]
pub(crate) struct Workspace {
    temporary: PathBuf,
    captures: PathBuf,
}

impl Workspace {
    /// Make it. Captures go to `kept`, a folder that stays, or else into it.
    ///
    /// It is this user's alone, for others may be allowed to write beside it, and on the list, for the next
    /// testbed.
    pub(crate) fn new(lease: &Lease, kept: Option<&Path>) -> io::Result<Self> {
        let name = format!("{PREFIX}{}-files", std::process::id());
        let temporary = std::env::temp_dir().join(name);
        lease.owns_folder(&temporary)?;
        if temporary.symlink_metadata().is_ok() {
            fs::remove_dir_all(&temporary)?;
        }
        DirBuilder::new().mode(0o700).create(&temporary)?;
        let captures = kept.unwrap_or(&temporary).to_path_buf();
        // From here on it is deleted.
        let workspace = Self {
            temporary,
            captures,
        };
        fs::create_dir_all(&workspace.captures)?;
        Ok(workspace)
    }

    /// Where programs put what they need while they run: killed, they leave it there.
    pub(crate) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Where captures go.
    pub(crate) fn captures(&self) -> &Path {
        &self.captures
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // What cannot be deleted now is on the list, for the next testbed.
        let _ = fs::remove_dir_all(&self.temporary);
    }
}
