//! Ranges that have arrived beyond a gap.

use std::collections::BTreeMap;

/// Most ranges that are remembered as the latest.
const LATEST: usize = 4;

/// Ranges of positions that neither touch nor overlap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ranges {
    /// Start → end.
    ranges: BTreeMap<u64, u64>,
    bytes: u64,
    /// Starts of ranges that grew last, the latest first (RFC 2018, section 4); may name some that are gone.
    latest: [u64; LATEST],
}

impl Ranges {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Bytes in all ranges.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The first part of [`start`, `end`) that is here already.
    pub(crate) fn overlap(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let before = self.ranges.range(..=start).next_back();
        let before = before.filter(|(_, before_end)| **before_end > start);
        let (first, first_end) = before.or_else(|| self.ranges.range(start..end).next())?;
        Some((start.max(*first), end.min(*first_end)))
    }

    /// [`start`, `end`) has arrived.
    pub(crate) fn insert(&mut self, start: u64, end: u64) {
        let (mut low, mut high) = (start, end);
        if let Some((&before, &before_end)) = self.ranges.range(..=start).next_back() {
            if before_end >= end {
                self.remember(before, before);
                return;
            }
            if before_end >= start {
                low = before;
                self.remove(before, before_end);
            }
        }
        while let Some((&next, &next_end)) = self.ranges.range(low..).next()
            && next <= high
        {
            high = high.max(next_end);
            self.remove(next, next_end);
        }
        self.ranges.insert(low, high);
        self.bytes += high - low;
        self.remember(low, start);
    }

    fn remove(&mut self, start: u64, end: u64) {
        self.ranges.remove(&start);
        self.bytes -= end - start;
    }

    /// The range that starts at `start` has grown.
    fn remember(&mut self, start: u64, at: u64) {
        let place = self
            .latest
            .iter()
            .position(|known| *known == start || *known == at);
        let place = place.unwrap_or(LATEST - 1);
        self.latest[..=place].rotate_right(1);
        self.latest[0] = start;
    }

    /// Everything below `end` is here: what follows without a gap is taken too. Returns up to where.
    pub(crate) fn take_from(&mut self, end: u64) -> u64 {
        let mut reached = end;
        while let Some((&start, &range_end)) = self.ranges.first_key_value()
            && start <= reached
        {
            reached = reached.max(range_end);
            self.remove(start, range_end);
        }
        reached
    }

    /// The ranges that grew last, the latest first.
    pub(crate) fn latest(&self) -> impl Iterator<Item = (u64, u64)> {
        let latest = self.latest.iter();
        latest.filter_map(|start| Some((*start, *self.ranges.get(start)?)))
    }
}
