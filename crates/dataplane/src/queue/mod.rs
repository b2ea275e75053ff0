//! Queues: storage without rate logic, and who is refused.

mod fifo;
mod pool;
pub mod red;
pub mod tail_drop;

pub use fifo::Fifo;
pub use pool::{FramePool, QueuedFrame};

use crate::frame::DropReason;
use rand_core::Rng;
use red::{RedDecision, RedState};
use slicewise_model::{QueueLimitParams, WredParams};
use slicewise_units::Instant;
use tail_drop::TailDrop;

/// One queue: frames in order of arrival, tail drop, and (W)RED where configured.
#[derive(Debug, Clone)]
pub struct QueueState {
    fifo: Fifo,
    limit: TailDrop,
    red: Option<RedState>,
}

impl QueueState {
    /// An empty queue.
    #[must_use]
    pub fn new(limit: QueueLimitParams, wred: Option<&WredParams>) -> Self {
        Self {
            fifo: Fifo::new(),
            limit: TailDrop::new(limit),
            red: wred.map(RedState::new),
        }
    }

    /// Put `frame` at the end, or say why not. O(1).
    ///
    /// # Errors
    /// The reason for which the frame is to be dropped; the queue is unchanged but for the
    /// average of RED.
    pub fn try_enqueue(
        &mut self,
        pool: &mut FramePool,
        frame: QueuedFrame,
        now: Instant,
        random: &mut impl Rng,
    ) -> Result<(), DropReason> {
        if let Some(red) = &mut self.red {
            match red.on_arrival(self.fifo.packets(), frame.frame.dscp, now, random) {
                RedDecision::Admit => {}
                RedDecision::DropEarly => return Err(DropReason::RedEarly),
                RedDecision::DropForced => return Err(DropReason::RedForced),
            }
        }
        if !self.limit.admits(&self.fifo, frame.frame.lengths) {
            return Err(DropReason::QueueFull);
        }
        self.fifo
            .try_push(pool, frame)
            .map_err(|_| DropReason::BufferFull)
    }

    /// The frame that leaves next.
    #[must_use]
    pub fn front(&self, pool: &FramePool) -> Option<QueuedFrame> {
        self.fifo.front(pool)
    }

    /// Take the frame that leaves next. O(1).
    pub fn dequeue(&mut self, pool: &mut FramePool, now: Instant) -> Option<QueuedFrame> {
        let frame = self.fifo.pop(pool)?;
        if self.fifo.packets() == 0
            && let Some(red) = &mut self.red
        {
            red.on_empty(now);
        }
        Some(frame)
    }

    /// Frames waiting.
    #[must_use]
    pub const fn packets(&self) -> u32 {
        self.fifo.packets()
    }

    /// Bytes waiting, L2 without FCS.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    /// Move the frames of `old` to the end of this queue, renaming their classes; the average of
    /// RED goes on. The limits of this queue do not apply: nothing queued is lost.
    pub(crate) fn take_over(
        &mut self,
        old: &mut Self,
        pool: &mut FramePool,
        rename: impl Fn(u32) -> u32,
    ) {
        while let Some(mut queued) = old.fifo.pop(pool) {
            queued.class = rename(queued.class);
            self.append(queued, pool);
        }
        if let (Some(red), Some(old)) = (&mut self.red, &old.red) {
            red.resume_from(old);
        }
    }
    /// Put a frame at the end whatever the limits; it has just been taken from another queue.
    pub(crate) fn append(&mut self, queued: QueuedFrame, pool: &mut FramePool) {
        let pushed = self.fifo.try_push(pool, queued);
        debug_assert!(pushed.is_ok(), "the slot just freed is there");
    }
}
