//! One flow that is followed: its rate, whether it is an elephant, and where its frames wait.

use crate::queue::{FrameList, Position};
use slicewise_model::ElephantsParams;

/// A flow stays an elephant until it sends less than this part of what made it one. An elephant shares a queue with
/// others of its kind and often sends less there than before; with one threshold it would go back, send more, and come
/// again.
const KEPT_ABOVE: u64 = 2;

#[derive(Debug)]
pub(super) struct Flow {
    /// The interval that `bytes` were sent in.
    pub(super) interval: u64,
    pub(super) bytes: u64,
    /// Intervals in a row, the last of them before this one, in which it was not what it is tagged as.
    streak: u32,
    /// It is an elephant.
    pub(super) is_tagged: bool,
    /// Where its frames were put last: in the queue of its class (0) or that of elephants (1).
    pub(super) queue: usize,
    /// The place behind the last of them.
    pub(super) last: Position,
    /// Its next frames, which wait until those have left.
    pub(super) aside: FrameList,
}

impl Flow {
    /// A flow whose frames wait in the queue of its class, none behind `last`, and that has sent `bytes` in an interval.
    pub(super) const fn new(interval: u64, bytes: u64, last: Position) -> Self {
        Self {
            interval,
            bytes,
            streak: 0,
            is_tagged: false,
            queue: 0,
            last,
            aside: FrameList::new(),
        }
    }

    /// Intervals before `interval` have ended; returns whether it was tagged at the end of one.
    #[inline]
    pub(super) fn end_intervals(&mut self, interval: u64, params: &ElephantsParams) -> bool {
        self.interval != interval && self.end(interval, params)
    }

    fn end(&mut self, interval: u64, params: &ElephantsParams) -> bool {
        let threshold = params.threshold.bytes();
        let was_tagged = self.is_tagged;
        let differs = if was_tagged {
            self.bytes < threshold / KEPT_ABOVE
        } else {
            self.bytes > threshold
        };
        self.streak = if differs {
            self.streak.saturating_add(1)
        } else {
            0
        };
        self.change_after(params.times);
        let tagged = self.is_tagged && !was_tagged;
        // It sent nothing in those that followed.
        let silent = u32::try_from(interval - self.interval - 1).unwrap_or(u32::MAX);
        if self.is_tagged {
            self.streak = self.streak.saturating_add(silent);
            self.change_after(params.times);
        } else if silent > 0 {
            self.streak = 0;
        }
        (self.interval, self.bytes) = (interval, 0);
        tagged
    }

    /// It is what it was for so many intervals in a row.
    const fn change_after(&mut self, times: u32) {
        if self.streak >= times {
            self.is_tagged = !self.is_tagged;
            self.streak = 0;
        }
    }

    /// It is tagged if it is certain before the end of this interval that it has exceeded the rate often enough; returns
    /// whether it was.
    pub(super) fn tag_early(&mut self, params: &ElephantsParams) -> bool {
        let exceeds = self.bytes > params.threshold.bytes();
        if self.is_tagged || !exceeds || self.streak + 1 < params.times {
            return false;
        }
        (self.is_tagged, self.streak) = (true, 0);
        true
    }

    /// Nothing about it needs to be remembered.
    pub(super) const fn is_ordinary(&self) -> bool {
        let has_moved = self.queue != 0 || self.aside.packets() > 0;
        !self.is_tagged && !has_moved && self.streak == 0 && self.bytes == 0
    }
}
