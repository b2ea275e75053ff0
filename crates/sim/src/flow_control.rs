//! Flow control of links: pause frames of IEEE 802.3x (IEEE 802.3, annex 31B) and of IEEE 802.1Qbb, one for each
//! priority.
//!
//! A device counts the bytes that wait in it by the link on which they arrived. Above the high mark it sends a pause
//! frame back on that link, and again before the pause ends; at the low mark it sends one that ends the pause. Pause frames
//! wait for the frame that is being sent and for nothing else.

use crate::event::Place;
use crate::packet::PRIORITIES;
use slicewise_study::FlowControlParams;
use slicewise_units::{BitRate, Duration, Instant};
use std::collections::VecDeque;

/// Two ports that have paused each other for so many of the longest pauses do not begin again by themselves.
const STORM_PAUSES: u64 = 3;

/// A pause that a sender learns of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pause {
    /// When the sender heeds it.
    pub(crate) at: Instant,
    pub(crate) priority: usize,
    /// It begins no frame before this.
    pub(crate) until: Instant,
}

/// Message that a device wants sent to its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    Pause,
    Resume,
}

/// Flow control of one link into a device.
#[derive(Debug, Clone)]
pub(crate) struct FlowControl {
    params: FlowControlParams,
    /// The port that sends on the link.
    pub(crate) sender: u32,
    /// The device's port at the end of it, by which pause frames leave.
    pub(crate) back: u32,
    /// Where its next event is scheduled.
    pub(crate) place: Place,
    longest_pause: Duration,
    reaction: Duration,
    /// Bytes that wait, by priority; without priorities, the first is that of the link.
    waiting: [u64; PRIORITIES],
    pauses: [bool; PRIORITIES],
    /// When a pause frame is sent again.
    repeat_at: [Instant; PRIORITIES],
    on_the_way: VecDeque<Pause>,
    /// Since when both ends of the link have paused each other; `Instant::MAX` while they have not.
    storm_since: Instant,
}

impl FlowControl {
    /// For a link of `rate` from `sender`; pause frames leave by `back`.
    pub(crate) fn new(
        params: FlowControlParams,
        rate: BitRate,
        sender: u32,
        back: u32,
        place: Place,
    ) -> Self {
        let bit_times = |bits| FlowControlParams::bit_times(bits, rate);
        Self {
            params,
            sender,
            back,
            place,
            longest_pause: bit_times(FlowControlParams::MAX_PAUSE_BIT_TIMES),
            reaction: bit_times(FlowControlParams::reaction_bit_times(rate)),
            waiting: [0; PRIORITIES],
            pauses: [false; PRIORITIES],
            repeat_at: [Instant::MAX; PRIORITIES],
            on_the_way: VecDeque::new(),
            storm_since: Instant::MAX,
        }
    }

    /// Returns the priority under which frames are counted.
    #[inline]
    fn counted(&self, priority: u8) -> usize {
        if self.params.per_priority {
            usize::from(priority) % PRIORITIES
        } else {
            0
        }
    }

    /// Returns true if a frame that arrives may wait.
    #[inline]
    pub(crate) fn has_room(&self, priority: u8, bytes: u32) -> bool {
        let waiting = self.waiting[self.counted(priority)];
        waiting + u64::from(bytes) <= self.params.buffer.bytes()
    }

    /// A frame waits.
    #[inline]
    pub(crate) fn on_queued(&mut self, priority: u8, bytes: u32) -> Option<(usize, Wish)> {
        let priority = self.counted(priority);
        self.waiting[priority] += u64::from(bytes);
        let exceeds = self.waiting[priority] > self.params.high.bytes();
        (exceeds && !self.pauses[priority]).then_some((priority, Wish::Pause))
    }

    /// A frame was dropped because there was no room for it. The sender is paused for it as well: it may be that no whole frame fits
    /// between the high mark and the buffer. Not where so little waits that nothing would let the sender go on.
    pub(crate) fn on_refused(&self, priority: u8) -> Option<(usize, Wish)> {
        let priority = self.counted(priority);
        let is_lifted = self.waiting[priority] > self.params.low.bytes();
        (is_lifted && !self.pauses[priority]).then_some((priority, Wish::Pause))
    }

    /// A frame has left, or was dropped after it had waited.
    #[inline]
    pub(crate) fn on_left(&mut self, priority: u8, bytes: u32) -> Option<(usize, Wish)> {
        let priority = self.counted(priority);
        let waiting = self.waiting[priority];
        debug_assert!(waiting >= u64::from(bytes), "what leaves has waited");
        self.waiting[priority] = waiting.saturating_sub(u64::from(bytes));
        let may_go_on = self.waiting[priority] <= self.params.low.bytes();
        (may_go_on && self.pauses[priority]).then_some((priority, Wish::Resume))
    }

    /// A pause frame is sent at `now`, and has arrived at `arrival`.
    pub(crate) fn on_sent(&mut self, priority: usize, wish: Wish, now: Instant, arrival: Instant) {
        let at = arrival.saturating_add(self.reaction);
        let (until, repeat_at) = match wish {
            Wish::Pause => (
                arrival.saturating_add(self.longest_pause),
                now.saturating_add(Duration::from_nanos(self.longest_pause.nanos() / 2)),
            ),
            Wish::Resume => (at, Instant::MAX),
        };
        self.pauses[priority] = wish == Wish::Pause;
        self.repeat_at[priority] = repeat_at;
        self.on_the_way.push_back(Pause {
            at,
            priority,
            until,
        });
    }

    /// A pause that the sender heeds by `now`.
    pub(crate) fn next_heeded(&mut self, now: Instant) -> Option<Pause> {
        self.on_the_way.pop_front_if(|pause| pause.at <= now)
    }

    /// A priority whose pause frame is to be sent again at `now`.
    pub(crate) fn next_repeated(&self, now: Instant) -> Option<usize> {
        self.repeat_at.iter().position(|at| *at <= now)
    }

    /// When it acts next.
    pub(crate) fn next_event(&self) -> Instant {
        let repeat_at = self.repeat_at.iter().copied().min();
        let heeded = self.on_the_way.front().map(|pause| pause.at);
        let never = Instant::MAX;
        repeat_at.unwrap_or(never).min(heeded.unwrap_or(never))
    }

    /// The sender was paused at `now`; `mutual`: so is the port at this end, by the other. True once that has lasted so long
    /// that it does not end by itself.
    pub(crate) fn on_paused(&mut self, mutual: bool, now: Instant) -> bool {
        if !mutual {
            self.storm_since = Instant::MAX;
            return false;
        }
        self.storm_since = self.storm_since.min(now);
        let lasts = self.longest_pause.nanos().saturating_mul(STORM_PAUSES);
        now >= self.storm_since.saturating_add(Duration::from_nanos(lasts))
    }
}

#[cfg(test)]
mod tests;
