//! A small histogram of round-trip times.

/// Round-trip times of one connection.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RttFigures {
    /// Round trips measured. If 0, all other fields are 0.
    pub samples: u64,
    /// Smallest, ns.
    pub min_ns: u64,
    /// Mean, ns.
    pub mean_ns: f64,
    /// Median, ns, at most a sixteenth too large.
    pub p50_ns: u64,
    /// 99th percentile, ns, at most a sixteenth too large.
    pub p99_ns: u64,
    /// Largest, ns.
    pub max_ns: u64,
}

/// Counts in logarithmic bins: sixteen per doubling. Bins from the first to the last used are stored, 4
/// bytes each.
#[derive(Debug, Clone, Default)]
pub(super) struct RttHistogram {
    first_bin: u32,
    bins: Vec<u32>,
    samples: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

impl RttHistogram {
    pub(super) fn add(&mut self, rtt_ns: u64) {
        if self.samples == 0 {
            self.min_ns = rtt_ns;
        }
        self.samples += 1;
        self.sum_ns += u128::from(rtt_ns);
        self.min_ns = self.min_ns.min(rtt_ns);
        self.max_ns = self.max_ns.max(rtt_ns);
        let bin = bin_of(rtt_ns);
        if self.bins.is_empty() {
            self.first_bin = bin;
        }
        if bin < self.first_bin {
            let missing = (self.first_bin - bin) as usize;
            self.bins.splice(0..0, std::iter::repeat_n(0, missing));
            self.first_bin = bin;
        }
        let at = (bin - self.first_bin) as usize;
        if at >= self.bins.len() {
            self.bins.resize(at + 1, 0);
        }
        if let Some(count) = self.bins.get_mut(at) {
            *count = count.saturating_add(1);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a figure of a report")]
    pub(super) fn figures(&self) -> RttFigures {
        if self.samples == 0 {
            return RttFigures::default();
        }
        RttFigures {
            samples: self.samples,
            min_ns: self.min_ns,
            mean_ns: self.sum_ns as f64 / self.samples as f64,
            p50_ns: self.quantile(50),
            p99_ns: self.quantile(99),
            max_ns: self.max_ns,
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bins.capacity() * size_of::<u32>()
    }

    /// The smallest value at or below which `percent` of the samples are (nearest rank), rounded up to
    /// the end of its bin.
    fn quantile(&self, percent: u64) -> u64 {
        let counted: u64 = self.bins.iter().map(|&count| u64::from(count)).sum();
        let rank = (counted * percent).div_ceil(100).max(1);
        let mut below = 0;
        for (bin, &count) in (self.first_bin..).zip(&self.bins) {
            below += u64::from(count);
            if below >= rank {
                return end_of(bin).clamp(self.min_ns, self.max_ns);
            }
        }
        self.max_ns
    }
}

/// Values below 16 have bins of their own; above, the upper five bits select.
fn bin_of(value: u64) -> u32 {
    let bits = u64::BITS - value.leading_zeros();
    if bits <= SUB_BITS + 1 {
        return u32::try_from(value).unwrap_or(u32::MAX);
    }
    let shift = bits - SUB_BITS - 1;
    let upper = u32::try_from(value >> shift).unwrap_or(u32::MAX);
    (shift << SUB_BITS) + upper
}

/// The largest value of a bin.
fn end_of(bin: u32) -> u64 {
    let shift = (bin >> SUB_BITS).saturating_sub(1);
    let upper = u64::from(bin - (shift << SUB_BITS));
    // The last bin ends at the largest value: in 64 bits the addition wraps to it.
    ((upper + 1) << shift).wrapping_sub(1)
}

/// Sixteen bins per doubling.
const SUB_BITS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bin_ends_at_most_a_sixteenth_above_its_values(value in any::<u64>(), shift in 0_u32..64) {
            let value = value >> shift;
            let end = end_of(bin_of(value));
            prop_assert!(end >= value);
            prop_assert!(end - value <= value / 16);
            prop_assert_eq!(bin_of(end), bin_of(value));
            if let Some(next) = end.checked_add(1) {
                prop_assert_eq!(bin_of(next), bin_of(value) + 1);
            }
        }

        #[test]
        fn quantiles_are_those_of_the_samples(
            values in proptest::collection::vec(1_u64..1_000_000_000, 1..300),
        ) {
            let mut histogram = RttHistogram::default();
            for &value in &values {
                histogram.add(value);
            }
            let mut sorted = values;
            sorted.sort_unstable();
            let figures = histogram.figures();
            let exact = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100) - 1];
            for (found, exact) in [(figures.p50_ns, exact(50)), (figures.p99_ns, exact(99))] {
                prop_assert!(found >= exact && found - exact <= exact / 16);
            }
            prop_assert_eq!(figures.min_ns, sorted[0]);
            prop_assert_eq!(figures.max_ns, sorted[sorted.len() - 1]);
        }
    }
}
