//! A table of values that are positions in it: no hash, no comparison of keys.

use super::buckets::Entry;

/// Bits of the widest values that are positions: a VLAN id, a port, a DSCP.
const BITS_MAX: u32 = 16;
/// Entries that memory is reserved for at once: 1 KiB.
const SEGMENT: usize = 128;

/// The entries of values that differ in a few neighbouring bits. It has segments only where it has values, so that
/// none of its changes takes longer than filling one.
#[derive(Debug, Clone)]
pub(super) struct Direct {
    /// The lowest bit that differs.
    shift: u32,
    segments: Box<[Option<Box<[Entry; SEGMENT]>>]>,
    len: usize,
}

impl Direct {
    /// An empty table of values under `mask`, if that is narrow enough.
    pub(super) fn new(mask: u64) -> Option<Self> {
        let shift = mask.trailing_zeros();
        let bits = u64::BITS - mask.leading_zeros();
        let is_narrow = mask != 0 && bits - shift <= BITS_MAX;
        is_narrow.then(|| Self {
            shift,
            segments: vec![None; Self::place(mask >> shift).0 + 1].into(),
            len: 0,
        })
    }

    /// Values in the table.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The segment of a value, and the position in it.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a value of 16 bits")]
    const fn place(value: u64) -> (usize, usize) {
        (value as usize / SEGMENT, value as usize % SEGMENT)
    }

    /// The entry of a value under the mask, or [`Entry::NONE`].
    #[inline]
    pub(super) fn find(&self, value: u64) -> Entry {
        let (segment, position) = Self::place(value >> self.shift);
        match self.segments.get(segment) {
            Some(Some(segment)) => segment[position],
            _ => Entry::NONE,
        }
    }

    /// Adds a value; false, and no change, if it is in the table already.
    pub(super) fn try_insert(&mut self, value: u64, entry: Entry) -> bool {
        let (segment, position) = Self::place(value >> self.shift);
        let Some(segment) = self.segments.get_mut(segment) else {
            debug_assert!(false, "values are under the mask");
            return false;
        };
        let segment = segment.get_or_insert_with(|| Box::new([Entry::NONE; SEGMENT]));
        let is_new = segment[position] == Entry::NONE;
        if is_new {
            segment[position] = entry;
            self.len += 1;
        }
        is_new
    }

    /// Has a value that leads to `from` lead to `to`, at its position in the order; whether there was one.
    pub(super) fn retarget(&mut self, value: u64, from: u32, to: u32) -> bool {
        let (segment, position) = Self::place(value >> self.shift);
        match self.segments.get_mut(segment) {
            Some(Some(segment)) => segment[position].retarget(from, to),
            _ => false,
        }
    }

    /// Removes a value that has `target`. Segments stay, as others may use them.
    pub(super) fn remove(&mut self, value: u64, target: u32) -> Option<Entry> {
        let (segment, position) = Self::place(value >> self.shift);
        let place = &mut self.segments.get_mut(segment)?.as_mut()?[position];
        let found = *place;
        if found == Entry::NONE || found.target() != target {
            return None;
        }
        *place = Entry::NONE;
        self.len -= 1;
        Some(found)
    }
}
