//! What a guarantee's bytes come to where the link counts a frame otherwise than the guarantee.

use slicewise_units::{Accounting, ByteCount, FrameLengths, Layer};

/// The shortest Ethernet frame without its FCS (IEEE 802.3), in bytes: shorter ones are padded
/// by whoever sends them.
const SMALLEST_FRAME: u32 = 60;
/// The longest an IPv4 packet can make a frame, with Ethernet header and two tags, in bytes.
const LONGEST_FRAME: u32 = 65_535 + 22;
/// Bytes before the IP header: with no, one and two VLAN tags.
const L3_OFFSETS: [u8; 3] = [14, 18, 22];

/// The most that bytes of one accounting come to in another, as a fraction of at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Inflation {
    pub(super) numerator: u64,
    pub(super) denominator: u64,
}

impl Inflation {
    /// For frames from the smallest Ethernet has up to `largest` (as `from` counts it): the worst
    /// frame decides, because a slice may send nothing else.
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

/// The largest frame, which `from` counts as `largest`, as `to` counts it at most.
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

/// The most bytes without FCS of a frame that `accounting` counts as `largest`.
fn l2_bytes(accounting: Accounting, largest: ByteCount) -> u32 {
    let largest = i64::try_from(largest.bytes()).unwrap_or(i64::MAX);
    let without_overhead = largest.saturating_sub(i64::from(accounting.overhead_bytes));
    let beside = match accounting.layer {
        Layer::L1 => -24,
        Layer::L2 => 0,
        Layer::L3 => i64::from(L3_OFFSETS[2]),
    };
    let bytes = without_overhead.saturating_add(beside);
    u32::try_from(bytes.clamp(0, i64::from(LONGEST_FRAME))).unwrap_or(LONGEST_FRAME)
}
