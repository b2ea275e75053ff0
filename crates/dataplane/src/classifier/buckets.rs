//! A hash table that grows and shrinks by one bucket at a time: linear hashing (Litwin, VLDB 1980; in memory:
//! Larson, CACM 31(4), 1988). No insertion or removal moves more than the entries of two buckets.
//!
//! A bucket is one cache line. What does not fit goes to a chain of spill buckets; at the load kept here most
//! buckets have none.

use super::segments::Segments;

/// Where a key leads: a position in the order of the policy, and the class there. Compares by the position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry(u64);

impl Entry {
    /// Later than all others.
    pub(crate) const NONE: Self = Self(u64::MAX);

    pub(crate) const fn new(order: u32, target: u32) -> Self {
        Self((order as u64) << 32 | target as u64)
    }

    /// Leads to `to` where it led to `from`; whether it did.
    pub(super) const fn retarget(&mut self, from: u32, to: u32) -> bool {
        let is_it = self.target() == from;
        if is_it {
            *self = Self::new(self.order(), to);
        }
        is_it
    }

    #[inline]
    pub(crate) const fn order(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half")]
    pub(crate) const fn target(self) -> u32 {
        self.0 as u32
    }
}

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
        entries: [Entry::NONE; S],
        next: END,
    };

    /// The entry of `key`. Compares every slot without branches, because which one matches is unpredictable.
    #[inline]
    fn find(&self, key: &[u64; W]) -> Entry {
        let mut equal = 0u32;
        for (slot, own) in self.keys.iter().enumerate() {
            let differing = own.iter().zip(key).fold(0, |bits, (a, b)| bits | (a ^ b));
            equal |= u32::from(differing == 0) << slot;
        }
        // The first: free slots, which may equal any key, come last and have no entry.
        let slot = equal.trailing_zeros() as usize;
        self.entries.get(slot).copied().unwrap_or(Entry::NONE)
    }

    fn len(&self) -> usize {
        let occupied = self.entries.iter().take_while(|e| **e != Entry::NONE);
        occupied.count()
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
pub(crate) struct Buckets<const W: usize, const S: usize> {
    home: Segments<Bucket<W, S>>,
    spill: Segments<Bucket<W, S>>,
    /// Spill buckets not in use.
    free: u32,
    /// Bits of the hash that address home buckets.
    mask: usize,
    len: usize,
}

impl<const W: usize, const S: usize> Buckets<W, S> {
    pub(crate) fn new() -> Self {
        let mut home = Segments::new();
        home.push(Bucket::EMPTY);
        Self {
            home,
            spill: Segments::new(),
            free: END,
            mask: 0,
            len: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Home buckets, spill buckets, and the most spill buckets in one chain.
    #[cfg(test)]
    pub(super) fn shape(&self) -> (usize, usize, usize) {
        let next = |at: &At| self.bucket(*at).map(|b| b.next).filter(|n| *n != END);
        let spilled =
            |home| std::iter::successors(Some(At::Home(home)), |at| next(at).map(At::Spill));
        let longest = (0..self.home.len())
            .map(|home| spilled(home).count() - 1)
            .max();
        (self.home.len(), self.spill.len(), longest.unwrap_or(0))
    }

    /// The home bucket of a key: of the `n` buckets, those up to the last power of two are addressed by as
    /// many bits of the hash, and those that have already been split by one bit more.
    #[inline]
    fn home_of(&self, key: &[u64; W]) -> usize {
        let index = hash(key) & self.mask;
        if index < self.home.len() {
            index
        } else {
            index & (self.mask >> 1)
        }
    }

    /// Reads a little of the bucket of `key`, so that it is in the cache when [`find`](Self::find) follows.
    #[inline]
    pub(super) fn touch(&self, key: &[u64; W]) -> u32 {
        self.home
            .get(self.home_of(key))
            .map_or(0, |bucket| bucket.next)
    }

    /// The entry of `key`, or [`Entry::NONE`].
    #[inline]
    pub(crate) fn find(&self, key: &[u64; W]) -> Entry {
        let Some(bucket) = self.home.get(self.home_of(key)) else {
            return Entry::NONE;
        };
        let found = bucket.find(key);
        if found == Entry::NONE && bucket.next != END {
            return self.find_spilled(bucket.next, key);
        }
        found
    }

    fn find_spilled(&self, mut next: u32, key: &[u64; W]) -> Entry {
        while let Some(bucket) = self.spill.get(next as usize) {
            let found = bucket.find(key);
            if found != Entry::NONE {
                return found;
            }
            next = bucket.next;
        }
        Entry::NONE
    }

    /// Adds a key; false, and no change, if it is in the table already.
    pub(crate) fn try_insert(&mut self, key: [u64; W], entry: Entry) -> bool {
        if self.find(&key) != Entry::NONE {
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
    pub(crate) fn remove(&mut self, key: &[u64; W], target: u32) -> Option<Entry> {
        let home = self.home_of(key);
        let mut at = At::Home(home);
        let (at, slot) = loop {
            let bucket = self.bucket(at)?;
            let mut slots = bucket.keys.iter().zip(&bucket.entries);
            let is_it = |(own, entry): (&[u64; W], &Entry)| {
                own == key && *entry != Entry::NONE && entry.target() == target
            };
            match slots.position(is_it) {
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

    /// Has a key that leads to `from` lead to `to`, at its position in the order; whether there was one.
    pub(super) fn retarget(&mut self, key: &[u64; W], from: u32, to: u32) -> bool {
        let mut at = At::Home(self.home_of(key));
        while let Some(bucket) = self.bucket_mut(at) {
            let mut slots = bucket.keys.iter().zip(&mut bucket.entries);
            if let Some((_, entry)) =
                slots.find(|(own, entry)| *own == key && **entry != Entry::NONE)
            {
                return entry.retarget(from, to);
            }
            if bucket.next == END {
                return false;
            }
            at = At::Spill(bucket.next);
        }
        false
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
        bucket.entries[slot] = Entry::NONE;
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
        self.mask = self.home.len().next_power_of_two() - 1;
        let entries = self.take_all(new ^ (1 << new.ilog2()));
        self.place_all(entries);
    }

    /// One bucket less: its entries return to the bucket it came from.
    fn merge(&mut self) {
        let entries = self.take_all(self.home.len() - 1);
        self.home.pop();
        self.mask = self.home.len().next_power_of_two() - 1;
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
