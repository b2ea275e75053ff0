//! Measurement of an application's connections: counted in bins, so that figures of any span follow.

use super::SeriesParams;
use slicewise_stats::application::{ApplicationSeries, FailureCount, TransportFigures};
use slicewise_transport::SendFigures;
use slicewise_units::{Duration, Instant};

/// Most values kept of what each connection got, 8 bytes each; fairness is not judged of more.
const MAX_SHARES: usize = 16_000_000;

/// Counters of a bin.
#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    goodput_bytes: u64,
    segments: u32,
    resent_segments: u32,
    timeouts: u32,
    recoveries: u32,
    failures: u32,
    rtt_samples: u32,
    rtt_sum_ns: u64,
    rtt_min_ns: u64,
    rtt_max_ns: u64,
    /// Connections that are open at the end of the bin, and their windows together.
    windows: u32,
    window_sum_bytes: u64,
    /// Of the first connection, the window at the end of the bin and the last round trip.
    first_window_bytes: Option<u64>,
    first_rtt_ns: Option<u64>,
}

/// The connections of an application.
#[derive(Debug)]
pub(crate) struct TransportMeasurement {
    bin_ns: u64,
    connections: usize,
    /// One more than the run has, for what comes after its end.
    bins: Vec<Bin>,
    /// The bin of what happened last, and when it ends.
    current: usize,
    current_ends_ns: u64,
    /// Bins at whose ends the windows were looked at.
    looked: usize,
    /// Bytes by bin and connection; empty where that would be too many.
    shares: Vec<u64>,
    /// When each connection was open first and last.
    lives: Vec<Option<(Instant, Instant)>>,
}

/// Losses counted by one end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Losses {
    timeouts: u64,
    recoveries: u64,
}

impl Losses {
    #[inline]
    pub(crate) const fn of(figures: &SendFigures) -> Self {
        Self {
            timeouts: figures.timeouts,
            recoveries: figures.recoveries,
        }
    }
}

impl TransportMeasurement {
    pub(crate) fn new(series: SeriesParams, connections: u32) -> Self {
        let connections = connections as usize;
        let bins = series.bins + 1;
        let shares = if bins.saturating_mul(connections) <= MAX_SHARES && connections > 1 {
            vec![0; bins * connections]
        } else {
            Vec::new()
        };
        Self {
            bin_ns: series.bin.nanos().max(1),
            connections,
            bins: vec![Bin::default(); bins],
            current: 0,
            current_ends_ns: series.bin.nanos().max(1),
            looked: 0,
            shares,
            lives: vec![None; connections],
        }
    }

    /// The bin of `now`; times come in order.
    #[inline]
    fn bin(&mut self, now: Instant) -> &mut Bin {
        if now.nanos() >= self.current_ends_ns {
            let bin = usize::try_from(now.nanos() / self.bin_ns).unwrap_or(usize::MAX);
            self.current = bin.min(self.bins.len() - 1);
            self.current_ends_ns = if bin < self.bins.len() - 1 {
                (bin as u64 + 1) * self.bin_ns
            } else {
                u64::MAX
            };
        }
        &mut self.bins[self.current]
    }

    #[inline]
    pub(crate) fn on_goodput(&mut self, connection: usize, bytes: u64, now: Instant) {
        self.bin(now).goodput_bytes += bytes;
        let place = self.current * self.connections + connection;
        if let Some(share) = self.shares.get_mut(place) {
            *share += bytes;
        }
    }

    #[inline]
    pub(crate) fn on_sent(&mut self, segments: u32, is_resent: bool, now: Instant) {
        let bin = self.bin(now);
        bin.segments += segments;
        if is_resent {
            bin.resent_segments += segments;
        }
    }

    #[inline]
    pub(crate) fn on_sample(&mut self, connection: usize, rtt: Duration, now: Instant) {
        let bin = self.bin(now);
        let rtt_ns = rtt.nanos();
        bin.rtt_min_ns = if bin.rtt_samples == 0 {
            rtt_ns
        } else {
            bin.rtt_min_ns.min(rtt_ns)
        };
        bin.rtt_samples += 1;
        bin.rtt_sum_ns = bin.rtt_sum_ns.saturating_add(rtt_ns);
        bin.rtt_max_ns = bin.rtt_max_ns.max(rtt_ns);
        if connection == 0 {
            bin.first_rtt_ns = Some(rtt_ns);
        }
    }

    /// Returns true if a bin has ended since the windows were looked at.
    #[inline]
    pub(crate) const fn is_look_due(&self, now: Instant) -> bool {
        now.nanos() >= self.current_ends_ns
    }

    /// The windows of the connections, `None` where one is not open. They have not changed since the end of the bin of what
    /// happened last: means over acknowledgements would count a large window more often than a small one.
    pub(crate) fn look(&mut self, windows: impl Iterator<Item = Option<u64>>, now: Instant) {
        let (mut count, mut sum, mut first) = (0, 0, None);
        for (connection, window_bytes) in windows.enumerate() {
            let Some(window_bytes) = window_bytes else {
                continue;
            };
            count += 1;
            sum += window_bytes;
            if connection == 0 {
                first = Some(window_bytes);
            }
        }
        self.bin(now);
        for bin in &mut self.bins[self.looked..self.current] {
            (bin.windows, bin.window_sum_bytes, bin.first_window_bytes) = (count, sum, first);
        }
        self.looked = self.current;
    }

    /// Adds the losses that the sender of a connection has counted since `before`.
    #[inline]
    pub(crate) fn on_losses(&mut self, before: Losses, after: Losses, now: Instant) {
        if before != after {
            let bin = self.bin(now);
            let difference = |one: u64, other: u64| u32::try_from(other - one).unwrap_or(u32::MAX);
            bin.timeouts += difference(before.timeouts, after.timeouts);
            bin.recoveries += difference(before.recoveries, after.recoveries);
        }
    }

    pub(crate) fn on_opened(&mut self, connection: usize, now: Instant) {
        if let Some(life) = self.lives.get_mut(connection) {
            life.get_or_insert((now, Instant::MAX)).1 = Instant::MAX;
        }
    }

    pub(crate) fn on_ended(&mut self, connection: usize, has_failed: bool, now: Instant) {
        if let Some(Some(life)) = self.lives.get_mut(connection) {
            life.1 = now;
        }
        if has_failed {
            self.bin(now).failures += 1;
        }
    }

    /// The bins of a span.
    fn span(&self, from: Instant, to: Instant) -> std::ops::Range<usize> {
        let last = self.bins.len() - 1;
        let bin = |at: Instant| usize::try_from(at.nanos() / self.bin_ns).unwrap_or(last);
        let end = bin(to).min(last);
        bin(from).min(end)..end
    }

    #[expect(clippy::cast_precision_loss, reason = "for people, not for arithmetic")]
    pub(crate) fn figures(&self, from: Instant, to: Instant) -> TransportFigures {
        let range = self.span(from, to);
        let bins = &self.bins[range.clone()];
        let sum = |of: fn(&Bin) -> u32| bins.iter().map(|bin| u64::from(of(bin))).sum::<u64>();
        let sum_of = |of: fn(&Bin) -> u64| bins.iter().map(|bin| u128::from(of(bin))).sum::<u128>();
        let span_ns = range.len() as u64 * self.bin_ns;
        let samples = sum(|bin| bin.rtt_samples);
        let window_samples = sum(|bin| bin.windows);
        let mean = |sum: u128, count: u64| {
            if count == 0 {
                0.0
            } else {
                sum as f64 / count as f64
            }
        };
        let measured = bins.iter().filter(|bin| bin.rtt_samples > 0);
        let was_open = |life: &&(Instant, Instant)| life.0 < to && life.1 >= from;
        TransportFigures {
            span_ns,
            connections: self.lives.iter().flatten().filter(was_open).count() as u64,
            goodput_bits_per_second: sum_of(|bin| bin.goodput_bytes) as f64 * 8e9
                / span_ns.max(1) as f64,
            segments: sum(|bin| bin.segments),
            retransmitted_segments: sum(|bin| bin.resent_segments),
            timeouts: sum(|bin| bin.timeouts),
            recoveries: sum(|bin| bin.recoveries),
            rtt_samples: samples,
            rtt_mean_ns: mean(sum_of(|bin| bin.rtt_sum_ns), samples),
            rtt_min_ns: measured.map(|bin| bin.rtt_min_ns).min().unwrap_or(0),
            rtt_max_ns: bins.iter().map(|bin| bin.rtt_max_ns).max().unwrap_or(0),
            window_samples,
            window_mean_bytes: mean(sum_of(|bin| bin.window_sum_bytes), window_samples),
            fairness: self.fairness(from, to),
        }
    }

    /// Jain's index of what the connections got while all of them were open.
    #[expect(clippy::cast_precision_loss, reason = "for people, not for arithmetic")]
    fn fairness(&self, from: Instant, to: Instant) -> Option<f64> {
        if self.shares.is_empty() {
            return None;
        }
        let lives = (self.lives.iter().enumerate())
            .filter_map(|(connection, life)| Some((connection, (*life)?)));
        let open = lives.filter(|(_, (opened, ended))| *opened < to && *ended > from);
        let (mut last_opened, mut first_ended) = (from, to);
        for (_, (opened, ended)) in open.clone() {
            last_opened = last_opened.max(opened);
            first_ended = first_ended.min(ended);
        }
        // Whole bins.
        let last_opened = last_opened.nanos().div_ceil(self.bin_ns) * self.bin_ns;
        let range = self.span(Instant::from_nanos(last_opened), first_ended);
        let (mut count, mut sum, mut squares) = (0u32, 0.0, 0.0);
        for (connection, _) in open {
            let shares = range
                .clone()
                .map(|bin| self.shares[bin * self.connections + connection]);
            let bytes = shares.sum::<u64>() as f64;
            count += 1;
            sum += bytes;
            squares += bytes * bytes;
        }
        (count > 1 && squares > 0.0).then(|| sum * sum / (f64::from(count) * squares))
    }

    pub(crate) fn failures(&self, from: Instant, to: Instant) -> Vec<FailureCount> {
        let bins = self.bins[self.span(from, to)].iter();
        let failed: u64 = bins.map(|bin| u64::from(bin.failures)).sum();
        if failed == 0 {
            return Vec::new();
        }
        vec![FailureCount {
            reason: "nothing was acknowledged although it was sent again and again".to_owned(),
            connections: failed,
        }]
    }

    pub(crate) fn series(&self) -> ApplicationSeries {
        let bins = &self.bins[..self.bins.len() - 1];
        ApplicationSeries {
            goodput_bytes: bins.iter().map(|bin| bin.goodput_bytes).collect(),
            retransmitted_segments: bins.iter().map(|bin| bin.resent_segments).collect(),
            rtt_mean_ns: (bins.iter())
                .map(|bin| bin.rtt_sum_ns.checked_div(bin.rtt_samples.into()))
                .collect(),
            first_window_bytes: bins.iter().map(|bin| bin.first_window_bytes).collect(),
            first_rtt_ns: bins.iter().map(|bin| bin.first_rtt_ns).collect(),
        }
    }
}

/// The width of a bin and how many cover a run.
impl SeriesParams {
    /// A series over `duration` in bins of `bin`.
    #[must_use]
    pub fn new(duration: Duration, bin: Duration) -> Self {
        let bins = duration.nanos() / bin.nanos().max(1);
        Self {
            bin,
            bins: usize::try_from(bins).unwrap_or(usize::MAX),
        }
    }
}
