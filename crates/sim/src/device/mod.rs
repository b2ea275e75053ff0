//! Devices under test: what a frame meets between two links.
//!
//! The generic device ([`DeviceParams`]) processes a frame that arrives for a fixed time, finds its
//! egress port in a table, and offers the frame to the forwarding plane of that port, which is polled whenever
//! the port's transmitter can take a frame. The other files in this folder describe the ports of
//! particular devices.

pub mod isr4221;
pub mod port;
pub mod qos_sched;
pub mod switch;
pub mod tc;

use crate::packet::{PacketId, packet_of};
use qos_sched::QosSched;
use slicewise_dataplane::{Frame, Pipeline, Verdict};
use slicewise_study::FlowControlParams;
use slicewise_units::{Duration, Instant};
use slicewise_wire::{Headers, TrafficClass};
use std::num::NonZero;
use switch::Switch;
use tc::Tc;

/// Forwarding plane, which decides which frame leaves next: the contract of [`Pipeline`], open to models of devices
/// that have something before or behind one.
pub trait Forwarding {
    /// The disciplines of its policy.
    fn pipeline(&self) -> &Pipeline;
    /// The same, to change them.
    fn pipeline_mut(&mut self) -> &mut Pipeline;

    /// Queue a frame or drop it.
    fn on_frame(&mut self, frame: Frame, headers: &Headers, now: Instant) -> Verdict {
        let class = self.pipeline().classifier().classify(headers);
        self.on_classified(frame, headers, class, now)
    }
    /// The same with a frame whose `class` the classifier of the policy has found.
    fn on_classified(
        &mut self,
        frame: Frame,
        headers: &Headers,
        class: u32,
        now: Instant,
    ) -> Verdict;
    /// Drop a frame for which the device has no room, whatever room its queue has.
    fn refuse(&mut self, frame: Frame, headers: &Headers, class: u32, now: Instant) -> Verdict {
        let pipeline = self.pipeline_mut();
        pipeline.on_classified_frame(frame, headers, class, now, false)
    }

    /// Offer a frame that has arrived, if there is `has_room` for it, and whose `class` the classifier of the policy has found.
    #[inline(always)]
    fn offer(
        &mut self,
        frame: Frame,
        headers: &Headers,
        class: u32,
        has_room: bool,
        now: Instant,
    ) -> Offered {
        let poll_at = self.poll_at();
        let verdict = if has_room {
            self.on_classified(frame, headers, class, now)
        } else {
            self.refuse(frame, headers, class, now)
        };
        let is_behind = poll_at > now && self.poll_at() == poll_at && !self.has_dropped();
        Offered { verdict, is_behind }
    }

    /// The next packet to send at `now`, if one may leave.
    fn poll_egress(&mut self, now: Instant) -> Option<Leaving>;
    /// Returns true if frames that were queued have since been dropped; asked after each of the methods above.
    fn has_dropped(&self) -> bool;
    /// A frame that was queued and has since been dropped; called until there is none where
    /// [`has_dropped`](Self::has_dropped) says so.
    fn poll_dropped(&mut self) -> Option<Frame>;
    /// The handle of a frame that will leave soon, whose packet is prefetched; [`u64::MAX`] without one.
    #[inline]
    fn next_handle(&self) -> u64 {
        u64::MAX
    }
    /// When to poll next; [`Instant::MAX`] while nothing waits.
    fn poll_at(&self) -> Instant;

    /// Poll it at `now` if it is due, and if the transmitter of its port is ready then.
    #[inline]
    fn serve(&mut self, ready_at: Instant, now: Instant) -> Served {
        let mut poll_at = self.poll_at();
        let mut leaving = None;
        if poll_at.max(ready_at) <= now {
            leaving = self.poll_egress(now);
            // Whatever it answers, it is not asked twice in one nanosecond.
            let later = now.saturating_add(Duration::from_nanos(1));
            poll_at = self.poll_at().max(later);
        }
        Served { leaving, poll_at }
    }
}

/// Answer of a [`Forwarding`] when a frame is [offered](Forwarding::offer).
#[derive(Debug, Clone, Copy)]
pub struct Offered {
    /// Tells whether the frame waits.
    pub verdict: Verdict,
    /// It has changed nothing about when the next frame leaves: mostly it is behind others.
    pub is_behind: bool,
}

/// Answer of a [`Forwarding`] to a port that [serves](Forwarding::serve) it.
#[derive(Debug, Clone, Copy)]
pub struct Served {
    /// Packet to send now.
    pub leaving: Option<Leaving>,
    /// See [`Forwarding::poll_at`].
    pub poll_at: Instant,
}

/// A packet that leaves.
#[derive(Debug, Clone, Copy)]
pub struct Leaving {
    /// One more than where it lies, so that there is a value left for no packet: an option of this fits registers.
    after_id: NonZero<PacketId>,
    /// Traffic class that the device wrote into it.
    pub traffic_class: TrafficClass,
}

impl Leaving {
    /// Where it lies.
    #[inline]
    #[must_use]
    pub const fn id(self) -> PacketId {
        self.after_id.get() - 1
    }
}

impl From<Frame> for Leaving {
    #[inline]
    fn from(frame: Frame) -> Self {
        Self {
            after_id: NonZero::<PacketId>::MIN.saturating_add(packet_of(&frame)),
            traffic_class: frame.traffic_class,
        }
    }
}

impl Forwarding for Pipeline {
    #[inline]
    fn pipeline(&self) -> &Pipeline {
        self
    }

    fn pipeline_mut(&mut self) -> &mut Pipeline {
        self
    }

    #[inline]
    fn on_classified(
        &mut self,
        frame: Frame,
        headers: &Headers,
        class: u32,
        now: Instant,
    ) -> Verdict {
        self.on_classified_frame(frame, headers, class, now, true)
    }

    // One call and not several, for planes that are inlined.
    #[inline(never)]
    fn poll_egress(&mut self, now: Instant) -> Option<Leaving> {
        self.poll_egress(now).map(Leaving::from)
    }

    #[inline]
    fn has_dropped(&self) -> bool {
        self.has_dropped()
    }

    #[inline]
    fn poll_dropped(&mut self) -> Option<Frame> {
        self.poll_dropped().map(|dropped| dropped.frame)
    }

    #[inline]
    fn next_handle(&self) -> u64 {
        self.next_handle()
    }

    #[inline]
    fn poll_at(&self) -> Instant {
        self.poll_at().unwrap_or(Instant::MAX)
    }
}

/// The forwarding planes of the devices that studies have.
#[derive(Debug)]
pub enum Plane {
    /// A policy over a link.
    Pipeline(Pipeline),
    /// A policy over a link, with a buffer that its queues share.
    Switch(Switch),
    /// The same under Linux traffic control.
    Tc(Tc),
    /// A policy between threads that hand packets on in bursts.
    QosSched(Box<QosSched>),
}

impl From<QosSched> for Plane {
    fn from(threads: QosSched) -> Self {
        Self::QosSched(Box::new(threads))
    }
}

impl Plane {
    /// From `now` on, no frame waits for others that would leave with it: sources have stopped.
    pub(crate) fn stop_waiting(&mut self, now: Instant) {
        match self {
            Self::Pipeline(_) | Self::Switch(_) | Self::Tc(_) => {}
            Self::QosSched(threads) => threads.stop_waiting(now),
        }
    }

    /// The pipeline of any but the first kind, which most studies have alone.
    #[inline(never)]
    fn pipeline_elsewhere(&self) -> &Pipeline {
        match self {
            Self::Pipeline(pipeline) => pipeline,
            Self::Switch(switch) => switch.pipeline(),
            Self::Tc(tc) => tc.pipeline(),
            Self::QosSched(threads) => threads.pipeline(),
        }
    }

    /// [`offer`](Forwarding::offer) of any but the first kind.
    #[inline(never)]
    fn offer_elsewhere(
        &mut self,
        frame: Frame,
        headers: &Headers,
        class: u32,
        has_room: bool,
        now: Instant,
    ) -> Offered {
        match self {
            Self::Pipeline(pipeline) => pipeline.offer(frame, headers, class, has_room, now),
            Self::Switch(switch) => switch.offer(frame, headers, class, has_room, now),
            Self::Tc(tc) => tc.offer(frame, headers, class, has_room, now),
            Self::QosSched(threads) => threads.offer(frame, headers, class, has_room, now),
        }
    }

    /// [`serve`](Forwarding::serve) of any but the first kind.
    #[inline(never)]
    fn serve_elsewhere(&mut self, ready_at: Instant, now: Instant) -> Served {
        match self {
            Self::Pipeline(pipeline) => pipeline.serve(ready_at, now),
            Self::Switch(switch) => switch.serve(ready_at, now),
            Self::Tc(tc) => tc.serve(ready_at, now),
            Self::QosSched(threads) => threads.serve(ready_at, now),
        }
    }
}

impl Forwarding for Plane {
    #[inline]
    fn pipeline(&self) -> &Pipeline {
        if let Self::Pipeline(pipeline) = self {
            return pipeline;
        }
        self.pipeline_elsewhere()
    }

    fn pipeline_mut(&mut self) -> &mut Pipeline {
        match self {
            Self::Pipeline(pipeline) => pipeline,
            Self::Switch(switch) => switch.pipeline_mut(),
            Self::Tc(tc) => tc.pipeline_mut(),
            Self::QosSched(threads) => threads.pipeline_mut(),
        }
    }

    #[inline(always)]
    fn on_classified(
        &mut self,
        frame: Frame,
        headers: &Headers,
        class: u32,
        now: Instant,
    ) -> Verdict {
        match self {
            Self::Pipeline(pipeline) => pipeline.on_classified(frame, headers, class, now),
            Self::Switch(switch) => switch.on_classified(frame, headers, class, now),
            Self::Tc(tc) => tc.on_classified(frame, headers, class, now),
            Self::QosSched(threads) => threads.on_classified(frame, headers, class, now),
        }
    }

    #[inline(always)]
    fn offer(
        &mut self,
        frame: Frame,
        headers: &Headers,
        class: u32,
        has_room: bool,
        now: Instant,
    ) -> Offered {
        if let Self::Pipeline(pipeline) = self {
            return pipeline.offer(frame, headers, class, has_room, now);
        }
        self.offer_elsewhere(frame, headers, class, has_room, now)
    }

    #[inline(always)]
    fn poll_egress(&mut self, now: Instant) -> Option<Leaving> {
        match self {
            Self::Pipeline(pipeline) => Forwarding::poll_egress(pipeline, now),
            Self::Switch(switch) => switch.poll_egress(now),
            Self::Tc(tc) => tc.poll_egress(now),
            Self::QosSched(threads) => threads.poll_egress(now),
        }
    }

    #[inline]
    fn has_dropped(&self) -> bool {
        if let Self::Pipeline(pipeline) = self {
            return pipeline.has_dropped();
        }
        if let Self::QosSched(threads) = self {
            return threads.has_dropped();
        }
        self.pipeline().has_dropped()
    }

    #[inline]
    fn poll_dropped(&mut self) -> Option<Frame> {
        match self {
            Self::Pipeline(pipeline) => Forwarding::poll_dropped(pipeline),
            Self::Switch(switch) => switch.poll_dropped(),
            Self::Tc(tc) => tc.poll_dropped(),
            Self::QosSched(threads) => threads.poll_dropped(),
        }
    }

    #[inline]
    fn next_handle(&self) -> u64 {
        match self {
            Self::Pipeline(_) | Self::Switch(_) | Self::Tc(_) => self.pipeline().next_handle(),
            Self::QosSched(_) => u64::MAX,
        }
    }

    #[inline]
    fn poll_at(&self) -> Instant {
        match self {
            Self::Pipeline(pipeline) => Forwarding::poll_at(pipeline),
            Self::Switch(switch) => switch.poll_at(),
            Self::Tc(tc) => tc.poll_at(),
            Self::QosSched(threads) => threads.poll_at(),
        }
    }

    #[inline(always)]
    fn serve(&mut self, ready_at: Instant, now: Instant) -> Served {
        if let Self::Pipeline(pipeline) = self {
            return pipeline.serve(ready_at, now);
        }
        self.serve_elsewhere(ready_at, now)
    }
}

/// A device, whose egress ports the topology adds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceParams {
    /// From the arrival of the last bit to the earliest departure of the frame. It adds delay but
    /// limits no rate: any number of frames can be processed at the same time.
    pub processing: Duration,
    /// Flow control of the links that lead to it.
    pub flow_control: Option<FlowControlParams>,
}
