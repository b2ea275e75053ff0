//! A port in memory: frames that are put in arrive, and sent frames can be inspected.

use crate::frame_memory::BATCH;
use crate::frame_memory::{FrameId, FrameMemory};
use crate::port::{Arrival, ETHERNET_BYTES, Port, PortCounters, TAG_BYTES, Unsent};
use std::collections::VecDeque;
use std::io;

/// A port in memory.
#[derive(Debug)]
pub struct MemoryPort {
    arriving: VecDeque<Vec<u8>>,
    sent: Vec<Vec<u8>>,
    /// Sent, but with their memory still in use, as until a real interface has finished with a frame.
    leaving: VecDeque<FrameId>,
    /// Frames that can be leaving at a time.
    room: usize,
    mtu_bytes: u32,
    fails: bool,
    /// Frames above this length are taken and not sent.
    sends_bytes: usize,
    unsent: Unsent,
    counters: PortCounters,
    /// Chunks to receive into, where it takes them before frames arrive, and how many it may have.
    lent: Vec<u32>,
    lent_most: usize,
}

impl MemoryPort {
    /// A port that sends IP packets of at most `mtu_bytes`, and takes `room` frames until
    /// [`complete`](Self::complete) is called.
    #[must_use]
    pub fn new(mtu_bytes: u32, room: usize) -> Self {
        Self {
            arriving: VecDeque::new(),
            sent: Vec::new(),
            leaving: VecDeque::new(),
            room,
            mtu_bytes,
            fails: false,
            sends_bytes: usize::MAX,
            unsent: Unsent::default(),
            counters: PortCounters::default(),
            lent: Vec::new(),
            lent_most: 0,
        }
    }

    /// As an AF_XDP socket does, receive into chunks that were lent before: at most so many.
    #[must_use]
    pub const fn lending(mut self, chunks: usize) -> Self {
        self.lent_most = chunks;
        self
    }

    /// A frame arrives.
    pub fn arrive(&mut self, frame: Vec<u8>) {
        self.arriving.push_back(frame);
    }

    /// Frames that have arrived and were not received yet.
    #[must_use]
    pub fn arriving(&self) -> usize {
        self.arriving.len()
    }

    /// The frames sent since this was last asked.
    pub fn take_sent(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.sent)
    }

    /// Everything sent has left: its memory is free again.
    pub fn complete(&mut self, memory: &mut FrameMemory) {
        for frame in self.leaving.drain(..) {
            memory.release(frame);
        }
    }

    /// From here on the interface takes longer frames and does not send them.
    pub const fn refuse_above(&mut self, bytes: usize) {
        self.sends_bytes = bytes;
    }

    /// Its MTU is this from here on.
    pub const fn set_mtu(&mut self, mtu_bytes: u32) {
        self.mtu_bytes = mtu_bytes;
    }

    /// From here on the interface is gone.
    pub fn fail(&mut self) {
        self.fails = true;
    }
}

impl MemoryPort {
    fn store(&mut self, bytes: &[u8], memory: &mut FrameMemory) -> Option<FrameId> {
        if self.lent_most == 0 {
            return memory.store(&[bytes]);
        }
        let chunk = self.lent.pop()?;
        if !memory.adopt(chunk, 0, bytes.len()) {
            memory.give_back(chunk);
            return None;
        }
        memory.head_mut(FrameId(chunk)).copy_from_slice(bytes);
        Some(FrameId(chunk))
    }

    fn refill(&mut self, memory: &mut FrameMemory) {
        while self.lent.len() < self.lent_most {
            let Some(chunk) = memory.take() else {
                self.counters.short_refills += 1;
                return;
            };
            self.lent.push(chunk);
        }
    }
}

fn gone() -> io::Error {
    io::Error::from_raw_os_error(libc::ENETDOWN)
}

impl Port for MemoryPort {
    fn receive(&mut self, memory: &mut FrameMemory, arrivals: &mut Vec<Arrival>) -> io::Result<()> {
        if self.fails {
            return Err(gone());
        }
        for _ in 0..BATCH {
            let Some(bytes) = self.arriving.pop_front() else {
                break;
            };
            let Some(frame) = self.store(&bytes, memory) else {
                self.counters.ring_full += 1;
                continue;
            };
            arrivals.push(Arrival {
                frame,
                length: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
                lacks_checksum: false,
            });
        }
        self.refill(memory);
        Ok(())
    }

    fn room(&mut self, _memory: &mut FrameMemory) -> usize {
        self.room.saturating_sub(self.leaving.len())
    }

    fn transmit(&mut self, memory: &mut FrameMemory, frames: &[FrameId]) -> io::Result<()> {
        for &frame in frames {
            let bytes: Vec<u8> = memory.pieces(frame).flatten().copied().collect();
            self.leaving.push_back(frame);
            if bytes.len() > self.sends_bytes {
                self.unsent.add(bytes.len() as u64);
            } else {
                self.sent.push(bytes);
            }
        }
        if self.fails { Err(gone()) } else { Ok(()) }
    }

    fn largest_frame(&self, _ethertype: u16) -> u32 {
        self.mtu_bytes + ETHERNET_BYTES + TAG_BYTES
    }

    fn take_unsent(&mut self) -> Unsent {
        std::mem::take(&mut self.unsent)
    }

    fn counters(&mut self) -> PortCounters {
        self.counters
    }

    fn close(&mut self, memory: &mut FrameMemory) {
        self.complete(memory);
        self.lent
            .drain(..)
            .for_each(|chunk| memory.give_back(chunk));
    }
}
