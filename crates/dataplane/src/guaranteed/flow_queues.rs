//! Slices whose frames are queued by flow and priority level instead of in arrival order.
//!
//! Such a slice presents one frame to its scheduler, the *staged* one, like the head of its list:
//! eligible time and deadline are computed for it. The others wait in a [`FlowQueue`], which stages the
//! next as one leaves. So the slice as a whole keeps its guarantee, and which of its flows benefits is
//! decided inside.

use super::slice::{SliceState, Tier, cost};
use super::{Guaranteed, SliceError, SliceId};
use crate::frame::DropReason;
use crate::queue::{FlowQueue, FramePool, ProtectedBacklog, QueuedFrame};
use slicewise_model::{FlowQueueParams, QueueLimitParams, QueueParams, SliceParams};
use slicewise_units::Instant;

/// The flow queues of a scheduler's slices.
#[derive(Debug, Clone, Default)]
pub(super) struct FlowQueues {
    queues: Vec<Option<FlowQueue>>,
    free: Vec<u32>,
    /// Frames dropped, and whether another frame was staged, since the last query.
    effects: Effects,
}

/// Side effects of flow queues.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Effects {
    /// Frames dropped that had been queued.
    pub(crate) dropped: u32,
    /// A frame of a higher level replaced the one that would have left next.
    pub(crate) restaged: bool,
}

impl FlowQueues {
    fn insert(&mut self, queue: FlowQueue) -> u32 {
        if let Some(index) = self.free.pop() {
            self.queues[index as usize] = Some(queue);
            return index;
        }
        self.queues.push(Some(queue));
        u32::try_from(self.queues.len() - 1).unwrap_or(u32::MAX)
    }

    pub(super) fn remove(&mut self, index: u32) {
        if let Some(queue) = self.queues.get_mut(index as usize) {
            *queue = None;
            self.free.push(index);
        }
    }

    fn get(&self, index: u32) -> Option<&FlowQueue> {
        self.queues.get(index as usize)?.as_ref()
    }

    /// Frames were dropped that had been queued.
    pub(super) const fn count_dropped(&mut self, frames: u32) {
        self.effects.dropped += frames;
    }

    pub(super) fn get_mut(&mut self, index: u32) -> Option<&mut FlowQueue> {
        self.queues.get_mut(index as usize)?.as_mut()
    }
}

impl Guaranteed {
    /// Add a slice with flow queueing, and priority levels if `flow_queue` has them.
    /// Its guarantee is that of all its frames together.
    ///
    /// # Errors
    /// As [`add_slice`](Self::add_slice).
    pub fn add_flow_queued_slice(
        &mut self,
        params: &SliceParams,
        flow_queue: &FlowQueueParams,
        now: Instant,
    ) -> Result<SliceId, SliceError> {
        let id = self.add_slice(params, now)?;
        let queue = FlowQueue::new(&QueueParams::of_slice(
            params.queue_limit,
            Some(*flow_queue),
        ));
        let index = self.flow_queues.insert(queue);
        self.slices[id.0 as usize].set_flow_queue(index);
        self.protect_from_codel(id, ProtectedBacklog::NONE, 0);
        Ok(id)
    }

    /// Most that waits of a slice while it keeps to its guarantee (step 5 of the proof): its burst, and what its rate earns in its delay and a bucket.
    fn conforming_backlog(&self, id: SliceId) -> ProtectedBacklog {
        let slice = self.slices.get(id.0 as usize);
        let Some(slice) = slice.filter(|slice| slice.committed.exists()) else {
            return ProtectedBacklog::NONE;
        };
        let delay = self.delays.nanos(slice.delay);
        let longest = delay.saturating_add(self.granularity().nanos());
        let bytes = slice.committed.most_bytes_in(longest);
        ProtectedBacklog::new(bytes, self.counting.0)
    }

    /// The backlog of a slice that `CoDel` does not touch now, or would not if it had a flow queue.
    pub(super) fn protected_backlog(&self, id: SliceId) -> ProtectedBacklog {
        let slice = self.slices.get(id.0 as usize);
        let index = slice.and_then(SliceState::flow_queue);
        let queue = index.and_then(|index| self.flow_queues.get(index));
        queue.map_or_else(|| self.conforming_backlog(id), FlowQueue::protected)
    }

    /// Protect from `CoDel` what a slice has waiting within its guarantee, if it has a flow queue. The `frames` that now wait
    /// may be within another guarantee, under which `before` was protected.
    pub(super) fn protect_from_codel(
        &mut self,
        id: SliceId,
        before: ProtectedBacklog,
        frames: u32,
    ) {
        let backlog = self.conforming_backlog(id);
        let slice = self.slices.get(id.0 as usize);
        if let Some(index) = slice.and_then(SliceState::flow_queue)
            && let Some(queue) = self.flow_queues.get_mut(index)
        {
            queue.protect(backlog, before, frames);
        }
    }

    /// Have the frames of a slice wait by flow, or in one queue, from now on. Those that wait move, each flow in its order, and
    /// every one must carry the hash of its flow. The first stays the first, so what is due when does not change. O(frames).
    pub(crate) fn set_flow_queue(
        &mut self,
        id: SliceId,
        flow_queue: Option<&FlowQueueParams>,
        limit: QueueLimitParams,
        pool: &mut FramePool,
        now: Instant,
    ) {
        let protected = self.protected_backlog(id);
        let frames: Vec<QueuedFrame> = std::iter::from_fn(|| self.pop_unserved(id, pool)).collect();
        let Some(slice) = self.slices.get_mut(id.0 as usize) else {
            return;
        };
        if let Some(old) = slice.flow_queue() {
            self.flow_queues.remove(old);
        }
        match flow_queue {
            None => slice.set_one_queue(limit),
            Some(params) => {
                let params = QueueParams::of_slice(limit, Some(*params));
                let index = self.flow_queues.insert(FlowQueue::new(&params));
                slice.set_flow_queue(index);
            }
        }
        self.protect_from_codel(
            id,
            protected,
            u32::try_from(frames.len()).unwrap_or(u32::MAX),
        );
        for queued in frames {
            self.append(id, queued, pool);
        }
        self.on_mixed(id, now);
        self.stage_moved(id.0, pool, now);
    }

    /// Side effects since the last query.
    #[inline]
    pub(crate) fn take_effects(&mut self) -> Effects {
        std::mem::take(&mut self.flow_queues.effects)
    }

    /// Queue a frame in a slice's flow queue, and stage one where none is.
    pub(super) fn enqueue_by_flow(
        &mut self,
        id: u32,
        index: u32,
        queued: QueuedFrame,
        pool: &mut FramePool,
    ) -> Result<(), DropReason> {
        let Some(queue) = self.flow_queues.get_mut(index) else {
            return Err(DropReason::SliceRemoved);
        };
        let is_new_front = queue.try_enqueue(pool, queued)?;
        let was_empty = self.slices[id as usize].packets == 0;
        let now = queued.arrival();
        if is_new_front {
            self.stage(id, index, pool, now);
        }
        self.note_backlog(id, index);
        if !is_new_front {
            return Ok(());
        }
        if was_empty {
            self.place_head(id, pool, now.nanos());
        } else {
            self.flow_queues.effects.restaged = true;
            self.replace_staged(id, pool, now.nanos());
        }
        Ok(())
    }

    /// Let the queue stage the frame that leaves next.
    fn stage(&mut self, id: u32, index: u32, pool: &mut FramePool, now: Instant) {
        if let Some(queue) = self.flow_queues.get_mut(index) {
            self.slices[id as usize].head = queue.stage(pool, now).unwrap_or(super::NIL);
        }
    }

    /// Note what waits now, and what was dropped.
    fn note_backlog(&mut self, id: u32, index: u32) {
        let Some(queue) = self.flow_queues.get_mut(index) else {
            return;
        };
        let dropped = queue.take_dropped();
        let (packets, bytes) = (queue.packets(), queue.bytes());
        self.flow_queues.effects.dropped += dropped;
        let slice = &mut self.slices[id as usize];
        self.backlog = self.backlog - slice.packets + packets;
        slice.packets = packets;
        slice.bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    }

    /// [`place`](Self::place) a slice that still has frames after others left. The staged frame of a flow queue may have
    /// arrived after frames that still wait. It is eligible when these would be, or its service would be late for the slice.
    #[inline]
    pub(super) fn place_waiting(&mut self, id: u32, pool: &FramePool, now: u64) {
        let slice = &self.slices[id as usize];
        if slice.flow_queue().is_none() {
            return self.place_head(id, pool, now);
        }
        let (lengths, _) = pool.head(slice.head);
        let price = cost(self.counted(lengths));
        // From when the frame before it was eligible.
        self.place(id, 0, price, now);
    }

    /// Another frame was staged instead of an unserved one. It inherits its eligible time as far as the
    /// tokens cover it: the service of the slice as a whole does not change. Only a longer one has to
    /// wait for its additional cost.
    fn replace_staged(&mut self, id: u32, pool: &FramePool, now: u64) {
        if self.slices[id as usize].tier == Tier::Eligible {
            self.deadlines.remove(&mut self.slices, id);
            self.slices[id as usize].tier = Tier::Idle;
        }
        let slice = &mut self.slices[id as usize];
        let since = slice.committed.clock().min(now);
        if slice.committed.clock() > now {
            // The frame that waited for tokens has not paid them.
            slice.committed.rewind(now);
        }
        let (lengths, _) = pool.head(slice.head);
        let price = cost(self.counted(lengths));
        self.place(id, since, price, now);
    }

    /// Take the staged frame of a slice, and stage the next.
    pub(super) fn pop_staged(
        &mut self,
        id: u32,
        index: u32,
        pool: &mut FramePool,
        now: Instant,
    ) -> Option<QueuedFrame> {
        let queued = self.flow_queues.get_mut(index)?.dequeue(pool, now)?;
        self.stage(id, index, pool, now);
        self.note_backlog(id, index);
        Some(queued)
    }

    /// Remove frames from a slice of a scheduler that is being replaced.
    pub(super) fn pop_unserved_by_flow(
        &mut self,
        id: u32,
        index: u32,
        pool: &mut FramePool,
    ) -> Option<QueuedFrame> {
        let queued = self.flow_queues.get_mut(index)?.pop_unserved(pool)?;
        self.note_backlog(id, index);
        Some(queued)
    }

    /// Put a frame, just taken from another queue, into a slice's flow queue whatever its limits.
    pub(super) fn append_by_flow(
        &mut self,
        id: u32,
        index: u32,
        queued: QueuedFrame,
        pool: &mut FramePool,
    ) {
        if let Some(queue) = self.flow_queues.get_mut(index) {
            queue.append(queued, pool);
            self.note_backlog(id, index);
        }
    }

    /// Stage a frame of a slice that was given frames, where it has a flow queue.
    pub(super) fn stage_moved(&mut self, id: u32, pool: &mut FramePool, now: Instant) {
        if let Some(index) = self.slices[id as usize].flow_queue() {
            self.stage(id, index, pool, now);
            self.note_backlog(id, index);
        }
    }

    /// Transfer the state of the flow queue of slice `from` of `old` to that of slice `to`.
    pub(super) fn resume_flow_queue(&mut self, to: SliceId, old: &Self, from: SliceId) {
        self.protect_from_codel(to, old.protected_backlog(from), old.slice_backlog(from));
        let index = |of: &Self, id: SliceId| {
            let slice = of.slices.get(id.0 as usize);
            slice.and_then(SliceState::flow_queue)
        };
        let (Some(to), Some(from)) = (index(self, to), index(old, from)) else {
            return;
        };
        let old = old.flow_queues.queues.get(from as usize);
        if let (Some(queue), Some(Some(old))) = (self.flow_queues.get_mut(to), old) {
            queue.resume_from(old);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FlowQueues;
    use crate::queue::FlowQueue;
    use slicewise_model::{ClassSpec, Discipline, FlowQueueSpec, PolicySpec};
    use slicewise_units::BitRate;

    fn queue() -> FlowQueue {
        let class = ClassSpec {
            queue: FlowQueueSpec::default().into(),
            ..ClassSpec::class_default()
        };
        let policy = PolicySpec {
            name: "p".into(),
            classes: vec![class],
            discipline: Discipline::MinimumShare,
            guaranteed: None,
            queues: Vec::new(),
        };
        let policy = policy.resolve(BitRate::new(1_000_000)).unwrap();
        FlowQueue::new(&policy.classes[0].queue)
    }

    #[test]
    fn the_place_of_a_removed_queue_is_used_again() {
        let mut queues = FlowQueues::default();
        let (first, second) = (queues.insert(queue()), queues.insert(queue()));
        queues.remove(first);
        assert!(queues.get_mut(first).is_none() && queues.get_mut(second).is_some());
        assert_eq!(queues.insert(queue()), first);
    }
}
