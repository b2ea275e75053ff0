//! Turns the fate of packets into figures of slices and flows.

use crate::flows::{FlowState, Membership, extended};
use crate::params::{AnalysisError, SliceRule};
use crate::slices::{AutomaticSlices, SliceOfFlow, Slices};
use slicewise_capture::Sighting;
use slicewise_capture::clock::ClockEstimate;
use slicewise_capture::matching::{AmbiguousGroup, MatchObserver, ReorderingTracker, SendOrder};
use slicewise_stats::collect::{FlowPosition, RunCollector};
use slicewise_units::Instant;
use slicewise_wire::{Ecn, Headers};
use std::cell::RefCell;

/// The fate of one packet of a slice.
#[derive(Debug, Clone, Copy)]
pub struct PacketFate<'a> {
    /// Its slice.
    pub slice: &'a str,
    /// Headers of its flow at the sending point.
    pub headers: &'a Headers,
    /// Its sequence number among all packets of the sending point, from 0.
    pub sequence: u64,
    /// When it was sent, ns from the start of the run.
    pub sent_ns: u64,
    /// When it was received, ns from the start of the run; `None` if lost.
    pub received_ns: Option<u64>,
    /// Bytes as sent, L2 without FCS.
    pub l2_bytes: u32,
    /// DSCP on arrival.
    pub received_dscp: Option<u8>,
}

/// Receives the fate of every packet.
pub trait PacketSink {
    /// Called once the fate of a packet is known.
    ///
    /// # Errors
    /// A message for the user; the analysis stops.
    fn on_packet(&mut self, packet: &PacketFate<'_>) -> Result<(), String>;
}

/// Times of the two points on the time axis of the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeAxis {
    /// When the run starts, by the clock of the sending point.
    pub(crate) start_ns: u64,
    /// Only packets sent within this interval (by the same clock, end excluded) belong to the run;
    /// `None`: all do.
    pub(crate) only: Option<(u64, u64)>,
    pub(crate) received: ReceivedClock,
}

/// How times of the receiving point are converted to the clock of the sending one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ReceivedClock {
    /// Constant offset, ns; 0 if the clocks are treated as one.
    Ahead(i64),
    /// As estimated.
    Estimated(ClockEstimate),
}

impl TimeAxis {
    /// Returns true if a packet belongs to the run.
    #[inline]
    fn holds(&self, sent: &Sighting) -> bool {
        self.only
            .is_none_or(|(from, before)| (from..before).contains(&sent.time_ns))
    }

    #[inline]
    pub(crate) fn of_sent(&self, time_ns: u64) -> u64 {
        time_ns.saturating_sub(self.start_ns)
    }

    #[inline]
    pub(crate) fn of_received(&self, time_ns: u64) -> u64 {
        let aligned = match &self.received {
            ReceivedClock::Ahead(ns) => time_ns.saturating_add_signed(ns.saturating_neg()),
            ReceivedClock::Estimated(estimate) => estimate.correct(time_ns),
        };
        aligned.saturating_sub(self.start_ns)
    }
}

/// Reports forward packets to a collector, and tracks flows.
pub(crate) struct Recorder<'h, 's> {
    collector: RunCollector,
    slices: Slices,
    names: Vec<String>,
    first_sources: Vec<Option<Headers>>,
    has_first: Vec<bool>,
    flows: Vec<FlowState>,
    /// Headers of all flows of the sending point so far, known before their sightings are reported.
    headers: &'h RefCell<Vec<Headers>>,
    axis: TimeAxis,
    reordering: ReorderingTracker,
    sink: Option<&'s mut dyn PacketSink>,
    failed: Option<String>,
    unclassified_frames: u64,
    last_arrival: LastArrival,
}

/// The packet that arrived last.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LastArrival {
    received_ns: u64,
    /// When it was sent, by the clock of the sending point; 0 if nothing arrived.
    pub(crate) sent_ns: u64,
}

/// Result of a recorder.
pub(crate) struct Recorded {
    pub(crate) collector: RunCollector,
    pub(crate) flows: Vec<FlowState>,
    pub(crate) names: Vec<String>,
    pub(crate) reordering: ReorderingTracker,
    pub(crate) unclassified_frames: u64,
    pub(crate) last_arrival: LastArrival,
}

impl<'h, 's> Recorder<'h, 's> {
    pub(crate) fn new(
        rule: &SliceRule,
        collector: RunCollector,
        headers: &'h RefCell<Vec<Headers>>,
        axis: TimeAxis,
        timeout_ns: u64,
        sink: Option<&'s mut dyn PacketSink>,
    ) -> Self {
        let (slices, names, first_sources) = match rule {
            SliceRule::Automatic => (
                Slices::Automatic(AutomaticSlices::default()),
                Vec::new(),
                Vec::new(),
            ),
            SliceRule::Matched(matched) => (
                Slices::matched(matched.iter().map(|slice| &slice.matches)),
                matched.iter().map(|slice| slice.name.clone()).collect(),
                matched.iter().map(|slice| slice.first_source).collect(),
            ),
        };
        Self {
            collector,
            slices,
            has_first: vec![false; names.len()],
            names,
            first_sources,
            flows: Vec::new(),
            headers,
            axis,
            reordering: ReorderingTracker::new(timeout_ns),
            sink,
            failed: None,
            unclassified_frames: 0,
            last_arrival: LastArrival::default(),
        }
    }

    /// The result.
    pub(crate) fn finish(self) -> Result<Recorded, AnalysisError> {
        if let Some(problem) = self.failed {
            return Err(AnalysisError::Sink(problem));
        }
        Ok(Recorded {
            collector: self.collector,
            flows: self.flows,
            names: self.names,
            reordering: self.reordering,
            unclassified_frames: self.unclassified_frames,
            last_arrival: self.last_arrival,
        })
    }

    /// The index of a packet's flow, and its slice.
    #[inline]
    fn place(&mut self, sent: &Sighting) -> (usize, Option<usize>) {
        let index = sent.flow as usize;
        if index >= self.flows.len() {
            self.learn(index);
        }
        match self.flows[index].slice {
            Membership::Of(slice) => (index, Some(slice)),
            Membership::None => (index, None),
            Membership::Unknown => (index, self.join_slice(index)),
        }
    }

    /// Make sure that flows up to `index` are known.
    #[cold]
    fn learn(&mut self, index: usize) {
        let headers = self.headers.borrow();
        let new = headers.get(self.flows.len()..=index).unwrap_or_default();
        self.flows.extend(new.iter().copied().map(FlowState::new));
        // Headers are always known before; a flow without them is treated as one without ports.
        self.flows
            .resize_with(index + 1, || FlowState::new(Headers::default()));
    }

    #[cold]
    fn join_slice(&mut self, index: usize) -> Option<usize> {
        let headers = self.flows[index].headers;
        let slice = match self.slices.slice_of(&headers) {
            SliceOfFlow::Known(slice) => slice,
            SliceOfFlow::New(name) => {
                self.names.push(name.clone());
                self.has_first.push(false);
                self.collector.add_slice(name)
            }
            SliceOfFlow::None => {
                self.flows[index].slice = Membership::None;
                return None;
            }
        };
        let source = self.first_sources.get(slice).copied().flatten();
        let is_first = match source {
            Some(source) => plain(&source) == plain(&headers),
            None => !std::mem::replace(&mut self.has_first[slice], true),
        };
        let flow = &mut self.flows[index];
        flow.slice = Membership::Of(slice);
        flow.is_first = is_first;
        Some(slice)
    }

    /// Reports an arrival of a slice's first source, unless its timestamp was restored.
    #[inline]
    fn time_arrival(&mut self, (index, slice): (usize, usize), received: &Sighting, at: Instant) {
        if self.flows[index].is_first && !received.time_is_restored {
            self.collector.on_received_from_first(slice, at);
        }
    }

    #[inline]
    fn report(
        &mut self,
        (index, slice): (usize, usize),
        sent: &Sighting,
        received: Option<&Sighting>,
        sequence: u64,
    ) {
        let Some(sink) = &mut self.sink else { return };
        if self.failed.is_some() {
            return;
        }
        let fate = PacketFate {
            slice: &self.names[slice],
            headers: &self.flows[index].headers,
            sequence,
            sent_ns: self.axis.of_sent(sent.time_ns),
            received_ns: received.map(|one| self.axis.of_received(one.time_ns)),
            l2_bytes: sent.l2_bytes,
            received_dscp: received.map(|one| one.dscp),
        };
        self.failed = sink.on_packet(&fate).err();
    }
}

impl MatchObserver for Recorder<'_, '_> {
    #[inline]
    fn on_sent(&mut self, sent: &Sighting) {
        if !self.axis.holds(sent) {
            return;
        }
        let (index, slice) = self.place(sent);
        let at_ns = self.axis.of_sent(sent.time_ns);
        let flow = &mut self.flows[index];
        flow.sent_frames += 1;
        flow.sent_bytes += u64::from(sent.l2_bytes);
        flow.sent = extended(flow.sent, at_ns);
        match slice {
            Some(slice) => {
                let at = Instant::from_nanos(at_ns);
                // A restored timestamp ends no inter-arrival time.
                let is_first = flow.is_first && !sent.time_is_restored;
                self.collector.on_sent(slice, is_first, at, sent.l2_bytes);
            }
            None => self.unclassified_frames += 1,
        }
    }

    #[inline]
    fn on_received(&mut self, sent: &Sighting, received: &Sighting, order: SendOrder) {
        if !self.axis.holds(sent) {
            return;
        }
        if received.time_ns > self.last_arrival.received_ns {
            self.last_arrival = LastArrival {
                received_ns: received.time_ns,
                sent_ns: sent.time_ns,
            };
        }
        let (index, slice) = self.place(sent);
        self.reordering.on_received(sent, received, order);
        let sent_ns = self.axis.of_sent(sent.time_ns);
        let received_ns = self.axis.of_received(received.time_ns);
        let flow = &mut self.flows[index];
        flow.received_frames += 1;
        flow.received_bytes += u64::from(received.l2_bytes);
        flow.received = extended(flow.received, received_ns);
        let has_delay = !sent.time_is_restored && !received.time_is_restored;
        if has_delay {
            flow.delays.record(received_ns.saturating_sub(sent_ns));
        }
        if let Some(slice) = slice {
            let (sent_at, at) = (
                Instant::from_nanos(sent_ns),
                Instant::from_nanos(received_ns),
            );
            if has_delay {
                let position = order.in_flow.map(|sequence| FlowPosition {
                    flow: sent.flow,
                    sequence,
                });
                self.collector
                    .on_received(slice, position, sent_at, at, received.l2_bytes);
            } else {
                self.collector
                    .on_received_unmatched(slice, at, received.l2_bytes);
            }
            self.time_arrival((index, slice), received, at);
            self.report((index, slice), sent, Some(received), order.overall);
        }
    }

    fn on_lost(&mut self, sent: &Sighting, order: u64) {
        if !self.axis.holds(sent) {
            return;
        }
        let (index, slice) = self.place(sent);
        self.flows[index].lost_frames += 1;
        if let Some(slice) = slice {
            let at = Instant::from_nanos(self.axis.of_sent(sent.time_ns));
            self.collector.on_lost(slice, at, sent.l2_bytes);
            self.report((index, slice), sent, None, order);
        }
    }

    fn on_duplicate(&mut self, sent: &Sighting, _received: &Sighting) {
        if !self.axis.holds(sent) {
            return;
        }
        let (index, _) = self.place(sent);
        self.flows[index].duplicate_frames += 1;
    }

    fn on_ambiguous_sent(&mut self, sent: &Sighting) {
        if !self.axis.holds(sent) {
            return;
        }
        let (index, _) = self.place(sent);
        self.flows[index].ambiguous_frames += 1;
    }

    fn on_ambiguous_received(&mut self, first_sent: Option<&Sighting>, received: &Sighting) {
        // For throughput it does not matter which of them it is.
        let Some(sent) = first_sent.filter(|sent| self.axis.holds(sent)) else {
            return;
        };
        let (index, slice) = self.place(sent);
        let at_ns = self.axis.of_received(received.time_ns);
        let flow = &mut self.flows[index];
        flow.received_frames += 1;
        flow.received_bytes += u64::from(received.l2_bytes);
        flow.received = extended(flow.received, at_ns);
        if let Some(slice) = slice {
            let at = Instant::from_nanos(at_ns);
            self.collector
                .on_received_unmatched(slice, at, received.l2_bytes);
            self.time_arrival((index, slice), received, at);
        }
    }

    fn on_ambiguous_closed(&mut self, group: &AmbiguousGroup) {
        // The number lost is known, but not which: they are counted at the time the first was sent.
        let Some(sent) = group.first_sent.filter(|sent| self.axis.holds(sent)) else {
            return;
        };
        let (index, slice) = self.place(&sent);
        self.flows[index].lost_frames += group.lost_at_least();
        if let Some(slice) = slice {
            let at = Instant::from_nanos(self.axis.of_sent(sent.time_ns));
            for _ in 0..group.lost_at_least() {
                self.collector.on_lost(slice, at, sent.l2_bytes);
            }
        }
    }
}

/// Headers that identify a flow: without ECN marks.
const fn plain(headers: &Headers) -> Headers {
    Headers {
        ecn: Ecn::NotEct,
        ..*headers
    }
}

/// Drop precedence of an assured-forwarding code point (RFC 2597, section 6).
#[must_use]
pub const fn assured_forwarding_colour(dscp: u8) -> Option<&'static str> {
    match dscp {
        10 | 18 | 26 | 34 => Some("green"),
        12 | 20 | 28 | 36 => Some("yellow"),
        14 | 22 | 30 | 38 => Some("red"),
        _ => None,
    }
}
