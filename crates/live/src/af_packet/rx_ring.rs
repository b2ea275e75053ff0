//! Receiving.

use super::ring::Ring;
use crate::frame_memory::BATCH;
use crate::frame_memory::FrameMemory;
use crate::port::{Arrival, ETHERNET_BYTES, ETHERTYPE_VLAN, PortCounters, TAG_BYTES};
use crate::sys::socket::{self, Plain};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// `struct packet_mreq`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Membership {
    interface: i32,
    kind: u16,
    address_length: u16,
    address: [u8; 8],
}

/// `struct tpacket_stats`. Reading it resets it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Statistics {
    packets: u32,
    drops: u32,
}

// SAFETY: integers.
unsafe impl Plain for Membership {}
// SAFETY: integers.
unsafe impl Plain for Statistics {}

/// Slots of tags beyond the MTU that a ring has room for.
const MOST_TAGS: u32 = 2;

/// The ring that frames arrive in.
#[derive(Debug)]
pub(super) struct RxRing {
    ring: Ring,
    next: u32,
    counters: PortCounters,
}

/// Receive frames for all destinations while the socket is open: the kernel counts such requests, and drops
/// those of a process that died.
pub(crate) fn become_promiscuous(socket: BorrowedFd<'_>, interface: u32) -> io::Result<()> {
    let membership = Membership {
        interface: i32::try_from(interface).unwrap_or(0),
        kind: u16::try_from(libc::PACKET_MR_PROMISC).unwrap_or(0),
        address_length: 0,
        address: [0; 8],
    };
    socket::set(
        socket,
        libc::SOL_PACKET,
        libc::PACKET_ADD_MEMBERSHIP,
        &membership,
    )
}

impl RxRing {
    pub(super) fn open(interface: u32, mtu_bytes: u32) -> io::Result<Self> {
        let largest = mtu_bytes + ETHERNET_BYTES + MOST_TAGS * TAG_BYTES;
        let ring = Ring::open(largest, libc::PACKET_RX_RING)?;
        let socket = ring.socket().as_fd();
        // Kernels before 4.20 do not have it; `is_own` then recognises these packets by their type.
        let _ = socket::set(
            socket,
            libc::SOL_PACKET,
            libc::PACKET_IGNORE_OUTGOING,
            &1i32,
        );
        become_promiscuous(socket, interface)?;
        ring.bind(interface, libc::ETH_P_ALL)?;
        Ok(Self {
            ring,
            next: 0,
            counters: PortCounters::default(),
        })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.ring.socket().as_fd()
    }

    pub(super) fn receive(&mut self, memory: &mut FrameMemory, arrivals: &mut Vec<Arrival>) {
        for _ in 0..BATCH {
            let status = self.ring.status(self.next);
            if status & libc::TP_STATUS_USER == 0 {
                break;
            }
            if let Some(arrival) = self.take(self.next, status, memory) {
                arrivals.push(arrival);
            }
            self.ring.set_status(self.next, libc::TP_STATUS_KERNEL);
            self.next = self.ring.after(self.next);
        }
    }

    /// Copy a frame out of a slot that is ours.
    #[inline]
    fn take(&mut self, slot: u32, status: u32, memory: &mut FrameMemory) -> Option<Arrival> {
        // SAFETY: the status says that the slot is ours, until it is given back after this.
        let header = unsafe { self.ring.header(slot) };
        let snap = header.tp_snaplen as usize;
        // SAFETY: as above; the bytes are copied before the slot is given back.
        let bytes = unsafe { self.ring.bytes(slot, usize::from(header.tp_mac), snap) };
        if self.is_own(slot) {
            self.counters.own += 1;
            return None;
        }
        if header.tp_snaplen < header.tp_len || bytes.len() < snap {
            self.counters.cut_off += 1;
            return None;
        }
        let has_tag = status & libc::TP_STATUS_VLAN_VALID != 0 && snap >= 12;
        let stored = if has_tag {
            let tpid = if status & libc::TP_STATUS_VLAN_TPID_VALID == 0 {
                ETHERTYPE_VLAN
            } else {
                header.tp_vlan_tpid
            };
            let [t0, t1] = tpid.to_be_bytes();
            let [c0, c1] = header.tp_vlan_tci.to_be_bytes();
            let (addresses, rest) = bytes.split_at(12);
            memory.store(&[addresses, &[t0, t1, c0, c1], rest])
        } else {
            memory.store(&[bytes])
        };
        let Some(frame) = stored else {
            self.counters.ring_full += 1;
            return None;
        };
        Some(Arrival {
            frame,
            length: header.tp_len + if has_tag { TAG_BYTES } else { 0 },
            lacks_checksum: status & libc::TP_STATUS_CSUMNOTREADY != 0,
        })
    }

    /// Returns true if a frame was sent by this host here rather than received.
    #[inline]
    fn is_own(&self, slot: u32) -> bool {
        let address_at = size_of::<libc::tpacket2_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);
        let type_at = address_at + std::mem::offset_of!(libc::sockaddr_ll, sll_pkttype);
        // SAFETY: called with slots that are ours only.
        let kind = unsafe { self.ring.bytes(slot, type_at, 1) };
        kind == [libc::PACKET_OUTGOING]
    }

    pub(super) fn counters(&mut self) -> PortCounters {
        let statistics = socket::get::<Statistics>(
            self.ring.socket().as_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
        );
        if let Ok(statistics) = statistics {
            self.counters.ring_full += u64::from(statistics.drops);
        }
        self.counters
    }
}
