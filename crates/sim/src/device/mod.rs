//! Devices under test: what a frame meets between two links.
//!
//! The generic device ([`DeviceParams`]) has one egress port: a frame that arrives is processed for
//! a fixed time (which the network adds to the ingress link's latency, since a delay line after a
//! FIFO link is a longer FIFO link), then offered to the forwarding plane, which is polled whenever
//! the egress link can take a frame. The other files in this folder describe particular devices.

pub mod isr4221;
pub mod port;

use slicewise_dataplane::{Frame, Pipeline, Verdict};
use slicewise_units::{Duration, Instant};
use slicewise_wire::Headers;

/// What decides which frame leaves next: the contract of [`Pipeline`], open to models of devices
/// that schedule in another way.
pub trait Forwarding {
    /// Queue a frame or drop it.
    fn on_frame(&mut self, frame: Frame, headers: &Headers, now: Instant) -> Verdict;
    /// The next frame to send at `now`, if one may leave.
    fn poll_egress(&mut self, now: Instant) -> Option<Frame>;
    /// A frame that was queued and has since been dropped; called after each of the two methods
    /// above.
    #[inline]
    fn poll_dropped(&mut self) -> Option<Frame> {
        None
    }
    /// When to poll next; `None` while nothing waits.
    fn poll_at(&self) -> Option<Instant>;
}

impl Forwarding for Pipeline {
    #[inline]
    fn on_frame(&mut self, frame: Frame, headers: &Headers, now: Instant) -> Verdict {
        self.on_frame(frame, headers, now)
    }

    #[inline]
    fn poll_egress(&mut self, now: Instant) -> Option<Frame> {
        self.poll_egress(now)
    }

    #[inline]
    fn poll_dropped(&mut self) -> Option<Frame> {
        self.poll_dropped().map(|dropped| dropped.frame)
    }

    #[inline]
    fn poll_at(&self) -> Option<Instant> {
        self.poll_at()
    }
}

/// A device with one egress port.
#[derive(Debug, Clone)]
pub struct DeviceParams<F> {
    /// What decides which frame leaves next.
    pub forwarding: F,
    /// From the arrival of the last bit to the earliest departure of the frame. It adds delay but
    /// limits no rate: any number of frames can be processed at the same time.
    pub processing: Duration,
}

/// A device in a running network.
#[derive(Debug, Clone)]
pub(crate) struct Device<F> {
    pub(crate) forwarding: F,
    /// The link its egress port sends on.
    pub(crate) egress: u32,
    /// When its wake-up is scheduled; `Instant::MAX` for never.
    pub(crate) wake_at: Instant,
}
