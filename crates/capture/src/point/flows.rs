//! The flows of a measuring point, numbered in order of appearance.

use super::key::{PI, fold, high, low};
use slicewise_wire::{Ecn, Headers};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::num::NonZeroU32;

/// A table of flows. Packets belong to one flow if addresses, protocol, ports, VLAN ids, DSCP, type of ICMP, TEID and
/// what is between tags and IP (PPPoE, MPLS) are equal: everything a classifier can match on, so that each flow is classified only once.
pub struct FlowTable {
    flows: Vec<Headers>,
    /// Distinguishing fields of each flow.
    keys: Vec<FlowKey>,
    /// Length is a power of two, at most half filled.
    slots: Vec<Slot>,
    /// Random, so that no capture can be crafted to cause collisions. It does not affect results.
    seed: u64,
    most: usize,
    overflowed: bool,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    /// Bits of the hash not implied by the position.
    mark: u32,
    /// Index of the flow plus 1; 0 if the slot is free.
    flow: u32,
}

/// The distinguishing fields of a flow, packed into a few words.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FlowKey {
    source: u128,
    destination: u128,
    words: [u64; 2],
}

impl FlowKey {
    #[inline]
    fn new(headers: &Headers) -> Self {
        // Every field is named, so that a new one is not forgotten here.
        let Headers {
            source,
            destination,
            vlan_tags,
            ip_version,
            protocol,
            dscp,
            ecn: _,
            outer_vlan,
            inner_vlan,
            has_ports,
            source_port,
            destination_port,
            l3_offset: _,
            ethertype,
            icmp_type,
            teid,
        } = *headers;
        // ICMP has no ports.
        let icmp_type = icmp_type.map_or(0, |icmp_type| u64::from(icmp_type) + 1);
        let ports = (u64::from(source_port) | icmp_type)
            | u64::from(destination_port) << 16
            | u64::from(outer_vlan) << 32
            | u64::from(inner_vlan) << 48;
        let rest = u64::from(protocol)
            | u64::from(dscp) << 8
            | u64::from(vlan_tags & 3) << 16
            | u64::from(has_ports) << 18
            | (ip_version as u64) << 20
            // Of the three types with IP packets in them, and of none, the low bytes differ.
            | u64::from(ethertype & 0xff) << 22
            | u64::from(teid.map_or(0, NonZeroU32::get)) << 32;
        Self {
            source,
            destination,
            words: [ports, rest],
        }
    }

    #[inline]
    fn hash(&self, seed: u64) -> u64 {
        let [ports, rest] = self.words;
        let mut hash = fold(ports ^ seed, rest ^ PI[1]);
        hash = fold(low(self.source) ^ hash, low(self.destination) ^ PI[2]);
        if high(self.source) | high(self.destination) != 0 {
            hash = fold(high(self.source) ^ hash, high(self.destination) ^ PI[3]);
        }
        hash ^ seed
    }
}

const FEWEST_SLOTS: usize = 1 << 10;

impl FlowTable {
    /// Most distinct flows of a point: 2^18. Packets of further ones share one flow with empty headers.
    pub const MOST_FLOWS: usize = 1 << 18;

    pub(super) fn new(most: usize) -> Self {
        Self {
            flows: Vec::new(),
            keys: Vec::new(),
            slots: vec![Slot::default(); FEWEST_SLOTS],
            seed: RandomState::new().build_hasher().finish(),
            most,
            overflowed: false,
        }
    }

    /// Headers of the packets of `flow`, without ECN. Empty for the shared flow beyond
    /// [`FlowTable::MOST_FLOWS`].
    #[must_use]
    pub fn headers(&self, flow: u32) -> Option<&Headers> {
        self.flows.get(flow as usize)
    }

    /// Flows so far, the shared one included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Returns true if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// The shared flow of packets beyond [`FlowTable::MOST_FLOWS`], if there are any.
    #[must_use]
    pub fn shared(&self) -> Option<u32> {
        self.overflowed.then(|| self.shared_index())
    }

    /// All flows, in numeric order.
    pub fn iter(&self) -> impl Iterator<Item = &Headers> {
        self.flows.iter()
    }

    fn shared_index(&self) -> u32 {
        u32::try_from(self.most).unwrap_or(u32::MAX)
    }

    /// The number of the flow of a packet with these headers.
    #[inline]
    pub(super) fn flow_of(&mut self, headers: &Headers) -> u32 {
        let key = FlowKey::new(headers);
        let hash = key.hash(self.seed);
        let mark = mark(hash);
        let mask = self.slots.len() - 1;
        let mut at = place(hash) & mask;
        // Terminates: at least half of the slots are free.
        while let Some(slot) = self.slots.get(at)
            && slot.flow != 0
        {
            let flow = slot.flow - 1;
            if slot.mark == mark && self.keys.get(flow as usize) == Some(&key) {
                return flow;
            }
            at = (at + 1) & mask;
        }
        self.insert(at, headers, key)
    }

    #[cold]
    fn insert(&mut self, at: usize, headers: &Headers, key: FlowKey) -> u32 {
        if self.flows.len() >= self.most {
            if !self.overflowed {
                self.overflowed = true;
                self.flows.push(Headers::EMPTY);
            }
            return self.shared_index();
        }
        self.flows.push(Headers {
            ecn: Ecn::NotEct,
            ..*headers
        });
        self.keys.push(key);
        let flow = u32::try_from(self.flows.len()).unwrap_or(u32::MAX);
        let mark = mark(key.hash(self.seed));
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = Slot { mark, flow };
        }
        if self.flows.len() * 2 > self.slots.len() {
            self.grow();
        }
        flow - 1
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        let mut slots = vec![Slot::default(); mask + 1];
        for (flow, key) in (1..).zip(&self.keys) {
            let hash = key.hash(self.seed);
            let mut at = place(hash) & mask;
            while slots.get(at).is_some_and(|slot| slot.flow != 0) {
                at = (at + 1) & mask;
            }
            if let Some(slot) = slots.get_mut(at) {
                let mark = mark(hash);
                *slot = Slot { mark, flow };
            }
        }
        self.slots = slots;
    }
}

#[expect(clippy::cast_possible_truncation, reason = "bits of a hash")]
fn place(hash: u64) -> usize {
    hash as usize
}

fn mark(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use slicewise_wire::IpVersion;

    fn headers(number: u32) -> Headers {
        Headers {
            source: number.into(),
            ip_version: IpVersion::V4,
            ..Headers::EMPTY
        }
    }

    #[test]
    fn numbers_flows_in_the_order_they_appear_however_many() {
        let mut table = FlowTable::new(FlowTable::MOST_FLOWS);
        assert!(table.is_empty());
        for _ in 0..2 {
            for number in 0..10_000 {
                assert_eq!(table.flow_of(&headers(number)), number);
            }
        }
        assert_eq!(table.len(), 10_000);
        assert_eq!(table.headers(77), Some(&headers(77)));
        assert_eq!((table.shared(), table.headers(10_000)), (None, None));
    }

    #[test]
    fn distinguishes_flows_by_every_field_classifiers_match_on() {
        let base = Headers {
            has_ports: true,
            ..headers(1)
        };
        let mut different = vec![base; 17];
        different[1].destination = 1;
        different[2].source = 1 << 100;
        different[3].source_port = 1;
        different[4].destination_port = 1;
        different[5].protocol = 1;
        different[6].dscp = 1;
        different[7].outer_vlan = 1;
        different[8].inner_vlan = 1;
        different[9].vlan_tags = 1;
        different[10].ip_version = IpVersion::V6;
        different[11].teid = NonZeroU32::new(1);
        different[12].ethertype = 0x8847;
        different[13].ethertype = 0x8848;
        different[14].ethertype = 0x8864;
        for (flow, icmp_type) in [(15, 0), (16, 8)] {
            different[flow].has_ports = false;
            (
                different[flow].source_port,
                different[flow].destination_port,
            ) = (0, 0);
            different[flow].icmp_type = Some(icmp_type);
        }
        let mut table = FlowTable::new(100);
        let flows: Vec<u32> = different.iter().map(|h| table.flow_of(h)).collect();
        assert_eq!(flows, (0..17).collect::<Vec<_>>());
        let marked = Headers {
            ecn: Ecn::Ce,
            ..base
        };
        assert_eq!(table.flow_of(&marked), 0, "marks are set in transit");
    }

    #[test]
    fn packets_of_further_flows_share_one() {
        let mut table = FlowTable::new(3);
        let flows: Vec<u32> = [0, 1, 2, 3, 4, 0, 3]
            .map(|number| table.flow_of(&headers(number)))
            .into();
        assert_eq!(flows, [0, 1, 2, 3, 3, 0, 3]);
        assert_eq!((table.len(), table.shared()), (4, Some(3)));
        assert_eq!(table.headers(3), Some(&Headers::EMPTY));
    }
}
