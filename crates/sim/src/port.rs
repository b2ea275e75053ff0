//! Ports: where nodes send.

use crate::endpoint::TransmitRing;
use crate::event::{EventQueue, Place};
use slicewise_units::Instant;

/// A port of a node in a running network. Its number is also that of the link it sends on.
#[derive(Debug, Clone)]
pub(crate) struct Port<F> {
    pub(crate) egress: Egress<F>,
    /// When its timer is set for; `Instant::MAX` for never.
    wake_at: Instant,
    timer: Place,
    /// At a device with flow control, by flow: that of the link by which the flow's frames reach the device. Empty
    /// without flow control.
    controls: Vec<u32>,
}

/// What a port sends, by the kind of its node.
#[derive(Debug, Clone)]
pub(crate) enum Egress<F> {
    /// An endpoint's adapter.
    Adapter(TransmitRing),
    /// An adapter that puts every frame on its link at once, behind those before it: nobody pauses it, it has room for
    /// all, and no connection waits for a frame to leave. See `topology/ahead.rs`.
    Ahead,
    /// The forwarding plane of a device.
    Forwarding(F),
    /// Nothing: no flow leaves a device here.
    Idle,
}

impl<F> Port<F> {
    pub(crate) const fn new(egress: Egress<F>, timer: Place, controls: Vec<u32>) -> Self {
        Self {
            controls,
            egress,
            wake_at: Instant::MAX,
            timer,
        }
    }

    /// The flow control that a frame of `flow` is subject to while it waits here.
    #[inline]
    pub(crate) fn control_of(&self, flow: u16) -> Option<usize> {
        let control = self.controls.get(usize::from(flow))?;
        Some(*control as usize)
    }

    /// Frames that wait in an adapter.
    pub(crate) fn waiting(&self) -> usize {
        match &self.egress {
            Egress::Adapter(ring) => ring.len(),
            Egress::Ahead | Egress::Forwarding(_) | Egress::Idle => 0,
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
