//! Converts bytes between the accounting of a guarantee and that of the link.

use slicewise_units::{Accounting, ByteCount, FrameLengths, Layer};

/// The shortest Ethernet frame without its FCS (IEEE 802.3), in bytes: shorter ones are padded by the
/// sender.
const SMALLEST_FRAME: u32 = 60;
/// The longest frame of an IPv4 packet, with Ethernet header and two tags, in bytes.
const LONGEST_FRAME: u32 = 65_535 + 22;
/// Bytes before the IP header with zero, one and two VLAN tags.
const L3_OFFSETS: [u8; 3] = [14, 18, 22];

/// Largest ratio between two accountings of the same frame, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Inflation {
    pub(super) numerator: u64,
    pub(super) denominator: u64,
}

impl Inflation {
    /// For frames from the smallest of Ethernet up to `largest` (as `from` counts it): the worst frame
    /// size decides, because a slice may send nothing else.
    pub(super) fn between(from: Accounting, to: Accounting, largest: ByteCount) -> Self {
        let mut worst = Self {
            numerator: 1,
            denominator: 1,
        };
        if from == to {
            return worst;
        }
        for l2_bytes in SMALLEST_FRAME..=l2_bytes(from, largest).max(SMALLEST_FRAME) {
            for l3_offset in L3_OFFSETS {
                let frame = FrameLengths {
                    l2_bytes,
                    l3_offset,
                };
                let (counted, real) = (from.count(frame).bytes(), to.count(frame).bytes());
                if u128::from(real) * u128::from(worst.denominator)
                    > u128::from(worst.numerator) * u128::from(counted)
                {
                    worst = Self {
                        numerator: real,
                        denominator: counted,
                    };
                }
            }
        }
        worst
    }
}

/// Upper bound, as `to` counts it, of the largest frame, which `from` counts as `largest`.
pub(super) fn largest_as(from: Accounting, to: Accounting, largest: ByteCount) -> ByteCount {
    if from == to {
        return largest;
    }
    let l2_bytes = l2_bytes(from, largest);
    L3_OFFSETS
        .map(|l3_offset| {
            to.count(FrameLengths {
                l2_bytes,
                l3_offset,
            })
        })
        .into_iter()
        .max()
        .unwrap_or(largest)
}

/// Upper bound of the bytes without FCS of a frame that `accounting` counts as `largest`.
fn l2_bytes(accounting: Accounting, largest: ByteCount) -> u32 {
    let largest = i64::try_from(largest.bytes()).unwrap_or(i64::MAX);
    let without_overhead = largest.saturating_sub(i64::from(accounting.overhead_bytes));
    let overhead = match accounting.layer {
        Layer::L1 => -24,
        Layer::L2 => 0,
        Layer::L3 => i64::from(L3_OFFSETS[2]),
    };
    let bytes = without_overhead.saturating_add(overhead);
    u32::try_from(bytes.clamp(0, i64::from(LONGEST_FRAME))).unwrap_or(LONGEST_FRAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn largest(from: Accounting, to: Accounting, bytes: u64) -> u64 {
        largest_as(from, to, ByteCount::new(bytes)).bytes()
    }

    #[test]
    fn the_largest_frame_keeps_its_bytes_where_both_count_alike() {
        for accounting in [Accounting::L1, Accounting::L2, Accounting::L3] {
            assert_eq!(largest(accounting, accounting, 1_500), 1_500);
        }
    }

    #[test]
    fn the_largest_frame_is_counted_with_as_many_tags_as_make_it_largest() {
        assert_eq!(largest(Accounting::L2, Accounting::L1, 1_514), 1_538);
        assert_eq!(largest(Accounting::L1, Accounting::L2, 1_538), 1_514);
        // Two tags below the IP packet, and none.
        assert_eq!(largest(Accounting::L3, Accounting::L2, 1_500), 1_522);
        assert_eq!(largest(Accounting::L2, Accounting::L3, 1_514), 1_500);
        // No IP packet is longer.
        assert_eq!(largest(Accounting::L3, Accounting::L2, 1 << 40), 65_557);
    }

    #[test]
    fn the_smallest_frame_decides_where_the_link_counts_more() {
        let between = |from, to, largest| Inflation::between(from, to, ByteCount::new(largest));
        let inflation = |numerator, denominator| Inflation {
            numerator,
            denominator,
        };
        let (l1, l2) = (Accounting::L1, Accounting::L2);
        assert_eq!(between(l2, l1, 1_514), inflation(84, 60));
        assert_eq!(between(l1, l2, 1_538), inflation(1, 1), "never below one");
        let with_overhead = Accounting {
            overhead_bytes: 24,
            ..l2
        };
        assert_eq!(between(with_overhead, l1, 1_538), inflation(1, 1));
    }
}
