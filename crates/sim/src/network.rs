//! A running network: processes events in order and moves frames from node to node.

use crate::device::{Device, Forwarding};
use crate::event::{Event, EventQueue};
use crate::host::TransmitQueue;
use crate::impairment::Impairments;
use crate::observer::{FlowId, Observer};
use crate::packet::{Packet, PacketId};
use crate::topology::FlowParams;
use crate::wires::Wires;
use slicewise_dataplane::{Frame, Verdict};
use slicewise_model::Colour;
use slicewise_traffic::{Departure, Source};
use slicewise_units::{Duration, Instant};
use slicewise_wire::{Ecn, Headers};

/// A running network, created by [`Topology::build`](crate::Topology::build).
#[derive(Debug, Clone)]
pub struct Network<F, O> {
    wires: Wires<O>,
    devices: Vec<Device<F>>,
    /// One a host, where it is limited.
    transmit_queues: Vec<Option<TransmitQueue>>,
    flows: Vec<Flow>,
    handled: u64,
}

/// A flow in a running network.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    id: FlowId,
    host: u32,
    link: u32,
    /// Bytes of the packet that leaves next.
    next_l2_bytes: u32,
    sent: u64,
    headers: Headers,
    source: Source,
}

impl Flow {
    pub(crate) fn new(params: &FlowParams, host: u32, link: u32) -> Self {
        Self {
            id: params.id,
            host,
            link,
            next_l2_bytes: 0,
            sent: 0,
            headers: params.headers,
            source: params.source.clone(),
        }
    }

    /// When the next packet leaves, if one does.
    #[inline]
    fn next_departure(&mut self) -> Option<Instant> {
        let Departure { at, l2_bytes } = self.source.next_departure()?;
        self.next_l2_bytes = l2_bytes;
        Some(at)
    }
}

/// The result of a run, in addition to what the observer recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// When the last event happened.
    pub ended_at: Instant,
    /// Packets still in transit: zero if the network has drained.
    pub in_flight: usize,
    /// Events handled.
    pub events: u64,
}

impl<F> Device<F> {
    pub(crate) const fn new(forwarding: F, egress: u32) -> Self {
        Self {
            forwarding,
            egress,
            wake_at: Instant::MAX,
        }
    }

    /// Wake at `at`, and not before.
    #[inline]
    fn wake(&mut self, index: u32, at: Instant, events: &mut EventQueue) {
        if at != self.wake_at {
            self.wake_at = at;
            events.schedule(at, Event::Egress(index));
        }
    }
}

impl<F: Forwarding, O: Observer> Network<F, O> {
    pub(crate) fn new(
        mut wires: Wires<O>,
        devices: Vec<Device<F>>,
        transmit_queues: Vec<Option<TransmitQueue>>,
        mut flows: Vec<Flow>,
    ) -> Self {
        wires.flows = flows.iter().map(|flow| flow.id).collect();
        for (index, flow) in (0u32..).zip(&mut flows) {
            if let Some(at) = flow.next_departure() {
                wires.events.schedule(at, Event::Departure(index));
            }
        }
        Self {
            wires,
            devices,
            transmit_queues,
            flows,
            handled: 0,
        }
    }

    /// Process all events due up to and including `end`.
    pub fn run_until(&mut self, end: Instant) -> Outcome {
        let mut ended_at = Instant::ZERO;
        while let Some((now, event)) = self.wires.events.pop() {
            if now > end {
                self.wires.events.schedule(now, event);
                break;
            }
            ended_at = now;
            self.handled += 1;
            match event {
                Event::Departure(flow) => self.on_departure(flow, now),
                Event::Arrival(link) => self.on_arrival(link, now),
                Event::Egress(device) => self.on_egress(device, now),
            }
        }
        Outcome {
            ended_at,
            in_flight: self.wires.packets.len(),
            events: self.handled,
        }
    }

    /// The forwarding planes of the devices, in the order they were added.
    pub fn forwarding(&self) -> impl ExactSizeIterator<Item = &F> {
        self.devices.iter().map(|device| &device.forwarding)
    }

    /// The impairments of the links, in the order they were added.
    pub fn impairments(&self) -> impl Iterator<Item = Option<&Impairments>> {
        self.wires.impairments()
    }

    /// The observer of the run.
    pub fn into_observer(self) -> O {
        self.wires.observer
    }

    /// A source hands a packet to its host's network adapter.
    #[inline]
    fn on_departure(&mut self, index: u32, now: Instant) {
        let flow = &mut self.flows[index as usize];
        let l2_bytes = flow.next_l2_bytes;
        if let Some(next) = flow.next_departure() {
            self.wires.events.schedule(next, Event::Departure(index));
        }
        let packet = Packet {
            sent_at: now,
            queued_at: now,
            sequence: flow.sent,
            l2_bytes,
            flow: u16::try_from(index).unwrap_or(u16::MAX),
            l3_offset: flow.headers.l3_offset,
            dscp: flow.headers.dscp,
        };
        flow.sent += 1;
        self.wires.observer.on_sent(&flow.id, &packet);
        let queue = &mut self.transmit_queues[flow.host as usize];
        if queue.as_mut().is_some_and(|queue| !queue.has_room(now)) {
            self.wires.lose(&packet, now);
            return;
        }
        let id = self.wires.packets.insert(packet);
        let sent = self.wires.send(flow.link, id, now);
        if let Some(queue) = queue {
            queue.on_transmit(sent);
        }
    }

    /// The first frame in flight on a link reaches the end of it; a device offers it to its forwarding
    /// plane.
    #[inline]
    fn on_arrival(&mut self, link: u32, now: Instant) {
        let Some((id, index)) = self.wires.deliver(link, now) else {
            return;
        };
        let packet = *self.wires.packets.get(id);
        let headers = &self.flows[usize::from(packet.flow)].headers;
        let frame = Frame {
            handle: u64::from(id),
            lengths: packet.lengths(),
            dscp: packet.dscp,
            ecn: Ecn::NotEct,
            colour: Colour::Green,
        };
        let forwarding = &mut self.devices[index as usize].forwarding;
        let verdict = if packet.dscp == headers.dscp {
            forwarding.on_frame(frame, headers, now)
        } else {
            // A device before this one remarked it.
            let headers = Headers {
                dscp: packet.dscp,
                ..*headers
            };
            forwarding.on_frame(frame, &headers, now)
        };
        self.lose_dropped(index, now);
        match verdict {
            Verdict::Queued => {
                self.wires.packets.get_mut(id).queued_at = now;
                self.transmit(index, now);
            }
            Verdict::Dropped(_) => {
                self.wires.packets.remove(id);
                self.wires.lose(&packet, now);
            }
        }
    }

    /// Report frames that a device dropped from its queues as lost.
    #[inline]
    fn lose_dropped(&mut self, index: u32, now: Instant) {
        while let Some(frame) = self.devices[index as usize].forwarding.poll_dropped() {
            let id = PacketId::try_from(frame.handle).unwrap_or(PacketId::MAX);
            let packet = *self.wires.packets.get(id);
            self.wires.packets.remove(id);
            self.wires.lose(&packet, now);
        }
    }

    /// A wake-up scheduled for a device.
    #[inline]
    fn on_egress(&mut self, index: u32, now: Instant) {
        self.devices[index as usize].wake_at = Instant::MAX;
        self.transmit(index, now);
    }

    /// Send the next frame of a device if its egress link is free and a frame may leave, and
    /// schedule a wake-up for the next one.
    #[inline]
    fn transmit(&mut self, index: u32, now: Instant) {
        let device = &mut self.devices[index as usize];
        let mut free_at = self.wires.free_at(device.egress);
        let mut poll_at = device.forwarding.poll_at().unwrap_or(Instant::MAX);
        if poll_at.max(free_at) <= now {
            if let Some(frame) = device.forwarding.poll_egress(now) {
                let id = PacketId::try_from(frame.handle).unwrap_or(PacketId::MAX);
                let packet = self.wires.packets.get_mut(id);
                packet.dscp = frame.dscp;
                let packet = *packet;
                free_at = self.wires.send(device.egress, id, now);
                self.wires.forwarded(&packet, free_at);
            }
            // Whatever it answers, it is not asked twice in one nanosecond.
            let later = now.saturating_add(Duration::from_nanos(1));
            poll_at = device
                .forwarding
                .poll_at()
                .unwrap_or(Instant::MAX)
                .max(later);
        }
        device.wake(index, poll_at.max(free_at), &mut self.wires.events);
        self.lose_dropped(index, now);
    }
}
