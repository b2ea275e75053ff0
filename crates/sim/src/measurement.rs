//! The observer of studies: statistics of every slice.

use crate::observer::{FlowId, Observer};
use crate::packet::Packet;
use crate::scheduler_delay::SchedulerDelays;
use slicewise_stats::collect::{FlowPosition, RunCollector};
use slicewise_stats::record::{DropCount, RunKey, RunRecord};
use slicewise_units::Instant;
use slicewise_wire::Ecn;

/// Reports every packet to a collector, and keeps the longest times in the device's scheduler.
/// Bytes are those of the
/// frame without FCS.
#[derive(Debug, Clone)]
pub struct Measurement {
    collector: RunCollector,
    scheduler: Option<SchedulerDelays>,
    /// Marked frames received.
    marked_frames: BySlice,
    /// Frames that paused hosts did not send.
    withheld_frames: BySlice,
}

/// A count by slice; slices without any may be missing.
#[derive(Debug, Clone)]
struct BySlice(Vec<u64>);

impl BySlice {
    #[cold]
    fn add_one(&mut self, slice: u16) {
        let slice = usize::from(slice);
        if self.0.len() <= slice {
            self.0.resize(slice + 1, 0);
        }
        self.0[slice] += 1;
    }

    fn of(&self, slice: usize) -> u64 {
        self.0.get(slice).copied().unwrap_or(0)
    }
}

impl Measurement {
    /// Measure with `collector`, and times in the scheduler, where there is one only, with `scheduler`.
    #[must_use]
    pub const fn new(collector: RunCollector, scheduler: Option<SchedulerDelays>) -> Self {
        Self {
            collector,
            scheduler,
            marked_frames: BySlice(Vec::new()),
            withheld_frames: BySlice(Vec::new()),
        }
    }

    /// The record of the run, and what has collected it.
    #[must_use]
    pub fn finish(mut self, key: RunKey, drops: Vec<DropCount>) -> (RunRecord, RunCollector) {
        let mut record = self.collector.finish(key, drops);
        for (index, slice) in record.slices.iter_mut().enumerate() {
            slice.scheduler = self.scheduler.as_ref().and_then(|s| s.of_slice(index));
            slice.marked_frames = self.marked_frames.of(index);
            slice.withheld_frames = self.withheld_frames.of(index);
        }
        (record, self.collector)
    }
}

impl Observer for Measurement {
    /// Counts go by the times in the packets, and only packets of one flow are compared.
    const ORDERED: bool = false;

    #[inline(always)]
    fn on_sent(&mut self, flow: &FlowId, packet: &Packet) {
        let first_source = flow.source == 0;
        let slice = usize::from(flow.slice);
        self.collector
            .on_sent(slice, first_source, packet.sent_at, packet.l2_bytes);
    }

    #[inline(always)]
    fn on_received(&mut self, flow: &FlowId, packet: &Packet, at: Instant) {
        let slice = usize::from(flow.slice);
        #[expect(clippy::cast_possible_truncation, reason = "modulo 2^32")]
        let position = FlowPosition {
            flow: packet.flow.into(),
            sequence: packet.sequence as u32,
        };
        self.collector
            .on_received(slice, Some(position), packet.sent_at, at, packet.l2_bytes);
        if flow.source == 0 {
            self.collector.on_received_from_first(slice, at);
        }
        if packet.traffic_class.ecn() == Ecn::Ce {
            self.marked_frames.add_one(flow.slice);
        }
    }

    #[inline]
    fn on_lost(&mut self, flow: &FlowId, packet: &Packet, _now: Instant) {
        self.collector
            .on_lost(usize::from(flow.slice), packet.sent_at, packet.l2_bytes);
    }

    #[inline(always)]
    fn on_forwarded(&mut self, flow: &FlowId, packet: &Packet, left: Instant) {
        if let Some(scheduler) = &mut self.scheduler {
            scheduler.on_forwarded(usize::from(flow.slice), packet, left);
        }
    }

    #[inline]
    fn on_withheld(&mut self, flow: &FlowId) {
        self.withheld_frames.add_one(flow.slice);
    }
}
