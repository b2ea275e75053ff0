//! The fields of a frame as the words of a key, and patterns over them.

use slicewise_wire::{Headers, IpVersion};
use std::num::NonZeroU32;

/// Words of a key.
pub(super) const WORDS: usize = 6;

/// A field within a key: its word, the position of its lowest bit, and its width in bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    word: usize,
    shift: u32,
    bits: u32,
}

const fn field(word: usize, shift: u32, bits: u32) -> Field {
    Field { word, shift, bits }
}

// In the order in which the fields lie in memory: the first word is one load.
pub(super) const OUTER_VLAN: Field = field(0, 0, 16);
pub(super) const INNER_VLAN: Field = field(0, 16, 16);
pub(super) const SOURCE_PORT: Field = field(0, 32, 16);
pub(super) const DESTINATION_PORT: Field = field(0, 48, 16);
pub(super) const TEID: Field = field(1, 0, 32);
pub(super) const PROTOCOL: Field = field(1, 32, 8);
pub(super) const DSCP: Field = field(1, 40, 6);
pub(super) const ETHERTYPE: Field = field(1, 48, 16);
/// In the place of the source port: no frame has both.
pub(super) const ICMP_TYPE: Field = field(0, 32, 8);
/// The low word of the source address; the next is the high one.
pub(super) const SOURCE: usize = 2;
/// The low word of the destination address; the next is the high one.
pub(super) const DESTINATION: usize = 4;

/// One word of a frame's key.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the low word of an address"
)]
pub(super) fn word(h: &Headers, index: usize) -> u64 {
    match index {
        0 => {
            u64::from(h.outer_vlan) << OUTER_VLAN.shift
                | u64::from(h.inner_vlan) << INNER_VLAN.shift
                | u64::from(h.source_port) << SOURCE_PORT.shift
                | u64::from(h.destination_port) << DESTINATION_PORT.shift
                | u64::from(h.icmp_type.unwrap_or(0)) << ICMP_TYPE.shift
        }
        1 => {
            u64::from(h.teid.map_or(0, NonZeroU32::get)) << TEID.shift
                | u64::from(h.protocol) << PROTOCOL.shift
                | u64::from(h.dscp & 63) << DSCP.shift
                | u64::from(h.ethertype) << ETHERTYPE.shift
        }
        SOURCE => h.source as u64,
        3 => (h.source >> 64) as u64,
        DESTINATION => h.destination as u64,
        _ => (h.destination >> 64) as u64,
    }
}

/// Which headers a frame has, as a set of bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Present(u16);

impl Present {
    pub(super) const NOTHING: Self = Self(0);
    pub(super) const TAG: Self = Self(1);
    pub(super) const SECOND_TAG: Self = Self(1 << 1);
    pub(super) const IP: Self = Self(1 << 2);
    pub(super) const V4: Self = Self(1 << 3);
    pub(super) const V6: Self = Self(1 << 4);
    pub(super) const PORTS: Self = Self(1 << 5);
    pub(super) const TUNNEL: Self = Self(1 << 6);
    pub(super) const ICMP: Self = Self(1 << 7);
    /// Not IP.
    pub(super) const NO_IP: Self = Self(1 << 8);
    /// Any of these is IP.
    const ALL_IP: u16 =
        Self::IP.0 | Self::V4.0 | Self::V6.0 | Self::PORTS.0 | Self::TUNNEL.0 | Self::ICMP.0;

    pub(super) const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both; `None` if no frame has both. What the others imply is left out, so that equal sets are
    /// written in one way.
    fn and(self, other: Self) -> Option<Self> {
        let mut all = Self(self.0 | other.0);
        if all.contains(Self::V4) && all.contains(Self::V6)
            || all.contains(Self::ICMP) && all.contains(Self::PORTS)
            || all.contains(Self::NO_IP) && all.0 & Self::ALL_IP != 0
        {
            return None;
        }
        if all.contains(Self::V4) || all.contains(Self::V6) {
            all.0 &= !Self::IP.0;
        }
        if all.contains(Self::SECOND_TAG) {
            all.0 &= !Self::TAG.0;
        }
        Some(all)
    }
}

/// Fields that a frame must have, as they are compared with headers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needs {
    tags: u8,
    /// A bit for each IP version that is accepted.
    versions: u8,
    ports: bool,
    tunnel: bool,
    icmp: bool,
    /// Nothing but tags: usual, and a single comparison.
    only_tags: bool,
}

impl Needs {
    pub(super) const fn new(present: Present) -> Self {
        let v4 = 1 << IpVersion::V4 as u8;
        let v6 = 1 << IpVersion::V6 as u8;
        let tags = Present::TAG.0 | Present::SECOND_TAG.0;
        Self {
            only_tags: present.0 & !tags == 0,
            tags: match (
                present.contains(Present::SECOND_TAG),
                present.contains(Present::TAG),
            ) {
                (true, _) => 2,
                (false, true) => 1,
                (false, false) => 0,
            },
            versions: if present.contains(Present::NO_IP) {
                1 << IpVersion::None as u8
            } else if present.contains(Present::V4) {
                v4
            } else if present.contains(Present::V6) {
                v6
            } else if present.contains(Present::IP) {
                v4 | v6
            } else {
                v4 | v6 | 1 << IpVersion::None as u8
            },
            ports: present.contains(Present::PORTS),
            tunnel: present.contains(Present::TUNNEL),
            icmp: present.contains(Present::ICMP),
        }
    }

    #[inline]
    pub(super) const fn are_met(self, h: &Headers) -> bool {
        h.vlan_tags >= self.tags
            && (self.only_tags
                || self.versions >> h.ip_version as u8 & 1 == 1
                    && (h.has_ports || !self.ports)
                    && (h.teid.is_some() || !self.tunnel)
                    && (h.icmp_type.is_some() || !self.icmp))
    }
}

/// Which bits of a key decide, in frames that have the headers they belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mask {
    pub(super) needs: Present,
    pub(super) words: [u64; WORDS],
}

impl Mask {
    /// The bits that decide in both.
    pub(super) fn common_words(&self, other: &Self) -> [u64; WORDS] {
        std::array::from_fn(|word| self.words[word] & other.words[word])
    }
}

/// Frames whose key has these values under the mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) mask: Mask,
    pub(super) value: [u64; WORDS],
}

impl Pattern {
    /// Every frame that has these headers.
    pub(super) const fn all(needs: Present) -> Self {
        let words = [0; WORDS];
        Self {
            mask: Mask { needs, words },
            value: words,
        }
    }

    /// Frames with these headers whose `field` is `value`, without regard to its `ignored` lowest bits.
    pub(super) fn equal(needs: Present, field: Field, value: u32, ignored: u32) -> Self {
        let ones = (1u64 << field.bits) - 1;
        let mask = ones >> ignored << ignored << field.shift;
        Self::all(needs).with_word(field.word, mask, u64::from(value) << field.shift)
    }

    pub(super) fn with_word(mut self, word: usize, mask: u64, value: u64) -> Self {
        self.mask.words[word] = mask;
        self.value[word] = value & mask;
        self
    }

    /// Frames that match both; `None` if there are none.
    pub(super) fn and(&self, other: &Self) -> Option<Self> {
        let mut both = Self::all(self.mask.needs.and(other.mask.needs)?);
        for word in 0..WORDS {
            let (a, b) = (self.mask.words[word], other.mask.words[word]);
            if (self.value[word] ^ other.value[word]) & a & b != 0 {
                return None;
            }
            both = both.with_word(word, a | b, self.value[word] | other.value[word]);
        }
        Some(both)
    }
}
