//! The packets of several files in time order.
//!
//! Each file is opened once to read the time of its first packet, then closed and reopened when that
//! packet is due. So one or two rotated files are open at a time, and all files of several interfaces.
//! At most [`MOST_OPEN_FILES`] files may overlap in time.

use super::Eye;
use super::Parse;
use super::key::KeyBytes;
use super::peek::{Peeked, peek};
use super::timeline::{Seen, Timeline};
use crate::error::CaptureError;
use crate::file::{BUFFER_BYTES, CaptureFile, FileFacts, Progress};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

/// Files open at once, each with a buffer of half a megabyte.
pub(super) const MOST_OPEN_FILES: usize = 64;

pub(super) struct Merge {
    /// In time order.
    waiting: VecDeque<Peeked>,
    open: Vec<Stream>,
    /// Those read completely.
    done: Vec<FileFacts>,
    progress: Arc<Progress>,
}

/// A file being read, its packets in time order.
pub(super) struct Stream {
    /// At the next unread packet.
    file: CaptureFile,
    has_ended: bool,
    line: Timeline,
}

impl Stream {
    fn new(file: CaptureFile) -> Self {
        Self {
            file,
            has_ended: false,
            line: Timeline::default(),
        }
    }

    /// Read until a packet can be released or the file ends.
    #[inline]
    fn fill(&mut self, eye: &mut Eye) {
        while self.line.head().is_none() && !self.has_ended {
            let record = self.file.facts().packets;
            if let Some((sighting, tcp)) = eye.see(self.file.record(), self.file.bytes()) {
                self.line.push(Seen {
                    sighting,
                    tcp,
                    record,
                    jumps: false,
                });
            }
            if !self.file.advance() {
                self.has_ended = true;
                self.line.finish();
            }
        }
    }

    /// The next packet; none at the end.
    #[inline]
    pub fn head(&self) -> Option<&Seen> {
        self.line.head()
    }

    #[inline]
    pub fn next(&mut self, eye: &mut Eye) {
        self.line.pop();
        self.fill(eye);
    }

    /// Name of the file.
    pub fn name(&self) -> &str {
        &self.file.facts().name
    }

    fn facts(&self) -> FileFacts {
        FileFacts {
            times: self.line.facts().clone(),
            ..self.file.facts().clone()
        }
    }
}

/// Which file is next, and for how long.
pub(super) struct Turn {
    file: usize,
    time_ns: u64,
    /// Its packets may be read as long as they are before this time.
    pub until_ns: u64,
}

impl Merge {
    /// Also returns what keys can cover in all of the files.
    pub fn open(paths: &[PathBuf], parse: Parse) -> Result<(Self, KeyBytes), CaptureError> {
        let mut merge = Self {
            waiting: VecDeque::new(),
            open: Vec::new(),
            done: Vec::new(),
            progress: Arc::default(),
        };
        let mut key_bytes = KeyBytes::MOST;
        let mut with_packets = Vec::new();
        for path in paths {
            let peeked = peek(path, &merge.progress, parse)?;
            key_bytes = key_bytes.common(peeked.key_bytes);
            if peeked.facts.packets > 0 {
                with_packets.push(peeked);
            } else {
                merge.done.push(peeked.facts);
            }
        }
        // Files that begin at the same time keep the order given.
        with_packets.sort_by_key(|peeked| peeked.first_ns);
        merge.waiting = with_packets.into();
        Ok((merge, key_bytes))
    }

    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    pub fn facts(&self) -> Vec<FileFacts> {
        let open = self.open.iter().map(Stream::facts);
        self.done.iter().cloned().chain(open).collect()
    }

    /// Comments at the beginning of the files not opened for reading yet.
    pub fn comments(&self) -> impl Iterator<Item = &str> {
        let waiting = self.waiting.iter();
        waiting.flat_map(|peeked| peeked.facts.comments.iter().map(String::as_str))
    }

    /// Coarsest resolution of timestamps among the files, ns.
    pub fn resolution_ns(&self) -> u64 {
        let waiting = self.waiting.iter().map(|peeked| &peeked.facts);
        let open = self.open.iter().map(|stream| stream.file.facts());
        let all = self.done.iter().chain(waiting).chain(open);
        all.map(FileFacts::resolution_ns).max().unwrap_or(1)
    }

    /// The file whose packet is next.
    pub fn turn(&mut self, eye: &mut Eye) -> Result<Option<Turn>, CaptureError> {
        loop {
            self.close_ended();
            let mut earliest: Option<Turn> = None;
            let due_ns = self
                .waiting
                .front()
                .map_or(u64::MAX, |first| first.first_ns);
            let mut next_ns = due_ns;
            for (file, open) in self.open.iter().enumerate() {
                let Some(time_ns) = open.head().map(|seen| seen.sighting.time_ns) else {
                    continue;
                };
                match &mut earliest {
                    Some(turn) if turn.time_ns <= time_ns => next_ns = next_ns.min(time_ns),
                    turn => {
                        next_ns = next_ns.min(turn.as_ref().map_or(u64::MAX, |t| t.time_ns));
                        let until_ns = 0;
                        *turn = Some(Turn {
                            file,
                            time_ns,
                            until_ns,
                        });
                    }
                }
            }
            if self.waiting.is_empty() || earliest.as_ref().is_some_and(|t| t.time_ns < due_ns) {
                return Ok(earliest.map(|turn| Turn {
                    until_ns: next_ns,
                    ..turn
                }));
            }
            self.open_next(eye)?;
        }
    }

    /// The file whose turn it is.
    pub fn stream(&mut self, turn: &Turn) -> Option<&mut Stream> {
        self.open.get_mut(turn.file)
    }

    fn close_ended(&mut self) {
        let ended = self.open.extract_if(.., |stream| stream.head().is_none());
        self.done.extend(ended.map(|stream| stream.facts()));
    }

    fn open_next(&mut self, eye: &mut Eye) -> Result<(), CaptureError> {
        let Some(peeked) = self.waiting.pop_front() else {
            return Ok(());
        };
        if self.open.len() >= MOST_OPEN_FILES {
            return Err(CaptureError {
                file: peeked.facts.name,
                offset: None,
                why: format!(
                    "overlaps in time with {MOST_OPEN_FILES} other files of its measuring point, \
                     the most that can be read at once; merge some of them first with `mergecap`"
                ),
            });
        }
        let file = match peeked.kept {
            Some(file) => file,
            None => {
                let mut file = CaptureFile::open_with(&peeked.path, &self.progress, BUFFER_BYTES)?;
                if !file.advance() {
                    self.done.push(file.into_facts());
                    return Ok(());
                }
                file
            }
        };
        let mut stream = Stream::new(file);
        stream.fill(eye);
        self.open.push(stream);
        Ok(())
    }
}
