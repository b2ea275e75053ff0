//! The memory that holds frames between arrival and departure.

#![allow(unsafe_code)]

mod budget;
mod levels;
mod shares;

pub use budget::{Budget, Needs, PortBudget, TooLittle, bytes_of, chunks_of};
pub use shares::{ShareId, Shares, Wanted, level};

use crate::sys::map::Map;
use std::io;

/// Bytes of a chunk: room for an Ethernet frame (not a jumbo frame) and the headroom of AF_XDP.
pub const CHUNK_BYTES: usize = 2048;
/// Bytes that the kernel leaves free at the beginning of a chunk that it writes to.
pub const HEADROOM_BYTES: usize = 256;
/// Bytes of a frame in a chunk that the kernel writes to.
pub const FRAME_BYTES_PER_CHUNK: usize = CHUNK_BYTES - HEADROOM_BYTES;

/// A frame, by the number of its first chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameId(pub u32);

/// Memory cut into chunks of equal size. A frame is one chunk, or several in a chain.
///
/// The memory is a mapping, so that AF_XDP can have the kernel write frames into it. A chunk has one
/// owner at a time: the free list, a frame, or the kernel (from [`take`](Self::take) until a
/// frame is made of it or it is [given back](Self::give_back)). Only chunks of frames are read and
/// written here.
///
/// A frame that waits in a queue is held [for a share](Self::try_hold) of the memory, so that no queue takes
/// memory that others need. Shares and ports stay within their [`Budget`], so there is always a chunk to receive
/// into.
#[derive(Debug)]
pub struct FrameMemory {
    map: Map,
    free: Vec<u32>,
    chunks: Vec<Chunk>,
    shares: Shares,
}

/// Contents of a chunk that belongs to a frame.
#[derive(Debug, Clone, Copy)]
struct Chunk {
    offset: u16,
    length: u16,
    /// The next chunk of the frame; [`END`] in the last.
    next: u32,
    /// In the first chunk of a frame: the share that it is held for.
    share: Option<ShareId>,
}

const END: u32 = u32::MAX;
const UNUSED: Chunk = Chunk {
    offset: 0,
    length: 0,
    next: END,
    share: None,
};

impl FrameMemory {
    /// Memory of this many chunks, all of it present.
    ///
    /// # Errors
    /// If the system does not have enough memory.
    pub fn new(chunks: u32) -> io::Result<Self> {
        let count = chunks as usize;
        Ok(Self {
            map: Map::anonymous(count.max(1) * CHUNK_BYTES)?,
            free: (0..chunks).rev().collect(),
            chunks: vec![UNUSED; count],
            shares: Shares::default(),
        })
    }

    /// The mapping, for AF_XDP to register.
    #[must_use]
    pub const fn map(&self) -> &Map {
        &self.map
    }

    /// Chunks that belong to nobody.
    #[must_use]
    pub fn free_chunks(&self) -> usize {
        self.free.len()
    }

    /// All chunks.
    #[must_use]
    pub fn total_chunks(&self) -> usize {
        self.chunks.len()
    }

    /// A chunk for the kernel to write to.
    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// A chunk that belongs to nobody again.
    #[inline]
    pub fn give_back(&mut self, chunk: u32) {
        debug_assert!((chunk as usize) < self.chunks.len(), "not one of ours");
        debug_assert!(self.free.len() < self.chunks.len(), "given back twice");
        self.free.push(chunk);
    }

    /// A frame of one chunk that the kernel has written `length` bytes to, at `offset`; false where
    /// the kernel reported something impossible.
    #[inline]
    pub fn adopt(&mut self, chunk: u32, offset: usize, length: usize) -> bool {
        let is_within = offset + length <= CHUNK_BYTES;
        match (self.chunks.get_mut(chunk as usize), is_within) {
            (Some(entry), true) => {
                *entry = Chunk {
                    offset: short(offset),
                    length: short(length),
                    ..UNUSED
                };
                true
            }
            _ => false,
        }
    }

    /// Append `next`, until now a separate frame, after `last`.
    #[inline]
    pub fn chain(&mut self, last: u32, next: u32) {
        if let Some(entry) = self.chunks.get_mut(last as usize) {
            entry.next = next;
        }
    }

    /// A frame with a copy of these bytes, one piece after the other; `None` if there is not enough memory.
    #[inline]
    pub fn store(&mut self, pieces: &[&[u8]]) -> Option<FrameId> {
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        let needed = length.div_ceil(CHUNK_BYTES).max(1);
        if needed > self.free.len() {
            return None;
        }
        let first = self.free.pop()?;
        *self.chunks.get_mut(first as usize)? = UNUSED;
        let mut last = first;
        for piece in pieces {
            let mut rest = *piece;
            loop {
                let used = usize::from(self.chunks.get(last as usize)?.length);
                let (fits, beyond) = rest.split_at(rest.len().min(CHUNK_BYTES - used));
                self.write(last, used, fits);
                if beyond.is_empty() {
                    break;
                }
                let next = self.free.pop()?;
                *self.chunks.get_mut(next as usize)? = UNUSED;
                self.chain(last, next);
                last = next;
                rest = beyond;
            }
        }
        Some(FrameId(first))
    }

    /// Append to a chunk that has `used` bytes.
    #[inline]
    fn write(&mut self, chunk: u32, used: usize, bytes: &[u8]) {
        let at = self
            .map
            .at(chunk as usize * CHUNK_BYTES + used, bytes.len());
        // SAFETY: the chunk was taken from the free list, so neither a frame nor the kernel has
        // it; `at` is checked to lie within the mapping, `bytes` is no part of it that is written.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at.as_ptr(), bytes.len()) };
        if let Some(entry) = self.chunks.get_mut(chunk as usize) {
            entry.length = short(used + bytes.len());
        }
    }

    /// The bytes in the first chunk of a frame: all its headers.
    #[inline]
    #[must_use]
    pub fn head(&self, frame: FrameId) -> &[u8] {
        self.bytes(frame.0)
    }

    /// The same, to be written to.
    #[inline]
    pub fn head_mut(&mut self, frame: FrameId) -> &mut [u8] {
        let Some(entry) = self.chunks.get(frame.0 as usize) else {
            return &mut [];
        };
        let (offset, length) = (usize::from(entry.offset), usize::from(entry.length));
        let at = self.map.at(frame.0 as usize * CHUNK_BYTES + offset, length);
        // SAFETY: the chunk belongs to a frame, so the kernel does not write to it; `&mut self`
        // keeps everybody else from it; `at` is checked to lie within the mapping.
        unsafe { std::slice::from_raw_parts_mut(at.as_ptr(), length) }
    }

    #[inline]
    fn bytes(&self, chunk: u32) -> &[u8] {
        let Some(entry) = self.chunks.get(chunk as usize) else {
            return &[];
        };
        let (offset, length) = (usize::from(entry.offset), usize::from(entry.length));
        let at = self.map.at(chunk as usize * CHUNK_BYTES + offset, length);
        // SAFETY: the chunk belongs to a frame, so the kernel does not write to it, and `&self`
        // keeps us from doing so; `at` is checked to lie within the mapping.
        unsafe { std::slice::from_raw_parts(at.as_ptr(), length) }
    }

    /// The chunks of a frame, in order: number, and where its bytes are in the chunk.
    #[inline]
    pub fn chunks(&self, frame: FrameId) -> impl Iterator<Item = ChunkOf> {
        let mut next = frame.0;
        std::iter::from_fn(move || {
            let entry = self.chunks.get(next as usize)?;
            let chunk = ChunkOf {
                chunk: next,
                offset: entry.offset,
                length: entry.length,
                is_last: entry.next == END,
            };
            next = entry.next;
            Some(chunk)
        })
    }

    /// The bytes of a frame, one piece per chunk.
    #[inline]
    pub fn pieces(&self, frame: FrameId) -> impl Iterator<Item = &[u8]> {
        self.chunks(frame).map(|chunk| self.bytes(chunk.chunk))
    }

    /// Bytes of a frame, in all its chunks.
    #[inline]
    #[must_use]
    pub fn length(&self, frame: FrameId) -> usize {
        self.chunks(frame)
            .map(|chunk| usize::from(chunk.length))
            .sum()
    }

    /// Returns the shares of queues.
    #[must_use]
    pub const fn shares(&self) -> &Shares {
        &self.shares
    }

    /// The same, to be divided.
    pub const fn shares_mut(&mut self) -> &mut Shares {
        &mut self.shares
    }

    /// Hold a frame for a share; returns whether the share has room for it.
    #[inline]
    pub fn try_hold(&mut self, frame: FrameId, share: ShareId) -> bool {
        let has_room = self.shares.try_use(share, self.chunk_count(frame));
        if let (true, Some(entry)) = (has_room, self.chunks.get_mut(frame.0 as usize)) {
            entry.share = Some(share);
        }
        has_room
    }

    /// Release a frame from its share: it is about to leave.
    #[inline]
    pub fn let_go(&mut self, frame: FrameId) {
        let entry = self.chunks.get_mut(frame.0 as usize);
        if let Some(share) = entry.and_then(|entry| entry.share.take()) {
            self.shares.release(share, self.chunk_count(frame));
        }
    }

    #[inline]
    fn chunk_count(&self, frame: FrameId) -> u32 {
        self.chunks(frame).map(|_| 1).sum()
    }

    /// A frame that is no longer needed.
    #[inline]
    pub fn release(&mut self, frame: FrameId) {
        self.let_go(frame);
        let mut next = frame.0;
        while let Some(entry) = self.chunks.get(next as usize) {
            let chunk = next;
            next = entry.next;
            self.give_back(chunk);
        }
    }
}

/// A chunk of a frame.
#[derive(Debug, Clone, Copy)]
pub struct ChunkOf {
    /// Its number.
    pub chunk: u32,
    /// Where in the chunk its bytes begin.
    pub offset: u16,
    /// How many there are.
    pub length: u16,
    /// True if the frame ends here.
    pub is_last: bool,
}

/// A place in a chunk: [`CHUNK_BYTES`] is small.
fn short(bytes: usize) -> u16 {
    u16::try_from(bytes).unwrap_or(u16::MAX)
}

/// Maximum number of frames received from a port at a time, so that neither direction waits long for the other.
pub const BATCH: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_frame_reads_as_it_was_stored_and_gives_all_its_chunks_back(
            lengths in proptest::collection::vec(0usize..5_000, 1..6),
        ) {
            let mut memory = FrameMemory::new(16).unwrap();
            let bytes: Vec<Vec<u8>> = (0u8..).zip(&lengths).map(|(i, &n)| vec![i; n]).collect();
            let pieces: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
            let total: usize = lengths.iter().sum();
            match memory.store(&pieces) {
                Some(frame) => {
                    prop_assert_eq!(memory.length(frame), total);
                    let read: Vec<u8> = memory.pieces(frame).flatten().copied().collect();
                    prop_assert_eq!(read, bytes.concat());
                    memory.release(frame);
                }
                None => prop_assert!(total > 16 * CHUNK_BYTES),
            }
            prop_assert_eq!(memory.free_chunks(), 16);
        }
    }

    #[test]
    fn refuses_what_the_kernel_cannot_have_written() {
        let mut memory = FrameMemory::new(2).unwrap();
        assert!(memory.adopt(1, 256, 1_500));
        assert!(!memory.adopt(2, 256, 60));
        assert!(!memory.adopt(1, 256, CHUNK_BYTES));
    }
}
