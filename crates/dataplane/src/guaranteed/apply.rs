//! Changing slices while frames flow: nothing queued is lost, reordered or, unless its slice gets less, due later than it was.

use super::slice::{Excess, Life, SliceState, Tier};
use super::{Guaranteed, Removal, SliceError, SliceId};
use crate::frame::DropReason;
use crate::queue::{FramePool, QueuedFrame};
use slicewise_model::SliceParams;
use slicewise_units::Instant;

impl Guaranteed {
    fn live(&self, id: SliceId) -> Result<usize, SliceError> {
        let index = id.0 as usize;
        match self.slices.get(index) {
            Some(slice) if slice.life == Life::Live => Ok(index),
            _ => Err(SliceError::Unknown(id.0)),
        }
    }

    /// Change the parameters of a slice. Its frames, tokens and debt stay; its first frame is
    /// rescheduled. O(1).
    ///
    /// # Errors
    /// Where there is no such slice, its tenant does not exist, or there are too many delays.
    pub fn change_slice(
        &mut self,
        id: SliceId,
        params: &SliceParams,
        pool: &FramePool,
        now: Instant,
    ) -> Result<(), SliceError> {
        let index = self.live(id)?;
        self.check_params(params)?;
        let protected = self.protected_backlog(id);
        let slice = &mut self.slices[index];
        self.excess.set_slice_weight(slice, params.weight);
        self.excess.change_tenant(slice, id.0, params);
        if self.slices[index].tier == Tier::Waiting {
            self.wheel.remove(&mut self.slices, id.0);
            self.slices[index].tier = Tier::Idle;
            let eligible = self.slices[index].committed.clock();
            if eligible <= now.nanos() {
                // Eligible, but not woken yet: the frame keeps its deadline, as in slices that are awake.
                self.place_by_eligibility(id.0, eligible, self.wheel.due(now.nanos()), now.nanos());
            }
        }
        self.change_delay(id, params.guarantee.as_ref());
        let slice = &mut self.slices[index];
        let before = slice.committed.rate();
        slice.change(params, now.nanos());
        let after = slice.committed.rate();
        self.set_rates(self.rates - u128::from(before) + u128::from(after));
        let slice = &mut self.slices[index];
        if let Some(queue) = slice.flow_queue()
            && let Some(queue) = self.flow_queues.get_mut(queue)
        {
            queue.set_limit(params.queue_limit);
        }
        self.protect_from_codel(id, protected, self.slices[index].packets);
        let slice = &mut self.slices[index];
        // An eligible frame keeps its deadline, which is already guaranteed.
        if slice.packets > 0 && slice.tier == Tier::Idle {
            self.place_head(id.0, pool, now.nanos());
        }
        Ok(())
    }

    /// Give a slice another weight in the excess, from its next turn on.
    pub(crate) fn set_weight(&mut self, id: SliceId, weight: u32) {
        if let Some(slice) = self.slices.get_mut(id.0 as usize) {
            self.excess.set_slice_weight(slice, weight);
        }
    }

    /// Remove a slice: at once if it is empty, else as soon as its backlog has left, which its maximum no longer delays. O(1).
    ///
    /// # Errors
    /// Where there is no such slice.
    pub fn remove_slice(&mut self, id: SliceId, now: Instant) -> Result<Removal, SliceError> {
        let index = self.live(id)?;
        self.live -= 1;
        let rate = self.slices[index].committed.rate();
        self.set_rates(self.rates - u128::from(rate));
        let packets = self.slices[index].packets;
        if packets == 0 {
            self.forget(id.0);
            return Ok(Removal::Gone);
        }
        let slice = &mut self.slices[index];
        slice.life = Life::Draining;
        slice.end_maximum();
        if slice.excess == Excess::Parked {
            self.place_by_maximum(id.0, 0, now.nanos());
        }
        Ok(Removal::Draining { packets })
    }

    /// Drop the frames of a class that wait in a removed slice, which ends as if the last had left. Where the slice has ended before,
    /// its slot may be that of another by now, with frames of another class: these stay. O(frames).
    pub(crate) fn purge_slice(
        &mut self,
        id: SliceId,
        class: u32,
        pool: &mut FramePool,
        now: Instant,
    ) {
        let slice = self.slices.get(id.0 as usize);
        let slice = slice.filter(|slice| slice.life == Life::Draining && slice.packets > 0);
        let Some(slice) = slice.filter(|slice| pool.class(slice.head) == class) else {
            return;
        };
        if slice.tier == Tier::Eligible {
            self.deadlines.remove(&mut self.slices, id.0);
        }
        let mut dropped = 0;
        while let Some(queued) = self.pop_unserved(id, pool) {
            let slot = pool.try_take(queued);
            debug_assert!(slot.is_some(), "the slot just freed is there");
            slot.iter()
                .for_each(|&slot| pool.discard(slot, DropReason::SliceRemoved));
            dropped += 1;
        }
        self.flow_queues.count_dropped(dropped);
        self.on_emptied(id.0);
        if !self.is_busy(now.nanos()) {
            self.busy_period += 1;
        }
    }

    /// Free the slot of a removed slice.
    pub(super) fn forget(&mut self, id: u32) {
        if let Some(queue) = self.slices[id as usize].flow_queue() {
            self.flow_queues.remove(queue);
        }
        self.marks.forget(id);
        let slice = &mut self.slices[id as usize];
        if slice.committed.exists() {
            self.delays.release(slice.delay);
        }
        slice.life = Life::Free;
        slice.head = self.free;
        self.excess.remove_slice(slice, id);
        self.free = id;
    }

    /// Transfer tokens and debt of slice `from` of `old` to slice `to`.
    pub(crate) fn resume_slice(&mut self, to: SliceId, old: &Self, from: SliceId, now: Instant) {
        if let (Some(slice), Some(old)) = (
            self.slices.get_mut(to.0 as usize),
            old.slices.get(from.0 as usize),
        ) {
            slice.resume_from(old, now.nanos());
        }
        self.resume_flow_queue(to, old, from);
    }

    /// Remove a slice's oldest frame from a scheduler that is being replaced.
    pub(crate) fn pop_unserved(
        &mut self,
        id: SliceId,
        pool: &mut FramePool,
    ) -> Option<QueuedFrame> {
        let slice = self.slices.get(id.0 as usize)?;
        if let Some(index) = slice.flow_queue() {
            return self.pop_unserved_by_flow(id.0, index, pool);
        }
        (slice.packets > 0).then(|| self.pop(id.0, pool, 0))
    }

    /// Put a frame, just taken from another queue, at the end of a slice whatever its limits.
    /// [`place_moved`](Self::place_moved) has to follow.
    pub(crate) fn append(&mut self, id: SliceId, queued: QueuedFrame, pool: &mut FramePool) {
        let slice = self.slices.get(id.0 as usize);
        if let Some(index) = slice.and_then(SliceState::flow_queue) {
            return self.append_by_flow(id.0, index, queued, pool);
        }
        let slot = pool.try_take(queued);
        debug_assert!(slot.is_some(), "the slot just freed is there");
        let (Some(slot), Some(slice)) = (slot, self.slices.get_mut(id.0 as usize)) else {
            return;
        };
        slice.push(slot, queued.lengths().l2_bytes, pool);
        self.backlog += 1;
    }

    /// Schedule a slice that was given frames.
    pub(crate) fn place_moved(&mut self, id: SliceId, pool: &mut FramePool, now: Instant) {
        self.stage_moved(id.0, pool, now);
        let slice = &self.slices[id.0 as usize];
        if slice.packets > 0 {
            self.place_waiting(id.0, pool, now.nanos());
        }
    }
}
