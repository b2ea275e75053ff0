//! Packet I/O through packet sockets with memory-mapped rings (`packet(7)`, TPACKET_V2).
//!
//! The kernel copies a frame into the receive ring and we copy it again, since a waiting frame must not
//! hold a slot of the ring. VLAN tags that the kernel has taken out are put back. TPACKET_V3 hands
//! frames over by the block, up to a time-out later, and is unsuitable for low delay.

#![allow(unsafe_code)]

mod ring;
mod rx_ring;
mod tx_ring;

use crate::frame_memory::{FrameId, FrameMemory};
use crate::port::{Arrival, ETHERNET_BYTES, ETHERTYPE_VLAN, Port, PortCounters, TAG_BYTES, Unsent};
use crate::sys::interface::InterfaceState;
use rx_ring::RxRing;
pub(crate) use rx_ring::become_promiscuous;
use std::io;
use std::os::fd::BorrowedFd;
use tx_ring::TxRing;

/// An interface through packet sockets.
#[derive(Debug)]
pub struct AfPacketPort {
    rx: RxRing,
    tx: TxRing,
    mtu_bytes: u32,
}

impl AfPacketPort {
    /// Receive all frames that arrive at an interface, whomever they are for.
    ///
    /// # Errors
    /// Without `CAP_NET_RAW`, or where the interface has gone.
    pub fn open(interface: &InterfaceState) -> io::Result<Self> {
        let mtu_bytes = interface.mtu_bytes;
        Ok(Self {
            rx: RxRing::open(interface.index, mtu_bytes)?,
            tx: TxRing::open(interface.index, mtu_bytes)?,
            mtu_bytes,
        })
    }

    /// Readable when frames have arrived.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.rx.descriptor()
    }
}

impl Port for AfPacketPort {
    fn receive(&mut self, memory: &mut FrameMemory, arrivals: &mut Vec<Arrival>) -> io::Result<()> {
        self.rx.receive(memory, arrivals);
        Ok(())
    }

    fn room(&mut self, _memory: &mut FrameMemory) -> usize {
        self.tx.room()
    }

    fn transmit(&mut self, memory: &mut FrameMemory, frames: &[FrameId]) -> io::Result<()> {
        self.tx.transmit(memory, frames)
    }

    fn take_unsent(&mut self) -> Unsent {
        self.tx.take_unsent()
    }

    /// A packet socket lets one 802.1Q tag go beyond the MTU, and no other.
    fn largest_frame(&self, ethertype: u16) -> u32 {
        let tag = if ethertype == ETHERTYPE_VLAN {
            TAG_BYTES
        } else {
            0
        };
        self.mtu_bytes + ETHERNET_BYTES + tag
    }

    fn counters(&mut self) -> PortCounters {
        self.rx.counters()
    }

    fn close(&mut self, _memory: &mut FrameMemory) {
        self.tx.close();
    }
}
