//! From the bins of a run to its record.

use super::bins::Bin;
use super::{MAX_CDF_POINTS, RunCollector, SliceState};
use crate::distribution::Distribution;
use crate::mser;
use crate::record::{
    DelayFigures, DropCount, Figures, RunKey, RunRecord, SCHEMA_VERSION, Series, SliceRecord,
};
use slicewise_units::Duration;

/// Write down what `collector` holds.
pub(super) fn record(
    collector: &RunCollector,
    key: RunKey,
    study: String,
    study_digest: String,
    drops: Vec<DropCount>,
) -> RunRecord {
    let grid = &collector.written_grid();
    let received: Vec<u64> = (0..grid.bins)
        .map(|bin| {
            collector
                .slices
                .iter()
                .map(|s| s.bins[bin].received_bytes)
                .sum()
        })
        .collect();
    let bin = Duration::from_nanos(grid.bin_ns);
    let transient = mser::find_transient(&received, bin, collector.params.cycle);
    let steady_from = usize::try_from(transient.end_ns / grid.bin_ns)
        .unwrap_or(0)
        .min(grid.bins);
    // Percentiles begin with the first whole segment of those written, and of those held.
    let steady_segment = (steady_from.next_multiple_of(grid.bins_per_segment))
        .min(grid.bins)
        .div_ceil(collector.grid.bins_per_segment);
    let segments = collector.grid.segments();

    let mut aggregate = Totals::default();
    let mut aggregate_delays = Distribution::default();
    let mut slices = Vec::with_capacity(collector.slices.len());
    for (index, (name, state)) in collector
        .params
        .slices
        .iter()
        .zip(&collector.slices)
        .enumerate()
    {
        let whole = Totals::of(&state.bins[..grid.bins]);
        let steady = Totals::of(&state.bins[steady_from..grid.bins]);
        let delays_between = |from: usize, to: usize| {
            let first = index * collector.stride;
            collector.delays.distribution(first + from..first + to)
        };
        let before = delays_between(0, steady_segment);
        let mut steady_delays = delays_between(steady_segment, segments);
        let whole_delays = before.merged(&steady_delays);
        if steady_delays.total() == 0 && steady.delay_samples > 0 {
            // All of them lie in the segment that rounding up left out.
            let from = steady_from / grid.bins_per_segment * grid.bins_per_segment;
            steady_delays = delays_between(from / collector.grid.bins_per_segment, segments);
        }
        slices.push(SliceRecord {
            slice: name.clone(),
            whole: whole.figures(grid.bin_ns, &whole_delays),
            steady: steady.figures(grid.bin_ns, &steady_delays),
            delay_cdf: steady_delays.cdf(MAX_CDF_POINTS, steady.delay_max_ns),
            iat_sent: state.iat.figures(MAX_CDF_POINTS),
            series: series(state, grid.bins),
            scheduler: None,
        });
        aggregate.add(&steady);
        aggregate_delays = aggregate_delays.merged(&steady_delays);
    }
    RunRecord {
        schema_version: SCHEMA_VERSION,
        study,
        study_digest,
        key,
        duration_ns: grid.duration_ns(),
        bin_ns: grid.bin_ns,
        transient,
        slices,
        aggregate: aggregate.figures(grid.bin_ns, &aggregate_delays),
        drops,
        populations: Vec::new(),
        capture: None,
        flows: Vec::new(),
        hops: Vec::new(),
        live: None,
    }
}

fn series(state: &SliceState, bins: usize) -> Series {
    let bins = &state.bins[..bins];
    Series {
        sent_bytes: bins.iter().map(|b| b.sent_bytes).collect(),
        received_bytes: bins.iter().map(|b| b.received_bytes).collect(),
        sent_frames: bins.iter().map(|b| b.sent_frames).collect(),
        lost_frames: bins.iter().map(|b| b.lost_frames).collect(),
        delay_mean_ns: bins.iter().map(Bin::delay_mean_ns).collect(),
        delay_max_ns: bins.iter().map(|b| b.delay_max_ns).collect(),
    }
}

/// Exact sums over a span of bins.
#[derive(Debug, Clone, Copy)]
struct Totals {
    bins: u64,
    sent_frames: u64,
    sent_bytes: u64,
    received_frames: u64,
    received_bytes: u64,
    lost_frames: u64,
    delay_samples: u64,
    delay_sum_ns: u128,
    delay_min_ns: u64,
    delay_max_ns: u64,
}

impl Default for Totals {
    fn default() -> Self {
        Self {
            bins: 0,
            sent_frames: 0,
            sent_bytes: 0,
            received_frames: 0,
            received_bytes: 0,
            lost_frames: 0,
            delay_samples: 0,
            delay_sum_ns: 0,
            delay_min_ns: u64::MAX,
            delay_max_ns: 0,
        }
    }
}

impl Totals {
    fn of(bins: &[Bin]) -> Self {
        let mut totals = Self {
            bins: bins.len() as u64,
            ..Self::default()
        };
        for bin in bins {
            totals.sent_frames += u64::from(bin.sent_frames);
            totals.sent_bytes += bin.sent_bytes;
            totals.received_frames += u64::from(bin.received_frames);
            totals.received_bytes += bin.received_bytes;
            totals.lost_frames += u64::from(bin.lost_frames);
            totals.delay_samples += u64::from(bin.delay_samples);
            totals.delay_sum_ns += u128::from(bin.delay_sum_ns);
            totals.delay_min_ns = totals.delay_min_ns.min(bin.delay_min_ns);
            totals.delay_max_ns = totals.delay_max_ns.max(bin.delay_max_ns);
        }
        totals
    }

    /// Add another slice's totals over the same span.
    fn add(&mut self, other: &Self) {
        self.bins = other.bins;
        self.sent_frames += other.sent_frames;
        self.sent_bytes += other.sent_bytes;
        self.received_frames += other.received_frames;
        self.received_bytes += other.received_bytes;
        self.lost_frames += other.lost_frames;
        self.delay_samples += other.delay_samples;
        self.delay_sum_ns += other.delay_sum_ns;
        self.delay_min_ns = self.delay_min_ns.min(other.delay_min_ns);
        self.delay_max_ns = self.delay_max_ns.max(other.delay_max_ns);
    }

    fn figures(&self, bin_ns: u64, delays: &Distribution) -> Figures {
        let span_ns = self.bins * bin_ns;
        let rate = |bytes: u64| match span_ns {
            0 => 0.0,
            _ => bytes as f64 * 8e9 / span_ns as f64,
        };
        let loss_ratio = match self.sent_frames {
            0 => 0.0,
            sent => self.lost_frames as f64 / sent as f64,
        };
        Figures {
            span_ns,
            sent_frames: self.sent_frames,
            sent_bytes: self.sent_bytes,
            received_frames: self.received_frames,
            received_bytes: self.received_bytes,
            lost_frames: self.lost_frames,
            offered_bits_per_second: rate(self.sent_bytes),
            throughput_bits_per_second: rate(self.received_bytes),
            loss_ratio,
            delay: self.delay_figures(delays),
        }
    }

    fn delay_figures(&self, delays: &Distribution) -> DelayFigures {
        if self.delay_samples == 0 {
            return DelayFigures::default();
        }
        // A bin's upper edge may lie past the largest sample, which is known exactly.
        let quantile = |numerator, denominator| {
            delays
                .quantile(numerator, denominator)
                .clamp(self.delay_min_ns, self.delay_max_ns)
        };
        DelayFigures {
            samples: self.delay_samples,
            mean_ns: self.delay_sum_ns as f64 / self.delay_samples as f64,
            min_ns: self.delay_min_ns,
            p50_ns: quantile(1, 2),
            p99_ns: quantile(99, 100),
            p999_ns: quantile(999, 1000),
            max_ns: self.delay_max_ns,
        }
    }
}
