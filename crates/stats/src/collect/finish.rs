//! From the bins of a run to its record.

use super::bins::{Bin, Totals};
use super::{MAX_CDF_POINTS, MeasuredPhase, RunCollector, SliceState};
use crate::distribution::{Distribution, Moments};
use crate::mser;
use crate::objective::Percentile;
use crate::phase::{PhaseRecord, PhaseSliceRecord};
use crate::record::{
    DelayFigures, DropCount, Figures, RunKey, RunRecord, SCHEMA_VERSION, SentDelay, Series,
    SliceRecord, VariationFigures,
};
use crate::tail::DelayFrom;
use slicewise_units::Duration;

/// The record of `collector`.
pub(super) fn record(collector: &RunCollector, key: RunKey, drops: Vec<DropCount>) -> RunRecord {
    let grid = &collector.written_grid();
    let served: Vec<u64> = (0..grid.bins)
        .map(|bin| {
            let slices = collector.slices.iter();
            slices.map(|s| s.bins[bin].served_bytes).sum()
        })
        .collect();
    let bin = Duration::from_nanos(grid.bin_ns);
    let transient = mser::find_transient(&served, bin, collector.params.cycle);
    let steady_from = usize::try_from(transient.end_ns / grid.bin_ns)
        .unwrap_or(0)
        .min(grid.bins);
    // Percentiles begin with the first whole segment of those written, and of those held.
    let rounded_from = (steady_from.next_multiple_of(grid.bins_per_segment)).min(grid.bins);
    let steady_segment = collector.grid.segment_from(rounded_from);
    let segments = collector.grid.segments();

    let mut aggregate = Totals::default();
    let mut aggregate_samples = Samples::default();
    let mut aggregate_smallest_ns = u64::MAX;
    let mut slices = Vec::with_capacity(collector.slices.len());
    for (index, (slice, state)) in collector
        .params
        .slices
        .iter()
        .zip(&collector.slices)
        .enumerate()
    {
        let whole = Totals::of(&state.bins[..grid.bins]);
        let steady = Totals::of(&state.bins[steady_from..grid.bins]);
        let between = |from: usize, to: usize| Samples::of(collector, state, from..to);
        let before = between(0, steady_segment);
        let (mut after, mut samples_from) = (between(steady_segment, segments), rounded_from);
        let all = before.merged(&after);
        if after.delays.total() == 0 && steady.delay.samples > 0 {
            // All of them lie in the segment that rounding up left out.
            samples_from = steady_from / grid.bins_per_segment * grid.bins_per_segment;
            after = between(collector.grid.segment_of(samples_from), segments);
        }
        let smallest_ns = whole.delay.min_ns;
        slices.push(SliceRecord {
            slice: slice.name.clone(),
            whole: whole.figures(grid.bin_ns, &all, smallest_ns),
            steady: steady.figures(grid.bin_ns, &after, smallest_ns),
            delay_of_sent: slice.delay.and_then(|limit| {
                let lost = Totals::of(&state.bins[samples_from..grid.bins]).lost_frames;
                delay_of_sent(limit.at, &after.delays, lost, steady.delay.max_ns)
            }),
            delay_cdf: after.delays.cdf(MAX_CDF_POINTS, steady.delay.max_ns),
            delay_from: delay_from(collector, state),
            iat_sent: state.iat_sent.figures(MAX_CDF_POINTS),
            iat_received: Some(state.iat_received.figures(MAX_CDF_POINTS)),
            series: series(state, grid.bins, has_limit(collector, index)),
            ..SliceRecord::default()
        });
        aggregate.add(&steady);
        aggregate_samples = aggregate_samples.merged(&after);
        aggregate_smallest_ns = aggregate_smallest_ns.min(smallest_ns);
    }
    RunRecord {
        schema_version: SCHEMA_VERSION,
        key,
        duration_ns: grid.duration_ns(),
        bin_ns: grid.bin_ns,
        transient,
        slices,
        aggregate: aggregate.figures(grid.bin_ns, &aggregate_samples, aggregate_smallest_ns),
        drops,
        phases: phases(collector),
        ..RunRecord::default()
    }
}

/// The phases that are measured for themselves.
fn phases(collector: &RunCollector) -> Vec<PhaseRecord> {
    let phases = collector.phases.iter();
    phases.map(|phase| of_phase(collector, phase)).collect()
}

fn of_phase(collector: &RunCollector, phase: &MeasuredPhase) -> PhaseRecord {
    let grid = &collector.grid;
    let bin = |at: Duration| usize::try_from(at.nanos() / grid.bin_ns).unwrap_or(usize::MAX);
    let (begins, from, ends) = (bin(phase.begins), bin(phase.measured_from), bin(phase.ends));
    let segments = grid.segment_of(from)..grid.segment_of(ends);
    let (mut aggregate, mut all, mut smallest_ns) =
        (Totals::default(), Samples::default(), u64::MAX);
    let states = collector.params.slices.iter().zip(&collector.slices);
    let slices = states.enumerate().map(|(index, (slice, state))| {
        let limit = phase.delays.get(index).copied().unwrap_or(slice.delay);
        let totals = Totals::of(&state.bins[from..ends]);
        let samples = Samples::of(collector, state, segments.clone());
        aggregate.add(&totals);
        all = all.merged(&samples);
        // Of the frames sent in the run, as that of the whole run.
        let own_smallest_ns = Totals::of(&state.bins[..grid.bins]).delay.min_ns;
        smallest_ns = smallest_ns.min(own_smallest_ns);
        PhaseSliceRecord {
            figures: totals.figures(grid.bin_ns, &samples, own_smallest_ns),
            delay_of_sent: limit.and_then(|limit| {
                let (lost, max_ns) = (totals.lost_frames, totals.delay.max_ns);
                delay_of_sent(limit.at, &samples.delays, lost, max_ns)
            }),
            delay_cdf: samples.delays.cdf(MAX_CDF_POINTS, totals.delay.max_ns),
            reordered_frames: (state.bins[begins..ends].iter())
                .map(|bin| u64::from(bin.reordered_frames))
                .sum(),
        }
    });
    PhaseRecord {
        phase: phase.name.clone(),
        measured_from_ns: phase.measured_from.nanos(),
        ends_ns: phase.ends.nanos(),
        slices: slices.collect(),
        aggregate: aggregate.figures(grid.bin_ns, &all, smallest_ns),
        ..PhaseRecord::default()
    }
}

/// The percentile of frames whose fate is known; those lost have an infinite delay.
fn delay_of_sent(
    at: Percentile,
    delays: &Distribution,
    lost_frames: u64,
    max_ns: u64,
) -> Option<SentDelay> {
    let known = u128::from(delays.total()) + u128::from(lost_frames);
    let rank = (known * u128::from(at.per_100_000())).div_ceil(100_000);
    let rank = u64::try_from(rank).unwrap_or(u64::MAX);
    (known > 0).then(|| SentDelay {
        at,
        ns: delays.at_rank(rank).map(|ns| ns.min(max_ns)),
    })
}

/// The median delay from each segment on, where it is kept.
fn delay_from(collector: &RunCollector, state: &SliceState) -> Vec<DelayFrom> {
    if !collector.keeps_medians {
        return Vec::new();
    }
    let grid = &collector.written_grid();
    let mut end = collector.grid.segments();
    let mut delays = Distribution::default();
    // A value of a distribution may lie above the largest delay.
    let (mut end_bin, mut max_ns) = (grid.bins, 0);
    let starts = (0..grid.bins).step_by(grid.bins_per_segment.max(1));
    let from = |bin: usize| {
        let segment = collector.grid.segment_from(bin);
        let between = Samples::of(collector, state, segment..end).delays;
        (delays, end) = (delays.merged(&between), segment);
        let largest = state.bins[bin..end_bin].iter().map(|b| b.delay_max_ns);
        (max_ns, end_bin) = (largest.fold(max_ns, u64::max), bin);
        DelayFrom {
            from_ns: bin as u64 * grid.bin_ns,
            p50_ns: (delays.at_rank(delays.total().div_ceil(2).max(1))).map(|ns| ns.min(max_ns)),
        }
    };
    let mut medians: Vec<DelayFrom> = starts.rev().map(from).collect();
    medians.reverse();
    medians
}

/// Returns true if frames of a slice may be late in any phase.
fn has_limit(collector: &RunCollector, slice: usize) -> bool {
    let mut phases = collector.phases.iter();
    phases.any(|phase| phase.delays.get(slice).is_some_and(Option::is_some))
}

fn series(state: &SliceState, bins: usize, has_limit: bool) -> Series {
    let bins = &state.bins[..bins];
    let has_limit = has_limit || state.delay_limit_ns < u64::MAX;
    let late_frames = bins.iter().filter(|_| has_limit).map(|b| b.late_frames);
    Series {
        sent_bytes: bins.iter().map(|b| b.sent_bytes).collect(),
        received_bytes: bins.iter().map(|b| b.received_bytes).collect(),
        served_bytes: bins.iter().map(|b| b.served_bytes).collect(),
        lost_bytes: bins.iter().map(|b| b.lost_bytes).collect(),
        sent_frames: bins.iter().map(|b| b.sent_frames).collect(),
        lost_frames: bins.iter().map(|b| b.lost_frames).collect(),
        delay_mean_ns: bins.iter().map(Bin::delay_mean_ns).collect(),
        delay_max_ns: bins.iter().map(Bin::delay_max_ns).collect(),
        late_frames: late_frames.collect(),
    }
}

/// Percentiles and delay variation over a span of time.
#[derive(Debug, Default)]
struct Samples {
    delays: Distribution,
    variations: Distribution,
    variation: Moments,
}

impl Samples {
    /// Over a range of segments.
    fn of(collector: &RunCollector, state: &SliceState, segments: std::ops::Range<usize>) -> Self {
        let segments = state.segments.get(segments).unwrap_or_default();
        let (variation, variations) = collector.pages.variations(segments);
        Self {
            delays: collector.pages.delays(segments),
            variations,
            variation,
        }
    }

    fn merged(&self, other: &Self) -> Self {
        Self {
            delays: self.delays.merged(&other.delays),
            variations: self.variations.merged(&other.variations),
            variation: self.variation.merged(&other.variation),
        }
    }
}

impl Totals {
    /// `smallest_ns` is the smallest delay of the run, which delay variation is counted from.
    fn figures(&self, bin_ns: u64, samples: &Samples, smallest_ns: u64) -> Figures {
        let delay = self.delay.figures(&samples.delays);
        Figures {
            variation: self.variation_figures(&delay, samples, smallest_ns),
            delay,
            ..self.counted(bin_ns)
        }
    }

    fn variation_figures(
        &self,
        delay: &DelayFigures,
        samples: &Samples,
        smallest_ns: u64,
    ) -> VariationFigures {
        let ipdv = samples.variation.figures(&samples.variations);
        let above_min = |delay_ns: u64| delay_ns.saturating_sub(smallest_ns);
        VariationFigures {
            pdv_mean_ns: self.delay.mean_above_ns(smallest_ns),
            pdv_p50_ns: above_min(delay.p50_ns),
            pdv_p95_ns: above_min(delay.p95_ns),
            pdv_p99_ns: above_min(delay.p99_ns),
            pdv_p999_ns: above_min(delay.p999_ns),
            pdv_max_ns: above_min(delay.max_ns),
            ipdv_samples: ipdv.samples,
            ipdv_mean_ns: ipdv.mean_ns,
            ipdv_p95_ns: ipdv.p95_ns,
            ipdv_p99_ns: ipdv.p99_ns,
            ipdv_p999_ns: ipdv.p999_ns,
            ipdv_max_ns: ipdv.max_ns,
        }
    }
}
