//! The connections between nodes: links, the frames on them, and the captures at their ends.

use crate::event::{Event, EventQueue};
use crate::host::Receiver;
use crate::impairment::Impairments;
use crate::link::Link;
use crate::observer::{FlowId, Observer};
use crate::packet::{Packet, PacketId, PacketStore};
use slicewise_units::Instant;

/// Where a link leads.
#[derive(Debug, Clone)]
pub(crate) enum LinkEnd {
    /// The adapter of a host.
    Host(Receiver),
    /// The device of this index.
    Device(u32),
}

/// The links of a network, and all packets on their way.
#[derive(Debug, Clone)]
pub(crate) struct Wires<O> {
    pub(crate) events: EventQueue,
    pub(crate) packets: PacketStore,
    pub(crate) observer: O,
    /// How the observer knows each flow.
    pub(crate) flows: Vec<FlowId>,
    links: Vec<(Link, LinkEnd)>,
}

impl<O: Observer> Wires<O> {
    pub(crate) fn new(events: EventQueue, links: Vec<(Link, LinkEnd)>, observer: O) -> Self {
        let packets = PacketStore::default();
        Self {
            events,
            packets,
            observer,
            flows: Vec::new(),
            links,
        }
    }

    /// When a link can next accept a frame without delaying it.
    #[inline]
    pub(crate) fn free_at(&self, link: u32) -> Instant {
        self.links[link as usize].0.free_at()
    }

    /// Send a packet on a link as soon as the link is free; returns when its last bit has been
    /// sent.
    #[inline]
    pub(crate) fn send(&mut self, index: u32, id: PacketId, now: Instant) -> Instant {
        let (link, end) = &mut self.links[index as usize];
        let packet = self.packets.get(id);
        let (sent, mut at) = link.transmit(packet.lengths(), now);
        let mut waits_its_turn = matches!(end, LinkEnd::Device(_));
        if let Some(impairments) = &mut link.impairments {
            let Some(delivered) = impairments.on_frame(packet, at) else {
                let packet = self.packets.remove(id);
                self.lose(&packet, now);
                return sent;
            };
            at = delivered;
            waits_its_turn |= impairments.varies_delay();
        }
        if !waits_its_turn {
            self.receive(index, id, at);
        } else if link.carry(id, at) {
            self.events.schedule(at, Event::Arrival(index));
        }
        sent
    }

    /// A packet reaches the host at the end of a link at `at`.
    #[inline]
    fn receive(&mut self, index: u32, id: PacketId, at: Instant) {
        if let (_, LinkEnd::Host(receiver)) = &mut self.links[index as usize] {
            let packet = self.packets.get(id);
            let captured_at = receiver.on_arrival(at);
            let flow = &self.flows[usize::from(packet.flow)];
            self.observer.on_received(flow, packet, captured_at);
            self.packets.remove(id);
        }
    }

    /// The impairments of each link.
    pub(crate) fn impairments(&self) -> impl Iterator<Item = Option<&Impairments>> {
        self.links
            .iter()
            .map(|(link, _)| link.impairments.as_deref())
    }

    /// Take the first packet in flight on a link at `now`, and the device that it has reached;
    /// `None` if it has reached a host.
    #[inline]
    pub(crate) fn deliver(&mut self, index: u32, now: Instant) -> Option<(PacketId, u32)> {
        let (link, end) = &mut self.links[index as usize];
        let (id, next) = link.deliver()?;
        if let Some(at) = next {
            self.events.schedule(at, Event::Arrival(index));
        }
        match end {
            LinkEnd::Device(device) => Some((id, *device)),
            LinkEnd::Host(_) => {
                self.receive(index, id, now);
                None
            }
        }
    }

    /// A device has sent a packet; its last bit leaves at `left`.
    #[inline]
    pub(crate) fn forwarded(&mut self, packet: &Packet, left: Instant) {
        self.observer
            .on_forwarded(&self.flows[usize::from(packet.flow)], packet, left);
    }

    /// A device, adapter or link dropped a packet.
    #[inline]
    pub(crate) fn lose(&mut self, packet: &Packet, now: Instant) {
        self.observer
            .on_lost(&self.flows[usize::from(packet.flow)], packet, now);
    }
}
