//! A set of small numbers that finds its next member in three steps: the find-first-set
//! hierarchy of Eiffel (Saeed et al., NSDI 2019).

/// Bits of a word, and words a word of the level above stands for.
const WORD: usize = 64;

/// Words of the lowest level.
const WORDS: usize = WORD * WORD;

/// Numbers below [`BucketSet::SIZE`], as bits; a bit of each higher level says whether a word below is
/// nonzero.
#[derive(Debug, Clone)]
pub(super) struct BucketSet {
    bits: Box<[u64; WORDS]>,
    words: [u64; WORD],
    groups: u64,
}

impl BucketSet {
    /// Size of the range: three levels of 64.
    pub(super) const SIZE: usize = WORDS * WORD;

    pub(super) fn new() -> Self {
        Self {
            bits: Box::new([0; WORDS]),
            words: [0; WORD],
            groups: 0,
        }
    }

    #[inline]
    pub(super) fn insert(&mut self, number: usize) {
        let (group, word, bit) = split(number);
        self.bits[group * WORD + word] |= 1 << bit;
        self.words[group] |= 1 << word;
        self.groups |= 1 << group;
    }

    #[inline]
    pub(super) fn remove(&mut self, number: usize) {
        let (group, word, bit) = split(number);
        let bits = &mut self.bits[group * WORD + word];
        *bits &= !(1 << bit);
        if *bits == 0 {
            self.words[group] &= !(1 << word);
            if self.words[group] == 0 {
                self.groups &= !(1 << group);
            }
        }
    }

    /// The smallest member from `start` on. O(1): examines three words.
    #[inline]
    pub(super) fn first_from(&self, start: usize) -> Option<usize> {
        if start >= Self::SIZE {
            return None;
        }
        let (group, word, bit) = split(start);
        let here = self.bits[group * WORD + word] & (u64::MAX << bit);
        if here != 0 {
            return Some(join(group, word, first(here)));
        }
        let words = self.words[group] & above(word);
        if words != 0 {
            let word = first(words);
            return Some(join(group, word, first(self.bits[group * WORD + word])));
        }
        let groups = self.groups & above(group);
        if groups == 0 {
            return None;
        }
        let group = first(groups);
        let word = first(self.words[group]);
        Some(join(group, word, first(self.bits[group * WORD + word])))
    }
}

const fn split(number: usize) -> (usize, usize, usize) {
    (
        number / (WORD * WORD) % WORD,
        number / WORD % WORD,
        number % WORD,
    )
}

const fn join(group: usize, word: usize, bit: usize) -> usize {
    (group * WORD + word) * WORD + bit
}

/// The lowest set bit of a nonzero word.
const fn first(word: u64) -> usize {
    word.trailing_zeros() as usize
}

/// All bits above `bit`.
const fn above(bit: usize) -> u64 {
    (u64::MAX << bit) << 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn finds_what_an_ordered_set_finds(
            changes in prop::collection::vec((0..BucketSet::SIZE, any::<bool>()), 0..200),
            starts in prop::collection::vec(0..BucketSet::SIZE + 2, 0..50),
        ) {
            let mut bitmap = BucketSet::new();
            let mut model = BTreeSet::new();
            for (number, insert) in changes {
                // Few distinct numbers, at word and group borders, so that removals hit.
                let number = number / 63 * 63;
                if insert {
                    bitmap.insert(number);
                    model.insert(number);
                } else {
                    bitmap.remove(number);
                    model.remove(&number);
                }
            }
            for start in starts {
                prop_assert_eq!(bitmap.first_from(start), model.range(start..).next().copied());
            }
        }
    }

    #[test]
    fn finds_the_very_first_and_the_very_last() {
        let mut bitmap = BucketSet::new();
        assert_eq!(bitmap.first_from(0), None);
        bitmap.insert(BucketSet::SIZE - 1);
        assert_eq!(bitmap.first_from(0), Some(BucketSet::SIZE - 1));
        assert_eq!(
            bitmap.first_from(BucketSet::SIZE - 1),
            Some(BucketSet::SIZE - 1)
        );
        bitmap.insert(0);
        assert_eq!(bitmap.first_from(0), Some(0));
        bitmap.remove(0);
        bitmap.remove(BucketSet::SIZE - 1);
        assert_eq!(bitmap.first_from(0), None);
    }
}
