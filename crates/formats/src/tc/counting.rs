//! Bytes that a packet counts as: the kernel knows one number for a packet, so one for all rates.
//!
//! At egress that number is the length of the packet from its destination address on, without FCS
//! and without the outer VLAN tag, which Linux keeps beside the packet. A size table (`stab`) at the
//! root adds bytes to it; the rates of every discipline below then count the sum.

use slicewise_model::{PolicyParams, Rate};
use slicewise_units::{Accounting, ByteCount, FrameLengths, L1_OVERHEAD_BYTES, Layer};

use super::filter::FieldsUsed;

/// The longest frame that policies reckon with: 1500 B of payload, Ethernet header, two VLAN tags.
const LARGEST_FRAME_BYTES: i64 = 1_522;
/// Bytes of a VLAN tag.
const TAG_BYTES: i64 = 4;
const ETHERNET_BYTES: i64 = 14;
/// The shortest frame with all of them.
const L1_MIN_BYTES: i64 = 84;
/// Bytes of an IP packet that fills a frame.
const FULL_PACKET_BYTES: u32 = 1_500;

/// How packets are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counting {
    pub(super) accounting: Accounting,
    /// VLAN tags that frames are taken to have.
    pub(super) tags: u8,
}

impl Counting {
    /// As `link` counts, with as many tags as the policy's class maps look at.
    pub(super) fn new(link: Rate, policy: &PolicyParams) -> Self {
        Self {
            accounting: link.accounting,
            tags: tags(policy),
        }
    }

    /// Bytes added to what the kernel counts.
    fn overhead(self) -> i64 {
        let (outer, inner) = match self.tags {
            0 => (0, 0),
            1 => (TAG_BYTES, 0),
            _ => (TAG_BYTES, TAG_BYTES),
        };
        let layer = match self.accounting.layer {
            Layer::L1 => outer + L1_OVERHEAD_BYTES,
            Layer::L2 => outer,
            Layer::L3 => -ETHERNET_BYTES - inner,
        };
        layer + i64::from(self.accounting.overhead_bytes)
    }

    /// The size table, as arguments.
    pub(super) fn size_table(self) -> Vec<String> {
        let overhead = self.overhead();
        let shortest = L1_MIN_BYTES + i64::from(self.accounting.overhead_bytes);
        let shortest = (self.accounting.layer == Layer::L1).then_some(shortest.max(1));
        let mut text = match overhead {
            0 if shortest.is_none() && !self.accounting.in_atm_cells => return Vec::new(),
            _ => format!("stab overhead {overhead}"),
        };
        if let Some(shortest) = shortest {
            text.push_str(&format!(" mpu {shortest}"));
        }
        if self.accounting.in_atm_cells {
            text.push_str(" linklayer atm");
        }
        if shortest.is_some() || self.accounting.in_atm_cells {
            // One entry a byte: a coarser table would round lengths up.
            text.push_str(" mtu 2047 tsize 2048");
        }
        text.split(' ').map(str::to_owned).collect()
    }

    /// Returns the bytes that the longest frame counts as, and at least the longest that an interface of usual MTU lets
    /// the kernel expect.
    pub(super) fn largest_frame(self) -> ByteCount {
        let largest = LARGEST_FRAME_BYTES - TAG_BYTES + self.overhead();
        let largest = FrameLengths {
            l2_bytes: u32::try_from(largest).unwrap_or(0),
            ..FrameLengths::NONE
        };
        let in_cells = Accounting {
            overhead_bytes: 0,
            layer: Layer::L2,
            ..self.accounting
        };
        let least = ByteCount::new(LARGEST_FRAME_BYTES.unsigned_abs());
        in_cells.count(largest).max(least)
    }

    fn full_frame(self) -> FrameLengths {
        let l3_offset = 14 + 4 * self.tags;
        FrameLengths {
            l2_bytes: FULL_PACKET_BYTES + u32::from(l3_offset),
            l3_offset,
        }
    }

    /// How the count of `what`, a rate or a size, differs from the one there is; `None` where it
    /// does not. `is_rate`: more passes where a frame counts less; else more is held.
    pub(super) fn difference(
        self,
        what: &str,
        theirs: Accounting,
        is_rate: bool,
    ) -> Option<String> {
        if theirs == self.accounting {
            return None;
        }
        let frame = self.full_frame();
        let (wanted, counted) = (
            theirs.count(frame).bytes(),
            self.accounting.count(frame).bytes(),
        );
        let more = wanted >= counted;
        let permille = wanted.abs_diff(counted) * 1_000 / counted.max(1);
        let (amount, than) = (wanted.abs_diff(counted), if more { "less" } else { "more" });
        let effect = match (is_rate, more) {
            (true, true) => "more passes than it says",
            (true, false) => "less passes than it says",
            (false, true) => "more is held than it says",
            (false, false) => "less is held than it says",
        };
        Some(format!(
            "{what} counts {}, but the kernel counts for it as for the link: {}. A frame of {} bytes \
             counts {amount} bytes {than}, so that {}.{} % {effect}.",
            counted_by(theirs),
            counted_by(self.accounting),
            frame.l2_bytes,
            permille / 10,
            permille % 10,
        ))
    }

    /// Returns the assumption about frames, and the error for other frames.
    pub(super) fn assumption(self) -> Option<String> {
        let because = "because the policy matches";
        match (self.accounting.layer, self.tags) {
            (Layer::L3, 0 | 1) => Some(
                "Frames are taken to have at most one VLAN tag, which Linux keeps beside the packet: \
                 each further tag counts as 4 bytes of the IP packet."
                    .to_owned(),
            ),
            (Layer::L3, _) => Some(format!(
                "Frames are taken to have two VLAN tags, {because} inner ones: a frame with fewer \
                 counts 4 bytes too few."
            )),
            (_, 0) => Some(
                "The outer VLAN tag of a frame is not counted: Linux keeps it beside the packet, and \
                 no class map looks at VLANs."
                    .to_owned(),
            ),
            _ => Some(format!(
                "Frames are taken to have a VLAN tag, {because} VLANs: a frame without counts 4 bytes \
                 too many."
            )),
        }
    }
}

fn counted_by(accounting: Accounting) -> String {
    let layer = match accounting.layer {
        Layer::L1 => "what occupies the wire (L1)",
        Layer::L2 => "frames without FCS (L2)",
        Layer::L3 => "IP packets (L3)",
    };
    let mut text = layer.to_owned();
    if accounting.overhead_bytes != 0 {
        text.push_str(&format!(
            " and {:+} bytes per frame",
            accounting.overhead_bytes
        ));
    }
    if accounting.in_atm_cells {
        text.push_str(", in ATM cells");
    }
    text
}

fn tags(policy: &PolicyParams) -> u8 {
    let of_class = |class: &slicewise_model::ClassParams| {
        let used = class
            .matches
            .as_ref()
            .map(FieldsUsed::of)
            .unwrap_or_default();
        let own = match used {
            FieldsUsed {
                inner_vlan: true, ..
            } => 2,
            FieldsUsed {
                outer_vlan: true, ..
            } => 1,
            _ => 0,
        };
        own.max(class.child.as_deref().map_or(0, tags))
    };
    policy.classes.iter().map(of_class).max().unwrap_or(0)
}
