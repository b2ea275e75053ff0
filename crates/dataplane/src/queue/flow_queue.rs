//! One queue per flow, each with a queue manager (with `CoDel`: FQ-CoDel, RFC 8290).
//!
//! Flows are hashed to queues. A queue that gets its first frame is *new* and served before the
//! *old* ones, once; among either, deficit round robin. So flows that send little overtake those that
//! send much, and one flow's standing queue delays no other. If the limit of all queues together is
//! exceeded, the one with most bytes drops its oldest frame.
//!
//! Code points may be given levels of strict priority; then each level has queues of its own.
//!
//! With `DualPI2` there are two queues, which ECN chooses, of unequal weight; the limit is at their end.
//!
//! The frame that leaves next is *staged*: judged by the manager and taken from its queue once, so that
//! repeated peeks give the same answer. Only a frame of a higher level puts it back.

mod fattest;
mod protected;
mod state;

use super::pool::{FLOW_BITS, FramePool, QueuedFrame};
use super::queue_manager::dualpi2::{self, L_QUEUE, QUEUES};
use super::queue_manager::{Backlog, Candidate, Decision, Manager};
use crate::frame::DropReason;
use fattest::Fattest;
pub(crate) use protected::ProtectedBacklog;
use rand_core::Rng;
use slicewise_model::{FlowsParams, QueueLimitParams, QueueManager, QueueParams, Separation};
use slicewise_units::Instant;
use state::{FlowState, List, Turn};

/// Queues of flows and their turns. All operations are amortized O(1) if a quantum is a full frame;
/// nothing is allocated after construction.
#[derive(Debug, Clone)]
pub struct FlowQueue {
    params: FlowsParams,
    /// Weight of the L queue of `DualPI2`; `None` where flows have queues.
    dual: Option<u8>,
    manager: Manager,
    limit_packets: u32,
    limit_bytes: u64,
    /// `params.flows` for each level.
    flows: Box<[FlowState]>,
    levels: Box<[Level]>,
    fattest: Fattest,
    staged: Option<Staged>,
    packets: u32,
    bytes: u64,
    dropped: u32,
    protected: ProtectedBacklog,
    /// Protected instead while `earlier_frames` are more than zero.
    earlier: ProtectedBacklog,
    /// Frames that have yet to leave of those that waited when less began to be protected.
    earlier_frames: u32,
}

/// Flows of one priority that take turns.
#[derive(Debug, Clone)]
struct Level {
    new: List,
    old: List,
}

/// The frame that leaves next.
#[derive(Debug, Clone, Copy)]
struct Staged {
    slot: u32,
    flow: u32,
    level: usize,
    bytes: u32,
}

/// The most bytes in one queue: flows count theirs in 32 bits.
const BYTES_MAX: u64 = u32::MAX as u64;

impl FlowQueue {
    /// An empty queue; its limit is for all flows together.
    #[must_use]
    pub fn new(queue: &QueueParams) -> Self {
        let dual = match &queue.manager {
            QueueManager::DualPi2(params) => Some(params.weight),
            _ => None,
        };
        let params = match queue.flows {
            _ if dual.is_some() => FlowsParams {
                flows: QUEUES,
                ..FlowsParams::ONE
            },
            Separation::None => FlowsParams::ONE,
            Separation::PerFlow(flows) => flows,
        };
        let levels = params.levels.count();
        let flows = params.flows as usize * levels;
        let mut this = Self {
            params,
            dual,
            manager: Manager::new(&queue.manager, flows),
            limit_packets: 0,
            limit_bytes: 0,
            flows: vec![FlowState::EMPTY; flows].into(),
            levels: vec![
                Level {
                    new: List::EMPTY,
                    old: List::EMPTY,
                };
                levels
            ]
            .into(),
            fattest: Fattest::new(),
            staged: None,
            packets: 0,
            bytes: 0,
            dropped: 0,
            protected: ProtectedBacklog::NONE,
            earlier: ProtectedBacklog::NONE,
            earlier_frames: 0,
        };
        this.set_limit(queue.limit);
        this
    }

    /// Change the limit. Frames beyond it are dropped when the next frame arrives.
    pub(crate) fn set_limit(&mut self, limit: QueueLimitParams) {
        self.limit_packets = limit.packets.max(1);
        self.limit_bytes = limit.bytes.bytes().min(BYTES_MAX);
    }

    /// Protect `backlog` from `CoDel`. If `before` is more, this remains protected until the `frames` that now wait have left: they
    /// were within another guarantee.
    pub(crate) const fn protect(
        &mut self,
        backlog: ProtectedBacklog,
        before: ProtectedBacklog,
        frames: u32,
    ) {
        self.protected = backlog;
        self.earlier = before;
        self.earlier_frames = if before.bytes() > backlog.bytes() {
            frames
        } else {
            0
        };
    }

    /// The backlog that `CoDel` does not touch now.
    #[inline]
    pub(crate) const fn protected(&self) -> ProtectedBacklog {
        if self.earlier_frames > 0 {
            self.earlier
        } else {
            self.protected
        }
    }

    /// Frames waiting.
    #[must_use]
    pub const fn packets(&self) -> u32 {
        self.packets
    }

    /// Bytes waiting, L2 without FCS.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Frames dropped out of the queue since the last query. The pool has them.
    pub const fn take_dropped(&mut self) -> u32 {
        std::mem::replace(&mut self.dropped, 0)
    }

    /// Let the manager decide on a frame that arrives; it may get a congestion mark.
    ///
    /// # Errors
    /// The reason to drop it.
    pub(crate) fn admit(
        &mut self,
        queued: &mut QueuedFrame,
        random: &mut impl Rng,
    ) -> Result<(), DropReason> {
        // RFC 9332, appendix A.1: both queues share a limit at their end.
        if self.dual.is_some() && !self.has_room(queued) {
            return Err(DropReason::QueueFull);
        }
        let (id, _) = self.flow_of(queued);
        let flow = &self.flows[id as usize];
        let backlog = Backlog {
            packets: flow.packets,
            bytes: flow.bytes.into(),
        };
        self.manager
            .on_arrival(id as usize, backlog, queued, random)
    }

    fn has_room(&self, queued: &QueuedFrame) -> bool {
        let bytes = self.bytes + u64::from(queued.lengths().l2_bytes);
        self.packets < self.limit_packets && bytes <= self.limit_bytes
    }

    /// Put `frame` at the end of its flow's queue; returns whether another frame may now be the
    /// next to leave. Frames of the fattest flow are dropped where the limit is exceeded, this
    /// one perhaps among them: but never the only one.
    ///
    /// # Errors
    /// Why the frame is rejected: it alone exceeds the limit, or the pool is full.
    pub fn try_enqueue(
        &mut self,
        pool: &mut FramePool,
        queued: QueuedFrame,
    ) -> Result<bool, DropReason> {
        let bytes = u64::from(queued.lengths().l2_bytes);
        if bytes > self.limit_bytes {
            return Err(DropReason::QueueFull);
        }
        let slot = pool.try_take(queued).ok_or(DropReason::BufferFull)?;
        let was_empty = self.packets == 0;
        let level = self.push(pool, slot, queued);
        while self.packets > 1
            && (self.packets > self.limit_packets || self.bytes > self.limit_bytes)
        {
            if !self.drop_from_fattest(pool) {
                break;
            }
        }
        Ok(was_empty || self.unstage(pool, level))
    }

    /// Put a frame at the end of its flow's queue whatever the limits.
    fn push(&mut self, pool: &mut FramePool, slot: u32, queued: QueuedFrame) -> usize {
        let bytes = queued.lengths().l2_bytes;
        let (id, level) = self.flow_of(&queued);
        let quantum = self.quantum(id);
        let flow = &mut self.flows[id as usize];
        flow.push(pool, slot, bytes);
        if flow.turn == Turn::None {
            flow.turn = Turn::New;
            flow.deficit = quantum;
            self.levels[level].new.push(&mut self.flows, id);
        }
        self.fattest.update(&mut self.flows, id);
        self.packets += 1;
        self.bytes += u64::from(bytes);
        level
    }

    /// Returns the queue of a frame and its level: the hash of the flow is scaled to the number of queues.
    fn flow_of(&self, queued: &QueuedFrame) -> (u32, usize) {
        if self.dual.is_some() {
            return (dualpi2::queue_of(queued.ecn()), 0);
        }
        let level = self.params.levels.of(queued.dscp());
        let hash = u32::from(queued.flow()) & ((1 << FLOW_BITS) - 1);
        let first = u32::try_from(level).unwrap_or(0) * self.params.flows;
        (first + ((hash * self.params.flows) >> FLOW_BITS), level)
    }

    /// Bytes that a queue may send in its turn.
    fn quantum(&self, id: u32) -> i32 {
        let weight = self.dual.filter(|_| id == L_QUEUE).unwrap_or(1);
        signed(self.params.quantum.saturating_mul(weight.into()))
    }

    /// The flow with most bytes, to within a quarter, drops its oldest frame.
    fn drop_from_fattest(&mut self, pool: &mut FramePool) -> bool {
        let Some(id) = self.fattest.find() else {
            return false;
        };
        self.drop_oldest(pool, id, DropReason::Overlimit);
        true
    }

    fn drop_oldest(&mut self, pool: &mut FramePool, id: u32, reason: DropReason) {
        if let Some((slot, bytes)) = self.pop(pool, id) {
            self.forget(bytes);
            self.dropped += 1;
            pool.discard(slot, reason);
        }
    }

    fn pop(&mut self, pool: &FramePool, id: u32) -> Option<(u32, u32)> {
        let popped = self.flows[id as usize].pop(pool)?;
        self.fattest.update(&mut self.flows, id);
        Some(popped)
    }

    fn forget(&mut self, bytes: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(bytes);
        self.earlier_frames = self.earlier_frames.saturating_sub(1);
    }

    /// Put the staged frame back where it was if it is of a lower level than `level`; returns
    /// whether it was.
    fn unstage(&mut self, pool: &mut FramePool, level: usize) -> bool {
        let Some(staged) = self.staged.filter(|staged| level < staged.level) else {
            return false;
        };
        self.staged = None;
        let flow = &mut self.flows[staged.flow as usize];
        flow.push_front(pool, staged.slot, staged.bytes);
        flow.deficit = flow.deficit.saturating_add(signed(staged.bytes));
        // Its turn goes on: it has stayed at the front of its list.
        self.fattest.update(&mut self.flows, staged.flow);
        true
    }

    /// Slot of the frame that leaves next, which stays the same until it is taken, or one of a
    /// higher level comes. Frames that have waited too long are dropped on the way; never all.
    pub(crate) fn stage(&mut self, pool: &mut FramePool, now: Instant) -> Option<u32> {
        if self.staged.is_none() {
            self.staged =
                (0..self.levels.len()).find_map(|level| self.next(pool, level, Some(now)));
        }
        self.staged.map(|staged| staged.slot)
    }

    /// The next frame of a level by turns; judged by the manager where `now` is given.
    fn next(&mut self, pool: &mut FramePool, level: usize, now: Option<Instant>) -> Option<Staged> {
        loop {
            let lists = &self.levels[level];
            let (id, is_new) = match lists.new.front() {
                Some(id) => (id, true),
                None => (lists.old.front()?, false),
            };
            if self.flows[id as usize].deficit <= 0 {
                let quantum = self.quantum(id);
                let flow = &mut self.flows[id as usize];
                flow.deficit = flow.deficit.saturating_add(quantum);
                self.put_behind_old(level, is_new);
                continue;
            }
            let found = match now {
                Some(now) => self.judged(pool, id, now),
                None => self.pop(pool, id),
            };
            if let Some((slot, bytes)) = found {
                let flow = &mut self.flows[id as usize];
                flow.deficit = flow.deficit.saturating_sub(signed(bytes));
                return Some(Staged {
                    slot,
                    flow: id,
                    level,
                    bytes,
                });
            }
            self.manager
                .on_empty(id as usize, now.unwrap_or(Instant::ZERO));
            // An empty new queue is old for a round: otherwise it could immediately become new again and
            // again.
            if is_new && self.levels[level].old.front().is_some() {
                self.put_behind_old(level, true);
            } else {
                self.end_turn(level, is_new);
            }
        }
    }

    /// The queue at the front goes to the end of the old ones.
    fn put_behind_old(&mut self, level: usize, is_new: bool) {
        if let Some(id) = self.end_turn(level, is_new) {
            self.flows[id as usize].turn = Turn::Old;
            self.levels[level].old.push(&mut self.flows, id);
        }
    }

    fn end_turn(&mut self, level: usize, is_new: bool) -> Option<u32> {
        let lists = &mut self.levels[level];
        let list = if is_new {
            &mut lists.new
        } else {
            &mut lists.old
        };
        let id = list.pop(&self.flows)?;
        self.flows[id as usize].turn = Turn::None;
        Some(id)
    }

    /// The oldest frame of a flow that the manager lets pass.
    fn judged(&mut self, pool: &mut FramePool, id: u32, now: Instant) -> Option<(u32, u32)> {
        loop {
            let (slot, bytes) = self.pop(pool, id)?;
            let queued = pool.get(slot);
            let is_protected = self.protected().covers(self.bytes, self.packets);
            let candidate = Candidate {
                arrival: queued.arrival(),
                bytes_behind: u64::from(self.flows[id as usize].bytes),
                is_ecn_capable: queued.ecn().is_capable(),
                is_protected,
            };
            match self.manager.on_departure(id as usize, candidate, now) {
                Decision::Send => return Some((slot, bytes)),
                Decision::Mark => {
                    pool.mark(slot);
                    return Some((slot, bytes));
                }
                Decision::Drop(reason) => {
                    self.forget(bytes);
                    self.dropped += 1;
                    pool.discard(slot, reason);
                }
            }
        }
    }

    /// Take the frame that leaves next.
    pub fn dequeue(&mut self, pool: &mut FramePool, now: Instant) -> Option<QueuedFrame> {
        self.stage(pool, now)?;
        self.take_staged(pool)
    }

    /// Take a frame in the order of turns, and drop none: the queue is being replaced.
    pub(crate) fn pop_unserved(&mut self, pool: &mut FramePool) -> Option<QueuedFrame> {
        if self.staged.is_none() {
            self.staged = (0..self.levels.len()).find_map(|level| self.next(pool, level, None));
        }
        self.take_staged(pool)
    }

    fn take_staged(&mut self, pool: &mut FramePool) -> Option<QueuedFrame> {
        let staged = self.staged.take()?;
        let (queued, _) = pool.release(staged.slot);
        self.forget(staged.bytes);
        Some(queued)
    }

    /// Put a frame, just taken from another queue, at the end of its flow's whatever the limits.
    pub(crate) fn append(&mut self, queued: QueuedFrame, pool: &mut FramePool) {
        let slot = pool.try_take(queued);
        debug_assert!(slot.is_some(), "the slot just freed is there");
        if let Some(slot) = slot {
            self.push(pool, slot, queued);
        }
    }

    /// Continue with the manager's state of the flows of `old`, if they are the same.
    pub(crate) fn resume_from(&mut self, old: &Self) {
        if self.params.flows == old.params.flows && self.params.levels == old.params.levels {
            self.manager.resume_from(&old.manager);
        }
    }
}

fn signed(bytes: u32) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    reason = "numbers of tests are small"
)]
mod tests;
