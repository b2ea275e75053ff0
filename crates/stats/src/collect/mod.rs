//! Streaming collection of one run: packets in, a [`RunRecord`] out, in constant memory.
//!
//! One [`RunCollector`] serves one run at a time and is meant to be reused. The length of a run and its
//! slices are known in advance ([`RunCollector::new`]), or become known during the run
//! ([`RunCollector::open_ended`]). `docs/measurement.md` describes what is measured, and with what
//! resolution.

mod bins;
mod finish;
mod gaps;
mod growth;
mod histogram;
mod iat;
mod ipdv;
mod segment;

use crate::objective::{DelayLimit, Objective};
use crate::record::{DropCount, RunKey, RunRecord};
use bins::{Bin, Cursor, Grid, Recent};
use growth::Growth;
use iat::IatState;
pub use ipdv::FlowPosition;
use ipdv::{Flows, Received};
use segment::{Segment, SegmentPages};
use slicewise_units::{Duration, Instant};
use thiserror::Error;

/// Parameters of a collector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectorParams {
    /// The slices in study order; later calls refer to them by index.
    pub slices: Vec<MeasuredSlice>,
    /// How long traffic is offered.
    pub duration: Duration,
    /// Width of a bin of the series; `duration` must be a multiple of it.
    pub bin: Duration,
    /// The longest on/off cycle of the load; zero if constant.
    pub cycle: Duration,
}

/// A slice to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredSlice {
    /// Its name.
    pub name: String,
    /// Frames with a larger delay are counted as late, per interval, and the percentile over all frames sent is kept;
    /// `None`: neither is.
    pub delay: Option<DelayLimit>,
}

impl MeasuredSlice {
    /// A slice with this name and the delay limit of its objective.
    #[must_use]
    pub fn new(name: &str, objective: Option<&Objective>) -> Self {
        Self {
            name: name.to_owned(),
            delay: objective.and_then(|objective| objective.delay),
        }
    }
}

impl<T: Into<String>> From<T> for MeasuredSlice {
    /// A slice without a limit.
    fn from(name: T) -> Self {
        Self {
            name: name.into(),
            delay: None,
        }
    }
}

/// A part of a run that is measured for itself, from the start of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredPhase {
    /// Its name.
    pub name: String,
    /// When it begins.
    pub begins: Duration,
    /// From when it is measured.
    pub measured_from: Duration,
    /// When it ends.
    pub ends: Duration,
    /// The delay limit of each slice in it, instead of that of [`MeasuredSlice`].
    pub delays: Vec<Option<DelayLimit>>,
}

/// Why a collector cannot be set up.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CollectorError {
    /// There is nothing to measure.
    #[error("a run needs at least one slice")]
    NoSlices,
    /// A width of zero.
    #[error("the interval of the series must not be zero")]
    ZeroBin,
    /// The series would not have a whole number of bins.
    #[error("the duration {duration} is not a positive multiple of the interval {bin}")]
    NotAMultiple {
        /// The duration as given.
        duration: Duration,
        /// The bin as given.
        bin: Duration,
    },
    /// A phase cannot be measured.
    #[error(
        "phase `{0}` does not begin, settle and end in this order, within the run, at edges of intervals of its series"
    )]
    Phase(String),
    /// The series would have too many intervals.
    #[error("{bins} intervals per run exceed the limit of {MAX_BINS}: choose a longer interval")]
    TooManyBins {
        /// Bins the run would have, of all slices together.
        bins: u64,
    },
}

/// Collects one run.
///
/// Where the length of the run is known, memory is set up once: at most 96 B a bin and slice, 816 B a segment of time and slice, and
/// of what occurs in a segment 2 KiB for half an octave of delay and 512 B for an octave of delay variation. A flow takes 40 B,
/// and 2.6 KiB more once a packet of it was lost or reordered.
#[derive(Debug, Clone)]
pub struct RunCollector {
    params: CollectorParams,
    grid: Grid,
    slices: Vec<SliceState>,
    flows: Flows,
    pages: SegmentPages,
    /// Of a run whose length is not known.
    growth: Option<Growth>,
    phases: Vec<MeasuredPhase>,
    /// True if medians from each segment on are kept.
    keeps_medians: bool,
}

/// State of the collection for one slice.
#[derive(Debug, Clone)]
struct SliceState {
    /// One per bin, and one for everything after the end of the run.
    bins: Vec<Bin>,
    /// One per segment; number `grid.segments()` is of what was sent after the end.
    segments: Vec<Segment>,
    /// Bin of the packet last sent.
    sent: Cursor,
    /// Bin of the packet last received.
    received: Cursor,
    /// Bin in which the packet last received was sent.
    origin: Cursor,
    /// Bin in which the packet last lost was sent.
    lost: Cursor,
    /// Bin in which the packet last received would have been, had it taken `smallest_ns` less.
    served: Cursor,
    /// Frames that are yet to be added to these bins.
    recent: Recent,
    /// The smallest delay until now; the largest integer before the first one.
    smallest_ns: u64,
    iat_sent: IatState,
    iat_received: IatState,
    /// Frames with a larger delay are late.
    delay_limit_ns: u64,
}

/// Memory that a [`RunCollector`] has allocated for its histograms: another can [use it](RunCollector::with_memory).
#[derive(Debug)]
pub struct CollectorMemory(SegmentPages);

impl RunCollector {
    /// A collector ready for its first run.
    ///
    /// # Errors
    /// Where the parameters do not describe a series of bins.
    pub fn new(params: CollectorParams) -> Result<Self, CollectorError> {
        if params.slices.is_empty() {
            return Err(CollectorError::NoSlices);
        }
        let (duration_ns, bin_ns) = (params.duration.nanos(), params.bin.nanos());
        if bin_ns == 0 {
            return Err(CollectorError::ZeroBin);
        }
        if duration_ns == 0 || duration_ns % bin_ns != 0 {
            let (duration, bin) = (params.duration, params.bin);
            return Err(CollectorError::NotAMultiple { duration, bin });
        }
        let all_bins = (duration_ns / bin_ns).saturating_mul(params.slices.len() as u64);
        let bins = usize::try_from(duration_ns / bin_ns)
            .ok()
            .filter(|_| all_bins <= MAX_BINS)
            .ok_or(CollectorError::TooManyBins { bins: all_bins })?;
        let grid = Grid {
            bin_ns,
            bins,
            bins_per_segment: bins.div_ceil(MAX_SEGMENTS),
            edges: Vec::new(),
        };
        Ok(Self {
            slices: (params.slices.iter())
                .map(|slice| SliceState::new(&grid, slice.delay))
                .collect(),
            grid,
            flows: Flows::default(),
            pages: SegmentPages::default(),
            growth: None,
            phases: Vec::new(),
            keeps_medians: false,
            params,
        })
    }

    /// The same collector, which also measures each of these phases for itself. To be called before the first packet.
    ///
    /// # Errors
    /// Where a phase does not begin, is not measured from, or does not end at the edge of a bin, in this order and
    /// within the run, or is not measured at all.
    pub fn with_phases(mut self, phases: Vec<MeasuredPhase>) -> Result<Self, CollectorError> {
        let bin_ns = self.grid.bin_ns;
        for phase in &phases {
            let times = [phase.begins, phase.measured_from, phase.ends];
            let at_edges = times.iter().all(|at| at.nanos().is_multiple_of(bin_ns));
            let in_order = phase.begins <= phase.measured_from && phase.measured_from < phase.ends;
            if !at_edges || !in_order || phase.ends.nanos() > self.grid.duration_ns() {
                return Err(CollectorError::Phase(phase.name.clone()));
            }
        }
        let bin = |at: Duration| usize::try_from(at.nanos() / bin_ns).unwrap_or(usize::MAX);
        let edges = phases
            .iter()
            .flat_map(|p| [bin(p.measured_from), bin(p.ends)]);
        self.grid.split_at(edges);
        for slice in &mut self.slices {
            slice.segments = vec![Segment::EMPTY; self.grid.segments() + 1];
        }
        self.phases = phases;
        (0..self.slices.len()).for_each(|slice| self.follow_limit(slice, Instant::ZERO));
        Ok(self)
    }

    /// The same collector, which also keeps the median delay from each segment on: for runs that are compared whose transients may
    /// differ.
    #[must_use]
    pub fn with_medians(mut self) -> Self {
        self.keeps_medians = true;
        self
    }

    /// The same collector with memory that another does not need any more. To be called before the first packet.
    #[must_use]
    pub fn with_memory(mut self, memory: CollectorMemory) -> Self {
        self.pages = memory.0;
        self.pages.clear();
        self
    }

    /// The memory of a collector whose run is over.
    #[must_use]
    pub fn into_memory(self) -> CollectorMemory {
        CollectorMemory(self.pages)
    }

    /// A frame of `bytes` bytes was sent. `first_source` says whether the slice's first source
    /// sent it: inter-arrival times are those of that source.
    ///
    /// # Panics
    /// If `slice` is not the index of a slice.
    #[inline(always)]
    pub fn on_sent(&mut self, slice: usize, first_source: bool, now: Instant, bytes: u32) {
        let mut state = &mut self.slices[slice];
        if !state.sent.holds(&self.grid, now) {
            self.seek_sent(slice, now);
            state = &mut self.slices[slice];
        }
        state.recent.count_sent(bytes);
        if first_source {
            state.iat_sent.on_packet(now);
        }
    }

    /// A frame sent at `sent_at` was received. `position` is what delay variation between consecutive packets
    /// of a flow is measured by; `None` leaves the frame out of it.
    ///
    /// # Panics
    /// If `slice` is not the index of a slice.
    #[inline(always)]
    pub fn on_received(
        &mut self,
        slice: usize,
        position: Option<FlowPosition>,
        sent_at: Instant,
        now: Instant,
        bytes: u32,
    ) {
        let mut state = &mut self.slices[slice];
        let delay_ns = now.saturating_since(sent_at).nanos();
        state.smallest_ns = delay_ns.min(state.smallest_ns);
        // Not negative: the delay is at most `now`.
        let served_at = Instant::from_nanos(now.nanos() - state.smallest_ns);
        if !(state.received.holds(&self.grid, now)
            && state.origin.holds(&self.grid, sent_at)
            && state.served.holds(&self.grid, served_at))
        {
            self.seek(slice, sent_at, now, served_at);
            state = &mut self.slices[slice];
        }

        let is_late = delay_ns > state.delay_limit_ns;
        state.recent.count_received(bytes, delay_ns, is_late);
        let segment = &mut state.segments[state.origin.segment];
        self.pages.record_delay(segment, delay_ns);
        let Some(FlowPosition { flow, sequence }) = position else {
            return;
        };
        let packet = Received {
            sequence,
            sent_at,
            delay_ns,
        };
        if let Some(variation_ns) = self.flows.on_successor(flow, packet) {
            self.pages.record_variation(segment, variation_ns);
        } else {
            let position = FlowPosition { flow, sequence };
            self.on_out_of_turn(slice, position, (sent_at, delay_ns));
        }
    }

    /// Find the bins of a frame that was received, of which one is not that of the frame before.
    #[cold]
    fn seek(&mut self, slice: usize, sent_at: Instant, now: Instant, served_at: Instant) {
        self.seek_received(slice, now);
        self.seek_origin(slice, sent_at);
        self.seek_served(slice, served_at);
    }

    /// A frame was received that its flow did not send right after the one received before. Its arguments fit registers: a
    /// [`Received`] would be written to memory for every frame.
    #[inline(never)]
    fn on_out_of_turn(
        &mut self,
        slice: usize,
        position: FlowPosition,
        (sent_at, delay_ns): (Instant, u64),
    ) {
        let FlowPosition { flow, sequence } = position;
        let packet = Received {
            sequence,
            sent_at,
            delay_ns,
        };
        let arrival = self.flows.on_out_of_turn(flow, packet);
        let state = &mut self.slices[slice];
        state.bins[state.received.bin].on_arrival(&arrival);
        let next = arrival.next.map(|(after, variation_ns)| {
            let segment = Cursor::at(&self.grid, after.sent_at).segment;
            (segment, variation_ns)
        });
        let own = arrival.variation_ns.map(|ns| (state.origin.segment, ns));
        for (segment, variation_ns) in own.into_iter().chain(next) {
            self.pages
                .record_variation(&mut state.segments[segment], variation_ns);
        }
    }

    /// A frame of the slice's first source was received, whether or not it is known when it was sent: inter-arrival times as
    /// received are between these. To be called beside the functions that count it.
    ///
    /// # Panics
    /// If `slice` is not the index of a slice.
    #[inline(always)]
    pub fn on_received_from_first(&mut self, slice: usize, now: Instant) {
        self.slices[slice].iat_received.on_packet(now);
    }

    /// A frame with unknown send time was received: it counts as received, without a delay.
    ///
    /// # Panics
    /// If `slice` is not the index of a slice.
    pub fn on_received_unmatched(&mut self, slice: usize, now: Instant, bytes: u32) {
        self.seek_received(slice, now);
        let served_at = match self.slices[slice].smallest_ns {
            u64::MAX => now,
            smallest_ns => Instant::from_nanos(now.nanos().saturating_sub(smallest_ns)),
        };
        self.seek_served(slice, served_at);
        let state = &mut self.slices[slice];
        state.bins[state.received.bin].add_received(1, u64::from(bytes));
        state.bins[state.served.bin].served_bytes += u64::from(bytes);
    }

    #[cold]
    fn seek_sent(&mut self, slice: usize, now: Instant) {
        let sent = self.find(now);
        self.slices[slice].settle();
        self.slices[slice].sent = sent;
    }

    fn seek_received(&mut self, slice: usize, now: Instant) {
        if !self.slices[slice].received.holds(&self.grid, now) {
            let received = self.find(now);
            self.slices[slice].settle();
            self.slices[slice].received = received;
        }
    }

    /// Find the bin in which a frame would have been received without the smallest delay, at `served_at`. What propagation
    /// adds to every delay, it adds to the smallest one too.
    fn seek_served(&mut self, slice: usize, served_at: Instant) {
        if !self.slices[slice].served.holds(&self.grid, served_at) {
            let served = self.find(served_at);
            self.slices[slice].settle();
            self.slices[slice].served = served;
        }
    }

    /// A frame sent at `sent_at` will never be received.
    ///
    /// # Panics
    /// If `slice` is not the index of a slice.
    #[inline]
    pub fn on_lost(&mut self, slice: usize, sent_at: Instant, bytes: u32) {
        if !self.slices[slice].lost.holds(&self.grid, sent_at) {
            self.slices[slice].lost = self.find(sent_at);
        }
        let state = &mut self.slices[slice];
        let bin = &mut state.bins[state.lost.bin];
        bins::count(&mut bin.lost_frames);
        bin.lost_bytes += u64::from(bytes);
    }

    fn seek_origin(&mut self, slice: usize, sent_at: Instant) {
        if !self.slices[slice].origin.holds(&self.grid, sent_at) {
            let origin = self.find(sent_at);
            self.slices[slice].settle();
            self.slices[slice].origin = origin;
            self.follow_limit(slice, sent_at);
        }
    }

    /// The delay limit of a slice is that of the phase in which a frame is sent.
    fn follow_limit(&mut self, slice: usize, sent_at: Instant) {
        let at = Duration::from_nanos(sent_at.nanos());
        let phase = self.phases.iter().rfind(|phase| phase.begins <= at);
        if let Some(limit) = phase.and_then(|phase| phase.delays.get(slice)) {
            self.slices[slice].delay_limit_ns = limit_ns(*limit);
        }
    }

    /// The bin that holds `at`, created if necessary.
    #[cold]
    fn find(&mut self, at: Instant) -> Cursor {
        let at = if self.growth.is_some() {
            self.grow_to(at)
        } else {
            at
        };
        Cursor::at(&self.grid, at)
    }

    /// Return the record of the run, and get ready for the next one.
    ///
    /// An open-ended run lasts until the end of the bin in which the last thing happened, and the
    /// collector has no slices any more.
    pub fn finish(&mut self, key: RunKey, drops: Vec<DropCount>) -> RunRecord {
        self.slices.iter_mut().for_each(SliceState::settle);
        self.widen_sparse_bins();
        let record = finish::record(self, key, drops);
        self.reset();
        record
    }

    /// Discard the run, keep the memory. An open-ended collector discards its slices too.
    pub fn reset(&mut self) {
        if self.forget_growth() {
            return;
        }
        self.flows.clear();
        self.pages.clear();
        for slice in &mut self.slices {
            slice.bins.fill(Bin::EMPTY);
            slice.segments.fill(Segment::EMPTY);
            slice.recent = Recent::NONE;
            slice.sent = Cursor::START;
            slice.received = Cursor::START;
            slice.origin = Cursor::START;
            slice.lost = Cursor::START;
            slice.served = Cursor::START;
            slice.smallest_ns = u64::MAX;
            slice.iat_sent.reset();
            slice.iat_received.reset();
        }
        (0..self.slices.len()).for_each(|slice| self.follow_limit(slice, Instant::ZERO));
    }

    /// Bytes held for bins, histograms and flows.
    #[cfg(test)]
    fn memory_bytes(&self) -> usize {
        let bins: usize = self
            .slices
            .iter()
            .map(|s| s.bins.len() * size_of::<Bin>())
            .sum();
        bins + self.pages.bytes() + self.flows.bytes()
    }
}

fn limit_ns(delay: Option<DelayLimit>) -> u64 {
    delay.map_or(u64::MAX, |delay| delay.limit_ns)
}

impl SliceState {
    fn new(grid: &Grid, delay: Option<DelayLimit>) -> Self {
        Self {
            delay_limit_ns: limit_ns(delay),
            bins: vec![Bin::EMPTY; grid.bins + 1],
            segments: vec![Segment::EMPTY; grid.segments() + 1],
            sent: Cursor::START,
            received: Cursor::START,
            origin: Cursor::START,
            lost: Cursor::START,
            served: Cursor::START,
            recent: Recent::NONE,
            smallest_ns: u64::MAX,
            iat_sent: IatState::new(),
            iat_received: IatState::new(),
        }
    }

    /// Add what is recent to the bins, before one of them is another, or is asked for.
    fn settle(&mut self) {
        let cursors = [self.sent, self.received, self.served, self.origin];
        self.recent
            .settle(&mut self.bins, cursors.map(|cursor| cursor.bin));
    }
}

/// Most bins of a run, of all slices together: at most 96 MiB, beside what segments take.
pub const MAX_BINS: u64 = 1 << 20;
/// Segments of time with a delay histogram each. The start of the steady state is rounded up to a
/// segment for percentiles: to 1/64 of the run at most.
const MAX_SEGMENTS: usize = 64;
/// Most points of a stored distribution function.
const MAX_CDF_POINTS: usize = 200;

#[cfg(test)]
mod tests;
