//! Facts about a measuring point, besides its sightings.

use super::KeyBytes;
use crate::{FileFacts, Incomplete, TimeFacts};
use slicewise_wire::{EtherType, LinkType};

/// Packets of a point by outcome: each is counted exactly once among `sightings`, `copies`, `arp`,
/// `link_scope`, `not_ip`, `unknown_link`, `fragments`, `cut_short` and `malformed`; one put together
/// from `joined` fragments, counted in `reassembled`, as a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Packets with a sighting.
    pub sightings: u64,
    /// Packets this point saw less than 1 ms earlier on another interface: with a different time to
    /// live, direction or tag.
    pub copies: u64,
    /// ARP.
    pub arp: u64,
    /// Link-scope packets, which routers do not forward (neighbour discovery, multicast reports): both
    /// ends send them with the same addresses, so their direction is unknown.
    pub link_scope: u64,
    /// Other non-IP packets.
    pub not_ip: u64,
    /// Frames of an unknown link type.
    pub unknown_link: u64,
    /// IP fragments of packets that did not become complete.
    pub fragments: u64,
    /// Packets that were put together from fragments.
    pub reassembled: u64,
    /// The fragments of these packets.
    pub joined: u64,
    /// Packets with too few captured bytes to form a key.
    pub cut_short: u64,
    /// Packets whose headers contradict themselves.
    pub malformed: u64,
    /// Sightings of TCP segments.
    pub tcp: u64,
    /// Sightings of packets in a GTP-U tunnel.
    pub tunnelled: u64,
    /// Sightings of packets of IP in IP, GRE and VXLAN, which count as outer packets.
    pub encapsulating: u64,
    /// Sightings of packets of flows beyond [`crate::FlowTable::MOST_FLOWS`].
    pub beyond_flows: u64,
    /// Longest frame with a sighting, in layer-2 bytes without FCS; longer than the network carries if
    /// the adapter splits or joins segments (offload).
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

/// Frames of one kind in which no IP packet was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadFrames {
    /// Their link type.
    pub link: LinkType,
    /// Their type, as in [`slicewise_wire::Headers`]; 0 if there is none.
    pub ethertype: u16,
    /// How many there are.
    pub frames: u64,
}

impl UnreadFrames {
    /// Most kinds told apart at a point; frames of further ones are only counted.
    pub(super) const MAX_KINDS: usize = 64;

    /// Returns true if an IP packet may be in them, which is not looked for.
    #[must_use]
    pub fn may_hold_ip(&self) -> bool {
        !self.link.is_known() || EtherType(self.ethertype).may_hold_ip()
    }
}

impl std::fmt::Display for UnreadFrames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.ethertype {
            0 if self.link.is_known() => write!(f, "{} without an IP packet", self.link),
            0 => write!(f, "{}", self.link),
            number => write!(f, "{}", EtherType(number)),
        }
    }
}

/// Facts about a point, as far as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointFacts {
    /// Its files: those read completely, in that order, then those being read.
    pub files: Vec<FileFacts>,
    /// Their packets by outcome.
    pub counts: PacketCounts,
    /// Frames without an IP packet by kind: those counted as `arp`, `not_ip` and `unknown_link`.
    pub unread: Vec<UnreadFrames>,
    /// The bytes that keys cover.
    pub key_bytes: KeyBytes,
}

impl PointFacts {
    /// Packets read.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.files.iter().map(|file| file.packets).sum()
    }

    /// Captured bytes of these packets.
    #[must_use]
    pub fn captured_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.captured_bytes).sum()
    }

    /// Their bytes on the wire.
    #[must_use]
    pub fn wire_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.wire_bytes).sum()
    }

    /// Packets without a timestamp, which were not read.
    #[must_use]
    pub fn without_time(&self) -> u64 {
        self.files.iter().map(|file| file.without_time).sum()
    }

    /// Coarsest resolution of timestamps among its files, ns; at least 1.
    #[must_use]
    pub fn resolution_ns(&self) -> u64 {
        let resolutions = self.files.iter().map(FileFacts::resolution_ns);
        resolutions.max().unwrap_or(1)
    }

    /// Packets lost by the captures, where they state it.
    #[must_use]
    pub fn dropped(&self) -> Option<u64> {
        let known = self.files.iter().filter_map(FileFacts::dropped);
        known.reduce(u64::saturating_add)
    }

    /// Times that went backwards within a file.
    #[must_use]
    pub fn backward_steps(&self) -> u64 {
        self.files.iter().map(|file| file.backwards.steps).sum()
    }

    /// Time facts over all files; wrong timestamps are listed per file only.
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

    /// Link types seen, in numeric order.
    #[must_use]
    pub fn links(&self) -> Vec<LinkType> {
        let mut links: Vec<LinkType> = self.files.iter().flat_map(|f| f.links.clone()).collect();
        links.sort_unstable();
        links.dedup();
        links
    }

    /// Files that were not read completely.
    pub fn incomplete(&self) -> impl Iterator<Item = &Incomplete> {
        self.files
            .iter()
            .filter_map(|file| file.incomplete.as_ref())
    }
}
