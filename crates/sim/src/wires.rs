//! The connections between nodes: links, the frames on them, and the captures at their ends.

use crate::device::Leaving;
use crate::endpoint::{Processing, Receiver};
use crate::event::{EventQueue, Place};
use crate::flow_control::FlowControl;
use crate::impairment::Impairments;
use crate::link::Link;
use crate::observer::{FlowId, Observer};
use crate::packet::{Packet, PacketId, PacketStore};
use crate::sources::Chain;
use slicewise_transport::Segment;
use slicewise_units::{Duration, Instant};
use slicewise_wire::TrafficClass;

/// One direction of a link and what it leads to.
#[derive(Debug, Clone)]
pub(crate) struct Wire {
    pub(crate) link: Link,
    pub(crate) end: End,
    /// Where its next arrival is scheduled.
    pub(crate) arrival: Place,
}

/// Where a link leads.
#[derive(Debug, Clone)]
pub(crate) enum End {
    /// An adapter that captures, and hands what belongs to connections to them.
    Endpoint {
        receiver: Receiver,
        processing: Processing,
    },
    /// The ingress of a device. Processing for a fixed time after a first-in, first-out link is a longer link,
    /// so that it needs no event of its own.
    Device { device: u32, processing: Duration },
}

/// The links of a network, and all packets on their way.
#[derive(Debug, Clone)]
pub(crate) struct Wires<O> {
    pub(crate) events: EventQueue,
    pub(crate) packets: PacketStore,
    pub(crate) observer: O,
    pub(crate) devices: Vec<Device>,
    /// How the observer knows each flow.
    pub(crate) flows: Vec<FlowId>,
    /// Of the links with flow control.
    pub(crate) flow_controls: Vec<FlowControl>,
    /// By the port that sends on each.
    wires: Vec<Wire>,
    /// Flows from this one on are those of connections.
    first_of_connections: u16,
}

/// Arrival at the end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// A packet, and the device that it has reached.
    Device(PacketId, u32),
    /// A packet of a connection, whose endpoint it has reached.
    Connection(PacketId),
    /// A packet that was captured, and is no more.
    Captured,
}

impl<O: Observer> Wires<O> {
    pub(crate) fn new(
        events: EventQueue,
        wires: Vec<Wire>,
        flow_controls: Vec<FlowControl>,
        devices: Vec<Device>,
        flows: Vec<FlowId>,
        first_of_connections: u16,
        observer: O,
    ) -> Self {
        let packets = PacketStore::default();
        Self {
            events,
            packets,
            observer,
            devices,
            flows,
            flow_controls,
            wires,
            first_of_connections,
        }
    }

    /// The link that a port sends on.
    #[inline]
    pub(crate) fn link(&self, port: u32) -> &Link {
        &self.wires[port as usize].link
    }

    /// See [`Link::pause`].
    pub(crate) fn pause(&mut self, port: u32, until: Instant) {
        self.wires[port as usize].link.pause(until);
    }

    /// See [`Link::transmit_pause`].
    pub(crate) fn transmit_pause(&mut self, port: u32, now: Instant) -> Instant {
        self.wires[port as usize].link.transmit_pause(now)
    }

    /// An endpoint hands a packet to its adapter.
    #[inline(always)]
    pub(crate) fn report_sent(&mut self, packet: &Packet) {
        let flow = &self.flows[usize::from(packet.flow)];
        if flow.is_measured() {
            self.observer.on_sent(flow, packet);
        }
    }

    /// The packet of a chain has arrived; the next one departs, if there is one.
    #[inline(never)]
    pub(crate) fn depart_chained(&mut self, chain: &mut Chain) {
        if chain.depart() {
            self.report_sent(&chain.packet);
        }
    }

    /// Store a packet that is about to be sent; `segment` is what one of a connection holds.
    #[inline]
    pub(crate) fn store(&mut self, packet: Packet, segment: Option<&Segment>) -> PacketId {
        match segment {
            None => self.packets.insert(&packet),
            Some(segment) => self.packets.insert_segment(packet, segment),
        }
    }

    /// Returns true if a packet belongs to a connection.
    #[inline]
    pub(crate) const fn is_of_connection(&self, packet: &Packet) -> bool {
        packet.flow >= self.first_of_connections
    }

    /// Send a packet from an endpoint's port whose transmitter is ready; returns when its last bit has been sent.
    #[inline]
    pub(crate) fn send(&mut self, port: u32, id: PacketId, now: Instant) -> Instant {
        self.put_on_link(port, id, None, now)
    }

    /// Send a packet that the forwarding plane of a port has decided on, with what it wrote into it; returns when its
    /// last bit has left.
    #[inline(always)]
    pub(crate) fn forward(&mut self, port: u32, leaving: Leaving, now: Instant) -> Instant {
        self.put_on_link(port, leaving.id(), Some(leaving.traffic_class), now)
    }

    /// A packet that a device gets at `at` leaves it by a port without a policy.
    #[inline(never)]
    pub(crate) fn pass(&mut self, port: u32, id: PacketId, at: Instant) {
        let packet = self.packets.get_mut(id);
        packet.queued_at = at;
        let unchanged = Some(packet.traffic_class);
        self.put_on_link(port, id, unchanged, at.max(self.link(port).ready_at()));
    }

    /// A port sends a packet; a device writes a traffic class into it.
    #[inline(always)]
    fn put_on_link(
        &mut self,
        port: u32,
        id: PacketId,
        written: Option<TrafficClass>,
        now: Instant,
    ) -> Instant {
        let wire = &mut self.wires[port as usize];
        let packet = self.packets.get_mut(id);
        let flow = self.flows[usize::from(packet.flow)];
        let (sent, mut at) = wire.link.transmit(packet.lengths(), now);
        if let Some(traffic_class) = written {
            packet.traffic_class = traffic_class;
            if flow.is_measured() {
                self.observer.on_forwarded(&flow, packet, sent);
            }
        }
        let mut varies_delay = false;
        if let Some(impairments) = &mut wire.link.impairments {
            let Some(delivered) = impairments.on_frame(packet, at) else {
                self.lose_id(id, now);
                return sent;
            };
            at = delivered;
            varies_delay = impairments.varies_delay();
        }
        match &mut wire.end {
            End::Device { processing, .. } => at = at.saturating_add(*processing),
            End::Endpoint { .. } if varies_delay => {}
            End::Endpoint {
                receiver,
                processing,
            } => {
                let captured_at = receiver.on_arrival(at);
                if flow.is_measured() {
                    self.observer.on_received(&flow, packet, captured_at);
                }
                if packet.flow < self.first_of_connections {
                    self.packets.remove(id);
                    return sent;
                }
                at = processing.of(captured_at);
            }
        }
        packet.queued_at = at;
        if wire.link.carry(id, at) {
            self.events.schedule(at, wire.arrival);
        }
        sent
    }

    /// The impairments of the link that a port sends on.
    pub(crate) fn impairments(&self, port: u32) -> Option<&Impairments> {
        self.wires.get(port as usize)?.link.impairments.as_deref()
    }

    /// Take the first packet in flight on the link of a port at `now`.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, port: u32, now: Instant) -> Option<Delivered> {
        let wire = &mut self.wires[port as usize];
        let id = wire.link.deliver()?;
        let next_at = wire.link.next_at();
        if next_at != Instant::MAX {
            self.events.schedule(next_at, wire.arrival);
        }
        Some(match wire.end {
            End::Device { device, .. } => Delivered::Device(id, device),
            End::Endpoint { .. } => self.deliver_to_endpoint(port, id, now),
        })
    }

    /// Where delay varies, a packet is captured only now.
    #[inline(never)]
    fn deliver_to_endpoint(&mut self, port: u32, id: PacketId, now: Instant) -> Delivered {
        let Wire { link, end, .. } = &mut self.wires[port as usize];
        if let End::Endpoint { receiver, .. } = end
            && let Some(impairments) = &link.impairments
            && impairments.varies_delay()
        {
            let (packet, captured_at) = (self.packets.get(id), receiver.on_arrival(now));
            let flow = &self.flows[usize::from(packet.flow)];
            if flow.is_measured() {
                self.observer.on_received(flow, packet, captured_at);
            }
            if packet.flow < self.first_of_connections {
                self.packets.remove(id);
                return Delivered::Captured;
            }
        }
        Delivered::Connection(id)
    }

    /// Returns true if the next packet in flight on the link of a port is due at `now`.
    #[inline]
    pub(crate) fn is_due(&self, port: u32, now: Instant) -> bool {
        self.wires[port as usize].link.next_at() <= now
    }

    /// A device dropped a packet. Not inlined: whether there is one is asked for every packet.
    #[inline(never)]
    pub(crate) fn lose_id(&mut self, id: PacketId, now: Instant) {
        let packet = self.packets.take(id);
        self.lose(&packet, now);
    }

    /// A packet is lost that is not kept any more.
    #[inline]
    pub(crate) fn lose(&mut self, packet: &Packet, now: Instant) {
        let flow = &self.flows[usize::from(packet.flow)];
        if flow.is_measured() {
            self.observer.on_lost(flow, packet, now);
        }
    }
}

/// A device: its ports are among those of the network.
#[derive(Debug, Clone, Default)]
pub(crate) struct Device {
    /// The port that sends each flow's packets to it.
    pub(crate) ingress_of_flow: Vec<u32>,
    /// The egress port of each flow's packets.
    pub(crate) egress_of_flow: Vec<u32>,
}
