//! Log-linear histograms with three significant digits, whose counts lie in pages that many histograms share.
//!
//! The layout is that of HdrHistogram (Tene): 1,024 bins per octave, each as wide as 1/1,024 of the
//! octave's lower end, and width 1 below 2,048; or another power of two instead of 1,024. Only octaves
//! in use take memory, or halves of them (2 KiB each), which is what lets a run keep a histogram for each segment of time;
//! and one is counted with a shift, a table look-up and an addition.

use super::bins::count;
use crate::distribution::Distribution;

const NO_PAGE: u32 = u32::MAX;

/// Which page holds which bins of a histogram, for up to so many pages.
#[derive(Debug, Clone)]
pub(super) struct Histogram<const TABLE: usize = 128>([u32; TABLE]);

impl<const TABLE: usize> Histogram<TABLE> {
    pub const EMPTY: Self = Self([NO_PAGE; TABLE]);
}

/// The counts of histograms with `TABLE / 64` pages of `PAGE` bins per octave; both powers of two.
#[derive(Debug, Clone, Default)]
pub(super) struct Pages<const PAGE: usize = 512, const TABLE: usize = 128> {
    /// One page after the other.
    counts: Vec<u32>,
    /// Free pages.
    free: Vec<u32>,
}

impl<const PAGE: usize, const TABLE: usize> Pages<PAGE, TABLE> {
    /// Pages of an octave.
    const PER_OCTAVE: usize = TABLE / 64;
    /// Bins of an octave.
    const SUB_BINS: u64 = {
        // There is an octave for each bit that may be the highest of a value.
        assert!(PAGE.is_power_of_two() && TABLE.is_power_of_two() && TABLE >= 64);
        // With one bin an octave, zero would have none.
        assert!(PAGE > 1);
        (PAGE * Self::PER_OCTAVE) as u64
    };

    /// Forget all counts, keep the memory. Histograms that had pages here must be emptied, too.
    pub fn clear(&mut self) {
        self.counts.clear();
        self.free.clear();
    }

    /// Count `value` in a histogram of these pages; counters saturate.
    #[inline(always)]
    pub fn record(&mut self, histogram: &mut Histogram<TABLE>, value: u64) {
        let (index, bin) = Self::bin_of(value);
        match self.counts.get_mut(Self::place(histogram.0[index]) + bin) {
            Some(counter) => count(counter),
            // It is `NO_PAGE`.
            None => count(self.add_page(histogram, index, bin)),
        }
    }

    /// Where a page begins.
    #[inline]
    const fn place(page: u32) -> usize {
        (page as usize).saturating_mul(PAGE)
    }

    /// The counts of a page; `None` for `NO_PAGE`.
    fn page(&self, page: u32) -> Option<&[u32]> {
        self.counts.get(Self::place(page)..)?.get(..PAGE)
    }

    #[cold]
    fn add_page(&mut self, histogram: &mut Histogram<TABLE>, index: usize, bin: usize) -> &mut u32 {
        let page = self.free.pop().unwrap_or_else(|| {
            let held = self.counts.len();
            self.counts.resize(held + PAGE, 0);
            // 2³² pages would be 2 TiB at least.
            u32::try_from(held / PAGE).unwrap_or(NO_PAGE - 1)
        });
        histogram.0[index] = page;
        &mut self.counts[Self::place(page) + bin]
    }

    /// Add the counts of `other` to those of `sum`. Its pages are no longer its own.
    pub fn merge(&mut self, sum: &mut Histogram<TABLE>, other: &Histogram<TABLE>) {
        let pages = sum.0.iter_mut().zip(&other.0);
        for (held, &page) in pages.filter(|(_, page)| **page != NO_PAGE) {
            if *held == NO_PAGE {
                *held = page;
                continue;
            }
            let (held, page_at) = (Self::place(*held), Self::place(page));
            for bin in 0..PAGE {
                let count = std::mem::take(&mut self.counts[page_at + bin]);
                let sum = &mut self.counts[held + bin];
                *sum = sum.saturating_add(count);
            }
            self.free.push(page);
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.counts) - self.free.len() * size_of::<[u32; PAGE]>()
    }

    /// The samples of some histograms of these pages together.
    pub fn distribution<'h>(
        &self,
        histograms: impl Iterator<Item = &'h Histogram<TABLE>> + Clone,
    ) -> Distribution {
        let mut merged = Distribution::default();
        let mut sums = [0u64; PAGE];
        for index in 0..TABLE {
            let pages = histograms.clone().map(|histogram| histogram.0[index]);
            let mut pages = pages.filter_map(|page| self.page(page)).peekable();
            if pages.peek().is_none() {
                continue;
            }
            sums.fill(0);
            for page in pages {
                for (sum, &count) in sums.iter_mut().zip(page) {
                    *sum += u64::from(count);
                }
            }
            for (bin, &sum) in (0..).zip(&sums) {
                if sum > 0 {
                    merged.push(Self::upper_edge(index, bin), sum);
                }
            }
        }
        merged
    }

    /// The page that counts a value, and its bin there. What is more than twice the bins of an octave loses its last bits; pages
    /// are in the order of values.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "less than 2¹⁷")]
    fn bin_of(value: u64) -> (usize, usize) {
        let shift = (value | Self::SUB_BINS).ilog2() - Self::SUB_BINS.ilog2();
        let scaled = (value >> shift) as usize;
        let index = shift as usize * Self::PER_OCTAVE + scaled / PAGE;
        (index % TABLE, scaled % PAGE)
    }

    /// Largest value that a bin of a page counts.
    fn upper_edge(index: usize, bin: u64) -> u64 {
        let shift = (index / Self::PER_OCTAVE).saturating_sub(1);
        let scaled = ((index - shift * Self::PER_OCTAVE) * PAGE) as u64 + bin;
        // `x << shift` with all lower bits set, without overflow in the last bin.
        scaled << shift | ((1u64 << shift) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram as Reference;
    use proptest::prelude::*;
    use std::iter::once;

    #[test]
    fn every_value_lies_in_a_bin_no_wider_than_a_thousandth() {
        for value in (0..64).flat_map(|bit| {
            let power = 1u64 << bit;
            [power - 1, power, power + power / 3, power | (power - 1)]
        }) {
            let (mut pages, mut histogram) = (<Pages>::default(), Histogram::EMPTY);
            pages.record(&mut histogram, value);
            let edge = pages.distribution(once(&histogram)).quantile(1, 1);
            assert!(edge >= value, "{edge} < {value}");
            assert!(edge - value <= value / 1_000, "{edge} is far above {value}");
            let (mut coarse, mut histogram) = (Pages::<128, 64>::default(), Histogram::EMPTY);
            coarse.record(&mut histogram, value);
            let edge = coarse.distribution(once(&histogram)).quantile(1, 1);
            assert!(edge >= value, "{edge} < {value}");
            assert!(edge - value <= value / 128, "{edge} is far above {value}");
        }
    }

    #[test]
    fn samples_of_several_histograms_are_merged() {
        let (mut pages, mut of) = (<Pages>::default(), [Histogram::EMPTY; 3]);
        pages.record(&mut of[0], 7);
        pages.record(&mut of[1], 7);
        pages.record(&mut of[2], 1_000_000);
        assert_eq!(pages.distribution(of[0..2].iter()).bins(), &[(7, 2)]);
        assert_eq!(pages.distribution(of[0..3].iter()).total(), 3);
        assert_eq!(pages.distribution(of[2..2].iter()).total(), 0);
    }

    #[test]
    fn pages_of_what_was_merged_are_used_again() {
        let (mut pages, mut sum) = (<Pages>::default(), Histogram::EMPTY);
        let [mut one, mut other] = [Histogram::EMPTY; 2];
        pages.record(&mut one, 1);
        pages.record(&mut other, 2);
        pages.record(&mut other, 5_000);
        pages.merge(&mut sum, &one);
        pages.merge(&mut sum, &other);
        let bins = pages.distribution(once(&sum)).bins().to_vec();
        assert_eq!(bins.len(), 3);
        assert_eq!(bins[..2], [(1, 1), (2, 1)]);
        assert_eq!(pages.bytes(), 2 * 2048);
        let mut next = Histogram::EMPTY;
        pages.record(&mut next, 7);
        assert_eq!(pages.distribution(once(&next)).bins(), [(7, 1)]);
        assert_eq!(pages.counts.len(), 3 * 512, "the page left is used again");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn quantiles_equal_those_of_hdrhistogram_within_its_resolution(
            values in prop::collection::vec(1u64..10_000_000_000, 1..500),
        ) {
            let (mut pages, mut ours) = (<Pages>::default(), Histogram::EMPTY);
            let mut reference = Reference::<u32>::new(3).unwrap();
            for &value in &values {
                pages.record(&mut ours, value);
                reference.record(value).unwrap();
            }
            let distribution = pages.distribution(once(&ours));
            for per_mille in [1u32, 10, 500, 900, 990, 999, 1000] {
                let own = distribution.quantile(per_mille, 1000) as f64;
                let theirs = reference.value_at_quantile(f64::from(per_mille) / 1000.0) as f64;
                prop_assert!((own - theirs).abs() <= theirs.max(own) * 0.001 + 1.0);
            }
        }
    }
}
