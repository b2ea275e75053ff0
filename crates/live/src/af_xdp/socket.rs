//! An AF_XDP socket: one receive queue of an interface, with its four rings.

use super::ring::{Descriptor, Offsets, Ring};
use crate::frame_memory::BATCH;
use crate::frame_memory::{CHUNK_BYTES, FrameId, FrameMemory};
use crate::port::{Arrival, PortCounters};
use crate::sys::socket::{self, Plain};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// `SOL_XDP` and its options (`linux/if_xdp.h`).
const SOL_XDP: i32 = 283;
const XDP_MMAP_OFFSETS: i32 = 1;
const XDP_RX_RING: i32 = 2;
const XDP_TX_RING: i32 = 3;
const XDP_UMEM_REG: i32 = 4;
const XDP_UMEM_FILL_RING: i32 = 5;
const XDP_UMEM_COMPLETION_RING: i32 = 6;
const XDP_STATISTICS: i32 = 7;
const RX_AT: i64 = 0;
const TX_AT: i64 = 0x8000_0000;
const FILL_AT: i64 = 0x1_0000_0000;
const COMPLETION_AT: i64 = 0x1_8000_0000;
/// Flags of `bind`: the kernel says when it must be woken; frames may take several chunks.
const XDP_USE_NEED_WAKEUP: u16 = 1 << 3;
const XDP_USE_SG: u16 = 1 << 4;
/// Option of a descriptor: the frame goes on in the next one.
const XDP_PKT_CONTD: u32 = 1;

/// Descriptors of a ring.
const ENTRIES: u32 = 2048;
/// A socket that was closed just now leaves its queue a little later: how often and how long to wait.
const BIND_ATTEMPTS: u32 = 50;
const BIND_PAUSE: Duration = Duration::from_millis(10);

/// `struct xdp_umem_reg`, limited to the fields that all kernels with AF_XDP know.
#[repr(C)]
#[derive(Clone, Copy)]
struct Registration {
    start: u64,
    length: u64,
    chunk_bytes: u32,
    headroom: u32,
    flags: u32,
    padding: u32,
}

/// `struct xdp_mmap_offsets`.
#[repr(C)]
#[derive(Clone, Copy)]
struct AllOffsets {
    rx: Offsets,
    tx: Offsets,
    fill: Offsets,
    completion: Offsets,
}

/// `struct sockaddr_xdp`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Address {
    family: u16,
    flags: u16,
    interface: u32,
    queue: u32,
    shared: u32,
}

/// `struct xdp_statistics`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Statistics {
    rx_dropped: u64,
    rx_invalid: u64,
    tx_invalid: u64,
    rx_ring_full: u64,
    fill_ring_empty: u64,
    tx_ring_empty: u64,
}

/// `struct xdp_desc`.
#[repr(C)]
#[derive(Clone, Copy)]
struct FrameDescriptor {
    address: u64,
    length: u32,
    options: u32,
}

impl Statistics {
    /// Counts each lost frame once: `rx_dropped` contains frames for which the fill ring had no memory, too, in
    /// addition to those that are too long.
    fn lost(&self) -> PortCounters {
        let without_memory = self.fill_ring_empty.min(self.rx_dropped);
        PortCounters {
            ring_full: self.rx_ring_full + without_memory,
            cut_off: self.rx_dropped - without_memory,
            ..PortCounters::default()
        }
    }
}

// SAFETY: integers, without padding.
unsafe impl Plain for Registration {}
// SAFETY: integers, without padding.
unsafe impl Plain for AllOffsets {}
// SAFETY: integers, without padding.
unsafe impl Plain for Address {}
// SAFETY: integers, without padding.
unsafe impl Plain for Statistics {}
// SAFETY: integers, without padding.
unsafe impl Descriptor for FrameDescriptor {}

/// A socket, and the chunks of memory it has.
#[derive(Debug)]
pub(super) struct XskSocket {
    socket: OwnedFd,
    rx: Ring<FrameDescriptor>,
    tx: Ring<FrameDescriptor>,
    fill: Ring<u64>,
    completion: Ring<u64>,
    /// Which chunks are in one of the rings.
    is_lent: Vec<bool>,
    /// Chunks that it has to receive into, those of an unfinished frame among them, and may have.
    receiving: u32,
    receiving_most: u32,
    /// Chunks that it has to send, and may have.
    sending: u32,
    sending_most: u32,
    /// How often it needed more chunks to receive into and none was free.
    short_refills: u64,
    /// A frame in several chunks whose last chunk has not arrived.
    unfinished: Option<Unfinished>,
    several_chunks: bool,
}

/// Parameters of a socket.
#[derive(Debug, Clone, Copy)]
pub(super) struct SocketParams {
    pub(super) interface: u32,
    pub(super) queue: u32,
    /// True if frames may take several chunks.
    pub(super) several_chunks: bool,
    /// Chunks that it may have to receive into.
    pub(super) receiving: u32,
    /// Chunks that it may have to send.
    pub(super) sending: u32,
}

impl std::fmt::Debug for FrameDescriptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}+{}", self.address, self.length)
    }
}

#[derive(Debug, Clone, Copy)]
struct Unfinished {
    first: u32,
    last: u32,
    chunks: u32,
    length: u32,
}

impl XskSocket {
    /// A socket that receives nothing before it is [refilled](Self::refill).
    pub(super) fn bind(params: SocketParams, memory: &FrameMemory) -> io::Result<Self> {
        let socket = socket::open(libc::AF_XDP, libc::SOCK_RAW, 0)?;
        let fd = socket.as_fd();
        let length = memory.map().len();
        let registration = Registration {
            start: memory.map().at(0, length).as_ptr().expose_provenance() as u64,
            length: length as u64,
            chunk_bytes: u32::try_from(CHUNK_BYTES).unwrap_or(0),
            headroom: 0,
            flags: 0,
            padding: 0,
        };
        socket::set(fd, SOL_XDP, XDP_UMEM_REG, &registration)?;
        for ring in [
            XDP_UMEM_FILL_RING,
            XDP_UMEM_COMPLETION_RING,
            XDP_RX_RING,
            XDP_TX_RING,
        ] {
            socket::set(fd, SOL_XDP, ring, &ENTRIES)?;
        }
        let offsets: AllOffsets = socket::get(fd, SOL_XDP, XDP_MMAP_OFFSETS)?;
        let rx = Ring::map(fd, RX_AT, offsets.rx, ENTRIES)?;
        let tx = Ring::map(fd, TX_AT, offsets.tx, ENTRIES)?;
        let fill = Ring::map(fd, FILL_AT, offsets.fill, ENTRIES)?;
        let completion = Ring::map(fd, COMPLETION_AT, offsets.completion, ENTRIES)?;
        // A socket that is bound maps nothing any more.
        bind(fd, params)?;
        Ok(Self {
            rx,
            tx,
            fill,
            completion,
            is_lent: vec![false; memory.total_chunks()],
            receiving: 0,
            receiving_most: params.receiving,
            sending: 0,
            sending_most: params.sending,
            short_refills: 0,
            unfinished: None,
            several_chunks: params.several_chunks,
            socket,
        })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Lend the kernel chunks to receive into, whether or not it has received something: one that has none
    /// receives nothing.
    pub(super) fn refill(&mut self, memory: &mut FrameMemory) {
        let missing = self.receiving_most.saturating_sub(self.receiving);
        if missing == 0 || missing < self.receiving_most / 4 {
            return;
        }
        let filled = missing.min(self.fill.room());
        for _ in 0..filled {
            let Some(chunk) = memory.take() else {
                self.short_refills += 1;
                break;
            };
            self.lend(chunk, true);
            self.receiving += 1;
            self.fill.fill(u64::from(chunk) * CHUNK_BYTES as u64);
        }
        self.fill.publish();
        // A driver that found nothing to receive into may have stopped.
        if self.fill.needs_wakeup() {
            socket::wake_receiver(self.descriptor());
        }
    }

    #[inline]
    fn lend(&mut self, chunk: u32, is_lent: bool) -> bool {
        self.is_lent
            .get_mut(chunk as usize)
            .is_some_and(|lent| std::mem::replace(lent, is_lent))
    }

    pub(super) fn receive(&mut self, memory: &mut FrameMemory, arrivals: &mut Vec<Arrival>) {
        let waiting = self.rx.waiting() as usize;
        let taken = waiting.min(BATCH.saturating_sub(arrivals.len()));
        for _ in 0..taken {
            let descriptor = self.rx.next();
            if let Some(arrival) = self.piece(descriptor, memory) {
                arrivals.push(arrival);
            }
        }
        if taken > 0 {
            self.rx.free();
        }
        self.refill(memory);
    }

    /// A chunk that the kernel has written to; the frame, where it is complete.
    #[inline]
    fn piece(&mut self, descriptor: FrameDescriptor, memory: &mut FrameMemory) -> Option<Arrival> {
        let address = usize::try_from(descriptor.address).ok()?;
        let chunk = u32::try_from(address / CHUNK_BYTES).ok()?;
        // What we did not lend is not ours to take.
        if !self.lend(chunk, false) {
            return None;
        }
        if !memory.adopt(chunk, address % CHUNK_BYTES, descriptor.length as usize) {
            memory.give_back(chunk);
            self.receiving = self.receiving.saturating_sub(1);
            return None;
        }
        let goes_on = descriptor.options & XDP_PKT_CONTD != 0;
        if self.unfinished.is_none() && !goes_on {
            self.receiving = self.receiving.saturating_sub(1);
            return Some(arrival(chunk, descriptor.length));
        }
        let so_far = match self.unfinished.take() {
            None => Unfinished {
                first: chunk,
                last: chunk,
                chunks: 1,
                length: descriptor.length,
            },
            Some(before) => {
                memory.chain(before.last, chunk);
                Unfinished {
                    last: chunk,
                    chunks: before.chunks + 1,
                    length: before.length.saturating_add(descriptor.length),
                    ..before
                }
            }
        };
        if goes_on {
            self.unfinished = Some(so_far);
            return None;
        }
        self.receiving = self.receiving.saturating_sub(so_far.chunks);
        Some(arrival(so_far.first, so_far.length))
    }

    /// Descriptors that can be sent now.
    pub(super) fn room(&mut self, memory: &mut FrameMemory) -> usize {
        let done = self.completion.waiting();
        for _ in 0..done {
            let address = self.completion.next();
            let chunk = u32::try_from(address / CHUNK_BYTES as u64).unwrap_or(u32::MAX);
            if self.lend(chunk, false) {
                self.sending = self.sending.saturating_sub(1);
                memory.give_back(chunk);
            }
        }
        if done > 0 {
            self.completion.free();
        }
        let allowed = self.sending_most.saturating_sub(self.sending);
        self.tx.room().min(allowed) as usize
    }

    pub(super) fn transmit(
        &mut self,
        memory: &mut FrameMemory,
        frames: &[FrameId],
    ) -> io::Result<()> {
        for &frame in frames {
            let fits = memory.chunks(frame).count() <= self.tx.room() as usize;
            let is_whole = self.several_chunks || memory.chunks(frame).count() == 1;
            if !fits || !is_whole {
                memory.release(frame);
                continue;
            }
            for chunk in memory.chunks(frame) {
                self.lend(chunk.chunk, true);
                self.sending += 1;
                self.tx.fill(FrameDescriptor {
                    address: u64::from(chunk.chunk) * CHUNK_BYTES as u64 + u64::from(chunk.offset),
                    length: u32::from(chunk.length),
                    options: if chunk.is_last { 0 } else { XDP_PKT_CONTD },
                });
            }
        }
        self.tx.publish();
        // The kernel takes some 32 frames a call in copy mode.
        for _ in 0..=frames.len() / 32 {
            if !self.tx.needs_wakeup() || self.tx.room() == ENTRIES {
                break;
            }
            socket::kick(self.descriptor())?;
        }
        Ok(())
    }

    pub(super) fn counters(&self) -> PortCounters {
        let statistics: io::Result<Statistics> =
            socket::get(self.descriptor(), SOL_XDP, XDP_STATISTICS);
        PortCounters {
            short_refills: self.short_refills,
            ..statistics.map_or_else(|_| PortCounters::default(), |counted| counted.lost())
        }
    }

    /// Close the socket, for which the kernel waits until nobody uses it; only then can the memory that was lent to it be taken
    /// back.
    pub(super) fn close(self) -> Lent {
        Lent {
            is_lent: self.is_lent,
            unfinished: self.unfinished,
        }
    }
}

/// Memory that a socket had when it was closed.
#[derive(Debug)]
pub(super) struct Lent {
    is_lent: Vec<bool>,
    unfinished: Option<Unfinished>,
}

impl Lent {
    pub(super) fn take_back(self, memory: &mut FrameMemory) {
        if let Some(unfinished) = self.unfinished {
            memory.release(FrameId(unfinished.first));
        }
        for (chunk, lent) in (0u32..).zip(self.is_lent) {
            if lent {
                memory.give_back(chunk);
            }
        }
    }
}

const fn arrival(first: u32, length: u32) -> Arrival {
    Arrival {
        frame: FrameId(first),
        length,
        lacks_checksum: false,
    }
}

fn bind(socket: BorrowedFd<'_>, params: SocketParams) -> io::Result<()> {
    let several_chunks = if params.several_chunks { XDP_USE_SG } else { 0 };
    let address = Address {
        family: u16::try_from(libc::AF_XDP).unwrap_or(0),
        flags: XDP_USE_NEED_WAKEUP | several_chunks,
        interface: params.interface,
        queue: params.queue,
        shared: 0,
    };
    for _ in 1..BIND_ATTEMPTS {
        match socket::bind(socket, &address) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                std::thread::sleep(BIND_PAUSE);
            }
            other => return other,
        }
    }
    socket::bind(socket, &address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lost_frame_is_counted_once() {
        let counted = Statistics {
            rx_dropped: 10,
            rx_invalid: 0,
            tx_invalid: 0,
            rx_ring_full: 3,
            fill_ring_empty: 7,
            tx_ring_empty: 0,
        };
        let lost = counted.lost();
        assert_eq!((lost.ring_full, lost.cut_off), (10, 3));
        // A driver without copies asks for memory ahead of frames: none is lost yet.
        let asked = Statistics {
            rx_dropped: 0,
            rx_ring_full: 0,
            ..counted
        };
        assert_eq!(asked.lost(), PortCounters::default());
    }
}
