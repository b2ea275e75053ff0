//! Turns: a ring of numbers in arrays, so that the next ones are known without touching their slices.
//!
//! A member that leaves out of turn leaves its entry marked, and gets it back if it returns before its
//! turn: so each has at most one entry, and a ring for n needs n entries, besides those of removed
//! members.

use std::collections::VecDeque;

/// Marks an entry whose owner left. Numbers are below.
const LEFT: u32 = 1 << 31;
/// An entry whose owner was removed.
const NOBODY: u32 = u32::MAX;

/// Bits of a position within a chunk.
const CHUNK_BITS: u32 = 6;
/// Entries per chunk.
const CHUNK: usize = 1 << CHUNK_BITS;

/// A ring of members that take turns.
#[derive(Debug, Clone, Default)]
pub(super) struct Ring {
    /// The entries from the chunk of `head` on. A chunk that is behind the head becomes the last, and to grow is to
    /// append one: no entry is ever moved.
    chunks: VecDeque<Box<[u32; CHUNK]>>,
    /// Increases monotonically; the position of the first entry.
    head: u32,
    /// Entries in use, including those marked as left.
    used: u32,
    /// Members.
    members: u32,
    /// Entries in use whose owners were removed.
    orphans: u32,
}

impl Ring {
    pub(super) const fn is_empty(&self) -> bool {
        self.members == 0
    }

    /// Returns true if one member is in the ring, and no entry of another.
    pub(super) const fn has_one_entry(&self) -> bool {
        self.used == 1
    }

    /// Position of the first entry.
    pub(super) const fn head(&self) -> u32 {
        self.head
    }

    /// Position behind the last entry.
    pub(super) const fn end(&self) -> u32 {
        self.head.wrapping_add(self.used)
    }

    /// Make room for `members`. May allocate: not for the packet path.
    pub(super) fn reserve(&mut self, members: u32) {
        let entries = members as usize + self.orphans as usize;
        // The first chunk is in use only from the head on.
        let chunks = entries.div_ceil(CHUNK) + 1;
        while self.chunks.len() < chunks {
            self.chunks.push_back(Box::new([NOBODY; CHUNK]));
        }
    }

    #[inline]
    fn chunk(&self, position: u32) -> usize {
        let chunks = (position >> CHUNK_BITS).wrapping_sub(self.head >> CHUNK_BITS);
        (chunks & (u32::MAX >> CHUNK_BITS)) as usize
    }

    /// The entry at a position from the head on.
    #[inline]
    fn entry(&self, position: u32) -> u32 {
        self.chunks[self.chunk(position)][position as usize % CHUNK]
    }

    #[inline]
    fn set(&mut self, position: u32, entry: u32) {
        let chunk = self.chunk(position);
        self.chunks[chunk][position as usize % CHUNK] = entry;
    }

    /// Join at the end, or where it left. `position` is what was last returned for it.
    pub(super) fn join(&mut self, number: u32, position: u32) -> u32 {
        self.members += 1;
        if self.has_left(number, position) {
            self.set(position, number);
            return position;
        }
        self.append(number)
    }

    /// Returns true if the entry of `number` is kept for it.
    fn has_left(&self, number: u32, position: u32) -> bool {
        position.wrapping_sub(self.head) < self.used && self.entry(position) == number | LEFT
    }

    /// `number`, which has left, will not return.
    pub(super) fn forget(&mut self, number: u32, position: u32) {
        if self.has_left(number, position) {
            self.set(position, NOBODY);
            self.orphans += 1;
        }
    }

    fn append(&mut self, number: u32) -> u32 {
        let position = self.end();
        self.set(position, number);
        self.used += 1;
        position
    }

    /// Leave, from any position.
    pub(super) fn leave(&mut self, number: u32, position: u32) {
        debug_assert_eq!(self.entry(position), number, "it is where it was put");
        self.members -= 1;
        if self.members == 0 {
            self.used = 0;
            self.orphans = 0;
        } else if position == self.head {
            self.advance();
        } else {
            self.set(position, number | LEFT);
        }
    }

    fn advance(&mut self) {
        if self.entry(self.head) == NOBODY {
            self.orphans -= 1;
        }
        self.head = self.head.wrapping_add(1);
        self.used -= 1;
        if (self.head as usize).is_multiple_of(CHUNK) {
            self.chunks.rotate_left(1);
        }
    }

    /// Whose turn it is. Skips the entries of those who left: each was a turn once, so
    /// amortized O(1).
    pub(super) fn front(&mut self) -> Option<u32> {
        if self.members == 0 {
            return None;
        }
        loop {
            let number = self.entry(self.head);
            if number & LEFT == 0 {
                return Some(number);
            }
            self.advance();
        }
    }

    /// Whose turn it is goes to the end; returns the new position.
    pub(super) fn rotate(&mut self) -> u32 {
        let number = self.entry(self.head);
        self.advance();
        self.append(number)
    }

    /// Who comes `turns` after the one whose turn it is. For reading ahead.
    pub(super) fn ahead(&self, turns: u32) -> Option<u32> {
        if turns >= self.used {
            return None;
        }
        let number = self.entry(self.head.wrapping_add(turns));
        (number & LEFT == 0).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Join(u32),
        Leave(u32),
        Rotate,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..8u32).prop_map(Step::Join),
            (0..8u32).prop_map(Step::Leave),
            Just(Step::Rotate),
        ]
    }

    proptest! {
        /// Against a list in which those who left are marked, too.
        #[test]
        fn turns_come_in_order_and_a_vacated_entry_is_kept(
            steps in prop::collection::vec(step(), 0..200)
        ) {
            let mut ring = Ring::default();
            ring.reserve(8);
            let mut model: Vec<(u32, bool)> = Vec::new();
            let mut positions = [0u32; 8];
            for step in steps {
                match step {
                    Step::Join(n) => {
                        let here = model.iter_mut().find(|(m, _)| *m == n);
                        match here {
                            Some((_, true)) => continue,
                            Some((_, present)) => *present = true,
                            None => model.push((n, true)),
                        }
                        positions[n as usize] = ring.join(n, positions[n as usize]);
                    }
                    Step::Leave(n) => {
                        let Some(entry) = model.iter_mut().find(|(m, there)| *m == n && *there) else {
                            continue;
                        };
                        entry.1 = false;
                        ring.leave(n, positions[n as usize]);
                    }
                    Step::Rotate => {
                        let Some(front) = ring.front() else { continue };
                        positions[front as usize] = ring.rotate();
                        let at = model.iter().position(|(_, there)| *there).unwrap_or(0);
                        model.drain(..at);
                        model.rotate_left(1);
                    }
                }
                // Entries left at the head, and all of them when the ring is empty, are dropped.
                if model.iter().all(|(_, there)| !there) {
                    model.clear();
                }
                let expected = model.iter().find(|(_, there)| *there).map(|(n, _)| *n);
                prop_assert_eq!(ring.front(), expected);
                let first = model.iter().position(|(_, there)| *there).unwrap_or(0);
                model.drain(..first);
            }
        }
    }

    #[test]
    fn growing_keeps_the_order() {
        let mut ring = Ring::default();
        ring.reserve(2);
        ring.join(0, 0);
        let one = ring.join(1, 0);
        ring.rotate();
        ring.reserve(5);
        for number in 2..5 {
            ring.join(number, 0);
        }
        assert_eq!(ring.front(), Some(1));
        ring.leave(1, one);
        assert_eq!(ring.front(), Some(0));
        ring.join(1, one);
        let order: Vec<u32> = (0..5)
            .filter_map(|_| {
                let front = ring.front();
                ring.rotate();
                front
            })
            .collect();
        assert_eq!(order, [0, 2, 3, 4, 1]);
    }

    #[test]
    fn more_members_than_a_chunk_holds_take_their_turns_in_order() {
        let mut ring = Ring::default();
        let all = 3 * u32::try_from(CHUNK).unwrap() + 1;
        for number in 0..all {
            ring.reserve(number + 1);
            ring.join(number, 0);
            // The head moves on while it grows.
            ring.rotate();
        }
        let turns: Vec<u32> = (0..2 * all)
            .map(|_| {
                let front = ring.front().unwrap();
                ring.rotate();
                front
            })
            .collect();
        let (first, second) = turns.split_at(all as usize);
        assert_eq!(first, second);
        let mut sorted = first.to_vec();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..all));
    }

    #[test]
    fn entries_of_removed_slices_take_no_room_from_others() {
        let mut ring = Ring::default();
        ring.reserve(2);
        ring.join(0, 0);
        for newcomer in 1..100 {
            ring.reserve(2);
            let position = ring.join(newcomer, 0);
            ring.leave(newcomer, position);
            ring.forget(newcomer, position);
        }
        ring.reserve(2);
        ring.join(100, 0);
        assert_eq!(ring.front(), Some(0));
        ring.rotate();
        assert_eq!(ring.front(), Some(100));
        assert_eq!(ring.orphans, 0);
    }
}
