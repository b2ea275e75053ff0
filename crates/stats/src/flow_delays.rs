//! The delays of one flow: exact moments and a histogram small enough for flows by the hundred
//! thousand.
//!
//! Log-linear like HdrHistogram (Tene): 128 bins per octave, so that no bin is wider than 1/128
//! of its values, and width 1 below 128. Bins come in pages of 32, a quarter of an octave, and only
//! pages in use take memory: 132 bytes each.

use crate::distribution::{Distribution, Moments};
use crate::record::DelayFigures;

const SUB_BITS: u32 = 7;
const SUB_BINS: u64 = 1 << SUB_BITS;
const PAGE_BITS: u32 = 5;
const PAGE_BINS: usize = 1 << PAGE_BITS;

/// Collects delays or other times one by one.
#[derive(Debug, Clone, Default)]
pub struct FlowDelays {
    /// Sorted by number.
    pages: Vec<Page>,
    /// Index of the page last used: delays of a flow differ little from one to the next.
    last: u32,
    moments: Moments,
}

#[derive(Debug, Clone)]
struct Page {
    number: u16,
    counts: [u32; PAGE_BINS],
}

impl FlowDelays {
    /// Count one delay.
    #[inline]
    pub fn record(&mut self, delay_ns: u64) {
        self.count(delay_ns, 1);
        self.moments.record(delay_ns);
    }

    /// Add the counts of another one.
    pub fn merge(&mut self, other: &Self) {
        for page in &other.pages {
            let own = self.page(page.number);
            for (sum, count) in own.counts.iter_mut().zip(page.counts) {
                *sum = sum.saturating_add(count);
            }
        }
        self.moments = self.moments.merged(&other.moments);
    }

    /// Number of delays counted.
    #[must_use]
    pub const fn samples(&self) -> u64 {
        self.moments.samples
    }

    /// Mean, smallest and largest are exact; quantiles are too large by 1/128 at most.
    #[must_use]
    pub fn figures(&self) -> DelayFigures {
        self.moments.figures(&self.distribution())
    }

    /// The delays as counts in bins.
    #[must_use]
    pub fn distribution(&self) -> Distribution {
        let mut distribution = Distribution::default();
        for page in &self.pages {
            let first = usize::from(page.number) << PAGE_BITS;
            for (bin, &count) in (first..).zip(&page.counts) {
                distribution.push(upper_edge(bin), count.into());
            }
        }
        distribution
    }

    /// Bytes held, this structure included.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.pages.capacity() * size_of::<Page>()
    }

    #[inline]
    fn count(&mut self, value: u64, by: u32) {
        let bin = bin_of(value);
        let page = self.page(bin >> PAGE_BITS);
        if let Some(counter) = page.counts.get_mut(usize::from(bin) & (PAGE_BINS - 1)) {
            *counter = counter.saturating_add(by);
        }
    }

    #[inline]
    fn page(&mut self, number: u16) -> &mut Page {
        let last = self.last as usize;
        let index = match self.pages.get(last) {
            Some(page) if page.number == number => last,
            _ => self.find_page(number),
        };
        &mut self.pages[index]
    }

    #[cold]
    fn find_page(&mut self, number: u16) -> usize {
        let found = self.pages.binary_search_by_key(&number, |page| page.number);
        let index = found.unwrap_or_else(|place| {
            self.pages.reserve_exact(1);
            let counts = [0; PAGE_BINS];
            self.pages.insert(place, Page { number, counts });
            place
        });
        self.last = u32::try_from(index).unwrap_or(0);
        index
    }
}

/// The bin that holds `value`: 58 · 128 of them for 64-bit values.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "below 58 · 128")]
fn bin_of(value: u64) -> u16 {
    let octave = u64::BITS - SUB_BITS - (value | (SUB_BINS - 1)).leading_zeros();
    let shift = octave.saturating_sub(1);
    // In the octaves above the first the top bit is set, so the sum begins a new octave.
    (shift << SUB_BITS) as u16 + (value >> shift) as u16
}

/// Largest value that a bin holds.
fn upper_edge(bin: usize) -> u64 {
    let bin = bin as u64;
    if bin < 2 * SUB_BINS {
        return bin;
    }
    let shift = (bin >> SUB_BITS) - 1;
    let sub_bin = SUB_BINS + (bin & (SUB_BINS - 1));
    sub_bin << shift | ((1u64 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_value_lies_in_a_bin_no_wider_than_a_hundredth() {
        let powers = (0..64).flat_map(|bit| {
            let power = 1u64 << bit;
            [power - 1, power, power + power / 3, power | (power - 1)]
        });
        for value in (0..2_000).chain(powers) {
            let edge = upper_edge(usize::from(bin_of(value)));
            assert!(edge >= value, "{edge} < {value}");
            assert!(edge - value <= value / 100, "{edge} is far above {value}");
        }
    }

    #[test]
    fn a_flow_through_one_queue_takes_less_than_a_kilobyte() {
        let mut delays = FlowDelays::default();
        for packet in 0..10_000u64 {
            delays.record(300_000 + packet * 7919 % 200_000);
        }
        assert!(delays.memory_bytes() < 1_000, "{}", delays.memory_bytes());
    }

    #[test]
    fn no_delays_give_no_figures() {
        assert_eq!(FlowDelays::default().figures(), DelayFigures::default());
        let mut one = FlowDelays::default();
        one.merge(&FlowDelays::default());
        one.record(u64::MAX);
        let figures = one.figures();
        assert_eq!((figures.min_ns, figures.p50_ns), (u64::MAX, u64::MAX));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn quantiles_are_those_of_the_samples_within_a_hundredth(
            values in prop::collection::vec(prop_oneof![0u64..300, 1u64..10_000_000_000, any::<u64>()], 1..300),
            at in 0usize..300,
        ) {
            let (mut whole, mut left, mut right) =
                (FlowDelays::default(), FlowDelays::default(), FlowDelays::default());
            for (index, &value) in values.iter().enumerate() {
                whole.record(value);
                if index < at { left.record(value) } else { right.record(value) }
            }
            left.merge(&right);
            prop_assert_eq!(left.figures(), whole.figures());
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let figures = whole.figures();
            prop_assert_eq!((figures.min_ns, figures.max_ns), (sorted[0], sorted[sorted.len() - 1]));
            for (quantile, per_100_000) in [
                (figures.p50_ns, 50_000),
                (figures.p90_ns, 90_000),
                (figures.p95_ns, 95_000),
                (figures.p99_ns, 99_000),
                (figures.p999_ns, 99_900),
                (figures.p9999_ns, 99_990),
                (figures.p99999_ns, 99_999),
            ] {
                let exact = sorted[(sorted.len() * per_100_000).div_ceil(100_000) - 1];
                prop_assert!(quantile >= exact && quantile - exact <= exact / 100, "{quantile} {exact}");
            }
        }
    }
}
