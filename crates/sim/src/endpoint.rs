//! Endpoints: the network adapter that sends, and the one that receives and raises interrupts.

use crate::packet::{PRIORITIES, Packet};
use slicewise_traffic::Random;
use slicewise_transport::Segment;
use slicewise_units::{Duration, Instant};
use std::collections::VecDeque;

/// An endpoint as a topology describes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndpointParams {
    /// Shortest time between two receive interrupts of an adapter (ethtool's `rx-usecs`); zero: an
    /// immediate interrupt for every frame. Captured frames carry the time of the interrupt. Every
    /// port of the endpoint is an adapter of its own.
    pub interrupt_interval: Duration,
    /// Maximum number of frames handed to an adapter and not yet sent; further frames are lost.
    /// `None` if the sender never loses any.
    pub transmit_ring_frames: Option<u32>,
    /// A source whose packet finds so many frames waiting (of its priority) does not send it, as a program whose socket
    /// is full and that does not catch up. Connections go by their own rules. `None` if sources never wait.
    pub source_limit_frames: Option<u32>,
    /// Priorities can be paused, each for itself (IEEE 802.1Qbb).
    pub per_priority: bool,
    /// Longest time from an interrupt until a connection answers: see [`Processing`].
    pub processing: Duration,
    /// Seed of that time.
    pub seed: u64,
}

impl EndpointParams {
    /// Returns true if its adapters have room for every frame and send all frames in the order in which they are handed
    /// over.
    pub(crate) const fn keeps_nothing_back(&self) -> bool {
        self.transmit_ring_frames.is_none()
            && self.source_limit_frames.is_none()
            && !self.per_priority
    }
}

/// Frames handed to a sending adapter that are not yet on the wire. They are the adapter's until its
/// transmitter takes them: when they will be sent is not known before, because the transmitter can be
/// paused.
///
/// They lie here one behind the other, not in the store of packets, and are read in order.
///
/// Where priorities can be paused, each has a ring of its own, and the frame leaves that was handed over first of those
/// whose priority is not paused.
#[derive(Debug, Clone)]
pub struct TransmitRing {
    limit: usize,
    source_limit: usize,
    /// One, or one for each priority.
    rings: Vec<Ring>,
    frames: usize,
    /// The ring of the frame that was popped last.
    popped: usize,
}

/// Frames that leave in order.
#[derive(Debug, Clone)]
struct Ring {
    frames: VecDeque<Packet>,
    /// Segments of the frames that belong to connections.
    segments: VecDeque<Segment>,
    paused_until: Instant,
}

impl Ring {
    const EMPTY: Self = Self {
        frames: VecDeque::new(),
        segments: VecDeque::new(),
        paused_until: Instant::ZERO,
    };
}

impl TransmitRing {
    /// An empty one as `params` describe it.
    #[must_use]
    pub fn new(params: &EndpointParams) -> Self {
        let limit = |frames: Option<u32>| frames.map_or(usize::MAX, |frames| frames as usize);
        let rings = if params.per_priority { PRIORITIES } else { 1 };
        Self {
            limit: limit(params.transmit_ring_frames),
            source_limit: limit(params.source_limit_frames),
            rings: vec![Ring::EMPTY; rings],
            frames: 0,
            popped: 0,
        }
    }

    #[inline]
    fn ring_of(&self, priority: u8) -> usize {
        if self.rings.len() == 1 {
            0
        } else {
            usize::from(priority) % self.rings.len()
        }
    }

    /// True if one more frame may be handed over. The frame that the transmitter is sending keeps its
    /// place until its last bit has left.
    #[inline]
    #[must_use]
    pub fn has_room(&self, is_sending: bool) -> bool {
        self.frames + usize::from(is_sending) < self.limit
    }

    /// False if a source has to wait.
    #[inline]
    #[must_use]
    pub fn admits_sources(&self, priority: u8) -> bool {
        self.rings[self.ring_of(priority)].frames.len() < self.source_limit
    }

    /// A frame is handed over; `segment` is what one of a connection holds.
    #[inline]
    pub fn push(&mut self, frame: Packet, priority: u8, segment: Option<&Segment>) {
        let ring = self.ring_of(priority);
        let ring = &mut self.rings[ring];
        ring.frames.push_back(frame);
        if let Some(segment) = segment {
            ring.segments.push_back(*segment);
        }
        self.frames += 1;
    }

    /// Returns true if a frame handed over at `now` need not wait for others, or for the end of a pause.
    #[inline]
    #[must_use]
    pub fn is_free(&self, priority: u8, now: Instant) -> bool {
        self.frames == 0 && self.rings[self.ring_of(priority)].paused_until <= now
    }

    /// When the next frame may be sent, as far as pauses of priorities are concerned; `Instant::MAX` if none waits.
    #[inline]
    #[must_use]
    pub fn ready_at(&self) -> Instant {
        if self.frames == 0 {
            return Instant::MAX;
        }
        if let [only] = &*self.rings {
            return only.paused_until;
        }
        let waiting = self.rings.iter().filter(|ring| !ring.frames.is_empty());
        let ready = waiting.map(|ring| ring.paused_until);
        ready.min().unwrap_or(Instant::MAX)
    }

    /// The frame that is sent next, at `now`.
    #[inline]
    pub fn pop(&mut self, now: Instant) -> Option<Packet> {
        if self.rings.len() > 1 {
            self.popped = self.first_ready(now)?;
        }
        let frame = self.rings[self.popped].frames.pop_front()?;
        self.frames -= 1;
        Some(frame)
    }

    /// Of several rings, the one whose frame was handed over first among those that are not paused.
    fn first_ready(&self, now: Instant) -> Option<usize> {
        let rings = self.rings.iter().enumerate();
        let ready = rings.filter(|(_, ring)| ring.paused_until <= now);
        let heads = ready.filter_map(|(index, ring)| Some((ring.frames.front()?.sent_at, index)));
        heads.min().map(|(_, ring)| ring)
    }

    /// Returns the segment in the frame popped last, which belongs to a connection.
    #[inline]
    pub fn pop_segment(&mut self) -> Option<Segment> {
        self.rings[self.popped].segments.pop_front()
    }

    /// Send no frame of `priority` before `until`; false where priorities are not told apart.
    pub fn pause(&mut self, priority: usize, until: Instant) -> bool {
        let is_told_apart = self.rings.len() > 1;
        if is_told_apart {
            self.rings[priority % PRIORITIES].paused_until = until;
        }
        is_told_apart
    }

    /// Number of frames that wait.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.frames
    }

    /// True if no frame waits.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.frames == 0
    }
}

/// When an endpoint that answers has processed what its adapter received: later than the interrupt by a random time,
/// alike for all frames of one interrupt, and in order.
///
/// Without this time two connections on one path stay in step with the queue that drops, and one of them may lose every
/// packet for a whole run (S. Floyd, V. Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", 1992).
#[derive(Debug, Clone)]
pub struct Processing {
    longest: Duration,
    random: Random,
    captured_at: Instant,
    processed_at: Instant,
}

impl Processing {
    /// An endpoint that takes at most `longest`.
    #[must_use]
    pub const fn new(longest: Duration, random: Random) -> Self {
        Self {
            longest,
            random,
            captured_at: Instant::MAX,
            processed_at: Instant::ZERO,
        }
    }

    /// When what was captured at `captured_at` is processed; called in order of time.
    #[inline]
    pub fn of(&mut self, captured_at: Instant) -> Instant {
        if captured_at != self.captured_at {
            self.captured_at = captured_at;
            let nanos = self.random.below(self.longest.nanos().saturating_add(1));
            let at = captured_at.saturating_add(Duration::from_nanos(nanos));
            self.processed_at = self.processed_at.max(at);
        }
        self.processed_at
    }
}

/// The receiving half of an adapter, with interrupt moderation: an arriving frame raises an
/// interrupt at once if the last interrupt was at least one interval ago, otherwise as soon as that
/// interval has passed.
///
/// An endpoint that only captures does not act on the network, and frames reach it in order. The capture
/// time of a frame is therefore known as soon as it is sent, and needs no event. What an endpoint
/// answers does need one: see [`Processing`].
#[derive(Debug, Clone)]
pub struct Receiver {
    interval: Duration,
    /// The interrupt that is pending, or else the first moment at which one may be raised.
    interrupt_at: Instant,
    pending: bool,
}

impl Receiver {
    /// An adapter that has raised no interrupt yet.
    #[must_use]
    pub const fn new(interval: Duration) -> Self {
        Self {
            interval,
            interrupt_at: Instant::ZERO,
            pending: false,
        }
    }

    /// A frame arrives at `at`, later than the last one: the time of the interrupt with which it is
    /// captured.
    #[inline]
    pub fn on_arrival(&mut self, at: Instant) -> Instant {
        if self.pending {
            if at <= self.interrupt_at {
                return self.interrupt_at;
            }
            self.interrupt_at = self.interrupt_at.saturating_add(self.interval);
        }
        self.pending = at < self.interrupt_at;
        if self.pending {
            return self.interrupt_at;
        }
        self.interrupt_at = at.saturating_add(self.interval);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use slicewise_wire::TrafficClass;

    const fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    #[test]
    fn an_interrupt_comes_at_once_after_a_pause_and_at_the_interval_in_a_burst() {
        let mut receiver = Receiver::new(Duration::from_micros(100));
        for (arrival, captured) in [
            (10, 10),
            (22, 110),
            (34, 110),
            (110, 110),
            // The interrupt of 110 us is the last one: the next is due 100 us after it.
            (111, 210),
            (210, 210),
            (310, 310),
            (311, 410),
            // Nothing for a while.
            (900, 900),
        ] {
            assert_eq!(
                receiver.on_arrival(at(arrival)),
                at(captured),
                "arrived at {arrival} us"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Compare with the rule simulated nanosecond by nanosecond, with a list of waiting frames.
        #[test]
        fn agrees_with_the_rule_played_step_by_step(
            interval in 0u64..20,
            gaps in prop::collection::vec(1u64..15, 1..60),
        ) {
            let mut receiver = Receiver::new(Duration::from_nanos(interval));
            let arrivals: Vec<u64> = gaps
                .iter()
                .scan(0, |now, gap| {
                    *now += gap;
                    Some(*now)
                })
                .collect();
            let mut expected = Vec::new();
            let (mut waiting, mut last_interrupt) = (0usize, None::<u64>);
            for now in 0..arrivals[arrivals.len() - 1] + 40 {
                waiting += arrivals.iter().filter(|at| **at == now).count();
                if waiting > 0 && last_interrupt.is_none_or(|last| now >= last + interval) {
                    expected.extend(std::iter::repeat_n(now, waiting));
                    (waiting, last_interrupt) = (0, Some(now));
                }
            }
            let captured: Vec<u64> = arrivals
                .into_iter()
                .map(|arrival| receiver.on_arrival(Instant::from_nanos(arrival)).nanos())
                .collect();
            prop_assert_eq!(captured, expected);
        }
    }

    #[test]
    fn without_moderation_every_frame_interrupts() {
        let mut receiver = Receiver::new(Duration::ZERO);
        for arrival in [10, 10, 11] {
            assert_eq!(receiver.on_arrival(at(arrival)), at(arrival));
        }
    }

    const fn packet(sequence: u64) -> Packet {
        Packet {
            sent_at: Instant::ZERO,
            queued_at: Instant::ZERO,
            sequence,
            l2_bytes: 60,
            flow: 0,
            l3_offset: 14,
            traffic_class: TrafficClass::DEFAULT,
        }
    }

    #[test]
    fn a_transmit_ring_frees_a_place_when_a_frame_has_been_sent() {
        let of = |transmit_ring_frames| {
            TransmitRing::new(&EndpointParams {
                transmit_ring_frames,
                ..EndpointParams::default()
            })
        };
        let mut ring = of(Some(2));
        assert!(ring.has_room(true));
        ring.push(packet(7), 0, None);
        assert!(!ring.has_room(true));
        assert!(ring.has_room(false));
        ring.push(packet(8), 0, Some(&Segment::default()));
        assert!(!ring.has_room(false));
        assert_eq!(
            [(); 3].map(|()| ring.pop(at(0))),
            [Some(packet(7)), Some(packet(8)), None]
        );
        assert!(ring.pop_segment().is_some());
        assert!(!of(Some(0)).has_room(false));
        assert!(of(None).has_room(true));
    }

    #[test]
    fn frames_of_other_priorities_pass_those_of_one_that_is_paused() {
        let mut ring = TransmitRing::new(&EndpointParams {
            per_priority: true,
            source_limit_frames: Some(1),
            ..EndpointParams::default()
        });
        assert!(ring.pause(3, at(50)));
        assert!(!ring.is_free(3, at(0)) && ring.is_free(5, at(0)));
        ring.push(packet(1), 3, None);
        assert_eq!(ring.ready_at(), at(50));
        assert!(!ring.admits_sources(3) && ring.admits_sources(5));
        ring.push(packet(2), 5, None);
        assert_eq!(ring.ready_at(), Instant::ZERO);
        assert_eq!(ring.pop(at(0)), Some(packet(2)));
        assert_eq!(ring.pop(at(0)), None);
        assert_eq!(ring.pop(at(50)), Some(packet(1)));
        assert_eq!(ring.ready_at(), Instant::MAX);
    }

    #[test]
    fn without_priorities_a_ring_cannot_pause_one() {
        assert!(!TransmitRing::new(&EndpointParams::default()).pause(3, at(50)));
    }
}
