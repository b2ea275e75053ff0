//! Sources that send whatever happens to their packets, and chains of them.

use crate::event::Place;
use crate::link::{LinkParams, Transmitter};
use crate::packet::Packet;
use slicewise_traffic::{Departure, Source};
use slicewise_units::{Duration, Instant};
use slicewise_wire::{Headers, TrafficClass};

/// Stands for none: it is never sent, and arrives nowhere.
const NO_PACKET: Packet = Packet {
    sent_at: Instant::MAX,
    queued_at: Instant::MAX,
    sequence: 0,
    l2_bytes: 0,
    flow: 0,
    l3_offset: 0,
    traffic_class: TrafficClass::DEFAULT,
};

/// A source, and the packet that leaves it next.
#[derive(Debug, Clone)]
pub(crate) struct Sending {
    source: Source,
    /// The packet that leaves next, at [`Instant::MAX`] if none does. It is queued nowhere yet.
    pub(crate) next: Packet,
    /// Where that is scheduled; [nowhere](Place::MAX) in a [`Chain`].
    pub(crate) place: Place,
}

impl Sending {
    /// The source of flow number `flow`, whose packets have these headers.
    pub(crate) fn new(source: Source, flow: u16, headers: &Headers) -> Self {
        let mut sending = Self {
            source,
            next: Packet {
                flow,
                l3_offset: headers.l3_offset,
                traffic_class: TrafficClass::new(headers.dscp, headers.ecn),
                ..NO_PACKET
            },
            place: Place::MAX,
        };
        sending.prepare(0);
        sending
    }

    /// The packet after the one that is next, which has been sent or not.
    #[inline(always)]
    pub(crate) fn prepare(&mut self, sequence: u64) {
        let Departure { at, l2_bytes } = self.source.depart();
        let next = &mut self.next;
        (next.sent_at, next.sequence, next.l2_bytes) = (at, sequence, l2_bytes);
    }
}

/// Sources that alone send on a link: the next packet of them all departs when one arrives at the end of the link, and lies
/// here until it arrives. See `topology/ahead.rs`.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    /// A few, because all are looked at for each packet.
    sources: Vec<Sending>,
    transmitter: Transmitter,
    /// From the last bit on the link to the egress of the device.
    delay: Duration,
    /// The packet on the link; its `queued_at` is its arrival, [`Instant::MAX`] where there is none.
    pub(crate) packet: Packet,
    /// Where the arrival of the packet is scheduled.
    pub(crate) place: Place,
}

impl Chain {
    /// `sources` alone on a link to a device, which processes a packet for so long.
    pub(crate) fn new(
        sources: Vec<Sending>,
        link: &LinkParams,
        processing: Duration,
        place: Place,
    ) -> Self {
        Self {
            sources,
            transmitter: Transmitter::new(link.rate),
            delay: link.propagation + processing,
            packet: NO_PACKET,
            place,
        }
    }

    /// The packet on the link has arrived, if there was one; the next one departs. False if there is none.
    #[inline(always)]
    pub(crate) fn depart(&mut self) -> bool {
        // The first of equal ones, as with events.
        let sources = self.sources.iter_mut();
        let next = sources.min_by_key(|sending| sending.next.sent_at);
        let Some(sending) = next.filter(|sending| sending.next.sent_at != Instant::MAX) else {
            self.packet = NO_PACKET;
            return false;
        };
        self.packet = sending.next;
        sending.prepare(self.packet.sequence + 1);
        let sent = (self.transmitter).send(self.packet.lengths(), self.packet.sent_at);
        self.packet.queued_at = sent.saturating_add(self.delay);
        true
    }
}
