//! Reading files that may be anything: bounded, and never blocking on what is not a file.

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

/// Largest study or configuration file read: 16 MiB.
pub const MAX_FILE_BYTES: u64 = 16 << 20;

/// Why a file could not be used. Its message names what is wrong, not the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// There is none.
    #[error("no such file")]
    NotFound,
    /// It is a folder, a pipe or a device.
    #[error("this is {0}, not a file")]
    NotAFile(&'static str),
    /// It is larger than [`MAX_FILE_BYTES`].
    #[error("this is larger than {} MiB, the limit", MAX_FILE_BYTES >> 20)]
    TooLarge,
    /// Its bytes are not UTF-8 from this position on.
    #[error("this is not UTF-8 text: byte {byte} is invalid, on line {line}")]
    NotUtf8 {
        /// The position, from 0.
        byte: usize,
        /// The line, from 1.
        line: usize,
    },
    /// The operating system refused.
    #[error("{0}")]
    Io(String),
}

/// Where a study's files come from; paths are as a study names them.
pub trait Files {
    /// The text of a file, at most [`MAX_FILE_BYTES`] long, without a byte-order mark.
    ///
    /// # Errors
    /// Where no such file, or it is not a text file of that size.
    fn read(&self, path: &str) -> Result<String, FileError>;

    /// A file of any size, to be read from its beginning.
    ///
    /// # Errors
    /// Where no such file, or it cannot be opened.
    fn open(&self, path: &str) -> Result<Box<dyn Read + Send>, FileError>;

    /// SHA-256 of a file of any size.
    ///
    /// # Errors
    /// Where no such file, or it cannot be read.
    fn digest(&self, path: &str) -> Result<[u8; 32], FileError> {
        let mut file = self.open(path)?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = file.read(&mut buffer).map_err(|error| io_error(&error))?;
            match buffer.get(..read) {
                Some(part) if !part.is_empty() => hash.update(part),
                _ => return Ok(hash.finalize().into()),
            }
        }
    }

    /// Where an executor finds the file.
    fn locate(&self, path: &str) -> PathBuf;
}

/// Files in a folder of the file system, by their path relative to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    /// The folder `root`.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn opened(&self, path: &str) -> Result<(File, u64), FileError> {
        let path = self.locate(path);
        // Looked at before it is opened: opening a pipe would wait for its other end.
        let metadata = std::fs::metadata(&path).map_err(|error| io_error(&error))?;
        if !metadata.is_file() {
            let kind = if metadata.is_dir() {
                "a folder"
            } else {
                "a pipe, socket or device"
            };
            return Err(FileError::NotAFile(kind));
        }
        let file = File::open(&path).map_err(|error| io_error(&error))?;
        Ok((file, metadata.len()))
    }
}

/// The text of a file, without a byte-order mark.
fn text(bytes: Vec<u8>) -> Result<String, FileError> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let byte = error.utf8_error().valid_up_to();
        let before = error.as_bytes().iter().take(byte);
        let line = 1 + before.filter(|&&byte| byte == b'\n').count();
        FileError::NotUtf8 { byte, line }
    })?;
    Ok(without_byte_order_mark(text))
}

fn io_error(error: &std::io::Error) -> FileError {
    match error.kind() {
        std::io::ErrorKind::NotFound => FileError::NotFound,
        _ => FileError::Io(error.to_string()),
    }
}

impl Files for Folder {
    fn read(&self, path: &str) -> Result<String, FileError> {
        let (file, length) = self.opened(path)?;
        if length > MAX_FILE_BYTES {
            return Err(FileError::TooLarge);
        }
        // The reported length may be wrong (a growing file, /proc): the limit holds all the same.
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| io_error(&error))?;
        if u64::try_from(bytes.len()).map_or(true, |read| read > MAX_FILE_BYTES) {
            return Err(FileError::TooLarge);
        }
        text(bytes)
    }

    fn open(&self, path: &str) -> Result<Box<dyn Read + Send>, FileError> {
        let (file, _) = self.opened(path)?;
        Ok(Box::new(file))
    }

    fn locate(&self, path: &str) -> PathBuf {
        self.root.join(Path::new(path))
    }
}

pub(crate) fn without_byte_order_mark(text: String) -> String {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}

/// Files held in memory, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryFiles {
    files: BTreeMap<String, Vec<u8>>,
}

impl MemoryFiles {
    /// No files.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Add a file.
    #[must_use]
    pub fn with(mut self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.files
            .insert(path.to_owned(), content.as_ref().to_vec());
        self
    }
}

impl Files for MemoryFiles {
    fn read(&self, path: &str) -> Result<String, FileError> {
        let file = self.files.get(path).ok_or(FileError::NotFound)?;
        text(file.clone())
    }

    fn open(&self, path: &str) -> Result<Box<dyn Read + Send>, FileError> {
        let file = self.files.get(path).ok_or(FileError::NotFound)?;
        Ok(Box::new(Cursor::new(file.clone())))
    }

    fn locate(&self, path: &str) -> PathBuf {
        PathBuf::from(path)
    }
}
