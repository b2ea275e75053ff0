//! A running network: processes events in order and moves frames from node to node.

use crate::device::Forwarding;
use crate::event::Event;
use crate::impairment::Impairments;
use crate::observer::{FlowId, Observer};
use crate::packet::{Packet, PacketId, traffic_class};
use crate::port::{Egress, Port};
use crate::topology::{FlowParams, PortId};
use crate::wires::Wires;
use slicewise_dataplane::{Frame, Verdict};
use slicewise_model::Colour;
use slicewise_traffic::{Departure, Source};
use slicewise_units::{Duration, Instant};
use slicewise_wire::Headers;

/// A running network, created by [`Topology::build`](crate::Topology::build).
#[derive(Debug, Clone)]
pub struct Network<F, O> {
    wires: Wires<O>,
    ports: Vec<Port<F>>,
    devices: Vec<Device>,
    flows: Vec<Flow>,
    handled: u64,
}

/// A device: its ports are among those of the network.
#[derive(Debug, Clone)]
pub(crate) struct Device {
    /// The egress port of each flow's packets.
    pub(crate) egress_of_flow: Vec<u32>,
}

/// A flow in a running network.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    id: FlowId,
    /// The port its sender sends it from.
    port: u32,
    /// Bytes of the packet that leaves next.
    next_l2_bytes: u32,
    sent: u64,
    headers: Headers,
    source: Source,
}

impl Flow {
    pub(crate) fn new(params: FlowParams, port: u32) -> Self {
        Self {
            id: params.id,
            port,
            next_l2_bytes: 0,
            sent: 0,
            headers: params.headers,
            source: params.source,
        }
    }

    pub(crate) const fn id(&self) -> FlowId {
        self.id
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

impl<F: Forwarding, O: Observer> Network<F, O> {
    /// The places of the sources in the event queue are the numbers of their flows.
    pub(crate) fn new(
        mut wires: Wires<O>,
        ports: Vec<Port<F>>,
        devices: Vec<Device>,
        mut flows: Vec<Flow>,
    ) -> Self {
        for (index, flow) in (0u32..).zip(&mut flows) {
            if let Some(at) = flow.next_departure() {
                wires.events.schedule(at, index);
            }
        }
        Self {
            wires,
            ports,
            devices,
            flows,
            handled: 0,
        }
    }

    /// Process all events due up to and including `end`.
    pub fn run_until(&mut self, end: Instant) -> Outcome {
        let mut ended_at = Instant::ZERO;
        while let Some((now, event)) = self.wires.events.pop_until(end) {
            ended_at = now;
            self.handled += 1;
            match event {
                Event::Departure(flow) => self.on_departure(flow, now),
                Event::Arrival(port) => self.on_arrival(port, now),
                Event::Timer(port) => {
                    self.ports[port as usize].on_timer();
                    self.transmit(port, now);
                }
            }
        }
        Outcome {
            ended_at,
            in_flight: self.wires.packets.len(),
            events: self.handled,
        }
    }

    /// A pause frame has reached `port` at `now`, no earlier than the last event: it begins no frame before
    /// `until`, and completes the one that it is sending. A moment that has passed ends a pause.
    pub fn pause(&mut self, port: PortId, until: Instant, now: Instant) {
        self.wires.pause(port.number(), until);
        self.transmit(port.number(), now);
    }

    /// Change the forwarding plane of a device's `port` at `now`, no earlier than the last event; `None` where the port
    /// has none.
    pub fn change<T>(
        &mut self,
        port: PortId,
        now: Instant,
        change: impl FnOnce(&mut F) -> T,
    ) -> Option<T> {
        let number = port.number();
        let Egress::Forwarding(forwarding) = &mut self.ports.get_mut(number as usize)?.egress
        else {
            return None;
        };
        let changed = change(forwarding);
        self.transmit(number, now);
        Some(changed)
    }

    /// The forwarding planes of the devices, in the order they were added.
    pub fn forwarding(&self) -> impl Iterator<Item = &F> {
        self.ports.iter().filter_map(|port| match &port.egress {
            Egress::Forwarding(forwarding) => Some(forwarding),
            Egress::Adapter(_) | Egress::Idle => None,
        })
    }

    /// The impairments of the link that a port sends on.
    #[must_use]
    pub fn impairments(&self, port: PortId) -> Option<&Impairments> {
        self.wires.impairments(port.number())
    }

    /// The observer of the run.
    pub fn into_observer(self) -> O {
        self.wires.observer
    }

    /// A source hands a packet to its endpoint's adapter.
    #[inline]
    fn on_departure(&mut self, index: u32, now: Instant) {
        let flow = &mut self.flows[index as usize];
        let l2_bytes = flow.next_l2_bytes;
        if let Some(next) = flow.next_departure() {
            self.wires.events.schedule(next, index);
        }
        let packet = Packet {
            sent_at: now,
            queued_at: now,
            sequence: flow.sent,
            l2_bytes,
            flow: u16::try_from(index).unwrap_or(u16::MAX),
            l3_offset: flow.headers.l3_offset,
            traffic_class: traffic_class(flow.headers.dscp, flow.headers.ecn),
        };
        flow.sent += 1;
        self.wires.observer.on_sent(&flow.id, &packet);
        let number = flow.port;
        let port = &mut self.ports[number as usize];
        let Egress::Adapter(ring) = &mut port.egress else {
            debug_assert!(false, "a flow is sent by an endpoint");
            return;
        };
        let link = self.wires.link(number);
        let (free_at, ready_at) = (link.free_at(), link.ready_at());
        if !ring.has_room(free_at > now) {
            self.wires.lose(&packet, now);
            return;
        }
        let id = self.wires.packets.insert(packet);
        if ready_at <= now && ring.is_empty() {
            self.wires.send(number, id, now);
        } else {
            ring.push(id);
            port.wake(ready_at, &mut self.wires.events);
        }
    }

    /// The first frame in flight on a link reaches the end of it; a device offers it to the forwarding
    /// plane of its egress port.
    #[inline]
    fn on_arrival(&mut self, link: u32, now: Instant) {
        let Some((id, device)) = self.wires.deliver(link, now) else {
            return;
        };
        let packet = self.wires.packets.get(id);
        let flow = usize::from(packet.flow);
        let headers = &self.flows[flow].headers;
        let number = self.devices[device as usize].egress_of_flow[flow];
        let Egress::Forwarding(forwarding) = &mut self.ports[number as usize].egress else {
            debug_assert!(false, "a flow leaves a device by a port with a policy");
            return;
        };
        let frame = Frame {
            handle: u64::from(id),
            lengths: packet.lengths(),
            dscp: packet.dscp(),
            ecn: packet.ecn(),
            colour: Colour::Green,
        };
        let verdict = if frame.dscp == headers.dscp {
            forwarding.on_frame(frame, headers, now)
        } else {
            // A device before this one remarked it.
            let headers = Headers {
                dscp: frame.dscp,
                ..*headers
            };
            forwarding.on_frame(frame, &headers, now)
        };
        match verdict {
            Verdict::Queued => self.forward(number, now),
            Verdict::Dropped(_) => {
                lose_dropped(&mut self.wires, forwarding, now);
                self.wires.lose_id(id, now);
            }
        }
    }

    /// The timer of a port has expired, or a pause of it begins or ends.
    #[inline]
    fn transmit(&mut self, number: u32, now: Instant) {
        match self.ports[number as usize].egress {
            Egress::Forwarding(_) => self.forward(number, now),
            Egress::Adapter(_) => self.send_waiting(number, now),
            Egress::Idle => {}
        }
    }

    /// Send the next frame of a device's port if its transmitter is ready and a frame may leave, and set the
    /// timer for the next one.
    #[inline]
    fn forward(&mut self, number: u32, now: Instant) {
        let port = &mut self.ports[number as usize];
        let Egress::Forwarding(forwarding) = &mut port.egress else {
            return;
        };
        let mut ready_at = self.wires.link(number).ready_at();
        let mut poll_at = forwarding.poll_at().unwrap_or(Instant::MAX);
        if poll_at.max(ready_at) <= now {
            if let Some(frame) = forwarding.poll_egress(now) {
                ready_at = self.wires.forward(number, &frame, now);
            }
            // Whatever it answers, it is not asked twice in one nanosecond.
            let later = now.saturating_add(Duration::from_nanos(1));
            poll_at = forwarding.poll_at().unwrap_or(Instant::MAX).max(later);
        }
        lose_dropped(&mut self.wires, forwarding, now);
        port.wake(poll_at.max(ready_at), &mut self.wires.events);
    }

    /// Send the frame that has waited longest in an adapter, if its transmitter is ready, and set the timer for
    /// the next one.
    fn send_waiting(&mut self, number: u32, now: Instant) {
        let port = &mut self.ports[number as usize];
        let Egress::Adapter(ring) = &mut port.egress else {
            return;
        };
        let mut ready_at = self.wires.link(number).ready_at();
        if ready_at <= now
            && let Some(id) = ring.pop()
        {
            ready_at = self.wires.send(number, id, now);
        }
        let at = if ring.is_empty() {
            Instant::MAX
        } else {
            ready_at
        };
        port.wake(at, &mut self.wires.events);
    }
}

/// Report frames that a device dropped from its queues as lost.
#[inline]
fn lose_dropped<O: Observer>(wires: &mut Wires<O>, forwarding: &mut impl Forwarding, now: Instant) {
    while let Some(frame) = forwarding.poll_dropped() {
        wires.lose_id(packet_of(&frame), now);
    }
}

/// The packet that a frame of the data plane stands for.
#[inline]
pub(crate) fn packet_of(frame: &Frame) -> PacketId {
    PacketId::try_from(frame.handle).unwrap_or(PacketId::MAX)
}
