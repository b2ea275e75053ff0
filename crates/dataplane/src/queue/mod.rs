//! Queues: storage without rate logic, and admission.

pub mod codel;
mod fifo;
mod flow_hash;
pub mod fq_codel;
mod pool;
pub mod red;
pub mod tail_drop;

pub use fifo::Fifo;
pub(crate) use flow_hash::FlowHash;
pub use fq_codel::FlowQueue;
pub use pool::{FLOW_BITS, FramePool, QueuedFrame};

use crate::frame::DropReason;
use rand_core::Rng;
use red::{RedDecision, RedState};
use slicewise_model::{FlowQueueParams, QueueLimitParams, WredParams};
use slicewise_units::Instant;
use tail_drop::TailDrop;

/// One queue.
#[derive(Debug, Clone)]
pub enum QueueState {
    /// Frames in order of arrival.
    Fifo(FifoQueue),
    /// One queue per flow, and `CoDel`.
    Flows(Box<FlowQueue>),
}

/// Frames in order of arrival, tail drop, and (W)RED if configured.
#[derive(Debug, Clone)]
pub struct FifoQueue {
    fifo: Fifo,
    limit: TailDrop,
    red: Option<RedState>,
}

impl QueueState {
    /// An empty queue in order of arrival.
    #[must_use]
    pub fn new(limit: QueueLimitParams, wred: Option<&WredParams>) -> Self {
        Self::Fifo(FifoQueue {
            fifo: Fifo::new(),
            limit: TailDrop::new(limit),
            red: wred.map(RedState::new),
        })
    }

    /// An empty queue of flows.
    #[must_use]
    pub fn flows(limit: QueueLimitParams, params: &FlowQueueParams) -> Self {
        Self::Flows(Box::new(FlowQueue::new(params, limit)))
    }

    /// Queue `frame`, or say why not; returns whether another frame may now be the next to leave.
    /// O(1).
    ///
    /// # Errors
    /// The reason to drop the frame; the queue is unchanged except for the RED average.
    #[inline]
    pub fn try_enqueue(
        &mut self,
        pool: &mut FramePool,
        frame: QueuedFrame,
        now: Instant,
        random: &mut impl Rng,
    ) -> Result<bool, DropReason> {
        match self {
            Self::Fifo(queue) => queue.try_enqueue(pool, frame, now, random),
            Self::Flows(flows) => flows.try_enqueue(pool, frame),
        }
    }

    /// The frame that leaves next. The same until it is taken, unless one of a higher priority
    /// level comes.
    #[inline]
    pub fn front(&mut self, pool: &mut FramePool, now: Instant) -> Option<QueuedFrame> {
        match self {
            Self::Fifo(queue) => queue.fifo.front(pool),
            Self::Flows(flows) => flows.stage(pool, now).map(|slot| pool.get(slot)),
        }
    }

    /// Take the frame that leaves next. O(1).
    #[inline]
    pub fn dequeue(&mut self, pool: &mut FramePool, now: Instant) -> Option<QueuedFrame> {
        match self {
            Self::Fifo(queue) => queue.dequeue(pool, now),
            Self::Flows(flows) => flows.dequeue(pool, now),
        }
    }

    /// Frames dropped out of the queue since the last query.
    #[inline]
    pub const fn take_dropped(&mut self) -> u32 {
        match self {
            Self::Fifo(_) => 0,
            Self::Flows(flows) => flows.take_dropped(),
        }
    }

    /// Bytes waiting, L2 without FCS.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        match self {
            Self::Fifo(queue) => queue.fifo.bytes(),
            Self::Flows(flows) => flows.bytes(),
        }
    }

    /// Take a frame without early detection: the queue is being replaced.
    pub(crate) fn pop_unserved(&mut self, pool: &mut FramePool) -> Option<QueuedFrame> {
        match self {
            Self::Fifo(queue) => queue.fifo.pop(pool),
            Self::Flows(flows) => flows.pop_unserved(pool),
        }
    }

    /// Move the frames of `old` to the end of this queue, renaming their classes; the RED average and
    /// the `CoDel` state are kept. The limits of this queue do not apply: nothing queued is lost.
    pub(crate) fn take_over(
        &mut self,
        old: &mut Self,
        pool: &mut FramePool,
        rename: impl Fn(u32) -> u32,
    ) {
        match (&mut *self, &mut *old) {
            (Self::Fifo(new), Self::Fifo(old)) => {
                if let (Some(red), Some(old)) = (&mut new.red, &old.red) {
                    red.resume_from(old);
                }
            }
            (Self::Flows(new), Self::Flows(old)) => new.resume_from(old),
            _ => {}
        }
        while let Some(mut queued) = old.pop_unserved(pool) {
            queued.class = rename(queued.class);
            self.append(queued, pool);
        }
    }

    /// Put a frame at the end whatever the limits; it has just been taken from another queue.
    pub(crate) fn append(&mut self, queued: QueuedFrame, pool: &mut FramePool) {
        match self {
            Self::Fifo(queue) => {
                let pushed = queue.fifo.try_push(pool, queued);
                debug_assert!(pushed.is_ok(), "the slot just freed is there");
            }
            Self::Flows(flows) => flows.append(queued, pool),
        }
    }
}

impl FifoQueue {
    fn try_enqueue(
        &mut self,
        pool: &mut FramePool,
        frame: QueuedFrame,
        now: Instant,
        random: &mut impl Rng,
    ) -> Result<bool, DropReason> {
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
        let was_empty = self.fifo.packets() == 0;
        self.fifo
            .try_push(pool, frame)
            .map_err(|_| DropReason::BufferFull)?;
        Ok(was_empty)
    }

    fn dequeue(&mut self, pool: &mut FramePool, now: Instant) -> Option<QueuedFrame> {
        let frame = self.fifo.pop(pool)?;
        if self.fifo.packets() == 0
            && let Some(red) = &mut self.red
        {
            red.on_empty(now);
        }
        Some(frame)
    }
}
