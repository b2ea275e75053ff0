//! Converts bytes between the accounting of a guarantee and that of the link: assumption A4 of
//! `docs/mechanisms/guaranteed-bound.md`.

use slicewise_units::{
    ATM_CELL_BYTES, ATM_PAYLOAD_BYTES, Accounting, ByteCount, FrameLengths, L1_OVERHEAD_BYTES,
    Layer,
};

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
pub struct Inflation {
    pub(super) numerator: u64,
    pub(super) denominator: u64,
}

impl Inflation {
    /// For frames that `from` counts as `smallest`, at least as the smallest of Ethernet, up to `largest`: the worst
    /// frame size decides, because a slice may send nothing else. Shorter frames are charged as `smallest`.
    #[must_use]
    pub fn between(
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
        let smallest = smallest.max(from.count(FrameLengths::NONE));
        // The ratio of two lengths that differ by a constant is largest at one of both ends. Cells make steps of it: their worst
        // frames, the first of a cell of `to` and the last of a cell of `from`, are worst at the first or the last of such cells.
        let cell = if from.in_atm_cells || to.in_atm_cells {
            ATM_PAYLOAD_BYTES
        } else {
            0
        };
        for l3_offset in L3_OFFSETS {
            let shortest = l2_bytes(from, smallest, l3_offset).max(SMALLEST_FRAME);
            let longest = l2_bytes(from, largest, l3_offset).max(shortest);
            let from_shortest = shortest..=longest.min(shortest.saturating_add(cell));
            let to_longest = shortest.max(longest.saturating_sub(cell))..=longest;
            for l2_bytes in from_shortest.chain(to_longest) {
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
    #[must_use]
    pub const fn inflate(self, amount: u64) -> u128 {
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
#[must_use]
pub fn largest_as(from: Accounting, to: Accounting, largest: ByteCount) -> ByteCount {
    if from == to {
        return largest;
    }
    L3_OFFSETS
        .map(|l3_offset| {
            to.count(FrameLengths {
                l2_bytes: l2_bytes(from, largest, l3_offset),
                l3_offset,
            })
        })
        .into_iter()
        .max()
        .unwrap_or(largest)
}

/// Bytes without FCS of the longest frame that `accounting` counts as `counted` at most, with so many bytes before its IP
/// header.
fn l2_bytes(accounting: Accounting, counted: ByteCount, l3_offset: u8) -> u32 {
    let bytes = if accounting.in_atm_cells {
        counted.bytes() / u64::from(ATM_CELL_BYTES) * u64::from(ATM_PAYLOAD_BYTES)
    } else {
        counted.bytes()
    };
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    let without_overhead = bytes.saturating_sub(i64::from(accounting.overhead_bytes));
    let before_layer = match accounting.layer {
        Layer::L1 => -L1_OVERHEAD_BYTES,
        Layer::L2 => 0,
        Layer::L3 => i64::from(l3_offset),
    };
    let bytes = without_overhead.saturating_add(before_layer);
    u32::try_from(bytes.clamp(0, i64::from(LONGEST_FRAME))).unwrap_or(LONGEST_FRAME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHORTEST: FrameLengths = FrameLengths {
        l2_bytes: SMALLEST_FRAME,
        l3_offset: FrameLengths::UNTAGGED_L3_OFFSET,
    };

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
        let added = Accounting {
            overhead_bytes: 18,
            in_atm_cells: true,
            ..Accounting::L3
        };
        assert_eq!(largest(Accounting::L3, added, 1_500), 32 * 53);
        assert_eq!(largest(added, Accounting::L3, 32 * 53), 32 * 48 - 18);
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
        assert_eq!(between(l2, with_overhead, 1_514), inflation(84, 60));
        // The longest of the frames that count as one byte, the least that any does.
        let with_less = Accounting {
            overhead_bytes: -100,
            ..l2
        };
        assert_eq!(between(with_less, l2, 1_400), inflation(101, 1));
        // A packet of 38 B fills a cell of 53 B, one of 49 B two.
        let in_cells = Accounting {
            in_atm_cells: true,
            ..Accounting::L3
        };
        assert_eq!(between(Accounting::L3, in_cells, 1_500), inflation(106, 49));
        // Where guarantees count cells, the last packet of one: 48 B behind two tags.
        assert_eq!(between(in_cells, l2, 1_590), inflation(70, 53));
    }

    proptest! {
        #[test]
        fn no_frame_takes_more_of_the_link_than_is_reserved_and_the_worst_takes_all_of_it(
            from in accounting(), to in accounting(),
            [smallest, largest] in [0u64..600, 200u64..2_400],
        ) {
            let [smallest, largest] = [smallest, largest].map(ByteCount::new);
            let frames = (FrameLengths::UNTAGGED_L3_OFFSET..=L3_OFFSET_MAX)
                .flat_map(|l3_offset| (60..4_000).map(move |l2_bytes| FrameLengths { l2_bytes, l3_offset }))
                .filter(|frame| from.count(*frame) <= largest);
            let counted = frames.map(|frame| (to.count(frame).bytes(), from.count(frame).max(smallest).bytes()));
            let counted: Vec<(u64, u64)> = counted.collect();
            prop_assume!(from.count(SHORTEST) <= largest && smallest <= largest);
            let Inflation { numerator, denominator } = Inflation::between(from, to, smallest, largest);
            let fills = |(real, counted): (u64, u64)| (real * denominator).cmp(&(numerator * counted));
            let fullest = counted.into_iter().chain([(1, 1)]).map(fills).max();
            prop_assert_eq!(fullest, Some(std::cmp::Ordering::Equal));
        }

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
        let layer = prop::sample::select(vec![Layer::L1, Layer::L2, Layer::L3]);
        let overhead = prop_oneof![3 => Just(0i16), 2 => -60..60i16, 1 => -1_500..=1_500i16];
        (layer, overhead, any::<bool>()).prop_map(|(layer, overhead_bytes, in_atm_cells)| {
            Accounting {
                layer,
                overhead_bytes,
                in_atm_cells,
            }
        })
    }
}
