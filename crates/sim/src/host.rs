//! Hosts: the network adapter that sends, and the one that receives and raises interrupts.

use crate::packet::PacketId;
use slicewise_units::{Duration, Instant};
use std::collections::VecDeque;

/// A host as a topology describes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostParams {
    /// Shortest time between two receive interrupts (ethtool's `rx-usecs`); zero: one at once for
    /// every frame. Captured frames carry the time of the interrupt.
    pub interrupt_interval: Duration,
    /// Most frames handed to the adapter and not yet sent, beyond which frames are lost; `None`
    /// where the sender never loses any.
    pub transmit_queue_frames: Option<u32>,
}

/// Frames handed to a sending adapter and not yet on the wire, where that is limited.
#[derive(Debug, Clone)]
pub struct TransmitQueue {
    limit: usize,
    /// When each of them will be sent.
    sent_at: VecDeque<Instant>,
}

impl TransmitQueue {
    /// An empty queue of at most `limit_frames`.
    #[must_use]
    pub fn new(limit_frames: u32) -> Self {
        Self {
            limit: limit_frames as usize,
            sent_at: VecDeque::new(),
        }
    }

    /// True where one more frame may be handed over at `now`.
    pub fn has_room(&mut self, now: Instant) -> bool {
        while self.sent_at.front().is_some_and(|sent| *sent <= now) {
            self.sent_at.pop_front();
        }
        self.sent_at.len() < self.limit
    }

    /// A frame was handed over, and will have been sent at `sent`.
    pub fn on_transmit(&mut self, sent: Instant) {
        self.sent_at.push_back(sent);
    }
}

/// What a receiving adapter does about a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// It raises an interrupt now: the frame is captured with this time.
    Now,
    /// The frame waits for an interrupt that is to be scheduled for then.
    At(Instant),
    /// The frame waits for an interrupt already scheduled.
    Pending,
}

/// The receiving half of an adapter, with interrupt moderation: an interrupt at once if the last
/// one is at least an interval ago, else when it is.
#[derive(Debug, Clone)]
pub struct Receiver {
    interval: Duration,
    /// The first time at which an interrupt may be raised.
    allowed_at: Instant,
    waiting: Vec<PacketId>,
}

impl Receiver {
    /// An adapter that has raised no interrupt yet.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self {
            interval,
            allowed_at: Instant::ZERO,
            waiting: Vec::new(),
        }
    }

    /// A frame has arrived.
    #[inline]
    pub fn on_arrival(&mut self, packet: PacketId, now: Instant) -> Interrupt {
        if self.waiting.is_empty() && now >= self.allowed_at {
            self.allowed_at = now.saturating_add(self.interval);
            return Interrupt::Now;
        }
        self.waiting.push(packet);
        if self.waiting.len() == 1 {
            Interrupt::At(self.allowed_at)
        } else {
            Interrupt::Pending
        }
    }

    /// The scheduled interrupt is raised: the frames waiting, in order of arrival, are captured
    /// now. Give the vector back with [`recycle`](Self::recycle).
    pub fn on_interrupt(&mut self, now: Instant) -> Vec<PacketId> {
        self.allowed_at = now.saturating_add(self.interval);
        std::mem::take(&mut self.waiting)
    }

    /// Take back a vector, so that the next interrupt need not allocate one.
    pub fn recycle(&mut self, mut waiting: Vec<PacketId>) {
        waiting.clear();
        self.waiting = waiting;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    #[test]
    fn an_interrupt_comes_at_once_after_a_pause_and_at_the_interval_in_a_burst() {
        let mut receiver = Receiver::new(Duration::from_micros(100));
        assert_eq!(receiver.on_arrival(0, at(10)), Interrupt::Now);
        assert_eq!(receiver.on_arrival(1, at(22)), Interrupt::At(at(110)));
        assert_eq!(receiver.on_arrival(2, at(34)), Interrupt::Pending);
        assert_eq!(receiver.on_arrival(3, at(110)), Interrupt::Pending);
        let captured = receiver.on_interrupt(at(110));
        assert_eq!(captured, [1, 2, 3]);
        receiver.recycle(captured);
        assert_eq!(receiver.on_arrival(4, at(150)), Interrupt::At(at(210)));
        assert_eq!(receiver.on_interrupt(at(210)), [4]);
        assert_eq!(receiver.on_arrival(5, at(310)), Interrupt::Now);
    }

    #[test]
    fn without_moderation_every_frame_interrupts() {
        let mut receiver = Receiver::new(Duration::ZERO);
        assert_eq!(receiver.on_arrival(0, at(10)), Interrupt::Now);
        assert_eq!(receiver.on_arrival(1, at(10)), Interrupt::Now);
    }

    #[test]
    fn a_transmit_queue_frees_a_place_when_a_frame_is_sent() {
        let mut queue = TransmitQueue::new(2);
        assert!(queue.has_room(at(0)));
        queue.on_transmit(at(12));
        queue.on_transmit(at(24));
        assert!(!queue.has_room(at(11)));
        assert!(queue.has_room(at(12)));
        assert!(TransmitQueue::new(0).sent_at.is_empty() && !TransmitQueue::new(0).has_room(at(1)));
    }
}
