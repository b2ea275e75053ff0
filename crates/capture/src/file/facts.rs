//! What a capture file says beside its packets.

use crate::error::Incomplete;
use slicewise_wire::LinkType;

/// What was read of one capture file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileFacts {
    /// The file as it was named; `standard input` for `-`.
    pub name: String,
    /// Packets told.
    pub packets: u64,
    /// Bytes captured of them.
    pub captured_bytes: u64,
    /// Bytes they had on the wire.
    pub wire_bytes: u64,
    /// Packets that were not told, because the file holds no time for them (pcapng simple packet
    /// blocks).
    pub without_time: u64,
    /// Link types of the packets told, in order of number.
    pub links: Vec<LinkType>,
    /// Interfaces described, those of all sections one after the other.
    pub interfaces: Vec<Interface>,
    /// Comments of the file's sections (pcapng), the first 64.
    pub comments: Vec<String>,
    /// Times that were before the one of the packet before.
    pub backwards: Backwards,
    /// What a [`Point`](crate::Point) made of the times of its packets.
    pub times: TimeFacts,
    /// Where and why reading stopped before the end.
    pub incomplete: Option<Incomplete>,
}

/// A network interface a file describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name, where the file tells it.
    pub name: Option<String>,
    /// How its frames begin.
    pub link: LinkType,
    /// Bytes captured of a packet at most; 0 where there is no limit.
    pub snap_bytes: u32,
    /// Packets the capture lost, where the file tells them.
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

/// How the times of a file's packets were put in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeFacts {
    /// Packets that came behind one with a later time.
    pub out_of_order: u64,
    /// By how much at most, ns.
    pub most_out_of_order_ns: u64,
    /// Of the packets out of order, those that came too late to be sorted.
    pub beyond_window: u64,
    /// Packets with a time far from those before and after them. They were given the time of a neighbour.
    pub wrong_stamps: u64,
    /// The first 16 of these.
    pub named_wrong_stamps: Vec<WrongStamp>,
}

/// A packet whose time stamp cannot be right.
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

    /// Packets the capture lost, over all interfaces; none where the file does not tell.
    #[must_use]
    pub fn dropped(&self) -> Option<u64> {
        let told = self.interfaces.iter().filter_map(|i| i.dropped);
        told.reduce(u64::saturating_add)
    }
}
