//! Links: serialization at a rate, pauses, propagation, and the frames in between.

use crate::impairment::Impairments;
use crate::packet::PacketId;
use crate::varying::VaryingClock;
use slicewise_dataplane::LinkClock;
use slicewise_model::Rate;
use slicewise_traffic::RateSeries;
use slicewise_units::{Accounting, Duration, FrameLengths, Instant};
use std::collections::VecDeque;
use std::sync::Arc;

/// A pause frame: the smallest frame of Ethernet, without FCS.
const PAUSE_FRAME: FrameLengths = FrameLengths {
    l2_bytes: 60,
    l3_offset: FrameLengths::UNTAGGED_L3_OFFSET,
};

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

/// Transmitter that puts frames on a link, one behind the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transmitter {
    clock: LinkClock,
    accounting: Accounting,
    /// The last frame: consecutive frames often have the same size.
    last: FrameLengths,
}

impl Transmitter {
    /// An idle one.
    pub(crate) fn new(rate: Rate) -> Self {
        let Rate { rate, accounting } = rate;
        Self {
            clock: LinkClock::new(rate),
            accounting,
            last: FrameLengths::NONE,
        }
    }

    /// When the last bit of the last frame has been sent.
    #[inline]
    pub(crate) const fn free_at(&self) -> Instant {
        self.clock.free_at()
    }

    /// See [`LinkClock::send`].
    #[inline]
    pub(crate) fn send(&mut self, lengths: FrameLengths, now: Instant) -> Instant {
        if lengths == self.last {
            return self.clock.send_another(now);
        }
        self.last = lengths;
        self.clock.send(self.accounting.count(lengths), now)
    }
}

/// One direction of a link: the transmitter of the port that sends on it, and the wire. Frames in
/// flight are in order of delivery, so only the first of them needs an event.
#[derive(Debug, Clone)]
pub struct Link {
    transmitter: Transmitter,
    /// It begins no frame before this moment (IEEE 802.3, annex 31B).
    paused_until: Instant,
    propagation: Duration,
    handover: Handover,
    /// The first frame in flight; it is delivered [never](Instant::MAX) if there is none. Most links carry one at a time.
    first: InFlight,
    /// Those behind it.
    behind: VecDeque<InFlight>,
    /// Instead of the transmitter's clock, where the rate changes.
    varying: Option<Box<VaryingClock>>,
    /// Impairments of frames.
    pub(crate) impairments: Option<Box<Impairments>>,
}

/// A frame in flight.
#[derive(Debug, Clone, Copy)]
struct InFlight {
    /// When it is delivered.
    at: Instant,
    id: PacketId,
}

impl InFlight {
    const NONE: Self = Self {
        at: Instant::MAX,
        id: PacketId::MAX,
    };
}

impl Link {
    /// An idle link.
    #[must_use]
    pub fn new(params: LinkParams) -> Self {
        Self {
            transmitter: Transmitter::new(params.rate),
            paused_until: Instant::ZERO,
            propagation: params.propagation,
            handover: params.handover,
            first: InFlight::NONE,
            behind: VecDeque::new(),
            varying: None,
            impairments: None,
        }
    }

    /// Send at the rates of `series` from the beginning of the run on.
    pub(crate) fn vary(&mut self, series: Arc<RateSeries>) {
        self.varying = Some(Box::new(VaryingClock::new(series)));
    }

    /// When the transmitter may begin the next frame: it is neither busy nor paused.
    #[inline]
    #[must_use]
    pub fn ready_at(&self) -> Instant {
        self.free_at().max(self.paused_until)
    }

    /// When the last bit of the last frame has been sent.
    #[inline]
    #[must_use]
    pub fn free_at(&self) -> Instant {
        match &self.varying {
            None => self.transmitter.free_at(),
            Some(clock) => clock.free_at(),
        }
    }

    #[inline]
    fn send(&mut self, lengths: FrameLengths, now: Instant) -> Instant {
        match &mut self.varying {
            None => self.transmitter.send(lengths, now),
            Some(clock) => clock.send(self.transmitter.accounting.count(lengths), now),
        }
    }

    /// Begin no frame before `until`; a frame whose transmission has begun is completed. A later call
    /// replaces an earlier one, so that a moment that has passed ends the pause.
    pub fn pause(&mut self, until: Instant) {
        self.paused_until = until;
    }

    /// Returns true if it is paused at `now`.
    #[must_use]
    pub fn is_paused(&self, now: Instant) -> bool {
        self.paused_until > now
    }

    /// Put a pause frame on the wire, behind the frame that is being sent; a pause does not hold it back. Returns when it
    /// reaches the end of the link.
    pub fn transmit_pause(&mut self, now: Instant) -> Instant {
        let sent = self.send(PAUSE_FRAME, now);
        sent.saturating_add(self.propagation)
    }

    /// Put a frame on the wire; the transmitter must be [ready](Self::ready_at). Returns when its last
    /// bit has been sent, and when it reaches the end of the link.
    #[inline]
    pub fn transmit(&mut self, lengths: FrameLengths, now: Instant) -> (Instant, Instant) {
        debug_assert!(self.ready_at() <= now, "the transmitter is busy or paused");
        let sent = self.send(lengths, now);
        let leaves = match self.handover {
            Handover::LastBit => sent,
            Handover::FirstBit => now,
        };
        (sent, leaves.saturating_add(self.propagation))
    }

    /// Keep a frame until it is delivered, at `at`. True if it is the first in flight and its delivery must be scheduled.
    #[inline]
    pub fn carry(&mut self, id: PacketId, at: Instant) -> bool {
        let frame = InFlight { at, id };
        if self.is_empty() {
            self.first = frame;
            return true;
        }
        self.carry_behind(frame)
    }

    #[inline(never)]
    fn carry_behind(&mut self, frame: InFlight) -> bool {
        let is_before = |other: &InFlight| other.at <= frame.at;
        // Others than the last only where delay varies.
        if self.behind.back().unwrap_or(&self.first).at <= frame.at {
            self.behind.push_back(frame);
            return false;
        }
        if is_before(&self.first) {
            let place = self.behind.partition_point(is_before);
            self.behind.insert(place, frame);
            return false;
        }
        let second = std::mem::replace(&mut self.first, frame);
        self.behind.push_front(second);
        true
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.first.id == PacketId::MAX
    }

    /// When the next frame is delivered; `Instant::MAX` if none is in flight.
    #[inline]
    #[must_use]
    pub fn next_at(&self) -> Instant {
        self.first.at
    }

    /// Take the frame that is delivered now.
    #[inline]
    pub fn deliver(&mut self) -> Option<PacketId> {
        if self.is_empty() {
            return None;
        }
        let next = self.behind.pop_front().unwrap_or(InFlight::NONE);
        Some(std::mem::replace(&mut self.first, next).id)
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

    fn link(propagation: Duration, handover: Handover) -> Link {
        Link::new(LinkParams {
            rate: GIGABIT,
            propagation,
            handover,
        })
    }

    const fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn frames_follow_each_other_on_the_wire_and_arrive_in_order() {
        let mut link = link(Duration::from_nanos(500), Handover::LastBit);
        assert_eq!(link.transmit(FRAME, at(100)), (at(12_244), at(12_744)));
        assert!(link.carry(0, at(12_744)));
        assert_eq!(link.ready_at(), at(12_244));
        assert_eq!(link.transmit(FRAME, at(12_244)), (at(24_388), at(24_888)));
        assert!(!link.carry(1, at(24_888)));
        assert_eq!(link.free_at(), at(24_388));
        assert_eq!(link.next_at(), at(12_744));
        assert_eq!(link.deliver(), Some(0));
        assert_eq!(link.next_at(), at(24_888));
        assert_eq!(link.deliver(), Some(1));
        assert_eq!((link.next_at(), link.deliver()), (Instant::MAX, None));
    }

    #[test]
    fn frames_are_delivered_in_order_of_time_whatever_the_order_of_sending() {
        let mut link = link(Duration::ZERO, Handover::LastBit);
        assert!(link.carry(0, at(50)));
        assert!(!link.carry(1, at(90)));
        assert!(!link.carry(2, at(70)));
        assert!(
            link.carry(3, at(10)),
            "the next delivery is another one now"
        );
        assert!(!link.carry(4, at(10)));
        let order: Vec<PacketId> = std::iter::from_fn(|| link.deliver()).collect();
        assert_eq!(order, [3, 4, 0, 2, 1]);
    }

    #[test]
    fn a_short_frame_occupies_the_wire_as_a_64_byte_one() {
        let mut link = link(Duration::ZERO, Handover::LastBit);
        let short = FrameLengths {
            l2_bytes: 42,
            l3_offset: 14,
        };
        let (sent, _) = link.transmit(short, Instant::ZERO);
        assert_eq!(sent.nanos(), 84 * 8);
    }

    #[test]
    fn a_frame_handed_on_whole_leaves_with_its_first_bit_and_takes_the_link_as_long() {
        let mut link = link(Duration::ZERO, Handover::FirstBit);
        let (first_sent, first_there) = link.transmit(FRAME, at(100));
        assert_eq!(first_there, at(100));
        assert_eq!(link.ready_at(), first_sent);
        let (_, second_there) = link.transmit(FRAME, first_sent);
        assert_eq!(second_there, first_sent);
    }

    #[test]
    fn a_pause_lets_the_frame_on_the_wire_finish_and_holds_back_the_next() {
        let mut link = link(Duration::ZERO, Handover::LastBit);
        let (sent, _) = link.transmit(FRAME, at(100));
        link.pause(at(1_000));
        assert_eq!(link.ready_at(), sent, "the pause ends before the frame");
        link.pause(at(50_000));
        assert_eq!((link.free_at(), link.ready_at()), (sent, at(50_000)));
        assert_eq!(link.transmit(FRAME, at(50_000)).0, at(62_144));
        link.pause(at(90_000));
        link.pause(at(0));
        assert_eq!(
            link.ready_at(),
            at(62_144),
            "a pause of zero ends the pause"
        );
    }
}
