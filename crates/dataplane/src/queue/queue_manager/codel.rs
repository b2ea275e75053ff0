//! `CoDel`: frames are dropped if all of them have been waiting too long (RFC 8289).
//!
//! The waiting time of departing frames decides, not the queue length: a burst that drains within an
//! interval costs nothing, a standing queue loses a frame, and another after interval/√2, interval/√3 …
//! until it is gone.

use super::{Candidate, Decision};
use crate::frame::DropReason;
use slicewise_model::CoDelParams;
use slicewise_units::{Duration, Instant};

/// Bytes behind a frame up to which it is never dropped: a full Ethernet frame (RFC 8289's
/// `maxpacket`). So the last frame of a queue always leaves.
pub const MAX_PACKET: u64 = 1514;
/// A standing queue that returns within this many intervals resumes its drop rate.
const MEMORY_INTERVALS: u64 = 16;

/// Target, interval, and whether to mark.
#[derive(Debug, Clone, Copy)]
pub struct CoDel {
    target: Duration,
    /// ns; its square fits in 64 bits.
    interval: u64,
    ecn: bool,
}

/// `CoDel` state of one queue.
#[derive(Debug, Clone, Copy)]
pub struct CoDelState {
    /// When all frames will have waited too long for an interval; [`Instant::ZERO`] where the
    /// last one had not.
    first_above: Instant,
    /// When the next frame is dropped, while dropping.
    drop_next: Instant,
    /// Drops since dropping began, or more where it resumed.
    count: u32,
    /// `count` when dropping began.
    last_count: u32,
    phase: Phase,
}

impl CoDelState {
    /// State of an unused queue.
    pub const NEW: Self = Self {
        first_above: Instant::ZERO,
        drop_next: Instant::ZERO,
        count: 0,
        last_count: 0,
        phase: Phase::Idle,
    };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing is dropped.
    Idle,
    /// Frames are dropped at `drop_next`.
    Dropping,
    /// The same, and one has just been: `drop_next` moves on if the frame behind it waited too
    /// long as well.
    Dropped,
}

impl CoDel {
    /// `CoDel` with the target and interval of `params`.
    #[must_use]
    pub const fn new(params: &CoDelParams) -> Self {
        let interval = params.interval.nanos();
        let longest = u32::MAX as u64;
        Self {
            target: params.target,
            interval: if interval < longest {
                interval
            } else {
                longest
            },
            ecn: params.ecn,
        }
    }

    /// Decision on `candidate` at `now`. O(1), with an integer square root per drop.
    pub fn judge(self, state: &mut CoDelState, candidate: Candidate, now: Instant) -> Decision {
        if !self.has_waited_too_long(state, candidate, now) {
            state.phase = Phase::Idle;
            return Decision::Send;
        }
        match state.phase {
            Phase::Idle => {
                self.begin(state, now);
                return self.drop_or_mark(candidate);
            }
            Phase::Dropped => {
                state.drop_next = self.after(state.drop_next, state.count);
                state.phase = Phase::Dropping;
            }
            Phase::Dropping => {}
        }
        if now < state.drop_next {
            return Decision::Send;
        }
        state.count = state.count.saturating_add(1);
        let decision = self.drop_or_mark(candidate);
        if decision == Decision::Mark {
            state.drop_next = self.after(state.drop_next, state.count);
        } else {
            state.phase = Phase::Dropped;
        }
        decision
    }

    /// The queue is empty: nothing waits too long.
    pub const fn on_empty(self, state: &mut CoDelState) {
        state.first_above = Instant::ZERO;
        state.phase = Phase::Idle;
    }

    /// Returns true if every frame for an interval has waited longer than the target.
    fn has_waited_too_long(
        self,
        state: &mut CoDelState,
        candidate: Candidate,
        now: Instant,
    ) -> bool {
        let sojourn = now.saturating_since(candidate.arrival);
        let is_short = candidate.bytes_behind <= MAX_PACKET || candidate.is_protected;
        if sojourn < self.target || is_short {
            state.first_above = Instant::ZERO;
            return false;
        }
        if state.first_above == Instant::ZERO {
            state.first_above = now.saturating_add(Duration::from_nanos(self.interval));
            return false;
        }
        now >= state.first_above
    }

    /// Start dropping, at the previous rate if that was recent.
    fn begin(self, state: &mut CoDelState, now: Instant) {
        let drops = state.count.saturating_sub(state.last_count);
        let memory = MEMORY_INTERVALS.saturating_mul(self.interval);
        let is_recent = now.saturating_since(state.drop_next).nanos() < memory;
        state.count = if drops > 1 && is_recent { drops } else { 1 };
        state.last_count = state.count;
        state.drop_next = self.after(now, state.count);
        state.phase = Phase::Dropping;
    }

    /// The control law: interval/√count after `time`, rounded down to a nanosecond.
    fn after(self, time: Instant, count: u32) -> Instant {
        // ⌊√⌊x⌋⌋ = ⌊√x⌋, so that nothing is lost by dividing first.
        let square = self.interval * self.interval / u64::from(count.max(1));
        time.saturating_add(Duration::from_nanos(square.isqrt()))
    }

    const fn drop_or_mark(self, candidate: Candidate) -> Decision {
        if self.ecn && candidate.is_ecn_capable {
            Decision::Mark
        } else {
            Decision::Drop(DropReason::CoDel)
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    reason = "numbers of tests are small"
)]
mod tests;
