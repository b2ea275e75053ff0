//! A hash table that grows and shrinks by one bucket at a time: linear hashing (Litwin, VLDB 1980; in memory:
//! Larson, CACM 31(4), 1988). No insertion or removal moves more than the entries of two buckets.
//!
//! A bucket is one cache line. What does not fit goes to a chain of spill buckets; at the load kept here most
//! buckets have none.

use super::segments::Segments;

/// Where a key leads: the class, and its position in the order of the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// Smaller is earlier.
    pub(super) order: u32,
    /// The target; never [`FREE`].
    pub(super) target: u32,
}

/// Target of a slot without an entry.
const FREE: u32 = u32::MAX;
/// End of a chain.
const END: u32 = u32::MAX;

/// Up to `S` entries with keys of `W` words; the occupied slots come first.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct Bucket<const W: usize, const S: usize> {
    keys: [[u64; W]; S],
    entries: [Entry; S],
    /// The spill bucket that continues this one, or the next free one.
    next: u32,
}

impl<const W: usize, const S: usize> Bucket<W, S> {
    const EMPTY: Self = Self {
        keys: [[0; W]; S],
        entries: [Entry {
            order: 0,
            target: FREE,
        }; S],
        next: END,
    };

    /// The entry of `key`. Compares every slot without branches: which one matches is unpredictable.
    #[inline]
    fn find(&self, key: &[u64; W]) -> Option<Entry> {
        let mut found = Entry {
            order: 0,
            target: FREE,
        };
        for (own, entry) in self.keys.iter().zip(&self.entries) {
            let is_equal = own.iter().zip(key).fold(0, |bits, (a, b)| bits | (a ^ b)) == 0;
            if is_equal & (entry.target != FREE) {
                found = *entry;
            }
        }
        (found.target != FREE).then_some(found)
    }

    fn len(&self) -> usize {
        self.entries
            .iter()
            .take_while(|entry| entry.target != FREE)
            .count()
    }
}

/// Position of a bucket: at home, or in the spill area.
#[derive(Debug, Clone, Copy)]
enum At {
    Home(usize),
    Spill(u32),
}

/// Keys are distinct.
#[derive(Debug, Clone)]
pub(super) struct Buckets<const W: usize, const S: usize> {
    home: Segments<Bucket<W, S>>,
    spill: Segments<Bucket<W, S>>,
    /// Spill buckets not in use.
    free: u32,
    len: usize,
}

impl<const W: usize, const S: usize> Buckets<W, S> {
    pub(super) fn new() -> Self {
        let mut home = Segments::new();
        home.push(Bucket::EMPTY);
        Self {
            home,
            spill: Segments::new(),
            free: END,
            len: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    #[cfg(test)]
    pub(super) const fn buckets_and_spill(&self) -> (usize, usize) {
        (self.home.len(), self.spill.len())
    }

    /// The home bucket of a key: of the `n` buckets, those up to the last power of two are addressed by as
    /// many bits of the hash, and those that have already been split by one bit more.
    #[inline]
    fn home_of(&self, key: &[u64; W]) -> usize {
        let buckets = self.home.len();
        let mask = buckets.next_power_of_two() - 1;
        let index = hash(key) & mask;
        if index < buckets {
            index
        } else {
            index & (mask >> 1)
        }
    }

    /// Reads a little of the bucket of `key`, so that it is in the cache when [`find`](Self::find) follows.
    #[inline]
    pub(super) fn touch(&self, key: &[u64; W]) -> u32 {
        self.home
            .get(self.home_of(key))
            .map_or(0, |bucket| bucket.next)
    }

    #[inline]
    pub(super) fn find(&self, key: &[u64; W]) -> Option<Entry> {
        let bucket = self.home.get(self.home_of(key))?;
        if let Some(entry) = bucket.find(key) {
            return Some(entry);
        }
        let mut next = bucket.next;
        while next != END {
            let bucket = self.spill.get(next as usize)?;
            if let Some(entry) = bucket.find(key) {
                return Some(entry);
            }
            next = bucket.next;
        }
        None
    }

    /// Adds a key; false, and no change, if it is in the table already.
    pub(super) fn try_insert(&mut self, key: [u64; W], entry: Entry) -> bool {
        if self.find(&key).is_some() {
            return false;
        }
        self.place(self.home_of(&key), key, entry);
        self.len += 1;
        // Two thirds full on average.
        if self.len * 3 > self.home.len() * S * 2 {
            self.split();
        }
        true
    }

    /// Removes a key that has `target`.
    pub(super) fn remove(&mut self, key: &[u64; W], target: u32) -> Option<Entry> {
        let home = self.home_of(key);
        let mut at = At::Home(home);
        let (at, slot) = loop {
            let bucket = self.bucket(at)?;
            let mut slots = bucket.keys.iter().zip(&bucket.entries);
            match slots.position(|(own, entry)| own == key && entry.target == target) {
                Some(slot) => break (at, slot),
                None if bucket.next == END => return None,
                None => at = At::Spill(bucket.next),
            }
        };
        let entry = self.bucket(at)?.entries[slot];
        let (last_key, last) = self.take_last(home)?;
        // Unless it was the last of its chain itself.
        if (last_key, last) != (*key, entry) {
            let bucket = self.bucket_mut(at)?;
            bucket.keys[slot] = last_key;
            bucket.entries[slot] = last;
        }
        self.len -= 1;
        // One third full on average.
        if self.home.len() > 1 && self.len * 3 < self.home.len() * S {
            self.merge();
        }
        Some(entry)
    }

    fn bucket(&self, at: At) -> Option<&Bucket<W, S>> {
        match at {
            At::Home(index) => self.home.get(index),
            At::Spill(index) => self.spill.get(index as usize),
        }
    }

    fn bucket_mut(&mut self, at: At) -> Option<&mut Bucket<W, S>> {
        match at {
            At::Home(index) => self.home.get_mut(index),
            At::Spill(index) => self.spill.get_mut(index as usize),
        }
    }

    /// Appends to the chain of a home bucket.
    fn place(&mut self, home: usize, key: [u64; W], entry: Entry) {
        let mut at = At::Home(home);
        while let Some(bucket) = self.bucket_mut(at) {
            let slot = bucket.len();
            if slot < S {
                bucket.keys[slot] = key;
                bucket.entries[slot] = entry;
                return;
            }
            if bucket.next == END {
                let new = self.new_spill();
                if let Some(bucket) = self.bucket_mut(at) {
                    bucket.next = new;
                }
                at = At::Spill(new);
            } else {
                at = At::Spill(bucket.next);
            }
        }
    }

    fn new_spill(&mut self) -> u32 {
        let free = self.free;
        if let Some(bucket) = self.spill.get_mut(free as usize) {
            self.free = bucket.next;
            *bucket = Bucket::EMPTY;
            return free;
        }
        self.spill.push(Bucket::EMPTY);
        u32::try_from(self.spill.len() - 1).unwrap_or(END)
    }

    /// Takes the last entry of a chain, and its bucket if that becomes empty.
    fn take_last(&mut self, home: usize) -> Option<([u64; W], Entry)> {
        let mut before = None;
        let mut at = At::Home(home);
        while let Some(next) = self.bucket(at).map(|b| b.next).filter(|&next| next != END) {
            before = Some(at);
            at = At::Spill(next);
        }
        let free = self.free;
        let bucket = self.bucket_mut(at)?;
        let slot = bucket.len().checked_sub(1)?;
        let taken = (bucket.keys[slot], bucket.entries[slot]);
        bucket.entries[slot].target = FREE;
        if let (0, Some(before), At::Spill(index)) = (slot, before, at) {
            bucket.next = free;
            self.free = index;
            self.bucket_mut(before)?.next = END;
        }
        Some(taken)
    }

    /// One bucket more: it takes over its part of the bucket that stood for both.
    fn split(&mut self) {
        let new = self.home.len();
        self.home.push(Bucket::EMPTY);
        let entries = self.take_all(new ^ (1 << new.ilog2()));
        self.place_all(entries);
    }

    /// One bucket less: its entries return to the bucket it came from.
    fn merge(&mut self) {
        let entries = self.take_all(self.home.len() - 1);
        self.home.pop();
        self.place_all(entries);
    }

    fn take_all(&mut self, home: usize) -> Vec<([u64; W], Entry)> {
        std::iter::from_fn(|| self.take_last(home)).collect()
    }

    fn place_all(&mut self, entries: Vec<([u64; W], Entry)>) {
        for (key, entry) in entries {
            self.place(self.home_of(&key), key, entry);
        }
    }
}

/// Each word passes a full 64 × 64 → 128 bit product, whose halves are combined, and the result another one,
/// because one leaves patterns of keys that count upwards visible.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "bits of a hash")]
fn hash<const W: usize>(key: &[u64; W]) -> usize {
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    // 2^64 / golden ratio (Knuth), and two multipliers of Steele and Vigna's (2021).
    let words = key.iter().fold(0x9e37_79b9_7f4a_7c15, |hash, word| {
        fold(hash ^ word, 0xd134_2543_de82_ef95)
    });
    fold(words, 0xaf25_1af3_b0f0_25b5) as usize
}
