//! Sending.

use super::ring::Ring;
use crate::frame_memory::{FrameId, FrameMemory};
use crate::port::{ETHERNET_BYTES, TAG_BYTES, Unsent};
use crate::sys::{socket, time};
use slicewise_units::{Duration, Instant};
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
    /// The slot of a frame that the interface does not accept, and since when.
    held_up: Option<(u32, Instant)>,
    /// Frames that were not sent, and have not been asked for yet.
    unsent: Unsent,
}

/// How long a frame may hold up those behind it. A busy interface accepts it sooner; one without a carrier, or
/// whose peer accepts no frame of this length, never does.
const PATIENCE: Duration = Duration::from_millis(10);
/// Where a frame begins in a slot: directly after the header, unless another place is agreed on.
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
            held_up: None,
            unsent: Unsent::default(),
        })
    }

    pub(super) fn room(&mut self) -> usize {
        while self.leaving > 0 {
            match self.ring.status(self.oldest) {
                libc::TP_STATUS_AVAILABLE => {
                    self.oldest = self.ring.after(self.oldest);
                    self.leaving -= 1;
                }
                libc::TP_STATUS_WRONG_FORMAT => self.take_out(self.oldest, false),
                libc::TP_STATUS_SEND_REQUEST => {
                    // An error is reported when the next frames are sent.
                    let _ = self.send();
                    break;
                }
                _ => break,
            }
        }
        (self.ring.slots() - self.leaving) as usize
    }

    pub(super) fn transmit(
        &mut self,
        memory: &mut FrameMemory,
        frames: &[FrameId],
    ) -> io::Result<()> {
        for &frame in frames {
            if !self.fill(memory, frame) {
                let pieces = memory.pieces(frame);
                self.unsent
                    .add(pieces.map(|piece| piece.len() as u64).sum());
            }
            memory.release(frame);
        }
        self.send()
    }

    /// Have the kernel send what is in the ring.
    fn send(&mut self) -> io::Result<()> {
        let sent = socket::kick(self.ring.socket().as_fd());
        if matches!(sent, Ok(true)) {
            self.held_up = None;
            return Ok(());
        }
        let Some(slot) = self.under_way().find(|slot| self.waits(*slot)) else {
            return sent.map(drop);
        };
        if self.ring.status(slot) == libc::TP_STATUS_WRONG_FORMAT {
            // The error is about this frame, not about the interface.
            self.take_out(slot, false);
            return Ok(());
        }
        let now = time::now();
        match self.held_up {
            Some((first, since)) if first == slot => {
                if sent.is_ok() && now.saturating_since(since) > PATIENCE {
                    self.held_up = None;
                    self.take_out(slot, true);
                }
            }
            _ => self.held_up = Some((slot, now)),
        }
        sent.map(drop)
    }

    /// Returns true if the kernel has not sent the frame in a slot.
    fn waits(&self, slot: u32) -> bool {
        let status = self.ring.status(slot);
        status == libc::TP_STATUS_SEND_REQUEST || status == libc::TP_STATUS_WRONG_FORMAT
    }

    /// Copy a frame to the next slot, which has come back; false if there is no such slot or the frame does not
    /// fit.
    #[inline]
    fn fill(&mut self, memory: &FrameMemory, frame: FrameId) -> bool {
        if self.leaving == self.ring.slots() {
            return false;
        }
        let slot = self.next;
        let mut at = FRAME_AT;
        for piece in memory.pieces(frame) {
            if at + piece.len() > self.ring.slot_bytes() {
                return false;
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
        true
    }

    /// Slots that have not come back, oldest first.
    fn under_way(&self) -> impl Iterator<Item = u32> {
        let slots = std::iter::successors(Some(self.oldest), |slot| Some(self.ring.after(*slot)));
        slots.take(self.leaving as usize)
    }

    /// Count a frame that is not sent: one longer than an MTU that has shrunk since it was offered, or one
    /// that the interface does not take. The kernel continues once another frame is in that slot, so the frames
    /// after it move up, one at a time, because each may be refused, too.
    /// With `gives_up`, one that is not taken at once is not waited for.
    #[cold]
    fn take_out(&mut self, refused: u32, gives_up: bool) {
        self.count_unsent(refused);
        self.ring.set_status(refused, libc::TP_STATUS_AVAILABLE);
        let mut free = refused;
        let mut from = self.ring.after(refused);
        while from != self.next {
            self.move_frame(from, free);
            // Any other error is reported when the next frames are sent.
            let _ = socket::kick(self.ring.socket().as_fd());
            from = self.ring.after(from);
            match self.ring.status(free) {
                libc::TP_STATUS_WRONG_FORMAT => self.count_unsent(free),
                libc::TP_STATUS_SEND_REQUEST if gives_up => self.count_unsent(free),
                _ => free = self.ring.after(free),
            }
        }
        self.ring.set_status(free, libc::TP_STATUS_AVAILABLE);
        self.next = free;
        let slots = self.ring.slots();
        self.leaving = (free + slots - self.oldest) % slots;
    }

    fn move_frame(&self, from: u32, to: u32) {
        // The kernel looks at no slot while it is not asked to send.
        self.ring.set_status(from, libc::TP_STATUS_AVAILABLE);
        let length = self.length(from);
        // SAFETY: both slots are ours, and they are not one.
        unsafe {
            let bytes = self.ring.bytes(from, FRAME_AT, length as usize);
            self.ring.write(to, FRAME_AT, bytes);
            self.ring.set_length(to, length);
        }
        self.ring.set_status(to, libc::TP_STATUS_SEND_REQUEST);
    }

    fn length(&self, slot: u32) -> u32 {
        // SAFETY: the kernel does not write to the slots of frames that it has not sent.
        unsafe { self.ring.header(slot).tp_len }
    }

    fn count_unsent(&mut self, slot: u32) {
        self.unsent.add(u64::from(self.length(slot)));
    }

    /// Frames that were not sent since this was last asked.
    pub(super) fn take_unsent(&mut self) -> Unsent {
        std::mem::take(&mut self.unsent)
    }

    /// Stop sending: frames that still wait in the ring were not sent.
    pub(super) fn close(&mut self) {
        let waiting: Vec<u32> = self.under_way().filter(|slot| self.waits(*slot)).collect();
        waiting.into_iter().for_each(|slot| self.count_unsent(slot));
        self.leaving = 0;
    }
}
