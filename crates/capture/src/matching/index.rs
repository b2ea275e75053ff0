//! Maps the key of a packet to its position in the window: open addressing with linear probing.

/// A slot holds half of the hash and the position, so that growing and removing need nothing else; the
/// caller checks at the position whether the key is really there.
#[derive(Debug, Clone)]
pub(super) struct Index {
    /// `hash << 32 | position`; 0 where empty.
    slots: Vec<u64>,
    /// Bits of the hash below those that choose a slot.
    shift: u32,
    used: usize,
}

/// Slot where an absent key would go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Vacant {
    slot: usize,
    hash: u32,
}

/// Slot where a key was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    slot: usize,
    pub(super) position: u32,
}

impl Index {
    pub(super) fn new() -> Self {
        Self {
            slots: vec![EMPTY; 1 << FIRST_BITS],
            shift: u32::BITS - FIRST_BITS,
            used: 0,
        }
    }

    /// Slot of `key`, present or absent. `is_key` checks whether the packet at a position has it: hashes
    /// may collide.
    #[inline]
    pub(super) fn find(
        &self,
        key: u64,
        mut is_key: impl FnMut(u32) -> bool,
    ) -> Result<Found, Vacant> {
        let hash = hash(key);
        let mut slot = self.home(hash);
        loop {
            let content = self.slots[slot];
            if content == EMPTY {
                return Err(Vacant { slot, hash });
            }
            if hash_of(content) == hash && is_key(position_of(content)) {
                let position = position_of(content);
                return Ok(Found { slot, position });
            }
            slot = self.after(slot);
        }
    }

    /// Reads the slot where a search for `key` will begin. Reading those of several keys first overlaps
    /// their cache misses.
    #[inline]
    pub(super) fn touch(&self, key: u64) -> u64 {
        self.slots[self.home(hash(key))]
    }

    /// Add an absent key, before anything else is added or removed.
    #[inline]
    pub(super) fn occupy(&mut self, vacant: Vacant, position: u32) {
        self.slots[vacant.slot] = content(vacant.hash, position);
        self.used += 1;
        if self.used > self.slots.len() / 2 {
            self.grow();
        }
    }

    /// Map a key that was found to another position.
    #[inline]
    pub(super) fn replace(&mut self, found: Found, position: u32) {
        let hash = hash_of(self.slots[found.slot]);
        self.slots[found.slot] = content(hash, position);
    }

    /// Remove the key that maps to `position`.
    #[inline]
    pub(super) fn remove(&mut self, key: u64, position: u32) {
        let wanted = content(hash(key), position);
        let mut slot = self.home(hash(key));
        while self.slots[slot] != wanted {
            if self.slots[slot] == EMPTY {
                debug_assert!(false, "every live key is in the index");
                return;
            }
            slot = self.after(slot);
        }
        self.used -= 1;
        self.close_gap(slot);
    }

    /// Remove all keys.
    pub(super) fn clear(&mut self) {
        self.slots.fill(EMPTY);
        self.used = 0;
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u64>()
    }

    /// Moves back entries that probed past the slot being emptied (Knuth, *The Art of Computer
    /// Programming*, vol. 3, section 6.4, algorithm R), so that no tombstones accumulate.
    #[inline]
    fn close_gap(&mut self, mut gap: usize) {
        let mask = self.slots.len() - 1;
        let mut slot = gap;
        loop {
            slot = self.after(slot);
            let content = self.slots[slot];
            if content == EMPTY {
                break;
            }
            let home = self.home(hash_of(content));
            let from_home = slot.wrapping_sub(home) & mask;
            let from_gap = slot.wrapping_sub(gap) & mask;
            if from_home >= from_gap {
                self.slots[gap] = content;
                gap = slot;
            }
        }
        self.slots[gap] = EMPTY;
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![EMPTY; self.slots.len() * 2];
        let smaller = std::mem::replace(&mut self.slots, larger);
        self.shift -= 1;
        for content in smaller.into_iter().filter(|&content| content != EMPTY) {
            self.put(content);
        }
    }

    #[inline]
    fn put(&mut self, content: u64) {
        let mut slot = self.home(hash_of(content));
        while self.slots[slot] != EMPTY {
            slot = self.after(slot);
        }
        self.slots[slot] = content;
    }

    #[inline]
    fn home(&self, hash: u32) -> usize {
        (hash >> self.shift) as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn after(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }
}

/// The upper half of a multiplicative hash; never 0, which would look empty.
#[inline]
fn hash(key: u64) -> u32 {
    ((key.wrapping_mul(MULTIPLIER) >> 32) as u32).max(1)
}

#[inline]
fn content(hash: u32, position: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(position)
}

#[inline]
const fn hash_of(content: u64) -> u32 {
    (content >> 32) as u32
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
const fn position_of(content: u64) -> u32 {
    content as u32
}

const EMPTY: u64 = 0;

const FIRST_BITS: u32 = 10;

/// 2⁶⁴ divided by the golden ratio, odd (Knuth, section 6.4).
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        /// Half of the keys share the slots of others, so that removing has gaps to close.
        #[test]
        fn agrees_with_a_map_while_it_grows_and_shrinks(
            steps in proptest::collection::vec((any::<u64>(), any::<bool>(), 0_u8..3), 0..3_000),
        ) {
            let mut index = Index::new();
            let mut map = BTreeMap::new();
            let mut keys: Vec<u64> = Vec::new();
            for (position, (key, is_crowded, action)) in (0_u32..).zip(steps) {
                let key = if is_crowded { crowded(key) } else { key };
                if action == 0 && !keys.is_empty() {
                    let at = usize::try_from(key % keys.len() as u64).unwrap();
                    let key = keys.swap_remove(at);
                    index.remove(key, map.remove(&key).unwrap());
                }
                let found = index.find(key, |position| map.get(&key) == Some(&position));
                match found {
                    Ok(found) => {
                        prop_assert_eq!(map.insert(key, position), Some(found.position));
                        index.replace(found, position);
                    }
                    Err(vacant) => {
                        prop_assert_eq!(map.insert(key, position), None);
                        index.occupy(vacant, position);
                        keys.push(key);
                    }
                }
            }
            for (&key, &position) in &map {
                let found = index.find(key, |found| found == position);
                prop_assert_eq!(found.map(|found| found.position).ok(), Some(position));
            }
            prop_assert_eq!(index.used, map.len());
        }
    }

    /// A key of one of few hashes, spread over a hundredth of the slots.
    fn crowded(key: u64) -> u64 {
        let hash = ((key % 1_000) << 32) | (key & 0xFFFF);
        hash.wrapping_mul(inverse(MULTIPLIER))
    }

    /// The inverse of an odd number modulo 2⁶⁴, by Newton's method.
    fn inverse(odd: u64) -> u64 {
        (0..6).fold(odd, |inverse, _| {
            inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)))
        })
    }

    #[test]
    fn hashes_of_crowded_keys_are_near_each_other() {
        assert_eq!(inverse(MULTIPLIER).wrapping_mul(MULTIPLIER), 1);
        assert!((0..5_000).all(|key| hash(crowded(key * 77_777)) <= 1_000));
    }
}
