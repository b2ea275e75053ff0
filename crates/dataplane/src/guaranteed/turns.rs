//! Turns by weight: deficit round robin (Shreedhar & Varghese, SIGCOMM 1995) with quanta relative to the smallest weight.
//!
//! In a round every member has one turn. The smallest weight that joined or had a turn in the round before, rounded down to a
//! power of two, is the *scale* of a round: a turn of weight w earns w · largest frame / scale, so the lightest member sends
//! between one and two largest frames per turn. Within a round the scale stays the same. If it followed each member that
//! comes and goes, one that is there only while a certain other earns its turn would distort the shares of all.
//!
//! Bound: during an interval in which members i and j take turns without pause and keep their weights, the bytes `S_i` and
//! `S_j` that they send satisfy
//!
//! ```text
//! |S_i / w_i − S_j / w_j| < L · (2 / w_min + 1 / w_i + 1 / w_j)
//! ```
//!
//! where L is the largest frame, and `w_min` the smallest weight that took turns in the interval or the three rounds before it.
//! The proof is in `docs/mechanisms/guaranteed.md`.

use super::ring::Ring;

/// Bits after the binary point of the bytes that a unit of weight earns. The largest weight is below 2^16, so a largest frame
/// divided by a scale is exact.
const FRACTION_BITS: u32 = 16;
const FRACTION: i64 = (1 << FRACTION_BITS) - 1;
/// Most bytes per turn, so that a deficit fits in 32 bits.
const QUANTUM_MAX: i64 = 1 << 30;

/// Bytes that turns of one round earn, in 2^-16 bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Round {
    /// Per unit of weight.
    step: i64,
    /// Fraction of a byte that a unit of weight had earned before this round, and that no quantum contains yet.
    carry: i64,
    /// The weight that earns a largest frame.
    scale: u16,
    largest_frame: i64,
}

impl Round {
    /// The round after this one, in which weight `scale` earns `largest_frame`; `scale` is rounded down to a power of two.
    fn next(self, scale: u16, largest_frame: i64) -> Self {
        let bits = scale.max(1).ilog2();
        Self {
            step: (largest_frame << FRACTION_BITS) >> bits,
            carry: (self.carry + self.step) & FRACTION,
            scale: 1 << bits,
            largest_frame,
        }
    }

    /// Bytes of a turn. Over consecutive rounds, the sum is exact to a byte.
    #[inline]
    fn quantum(self, weight: u16) -> i64 {
        if weight == self.scale {
            return self.largest_frame;
        }
        let weight = i64::from(weight);
        let [before, after] = [self.carry, self.carry + self.step];
        let quantum = ((after * weight) >> FRACTION_BITS) - ((before * weight) >> FRACTION_BITS);
        quantum.min(QUANTUM_MAX)
    }
}

/// A ring of members that take turns in proportion to their weights.
#[derive(Debug, Clone, Default)]
pub(super) struct Turns {
    ring: Ring,
    /// Members whose turns end in the current round earn this for their next one.
    round: Round,
    /// The same of the round before.
    previous: Round,
    /// Position of the first entry whose next turn is in the round after the current one.
    round_end: u32,
    /// Smallest weight that joined or had a turn in the current round.
    lightest: u16,
    /// The same of the round before.
    previous_lightest: u16,
}

impl Turns {
    pub(super) const fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Make room for `members`. May allocate: not for the packet path.
    pub(super) fn reserve(&mut self, members: u32) {
        self.ring.reserve(members);
    }

    /// Join at the end, or where it left. `position` is what was last returned for it. Returns its position, and the bytes of
    /// its first turn, at least a largest frame.
    pub(super) fn join(
        &mut self,
        number: u32,
        position: u32,
        weight: u16,
        largest_frame: i64,
    ) -> (u32, i64) {
        if self.ring.is_empty() {
            self.lightest = weight;
            self.begin_round(largest_frame);
        } else if !self.is_in_round(self.ring.head()) {
            self.begin_round(largest_frame);
        }
        self.note_weight(weight);
        let position = self.ring.join(number, position);
        // Where it left, it will have another turn in this round.
        let round = if self.is_in_round(position) {
            self.previous
        } else {
            self.round
        };
        (position, round.quantum(weight).max(largest_frame))
    }

    /// The turn of the member at the front is over. Returns its new position, and the bytes that it may send in its next turn,
    /// at least a largest frame; `deficit` is what remains of this one.
    #[inline]
    pub(super) fn end_turn(&mut self, weight: u16, deficit: i64, largest_frame: i64) -> (u32, i64) {
        let head = self.ring.head();
        if !self.is_in_round(head) {
            let lightest = [self.lightest, self.previous_lightest];
            if self.ring.has_one_entry() && lightest == [weight; 2] {
                // Alone: all further rounds would be the same.
                let deficit = deficit + self.round.quantum(weight);
                return (head, deficit.max(largest_frame));
            }
            self.begin_round(largest_frame);
        }
        self.note_weight(weight);
        let deficit = deficit + self.round.quantum(weight);
        (self.ring.rotate(), deficit.max(largest_frame))
    }

    /// A member has another weight from its next turn on. Returns what it may still send in this one: `deficit`, or less.
    pub(super) fn change_weight(&mut self, weight: u16, deficit: i64, largest_frame: i64) -> i64 {
        self.note_weight(weight);
        let quantum = self.round.quantum(weight).max(largest_frame);
        deficit.min(quantum)
    }

    /// Leave, from any position.
    pub(super) fn leave(&mut self, number: u32, position: u32) {
        self.ring.leave(number, position);
    }

    /// `number`, which has left, will not return.
    pub(super) fn forget(&mut self, number: u32, position: u32) {
        self.ring.forget(number, position);
    }

    /// Whose turn it is. Amortized O(1).
    #[inline]
    pub(super) fn front(&mut self) -> Option<u32> {
        self.ring.front()
    }

    /// Who comes `turns` after the one whose turn it is. For reading ahead.
    pub(super) fn ahead(&self, turns: u32) -> Option<u32> {
        self.ring.ahead(turns)
    }

    #[inline]
    fn note_weight(&mut self, weight: u16) {
        self.lightest = self.lightest.min(weight);
    }

    /// Returns true if the entry at `position` has a turn in the current round.
    #[inline]
    const fn is_in_round(&self, position: u32) -> bool {
        let turns = self.round_end.wrapping_sub(position);
        turns.wrapping_sub(1) < 1 << 31
    }

    /// The entries of the current round have all had their turn: those in the ring now make up the next.
    #[inline(never)]
    fn begin_round(&mut self, largest_frame: i64) {
        self.previous = self.round;
        self.round = self.round.next(self.lightest, largest_frame);
        self.round_end = self.ring.end();
        self.previous_lightest = self.lightest;
        self.lightest = u16::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LARGEST_FRAME: i64 = 1518;

    proptest! {
        /// No fraction of a byte is lost from round to round: it would add up.
        #[test]
        fn quanta_add_up_to_the_weight_exactly(
            weight in 1u16..=u16::MAX,
            scales in prop::collection::vec(1u16..=u16::MAX, 1..500),
        ) {
            let mut round = Round::default();
            let (mut quanta, mut exact) = (0, 0);
            for scale in scales {
                round = round.next(scale, LARGEST_FRAME);
                quanta += round.quantum(weight);
                let power = 1 << scale.ilog2();
                exact += i64::from(weight) * (LARGEST_FRAME << 15) / power;
            }
            prop_assert_eq!(quanta, exact >> 15);
        }

        #[test]
        fn the_lightest_sends_one_to_two_largest_frames_per_turn(
            lightest in 1u16..=u16::MAX,
            rounds in 1usize..100,
        ) {
            let mut turns = Turns::default();
            turns.reserve(1);
            let (_, first) = turns.join(0, 0, lightest, LARGEST_FRAME);
            for _ in 0..rounds {
                let (_, bytes) = turns.end_turn(lightest, 0, LARGEST_FRAME);
                let frames = LARGEST_FRAME..=2 * LARGEST_FRAME;
                prop_assert!(frames.contains(&bytes) && frames.contains(&first));
            }
        }
    }

    const HEAVY: u16 = 1_024;

    /// Two heavy members, of whom number 1 is to end the first turn of a round.
    fn two_heavy() -> Turns {
        let mut turns = Turns::default();
        turns.reserve(3);
        turns.join(0, 0, HEAVY, LARGEST_FRAME);
        turns.join(1, 0, HEAVY, LARGEST_FRAME);
        for number in [0, 1, 0] {
            assert_eq!(turns.front(), Some(number));
            end_turn(&mut turns);
        }
        turns
    }

    /// End the turn of a heavy member. Returns its position, and the largest frames of its next turn.
    fn end_turn(turns: &mut Turns) -> (u32, i64) {
        turns.front();
        let (position, bytes) = turns.end_turn(HEAVY, 0, LARGEST_FRAME);
        (position, bytes / LARGEST_FRAME)
    }

    #[test]
    fn the_scale_of_a_round_is_the_smallest_weight_of_the_round_before() {
        let mut turns = two_heavy();
        assert_eq!(end_turn(&mut turns).1, 1);
        // It comes between the turns of the two: this round goes on as it began.
        let (position, bytes) = turns.join(2, 0, 1, LARGEST_FRAME);
        assert_eq!(bytes, LARGEST_FRAME);
        assert_eq!(end_turn(&mut turns).1, 1);
        // The next one has its scale, although it has left.
        turns.leave(2, position);
        let frames = [0; 4].map(|_| end_turn(&mut turns).1);
        assert_eq!(frames, [1_024, 1_024, 1, 1]);
    }

    #[test]
    fn a_member_that_returns_before_its_turn_has_what_it_had_earned() {
        let mut turns = two_heavy();
        end_turn(&mut turns);
        let (light, _) = turns.join(2, 0, 1, LARGEST_FRAME);
        let (position, _) = end_turn(&mut turns);
        // Turns are longer in the round that begins, but what is used in it was earned before.
        assert_eq!(end_turn(&mut turns).1, 1_024);
        turns.leave(0, position);
        let (_, bytes) = turns.join(0, position, HEAVY, LARGEST_FRAME);
        assert_eq!(bytes, LARGEST_FRAME);
        turns.leave(2, light);
        assert_eq!(end_turn(&mut turns).1, 1_024);
    }
}
