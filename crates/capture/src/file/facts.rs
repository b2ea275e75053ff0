//! Facts about a capture file besides its packets.

use crate::error::Incomplete;
use slicewise_wire::LinkType;

/// Facts about one capture file, as far as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileFacts {
    /// The file as it was named; `standard input` for `-`.
    pub name: String,
    /// Packets reported.
    pub packets: u64,
    /// Captured bytes of these packets.
    pub captured_bytes: u64,
    /// Their bytes on the wire.
    pub wire_bytes: u64,
    /// Packets not reported because they have no timestamp (pcapng simple packet blocks).
    pub without_time: u64,
    /// Link types of the packets reported, in numeric order.
    pub links: Vec<LinkType>,
    /// Interfaces described, of all sections in sequence.
    pub interfaces: Vec<Interface>,
    /// Comments of the file's sections (pcapng), the first 64.
    pub comments: Vec<String>,
    /// Timestamps earlier than that of the preceding packet.
    pub backwards: Backwards,
    /// How a [`Point`](crate::Point) ordered its packets in time.
    pub times: TimeFacts,
    /// Where and why reading stopped before the end.
    pub incomplete: Option<Incomplete>,
}

/// A network interface a file describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name, where the file states it.
    pub name: Option<String>,
    /// How its frames begin.
    pub link: LinkType,
    /// Most bytes captured per packet; 0 where unlimited.
    pub snap_bytes: u32,
    /// Resolution of its timestamps, ns.
    pub resolution_ns: u64,
    /// Packets lost by the capture, where the file states them.
    pub dropped: Option<u64>,
}

/// Times of packets that go backwards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backwards {
    /// How often a packet was stamped earlier than the one before.
    pub steps: u64,
    /// The largest such step, in nanoseconds.
    pub largest_ns: u64,
    /// Where the first one is, in bytes into the file.
    pub first_offset: Option<u64>,
}

/// How a file's packets were put in time order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeFacts {
    /// Packets that follow one with a later time.
    pub out_of_order: u64,
    /// Largest such difference, ns.
    pub most_out_of_order_ns: u64,
    /// Those that came too late to be sorted.
    pub beyond_window: u64,
    /// Packets with a timestamp far from those around them. They got the timestamp of a neighbour.
    pub wrong_stamps: u64,
    /// The first 16 of them.
    pub named_wrong_stamps: Vec<WrongStamp>,
}

/// A packet with an impossible timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongStamp {
    /// Its number in its file, from 1.
    pub record: u64,
    /// Its time as captured, ns since the epoch.
    pub stamped_ns: u64,
    /// The time it was given instead.
    pub taken_for_ns: u64,
}

impl Backwards {
    #[cold]
    pub(super) fn on_step(&mut self, step_ns: u64, offset: u64) {
        self.steps += 1;
        self.largest_ns = self.largest_ns.max(step_ns);
        self.first_offset.get_or_insert(offset);
    }
}

impl FileFacts {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    #[cold]
    pub(super) fn on_link(&mut self, link: LinkType) {
        if let Err(at) = self.links.binary_search(&link) {
            self.links.insert(at, link);
        }
    }

    /// Coarsest resolution of its timestamps, ns; at least 1.
    #[must_use]
    pub fn resolution_ns(&self) -> u64 {
        let resolutions = self.interfaces.iter().map(|one| one.resolution_ns);
        resolutions.max().unwrap_or(1).max(1)
    }

    /// Packets lost by the capture, over all interfaces; `None` where the file does not state it.
    #[must_use]
    pub fn dropped(&self) -> Option<u64> {
        let known = self.interfaces.iter().filter_map(|i| i.dropped);
        known.reduce(u64::saturating_add)
    }
}
