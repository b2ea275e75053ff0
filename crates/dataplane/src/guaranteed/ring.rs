//! Turns: a ring of numbers in an array, so that the next ones are known without touching their slices.
//!
//! A member that leaves out of turn leaves its entry marked, and gets it back if it returns before its
//! turn: so each has at most one entry, and a ring for n needs n entries, besides those of removed
//! members.

/// Marks an entry whose owner left. Numbers are below.
const LEFT: u32 = 1 << 31;
/// An entry whose owner was removed.
const NOBODY: u32 = u32::MAX;

/// A ring of members that take turns.
#[derive(Debug, Clone, Default)]
pub(super) struct Ring {
    /// A power of two, at least the number of entries in use.
    places: Vec<u32>,
    /// Increases monotonically; the index is its remainder.
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

    /// Make room for `members`. May allocate: not for the packet path.
    pub(super) fn reserve(&mut self, members: u32) {
        let size = (members as usize + self.orphans as usize).next_power_of_two();
        if size <= self.places.len() {
            return;
        }
        let mut places = vec![NOBODY; size];
        for offset in 0..self.used {
            let position = self.head.wrapping_add(offset);
            places[position as usize & (size - 1)] = self.places[self.index(position)];
        }
        self.places = places;
    }

    const fn index(&self, position: u32) -> usize {
        position as usize & self.places.len().wrapping_sub(1)
    }

    /// Join at the end, or where it left. `position` is what was last returned for it.
    pub(super) fn join(&mut self, number: u32, position: u32) -> u32 {
        self.members += 1;
        if self.has_left(number, position) {
            let index = self.index(position);
            self.places[index] = number;
            return position;
        }
        self.append(number)
    }

    /// Whether the entry of `number` is kept for it.
    fn has_left(&self, number: u32, position: u32) -> bool {
        position.wrapping_sub(self.head) < self.used
            && self.places[self.index(position)] == number | LEFT
    }

    /// `number`, which has left, will not return.
    pub(super) fn forget(&mut self, number: u32, position: u32) {
        if self.has_left(number, position) {
            let index = self.index(position);
            self.places[index] = NOBODY;
            self.orphans += 1;
        }
    }

    fn append(&mut self, number: u32) -> u32 {
        debug_assert!((self.used as usize) < self.places.len(), "one place each");
        let position = self.head.wrapping_add(self.used);
        let index = self.index(position);
        self.places[index] = number;
        self.used += 1;
        position
    }

    /// Leave, from any position.
    pub(super) fn leave(&mut self, number: u32, position: u32) {
        let index = self.index(position);
        debug_assert_eq!(self.places[index], number, "it is where it was put");
        self.members -= 1;
        if self.members == 0 {
            self.used = 0;
            self.orphans = 0;
        } else if position == self.head {
            self.advance();
        } else {
            self.places[index] = number | LEFT;
        }
    }

    fn advance(&mut self) {
        if self.places[self.index(self.head)] == NOBODY {
            self.orphans -= 1;
        }
        self.head = self.head.wrapping_add(1);
        self.used -= 1;
    }

    /// Whose turn it is. Skips the entries of those who left: each was a turn once, so
    /// amortized O(1).
    pub(super) fn front(&mut self) -> Option<u32> {
        if self.members == 0 {
            return None;
        }
        loop {
            let number = self.places[self.index(self.head)];
            if number & LEFT == 0 {
                return Some(number);
            }
            self.advance();
        }
    }

    /// Whose turn it is goes to the end; returns the new position.
    pub(super) fn rotate(&mut self) -> u32 {
        let number = self.places[self.index(self.head)];
        self.advance();
        self.append(number)
    }

    /// Who comes `turns` after the one whose turn it is. For reading ahead.
    pub(super) fn ahead(&self, turns: u32) -> Option<u32> {
        if turns >= self.used {
            return None;
        }
        let number = self.places[self.index(self.head.wrapping_add(turns))];
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
