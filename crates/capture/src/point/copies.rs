//! Packets captured on two interfaces of one host: a bridge and its port, a VLAN and its parent
//! interface, both sides of a router.

use crate::Sighting;

/// The most recent packets.
pub(super) struct Copies {
    /// By bits of the key.
    last: Vec<Option<Sighting>>,
}

impl Copies {
    pub fn new() -> Self {
        Self {
            last: vec![None; REMEMBERED],
        }
    }

    /// Returns true if this packet was just seen on another interface of this host. Equal packets of a sender that does
    /// not number them are not copies: they are the same in every field.
    #[inline]
    pub fn is_copy(&mut self, sighting: &Sighting) -> bool {
        #[expect(clippy::cast_possible_truncation, reason = "bits of a hash")]
        let slot = sighting.key as usize % REMEMBERED;
        let Some(last) = self.last.get_mut(slot) else {
            return false;
        };
        if let Some(seen) = last
            && seen.key == sighting.key
            && sighting.time_ns.abs_diff(seen.time_ns) < APART_NS
            && (seen.flow, seen.ttl, seen.direction)
                != (sighting.flow, sighting.ttl, sighting.direction)
        {
            return true;
        }
        *last = Some(*sighting);
        false
    }
}

/// 48 KiB.
const REMEMBERED: usize = 1 << 10;

/// A host passes a packet from one interface to the other in less time, ns.
const APART_NS: u64 = 1_000_000;
