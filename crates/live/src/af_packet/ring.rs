//! The memory-mapped ring of a packet socket: slots of equal size, each with a status that states its owner.

use crate::sys::map::Map;
use crate::sys::socket::{self, Plain};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a block of slots: the kernel has each in one piece.
const BLOCK_BYTES: u32 = 1 << 16;
/// Most bytes of a ring.
const RING_BYTES: u32 = 1 << 24;
/// Most slots of a ring.
const MOST_SLOTS: u32 = 4096;

/// `struct tpacket_req`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Request {
    block_bytes: u32,
    blocks: u32,
    slot_bytes: u32,
    slots: u32,
}

// SAFETY: integers.
unsafe impl Plain for Request {}
// SAFETY: integers.
unsafe impl Plain for libc::sockaddr_ll {}

/// A ring, and its socket.
#[derive(Debug)]
pub(super) struct Ring {
    socket: OwnedFd,
    map: Map,
    slot_bytes: usize,
    slots: u32,
}

impl Ring {
    /// A packet socket that is not bound, and its ring. A slot holds a frame of `frame_bytes` and
    /// what the kernel puts before it; `option` is which ring.
    pub(super) fn open(frame_bytes: u32, option: i32) -> io::Result<Self> {
        // Protocol 0: nothing arrives before the socket is bound to an interface.
        let socket = socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        let version = libc::tpacket_versions::TPACKET_V2 as i32;
        socket::set(
            socket.as_fd(),
            libc::SOL_PACKET,
            libc::PACKET_VERSION,
            &version,
        )?;
        let before = u32::try_from(libc::TPACKET2_HDRLEN + 64).unwrap_or(128);
        let slot_bytes = (frame_bytes + before).next_power_of_two().max(2048);
        let slots = (RING_BYTES / slot_bytes).min(MOST_SLOTS);
        let block_bytes = BLOCK_BYTES.max(slot_bytes);
        let request = Request {
            block_bytes,
            blocks: slots / (block_bytes / slot_bytes),
            slot_bytes,
            slots,
        };
        socket::set(socket.as_fd(), libc::SOL_PACKET, option, &request)?;
        let slot_bytes = slot_bytes as usize;
        let map = Map::of_socket(socket.as_fd(), slots as usize * slot_bytes, 0)?;
        Ok(Self {
            socket,
            map,
            slot_bytes,
            slots,
        })
    }

    pub(super) const fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    pub(super) const fn slots(&self) -> u32 {
        self.slots
    }

    pub(super) const fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    pub(super) const fn after(&self, slot: u32) -> u32 {
        if slot + 1 == self.slots { 0 } else { slot + 1 }
    }

    /// Receive, or send, on an interface.
    pub(super) fn bind(&self, interface: u32, protocol: i32) -> io::Result<()> {
        // SAFETY: plain integers; zero is a value of each.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = u16::try_from(libc::AF_PACKET).unwrap_or(0);
        address.sll_protocol = u16::try_from(protocol).unwrap_or(0).to_be();
        address.sll_ifindex = i32::try_from(interface).unwrap_or(0);
        socket::bind(self.socket.as_fd(), &address)
    }

    /// The owner of a slot. After this call, everything that the kernel wrote before it released the slot can be
    /// read.
    #[inline]
    pub(super) fn status(&self, slot: u32) -> u32 {
        self.status_word(slot).load(Ordering::Acquire)
    }

    /// Give a slot to the kernel, with all that was written to it or read from it.
    #[inline]
    pub(super) fn set_status(&self, slot: u32, status: u32) {
        self.status_word(slot).store(status, Ordering::Release);
    }

    #[inline]
    fn status_word(&self, slot: u32) -> &AtomicU32 {
        let at = self.map.at(slot as usize * self.slot_bytes, 4);
        // SAFETY: within the mapping and aligned, as slots are; both sides access it atomically.
        unsafe { at.cast::<AtomicU32>().as_ref() }
    }

    /// A slot's header.
    ///
    /// # Safety
    /// The slot is ours.
    #[inline]
    pub(super) unsafe fn header(&self, slot: u32) -> libc::tpacket2_hdr {
        let start = slot as usize * self.slot_bytes;
        let at = self.map.at(start, size_of::<libc::tpacket2_hdr>());
        // SAFETY: within the mapping, aligned, any bits are valid, and the kernel does not write to
        // a slot that is ours.
        unsafe { at.cast().read() }
    }

    /// State the length of the frame in a slot.
    ///
    /// # Safety
    /// The slot is ours.
    #[inline]
    pub(super) unsafe fn set_length(&self, slot: u32, length: u32) {
        let start =
            slot as usize * self.slot_bytes + std::mem::offset_of!(libc::tpacket2_hdr, tp_len);
        // SAFETY: within the mapping, aligned, and nobody else's.
        unsafe { self.map.at(start, 4).cast::<u32>().write(length) };
    }

    /// Bytes of a slot; none if they would reach beyond it.
    ///
    /// # Safety
    /// The slot is ours as long as the slice is used.
    #[inline]
    pub(super) unsafe fn bytes(&self, slot: u32, offset: usize, length: usize) -> &[u8] {
        if offset + length > self.slot_bytes {
            return &[];
        }
        let at = self
            .map
            .at(slot as usize * self.slot_bytes + offset, length);
        // SAFETY: within the mapping, and the caller keeps the slot.
        unsafe { std::slice::from_raw_parts(at.as_ptr(), length) }
    }

    /// Write to a slot.
    ///
    /// # Safety
    /// The slot is ours.
    #[inline]
    pub(super) unsafe fn write(&self, slot: u32, offset: usize, bytes: &[u8]) {
        let start = slot as usize * self.slot_bytes + offset;
        let at = self.map.at(start, bytes.len());
        // SAFETY: within the mapping, nobody else's, and not where `bytes` are.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at.as_ptr(), bytes.len()) };
    }
}
