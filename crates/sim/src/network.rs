//! A running network: processes events in order and moves frames from node to node.
//!
//! Functions on the path of every packet are `inline(always)`, here and below: a call would save and restore registers
//! for as many instructions as most of these functions have. The path of a packet of a [chain](Chain) has four
//! functions, each with enough to do to need the registers for itself: that loop, the departure of the next packet, the
//! pipeline's `offer`, and [`Port::serve`].

use crate::device::{Forwarding, Offered};
use crate::event::Event;
use crate::flow_control::{FlowControl, Wish};
use crate::impairment::Impairments;
use crate::observer::{FlowId, Observer};
use crate::packet::{Packet, PacketId};
use crate::port::{Classes, Egress, Port, PortId};
use crate::sources::{Chain, Sending};
use crate::transport::Transports;
use crate::wires::{Delivered, Wires};
use slicewise_dataplane::{Frame, Verdict};
use slicewise_model::Colour;
use slicewise_transport::Segment;
use slicewise_units::{Duration, Instant};
use slicewise_wire::Headers;

/// A running network, created by [`Topology::build`](crate::Topology::build).
#[derive(Debug)]
pub struct Network<F, O> {
    pub(crate) wires: Wires<O>,
    pub(crate) ports: Vec<Port<F>>,
    pub(crate) flows: Vec<Flow>,
    /// Those that have events of their own.
    sources: Vec<Sending>,
    /// The others.
    chains: Vec<Chain>,
    pub(crate) transports: Transports,
    storm: Option<[PortId; 2]>,
}

/// A flow in a running network.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    pub(crate) id: FlowId,
    /// The port its sender sends it from.
    pub(crate) port: u32,
    /// The port by which it leaves the first device, or `port` where there is none.
    pub(crate) egress: u32,
    pub(crate) headers: Headers,
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
            storm: None,
        };
        network.begin();
        network
    }

    /// Schedule the first packet of each source, or send the first of its chain.
    fn begin(&mut self) {
        for Sending { next, place, .. } in &self.sources {
            self.wires.events.schedule(next.sent_at, *place);
        }
        for chain in &mut self.chains {
            self.wires.depart_chained(chain);
            let arrives_at = chain.packet.queued_at;
            self.wires.events.schedule(arrives_at, chain.place);
        }
    }

    /// Process all events due up to and including `end`.
    pub fn run_until(&mut self, end: Instant) -> Outcome {
        let mut ended_at = Instant::ZERO;
        while let Some((now, event)) = self.wires.events.pop_until(end) {
            ended_at = now;
            let arrived = match event {
                Event::Chain(chain) => {
                    ended_at = self.run_chain(chain, now, end);
                    continue;
                }
                Event::Arrival(link) => self.on_arrival(link, now),
                Event::Timer(port) => {
                    self.serve(port, now);
                    continue;
                }
                Event::FlowControl(control) => {
                    self.storm = self.on_flow_control(control, now);
                    if self.storm.is_some() {
                        break;
                    }
                    continue;
                }
                other => {
                    self.on_other(other, now);
                    continue;
                }
            };
            if let Some((device, id)) = arrived {
                let Self { wires, flows, .. } = self;
                let flow = usize::from(wires.packets.get(id).flow);
                let egress = wires.devices[device as usize].egress_of_flow[flow];
                offer(
                    wires,
                    &mut self.ports[egress as usize],
                    egress,
                    &flows[flow],
                    id,
                    now,
                );
            }
        }
        let until = if self.storm.is_some() { ended_at } else { end };
        ended_at = ended_at.max(self.send_deferred(until));
        let in_adapters = self.ports.iter().map(Port::waiting);
        let on_links = (self.chains.iter())
            .filter(|chain| chain.packet.queued_at != Instant::MAX)
            .count();
        Outcome {
            ended_at,
            in_flight: self.wires.packets.len() + in_adapters.sum::<usize>() + on_links,
            storm: self.storm,
            events: self.wires.events.handled,
        }
    }

    /// The packet of a chain arrives at `now`, and those after it until another event comes first, or the `end`. Returns when
    /// the last did.
    #[inline(never)]
    fn run_chain(&mut self, chain: u32, mut now: Instant, end: Instant) -> Instant {
        let Self {
            wires,
            ports,
            flows,
            chains,
            ..
        } = self;
        let chain = &mut chains[chain as usize];
        loop {
            let flow = &flows[usize::from(chain.packet.flow)];
            let id = wires.packets.insert(&chain.packet);
            wires.depart_chained(chain);
            offer(
                wires,
                &mut ports[flow.egress as usize],
                flow.egress,
                flow,
                id,
                now,
            );
            let next_at = chain.packet.queued_at;
            if next_at > end || !wires.events.is_next(next_at) {
                wires.events.schedule(next_at, chain.place);
                return now;
            }
            now = next_at;
            wires.events.handled += 1;
        }
    }

    /// Senders heed pause frames, and pause frames are sent again. Returns the ends of the link if they have paused each
    /// other for good.
    fn on_flow_control(&mut self, index: u32, now: Instant) -> Option<[PortId; 2]> {
        let mut is_storm = false;
        let index = index as usize;
        let FlowControl { sender, back, .. } = self.wires.flow_controls[index];
        while let Some(pause) = self.wires.flow_controls[index].next_heeded(now) {
            let of_priority = match &mut self.ports[sender as usize].egress {
                Egress::Adapter(ring) => ring.pause(pause.priority, pause.until),
                Egress::Ahead | Egress::Forwarding(_) => false,
            };
            if !of_priority {
                self.wires.pause(sender, pause.until);
            }
            let mutual =
                self.wires.link(sender).is_paused(now) && self.wires.link(back).is_paused(now);
            is_storm |= self.wires.flow_controls[index].on_paused(mutual, now);
            self.transmit(sender, now);
        }
        while let Some(priority) = self.wires.flow_controls[index].next_repeated(now) {
            self.wires.tell(index, priority, Wish::Pause, now);
        }
        let control = &self.wires.flow_controls[index];
        let (at, place) = (control.next_event(), control.place);
        self.wires.events.schedule(at, place);
        is_storm.then_some([PortId::of(sender), PortId::of(back)])
    }

    /// Events that few networks have, or few of their packets.
    #[inline(never)]
    fn on_other(&mut self, event: Event, now: Instant) {
        match event {
            Event::Departure(source) => self.depart(source as usize, now),
            Event::Room(end) => self.on_room(end, now),
            Event::Connection(end) => self.on_connection_timer(end, now),
            Event::Application(index) => self.on_application(index, now),
            Event::Arrival(_) | Event::Chain(_) | Event::Timer(_) | Event::FlowControl(_) => {
                debug_assert!(false, "these have been handled");
            }
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

    /// A source hands its next packet to its endpoint's adapter.
    fn depart(&mut self, index: usize, now: Instant) {
        let sending = &mut self.sources[index];
        let packet = Packet {
            queued_at: sending.next.sent_at,
            ..sending.next
        };
        let flow = &self.flows[usize::from(packet.flow)];
        let port = flow.port;
        let is_sent = match &self.ports[port as usize].egress {
            Egress::Adapter(ring) => ring.admits_sources(packet.priority()),
            Egress::Ahead | Egress::Forwarding(_) => true,
        };
        sending.prepare(packet.sequence + u64::from(is_sent));
        let next_at = sending.next.sent_at;
        self.wires.events.schedule(next_at, sending.place);
        if is_sent {
            self.hand_over(port, packet, None, now);
            return;
        }
        let id = &self.wires.flows[usize::from(packet.flow)];
        if id.is_measured() {
            self.wires.observer.on_withheld(id);
        }
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
        if let Egress::Ahead = self.ports[number as usize].egress {
            self.send_ahead(number, packet, segment, now);
        } else {
            self.hand_to_adapter(number, packet, segment, now);
        }
    }

    /// The same with a port that sends ahead.
    #[inline(always)]
    fn send_ahead(&mut self, number: u32, packet: Packet, segment: Option<&Segment>, now: Instant) {
        self.wires.report_sent(&packet);
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
        self.wires.report_sent(&packet);
        let priority = packet.priority();
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
            port.set_timer(ready_at.max(now), &mut self.wires.events);
        }
    }

    /// The first frame in flight on a link reaches the end of it. Returns that and the frame where it is a device.
    #[inline(always)]
    fn on_arrival(&mut self, link: u32, now: Instant) -> Option<(u32, PacketId)> {
        match self.wires.deliver(link, now)? {
            Delivered::Device(id, device) => return Some((device, id)),
            Delivered::Connection(id) => self.on_segments(link, id, now),
            Delivered::Captured => {}
        }
        None
    }

    /// Sends the frames that ports without timers are to send up to and including `end`. Returns when the last was
    /// sent; zero if nothing was due.
    #[inline(never)]
    fn send_deferred(&mut self, end: Instant) -> Instant {
        let after = end.saturating_add(Duration::from_nanos(1));
        let ports = (0u32..).zip(&mut self.ports);
        let sent = ports.map(|(number, port)| port.serve_before(after, number, &mut self.wires));
        sent.max().unwrap_or(Instant::ZERO)
    }

    /// A pause of a port begins or ends, or what it sends has changed.
    #[inline(never)]
    pub(crate) fn transmit(&mut self, number: u32, now: Instant) {
        self.serve(number, now);
    }

    /// The timer of a port has expired, or what it may send has changed.
    #[inline(always)]
    fn serve(&mut self, number: u32, now: Instant) {
        let port = &mut self.ports[number as usize];
        if let Egress::Forwarding(_) = port.egress {
            port.serve(number, &mut self.wires, now);
        } else {
            self.send_waiting(number, now);
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
        // Several frames may leave in one nanosecond.
        let at = ready_at.max(ring.ready_at());
        port.set_timer(at, &mut self.wires.events);
        if let Some(packet) = left
            && let Some((connection, end)) = self.transports.on_left(&packet)
        {
            let application = self.transports.application_of(connection);
            self.transports.look_at_windows(application, now);
            self.pump(connection, end, now);
        }
    }
}

/// A device offers a packet of `flow` that it has received to the forwarding plane of its egress port.
#[inline(always)]
fn offer<F: Forwarding, O: Observer>(
    wires: &mut Wires<O>,
    port: &mut Port<F>,
    number: u32,
    flow: &Flow,
    id: PacketId,
    now: Instant,
) {
    port.serve_before(now, number, wires);
    let packet = wires.packets.get(id);
    let has_room = wires.has_room(port, packet);
    let number_of_flow = usize::from(packet.flow);
    let Port {
        egress, classes, ..
    } = port;
    let Egress::Forwarding(forwarding) = egress else {
        debug_assert!(matches!(egress, Egress::Ahead), "no adapter is at a device");
        return wires.pass(number, id, now);
    };
    let frame = Frame {
        handle: u64::from(id),
        lengths: packet.lengths(),
        traffic_class: packet.traffic_class,
        colour: Colour::Green,
    };
    let remarked;
    let mut headers = &flow.headers;
    let classifier = forwarding.pipeline().classifier();
    // In a tunnel devices remark the outer packet, and the classifier looks at the inner one.
    let is_as_sent = frame.traffic_class.dscp() == headers.dscp || headers.teid.is_some();
    let class = if is_as_sent {
        classes.of(number_of_flow, classifier, headers)
    } else {
        // A device before this one remarked it.
        remarked = Headers {
            dscp: frame.traffic_class.dscp(),
            ..*headers
        };
        headers = &remarked;
        classifier.classify(headers)
    };
    let Offered { verdict, is_behind } = forwarding.offer(frame, headers, class, has_room, now);
    match verdict {
        Verdict::Queued => {
            wires.on_waiting(port, id, now);
            if !is_behind {
                port.serve(number, wires, now);
            }
        }
        Verdict::Dropped(_) => {
            if !has_room {
                wires.on_refused(port, id, now);
            }
            port.lose_dropped(wires, now);
            wires.lose_id(id, now);
        }
    }
}
