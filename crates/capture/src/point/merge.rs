//! The packets of several files in order of time.
//!
//! Files are looked into once, for the time of their first packet, and closed. Each is opened again when
//! its first packet is due, so that of rotated files one is open at a time, or two, and of files
//! from several interfaces all. At most [`MOST_OPEN_FILES`] are: more that overlap in time are refused.

use super::peek::{Peeked, peek};
use crate::error::CaptureError;
use crate::file::{BUFFER_BYTES, CaptureFile, FileFacts, Progress, Record};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

/// Files open at once, each with a buffer of half a megabyte.
pub(super) const MOST_OPEN_FILES: usize = 64;

pub(super) struct Merge {
    /// In order of time.
    waiting: VecDeque<Peeked>,
    open: Vec<Open>,
    /// Those that were read to their end.
    done: Vec<FileFacts>,
    progress: Arc<Progress>,
}

struct Open {
    file: CaptureFile,
    next: Record,
}

impl Merge {
    /// Returns the fewest bytes from the IP header on that the packets looked into had, as well.
    pub fn open(paths: &[PathBuf]) -> Result<(Self, u32), CaptureError> {
        let mut merge = Self {
            waiting: VecDeque::new(),
            open: Vec::new(),
            done: Vec::new(),
            progress: Arc::default(),
        };
        let mut fewest = u32::MAX;
        let mut with_packets = Vec::new();
        for path in paths {
            let peeked = peek(path, &merge.progress)?;
            fewest = fewest.min(peeked.fewest_ip_bytes);
            if peeked.first_ns.is_some() {
                with_packets.push(peeked);
            } else {
                merge.done.push(peeked.facts);
            }
        }
        // Files that begin at the same time stay in the order they were named.
        with_packets.sort_by_key(|peeked| peeked.first_ns);
        merge.waiting = with_packets.into();
        Ok((merge, fewest))
    }

    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    pub fn facts(&self) -> Vec<FileFacts> {
        let open = self.open.iter().map(|open| open.file.facts());
        self.done.iter().chain(open).cloned().collect()
    }

    /// Comments at the beginning of the files that have not been opened to be read.
    pub fn comments(&self) -> impl Iterator<Item = &str> {
        let waiting = self.waiting.iter();
        waiting.flat_map(|peeked| peeked.facts.comments.iter().map(String::as_str))
    }

    /// The file whose packet is next.
    #[inline]
    pub fn turn(&mut self) -> Result<Option<usize>, CaptureError> {
        if let [only] = self.open.as_slice()
            && self
                .waiting
                .front()
                .is_none_or(|first| first.first_ns > Some(only.next.time_ns))
        {
            return Ok(Some(0));
        }
        self.choose()
    }

    /// The packet of the file whose turn it is.
    #[inline]
    pub fn packet(&self, turn: usize) -> Option<(&Record, &[u8])> {
        let open = self.open.get(turn)?;
        Some((&open.next, open.file.bytes(&open.next)))
    }

    /// Passes that packet.
    #[inline]
    pub fn pass(&mut self, turn: usize) {
        let Some(open) = self.open.get_mut(turn) else {
            return;
        };
        match open.file.advance() {
            Some(next) => open.next = next,
            None => {
                let ended = self.open.remove(turn);
                self.done.push(ended.file.into_facts());
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn choose(&mut self) -> Result<Option<usize>, CaptureError> {
        loop {
            let earliest = self
                .open
                .iter()
                .enumerate()
                .min_by_key(|(_, open)| open.next.time_ns)
                .map(|(turn, open)| (turn, open.next.time_ns));
            let due = self.waiting.front().and_then(|first| first.first_ns);
            match (earliest, due) {
                (Some((turn, time_ns)), due) if due.is_none_or(|due| due > time_ns) => {
                    return Ok(Some(turn));
                }
                (None, None) => return Ok(None),
                _ => self.open_next()?,
            }
        }
    }

    fn open_next(&mut self) -> Result<(), CaptureError> {
        let Some(peeked) = self.waiting.pop_front() else {
            return Ok(());
        };
        if self.open.len() >= MOST_OPEN_FILES {
            return Err(CaptureError {
                file: peeked.facts.name,
                offset: None,
                why: format!(
                    "overlaps in time with {MOST_OPEN_FILES} other files of its measuring point, \
                     the most that are read at once; merge some of them first with `mergecap`"
                ),
            });
        }
        let (file, next) = match peeked.kept {
            Some((file, record)) => (file, Some(record)),
            None => {
                let mut file = CaptureFile::open_with(&peeked.path, &self.progress, BUFFER_BYTES)?;
                let next = file.advance();
                (file, next)
            }
        };
        match next {
            Some(next) => self.open.push(Open { file, next }),
            None => self.done.push(file.into_facts()),
        }
        Ok(())
    }
}
