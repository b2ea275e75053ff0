//! Which flow a frame belongs to: a hash of its addresses, protocol and ports, which are those of the inner packet where a
//! frame is in a GTP-U tunnel.

use super::pool::FLOW_BITS;
use slicewise_wire::{Headers, IpVersion};

/// 2^64 / golden ratio (Knuth), and a multiplier of Steele and Vigna's (2021).
const MULTIPLIERS: (u64, u64) = (0x9e37_79b9_7f4a_7c15, 0xd134_2543_de82_ef95);

/// A seeded hash, so that nobody can choose flows to collide with another's
/// (RFC 8290, section 4.1.2).
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowHash {
    seed: u64,
}

impl FlowHash {
    pub(crate) const fn new(seed: u64) -> Self {
        // Seeds are small numbers: spread over all bits.
        Self {
            seed: seed.wrapping_add(1).wrapping_mul(MULTIPLIERS.0),
        }
    }

    /// [`FLOW_BITS`] bits for the 5-tuple. Non-IP frames are one flow per pair of VLAN tags.
    #[inline]
    pub(crate) fn of(self, h: &Headers) -> u16 {
        (self.of_tuple(h).wrapping_mul(MULTIPLIERS.0) >> (64 - FLOW_BITS)) as u16
    }

    /// 64 bits, also for the tunnel: terminals may have the same addresses.
    #[inline]
    pub(crate) fn wide(self, h: &Headers) -> u64 {
        let tunnel = h.teid.map_or(0, |teid| u64::from(teid.get()));
        self.fold(self.of_tuple(h), tunnel)
    }

    /// Each word passes a full 64 × 64 → 128 bit product with the seed among its factors.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
    const fn fold(self, hash: u64, word: u64) -> u64 {
        let product = (hash ^ word) as u128 * MULTIPLIERS.1 as u128;
        (product as u64 ^ (product >> 64) as u64).wrapping_add(self.seed)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "words of an address")]
    fn of_tuple(self, h: &Headers) -> u64 {
        let ports = u64::from(h.source_port) << 16 | u64::from(h.destination_port);
        let tags = u64::from(h.outer_vlan) << 16 | u64::from(h.inner_vlan);
        let rest = ports << 32 ^ tags << 8 ^ u64::from(h.protocol);
        let fold = |hash, word| self.fold(hash, word);
        let hash = if h.ip_version == IpVersion::V6 {
            [h.source, h.destination]
                .into_iter()
                .flat_map(|address| [address as u64, (address >> 64) as u64])
                .fold(self.seed, fold)
        } else {
            fold(self.seed, (h.source as u64) << 32 ^ h.destination as u64)
        };
        fold(hash, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::FlowHash;
    use crate::queue::FLOW_BITS;
    use slicewise_wire::{Headers, IpVersion};
    use std::collections::BTreeSet;

    fn flow(port: u16) -> Headers {
        Headers {
            source: 0x0a00_0001,
            destination: 0x0a00_0101,
            protocol: 6,
            source_port: port,
            destination_port: 443,
            ..Headers::default()
        }
    }

    #[test]
    fn one_flow_has_one_hash_whatever_its_marks() {
        let hash = FlowHash::new(1);
        let marked = Headers {
            dscp: 46,
            ecn: slicewise_wire::Ecn::Ce,
            ..flow(1)
        };
        assert_eq!(hash.of(&flow(1)), hash.of(&marked));
    }

    #[test]
    fn terminals_with_the_same_addresses_in_two_tunnels_are_two_flows() {
        let hash = FlowHash::new(1);
        let in_tunnel = |teid| Headers {
            teid: std::num::NonZeroU32::new(teid),
            ..flow(1)
        };
        let keys: BTreeSet<u64> = (0..100).map(|teid| hash.wide(&in_tunnel(teid))).collect();
        assert_eq!(keys.len(), 100);
        assert_ne!(hash.wide(&flow(1)), hash.wide(&flow(2)));
        let marked = Headers {
            dscp: 46,
            ..in_tunnel(7)
        };
        assert_eq!(hash.wide(&in_tunnel(7)), hash.wide(&marked));
    }

    #[test]
    fn flows_are_spread_evenly_and_differently_by_another_seed() {
        let count = 1usize << FLOW_BITS;
        let (one, other) = (FlowHash::new(1), FlowHash::new(2));
        let mut hit = vec![0u32; count];
        let mut same = 0;
        for port in 0..1u16 << FLOW_BITS {
            let flow = flow(port);
            hit[usize::from(one.of(&flow))] += 1;
            same += usize::from(one.of(&flow) == other.of(&flow));
        }
        // As many at random into as many places leave 1/e of them empty.
        let empty = hit.iter().filter(|&&hits| hits == 0).count();
        assert!((2_800..3_230).contains(&empty), "{empty}");
        assert!(hit.iter().all(|&hits| hits < 12));
        assert!(same < 10, "{same}");
    }

    /// Headers that differ in one field, or in one part of it.
    type Changed = fn(&mut Headers, u8);

    #[test]
    fn every_field_that_distinguishes_flows_changes_the_hash() {
        let of_both: [Changed; 7] = [
            |h, n| h.source_port = n.into(),
            |h, n| h.destination_port = n.into(),
            |h, n| h.protocol = n,
            |h, n| h.outer_vlan = n.into(),
            |h, n| h.inner_vlan = n.into(),
            |h, n| h.source = n.into(),
            |h, n| h.destination = n.into(),
        ];
        let of_v6: [Changed; 4] = [
            |h, n| h.source = u128::from(n) << 48,
            |h, n| h.source = u128::from(n) << 64,
            |h, n| h.destination = u128::from(n) << 48,
            |h, n| h.destination = u128::from(n) << 64,
        ];
        for ip_version in [IpVersion::V4, IpVersion::V6] {
            let of_v6: &[Changed] = if ip_version == IpVersion::V6 {
                &of_v6
            } else {
                &[]
            };
            for (field, change) in of_both.iter().chain(of_v6).enumerate() {
                let hashes: BTreeSet<u16> = (0..100)
                    .map(|n| {
                        let mut headers = Headers {
                            ip_version,
                            ..Headers::default()
                        };
                        change(&mut headers, n);
                        FlowHash::new(1).of(&headers)
                    })
                    .collect();
                assert!(
                    hashes.len() > 90,
                    "field {field} of {ip_version:?}: {}",
                    hashes.len()
                );
            }
        }
    }

    #[test]
    fn consecutive_seeds_are_as_good_as_any() {
        let hashes: BTreeSet<u16> = (0..100)
            .map(|seed| FlowHash::new(seed).of(&flow(1)))
            .collect();
        assert!(hashes.len() > 90, "{}", hashes.len());
    }
}
