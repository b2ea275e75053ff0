//! Ports: where nodes send.

use crate::device::Forwarding;
use crate::endpoint::TransmitRing;
use crate::event::{EventQueue, Place};
use crate::packet::{PacketId, PacketStore, traffic_class};
use slicewise_units::Instant;

/// A port of a node in a running network. Its number is also that of the link it sends on.
#[derive(Debug, Clone)]
pub(crate) struct Port<F> {
    pub(crate) egress: Egress<F>,
    /// When its timer is set for; `Instant::MAX` for never.
    wake_at: Instant,
    timer: Place,
}

/// What a port sends, by the kind of its node.
#[derive(Debug, Clone)]
pub(crate) enum Egress<F> {
    /// An endpoint's adapter.
    Adapter(TransmitRing),
    /// The forwarding plane of a device.
    Forwarding(F),
    /// Nothing: no flow leaves a device here.
    Idle,
}

impl<F: Forwarding> Egress<F> {
    /// When to ask for a frame; [`Instant::MAX`] while none waits.
    #[inline]
    pub(crate) fn poll_at(&self) -> Instant {
        match self {
            Self::Forwarding(forwarding) => forwarding.poll_at().unwrap_or(Instant::MAX),
            Self::Adapter(ring) if !ring.is_empty() => Instant::ZERO,
            Self::Adapter(_) | Self::Idle => Instant::MAX,
        }
    }

    /// The frame to send at `now`, if one may leave. What the node changed of it is written into the
    /// packet.
    #[inline]
    pub(crate) fn poll_transmit(
        &mut self,
        packets: &mut PacketStore,
        now: Instant,
    ) -> Option<PacketId> {
        match self {
            Self::Forwarding(forwarding) => {
                let frame = forwarding.poll_egress(now)?;
                let id = PacketId::try_from(frame.handle).unwrap_or(PacketId::MAX);
                packets.get_mut(id).traffic_class = traffic_class(frame.dscp, frame.ecn);
                Some(id)
            }
            Self::Adapter(ring) => ring.pop(),
            Self::Idle => None,
        }
    }
}

impl<F> Port<F> {
    pub(crate) const fn new(egress: Egress<F>, timer: Place) -> Self {
        Self {
            egress,
            wake_at: Instant::MAX,
            timer,
        }
    }

    /// Set the timer for `at`.
    #[inline]
    pub(crate) fn wake(&mut self, at: Instant, events: &mut EventQueue) {
        if at != self.wake_at {
            self.wake_at = at;
            events.schedule(at, self.timer);
        }
    }

    /// The timer has expired.
    #[inline]
    pub(crate) fn on_timer(&mut self) {
        self.wake_at = Instant::MAX;
    }
}
