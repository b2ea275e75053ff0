//! From the key of a packet to where it is in the window: open addressing with linear probing.

/// Keys map to positions. A slot holds half of the hash and the position, so that growing and removing
/// need nothing else; whether a key is really there, the caller looks up at the position.
#[derive(Debug, Clone)]
pub(super) struct Index {
    /// `hash << 32 | position`; 0 where empty.
    slots: Vec<u64>,
    /// Bits of the hash below those that choose a slot.
    shift: u32,
    used: usize,
}

/// Where a key was found.
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

    /// Where `key` is. `is_key` says whether the packet at a position has it: hashes may be equal.
    #[inline]
    pub(super) fn find(&self, key: u64, mut is_key: impl FnMut(u32) -> bool) -> Option<Found> {
        let hash = hash(key);
        let mut slot = self.home(hash);
        loop {
            let content = self.slots[slot];
            if content == EMPTY {
                return None;
            }
            if hash_of(content) == hash && is_key(position_of(content)) {
                let position = position_of(content);
                return Some(Found { slot, position });
            }
            slot = self.after(slot);
        }
    }

    /// Reads the slot where a search for `key` will begin. Reading those of several keys first lets
    /// the processor wait for all of them at once.
    #[inline]
    pub(super) fn touch(&self, key: u64) -> u64 {
        self.slots[self.home(hash(key))]
    }

    /// Add a key that is not there.
    #[inline]
    pub(super) fn insert(&mut self, key: u64, position: u32) {
        if self.used >= self.slots.len() / 2 {
            self.grow();
        }
        self.used += 1;
        self.put(content(hash(key), position));
    }

    /// Let a key that was found name another position.
    #[inline]
    pub(super) fn replace(&mut self, found: Found, position: u32) {
        let hash = hash_of(self.slots[found.slot]);
        self.slots[found.slot] = content(hash, position);
    }

    /// Remove the key that names `position`.
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

    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u64>()
    }

    /// Moves back what probed past the slot being emptied (Knuth, *The Art of Computer Programming*,
    /// vol. 3, section 6.4, algorithm R), so that no tombstones pile up.
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
#[expect(clippy::cast_possible_truncation, reason = "the upper half of 64 bits")]
fn hash(key: u64) -> u32 {
    ((key.wrapping_mul(MULTIPLIER) >> 32) as u32).max(1)
}

#[inline]
fn content(hash: u32, position: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(position)
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the upper half of 64 bits")]
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
