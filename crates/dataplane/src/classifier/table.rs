//! The patterns of one mask: one look-up finds the one that matches.

use super::buckets::{Buckets, Entry};
use super::direct::Direct;
use super::key::{Mask, Needs, Pattern, WORDS, word};
use slicewise_wire::Headers;
use std::collections::{BTreeMap, BTreeSet};

/// All patterns of a level that have the same mask.
#[derive(Debug, Clone)]
pub(super) struct Table {
    mask: Mask,
    needs: Needs,
    /// No entry has a lower order: a frame that already has an earlier class need not be looked up.
    lowest: u32,
    keys: Keys,
    shadowed: Shadowed,
}

/// Keys hold only words of which the mask has bits.
#[derive(Debug, Clone)]
enum Keys {
    Direct(usize, Direct),
    One(usize, Buckets<1, 3>),
    Two([usize; 2], Buckets<2, 2>),
    All(Buckets<WORDS, 1>),
}

/// Patterns equal to an earlier one. No frame reaches them until that one is removed.
#[derive(Debug, Clone, Default)]
struct Shadowed {
    /// Of different class maps two may have the same position, if it does not matter which comes first.
    entries: BTreeSet<([u64; WORDS], Entry)>,
    orders: BTreeMap<([u64; WORDS], u32), u32>,
}

impl Shadowed {
    fn insert(&mut self, value: [u64; WORDS], entry: Entry) {
        self.entries.insert((value, entry));
        self.orders.insert((value, entry.target()), entry.order());
    }

    fn remove(&mut self, value: [u64; WORDS], target: u32) -> Option<Entry> {
        let order = self.orders.remove(&(value, target))?;
        let entry = Entry::new(order, target);
        self.entries.remove(&(value, entry)).then_some(entry)
    }

    /// The earliest with this value that does not lead to `target`.
    fn first_but(&self, value: [u64; WORDS], target: u32) -> Entry {
        let found = self.of(value).find(|entry| entry.target() != target);
        found.unwrap_or(Entry::NONE)
    }

    /// Those with this value, the earliest first.
    fn of(&self, value: [u64; WORDS]) -> impl Iterator<Item = Entry> {
        let equal = (value, Entry::new(0, 0))..=(value, Entry::NONE);
        self.entries.range(equal).map(|(_, entry)| *entry)
    }

    fn retarget(&mut self, value: [u64; WORDS], from: u32, to: u32) -> bool {
        let Some(entry) = self.remove(value, from) else {
            return false;
        };
        self.insert(value, Entry::new(entry.order(), to));
        true
    }

    /// The earliest with this value, removed.
    fn take_first(&mut self, value: [u64; WORDS]) -> Option<Entry> {
        let first = self.of(value).next()?;
        self.remove(value, first.target())
    }
}

impl Keys {
    fn find(&self, value: [u64; WORDS]) -> Entry {
        match self {
            Self::Direct(index, direct) => direct.find(value[*index]),
            Self::One(index, buckets) => buckets.find(&[value[*index]]),
            Self::Two(indices, buckets) => buckets.find(&indices.map(|i| value[i])),
            Self::All(buckets) => buckets.find(&value),
        }
    }

    fn try_insert(&mut self, value: [u64; WORDS], entry: Entry) -> bool {
        match self {
            Self::Direct(index, direct) => direct.try_insert(value[*index], entry),
            Self::One(index, buckets) => buckets.try_insert([value[*index]], entry),
            Self::Two(indices, buckets) => buckets.try_insert(indices.map(|i| value[i]), entry),
            Self::All(buckets) => buckets.try_insert(value, entry),
        }
    }

    fn remove(&mut self, value: [u64; WORDS], target: u32) -> Option<Entry> {
        match self {
            Self::Direct(index, direct) => direct.remove(value[*index], target),
            Self::One(index, buckets) => buckets.remove(&[value[*index]], target),
            Self::Two(indices, buckets) => buckets.remove(&indices.map(|i| value[i]), target),
            Self::All(buckets) => buckets.remove(&value, target),
        }
    }
}

impl Table {
    /// An empty table for patterns of this mask; entries will have orders from `lowest`.
    pub(super) fn new(mask: Mask, lowest: u32) -> Self {
        let mut used = (0..WORDS).filter(|&word| mask.words[word] != 0);
        let keys = match (used.next(), used.next(), used.next()) {
            (first, None, _) => {
                let index = first.unwrap_or(0);
                match Direct::new(mask.words[index]) {
                    Some(direct) => Keys::Direct(index, direct),
                    None => Keys::One(index, Buckets::new()),
                }
            }
            (Some(first), Some(second), None) => Keys::Two([first, second], Buckets::new()),
            _ => Keys::All(Buckets::new()),
        };
        Self {
            needs: Needs::new(mask.needs),
            mask,
            lowest,
            keys,
            shadowed: Shadowed::default(),
        }
    }

    pub(super) const fn mask(&self) -> &Mask {
        &self.mask
    }

    #[inline]
    pub(super) const fn lowest(&self) -> u32 {
        self.lowest
    }

    /// Patterns that frames can match.
    pub(super) const fn len(&self) -> usize {
        match &self.keys {
            Keys::Direct(_, direct) => direct.len(),
            Keys::One(_, buckets) => buckets.len(),
            Keys::Two(_, buckets) => buckets.len(),
            Keys::All(buckets) => buckets.len(),
        }
    }

    /// The earlier of `best` and the entry of the pattern that a frame with these headers matches. Not inlined, so
    /// that only those fields are read that decide in this table.
    #[inline(never)]
    pub(super) fn find(&self, headers: &Headers, best: Entry) -> Entry {
        if !self.needs.are_met(headers) {
            return best;
        }
        let found = match &self.keys {
            Keys::Direct(index, direct) => direct.find(self.masked(headers, *index)),
            Keys::One(index, buckets) => buckets.find(&[self.masked(headers, *index)]),
            _ => self.find_wide(headers),
        };
        found.min(best)
    }

    /// The earliest entry of a frame with these headers that does not lead to `target`.
    pub(super) fn find_but(&self, headers: &Headers, target: u32) -> Entry {
        let found = self.find(headers, Entry::NONE);
        if found == Entry::NONE || found.target() != target {
            return found;
        }
        let value = std::array::from_fn(|index| self.masked(headers, index));
        self.shadowed.first_but(value, target)
    }

    /// [`find`](Self::find) for several frames; `best` keeps the earliest entry found of each.
    #[inline]
    pub(super) fn find_burst(&self, headers: &[Headers], best: &mut [Entry]) {
        match &self.keys {
            Keys::Direct(0, direct) => {
                self.find_each(headers, best, |h| direct.find(self.masked(h, 0)));
            }
            Keys::Direct(index, direct) => {
                self.find_each(headers, best, |h| direct.find(self.masked(h, *index)));
            }
            Keys::One(0, buckets) => {
                self.find_each(headers, best, |h| buckets.find(&[self.masked(h, 0)]));
            }
            Keys::One(index, buckets) => {
                self.find_each(headers, best, |h| buckets.find(&[self.masked(h, *index)]));
            }
            _ => self.find_each(headers, best, |h| self.find_wide(h)),
        }
    }

    #[inline]
    fn find_each(&self, headers: &[Headers], best: &mut [Entry], find: impl Fn(&Headers) -> Entry) {
        for (headers, best) in headers.iter().zip(best) {
            if self.lowest <= best.order() && self.needs.are_met(headers) {
                *best = find(headers).min(*best);
            }
        }
    }

    #[inline]
    fn masked(&self, headers: &Headers, index: usize) -> u64 {
        word(headers, index) & self.mask.words[index]
    }

    /// Not inlined, so that the usual case stays short.
    #[inline(never)]
    fn find_wide(&self, headers: &Headers) -> Entry {
        let masked = |index| self.masked(headers, index);
        match &self.keys {
            Keys::Direct(index, direct) => direct.find(masked(*index)),
            Keys::One(index, buckets) => buckets.find(&[masked(*index)]),
            Keys::Two([a, b], buckets) => buckets.find(&[masked(*a), masked(*b)]),
            Keys::All(buckets) => buckets.find(&std::array::from_fn(masked)),
        }
    }

    /// Reads a little of the bucket in which [`find`](Self::find) will search.
    #[inline]
    pub(super) fn touch(&self, headers: &Headers) -> u32 {
        let masked = |index| self.masked(headers, index);
        match &self.keys {
            Keys::Direct(index, direct) => direct.find(masked(*index)).target(),
            Keys::One(index, buckets) => buckets.touch(&[masked(*index)]),
            Keys::Two([a, b], buckets) => buckets.touch(&[masked(*a), masked(*b)]),
            Keys::All(buckets) => buckets.touch(&std::array::from_fn(masked)),
        }
    }

    /// Adds a pattern of this table's mask, unless it has the same entry already.
    pub(super) fn insert(&mut self, pattern: &Pattern, entry: Entry) {
        let value = pattern.value;
        self.lowest = self.lowest.min(entry.order());
        if self.keys.try_insert(value, entry) {
            return;
        }
        let found = self.keys.find(value);
        if found < entry {
            self.shadowed.insert(value, entry);
        } else if found > entry {
            self.keys.remove(value, found.target());
            self.keys.try_insert(value, entry);
            self.shadowed.insert(value, found);
        }
    }

    /// Has the pattern that leads to `from` lead to `to`, at its position in the order; whether there was one.
    pub(super) fn retarget(&mut self, pattern: &Pattern, from: u32, to: u32) -> bool {
        let value = pattern.value;
        let is_done = match &mut self.keys {
            Keys::Direct(index, direct) => direct.retarget(value[*index], from, to),
            Keys::One(index, buckets) => buckets.retarget(&[value[*index]], from, to),
            Keys::Two(indices, buckets) => buckets.retarget(&indices.map(|i| value[i]), from, to),
            Keys::All(buckets) => buckets.retarget(&value, from, to),
        };
        is_done || self.shadowed.retarget(value, from, to)
    }

    /// Removes the pattern that leads to `target`; whether there was one.
    pub(super) fn remove(&mut self, pattern: &Pattern, target: u32) -> bool {
        let value = pattern.value;
        if self.keys.remove(value, target).is_none() {
            return self.shadowed.remove(value, target).is_some();
        }
        if let Some(entry) = self.shadowed.take_first(value) {
            self.insert(pattern, entry);
        }
        true
    }
}
