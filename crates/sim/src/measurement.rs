//! The observer of studies: statistics of every slice.

use crate::observer::{FlowId, Observer};
use crate::packet::Packet;
use slicewise_stats::collect::RunCollector;
use slicewise_units::Instant;

/// Tells a collector of every packet. Bytes are those of the frame without FCS.
#[derive(Debug, Clone)]
pub struct Measurement {
    collector: RunCollector,
}

impl Measurement {
    /// Measure with `collector`.
    #[must_use]
    pub const fn new(collector: RunCollector) -> Self {
        Self { collector }
    }

    /// What was collected.
    #[must_use]
    pub fn into_collector(self) -> RunCollector {
        self.collector
    }
}

impl Observer for Measurement {
    #[inline]
    fn on_sent(&mut self, flow: &FlowId, packet: &Packet) {
        let first_source = flow.source == 0;
        let slice = usize::from(flow.slice);
        self.collector
            .on_sent(slice, first_source, packet.sent_at, packet.l2_bytes);
    }

    #[inline]
    fn on_received(&mut self, flow: &FlowId, packet: &Packet, at: Instant) {
        let slice = usize::from(flow.slice);
        self.collector
            .on_received(slice, packet.sent_at, at, packet.l2_bytes);
    }

    #[inline]
    fn on_lost(&mut self, flow: &FlowId, packet: &Packet, _now: Instant) {
        self.collector
            .on_lost(usize::from(flow.slice), packet.sent_at, packet.l2_bytes);
    }
}
