//! Converts bytes between the accounting of a guarantee and that of the link: assumption A4 of
//! `docs/mechanisms/guaranteed-bound.md`.

use slicewise_units::{Accounting, ByteCount, FrameLengths, Layer};

/// The shortest Ethernet frame without its FCS (IEEE 802.3), in bytes: shorter ones are padded by the
/// sender.
const SMALLEST_FRAME: u32 = 60;
/// The longest frame of an IPv4 packet, with Ethernet header and two tags, in bytes.
const LONGEST_FRAME: u32 = 65_535 + 22;
const L3_OFFSET_MAX: u8 = FrameLengths::L3_OFFSET_MAX;
/// Bytes before the IP header with zero, one and two VLAN tags.
const L3_OFFSETS: [u8; 3] = [FrameLengths::UNTAGGED_L3_OFFSET, 18, L3_OFFSET_MAX];

/// Largest ratio between two accountings of the same frame, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Inflation {
    pub(super) numerator: u64,
    pub(super) denominator: u64,
}

impl Inflation {
    /// For frames that `from` counts as `smallest`, at least as the smallest of Ethernet, up to `largest`: the worst
    /// frame size decides, because a slice may send nothing else. Shorter frames are charged as `smallest`.
    pub(super) fn between(
        from: Accounting,
        to: Accounting,
        smallest: ByteCount,
        largest: ByteCount,
    ) -> Self {
        let mut worst = Self {
            numerator: 1,
            denominator: 1,
        };
        if from == to {
            return worst;
        }
        let longest = l2_bytes(from, largest, L3_OFFSET_MAX).max(SMALLEST_FRAME);
        for l3_offset in L3_OFFSETS {
            let shortest = l2_bytes(from, smallest, l3_offset).max(SMALLEST_FRAME);
            // The ratio of two lengths that differ by a constant is largest at one of both ends.
            for l2_bytes in [shortest, longest] {
                let frame = FrameLengths {
                    l2_bytes,
                    l3_offset,
                };
                let counted = from.count(frame).max(smallest).bytes();
                let real = to.count(frame).bytes();
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

    /// An amount as the link counts it at most, rounded up.
    pub(super) const fn inflate(self, amount: u64) -> u128 {
        let product = amount as u128 * self.numerator as u128;
        product.div_ceil(self.denominator as u128)
    }

    /// The largest amount that [inflates](Self::inflate) to at most `amount`.
    pub(super) const fn deflate(self, amount: u128) -> u128 {
        let numerator = self.numerator as u128;
        let rest = amount % numerator * self.denominator as u128 / numerator;
        (amount / numerator)
            .saturating_mul(self.denominator as u128)
            .saturating_add(rest)
    }
}

/// The smallest frame as `accounting` counts it, two tags included.
pub(crate) fn smallest_as(accounting: Accounting) -> ByteCount {
    accounting.count(FrameLengths {
        l2_bytes: SMALLEST_FRAME,
        l3_offset: L3_OFFSET_MAX,
    })
}

/// Upper bound, as `to` counts it, of the largest frame, which `from` counts as `largest`.
pub(super) fn largest_as(from: Accounting, to: Accounting, largest: ByteCount) -> ByteCount {
    if from == to {
        return largest;
    }
    let l2_bytes = l2_bytes(from, largest, L3_OFFSET_MAX);
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

/// Bytes without FCS of a frame that `accounting` counts as `counted`, with so many bytes before its IP header.
fn l2_bytes(accounting: Accounting, counted: ByteCount, l3_offset: u8) -> u32 {
    let counted = i64::try_from(counted.bytes()).unwrap_or(i64::MAX);
    let without_overhead = counted.saturating_sub(i64::from(accounting.overhead_bytes));
    let overhead = match accounting.layer {
        Layer::L1 => -24,
        Layer::L2 => 0,
        Layer::L3 => i64::from(l3_offset),
    };
    let bytes = without_overhead.saturating_add(overhead);
    u32::try_from(bytes.clamp(0, i64::from(LONGEST_FRAME))).unwrap_or(LONGEST_FRAME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        let between = |from, to, largest| {
            Inflation::between(from, to, ByteCount::ZERO, ByteCount::new(largest))
        };
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
    proptest! {
        #[test]
        fn no_frame_of_a_slice_takes_more_of_the_link_than_is_reserved_for_it(
            from in accounting(), to in accounting(),
            [smallest, largest] in [1u64..2_000, 60u64..3_000],
            l2_bytes in 60u32..3_000, l3_offset in FrameLengths::UNTAGGED_L3_OFFSET..60,
        ) {
            let frame = FrameLengths { l2_bytes, l3_offset };
            let (smallest, largest) = (ByteCount::new(smallest), ByteCount::new(largest));
            let counted = from.count(frame);
            prop_assume!(counted <= largest && smallest <= largest);
            let ratio = Inflation::between(from, to, smallest, largest);
            let reserved = ratio.inflate(counted.max(smallest).bytes());
            prop_assert!(u128::from(to.count(frame).bytes()) <= reserved);
        }

        #[test]
        fn what_is_offered_is_the_most_that_fits(
            numerator in 1u64..2_000, denominator in 1u64..2_000, amount in 0u64..1 << 50,
        ) {
            let ratio = Inflation { numerator, denominator };
            let fits = u64::try_from(ratio.deflate(amount.into())).unwrap();
            prop_assert!(ratio.inflate(fits) <= u128::from(amount));
            prop_assert!(ratio.inflate(fits + 1) > u128::from(amount));
        }
    }

    fn accounting() -> impl Strategy<Value = Accounting> {
        prop_oneof![
            Just(Accounting::L1),
            Just(Accounting::L2),
            Just(Accounting::L3)
        ]
    }
}
