//! Growth of a slice's delay while it is measured.
//!
//! The transient of a run is found by throughput, which is steady while a queue fills. So the delay has to be looked at itself: one that
//! grows through the run has no mean, and what it will come to is not known.

use crate::estimate::Sample;
use crate::record::{RunRecord, SliceRecord};

/// Mean delay of a slice in the two halves of a run after the transient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DelayGrowth {
    /// The mean of the second half less that of the first, ns.
    pub ns: f64,
    /// From the middle of one half to that of the other, ns.
    pub over_ns: f64,
}

impl DelayGrowth {
    /// `None` where a half has no delay.
    #[must_use]
    pub fn of(record: &RunRecord, slice: &SliceRecord) -> Option<Self> {
        let bins = slice.series.delay_mean_ns.get(record.steady_from()..)?;
        let (first, second) = bins.split_at(bins.len() / 2);
        let mean = |half: &[Option<u64>]| {
            let delays = || half.iter().flatten().map(|ns| *ns as f64);
            let number = delays().count() as f64;
            (number > 0.0).then(|| delays().sum::<f64>() / number)
        };
        Some(Self {
            ns: mean(second)? - mean(first)?,
            over_ns: bins.len() as f64 / 2.0 * record.bin_ns as f64,
        })
    }

    /// The growth that several runs show: the lower bound of its mean (Student), or that of a single run.
    #[must_use]
    pub fn shown(runs: &[Self], confidence: f64) -> Option<Self> {
        let values: Vec<f64> = runs.iter().map(|run| run.ns).collect();
        let sample = Sample::of(&values)?;
        let bounds = sample.one_sided_bounds(confidence);
        Some(Self {
            ns: bounds.low.unwrap_or(sample.mean),
            over_ns: runs.iter().map(|run| run.over_ns).sum::<f64>() / f64::from(sample.count),
        })
    }

    /// ns of delay in a second.
    #[must_use]
    pub fn per_second(self) -> f64 {
        self.ns * 1e9 / self.over_ns.max(1.0)
    }
}
