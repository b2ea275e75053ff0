//! Time bins of one slice, and finding the bin of a point in time without dividing.

use super::gaps::GapChange;
use super::ipdv::Arrival;
use crate::distribution::Moments;
use crate::record::Figures;
use slicewise_units::Instant;

/// Division of a run: bins for the series, segments of several bins for delay histograms.
#[derive(Debug, Clone)]
pub(super) struct Grid {
    pub bin_ns: u64,
    /// Number of bins; index `bins` stands for everything at or after the end of the run.
    pub bins: usize,
    pub bins_per_segment: usize,
    /// Bins at which a segment begins although none of `bins_per_segment` bins does, in order.
    pub edges: Vec<usize>,
}

impl Grid {
    /// Number of segments; index `segments()` stands for everything after the end.
    pub fn segments(&self) -> usize {
        self.bins.div_ceil(self.bins_per_segment) + self.edges.len()
    }

    /// From the start of the first bin to the end of the last.
    pub fn duration_ns(&self) -> u64 {
        self.bin_ns.saturating_mul(self.bins as u64)
    }

    /// The segment that a bin lies in.
    pub fn segment_of(&self, bin: usize) -> usize {
        if bin < self.bins {
            bin / self.bins_per_segment + self.edges.partition_point(|edge| *edge <= bin)
        } else {
            self.segments()
        }
    }

    /// The first segment that begins with `bin` or after it.
    pub fn segment_from(&self, bin: usize) -> usize {
        let begins = bin.is_multiple_of(self.bins_per_segment) || self.edges.contains(&bin);
        (self.segment_of(bin) + usize::from(!begins)).min(self.segments())
    }

    /// Have segments begin at these bins, too.
    pub fn split_at(&mut self, bins: impl Iterator<Item = usize>) {
        let inside = |bin: &usize| *bin < self.bins && !bin.is_multiple_of(self.bins_per_segment);
        self.edges.extend(bins.filter(inside));
        self.edges.sort_unstable();
        self.edges.dedup();
    }
}

/// The bin last used. Packets arrive nearly in order, so the next one is nearly always in the same bin:
/// one comparison; only a change of bin needs a division.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    start_ns: u64,
    pub bin: usize,
    pub segment: usize,
}

impl Cursor {
    pub const START: Self = Self {
        start_ns: 0,
        bin: 0,
        segment: 0,
    };

    /// Returns true if this is the bin that holds `at`.
    #[inline]
    pub fn holds(&self, grid: &Grid, at: Instant) -> bool {
        // Wrapping: a point before the bin gives a huge number, and so another bin as well.
        at.nanos().wrapping_sub(self.start_ns) < grid.bin_ns
    }

    /// The bin that holds `at`.
    pub fn at(grid: &Grid, at: Instant) -> Self {
        let bin = at.nanos() / grid.bin_ns;
        Self::of_bin(grid, usize::try_from(bin).unwrap_or(usize::MAX))
    }

    /// Bin number `bin`, or the one for everything after the end.
    pub fn of_bin(grid: &Grid, bin: usize) -> Self {
        let bin = bin.min(grid.bins);
        Self {
            start_ns: bin as u64 * grid.bin_ns,
            bin,
            segment: grid.segment_of(bin),
        }
    }
}

/// Counters of one slice in one bin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bin {
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// By receive time minus the smallest delay of the slice until then.
    pub served_bytes: u64,
    /// Of frames sent in this bin.
    pub lost_bytes: u64,
    /// Of frames sent in this bin and received; likewise for all delay fields.
    pub delay_sum_ns: u64,
    pub delay_min_ns: u64,
    pub delay_max_ns: u64,
    pub delay_samples: u32,
    pub sent_frames: u32,
    pub received_frames: u32,
    pub lost_frames: u32,
    /// Frames sent in this bin and received with a delay above the slice's limit.
    pub late_frames: u32,
    /// Frames received in this bin after one that their flow sent later.
    pub reordered_frames: u32,
    /// Loss bursts that ended with a frame received in this bin; negative if frames missed in earlier bins arrived late.
    loss_bursts: i32,
    /// Frames in them.
    loss_burst_frames: i32,
}

impl Bin {
    pub const EMPTY: Self = Self {
        sent_bytes: 0,
        received_bytes: 0,
        served_bytes: 0,
        lost_bytes: 0,
        delay_sum_ns: 0,
        delay_min_ns: u64::MAX,
        delay_max_ns: 0,
        delay_samples: 0,
        sent_frames: 0,
        received_frames: 0,
        lost_frames: 0,
        late_frames: 0,
        reordered_frames: 0,
        loss_bursts: 0,
        loss_burst_frames: 0,
    };

    /// Returns true if nothing happened in this bin.
    pub fn is_empty(&self) -> bool {
        let counts = [
            self.sent_frames,
            self.received_frames,
            self.lost_frames,
            self.delay_samples,
        ];
        counts == [0; 4] && self.served_bytes == 0
    }

    /// Frames were received in this bin.
    pub fn add_received(&mut self, frames: u64, bytes: u64) {
        self.received_frames = self.received_frames.saturating_add(saturated(frames));
        self.received_bytes = self.received_bytes.saturating_add(bytes);
    }

    /// A frame was received that its flow did not send right after the one received before.
    pub fn on_arrival(&mut self, arrival: &Arrival) {
        if arrival.is_reordered {
            count(&mut self.reordered_frames);
        }
        let GapChange { gaps, packets } = arrival.bursts;
        self.loss_bursts = self.loss_bursts.saturating_add(gaps);
        self.loss_burst_frames = self.loss_burst_frames.saturating_add(packets);
    }

    /// Frames that were sent in this bin were received.
    fn add_delays(&mut self, of: &Recent) {
        self.delay_samples = self
            .delay_samples
            .saturating_add(saturated(of.received_frames));
        self.delay_sum_ns = self.delay_sum_ns.saturating_add(of.delay_sum_ns);
        self.delay_min_ns = self.delay_min_ns.min(of.delay_min_ns);
        self.delay_max_ns = self.delay_max_ns.max(of.delay_max_ns);
        self.late_frames = self.late_frames.saturating_add(saturated(of.late_frames));
    }

    /// Sum of this bin and `other`.
    pub fn merged(self, other: Self) -> Self {
        Self {
            sent_bytes: self.sent_bytes.saturating_add(other.sent_bytes),
            received_bytes: self.received_bytes.saturating_add(other.received_bytes),
            served_bytes: self.served_bytes.saturating_add(other.served_bytes),
            lost_bytes: self.lost_bytes.saturating_add(other.lost_bytes),
            delay_sum_ns: self.delay_sum_ns.saturating_add(other.delay_sum_ns),
            delay_min_ns: self.delay_min_ns.min(other.delay_min_ns),
            delay_max_ns: self.delay_max_ns.max(other.delay_max_ns),
            delay_samples: self.delay_samples.saturating_add(other.delay_samples),
            sent_frames: self.sent_frames.saturating_add(other.sent_frames),
            received_frames: self.received_frames.saturating_add(other.received_frames),
            lost_frames: self.lost_frames.saturating_add(other.lost_frames),
            late_frames: self.late_frames.saturating_add(other.late_frames),
            reordered_frames: (self.reordered_frames).saturating_add(other.reordered_frames),
            loss_bursts: self.loss_bursts.saturating_add(other.loss_bursts),
            loss_burst_frames: (self.loss_burst_frames).saturating_add(other.loss_burst_frames),
        }
    }

    /// Mean delay, rounded to the nearest nanosecond; `None` without samples.
    pub fn delay_mean_ns(&self) -> Option<u64> {
        let samples = u64::from(self.delay_samples);
        (self.delay_sum_ns.saturating_add(samples / 2)).checked_div(samples)
    }

    /// Largest delay; `None` without samples.
    pub fn delay_max_ns(&self) -> Option<u64> {
        (self.delay_samples > 0).then_some(self.delay_max_ns)
    }
}

const _: () = assert!(size_of::<Bin>() <= 96, "as the documentation says");

/// Exact sums over a span of bins, of one slice or several.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    bins: u64,
    sent_frames: u64,
    sent_bytes: u64,
    received_frames: u64,
    received_bytes: u64,
    pub lost_frames: u64,
    loss_bursts: i64,
    loss_burst_frames: i64,
    pub delay: Moments,
}

impl Totals {
    pub fn of(bins: &[Bin]) -> Self {
        let mut totals = Self::default();
        for bin in bins {
            totals.add(&Self {
                sent_frames: bin.sent_frames.into(),
                sent_bytes: bin.sent_bytes,
                received_frames: bin.received_frames.into(),
                received_bytes: bin.received_bytes,
                lost_frames: bin.lost_frames.into(),
                loss_bursts: bin.loss_bursts.into(),
                loss_burst_frames: bin.loss_burst_frames.into(),
                delay: Moments {
                    samples: bin.delay_samples.into(),
                    sum_ns: bin.delay_sum_ns.into(),
                    min_ns: bin.delay_min_ns,
                    max_ns: bin.delay_max_ns,
                },
                ..Self::default()
            });
        }
        totals.bins = bins.len() as u64;
        totals
    }

    /// Add another slice's totals over the same span.
    pub fn add(&mut self, other: &Self) {
        self.bins = other.bins;
        self.sent_frames += other.sent_frames;
        self.sent_bytes += other.sent_bytes;
        self.received_frames += other.received_frames;
        self.received_bytes += other.received_bytes;
        self.lost_frames += other.lost_frames;
        self.loss_bursts += other.loss_bursts;
        self.loss_burst_frames += other.loss_burst_frames;
        self.delay = self.delay.merged(&other.delay);
    }

    /// Figures of what was counted; those of delay are 0.
    pub fn counted(&self, bin_ns: u64) -> Figures {
        let span_ns = self.bins * bin_ns;
        let rate = |bytes: u64| match span_ns {
            0 => 0.0,
            _ => bytes as f64 * 8e9 / span_ns as f64,
        };
        let loss_ratio = match self.sent_frames {
            0 => 0.0,
            sent => self.lost_frames as f64 / sent as f64,
        };
        // Without a frame there is no burst: those that there were have arrived.
        let loss_burst_frames = u64::try_from(self.loss_burst_frames).unwrap_or(0);
        let loss_bursts = match loss_burst_frames {
            0 => 0,
            _ => u64::try_from(self.loss_bursts).unwrap_or(0),
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
            loss_bursts,
            loss_burst_frames,
            ..Figures::default()
        }
    }
}

/// One more, unless that is too many to count.
#[inline]
pub(super) const fn count(counter: &mut u32) {
    if let Some(more) = counter.checked_add(1) {
        *counter = more;
    }
}

fn saturated(frames: u64) -> u32 {
    u32::try_from(frames).unwrap_or(u32::MAX)
}

/// Frames sent and received since one of the bins changed that they count in, which are up to four: most frames are added here
/// alone, and no bin is looked up for them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recent {
    // Neighbours that are counted together would be added as a vector, which takes twice the instructions.
    pub sent_frames: u64,
    pub received_frames: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    delay_sum_ns: u64,
    delay_min_ns: u64,
    delay_max_ns: u64,
    late_frames: u64,
}

impl Recent {
    pub const NONE: Self = Self {
        sent_frames: 0,
        sent_bytes: 0,
        received_frames: 0,
        received_bytes: 0,
        delay_sum_ns: 0,
        delay_min_ns: u64::MAX,
        delay_max_ns: 0,
        late_frames: 0,
    };

    /// A frame was sent.
    #[inline]
    pub fn count_sent(&mut self, bytes: u32) {
        self.sent_frames += 1;
        self.sent_bytes += u64::from(bytes);
    }

    /// A frame was received.
    #[inline]
    pub fn count_received(&mut self, bytes: u32, delay_ns: u64, is_late: bool) {
        self.received_frames += 1;
        self.received_bytes += u64::from(bytes);
        self.delay_sum_ns = self.delay_sum_ns.saturating_add(delay_ns);
        self.delay_min_ns = self.delay_min_ns.min(delay_ns);
        self.delay_max_ns = self.delay_max_ns.max(delay_ns);
        self.late_frames += u64::from(is_late);
    }

    /// Add those sent to their bin, and those received to the bins in which they were received, would have been without the
    /// smallest delay, and were sent.
    pub fn settle(&mut self, bins: &mut [Bin], [sent, received, served, origin]: [usize; 4]) {
        if self.sent_frames == 0 && self.received_frames == 0 {
            return;
        }
        let sent = &mut bins[sent];
        sent.sent_frames = sent.sent_frames.saturating_add(saturated(self.sent_frames));
        sent.sent_bytes = sent.sent_bytes.saturating_add(self.sent_bytes);
        if self.received_frames > 0 {
            bins[received].add_received(self.received_frames, self.received_bytes);
            let served = &mut bins[served];
            served.served_bytes = served.served_bytes.saturating_add(self.received_bytes);
            bins[origin].add_delays(self);
        }
        *self = Self::NONE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::gaps::MAX_GAPS;
    use crate::collect::ipdv::{Flows, Received};
    use proptest::prelude::*;

    /// Bursts of one flow whose packets arrive in this order, and packets in them.
    fn bursts(order: &[u32]) -> (u64, u64) {
        let (mut flows, mut bin) = (Flows::default(), Bin::EMPTY);
        for &sequence in order {
            let packet = Received {
                sequence,
                sent_at: Instant::ZERO,
                delay_ns: 1,
            };
            if flows.on_successor(0, packet).is_none() {
                bin.on_arrival(&flows.on_out_of_turn(0, packet));
            }
        }
        let figures = Totals::of(&[bin]).counted(1);
        (figures.loss_bursts, figures.loss_burst_frames)
    }

    proptest! {
        #[test]
        fn a_loss_burst_is_packets_in_a_row_that_never_arrived_before_one_that_did(
            order in prop::sample::subsequence((0..300u32).collect::<Vec<_>>(), 1..300),
            late in prop::collection::vec((0..300usize, 0..300usize), 0..40),
        ) {
            prop_assert_eq!(bursts(&[0, 1, 4, 5, 7, 6]), (1, 2));
            let mut order = order;
            for (from, to) in late {
                let packet = order.remove(from % order.len());
                order.insert(to % (order.len() + 1), packet);
            }
            let end = order.iter().max().map_or(0, |last| last + 1);
            let is_lost = |sequence: &u32| !order.contains(sequence);
            let begins = |sequence: &u32| is_lost(sequence) && (*sequence == 0 || !is_lost(&(sequence - 1)));
            let count = |of: &dyn Fn(&u32) -> bool| (0..end).filter(of).count() as u64;
            let expected = (count(&begins), count(&is_lost));
            prop_assume!(gaps_at_once(&order) <= MAX_GAPS);
            prop_assert_eq!(bursts(&order), expected);
        }
    }

    /// Most gaps at a time in what has arrived, of packets that arrive in this order.
    fn gaps_at_once(order: &[u32]) -> usize {
        let mut most = 0;
        let (mut arrived, mut end) = ([false; 300], 0);
        for &sequence in order {
            arrived[sequence as usize] = true;
            end = end.max(sequence as usize + 1);
            let until = &arrived[..end];
            let gaps = until.split(|has| *has).filter(|gap| !gap.is_empty());
            most = most.max(gaps.count());
        }
        most
    }

    /// However many packets overtake one, it is no loss; nor is it where there are too many gaps to keep its own.
    #[test]
    fn a_packet_that_arrives_late_is_no_loss_burst() {
        let late_by = |packets: u32| (0..10).chain(11..=10 + packets).chain([10]);
        for packets in [1, 62, 63, 64, 65, 1000] {
            assert_eq!(
                bursts(&late_by(packets).collect::<Vec<_>>()),
                (0, 0),
                "{packets}"
            );
        }
        // Ten of them, and ten packets in a row that are lost.
        let mut order: Vec<u32> = (0..2000)
            .filter(|s| s % 100 != 50 && !(5..15).contains(s))
            .collect();
        for late in (0..10).map(|number| number * 100 + 50) {
            let place = order.iter().position(|&s| s == late + 80);
            order.insert(place.unwrap(), late);
        }
        // Those not sent again are ten bursts more.
        assert_eq!(bursts(&order), (11, 20));
    }

    #[test]
    fn a_late_packet_of_a_gap_that_is_not_kept_leaves_the_number_of_bursts() {
        let gaps = 2 * u32::try_from(MAX_GAPS).unwrap();
        // Every fourth packet and the one after it are lost.
        let order: Vec<u32> = (0..4 * gaps).filter(|s| s % 4 > 1).collect();
        let all = u64::from(gaps);
        assert_eq!(bursts(&order), (all, 2 * all));
        assert_eq!(bursts(&[&order[..], &[4, 5]].concat()), (all, 2 * all - 2));
        // Of the last gap it is known that it is filled; what has arrived before is no loss.
        let last = 4 * gaps - 4;
        assert_eq!(
            bursts(&[&order[..], &[last, last + 1]].concat()),
            (all - 1, 2 * all - 2)
        );
        assert_eq!(bursts(&[&order[..], &[last + 2]].concat()), (all, 2 * all));
        // Without a packet missed there is no burst.
        let odd: Vec<u32> = (0..2 * gaps).filter(|s| s % 2 == 1).collect();
        let even: Vec<u32> = (0..gaps).map(|s| 2 * s).collect();
        assert_eq!(bursts(&[odd, even].concat()), (0, 0));
    }

    #[test]
    fn a_cursor_finds_every_bin_forward_backward_and_past_the_end() {
        let grid = Grid {
            bin_ns: 50,
            bins: 8,
            bins_per_segment: 3,
            edges: Vec::new(),
        };
        let mut cursor = Cursor::START;
        for (at, bin, segment) in [
            (0, 0, 0),
            (49, 0, 0),
            (50, 1, 0),
            (399, 7, 2),
            (149, 2, 0),
            (150, 3, 1),
            (400, 8, 3),
            (u64::MAX, 8, 3),
            (0, 0, 0),
        ] {
            let at = Instant::from_nanos(at);
            if !cursor.holds(&grid, at) {
                cursor = Cursor::at(&grid, at);
            }
            assert_eq!((cursor.bin, cursor.segment), (bin, segment), "at {at:?}");
        }
    }

    #[test]
    fn a_segment_begins_at_every_edge() {
        let mut grid = Grid {
            bin_ns: 1,
            bins: 10,
            bins_per_segment: 4,
            edges: Vec::new(),
        };
        grid.split_at([4, 7, 2, 7, 10].into_iter());
        let segments: Vec<usize> = (0..=10).map(|bin| grid.segment_of(bin)).collect();
        assert_eq!(segments, [0, 0, 1, 1, 2, 2, 2, 3, 4, 4, 5]);
        let from: Vec<usize> = (0..=10).map(|bin| grid.segment_from(bin)).collect();
        assert_eq!(from, [0, 1, 1, 2, 2, 3, 3, 3, 4, 5, 5]);
        assert_eq!(grid.segments(), 5);
    }
}
