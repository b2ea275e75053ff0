//! Events of packets as they are sent, received and lost.

use crate::packet::Packet;
use slicewise_units::Instant;

/// Where a run is measured.
///
/// Sent packets are reported in order of time unless it [does not need that](Self::ORDERED), and so are received ones of
/// one receiver; but a packet may be reported as received, as forwarded, or as lost on a link, in advance, as soon as that is certain. What a source sends first
/// may be reported when the network is built.
///
/// Flows that are [not measured](FlowId::UNMEASURED) are not reported.
///
/// This is the interface for everything that watches packets — statistics, a capture file — and is
/// dispatched statically: a run pays only for what its observer does.
pub trait Observer {
    /// True if packets must be reported in order of time. If not, packets sent of one flow are in order, but not those
    /// of several flows: a packet may be reported when the one before it on its link arrives at the next node. The fate
    /// of packets at the last device may then be reported late: when the next one comes there, or the run stops.
    const ORDERED: bool = true;
    /// The sender hands `packet` to its network adapter, at `packet.sent_at`.
    fn on_sent(&mut self, flow: &FlowId, packet: &Packet);
    /// The receiver's capture stamps `packet` with `at`.
    fn on_received(&mut self, flow: &FlowId, packet: &Packet, at: Instant);
    /// `packet` was dropped at `now`.
    fn on_lost(&mut self, flow: &FlowId, packet: &Packet, now: Instant);
    /// The last bit of `packet`, which a device queued at `packet.queued_at`, leaves the device's port at `left`.
    #[inline]
    fn on_forwarded(&mut self, _flow: &FlowId, _packet: &Packet, _left: Instant) {}
    /// A packet was due that its source did not send, because its host is paused and holds as many as it may.
    #[inline]
    fn on_withheld(&mut self, _flow: &FlowId) {}
}

/// Both watch.
impl<A: Observer, B: Observer> Observer for (A, B) {
    const ORDERED: bool = A::ORDERED || B::ORDERED;

    #[inline]
    fn on_sent(&mut self, flow: &FlowId, packet: &Packet) {
        self.0.on_sent(flow, packet);
        self.1.on_sent(flow, packet);
    }

    #[inline]
    fn on_received(&mut self, flow: &FlowId, packet: &Packet, at: Instant) {
        self.0.on_received(flow, packet, at);
        self.1.on_received(flow, packet, at);
    }

    #[inline]
    fn on_lost(&mut self, flow: &FlowId, packet: &Packet, now: Instant) {
        self.0.on_lost(flow, packet, now);
        self.1.on_lost(flow, packet, now);
    }

    #[inline]
    fn on_forwarded(&mut self, flow: &FlowId, packet: &Packet, left: Instant) {
        self.0.on_forwarded(flow, packet, left);
        self.1.on_forwarded(flow, packet, left);
    }

    #[inline]
    fn on_withheld(&mut self, flow: &FlowId) {
        self.0.on_withheld(flow);
        self.1.on_withheld(flow);
    }
}

/// Which flow a packet belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowId {
    /// Index of its slice, in the order of the study.
    pub slice: u16,
    /// Index of its source within the slice: 0 for the first.
    pub source: u16,
}

impl FlowId {
    /// A flow that is not measured: it comes back on the path of one that is.
    pub const UNMEASURED: Self = Self {
        slice: u16::MAX,
        source: u16::MAX,
    };

    /// Returns true if its packets are reported to observers.
    #[inline]
    #[must_use]
    pub const fn is_measured(&self) -> bool {
        self.slice != u16::MAX
    }
}
