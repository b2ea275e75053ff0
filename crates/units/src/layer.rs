use crate::ByteCount;
use std::fmt;
use std::str::FromStr;

/// Which bytes of a frame a rate or a burst counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// All that a frame occupies on the wire: preamble, frame with FCS (64 bytes at least), inter-frame gap (IEEE
    /// 802.3: 8 + 4 + 12 bytes beside the frame).
    L1,
    /// The frame from the destination address to the end of the payload, VLAN tags included,
    /// without the FCS: what captures show and QoS configurations count.
    #[default]
    L2,
    /// The IP packet, and what exceeds [`FrameLengths::L3_OFFSET_MAX`] bytes before it.
    L3,
}

/// The lengths of a frame that accounting needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLengths {
    /// Bytes from the destination address to the end of the payload, without FCS.
    pub l2_bytes: u32,
    /// Bytes before the IP header: 14, and more for VLAN tags, a PPPoE header and MPLS labels.
    pub l3_offset: u8,
}

impl FrameLengths {
    /// Lengths of no frame.
    pub const NONE: Self = Self {
        l2_bytes: 0,
        l3_offset: 0,
    };
    /// Bytes before the IP header of a frame without tags.
    pub const UNTAGGED_L3_OFFSET: u8 = 14;
    /// Most bytes before the IP header that L3 leaves out: those of a frame with two VLAN tags. So a frame never takes
    /// more of a link than is reserved for the bytes that L3 counts.
    pub const L3_OFFSET_MAX: u8 = 22;
}

/// How a rate or burst counts a frame: the layer, and bytes added (or taken) for each frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Accounting {
    /// The layer counted.
    pub layer: Layer,
    /// Bytes added to every frame, negative to take away (for tunnels and encryption to come).
    pub overhead_bytes: i16,
}

/// Bytes that a frame occupies beside itself on the link: FCS, preamble with start delimiter, and inter-frame gap (IEEE
/// 802.3).
pub const L1_OVERHEAD_BYTES: i64 = 4 + 8 + 12;
/// The shortest Ethernet frame without its FCS, in bytes.
const L2_MIN_BYTES: i64 = 60;

impl Accounting {
    /// Whole frames without FCS and nothing added: the default.
    pub const L2: Self = Self {
        layer: Layer::L2,
        overhead_bytes: 0,
    };
    /// Wire occupancy.
    pub const L1: Self = Self {
        layer: Layer::L1,
        overhead_bytes: 0,
    };
    /// IP packets.
    pub const L3: Self = Self {
        layer: Layer::L3,
        overhead_bytes: 0,
    };

    /// Returns the bytes that one frame counts as, at least one.
    #[must_use]
    pub fn count(self, frame: FrameLengths) -> ByteCount {
        let l2 = i64::from(frame.l2_bytes);
        let counted = match self.layer {
            Layer::L1 => l2.max(L2_MIN_BYTES) + L1_OVERHEAD_BYTES,
            Layer::L2 => l2,
            Layer::L3 => l2 - i64::from(frame.l3_offset.min(FrameLengths::L3_OFFSET_MAX)),
        };
        ByteCount::new(
            (counted + i64::from(self.overhead_bytes))
                .max(1)
                .unsigned_abs(),
        )
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::L1 => "L1",
            Self::L2 => "L2",
            Self::L3 => "L3",
        })
    }
}

impl FromStr for Layer {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "L1" => Ok(Self::L1),
            "L2" => Ok(Self::L2),
            "L3" => Ok(Self::L3),
            other => Err(format!("`{other}` is not a layer: expected L1, L2 or L3")),
        }
    }
}
