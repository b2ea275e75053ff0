//! Packets in transit, in a slab: no allocation per packet once the network has filled.

use slicewise_transport::Segment;
use slicewise_units::{FrameLengths, Instant};
use slicewise_wire::Ecn;

/// A packet on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// When its sender handed it to the network adapter.
    pub sent_at: Instant,
    /// On a link: when it reaches the end of it. At a device: since when it has been queued there,
    /// which is the same moment. In the sender's adapter: `sent_at`.
    pub queued_at: Instant,
    /// Its number within its flow, from 0.
    pub sequence: u64,
    /// Bytes from the destination address to the end of the payload, without FCS.
    pub l2_bytes: u32,
    /// The flow it belongs to: an index into the network's flows.
    pub flow: u16,
    /// Bytes before the IP header.
    pub l3_offset: u8,
    /// Code point and congestion notification, as the last device wrote them: the octet of RFC 2474
    /// and RFC 3168.
    pub traffic_class: u8,
}

impl Packet {
    /// Lengths, for accounting.
    #[inline]
    #[must_use]
    pub const fn lengths(&self) -> FrameLengths {
        FrameLengths {
            l2_bytes: self.l2_bytes,
            l3_offset: self.l3_offset,
        }
    }

    /// Code point.
    #[inline]
    #[must_use]
    pub const fn dscp(&self) -> u8 {
        self.traffic_class >> 2
    }

    /// Congestion notification.
    #[inline]
    #[must_use]
    pub const fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.traffic_class)
    }
}

/// The octet that holds a code point and congestion notification.
#[inline]
#[must_use]
pub const fn traffic_class(dscp: u8, ecn: Ecn) -> u8 {
    dscp << 2 | ecn.bits()
}

/// Where a packet lies in its [`PacketStore`]; the data plane's frame handle.
pub type PacketId = u32;

/// The packets in transit. Places are reused last in, first out, to stay in the cache.
#[derive(Debug, Clone, Default)]
pub struct PacketStore {
    packets: Vec<Packet>,
    /// What packets of connections hold, at the same places; empty in a network without connections.
    segments: Vec<Segment>,
    free: Vec<PacketId>,
}

impl PacketStore {
    /// Store a packet.
    #[inline]
    pub fn insert(&mut self, packet: Packet) -> PacketId {
        if let Some(id) = self.free.pop() {
            self.packets[id as usize] = packet;
            id
        } else {
            // 2³² packets would fill 100 GB before the number could overflow.
            let id = PacketId::try_from(self.packets.len()).unwrap_or(PacketId::MAX);
            self.packets.push(packet);
            id
        }
    }

    /// Store a packet of a connection.
    #[inline]
    pub fn insert_segment(&mut self, packet: Packet, segment: &Segment) -> PacketId {
        let id = self.insert(packet);
        if self.segments.len() < self.packets.len() {
            self.segments
                .resize(self.packets.capacity(), Segment::default());
        }
        self.segments[id as usize] = *segment;
        id
    }

    /// What a packet of a connection holds.
    #[inline]
    #[must_use]
    pub fn segment(&self, id: PacketId) -> &Segment {
        &self.segments[id as usize]
    }

    /// The packet at `id`, which must be on its way.
    #[inline]
    #[must_use]
    pub fn get(&self, id: PacketId) -> &Packet {
        &self.packets[id as usize]
    }

    /// The packet at `id`, to change it.
    #[inline]
    pub fn get_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.packets[id as usize]
    }

    /// Remove a packet.
    #[inline]
    pub fn remove(&mut self, id: PacketId) -> Packet {
        self.free.push(id);
        self.packets[id as usize]
    }

    /// Number of packets on their way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len() - self.free.len()
    }

    /// True if no packet is in transit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(sequence: u64) -> Packet {
        Packet {
            sent_at: Instant::ZERO,
            queued_at: Instant::ZERO,
            sequence,
            l2_bytes: 60,
            flow: 0,
            l3_offset: 14,
            traffic_class: 0,
        }
    }

    #[test]
    fn a_packet_is_half_a_cache_line() {
        assert_eq!(size_of::<Packet>(), 32);
    }

    #[test]
    fn reuses_the_place_left_last() {
        let mut store = PacketStore::default();
        let ids: Vec<PacketId> = (0..3).map(|n| store.insert(packet(n))).collect();
        assert_eq!(store.remove(ids[0]).sequence, 0);
        assert_eq!(store.remove(ids[2]).sequence, 2);
        assert_eq!(store.len(), 1);
        assert_eq!(store.insert(packet(3)), ids[2]);
        assert_eq!(store.insert(packet(4)), ids[0]);
        assert_eq!(store.get(ids[1]).sequence, 1);
        assert_eq!(store.len(), 3);
    }
}
