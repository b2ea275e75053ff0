//! Endpoints: the network adapter that sends, and the one that receives and raises interrupts.

use crate::packet::Packet;
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
    /// Longest time from an interrupt until a connection answers: see [`Processing`].
    pub processing: Duration,
    /// Seed of that time.
    pub seed: u64,
}

/// Frames handed to a sending adapter that are not yet on the wire. They are the adapter's until its
/// transmitter takes them: when they will be sent is not known before, because the transmitter can be
/// paused.
///
/// They lie here one behind the other, not in the store of packets: connections may let tens of thousands wait, which are
/// read in order much faster than from places all over a store.
#[derive(Debug, Clone)]
pub struct TransmitRing {
    limit: usize,
    frames: VecDeque<Packet>,
    /// What those of them hold that are of connections.
    segments: VecDeque<Segment>,
}

impl TransmitRing {
    /// An empty ring of at most `limit_frames`, if they are limited.
    #[must_use]
    pub fn new(limit_frames: Option<u32>) -> Self {
        Self {
            limit: limit_frames.map_or(usize::MAX, |frames| frames as usize),
            frames: VecDeque::new(),
            segments: VecDeque::new(),
        }
    }

    /// True if one more frame may be handed over. The frame that the transmitter is sending keeps its
    /// place until its last bit has left.
    #[inline]
    #[must_use]
    pub fn has_room(&self, is_sending: bool) -> bool {
        self.frames.len() + usize::from(is_sending) < self.limit
    }

    /// A frame is handed over; `segment` is what one of a connection holds.
    #[inline]
    pub fn push(&mut self, frame: Packet, segment: Option<&Segment>) {
        self.frames.push_back(frame);
        self.segments.extend(segment.copied());
    }

    /// The frame that is sent next.
    #[inline]
    pub fn pop(&mut self) -> Option<Packet> {
        self.frames.pop_front()
    }

    /// What the frame holds that was popped last, which is of a connection.
    #[inline]
    pub fn pop_segment(&mut self) -> Option<Segment> {
        self.segments.pop_front()
    }

    /// Number of frames that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// True if no frame waits.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
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
            traffic_class: 0,
        }
    }

    #[test]
    fn a_transmit_ring_frees_a_place_when_a_frame_has_been_sent() {
        let mut ring = TransmitRing::new(Some(2));
        assert!(ring.has_room(true));
        ring.push(packet(7), None);
        assert!(!ring.has_room(true));
        assert!(ring.has_room(false));
        ring.push(packet(8), Some(&Segment::default()));
        assert!(!ring.has_room(false));
        assert_eq!(
            [ring.pop(), ring.pop(), ring.pop()],
            [Some(packet(7)), Some(packet(8)), None]
        );
        assert!(ring.pop_segment().is_some());
        assert!(!TransmitRing::new(Some(0)).has_room(false));
        assert!(TransmitRing::new(None).has_room(true));
    }
}
