//! A window over a stream of bytes: records are parsed in place.

use crate::error::Damage;
use std::io::{ErrorKind, Read};

/// The largest unit that must fit into the window: a packet of [`super::MOST_CAPTURED_BYTES`] with its
/// block header and options.
pub(super) const MOST_NEEDED_BYTES: usize = super::MOST_CAPTURED_BYTES + (64 << 10);

pub(super) struct Buffer {
    source: Box<dyn Read + Send>,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Where in the stream `bytes` begins.
    base: u64,
    /// Set once the stream has ended, with the error if there was one.
    ended: Option<Result<(), String>>,
}

impl Buffer {
    pub fn new(source: Box<dyn Read + Send>, capacity: usize) -> Self {
        Self {
            source,
            bytes: vec![0; capacity],
            start: 0,
            end: 0,
            base: 0,
            ended: None,
        }
    }

    /// Returns true if `bytes` more bytes are in the window, reading more where needed.
    #[inline]
    pub fn has(&mut self, bytes: usize) -> bool {
        self.end - self.start >= bytes || self.fill(bytes)
    }

    /// Unconsumed bytes in the window.
    #[inline]
    pub fn ahead(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// Consumes `bytes` bytes of the window; returns their position, for [`Buffer::at`].
    #[inline]
    pub fn pass(&mut self, bytes: usize) -> usize {
        let start = self.start;
        debug_assert!(
            start + bytes <= self.end,
            "only bytes in the window can be consumed"
        );
        self.start = (start + bytes).min(self.end);
        start
    }

    /// Bytes consumed since the last call of `has`.
    #[inline]
    pub fn at(&self, start: usize, bytes: usize) -> &[u8] {
        self.bytes.get(start..start + bytes).unwrap_or_default()
    }

    /// Skips any number of bytes; false where the stream ends before.
    pub fn skip(&mut self, mut bytes: u64) -> bool {
        loop {
            let held = (self.end - self.start) as u64;
            if bytes <= held {
                self.start += usize::try_from(bytes).unwrap_or(0);
                return true;
            }
            bytes -= held;
            self.start = self.end;
            if !self.fill(1) {
                return false;
            }
        }
    }

    /// Stream offset of the next byte.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// The damage of a stream that ended within `what`, which should have had `expected` bytes from
    /// here.
    #[cold]
    pub fn ends_within(&self, what: &str, expected: u64) -> Damage {
        match &self.ended {
            Some(Err(why)) => self.failed(why),
            _ => {
                let held = self.end - self.start;
                let why = format!("the file ends after {held} of the {expected} bytes of {what}");
                Damage::new(self.offset(), why)
            }
        }
    }

    /// At the end of the stream: whether it ended without error.
    pub fn end(&self) -> Result<(), Damage> {
        match &self.ended {
            Some(Err(why)) => Err(self.failed(why)),
            _ => Ok(()),
        }
    }

    fn failed(&self, why: &str) -> Damage {
        let offset = self.base + self.end as u64;
        let what = if offset == 0 { "the file" } else { "the rest" };
        Damage::new(offset, format!("{what} cannot be read: {why}"))
    }

    #[cold]
    fn fill(&mut self, bytes: usize) -> bool {
        debug_assert!(bytes <= MOST_NEEDED_BYTES, "lengths are checked before");
        self.bytes.copy_within(self.start..self.end, 0);
        self.base += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        if bytes > self.bytes.len() {
            self.bytes.resize(bytes.min(MOST_NEEDED_BYTES), 0);
        }
        while self.end < bytes && self.ended.is_none() {
            let Some(free) = self.bytes.get_mut(self.end..).filter(|f| !f.is_empty()) else {
                return false;
            };
            match self.source.read(free) {
                Ok(0) => self.ended = Some(Ok(())),
                Ok(read) => self.end += read.min(free.len()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => self.ended = Some(Err(error.to_string())),
            }
        }
        self.end >= bytes
    }
}
