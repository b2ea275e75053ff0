use crate::{ByteCount, QuantityError};
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

/// How a rate or burst counts a frame: the layer, bytes added (or taken) for each frame, and whether that travels in cells.
/// As text `L2`, `L2 + 8 B`, `L1 - 4 B` or `L3 + 40 B in ATM cells`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Accounting {
    /// The layer counted.
    pub layer: Layer,
    /// Bytes that a link behind the device adds to every frame, for example a PPPoE header; negative where it takes some away.
    pub overhead_bytes: i16,
    /// The sum fills ATM cells (AAL5, ITU-T I.363.5): 53 bytes for every 48, the last cell padded.
    pub in_atm_cells: bool,
}

/// Most bytes that text can add to or take from each frame.
pub const MAX_OVERHEAD_BYTES: i16 = 1_500;
/// Bytes of an ATM cell (ITU-T I.361).
pub const ATM_CELL_BYTES: u32 = 53;
/// Payload bytes of an ATM cell.
pub const ATM_PAYLOAD_BYTES: u32 = 48;
/// Ending of the text of an accounting that counts cells.
const IN_ATM_CELLS: &str = " in ATM cells";
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
        in_atm_cells: false,
    };
    /// Wire occupancy.
    pub const L1: Self = Self {
        layer: Layer::L1,
        overhead_bytes: 0,
        in_atm_cells: false,
    };
    /// IP packets.
    pub const L3: Self = Self {
        layer: Layer::L3,
        overhead_bytes: 0,
        in_atm_cells: false,
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
        let bytes = (counted + i64::from(self.overhead_bytes))
            .max(1)
            .unsigned_abs();
        ByteCount::new(if self.in_atm_cells {
            cells(bytes)
        } else {
            bytes
        })
    }
}

/// Bytes of the cells that carry `bytes`. Few links have cells: the branch to it is laid out for those without.
#[cold]
fn cells(bytes: u64) -> u64 {
    bytes.div_ceil(ATM_PAYLOAD_BYTES.into()) * u64::from(ATM_CELL_BYTES)
}

/// As derived, but without cells where there are none: digests of runs are of this text.
impl fmt::Debug for Accounting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Accounting");
        shown.field("layer", &self.layer);
        shown.field("overhead_bytes", &self.overhead_bytes);
        if self.in_atm_cells {
            shown.field("in_atm_cells", &true);
        }
        shown.finish()
    }
}

impl fmt::Display for Accounting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.layer)?;
        match self.overhead_bytes {
            0 => {}
            less @ ..0 => write!(f, " - {} B", less.unsigned_abs())?,
            more => write!(f, " + {more} B")?,
        }
        f.write_str(if self.in_atm_cells { IN_ATM_CELLS } else { "" })
    }
}

impl FromStr for Accounting {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let text = s.trim();
        let (bytes, in_atm_cells) = match text.strip_suffix(IN_ATM_CELLS) {
            Some(bytes) => (bytes, true),
            None => (text, false),
        };
        let (layer, overhead) = bytes.split_at(bytes.find(['+', '-']).unwrap_or(bytes.len()));
        let layer = match layer.trim_end() {
            "L1" if in_atm_cells => {
                return Err(format!(
                    "`{text}` puts the preamble and gap of Ethernet in ATM cells: write L2 or L3 and the bytes that are added"
                ));
            }
            "L1" => Layer::L1,
            "L2" => Layer::L2,
            "L3" => Layer::L3,
            _ => {
                return Err(format!(
                    "`{text}` is not what a rate can count: expected L1, L2 or L3, with the bytes that a link adds to each \
                     frame, for example `L2 + 8 B` or `L3 + 40 B in ATM cells`"
                ));
            }
        };
        let overhead_bytes = match (overhead.strip_prefix('+'), overhead.strip_prefix('-')) {
            (Some(more), _) => overhead_of(more)?,
            (_, Some(less)) => -overhead_of(less)?,
            _ => 0,
        };
        Ok(Self {
            layer,
            overhead_bytes,
            in_atm_cells,
        })
    }
}

fn overhead_of(text: &str) -> Result<i16, String> {
    let size: ByteCount = text
        .parse()
        .map_err(|error: QuantityError| error.to_string())?;
    let bytes = i16::try_from(size.bytes()).ok();
    bytes
        .filter(|bytes| *bytes <= MAX_OVERHEAD_BYTES)
        .ok_or_else(|| {
            format!("an overhead of {size} per frame is too large: at most {MAX_OVERHEAD_BYTES} B")
        })
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
