//! What was seen at a measuring point, beside its sightings.

use crate::{FileFacts, Incomplete, TimeFacts};
use slicewise_wire::LinkType;

/// What became of the packets of a point: every one is counted once among `sightings`, `copies`, `arp`,
/// `link_scope`, `not_ip`, `unknown_link`, `fragments`, `cut_short` and `malformed`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Packets with a sighting.
    pub sightings: u64,
    /// Packets that this point had seen less than 1 ms before, on another interface: with another time to
    /// live, direction or tag.
    pub copies: u64,
    /// ARP.
    pub arp: u64,
    /// To all neighbours on a link, which no router passes on (neighbour discovery, multicast reports): of
    /// both ends under the same addresses, so that nobody could tell which way they went.
    pub link_scope: u64,
    /// Otherwise not IP.
    pub not_ip: u64,
    /// Frames of a link type that is not known.
    pub unknown_link: u64,
    /// Pieces of IP packets.
    pub fragments: u64,
    /// Packets of which too few bytes were captured to name them.
    pub cut_short: u64,
    /// Packets whose headers contradict themselves.
    pub malformed: u64,
    /// Of the sightings: TCP segments.
    pub tcp: u64,
    /// Of the sightings: packets in a GTP-U tunnel.
    pub tunnelled: u64,
    /// Of the sightings: packets of flows beyond [`crate::FlowTable::MOST_FLOWS`].
    pub beyond_flows: u64,
    /// The longest frame that was sighted, in layer-2 bytes without FCS; more than the network carries
    /// where the adapter splits or joins segments (offload).
    pub largest_l2_bytes: u32,
    /// Time of the earliest sighting, in nanoseconds since the epoch.
    pub first_ns: Option<u64>,
    /// Time of the latest sighting.
    pub last_ns: Option<u64>,
}

impl PacketCounts {
    #[inline]
    pub(super) fn on_time(&mut self, time_ns: u64) {
        self.first_ns = Some(self.first_ns.map_or(time_ns, |first| first.min(time_ns)));
        self.last_ns = self.last_ns.max(Some(time_ns));
    }
}

/// What was read at a point so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointFacts {
    /// Its files, in the order they were read to their end; then those being read.
    pub files: Vec<FileFacts>,
    /// What became of their packets.
    pub counts: PacketCounts,
    /// Bytes from the IP header on that keys were made of, at most.
    pub key_bytes: u32,
}

impl PointFacts {
    /// Packets read.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.files.iter().map(|file| file.packets).sum()
    }

    /// Bytes captured of them.
    #[must_use]
    pub fn captured_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.captured_bytes).sum()
    }

    /// Bytes they had on the wire.
    #[must_use]
    pub fn wire_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.wire_bytes).sum()
    }

    /// Packets the files hold no time for, which were not read.
    #[must_use]
    pub fn without_time(&self) -> u64 {
        self.files.iter().map(|file| file.without_time).sum()
    }

    /// Packets the captures themselves lost, where they tell.
    #[must_use]
    pub fn dropped(&self) -> Option<u64> {
        let told = self.files.iter().filter_map(FileFacts::dropped);
        told.reduce(u64::saturating_add)
    }

    /// Times that went backwards within a file.
    #[must_use]
    pub fn backward_steps(&self) -> u64 {
        self.files.iter().map(|file| file.backwards.steps).sum()
    }

    /// Times of its packets, over all files; wrong stamps are named in the files alone.
    #[must_use]
    pub fn times(&self) -> TimeFacts {
        let mut sum = TimeFacts::default();
        for file in &self.files {
            let times = &file.times;
            sum.out_of_order += times.out_of_order;
            sum.most_out_of_order_ns = sum.most_out_of_order_ns.max(times.most_out_of_order_ns);
            sum.beyond_window += times.beyond_window;
            sum.wrong_stamps += times.wrong_stamps;
        }
        sum
    }

    /// Link types seen, in order of number.
    #[must_use]
    pub fn links(&self) -> Vec<LinkType> {
        let mut links: Vec<LinkType> = self.files.iter().flat_map(|f| f.links.clone()).collect();
        links.sort_unstable();
        links.dedup();
        links
    }

    /// Files that were not read to their end.
    pub fn incomplete(&self) -> impl Iterator<Item = &Incomplete> {
        self.files
            .iter()
            .filter_map(|file| file.incomplete.as_ref())
    }
}
