//! Packets in transit, in a slab: no allocation per packet once the network has filled.

use prefetch_index::prefetch_index;
use slicewise_dataplane::Frame;
use slicewise_transport::Segment;
use slicewise_units::{FrameLengths, Instant};
use slicewise_wire::TrafficClass;

/// Priorities of IEEE 802.1Q.
pub(crate) const PRIORITIES: usize = 8;

/// A packet on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// When its sender handed it to the network adapter.
    pub sent_at: Instant,
    /// On a link: when it reaches the end of it. At a device: since when it has been queued there,
    /// which is the same moment. Waiting in the sender's adapter: `sent_at`.
    pub queued_at: Instant,
    /// Its number within its flow, from 0.
    pub sequence: u64,
    /// Bytes from the destination address to the end of the payload, without FCS.
    pub l2_bytes: u32,
    /// The flow it belongs to: an index into the network's flows.
    pub flow: u16,
    /// Bytes before the IP header.
    pub l3_offset: u8,
    /// Code point and congestion notification, as the last device wrote them.
    pub traffic_class: TrafficClass,
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

    /// Its priority (IEEE 802.1Q): the class selector of its code point (RFC 2474).
    #[inline]
    pub(crate) const fn priority(&self) -> u8 {
        self.traffic_class.dscp() >> 3
    }
}

/// Where a packet lies in its [`PacketStore`]; the data plane's frame handle.
pub type PacketId = u32;

/// Places that a store begins with, and that are given in turn.
const BLOCK: usize = 64;
/// So many packets fill 256 KiB.
const LARGE: usize = 1 << 13;

/// The packets in transit. Blocks of places are given in turn, what is taken of them left out, and at least a quarter of all
/// places are free: packets that wait in one queue lie one behind the other in memory, so that a queue of tens of thousands is
/// read in order. Places reused last in, first out would lie all over the store after a while. Only those of the current block
/// are given again at once, as of packets that a device drops: so a flood does not sweep the store through the caches.
#[derive(Debug, Clone, Default)]
pub struct PacketStore {
    packets: Vec<Packet>,
    /// Segments of packets that belong to connections, at the same places; empty in a network without connections.
    segments: Vec<Segment>,
    /// For each block, a bit for each place: it is free.
    free: Vec<u64>,
    /// The current block, and what is free of it; nothing of it is free in `free`.
    block: usize,
    free_here: u64,
    len: usize,
}

impl PacketStore {
    /// Store a packet. O(1), amortized over a turn.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "2³² packets fill 100 GB")]
    pub fn insert(&mut self, packet: &Packet) -> PacketId {
        if self.free_here == 0 {
            self.next_block(*packet);
        }
        let place = self.block * BLOCK + self.free_here.trailing_zeros() as usize;
        self.free_here &= self.free_here - 1;
        self.packets[place] = *packet;
        self.len += 1;
        place as PacketId
    }

    /// Go on to the next block that has a free place; `packet` fills new ones.
    #[inline(never)]
    fn next_block(&mut self, packet: Packet) {
        if self.len * 4 >= self.packets.len() * 3 {
            self.grow(packet);
        }
        let (before, from) = self.free.split_at(self.block);
        let mut blocks = (self.block..).zip(from).chain((0..).zip(before));
        let with_room = blocks.find(|(_, free)| **free != 0);
        self.block = with_room.map_or(0, |(block, _)| block);
        self.free_here = std::mem::take(&mut self.free[self.block]);
    }

    /// Twice as many places; `packet` fills those that are free.
    #[cold]
    fn grow(&mut self, packet: Packet) {
        self.block = self.free.len();
        let places = (self.packets.len() * 2).max(BLOCK);
        self.packets.resize(places, packet);
        self.free.resize(places / BLOCK, u64::MAX);
        if !self.segments.is_empty() {
            self.segments.resize(places, Segment::default());
        }
    }

    /// Store a packet of a connection.
    #[inline]
    pub fn insert_segment(&mut self, packet: Packet, segment: &Segment) -> PacketId {
        let id = self.insert(&packet);
        if self.segments.is_empty() {
            self.segments.resize(self.packets.len(), Segment::default());
        }
        self.segments[id as usize] = *segment;
        id
    }

    /// Returns the segment in a packet of a connection.
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

    /// Packets may not be in the processor's caches any more when they leave.
    #[inline]
    pub(crate) const fn is_large(&self) -> bool {
        self.len > LARGE
    }

    /// Prefetch what lies at `id`, a packet that will soon be needed or anything else.
    #[inline]
    pub fn prefetch(&self, id: u64) {
        let place = usize::try_from(id).unwrap_or(usize::MAX);
        if place < self.packets.len() {
            prefetch_index(&self.packets, place);
        }
        if place < self.segments.len() {
            prefetch_index(&self.segments, place);
        }
    }

    /// The packet at `id`, to change it.
    #[inline]
    pub fn get_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.packets[id as usize]
    }

    /// Remove a packet.
    #[inline]
    pub fn remove(&mut self, id: PacketId) {
        let place = id as usize;
        let free = if place / BLOCK == self.block {
            &mut self.free_here
        } else {
            &mut self.free[place / BLOCK]
        };
        *free |= 1 << (place % BLOCK);
        self.len -= 1;
    }

    /// Remove a packet, and have it.
    #[inline]
    pub fn take(&mut self, id: PacketId) -> Packet {
        let packet = *self.get(id);
        self.remove(id);
        packet
    }

    /// Number of packets on their way.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if no packet is in transit.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The packet that a frame of the data plane stands for.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "it was made of one")]
pub(crate) const fn packet_of(frame: &Frame) -> PacketId {
    frame.handle as PacketId
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(sequence: u64) -> Packet {
        Packet {
            sent_at: Instant::ZERO,
            queued_at: Instant::ZERO,
            sequence,
            l2_bytes: 60,
            flow: 0,
            l3_offset: 14,
            traffic_class: TrafficClass::DEFAULT,
        }
    }

    #[test]
    fn a_packet_is_half_a_cache_line() {
        assert_eq!(size_of::<Packet>(), 32);
    }

    #[test]
    fn packets_stored_in_turn_lie_one_behind_the_other() {
        let mut store = PacketStore::default();
        let grown: Vec<PacketId> = (0..300).map(|n| store.insert(&packet(n))).collect();
        for id in grown {
            store.remove(id);
        }
        let places = PacketId::try_from(store.packets.len()).unwrap();
        let first: Vec<PacketId> = (0..100).map(|n| store.insert(&packet(n))).collect();
        // Of the older ones every other leaves, as where two queues are served in turn.
        for id in first[..30].iter().step_by(2) {
            store.remove(*id);
        }
        let later: Vec<PacketId> = (0..50).map(|n| store.insert(&packet(n))).collect();
        for (n, id) in (0..).zip(first.iter().chain(&later)) {
            assert_eq!(*id, (first[0] + n) % places);
        }
    }

    #[test]
    fn places_that_become_free_at_once_are_given_again_at_once() {
        let mut store = PacketStore::default();
        for n in 0..40 {
            store.insert(&packet(n));
        }
        for n in 0..1_000 {
            let [one, other] = [store.insert(&packet(n)), store.insert(&packet(n))];
            assert_eq!([one, other], [40, 41]);
            store.remove(one);
            store.remove(other);
        }
    }

    proptest! {
        /// Compare with a map, for packets that leave in any order.
        #[test]
        fn a_packet_stays_what_it_is_until_it_is_removed(
            steps in prop::collection::vec(prop_oneof![3 => Just(None), 2 => any::<u16>().prop_map(Some)], 1..600),
        ) {
            let mut store = PacketStore::default();
            let mut kept: Vec<(PacketId, u64)> = Vec::new();
            for (number, step) in (0u64..).zip(steps) {
                match step {
                    Some(which) if !kept.is_empty() => {
                        let (id, sequence) = kept.swap_remove(usize::from(which) % kept.len());
                        prop_assert_eq!(store.take(id).sequence, sequence);
                    }
                    _ => {
                        let segment = Segment { sequence: number, ..Segment::default() };
                        let id = store.insert_segment(packet(number), &segment);
                        prop_assert!(kept.iter().all(|(other, _)| *other != id));
                        kept.push((id, number));
                    }
                }
                prop_assert_eq!(store.len(), kept.len());
                for (id, sequence) in &kept {
                    prop_assert_eq!(store.get(*id).sequence, *sequence);
                    prop_assert_eq!(store.segment(*id).sequence, *sequence);
                }
            }
        }
    }
}
