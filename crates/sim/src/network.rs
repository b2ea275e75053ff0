//! A running network: processes events in order and moves frames from node to node.
//!
//! What every packet passes is `inline(always)`, here and in what this calls: a call would save and restore registers for as
//! many instructions as most of these functions have.

use crate::device::Forwarding;
use crate::event::{Event, Place};
use crate::flow_control::{self, FlowControl};
use crate::impairment::Impairments;
use crate::observer::{FlowId, Observer};
use crate::packet::{Packet, PacketId, traffic_class};
use crate::port::{Classes, Egress, Port};
use crate::topology::PortId;
use crate::transport::Transports;
use crate::wires::{Delivered, Wires};
use slicewise_dataplane::{Frame, Verdict};
use slicewise_model::Colour;
use slicewise_traffic::{Departure, Source};
use slicewise_transport::Segment;
use slicewise_units::{Duration, Instant};
use slicewise_wire::Headers;

/// A running network, created by [`Topology::build`](crate::Topology::build).
#[derive(Debug)]
pub struct Network<F, O> {
    pub(crate) wires: Wires<O>,
    pub(crate) ports: Vec<Port<F>>,
    pub(crate) flows: Vec<Flow>,
    /// What sends the first of the flows; the others are those of connections.
    sources: Vec<Sending>,
    /// By the port that they send on.
    chains: Vec<Chain>,
    pub(crate) transports: Transports,
    pub(crate) flow_controls: Vec<FlowControl>,
    storm: Option<[PortId; 2]>,
    handled: u64,
}

/// A device: its ports are among those of the network.
#[derive(Debug, Clone, Default)]
pub(crate) struct Device {
    /// The port that sends each flow's packets to it.
    pub(crate) ingress_of_flow: Vec<u32>,
    /// The egress port of each flow's packets.
    pub(crate) egress_of_flow: Vec<u32>,
}

/// A flow in a running network.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    pub(crate) id: FlowId,
    /// The port its sender sends it from.
    pub(crate) port: u32,
    pub(crate) headers: Headers,
}

impl Flow {
    /// The priority of its packets (IEEE 802.1Q): the class selector of their code point (RFC 2474).
    #[inline]
    pub(crate) const fn priority(&self) -> u8 {
        self.headers.dscp >> 3
    }
}

/// A source that sends whatever happens to its packets.
#[derive(Debug, Clone)]
pub(crate) struct Sending {
    source: Source,
    /// The packet that leaves next; [`Instant::MAX`] if none does.
    next: Departure,
    sent: u64,
    /// Where that is scheduled; `None` in a [`Chain`].
    pub(crate) place: Option<Place>,
}

/// Sources that alone send on a link: the next packet of them all departs when one arrives at the end of the link. A few, because
/// all are looked at then.
pub(crate) type Chain = Vec<u32>;

impl Sending {
    const NEVER: Departure = Departure {
        at: Instant::MAX,
        l2_bytes: 0,
    };

    pub(crate) fn new(mut source: Source) -> Self {
        let next = source.next_departure().unwrap_or(Self::NEVER);
        Self {
            source,
            next,
            sent: 0,
            place: None,
        }
    }

    /// The packet that leaves now.
    #[inline]
    fn depart(&mut self) -> Departure {
        let next = self.source.next_departure().unwrap_or(Self::NEVER);
        std::mem::replace(&mut self.next, next)
    }
}

/// The result of a run, in addition to what the observer recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// When the last event happened.
    pub ended_at: Instant,
    /// Packets still in transit: zero if the network has drained. Of sources that alone send on a link this counts one of
    /// those that have yet to be sent.
    pub in_flight: usize,
    /// Two ports of one link that have paused each other for longer than any pause lasts: neither will send again, and the
    /// run has ended.
    pub storm: Option<[PortId; 2]>,
    /// Events handled.
    pub events: u64,
}

impl<F: Forwarding, O: Observer> Network<F, O> {
    pub(crate) fn new(
        mut wires: Wires<O>,
        ports: Vec<Port<F>>,
        flows: Vec<Flow>,
        (sources, chains): (Vec<Sending>, Vec<Chain>),
        mut transports: Transports,
        flow_controls: Vec<FlowControl>,
    ) -> Self {
        for (at, place) in transports.beginnings() {
            wires.events.schedule(at, place);
        }
        let mut network = Self {
            wires,
            ports,
            flows,
            sources,
            chains,
            transports,
            flow_controls,
            storm: None,
            handled: 0,
        };
        network.begin();
        network
    }

    /// Schedule the first packet of each source, or send the first of its chain.
    fn begin(&mut self) {
        for Sending { next, place, .. } in &self.sources {
            if let Some(place) = place {
                self.wires.events.schedule(next.at, *place);
            }
        }
        for port in 0..self.chains.len() {
            self.depart_next(port);
        }
    }

    /// Process all events due up to and including `end`.
    pub fn run_until(&mut self, end: Instant) -> Outcome {
        let mut ended_at = Instant::ZERO;
        while let Some((now, event)) = self.wires.events.pop_until(end) {
            ended_at = now;
            self.handled += 1;
            match event {
                Event::Departure(source) => self.depart(source as usize),
                Event::Arrival(port) => self.on_arrival(port, now),
                Event::Timer(port) => {
                    self.ports[port as usize].on_timer();
                    self.transmit(port, now);
                }
                Event::FlowControl(control) => {
                    self.storm = self.on_flow_control(control, now);
                    if self.storm.is_some() {
                        break;
                    }
                }
                Event::Room(end) => self.on_room(end, now),
                Event::Connection(end) => self.on_connection_timer(end, now),
                Event::Application(index) => self.on_application(index, now),
            }
        }
        let in_adapters = self.ports.iter().map(Port::waiting);
        Outcome {
            ended_at,
            in_flight: self.wires.packets.len() + in_adapters.sum::<usize>(),
            storm: self.storm,
            events: self.handled,
        }
    }

    /// A pause frame has reached `port` at `now`, no earlier than the last event: it begins no frame before
    /// `until`, and completes the one that it is sending. A moment that has passed ends a pause.
    ///
    /// Not for ports that send ahead, whose frames are on their links already: those of endpoints without limits and
    /// priorities, to a node without flow control, and those of devices without a policy.
    pub fn pause(&mut self, port: PortId, until: Instant, now: Instant) {
        let egress = self
            .ports
            .get(port.number() as usize)
            .map(|port| &port.egress);
        debug_assert!(
            !matches!(egress, Some(Egress::Ahead)),
            "{port:?} sends ahead"
        );
        self.wires.pause(port.number(), until);
        self.transmit(port.number(), now);
    }

    /// From `now` on, no earlier than the last event, connections and applications send nothing: neither data nor
    /// acknowledgements. What they have handed to their adapters goes on its way. Sources have an end of their own.
    pub fn stop_hosts(&mut self, now: Instant) {
        self.transports.stop(now);
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
        let port = self.ports.get_mut(number as usize)?;
        let Egress::Forwarding(forwarding) = &mut port.egress else {
            return None;
        };
        let changed = change(forwarding);
        port.classes = Classes::default();
        self.transmit(number, now);
        Some(changed)
    }

    /// The forwarding plane of a device's port; `None` where it has none.
    #[must_use]
    pub fn forwarding(&self, port: PortId) -> Option<&F> {
        match &self.ports.get(port.number() as usize)?.egress {
            Egress::Forwarding(forwarding) => Some(forwarding),
            Egress::Adapter(_) | Egress::Ahead => None,
        }
    }

    /// The impairments of the link that a port sends on.
    #[must_use]
    pub fn impairments(&self, port: PortId) -> Option<&Impairments> {
        self.wires.impairments(port.number())
    }

    /// The observer of the run, and the applications.
    pub fn into_parts(self) -> (O, Transports) {
        (self.wires.observer, self.transports)
    }

    /// The next packet of the chain of a port, if there is one, departs.
    #[inline]
    fn depart_next(&mut self, port: usize) {
        // The first of equal ones, as with events.
        let sources = self.chains[port].iter().map(|&source| source as usize);
        if let Some(source) = sources.min_by_key(|&source| self.sources[source].next.at) {
            self.depart(source);
        }
    }

    /// A source hands its next packet, if there is one, to its endpoint's adapter.
    #[inline]
    fn depart(&mut self, index: usize) {
        let flow = &self.flows[index];
        let sending = &mut self.sources[index];
        if sending.next.at == Instant::MAX {
            return;
        }
        let Departure { at: now, l2_bytes } = sending.depart();
        let is_sent = match &self.ports[flow.port as usize].egress {
            Egress::Adapter(ring) => ring.admits_sources(flow.priority()),
            Egress::Ahead | Egress::Forwarding(_) => true,
        };
        let sequence = sending.sent;
        sending.sent += u64::from(is_sent);
        if let Some(place) = sending.place {
            self.wires.events.schedule(sending.next.at, place);
        }
        if !is_sent {
            let id = &self.wires.flows[index];
            if id.is_measured() {
                self.wires.observer.on_withheld(id);
            }
            return;
        }
        let Flow { port, headers, .. } = flow;
        let packet = Packet {
            sent_at: now,
            queued_at: now,
            sequence,
            l2_bytes,
            flow: u16::try_from(index).unwrap_or(u16::MAX),
            l3_offset: headers.l3_offset,
            traffic_class: traffic_class(headers.dscp, headers.ecn),
        };
        self.hand_over(*port, packet, None, now);
    }

    /// An endpoint hands a packet to the adapter at one of its ports; `segment` is what a packet of a connection holds.
    #[inline(always)]
    pub(crate) fn hand_over(
        &mut self,
        number: u32,
        packet: Packet,
        segment: Option<&Segment>,
        now: Instant,
    ) {
        let id = &self.wires.flows[usize::from(packet.flow)];
        if id.is_measured() {
            self.wires.observer.on_sent(id, &packet);
        }
        if !matches!(self.ports[number as usize].egress, Egress::Ahead) {
            return self.hand_to_adapter(number, packet, segment, now);
        }
        let at = self.wires.link(number).ready_at().max(now);
        let id = self.wires.store(packet, segment);
        self.wires.send(number, id, at);
        if segment.is_some() {
            self.transports.leaves(&packet, at, now);
        }
    }

    /// The same where the adapter may have no room, or may be paused.
    #[inline(never)]
    fn hand_to_adapter(
        &mut self,
        number: u32,
        packet: Packet,
        segment: Option<&Segment>,
        now: Instant,
    ) {
        let priority = self.flows[usize::from(packet.flow)].priority();
        let port = &mut self.ports[number as usize];
        let link = self.wires.link(number);
        let (free_at, ready_at) = (link.free_at(), link.ready_at());
        let Egress::Adapter(ring) = &mut port.egress else {
            debug_assert!(false, "a flow is sent by an endpoint");
            return;
        };
        if !ring.has_room(free_at > now) {
            self.wires.lose(&packet, now);
            if segment.is_some() {
                let _ = self.transports.on_left(&packet);
            }
            return;
        }
        if ready_at <= now && ring.is_free(priority, now) {
            let id = self.wires.store(packet, segment);
            self.wires.send(number, id, now);
            if segment.is_some() {
                // Whoever hands it over goes on as long as there is room.
                let _ = self.transports.on_left(&packet);
            }
        } else {
            ring.push(packet, priority, segment);
            let ready_at = ready_at.max(ring.ready_at());
            port.wake(ready_at, &mut self.wires.events);
        }
    }

    /// The first frame in flight on a link reaches the end of it; a device offers it to the forwarding
    /// plane of its egress port.
    #[inline]
    fn on_arrival(&mut self, link: u32, now: Instant) {
        let (id, device) = match self.wires.deliver(link, now) {
            Some(Delivered::Device(id, device)) => (id, device),
            Some(Delivered::Connection(id)) => return self.on_segments(link, id, now),
            Some(Delivered::Captured) | None => return,
        };
        self.depart_next(link as usize);
        let packet = self.wires.packets.get(id);
        let (of, l2_bytes) = (packet.flow, packet.l2_bytes);
        let flow = usize::from(of);
        let number = self.wires.devices[device as usize].egress_of_flow[flow];
        if let Egress::Ahead = self.ports[number as usize].egress {
            self.wires.pass(number, id, now);
            return;
        }
        let has_room = self.has_room(number, of, l2_bytes);
        let packet = self.wires.packets.get(id);
        let headers = &self.flows[flow].headers;
        let Port {
            egress, classes, ..
        } = &mut self.ports[number as usize];
        let Egress::Forwarding(forwarding) = egress else {
            debug_assert!(false, "no adapter is at a device");
            return;
        };
        let frame = Frame {
            handle: u64::from(id),
            lengths: packet.lengths(),
            dscp: packet.dscp(),
            ecn: packet.ecn(),
            colour: Colour::Green,
        };
        let remarked;
        let (headers, class) = if frame.dscp == headers.dscp {
            (headers, classes.of(flow, forwarding, headers))
        } else {
            // A device before this one remarked it.
            remarked = Headers {
                dscp: frame.dscp,
                ..*headers
            };
            (
                &remarked,
                forwarding.pipeline().classifier().classify(&remarked),
            )
        };
        let verdict = if has_room {
            forwarding.on_classified(frame, headers, class, now)
        } else {
            forwarding.refuse(frame, headers, class, now)
        };
        match verdict {
            Verdict::Queued => {
                self.on_waiting(number, of, l2_bytes, now);
                self.forward(number, now);
            }
            Verdict::Dropped(_) => {
                if !has_room {
                    self.on_refused(number, of, now);
                }
                self.lose_dropped(number, now);
                self.wires.lose_id(id, now);
            }
        }
    }

    /// The timer of a port has expired, or a pause of it begins or ends.
    #[inline]
    pub(crate) fn transmit(&mut self, number: u32, now: Instant) {
        match self.ports[number as usize].egress {
            Egress::Forwarding(_) => self.forward(number, now),
            Egress::Adapter(_) => self.send_waiting(number, now),
            Egress::Ahead => {}
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
        let mut leaving = None;
        if poll_at.max(ready_at) <= now {
            leaving = forwarding.poll_egress(now);
            // Whatever it answers, it is not asked twice in one nanosecond.
            let later = now.saturating_add(Duration::from_nanos(1));
            poll_at = forwarding.poll_at().unwrap_or(Instant::MAX).max(later);
        }
        let has_dropped = forwarding.has_dropped();
        if let Some(frame) = leaving {
            self.wires.packets.prefetch(forwarding.next_handle());
            let controls = &mut self.flow_controls;
            flow_control::on_gone(
                port,
                controls,
                &self.flows,
                &mut self.wires,
                packet_of(&frame),
                now,
            );
            ready_at = self.wires.forward(number, &frame, now);
        }
        port.wake(poll_at.max(ready_at), &mut self.wires.events);
        if has_dropped {
            self.lose_all_dropped(number, now);
        }
    }

    /// Report frames that a device dropped from its queues as lost.
    #[inline]
    fn lose_dropped(&mut self, number: u32, now: Instant) {
        if let Egress::Forwarding(forwarding) = &self.ports[number as usize].egress
            && forwarding.has_dropped()
        {
            self.lose_all_dropped(number, now);
        }
    }

    #[cold]
    fn lose_all_dropped(&mut self, number: u32, now: Instant) {
        let port = &mut self.ports[number as usize];
        while let Egress::Forwarding(forwarding) = &mut port.egress
            && let Some(frame) = forwarding.poll_dropped()
        {
            let (id, controls) = (packet_of(&frame), &mut self.flow_controls);
            flow_control::on_gone(port, controls, &self.flows, &mut self.wires, id, now);
            self.wires.lose_id(id, now);
        }
    }

    /// Send the frame that has waited longest in an adapter, if its transmitter is ready, and set the timer for
    /// the next one.
    fn send_waiting(&mut self, number: u32, now: Instant) {
        let port = &mut self.ports[number as usize];
        let Egress::Adapter(ring) = &mut port.egress else {
            return;
        };
        let mut ready_at = self.wires.link(number).ready_at();
        let mut left = None;
        if ready_at <= now
            && let Some(packet) = ring.pop(now)
        {
            let segment = if self.wires.is_of_connection(&packet) {
                left = Some(packet);
                ring.pop_segment()
            } else {
                None
            };
            let id = self.wires.store(packet, segment.as_ref());
            ready_at = self.wires.send(number, id, now);
        }
        let at = ready_at.max(ring.ready_at());
        port.wake(at, &mut self.wires.events);
        if let Some(packet) = left
            && let Some((connection, end)) = self.transports.on_left(&packet)
        {
            let application = self.transports.application_of(connection);
            self.transports.look_at_windows(application, now);
            self.pump(connection, end, now);
        }
    }
}

/// The packet that a frame of the data plane stands for.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "it was made of one")]
pub(crate) const fn packet_of(frame: &Frame) -> PacketId {
    frame.handle as PacketId
}
