//! The interface between forwarding and packet I/O.

use crate::frame_memory::{FrameId, FrameMemory};
use std::io;

/// A frame that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Where it is.
    pub frame: FrameId,
    /// All its bytes, without FCS, with every VLAN tag.
    pub length: u32,
    /// The sender left its transport checksum to be completed by hardware.
    pub lacks_checksum: bool,
}

/// Counters of a port since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Frames that the kernel dropped because we did not fetch them in time, or had no memory.
    pub ring_full: u64,
    /// Frames that arrived cut off or longer than a port can receive.
    pub cut_off: u64,
    /// Frames that came out of this host itself, and are not for us.
    pub own: u64,
    /// Times that no frame memory was free to receive into.
    pub short_refills: u64,
}

impl PortCounters {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            ring_full: self.ring_full + other.ring_full,
            cut_off: self.cut_off + other.cut_off,
            own: self.own + other.own,
            short_refills: self.short_refills + other.short_refills,
        }
    }
}

/// Frames that a port was given to send and that did not leave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unsent {
    /// How many.
    pub frames: u64,
    /// Their bytes, without FCS.
    pub bytes: u64,
}

impl Unsent {
    /// One more.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.frames += 1;
        self.bytes += bytes;
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            frames: self.frames + other.frames,
            bytes: self.bytes + other.bytes,
        }
    }
}

/// One interface, as the engine sees it.
pub trait Port {
    /// Append to `arrivals` frames that have arrived, at most [`BATCH`](crate::frame_memory::BATCH).
    ///
    /// # Errors
    /// Where the interface has gone or is down; the port is of no use then.
    fn receive(&mut self, memory: &mut FrameMemory, arrivals: &mut Vec<Arrival>) -> io::Result<()>;

    /// Frames that [`transmit`](Self::transmit) would take now.
    fn room(&mut self, memory: &mut FrameMemory) -> usize;

    /// Send `frames`, at most [`room`](Self::room), in order. They belong to the port whatever it returns, and
    /// their memory comes back when they have left.
    ///
    /// # Errors
    /// Where the interface has gone or is down; the port is of no use then.
    fn transmit(&mut self, memory: &mut FrameMemory, frames: &[FrameId]) -> io::Result<()>;

    /// Frames that it has taken and that did not leave, since this was last asked: the system refused
    /// them, or it was closed before they could.
    fn take_unsent(&mut self) -> Unsent {
        Unsent::default()
    }

    /// The longest frame it sends, bytes without FCS, where the outermost type is `ethertype`.
    fn largest_frame(&self, ethertype: u16) -> u32;

    /// Returns true if frames given to it can leave; otherwise it is given none.
    fn is_open(&self) -> bool {
        true
    }

    /// Returns its counters.
    fn counters(&mut self) -> PortCounters {
        PortCounters::default()
    }

    /// Give back all memory it holds. It is not used after that.
    fn close(&mut self, memory: &mut FrameMemory);
}

/// Ethernet header, bytes.
pub(crate) const ETHERNET_BYTES: u32 = 14;
/// A VLAN tag, bytes.
pub(crate) const TAG_BYTES: u32 = 4;
/// `EtherType` of an 802.1Q tag.
pub(crate) const ETHERTYPE_VLAN: u16 = 0x8100;
