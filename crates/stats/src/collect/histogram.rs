//! Log-linear histograms with three significant digits, in pages that many histograms share.
//!
//! The layout is that of HdrHistogram (Tene): 1,024 bins per octave, each as wide as 1/1,024 of the
//! octave's lower end, and width 1 below 2,048; or another power of two instead of 1,024. Only quarters of
//! octaves in use take memory (1 KiB each), which is what lets a run keep a histogram for each segment of time;
//! and one is counted with a shift, a table look-up and an addition.

use super::bins::count;
use crate::distribution::Distribution;

/// Most bins of a page.
const PAGE: usize = 256;
/// Most pages of a histogram: four for each bit that may be the highest of a value.
const PAGES: usize = 64 * 4;
const NO_PAGE: u32 = u32::MAX;

/// A set of histograms with `SUB_BINS` bins per octave: a power of two.
#[derive(Debug, Clone)]
pub(super) struct Histograms<const SUB_BINS: usize = 1024> {
    /// The counts of one page after the other.
    pages: Vec<u32>,
    tables: Vec<Table>,
    /// Free pages.
    free: Vec<u32>,
}

/// Where a histogram has its counts.
#[derive(Debug, Clone)]
struct Table {
    /// Which page holds which bins.
    pages: [u32; PAGES],
    /// A bit for each octave that has pages.
    octaves: u64,
}

impl Table {
    const EMPTY: Self = Self {
        pages: [NO_PAGE; PAGES],
        octaves: 0,
    };
}

impl<const SUB_BINS: usize> Histograms<SUB_BINS> {
    const SUB_BITS: u32 = {
        assert!(SUB_BINS.is_power_of_two() && SUB_BINS <= 4 * PAGE);
        SUB_BINS.ilog2()
    };
    /// Bins of a page: of an octave, or a part of it.
    const PAGE: usize = if SUB_BINS < PAGE { SUB_BINS } else { PAGE };
    const PER_OCTAVE: usize = SUB_BINS / Self::PAGE;

    pub fn new(count: usize) -> Self {
        Self {
            pages: Vec::new(),
            tables: vec![Table::EMPTY; count],
            free: Vec::new(),
        }
    }

    /// Remove every value, keep the memory.
    pub fn clear(&mut self) {
        self.pages.clear();
        self.free.clear();
        self.tables.fill(Table::EMPTY);
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
    #[inline(always)]
    pub fn record(&mut self, histogram: usize, value: u64) {
        let bin = Self::bin_of(value);
        let page = self.tables[histogram].pages[bin / Self::PAGE % PAGES];
        match self.pages.get_mut(Self::place(page) + bin % Self::PAGE) {
            Some(counter) => count(counter),
            // It is `NO_PAGE`.
            None => count(self.add_page(histogram, bin)),
        }
    }

    /// Where a page begins.
    #[inline]
    const fn place(page: u32) -> usize {
        (page as usize).saturating_mul(Self::PAGE)
    }

    /// The counts of a page; `None` for `NO_PAGE`.
    fn page(&self, page: u32) -> Option<&[u32]> {
        self.pages.get(Self::place(page)..)?.get(..Self::PAGE)
    }

    #[cold]
    fn add_page(&mut self, histogram: usize, bin: usize) -> &mut u32 {
        let page = self.free.pop().unwrap_or_else(|| {
            let held = self.pages.len();
            self.pages.resize(held + Self::PAGE, 0);
            // 2³² pages would be 4 TiB.
            u32::try_from(held / Self::PAGE).unwrap_or(NO_PAGE - 1)
        });
        let table = &mut self.tables[histogram];
        table.pages[bin / Self::PAGE] = page;
        table.octaves |= 1 << (bin / SUB_BINS);
        &mut self.pages[Self::place(page) + bin % Self::PAGE]
    }

    /// Add empty histograms at the end.
    pub fn add(&mut self, count: usize) {
        self.tables.extend(std::iter::repeat_n(Table::EMPTY, count));
    }

    /// Regroup sets of `from` histograms into sets of `to`, each histogram of a set being the
    /// sum of `factor` old ones.
    pub fn regroup(&mut self, from: usize, to: usize, factor: usize) {
        let sets = self.tables.len() / from.max(1);
        let mut tables = vec![Table::EMPTY; sets * to];
        for (index, old) in self.tables.iter().enumerate() {
            let table = &mut tables[regrouped(index, from, to, factor)];
            table.octaves |= old.octaves;
            let pages = table.pages.iter_mut().zip(&old.pages);
            for (held, &page) in pages.filter(|(_, page)| **page != NO_PAGE) {
                if *held == NO_PAGE {
                    *held = page;
                    continue;
                }
                let (held, page_at) = (Self::place(*held), Self::place(page));
                for bin in 0..Self::PAGE {
                    let count = std::mem::take(&mut self.pages[page_at + bin]);
                    let sum = &mut self.pages[held + bin];
                    *sum = sum.saturating_add(count);
                }
                self.free.push(page);
            }
        }
        self.tables = tables;
    }

    /// Bytes held for pages.
    pub fn page_bytes(&self) -> usize {
        size_of_val(&*self.pages) - self.free.len() * Self::PAGE * size_of::<u32>()
    }

    /// The samples of a range of histograms together.
    pub fn distribution(&self, histograms: std::ops::Range<usize>) -> Distribution {
        let tables = self.tables.get(histograms).unwrap_or_default();
        let octaves = tables.iter().fold(0, |all, table| all | table.octaves);
        let of_octave = |octave| octave * Self::PER_OCTAVE..(octave + 1) * Self::PER_OCTAVE;
        let used = (0..64).filter(|octave| octaves >> octave & 1 == 1);
        let mut merged = Distribution::default();
        let mut sums = vec![0u64; Self::PAGE];
        for part in used.flat_map(of_octave) {
            let pages = tables.iter().map(|table| table.pages[part]);
            let mut pages = pages.filter(|page| *page != NO_PAGE).peekable();
            if pages.peek().is_none() {
                continue;
            }
            sums.fill(0);
            for page in pages.filter_map(|page| self.page(page)) {
                for (sum, &count) in sums.iter_mut().zip(page) {
                    *sum += u64::from(count);
                }
            }
            for (bin, &sum) in (part * Self::PAGE..).zip(&sums) {
                if sum > 0 {
                    merged.push(Self::upper_edge(bin), sum);
                }
            }
        }
        merged
    }

    /// The bin that holds a value: bins of the same width are those of one octave, but for the smallest.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "less than 2¹⁶")]
    fn bin_of(value: u64) -> usize {
        let shift = (value | SUB_BINS as u64).ilog2() - Self::SUB_BITS;
        shift as usize * SUB_BINS + (value >> shift) as usize
    }

    /// Largest value that a bin holds.
    fn upper_edge(bin: usize) -> u64 {
        let shift = (bin / SUB_BINS).saturating_sub(1);
        // `x << shift` with all lower bits set, without overflow in the last bin.
        ((bin - shift * SUB_BINS) as u64) << shift | ((1u64 << shift) - 1)
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
        assert_eq!(held, 4 * 1024);
        histograms.record(5, 7);
        assert_eq!(bins(&histograms, 5), [(7, 1)]);
        assert_eq!(
            histograms.pages.len(),
            5 * 256,
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
