//! Spare capacity of guaranteed slices available to best effort, and how much of it was used.

use crate::description::{Capacity, SliceDescription, StudyDescription};
pub use crate::observation::Opportunity;
use crate::record::{RunRecord, Series};

/// The opportunities in the steady state of `record`, which must be one of `study`'s, of a
/// scenario whose load cycle is `cycle_ns` (0 for constant load).
pub(crate) fn of_run(study: &StudyDescription, record: &RunRecord, cycle_ns: u64) -> Opportunity {
    // Shares of a rate that changes say of no window what guaranteed slices leave in it.
    if study.capacity.varies {
        return Opportunity::default();
    }
    let bin_ns = record.bin_ns.max(1);
    let cycle_ns = if cycle_ns == 0 {
        CONSTANT_LOAD_WINDOW_NS
    } else {
        cycle_ns
    };
    let window_bins = usize::try_from((cycle_ns.saturating_add(bin_ns / 2)) / bin_ns)
        .unwrap_or(usize::MAX)
        .max(1);
    let bins = record
        .slices
        .iter()
        .map(|s| s.series.sent_bytes.len())
        .min()
        .unwrap_or(0);

    let mut sums = Opportunity::default();
    let wanting_all = wanting_all(study, record);
    let mut ideal = IdealLink::new(study, record);
    let mut start = record.steady_from();
    while start < bins && window_bins <= bins - start {
        let window = start..start + window_bins;
        let seconds = window_bins as f64 * bin_ns as f64 / 1e9;
        let slices = study
            .slices
            .iter()
            .zip(&record.slices)
            .map(|(slice, r)| (slice, &r.series));
        let wants_all = wanting_all
            .iter()
            .any(|span| span.contains(&window.start) && window.end <= span.end);
        let carried = ideal.carry(slices.clone(), window.clone(), seconds);
        let carried = if wants_all { f64::INFINITY } else { carried };
        sums = sums.plus(of_window(&study.capacity, slices, window, seconds, carried));
        start += window_bins;
    }
    // Over all windows: backlog carried from one to the next must cancel.
    sums.taken_bytes = sums.taken_bytes.max(0.0);
    sums
}

/// From the first to the last bin in which best effort sends, for slices of it that have an application without an end
/// and a limit: its demand has none, and what it sends follows from what it gets.
fn wanting_all(study: &StudyDescription, record: &RunRecord) -> Vec<std::ops::Range<usize>> {
    let slices = study.slices.iter().zip(&record.slices);
    let spans = slices.filter_map(|(slice, of_run)| {
        let mut own = record
            .applications
            .iter()
            .filter(|source| source.slice == slice.name);
        let wants_all = !slice.guaranteed
            && own.any(|source| source.wants_all() && source.limit_bits_per_second.is_none());
        let sent = &of_run.series.sent_bytes;
        let first = sent
            .iter()
            .position(|&bytes| bytes > 0)
            .filter(|_| wants_all)?;
        let last = sent.iter().rposition(|&bytes| bytes > 0)?;
        Some(first..last + 1)
    });
    spans.collect()
}

fn of_window<'a>(
    capacity: &Capacity,
    slices: impl Iterator<Item = (&'a SliceDescription, &'a Series)>,
    window: std::ops::Range<usize>,
    seconds: f64,
    ideally_carried: f64,
) -> Opportunity {
    let (mut unused, mut own_share, mut wanted, mut received) = (0.0, 0.0, 0.0, 0.0);
    // Capacity occupied by frames of guaranteed slices, and of best effort.
    let (mut guaranteed_occupies, mut wanted_occupies) = (0.0, 0.0);
    for (slice, series) in slices {
        let share = slice.share_bits_per_second as f64 / 8.0 * seconds;
        let sent = sum(&series.sent_bytes, &window);
        let frames: f64 = series
            .sent_frames
            .get(window.clone())
            .unwrap_or_default()
            .iter()
            .map(|&frames| f64::from(frames))
            .sum();
        let occupies = capacity.occupied(sent, frames);
        if slice.guaranteed {
            if sent > share {
                // It competes for what the others leave: no share is reserved for best effort.
                return Opportunity::default();
            }
            unused += share - sent;
            guaranteed_occupies += occupies;
        } else {
            own_share += share;
            wanted += sent;
            wanted_occupies += occupies;
            received += sum(&series.served_bytes, &window);
        }
    }
    // If frames occupy more than their L2 bytes, less capacity is spare than the shares suggest.
    let room = if capacity.has_overhead() && wanted_occupies > 0.0 {
        let whole = capacity.bits_per_second as f64 / 8.0 * seconds;
        (whole - guaranteed_occupies) * wanted / wanted_occupies - own_share
    } else {
        f64::INFINITY
    };
    // What an ideal link would carry has no limit where the demand has none.
    let demand = if ideally_carried.is_infinite() {
        f64::INFINITY
    } else {
        wanted
    };
    let available = unused
        .min(demand - own_share)
        .min(ideally_carried - own_share)
        .min(room);
    if available <= 0.0 || available < MIN_AVAILABLE * own_share {
        return Opportunity::default();
    }
    let taken = (received - own_share).min(available);
    Opportunity {
        windows: 1,
        seconds,
        available_bytes: available,
        taken_bytes: taken,
    }
}

/// An ideal link that gives best effort its share and, immediately, whatever guaranteed slices do not
/// use. Capacity without demand is lost, as on any link; backlog is kept up to the buffer. A fluid
/// model, bin by bin.
struct IdealLink {
    buffer_bytes: f64,
    waiting_bytes: f64,
}

impl IdealLink {
    /// With a buffer of [`IDEAL_BUFFER_SECONDS`], or the largest backlog of this run.
    fn new(study: &StudyDescription, record: &RunRecord) -> Self {
        let usual = study.capacity.bits_per_second as f64 / 8.0 * IDEAL_BUFFER_SECONDS;
        let slices = study.slices.iter().zip(&record.slices);
        let waited: f64 = slices
            .filter(|(slice, _)| !slice.guaranteed)
            .map(|(_, record)| most_waiting(&record.series))
            .sum();
        Self {
            buffer_bytes: usual.max(waited),
            waiting_bytes: 0.0,
        }
    }

    /// Bytes of best effort that it carries in a window that follows the last one.
    fn carry<'a>(
        &mut self,
        slices: impl Iterator<Item = (&'a SliceDescription, &'a Series)> + Clone,
        window: std::ops::Range<usize>,
        seconds: f64,
    ) -> f64 {
        let bin_seconds = seconds / window.len().max(1) as f64;
        let mut carried = 0.0;
        for bin in window {
            let (mut room, mut arrived) = (0.0, 0.0);
            for (slice, series) in slices.clone() {
                let share = slice.share_bits_per_second as f64 / 8.0 * bin_seconds;
                let sent = series.sent_bytes.get(bin).map_or(0.0, |&b| b as f64);
                if slice.guaranteed {
                    room += (share - sent).max(0.0);
                } else {
                    room += share;
                    arrived += sent;
                }
            }
            let there = self.waiting_bytes + arrived;
            let leaves = there.min(room);
            self.waiting_bytes = (there - leaves).min(self.buffer_bytes);
            carried += leaves;
        }
        carried
    }
}

/// Largest backlog at the end of a bin: sent, not lost, and not served yet; bytes.
fn most_waiting(series: &Series) -> f64 {
    let bins = (series.sent_bytes.iter())
        .zip(&series.served_bytes)
        .zip(&series.lost_bytes);
    let (mut waiting, mut most) = (0.0f64, 0.0f64);
    for ((&sent, &served), &lost) in bins {
        waiting += sent as f64 - served as f64 - lost as f64;
        most = most.max(waiting);
    }
    most
}

fn sum(bytes: &[u64], window: &std::ops::Range<usize>) -> f64 {
    bytes
        .get(window.clone())
        .unwrap_or_default()
        .iter()
        .map(|&b| b as f64)
        .sum()
}

/// The buffer of the ideal link that a device is compared with: what IOS gives a port by default.
const IDEAL_BUFFER_SECONDS: f64 = 0.05;
/// Window under load without a cycle.
const CONSTANT_LOAD_WINDOW_NS: u64 = 1_000_000_000;
/// Less than this part of best effort's own share is the granularity of frames and of metering,
/// not capacity to reallocate.
const MIN_AVAILABLE: f64 = 0.01;
