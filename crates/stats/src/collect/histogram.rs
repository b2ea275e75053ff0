//! Log-linear histograms with three significant digits, in pages that many histograms share.
//!
//! The layout is that of HdrHistogram (Tene): 1,024 bins per octave, each as wide as 1/1,024 of the
//! octave's lower end, and width 1 below 1,024; or another power of two instead of 1,024. Only octaves
//! in use take memory (4 KiB each), which is what lets a run keep a histogram for each segment of time;
//! and one is counted with a shift, a table look-up and an addition.

use crate::distribution::Distribution;

/// Octaves of a histogram: one for each bit that may be the highest of a value. Values below the number of bins per octave
/// are in one of them together.
const OCTAVES: usize = 64;
const NO_PAGE: u32 = u32::MAX;

/// A set of histograms with `SUB_BINS` bins per octave: a power of two.
#[derive(Debug, Clone)]
pub(super) struct Histograms<const SUB_BINS: usize = 1024> {
    /// One page after the other.
    pages: Vec<u32>,
    /// Which page holds an octave of a histogram.
    tables: Vec<[u32; OCTAVES]>,
    /// Free pages.
    free: Vec<u32>,
}

impl<const SUB_BINS: usize> Histograms<SUB_BINS> {
    const SUB_BITS: u32 = {
        // With one bin an octave, zero would have none.
        assert!(SUB_BINS.is_power_of_two() && SUB_BINS > 1);
        SUB_BINS.ilog2()
    };

    pub fn new(count: usize) -> Self {
        Self {
            pages: Vec::new(),
            tables: vec![[NO_PAGE; OCTAVES]; count],
            free: Vec::new(),
        }
    }

    /// Remove every value, keep the memory.
    pub fn clear(&mut self) {
        self.pages.clear();
        self.free.clear();
        self.tables.fill([NO_PAGE; OCTAVES]);
    }

    /// Use memory of other histograms, before the first value.
    pub fn use_memory(&mut self, mut memory: Vec<u32>) {
        memory.clear();
        self.pages = memory;
    }

    pub fn into_memory(self) -> Vec<u32> {
        self.pages
    }

    /// Count `value` in a histogram; counters saturate.
    #[inline]
    pub fn record(&mut self, histogram: usize, value: u64) {
        let octave = Self::octave_of(value);
        #[expect(clippy::cast_possible_truncation, reason = "masked to fewer bits")]
        let sub_bin = (value >> octave.saturating_sub(Self::SUB_BITS)) as usize & (SUB_BINS - 1);
        let octave = octave as usize;
        let page = self.tables[histogram][octave];
        let count = match self.pages.get_mut(Self::place(page) + sub_bin) {
            Some(count) => count,
            // It is `NO_PAGE`.
            None => self.add_page(histogram, octave, sub_bin),
        };
        *count = count.saturating_add(1);
    }

    /// Where a page begins.
    #[inline]
    const fn place(page: u32) -> usize {
        (page as usize).saturating_mul(SUB_BINS)
    }

    /// The counts of a page; `None` for `NO_PAGE`.
    fn page(&self, page: u32) -> Option<&[u32]> {
        self.pages.get(Self::place(page)..)?.get(..SUB_BINS)
    }

    #[cold]
    fn add_page(&mut self, histogram: usize, octave: usize, sub_bin: usize) -> &mut u32 {
        let page = self.free.pop().unwrap_or_else(|| {
            let held = self.pages.len();
            self.pages.resize(held + SUB_BINS, 0);
            // 2³² pages would be 16 TiB.
            u32::try_from(held / SUB_BINS).unwrap_or(NO_PAGE - 1)
        });
        self.tables[histogram][octave] = page;
        &mut self.pages[Self::place(page) + sub_bin]
    }

    /// Add empty histograms at the end.
    pub fn add(&mut self, count: usize) {
        self.tables
            .extend(std::iter::repeat_n([NO_PAGE; OCTAVES], count));
    }

    /// Regroup sets of `from` histograms into sets of `to`, each histogram of a set being the
    /// sum of `factor` old ones.
    pub fn regroup(&mut self, from: usize, to: usize, factor: usize) {
        let sets = self.tables.len() / from.max(1);
        let mut tables = vec![[NO_PAGE; OCTAVES]; sets * to];
        for (index, old) in self.tables.iter().enumerate() {
            let table = &mut tables[regrouped(index, from, to, factor)];
            for (octave, &page) in old.iter().enumerate().filter(|(_, page)| **page != NO_PAGE) {
                let held = &mut table[octave];
                if *held == NO_PAGE {
                    *held = page;
                    continue;
                }
                let (held, page_at) = (Self::place(*held), Self::place(page));
                for sub_bin in 0..SUB_BINS {
                    let count = std::mem::take(&mut self.pages[page_at + sub_bin]);
                    let sum = &mut self.pages[held + sub_bin];
                    *sum = sum.saturating_add(count);
                }
                self.free.push(page);
            }
        }
        self.tables = tables;
    }

    /// Bytes held for pages.
    pub fn page_bytes(&self) -> usize {
        size_of_val(&*self.pages) - self.free.len() * size_of::<[u32; SUB_BINS]>()
    }

    /// The samples of a range of histograms together.
    pub fn distribution(&self, histograms: std::ops::Range<usize>) -> Distribution {
        let tables = self.tables.get(histograms).unwrap_or_default();
        let mut merged = Distribution::default();
        let mut sums = [0u64; SUB_BINS];
        for octave in 0..OCTAVES {
            let mut pages = tables
                .iter()
                .filter_map(|table| self.page(table[octave]))
                .peekable();
            if pages.peek().is_none() {
                continue;
            }
            sums.fill(0);
            for page in pages {
                for (sum, &count) in sums.iter_mut().zip(page) {
                    *sum += u64::from(count);
                }
            }
            for (sub_bin, &count) in sums.iter().enumerate() {
                merged.push(Self::upper_edge(octave, sub_bin), count);
            }
        }
        merged
    }

    #[inline]
    fn octave_of(value: u64) -> u32 {
        (value | (SUB_BINS as u64 - 1)).ilog2()
    }

    /// Largest value that a bin holds.
    fn upper_edge(octave: usize, sub_bin: usize) -> u64 {
        let Some(shift) = octave.checked_sub(Self::SUB_BITS as usize) else {
            return sub_bin as u64;
        };
        // `x << shift` with all lower bits set, without overflow in the last bin.
        ((SUB_BINS + sub_bin) as u64) << shift | ((1u64 << shift) - 1)
    }
}

/// New index of histogram `index` when sets of `from` histograms become sets of `to`, each histogram of
/// a set being the sum of `factor` old ones.
pub(super) fn regrouped(index: usize, from: usize, to: usize, factor: usize) -> usize {
    let (set, place) = (index / from, (index % from) / factor);
    set * to + place.min(to - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    #[test]
    fn every_value_lies_in_a_bin_no_wider_than_a_thousandth() {
        for value in (0..64).flat_map(|bit| {
            let power = 1u64 << bit;
            [power - 1, power, power + power / 3, power | (power - 1)]
        }) {
            let mut histograms = <Histograms>::new(1);
            histograms.record(0, value);
            let edge = histograms.distribution(0..1).quantile(1, 1);
            assert!(edge >= value, "{edge} < {value}");
            assert!(edge - value <= value / 1_000, "{edge} is far above {value}");
            let mut coarse = Histograms::<128>::new(1);
            coarse.record(0, value);
            let edge = coarse.distribution(0..1).quantile(1, 1);
            assert!(edge >= value, "{edge} < {value}");
            assert!(edge - value <= value / 128, "{edge} is far above {value}");
        }
    }

    #[test]
    fn clearing_forgets_and_a_range_merges() {
        let mut histograms = <Histograms>::new(3);
        histograms.record(0, 5);
        histograms.clear();
        histograms.record(0, 7);
        histograms.record(1, 7);
        histograms.record(2, 1_000_000);
        assert_eq!(histograms.distribution(0..2).bins(), &[(7, 2)]);
        assert_eq!(histograms.distribution(0..3).total(), 3);
        assert_eq!(histograms.distribution(2..2).total(), 0);
    }

    #[test]
    fn regrouping_adds_neighbours_and_uses_their_pages_again() {
        // Two sets of four.
        let mut histograms = <Histograms>::new(8);
        for (histogram, value) in [(0, 1), (1, 2), (3, 3), (4, 4), (5, 5_000)] {
            histograms.record(histogram, value);
        }
        histograms.regroup(4, 3, 2);
        let bins = |h: &Histograms, n: usize| h.distribution(n..n + 1).bins().to_vec();
        assert_eq!(bins(&histograms, 0), [(1, 1), (2, 1)]);
        assert_eq!(bins(&histograms, 1), [(3, 1)]);
        assert_eq!(histograms.distribution(3..4).total(), 2);
        let held = histograms.page_bytes();
        assert_eq!(held, 4 * 4096);
        histograms.record(5, 7);
        assert_eq!(bins(&histograms, 5), [(7, 1)]);
        assert_eq!(
            histograms.pages.len(),
            5 * 1024,
            "the page left is used again"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn quantiles_equal_those_of_hdrhistogram_within_its_resolution(
            values in prop::collection::vec(1u64..10_000_000_000, 1..500),
        ) {
            let mut ours = <Histograms>::new(1);
            let mut reference = Histogram::<u32>::new(3).unwrap();
            for &value in &values {
                ours.record(0, value);
                reference.record(value).unwrap();
            }
            let distribution = ours.distribution(0..1);
            for per_mille in [1u32, 10, 500, 900, 990, 999, 1000] {
                let own = distribution.quantile(per_mille, 1000) as f64;
                let theirs = reference.value_at_quantile(f64::from(per_mille) / 1000.0) as f64;
                prop_assert!((own - theirs).abs() <= theirs.max(own) * 0.001 + 1.0);
            }
        }
    }
}
