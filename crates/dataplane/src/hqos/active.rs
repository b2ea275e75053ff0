//! Which queues hold frames, and the order in which groups of them are visited.
//!
//! One bit per queue in words of 64: a word is the group of queues of four pipes. Eight words are a line, and a bit per
//! line says whether it holds any bit. A scan goes through the words of a line, then to the next line with a bit, as
//! `rte_bitmap_scan` of the library does, so that pipes take turns in the same order.

/// Queues of a group.
pub(super) const GROUP: u32 = u64::BITS;
/// Words of a line.
const LINE: u32 = 8;

/// Queues with frames.
#[derive(Debug)]
pub(super) struct ActiveQueues {
    groups: Box<[u64]>,
    lines: Box<[u64]>,
    /// The word to be read next, while that is in the line being read.
    next: Option<u32>,
    /// The line read last.
    line: u32,
}

impl ActiveQueues {
    /// None of `queues` queues, a multiple of [`GROUP`] or less than that.
    pub(super) fn new(queues: u32) -> Self {
        let groups = queues.div_ceil(GROUP).next_multiple_of(LINE);
        let words = (groups / LINE).div_ceil(u64::BITS).next_power_of_two();
        Self {
            groups: vec![0; groups as usize].into(),
            lines: vec![0; words as usize].into(),
            next: None,
            line: words * u64::BITS - 1,
        }
    }

    #[inline]
    pub(super) fn insert(&mut self, queue: u32) {
        let group = queue / GROUP;
        let line = group / LINE;
        self.groups[group as usize] |= 1 << (queue % GROUP);
        self.lines[(line / GROUP) as usize] |= 1 << (line % GROUP);
    }

    #[inline]
    pub(super) fn remove(&mut self, queue: u32) {
        let group = queue / GROUP;
        let bits = &mut self.groups[group as usize];
        *bits &= !(1 << (queue % GROUP));
        if *bits != 0 {
            return;
        }
        let line = group / LINE;
        let first = (line * LINE) as usize;
        if self.groups[first..first + LINE as usize]
            .iter()
            .all(|bits| *bits == 0)
        {
            self.lines[(line / GROUP) as usize] &= !(1 << (line % GROUP));
        }
    }

    /// The next group with frames: its first queue, and its bits.
    #[inline]
    pub(super) fn scan(&mut self) -> Option<(u32, u64)> {
        if let Some(found) = self.scan_line() {
            return Some(found);
        }
        self.next = Some(self.next_line()? * LINE);
        self.scan_line()
    }

    /// The next group in the line being read.
    #[inline]
    fn scan_line(&mut self) -> Option<(u32, u64)> {
        while let Some(group) = self.next {
            let bits = self.groups[group as usize];
            self.next = Some(group + 1).filter(|next| next % LINE != 0);
            if bits != 0 {
                return Some((group * GROUP, bits));
            }
        }
        None
    }

    /// The next line with a bit behind the one read last, which may be that again.
    #[inline]
    fn next_line(&mut self) -> Option<u32> {
        let words = u32::try_from(self.lines.len()).unwrap_or(1);
        let (mut word, bit) = (self.line / GROUP, self.line % GROUP);
        let mut bits = self.lines[word as usize] & (u64::MAX - 1) << bit;
        for _ in 0..=words {
            if bits != 0 {
                self.line = word * GROUP + bits.trailing_zeros();
                return Some(self.line);
            }
            word = (word + 1) % words;
            bits = self.lines[word as usize];
        }
        // The library then goes on behind the first line of this word.
        self.line = word * GROUP;
        None
    }

    pub(super) fn state_bytes(&self) -> usize {
        size_of_val(&*self.groups) + size_of_val(&*self.lines)
    }

    /// All groups with frames.
    pub(super) fn groups(&self) -> impl Iterator<Item = (u32, u64)> {
        let groups = (0..)
            .step_by(GROUP as usize)
            .zip(self.groups.iter().copied());
        groups.filter(|(_, bits)| *bits != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::{ActiveQueues, GROUP, LINE};

    fn scanned(active: &mut ActiveQueues, count: usize) -> Vec<u32> {
        (0..count).map(|_| active.scan().unwrap().0).collect()
    }

    #[test]
    fn groups_are_visited_in_turn() {
        let line = GROUP * LINE;
        let mut active = ActiveQueues::new(65_536);
        let queues = [3, GROUP + 1, line + 5, 65_535];
        queues.iter().for_each(|queue| active.insert(*queue));
        let turns = [0, GROUP, line, 65_535 - 63];
        assert_eq!(scanned(&mut active, 8), [turns, turns].concat());
        active.remove(line + 5);
        active.remove(3);
        assert_eq!(scanned(&mut active, 3), [GROUP, turns[3], GROUP]);
    }

    /// As in the library: the line that is first after nothing was found is the second.
    #[test]
    fn after_nothing_was_found_the_first_line_comes_last() {
        let mut active = ActiveQueues::new(2048);
        assert!(active.scan().is_none());
        active.insert(0);
        active.insert(GROUP * LINE);
        assert_eq!(scanned(&mut active, 3), [GROUP * LINE, 0, GROUP * LINE]);
    }
}
