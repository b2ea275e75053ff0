//! The backlog that `CoDel` does not touch.

use slicewise_units::{
    ATM_CELL_BYTES, ATM_PAYLOAD_BYTES, Accounting, FrameLengths, L1_OVERHEAD_BYTES, Layer,
};

/// Backlog of a slice up to which `CoDel` neither drops nor marks. No more than this ever waits of a slice that keeps to its
/// guarantee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProtectedBacklog {
    /// As the guarantee counts bytes.
    bytes: u64,
    /// The same without the headers of ATM cells, where it counts cells.
    in_frames: u64,
    /// Least difference between what a frame counts and its bytes without FCS.
    overhead: i64,
}

impl ProtectedBacklog {
    /// No backlog is protected: there is no guarantee.
    pub(crate) const NONE: Self = Self {
        bytes: 0,
        in_frames: 0,
        overhead: 0,
    };

    /// As many bytes, counted by `accounting`.
    pub(crate) fn new(bytes: u64, accounting: Accounting) -> Self {
        let overhead = match accounting.layer {
            Layer::L1 => L1_OVERHEAD_BYTES,
            Layer::L2 => 0,
            Layer::L3 => -i64::from(FrameLengths::L3_OFFSET_MAX),
        };
        // Frames fill at most these parts of their cells: all if none was padded.
        let in_frames = if accounting.in_atm_cells {
            let cells = u128::from(bytes) * u128::from(ATM_PAYLOAD_BYTES);
            u64::try_from(cells / u128::from(ATM_CELL_BYTES)).unwrap_or(u64::MAX)
        } else {
            bytes
        };
        Self {
            bytes,
            in_frames,
            overhead: overhead + i64::from(accounting.overhead_bytes),
        }
    }

    /// Bytes that are protected, as the guarantee counts them.
    pub(crate) const fn bytes(self) -> u64 {
        self.bytes
    }

    /// Returns true if frames of so many bytes without FCS may count as no more than this.
    #[inline]
    pub(super) fn covers(self, l2_bytes: u64, packets: u32) -> bool {
        if self.bytes == 0 {
            return false;
        }
        let overhead = self.overhead.saturating_mul(i64::from(packets));
        l2_bytes.saturating_add_signed(overhead) <= self.in_frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Frames that count as no more than the protected bytes are protected; more are not, except for the tags that
        /// L3 does not count and frames that may lack them.
        #[test]
        fn covers_what_counts_as_no_more(
            layer in prop::sample::select(vec![Layer::L1, Layer::L2, Layer::L3]),
            overhead_bytes in -100i16..100,
            in_atm_cells: bool,
            frames in prop::collection::vec((60u32..9_000, 0u8..5), 1..40),
            more in 0u64..2,
        ) {
            let accounting = Accounting { layer, overhead_bytes, in_atm_cells };
            let lengths = frames.iter().map(|&(l2_bytes, tags)| FrameLengths {
                l2_bytes,
                l3_offset: 14 + 4 * tags,
            });
            let counted: u64 = lengths.map(|lengths| accounting.count(lengths).bytes()).sum();
            let bytes: u64 = frames.iter().map(|&(bytes, _)| u64::from(bytes)).sum();
            let packets = u32::try_from(frames.len()).unwrap();
            let backlog = ProtectedBacklog::new(counted.saturating_sub(more), accounting);
            let covers = backlog.covers(bytes, packets);
            prop_assert!(covers || more > 0);
            let is_exact = layer != Layer::L3 && overhead_bytes > -60 && !in_atm_cells;
            prop_assert!(!covers || more == 0 || !is_exact);
        }
    }

    #[test]
    fn full_cells_are_protected_to_the_byte() {
        let in_cells = Accounting {
            in_atm_cells: true,
            ..Accounting::L2
        };
        // Ten frames of two cells each.
        for (protected, covers) in [(20 * 53, true), (20 * 53 - 1, false)] {
            let backlog = ProtectedBacklog::new(protected, in_cells);
            assert_eq!(backlog.covers(10 * 96, 10), covers, "{protected}");
        }
    }

    #[test]
    fn nothing_is_protected_without_a_guarantee() {
        assert!(!ProtectedBacklog::NONE.covers(0, 0));
    }
}
