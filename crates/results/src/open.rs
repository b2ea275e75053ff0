//! Opening what lies in a results folder, which may be anything: another user may have put it there.
//!
//! Reading follows links, so that results may be kept by a program that links to them; what is read is a
//! regular file of bounded size all the same. Nothing is written through a link.

use crate::{Action, ResultsError};
use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("it is {0}, not a file")]
    NotAFile(&'static str),
    #[error("it is larger than {} MiB, the limit", .0 >> 20)]
    TooLarge(u64),
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The bytes of a regular file of at most `most` bytes; `None` where there is none.
///
/// It never waits: a pipe is not opened, and one that takes the file's place meanwhile is opened without
/// blocking and found out.
pub(crate) fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>, ReadError> {
    let Some(file) = regular(path)? else {
        return Ok(None);
    };
    if file.metadata()?.len() > most {
        return Err(ReadError::TooLarge(most));
    }
    let mut bytes = Vec::new();
    // It may grow while it is read.
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(ReadError::TooLarge(most));
    }
    Ok(Some(bytes))
}

/// A regular file, open to be read; `None` where there is none. Like [`read`] it never waits.
pub(crate) fn regular(path: &Path) -> Result<Option<File>, ReadError> {
    let found = match fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    refuse_special(found.file_type())?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    refuse_special(file.metadata()?.file_type())?;
    Ok(Some(file))
}

fn refuse_special(kind: FileType) -> Result<(), ReadError> {
    if kind.is_file() {
        Ok(())
    } else {
        Err(ReadError::NotAFile(kind_name(kind)))
    }
}

/// The file that is locked, made where it is not there.
pub(crate) fn lock_file(path: &Path) -> Result<File, ResultsError> {
    own_file(path, OpenOptions::new().write(true).truncate(false))
}

/// A file to append to, made where it is not there.
pub(crate) fn to_append(path: &Path) -> Result<File, ResultsError> {
    own_file(path, OpenOptions::new().append(true))
}

/// A regular file to read and to write as `options` say, made where it is not there. No link is followed.
fn own_file(path: &Path, options: &mut OpenOptions) -> Result<File, ResultsError> {
    let opened = options
        .read(true)
        .create(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(e) => {
            return Err(match path.symlink_metadata() {
                Ok(found) if !found.is_file() => foreign(path, found.file_type(), "a file"),
                _ => ResultsError::io(Action::Write, path, e),
            });
        }
    };
    let found = file
        .metadata()
        .map_err(|e| ResultsError::io(Action::Read, path, e))?;
    if found.is_file() {
        Ok(file)
    } else {
        Err(foreign(path, found.file_type(), "a file"))
    }
}

/// Make a folder, or find it there; a link to one is refused.
///
/// # Errors
/// Where something else has its name, or it cannot be made.
pub fn make_folder(path: &Path) -> Result<(), ResultsError> {
    match fs::create_dir(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => check_folder(path),
        made => made.map_err(|e| ResultsError::io(Action::CreateFolder, path, e)),
    }
}

/// An error where something else than a folder has its name.
pub(crate) fn check_folder(path: &Path) -> Result<(), ResultsError> {
    match path.symlink_metadata() {
        Ok(found) if !found.is_dir() => Err(foreign(path, found.file_type(), "a folder")),
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            Err(ResultsError::io(Action::Read, path, e))
        }
        _ => Ok(()),
    }
}

fn foreign(path: &Path, kind: FileType, wanted: &'static str) -> ResultsError {
    ResultsError::Foreign {
        path: path.to_owned(),
        what: kind_name(kind),
        wanted,
    }
}

fn kind_name(kind: FileType) -> &'static str {
    if kind.is_file() {
        "a file"
    } else if kind.is_dir() {
        "a folder"
    } else if kind.is_symlink() {
        "a link"
    } else if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}
