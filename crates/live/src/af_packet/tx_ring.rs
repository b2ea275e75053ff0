//! Sending.

use super::ring::Ring;
use crate::frame_memory::{FrameId, FrameMemory};
use crate::port::{ETHERNET_BYTES, TAG_BYTES};
use crate::sys::socket;
use std::io;
use std::os::fd::AsFd;

/// The ring that frames leave from.
#[derive(Debug)]
pub(super) struct TxRing {
    ring: Ring,
    /// The next slot to fill.
    next: u32,
    /// The oldest slot that has not come back, and how many have not.
    oldest: u32,
    leaving: u32,
}

/// Where a frame begins in a slot: right behind the header, where no other place is agreed on.
const FRAME_AT: usize = libc::TPACKET2_HDRLEN - size_of::<libc::sockaddr_ll>();

impl TxRing {
    pub(super) fn open(interface: u32, mtu_bytes: u32) -> io::Result<Self> {
        let largest = mtu_bytes + ETHERNET_BYTES + 2 * TAG_BYTES;
        let ring = Ring::open(largest, libc::PACKET_TX_RING)?;
        let socket = ring.socket().as_fd();
        // The interface's own queueing discipline would queue a second time.
        socket::set(socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1i32)?;
        ring.bind(interface, 0)?;
        Ok(Self {
            ring,
            next: 0,
            oldest: 0,
            leaving: 0,
        })
    }

    pub(super) fn room(&mut self) -> usize {
        while self.leaving > 0 && self.ring.status(self.oldest) == libc::TP_STATUS_AVAILABLE {
            self.oldest = self.ring.after(self.oldest);
            self.leaving -= 1;
        }
        (self.ring.slots() - self.leaving) as usize
    }

    pub(super) fn transmit(
        &mut self,
        memory: &mut FrameMemory,
        frames: &[FrameId],
    ) -> io::Result<()> {
        for &frame in frames {
            if self.leaving < self.ring.slots() {
                self.fill(memory, frame);
            }
            memory.release(frame);
        }
        socket::kick(self.ring.socket().as_fd())
    }

    /// Copy a frame to the next slot, which has come back.
    #[inline]
    fn fill(&mut self, memory: &FrameMemory, frame: FrameId) {
        let slot = self.next;
        let mut at = FRAME_AT;
        for piece in memory.pieces(frame) {
            if at + piece.len() > self.ring.slot_bytes() {
                return;
            }
            // SAFETY: `room` has seen the slot come back, and it has not been given away since.
            unsafe { self.ring.write(slot, at, piece) };
            at += piece.len();
        }
        let length = u32::try_from(at - FRAME_AT).unwrap_or(0);
        // SAFETY: as above.
        unsafe { self.ring.set_length(slot, length) };
        self.ring.set_status(slot, libc::TP_STATUS_SEND_REQUEST);
        self.next = self.ring.after(slot);
        self.leaving += 1;
    }
}
