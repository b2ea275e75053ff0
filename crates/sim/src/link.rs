//! Links: serialization at a rate, propagation, and the frames in between.

use crate::impairment::Impairments;
use crate::packet::PacketId;
use slicewise_dataplane::LinkClock;
use slicewise_model::Rate;
use slicewise_units::{Accounting, Duration, FrameLengths, Instant};
use std::collections::VecDeque;

/// A link as a topology describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkParams {
    /// Rate, and which bytes of a frame occupy it: for Ethernet those of L1, preamble, FCS and
    /// inter-frame gap included.
    pub rate: Rate,
    /// Propagation delay of a bit.
    pub propagation: Duration,
    /// Which bit's departure is the frame's.
    pub handover: Handover,
}

/// When a frame is under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Handover {
    /// Once its last bit is on the wire: a real link.
    #[default]
    LastBit,
    /// Once its first bit is on the wire, although the link stays busy for the whole frame:
    /// software that paces departures to a rate, and then hands on complete frames.
    FirstBit,
}

/// A frame in flight: when it reaches the end of the link.
#[derive(Debug, Clone, Copy)]
struct InFlight {
    at: Instant,
    packet: PacketId,
}

/// One direction of a link. Frames in flight are in order of delivery, so only the first of them needs an
/// event.
#[derive(Debug, Clone)]
pub struct Link {
    clock: LinkClock,
    accounting: Accounting,
    /// From a frame's last bit on the wire to its delivery: propagation, and the fixed processing
    /// time of the device it leads to.
    propagation: Duration,
    handover: Handover,
    in_flight: VecDeque<InFlight>,
    /// What else it does to frames.
    pub(crate) impairments: Option<Box<Impairments>>,
}

impl Link {
    /// An idle link that delivers `propagation` after the last bit was sent.
    #[must_use]
    pub fn new(rate: Rate, propagation: Duration, handover: Handover) -> Self {
        Self {
            clock: LinkClock::new(rate.rate),
            accounting: rate.accounting,
            propagation,
            handover,
            in_flight: VecDeque::with_capacity(64),
            impairments: None,
        }
    }

    /// When the transmitter is free.
    #[inline]
    #[must_use]
    pub fn free_at(&self) -> Instant {
        self.clock.free_at()
    }

    /// Put a frame on the wire as soon as the link is free. Returns when its last bit has been
    /// sent, and when it is delivered.
    #[inline]
    pub fn transmit(&mut self, lengths: FrameLengths, now: Instant) -> (Instant, Instant) {
        let begins = self.clock.free_at().max(now);
        let sent = self.clock.send(self.accounting.count(lengths), now);
        let leaves = match self.handover {
            Handover::LastBit => sent,
            Handover::FirstBit => begins,
        };
        (sent, leaves.saturating_add(self.propagation))
    }

    /// Keep a frame until it is delivered at `at`. True if it is the first in flight and its
    /// delivery must be scheduled.
    #[inline]
    pub fn carry(&mut self, packet: PacketId, at: Instant) -> bool {
        let before = |other: &InFlight| other.at <= at;
        if self.in_flight.back().is_none_or(before) {
            self.in_flight.push_back(InFlight { at, packet });
            return self.in_flight.len() == 1;
        }
        // Only where delay varies.
        let place = self.in_flight.partition_point(before);
        self.in_flight.insert(place, InFlight { at, packet });
        place == 0
    }

    /// Take the frame that is delivered now; also returns when the next one will be.
    #[inline]
    pub fn deliver(&mut self) -> Option<(PacketId, Option<Instant>)> {
        let delivered = self.in_flight.pop_front()?;
        Some((delivered.packet, self.in_flight.front().map(|next| next.at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slicewise_units::BitRate;

    const FRAME: FrameLengths = FrameLengths {
        l2_bytes: 1494,
        l3_offset: 18,
    };
    const GIGABIT: Rate = Rate {
        rate: BitRate::new(1_000_000_000),
        accounting: Accounting::L1,
    };

    #[test]
    fn frames_queue_for_the_wire_and_arrive_in_order() {
        let mut link = Link::new(GIGABIT, Duration::from_nanos(500), Handover::LastBit);
        let at = Instant::from_nanos;
        assert_eq!(link.transmit(FRAME, at(100)), (at(12_244), at(12_744)));
        assert!(link.carry(7, at(12_744)));
        assert_eq!(link.transmit(FRAME, at(100)), (at(24_388), at(24_888)));
        assert!(!link.carry(8, at(24_888)));
        assert_eq!(link.free_at(), at(24_388));
        assert_eq!(link.deliver(), Some((7, Some(at(24_888)))));
        assert_eq!(link.deliver(), Some((8, None)));
        assert_eq!(link.deliver(), None);
    }

    #[test]
    fn frames_are_delivered_in_order_of_time_whatever_the_order_of_sending() {
        let mut link = Link::new(GIGABIT, Duration::ZERO, Handover::LastBit);
        let at = Instant::from_nanos;
        let mut carry = |packet, nanos| link.carry(packet, at(nanos));
        assert!(carry(1, 50));
        assert!(!carry(2, 90));
        assert!(!carry(3, 70));
        assert!(carry(4, 10), "the next delivery is another one now");
        assert!(!carry(5, 10));
        let order: Vec<PacketId> = std::iter::from_fn(|| link.deliver()).map(|d| d.0).collect();
        assert_eq!(order, [4, 5, 1, 3, 2]);
    }

    #[test]
    fn a_short_frame_occupies_the_wire_as_a_64_byte_one() {
        let mut link = Link::new(GIGABIT, Duration::ZERO, Handover::LastBit);
        let short = FrameLengths {
            l2_bytes: 42,
            l3_offset: 14,
        };
        let (sent, _) = link.transmit(short, Instant::ZERO);
        assert_eq!(sent.nanos(), 84 * 8);
    }

    #[test]
    fn a_frame_handed_on_whole_leaves_with_its_first_bit_and_takes_the_link_as_long() {
        let mut link = Link::new(GIGABIT, Duration::ZERO, Handover::FirstBit);
        let (first_sent, first_there) = link.transmit(FRAME, Instant::from_nanos(100));
        assert_eq!(first_there, Instant::from_nanos(100));
        let (_, second_there) = link.transmit(FRAME, Instant::from_nanos(200));
        assert_eq!(second_there, first_sent);
    }
}
