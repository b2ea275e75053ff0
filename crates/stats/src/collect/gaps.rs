//! Gaps in what has arrived of a flow: each is a loss burst unless its packets arrive late.

use std::collections::VecDeque;

/// Gaps of a flow, in the order of their sequence numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct Gaps {
    /// The last of them, at most [`MAX_GAPS`].
    kept: VecDeque<Gap>,
    /// True if there were more.
    is_partial: bool,
}

/// Packets that a flow sent in a row and of which none has arrived.
#[derive(Debug, Clone, Copy)]
struct Gap {
    /// Sequence number of the first of them.
    first: u32,
    packets: u32,
}

/// How an arrival changes the number of gaps, and that of the packets in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct GapChange {
    pub gaps: i32,
    pub packets: i32,
}

/// Gaps kept per flow. There is a packet between two of them, so they reach back by at least twice as many packets.
pub(super) const MAX_GAPS: usize = 64;

impl Gaps {
    /// A packet arrived, and the `packets` before it, from `first` on, did not; they are later than any gap until now.
    pub fn add(&mut self, first: u32, packets: u32) -> GapChange {
        if packets == 0 {
            return GapChange::default();
        }
        self.kept.push_back(Gap { first, packets });
        self.limit();
        GapChange {
            gaps: 1,
            packets: i32::try_from(packets).unwrap_or(0),
        }
    }

    /// A packet arrived after one that its flow sent later. Of one in a gap that is not kept any more it is not known whether
    /// it splits, shortens or fills that gap: it leaves the number of gaps as it is.
    pub fn take(&mut self, sequence: u32) -> GapChange {
        let holds = |gap: &Gap| sequence.wrapping_sub(gap.first) < gap.packets;
        let Some(place) = self.kept.iter().rposition(holds) else {
            let is_before = |gap: &Gap| gap.first.wrapping_sub(sequence) < 1 << 31;
            let may_be_missed = self.is_partial && self.kept.front().is_none_or(is_before);
            return GapChange {
                gaps: 0,
                packets: -i32::from(may_be_missed),
            };
        };
        let gap = &mut self.kept[place];
        let before = sequence.wrapping_sub(gap.first);
        let after = gap.packets - before - 1;
        let gaps = match (before, after) {
            (0, 0) => {
                self.kept.remove(place);
                -1
            }
            (0, _) => {
                gap.first = sequence.wrapping_add(1);
                gap.packets = after;
                0
            }
            (_, 0) => {
                gap.packets = before;
                0
            }
            _ => {
                gap.packets = before;
                let rest = Gap {
                    first: sequence.wrapping_add(1),
                    packets: after,
                };
                self.kept.insert(place + 1, rest);
                self.limit();
                1
            }
        };
        GapChange { gaps, packets: -1 }
    }

    fn limit(&mut self) {
        if self.kept.len() > MAX_GAPS {
            self.kept.pop_front();
            self.is_partial = true;
        }
    }
}
