//! Leaves: what frames wait in.

use super::offer::{Head, Offer};
use crate::frame::DropReason;
use crate::guaranteed::{Effects, Guaranteed, Selection, SliceId};
use crate::queue::{FifoQueue, FlowQueue, FramePool, QueuedFrame};
use rand_core::Rng;
use slicewise_units::{FrameLengths, Instant};

/// A leaf of the tree.
#[derive(Debug)]
pub enum Leaf {
    /// Frames in order of arrival.
    Fifo(FifoQueue),
    /// One queue per flow, and `CoDel`.
    Flows(Box<FlowQueue>),
    /// Slices with a queue each, by deadline and by weight.
    Guaranteed(Box<Guaranteed>),
}

/// What a frame that was queued has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Enqueued {
    /// It is behind others: the leaf offers what it did.
    Behind,
    /// Another frame may be the next to leave now.
    NewFront,
    /// It is the only one of the leaf.
    First,
}

impl Leaf {
    /// Queue a frame, and count it in `backlog`. Others may be dropped for it, but never all.
    ///
    /// # Errors
    /// The reason to drop the frame.
    #[inline]
    pub(super) fn try_enqueue(
        &mut self,
        slice: SliceId,
        queued: QueuedFrame,
        pool: &mut FramePool,
        random: &mut impl Rng,
        backlog: &mut u32,
    ) -> Result<Enqueued, DropReason> {
        let (was_empty, is_new_front) = match self {
            Self::Fifo(queue) => {
                let was_empty = queue.try_enqueue(pool, queued, random)?;
                (was_empty, false)
            }
            Self::Flows(queue) => {
                let was_empty = queue.packets() == 0;
                let is_new_front = queue.try_enqueue(pool, queued)?;
                *backlog -= queue.take_dropped();
                (was_empty, is_new_front)
            }
            Self::Guaranteed(scheduler) => {
                let was_empty = scheduler.backlog() == 0;
                let slice_was_empty = scheduler.slice_backlog(slice) == 0;
                scheduler.try_enqueue(slice, queued, pool)?;
                let Effects { dropped, restaged } = scheduler.take_effects();
                *backlog -= dropped;
                (was_empty, slice_was_empty || restaged)
            }
        };
        *backlog += 1;
        Ok(if was_empty {
            Enqueued::First
        } else if is_new_front {
            Enqueued::NewFront
        } else {
            Enqueued::Behind
        })
    }

    /// The head of a leaf in order of arrival: what it offers at any time. Other leaves must be
    /// [asked](Self::offer).
    #[inline]
    pub(super) fn front(&self, pool: &FramePool) -> Option<FrameLengths> {
        match self {
            Self::Fifo(queue) => queue.front(pool),
            Self::Flows(_) | Self::Guaranteed(_) => None,
        }
    }

    /// What the leaf at position `leaf`, which has frames, offers at `now`; its frame is written to
    /// `head`. Frames that are dropped to find it are no longer counted in `backlog`.
    pub(super) fn offer(
        &mut self,
        leaf: u32,
        head: &mut Head,
        pool: &mut FramePool,
        now: Instant,
        backlog: &mut u32,
    ) -> Offer {
        let lengths = match self {
            Self::Fifo(queue) => queue.front(pool),
            Self::Flows(flows) => {
                let slot = flows.stage(pool, now);
                *backlog -= flows.take_dropped();
                slot.map(|slot| pool.get(slot).lengths())
            }
            Self::Guaranteed(scheduler) => match scheduler.select(pool, now) {
                Selection::Ready(selected) => {
                    *head = Head {
                        slice: selected.slice,
                        lengths: selected.lengths,
                        priority: selected.guaranteed,
                    };
                    return Offer::ready(leaf).until(selected.changes_at);
                }
                Selection::Wait(until) => return Offer::wait(until),
                Selection::Empty => None,
            },
        };
        match lengths {
            Some(lengths) => {
                head.lengths = lengths;
                Offer::ready(leaf)
            }
            None => Offer::UNKNOWN,
        }
    }

    /// Take the frame last offered, no longer counted in `backlog`; others may be dropped with it, but
    /// never all.
    #[inline]
    pub(super) fn take(
        &mut self,
        head: &Head,
        pool: &mut FramePool,
        now: Instant,
        backlog: &mut u32,
    ) -> Option<QueuedFrame> {
        let queued = match self {
            Self::Fifo(queue) => queue.dequeue(pool, now)?,
            // It was staged when it was found: nothing is dropped here.
            Self::Flows(queue) => queue.dequeue(pool, now)?,
            Self::Guaranteed(scheduler) => {
                let queued = scheduler.take(head.slice, head.priority, pool, now);
                *backlog -= scheduler.take_effects().dropped;
                queued
            }
        };
        *backlog -= 1;
        Some(queued)
    }

    /// True where no frame waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Fifo(queue) => queue.packets() == 0,
            Self::Flows(queue) => queue.packets() == 0,
            Self::Guaranteed(scheduler) => scheduler.backlog() == 0,
        }
    }

    /// Frames waiting in one queue.
    pub(super) fn packets(&self, slice: SliceId) -> u32 {
        match self {
            Self::Fifo(queue) => queue.packets(),
            Self::Flows(queue) => queue.packets(),
            Self::Guaranteed(scheduler) => scheduler.slice_backlog(slice),
        }
    }

    /// Move the frames of a queue of `old`, which is being replaced, to the end of a queue of this
    /// leaf, renaming their classes; the RED average and the `CoDel` state are kept. Limits do not
    /// apply: nothing queued is lost. Returns how many were moved.
    pub(crate) fn take_over(
        &mut self,
        slice: SliceId,
        old: (&mut Self, SliceId),
        pool: &mut FramePool,
        rename: impl Fn(u32) -> u32,
        now: Instant,
    ) -> u32 {
        let (old, old_slice) = old;
        match (&mut *self, &mut *old) {
            (Self::Fifo(queue), Self::Fifo(old)) => queue.resume_from(old),
            (Self::Flows(queue), Self::Flows(old)) => queue.resume_from(old),
            _ => {}
        }
        let mut moved = 0;
        while let Some(mut queued) = old.pop_unserved(old_slice, pool) {
            queued.set_class(rename(queued.class()));
            self.append(slice, queued, pool);
            moved += 1;
        }
        if let Self::Guaranteed(scheduler) = self {
            scheduler.place_moved(slice, pool, now);
        }
        moved
    }

    /// Remove the oldest frame of a queue that is being replaced.
    pub(super) fn pop_unserved(
        &mut self,
        slice: SliceId,
        pool: &mut FramePool,
    ) -> Option<QueuedFrame> {
        match self {
            Self::Fifo(queue) => queue.pop_unserved(pool),
            Self::Flows(queue) => queue.pop_unserved(pool),
            Self::Guaranteed(scheduler) => scheduler.pop_unserved(slice, pool),
        }
    }

    /// Put a frame at the end of a queue whatever its limits.
    pub(super) fn append(&mut self, slice: SliceId, queued: QueuedFrame, pool: &mut FramePool) {
        match self {
            Self::Fifo(queue) => queue.append(queued, pool),
            Self::Flows(queue) => queue.append(queued, pool),
            Self::Guaranteed(scheduler) => scheduler.append(slice, queued, pool),
        }
    }
}
