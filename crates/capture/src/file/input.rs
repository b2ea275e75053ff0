//! Where the bytes of a capture come from: a file or standard input, compressed or not.

use super::zstd::ZstdFrames;
use crate::error::CaptureError;
use std::fs::File;
use std::io::{BufReader, Chain, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reading progress of a measuring point, for a progress bar in another thread.
#[derive(Debug, Default)]
pub struct Progress {
    read: AtomicU64,
    total: AtomicU64,
}

impl Progress {
    /// Bytes read so far, as stored in the files: compressed ones where they are compressed.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Bytes of all files; 0 where that is not known (standard input, a pipe).
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    pub(crate) fn add_total(&self, bytes: u64) {
        self.total.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Counts what passes through.
pub(super) struct Counted<R> {
    source: R,
    progress: Arc<Progress>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let read = self.source.read(bytes)?;
        self.progress.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

pub(super) struct Input {
    pub name: String,
    pub source: Box<dyn Read + Send>,
}

/// Compressed input is read in pieces of this size.
const COMPRESSED_BUFFER_BYTES: usize = 128 << 10;
const MAGIC_BYTES: usize = 4;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

impl Input {
    /// `-` is standard input.
    pub fn open(path: &Path, progress: &Arc<Progress>) -> Result<Self, CaptureError> {
        let name = name(path);
        let fail = |why: String| CaptureError {
            file: name.clone(),
            offset: None,
            why,
        };
        let source: Box<dyn Read + Send> = if is_stdin(path) {
            Box::new(std::io::stdin())
        } else {
            let file =
                File::open(path).map_err(|error| fail(format!("cannot be opened: {error}")))?;
            if file.metadata().is_ok_and(|facts| facts.is_dir()) {
                let why = "is a directory: name the capture files in it, as in `DIR/*.pcap`";
                return Err(fail(why.into()));
            }
            Box::new(file)
        };
        Self::from_reader(name.clone(), source, progress)
            .map_err(|error| fail(format!("cannot be read: {error}")))
    }

    /// Detects compression by the first bytes, not by the file name.
    pub fn from_reader(
        name: String,
        source: Box<dyn Read + Send>,
        progress: &Arc<Progress>,
    ) -> std::io::Result<Self> {
        let mut source = Counted {
            source,
            progress: Arc::clone(progress),
        };
        let mut magic = Vec::with_capacity(MAGIC_BYTES);
        (&mut source)
            .take(MAGIC_BYTES as u64)
            .read_to_end(&mut magic)?;
        let is_gzip = magic.starts_with(&GZIP);
        let is_zstd = magic.starts_with(&ZSTD);
        let whole = Cursor::new(magic).chain(source);
        let source: Box<dyn Read + Send> = if is_gzip {
            Box::new(flate2::bufread::MultiGzDecoder::new(compressed(whole)))
        } else if is_zstd {
            Box::new(ZstdFrames::new(compressed(whole)))
        } else {
            Box::new(whole)
        };
        Ok(Self { name, source })
    }
}

type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

fn compressed<R: Read>(whole: Whole<R>) -> BufReader<Whole<R>> {
    BufReader::with_capacity(COMPRESSED_BUFFER_BYTES, whole)
}

pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn name(path: &Path) -> String {
    if is_stdin(path) {
        "standard input".into()
    } else {
        path.display().to_string()
    }
}
