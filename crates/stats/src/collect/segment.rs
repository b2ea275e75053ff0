//! Delays and their variation in a segment of time.

use super::histogram::{Histogram, Pages};
use crate::distribution::{Distribution, Moments};

/// Figures of the packets that one slice sent in a segment of time and that were received.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    delays: Histogram,
    variations: Histogram<64>,
    /// Of the variations, exactly.
    variation: Moments,
}

impl Segment {
    pub const EMPTY: Self = Self {
        delays: Histogram::EMPTY,
        variations: Histogram::EMPTY,
        variation: Moments::NONE,
    };
}

const _: () = assert!(size_of::<Segment>() == 816, "as the documentation says");

/// The counts of segments.
#[derive(Debug, Clone, Default)]
pub(super) struct SegmentPages {
    delays: Pages,
    /// 128 bins per octave: variations are spread over more octaves than delays.
    variations: Pages<128, 64>,
}

impl SegmentPages {
    #[inline(always)]
    pub fn record_delay(&mut self, segment: &mut Segment, delay_ns: u64) {
        self.delays.record(&mut segment.delays, delay_ns);
    }

    #[inline(always)]
    pub fn record_variation(&mut self, segment: &mut Segment, variation_ns: u64) {
        self.variations
            .record(&mut segment.variations, variation_ns);
        segment.variation.record(variation_ns);
    }

    /// Forget all counts, keep the memory. Segments that had pages here must be emptied, too.
    pub fn clear(&mut self) {
        self.delays.clear();
        self.variations.clear();
    }

    /// Turn the segments of a slice into `to`, each the sum of `factor` old ones.
    pub fn regroup(&mut self, segments: &mut Vec<Segment>, to: usize, factor: usize) {
        let old = std::mem::replace(segments, vec![Segment::EMPTY; to]);
        for (index, other) in old.iter().enumerate() {
            let sum = &mut segments[(index / factor).min(to - 1)];
            self.delays.merge(&mut sum.delays, &other.delays);
            self.variations
                .merge(&mut sum.variations, &other.variations);
            sum.variation = sum.variation.merged(&other.variation);
        }
    }

    /// The delays of some segments together.
    pub fn delays(&self, segments: &[Segment]) -> Distribution {
        let histograms = segments.iter().map(|segment| &segment.delays);
        self.delays.distribution(histograms)
    }

    /// The variations of some segments together.
    pub fn variations(&self, segments: &[Segment]) -> (Moments, Distribution) {
        let histograms = segments.iter().map(|segment| &segment.variations);
        let sum = |sum: Moments, segment: &Segment| sum.merged(&segment.variation);
        (
            segments.iter().fold(Moments::NONE, sum),
            self.variations.distribution(histograms),
        )
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.delays.bytes() + self.variations.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regrouping_adds_neighbours() {
        let (mut pages, mut segments) = (SegmentPages::default(), vec![Segment::EMPTY; 4]);
        for (segment, value) in [(0, 1), (1, 2), (3, 3)] {
            pages.record_delay(&mut segments[segment], value);
            pages.record_variation(&mut segments[segment], 10 * value);
        }
        pages.regroup(&mut segments, 3, 2);
        let bins = |n: usize| pages.delays(&segments[n..=n]).bins().to_vec();
        assert_eq!(bins(0), [(1, 1), (2, 1)]);
        assert_eq!(bins(1), [(3, 1)]);
        assert_eq!(bins(2), []);
        let (moments, variations) = pages.variations(&segments[..1]);
        assert_eq!(
            (moments.samples, moments.sum_ns, moments.max_ns),
            (2, 30, 20)
        );
        assert_eq!(variations.bins(), [(10, 1), (20, 1)]);
        assert_eq!(pages.delays(&segments).total(), 3);
    }
}
