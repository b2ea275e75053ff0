//! A running network: takes events in order and lets frames go from node to node.

use crate::device::{Device, Forwarding};
use crate::event::{Event, EventQueue};
use crate::host::{Interrupt, Receiver, TransmitQueue};
use crate::link::Link;
use crate::observer::{FlowId, Observer};
use crate::packet::{Packet, PacketId, PacketStore};
use crate::source::Source;
use crate::topology::FlowParams;
use slicewise_dataplane::{Frame, Verdict};
use slicewise_model::Colour;
use slicewise_units::{Duration, Instant};
use slicewise_wire::Headers;

/// A network at work. Made by [`Topology::build`](crate::Topology::build).
#[derive(Debug, Clone)]
pub struct Network<F, O> {
    events: EventQueue,
    handled: u64,
    packets: PacketStore,
    links: Vec<(Link, LinkEnd)>,
    devices: Vec<Device<F>>,
    hosts: Vec<Host>,
    flows: Vec<Flow>,
    observer: O,
}

/// Where a link leads.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LinkEnd {
    Host(u32),
    Device(u32),
}

#[derive(Debug, Clone)]
pub(crate) struct Host {
    pub(crate) receiver: Receiver,
    pub(crate) transmit_queue: Option<TransmitQueue>,
}

/// A flow in a running network.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    id: FlowId,
    host: u32,
    link: u32,
    l2_bytes: u32,
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
            l2_bytes: params.l2_bytes,
            sent: 0,
            headers: params.headers,
            source: params.source.clone(),
        }
    }
}

/// What a run came to, beside what the observer saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// When the last event happened.
    pub ended_at: Instant,
    /// Packets still on their way: zero where the network drained.
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
        mut events: EventQueue,
        links: Vec<(Link, LinkEnd)>,
        devices: Vec<Device<F>>,
        hosts: Vec<Host>,
        mut flows: Vec<Flow>,
        observer: O,
    ) -> Self {
        for (index, flow) in (0u32..).zip(&mut flows) {
            if let Some(at) = flow.source.next_departure() {
                events.schedule(at, Event::Departure(index));
            }
        }
        let packets = PacketStore::default();
        Self {
            events,
            handled: 0,
            packets,
            links,
            devices,
            hosts,
            flows,
            observer,
        }
    }

    /// Let everything happen that is due until `end`, that moment included.
    pub fn run_until(&mut self, end: Instant) -> Outcome {
        let mut ended_at = Instant::ZERO;
        while let Some((now, event)) = self.events.pop() {
            if now > end {
                self.events.schedule(now, event);
                break;
            }
            ended_at = now;
            self.handled += 1;
            match event {
                Event::Departure(flow) => self.on_departure(flow, now),
                Event::Arrival(link) => self.on_arrival(link, now),
                Event::Egress(device) => self.on_egress(device, now),
                Event::Interrupt(host) => self.on_interrupt(host, now),
            }
        }
        Outcome {
            ended_at,
            in_flight: self.packets.len(),
            events: self.handled,
        }
    }

    /// The forwarding planes of the devices, in the order they were added.
    pub fn forwarding(&self) -> impl ExactSizeIterator<Item = &F> {
        self.devices.iter().map(|device| &device.forwarding)
    }

    /// What watched the run.
    pub fn into_observer(self) -> O {
        self.observer
    }

    /// A source hands a packet to its host's network adapter.
    #[inline]
    fn on_departure(&mut self, index: u32, now: Instant) {
        let flow = &mut self.flows[index as usize];
        if let Some(next) = flow.source.next_departure() {
            self.events.schedule(next, Event::Departure(index));
        }
        let packet = Packet {
            sent_at: now,
            sequence: flow.sent,
            l2_bytes: flow.l2_bytes,
            flow: u16::try_from(index).unwrap_or(u16::MAX),
            l3_offset: flow.headers.l3_offset,
            dscp: flow.headers.dscp,
        };
        flow.sent += 1;
        self.observer.on_sent(&flow.id, &packet);
        let host = &mut self.hosts[flow.host as usize];
        if host
            .transmit_queue
            .as_mut()
            .is_some_and(|queue| !queue.has_room(now))
        {
            self.observer.on_lost(&flow.id, &packet, now);
            return;
        }
        let id = self.packets.insert(packet);
        let link = &mut self.links[flow.link as usize].0;
        let (sent, first_arrival) = link.transmit(id, packet.lengths(), now);
        if let Some(queue) = &mut host.transmit_queue {
            queue.on_transmit(sent);
        }
        if let Some(at) = first_arrival {
            self.events.schedule(at, Event::Arrival(flow.link));
        }
    }

    /// The first frame in flight on a link is where the link leads.
    #[inline]
    fn on_arrival(&mut self, index: u32, now: Instant) {
        let (link, end) = &mut self.links[index as usize];
        let Some((packet, next)) = link.deliver() else {
            debug_assert!(false, "an arrival without a frame");
            return;
        };
        if let Some(at) = next {
            self.events.schedule(at, Event::Arrival(index));
        }
        match *end {
            LinkEnd::Device(device) => self.forward(device, packet, now),
            LinkEnd::Host(host) => self.receive(host, packet, now),
        }
    }

    /// A device offers a frame to its forwarding plane.
    #[inline]
    fn forward(&mut self, index: u32, id: PacketId, now: Instant) {
        let packet = self.packets.get(id);
        let flow = &self.flows[usize::from(packet.flow)];
        let frame = Frame {
            handle: u64::from(id),
            lengths: packet.lengths(),
            dscp: packet.dscp,
            colour: Colour::Green,
        };
        let forwarding = &mut self.devices[index as usize].forwarding;
        let verdict = if packet.dscp == flow.headers.dscp {
            forwarding.on_frame(frame, &flow.headers, now)
        } else {
            // A device before this one remarked it.
            let headers = Headers {
                dscp: packet.dscp,
                ..flow.headers
            };
            forwarding.on_frame(frame, &headers, now)
        };
        match verdict {
            Verdict::Queued => self.transmit(index, now),
            Verdict::Dropped(_) => {
                let packet = self.packets.remove(id);
                self.observer.on_lost(&flow.id, &packet, now);
            }
        }
    }

    /// A wake-up scheduled for a device.
    #[inline]
    fn on_egress(&mut self, index: u32, now: Instant) {
        self.devices[index as usize].wake_at = Instant::MAX;
        self.transmit(index, now);
    }

    /// Send the next frame of a device if its egress link is free and one may leave, and see to
    /// it that the device wakes when the next one may.
    #[inline]
    fn transmit(&mut self, index: u32, now: Instant) {
        let device = &mut self.devices[index as usize];
        let link = &mut self.links[device.egress as usize].0;
        let mut free_at = link.free_at();
        let mut poll_at = device.forwarding.poll_at().unwrap_or(Instant::MAX);
        if poll_at.max(free_at) <= now {
            if let Some(frame) = device.forwarding.poll_egress(now) {
                let id = PacketId::try_from(frame.handle).unwrap_or(PacketId::MAX);
                self.packets.get_mut(id).dscp = frame.dscp;
                let first_arrival;
                (free_at, first_arrival) = link.transmit(id, frame.lengths, now);
                if let Some(at) = first_arrival {
                    self.events.schedule(at, Event::Arrival(device.egress));
                }
            }
            // Whatever it answers, it is not asked twice in one nanosecond.
            let later = now.saturating_add(Duration::from_nanos(1));
            poll_at = device
                .forwarding
                .poll_at()
                .unwrap_or(Instant::MAX)
                .max(later);
        }
        device.wake(index, poll_at.max(free_at), &mut self.events);
    }

    /// A frame reaches a host's network adapter.
    #[inline]
    fn receive(&mut self, index: u32, id: PacketId, now: Instant) {
        match self.hosts[index as usize].receiver.on_arrival(id, now) {
            Interrupt::Now => self.capture(id, now),
            Interrupt::At(at) => self.events.schedule(at, Event::Interrupt(index)),
            Interrupt::Pending => {}
        }
    }

    fn on_interrupt(&mut self, index: u32, now: Instant) {
        let waiting = self.hosts[index as usize].receiver.on_interrupt(now);
        for id in &waiting {
            self.capture(*id, now);
        }
        self.hosts[index as usize].receiver.recycle(waiting);
    }

    /// The capture on a receiving host sees a packet.
    #[inline]
    fn capture(&mut self, id: PacketId, now: Instant) {
        let packet = self.packets.remove(id);
        self.observer
            .on_received(&self.flows[usize::from(packet.flow)].id, &packet, now);
    }
}
