//! Files of an attempt.

use crate::error::AttemptError;
use crate::lease::{Lease, PREFIX};
use slicewise_capture::store::make_folders;
use slicewise_stats::path::run_components;
use slicewise_stats::record::RunKey;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Names of the captures of a run.
pub const CAPTURE_NAMES: [&str; 2] = ["sent.pcap", "received.pcap"];
/// Most folders that killed processes of one number may have left.
const MAX_LEFT: u32 = 1_000;
/// Room that must be left: less is none, for a file system keeps some for itself.
const ROOM_BYTES: usize = 1 << 16;

/// Folders for one attempt, deleted with all that is in them when this is dropped.
#[derive(Debug)]
pub(crate) struct Workspace {
    temporary: PathBuf,
    kept: Option<Kept>,
}

/// Captures that are to stay, should the attempt be taken.
#[derive(Debug)]
struct Kept {
    /// Where they go then.
    folder: PathBuf,
    /// Where they are until then: on the same file system, which has the room, and where nobody else can put a
    /// file or a link in their way.
    unfinished: PathBuf,
}

impl Workspace {
    /// Make it. Captures of a run that is to be kept come into its folder below a root, once they are taken.
    ///
    /// Its folders are this user's alone, for others may be allowed to write beside them; they are new, and on
    /// the list, for the next testbed; without a lease, as in a lab, they are on no list, and what a killed process left
    /// stays.
    pub(crate) fn new(
        lease: Option<&Lease>,
        kept: Option<(&Path, &RunKey)>,
    ) -> Result<Self, AttemptError> {
        let process = std::process::id();
        let mut temporary = std::env::temp_dir().join(format!("{PREFIX}{process}-files"));
        if lease.is_none() {
            // A killed process may have had the same number.
            let others = (1..MAX_LEFT).map(|n| temporary.with_extension(n.to_string()));
            let free = |path: &PathBuf| path.symlink_metadata().is_err();
            temporary = std::iter::once(temporary.clone())
                .chain(others)
                .find(free)
                .unwrap_or(temporary);
        }
        // The next testbed may be started elsewhere.
        let temporary = std::path::absolute(&temporary).map_err(failed(&temporary))?;
        let kept = kept.map(|(root, key)| Kept::new(root, key)).transpose()?;
        let folders: Vec<&Path> = [&temporary]
            .into_iter()
            .chain(kept.as_ref().map(|kept| &kept.unfinished))
            .map(PathBuf::as_path)
            .collect();
        // What is there is somebody else's, and is not to be deleted.
        for folder in &folders {
            if folder.symlink_metadata().is_ok() {
                return Err(failed(folder)(io::ErrorKind::AlreadyExists.into()));
            }
        }
        let list = |folders: &[&Path]| lease.map_or(Ok(()), |lease| lease.owns_folders(folders));
        list(&folders).map_err(AttemptError::failed(
            "the list of folders to be deleted cannot be written",
        ))?;
        for (made, folder) in folders.iter().enumerate() {
            if let Err(error) = DirBuilder::new().mode(0o700).create(folder) {
                for folder in folders.iter().take(made) {
                    let _ = fs::remove_dir(folder);
                }
                // Whoever made it meanwhile keeps it.
                let _ = list(&[]);
                return Err(failed(folder)(error));
            }
        }
        Ok(Self { temporary, kept })
    }

    /// For temporary files of programs, which killed programs leave behind.
    pub(crate) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Folder of the captures.
    pub(crate) fn captures(&self) -> &Path {
        let kept = self.kept.as_ref().map(|kept| kept.unfinished.as_path());
        kept.unwrap_or(&self.temporary)
    }

    /// Put captures that are to stay where they belong.
    pub(crate) fn keep_captures(&self) -> Result<(), AttemptError> {
        let Some(kept) = &self.kept else {
            return Ok(());
        };
        kept.check_free()?;
        for name in CAPTURE_NAMES {
            let path = kept.folder.join(name);
            fs::rename(kept.unfinished.join(name), &path).map_err(failed(&path))?;
        }
        Ok(())
    }

    /// An error if the disk is so full that files may be incomplete: tcpdump does not report that.
    pub(crate) fn check_room(&self) -> Result<(), AttemptError> {
        check_room(&self.temporary)?;
        check_room(self.captures())
    }
}

impl Kept {
    fn new(root: &Path, key: &RunKey) -> Result<Self, AttemptError> {
        let folder = make_folders(root, &run_components(key)).map_err(failed(root))?;
        let folder = std::path::absolute(&folder).map_err(failed(&folder))?;
        let unfinished = folder.join(format!("{PREFIX}{}-captures", std::process::id()));
        let kept = Self { folder, unfinished };
        kept.check_free()?;
        Ok(kept)
    }

    /// An error where there are captures already: real packets cannot be captured again.
    fn check_free(&self) -> Result<(), AttemptError> {
        for name in CAPTURE_NAMES {
            let path = self.folder.join(name);
            if path.symlink_metadata().is_ok() {
                return Err(AttemptError::Failed(format!(
                    "`{}` exists, and captures of real packets are not replaced: move it away, or name another \
                     folder for captures",
                    path.display()
                )));
            }
        }
        Ok(())
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> AttemptError + use<> {
    let path = path.display().to_string();
    move |error| AttemptError::Failed(format!("{path}: {error}"))
}

fn check_room(folder: &Path) -> Result<(), AttemptError> {
    let file = folder.join("room");
    let written = File::create_new(&file).and_then(|mut room| {
        io::Write::write_all(&mut room, &[0xa5; ROOM_BYTES])?;
        room.sync_all()
    });
    // Whatever became of it.
    let _ = fs::remove_file(&file);
    written.map_err(failed(folder))
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // If deletion fails, it stays on the list for the next testbed.
        let _ = fs::remove_dir_all(&self.temporary);
        if let Some(kept) = &self.kept {
            let _ = fs::remove_dir_all(&kept.unfinished);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_room_is_unchanged_and_one_without_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        check_room(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let missing = folder.path().join("missing");
        let error = check_room(&missing).unwrap_err().to_string();
        assert!(error.contains(&missing.display().to_string()), "{error}");
    }

    #[test]
    fn captures_that_are_there_are_not_replaced() {
        let root = tempfile::tempdir().unwrap();
        let key = RunKey {
            policy: "p".to_owned(),
            scenario: "s".to_owned(),
            repetition: 7,
            ..RunKey::default()
        };
        Kept::new(root.path(), &key).unwrap();
        let theirs = root.path().join("p/s/rep-007/received.pcap");
        fs::write(&theirs, "packets").unwrap();
        let error = Kept::new(root.path(), &key).unwrap_err().to_string();
        assert!(error.contains("received.pcap` exists"), "{error}");
        assert_eq!(fs::read_to_string(theirs).unwrap(), "packets");
    }

    #[test]
    fn captures_that_are_taken_get_their_names_and_others_are_deleted() {
        let root = tempfile::tempdir().unwrap();
        let made = |name: &str| {
            let path = root.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let (folder, unfinished, temporary) = (made("run"), made("captures"), made("files"));
        for name in CAPTURE_NAMES {
            fs::write(unfinished.join(name), name).unwrap();
        }
        let kept = Some(Kept {
            folder: folder.clone(),
            unfinished: unfinished.clone(),
        });
        let workspace = Workspace { temporary, kept };
        workspace.keep_captures().unwrap();
        drop(workspace);
        for name in CAPTURE_NAMES {
            assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), name);
        }
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }
}
