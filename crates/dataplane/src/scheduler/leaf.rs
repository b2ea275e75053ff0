//! Leaves: what frames wait in.

use super::offer::{Head, Offer, QueueId};
use crate::frame::DropReason;
use crate::guaranteed::{Effects, Guaranteed, Selection, SliceId};
use crate::queue::{FifoQueue, FlowQueue, FramePool, QueuedFrame};
use rand_core::Rng;
use slicewise_units::Instant;

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
#[derive(Debug, Clone, Copy)]
pub(super) struct Enqueued {
    /// It is the only one of the leaf.
    pub(super) was_empty: bool,
    /// Another frame may be the next to leave now.
    pub(super) is_new_front: bool,
    /// Frames dropped for it; never all.
    pub(super) dropped: u32,
}

impl Leaf {
    /// Queue a frame.
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
    ) -> Result<Enqueued, DropReason> {
        match self {
            Self::Fifo(queue) => {
                let was_empty = queue.try_enqueue(pool, queued, random)?;
                Ok(Enqueued {
                    was_empty,
                    is_new_front: was_empty,
                    dropped: 0,
                })
            }
            Self::Flows(queue) => {
                let was_empty = queue.packets() == 0;
                Ok(Enqueued {
                    is_new_front: queue.try_enqueue(pool, queued)?,
                    was_empty,
                    dropped: queue.take_dropped(),
                })
            }
            Self::Guaranteed(scheduler) => {
                let was_empty = scheduler.backlog() == 0;
                let slice_was_empty = scheduler.slice_backlog(slice) == 0;
                scheduler.try_enqueue(slice, queued, pool)?;
                let Effects { dropped, restaged } = scheduler.take_effects();
                Ok(Enqueued {
                    was_empty,
                    is_new_front: slice_was_empty || restaged,
                    dropped,
                })
            }
        }
    }

    /// What the leaf offers at `now`, if that takes no look at the clock: the offer of a leaf in order
    /// of arrival is its oldest frame. Else it must be [asked](Self::offer).
    #[inline]
    pub(super) fn known_offer(&self, leaf: u32, priority: bool, pool: &FramePool) -> Offer {
        match self {
            Self::Fifo(queue) => queue.front(pool).map_or(Offer::UNKNOWN, |lengths| {
                Offer::ready(QueueId::of(leaf), lengths, priority)
            }),
            Self::Flows(_) | Self::Guaranteed(_) => Offer::UNKNOWN,
        }
    }

    /// What the leaf at position `leaf`, which has frames, offers at `now`, and how many frames were
    /// dropped to find it.
    pub(super) fn offer(
        &mut self,
        leaf: u32,
        priority: bool,
        pool: &mut FramePool,
        now: Instant,
    ) -> (Offer, u32) {
        match self {
            Self::Fifo(_) => (self.known_offer(leaf, priority, pool), 0),
            Self::Flows(flows) => {
                let offer = flows.stage(pool, now).map_or(Offer::UNKNOWN, |slot| {
                    Offer::ready(QueueId::of(leaf), pool.get(slot).lengths(), priority)
                });
                (offer, flows.take_dropped())
            }
            Self::Guaranteed(scheduler) => {
                let offer = match scheduler.select(pool, now) {
                    Selection::Ready(selected) => {
                        let queue = QueueId::of_slice(leaf, selected.slice);
                        Offer::ready(queue, selected.lengths, selected.guaranteed)
                            .until(selected.changes_at)
                    }
                    Selection::Wait(until) => Offer::wait(until),
                    Selection::Empty => Offer::UNKNOWN,
                };
                (offer, 0)
            }
        }
    }

    /// Take the frame last offered; also returns how many were dropped with it.
    #[inline]
    pub(super) fn take(
        &mut self,
        head: &Head,
        pool: &mut FramePool,
        now: Instant,
    ) -> Option<(QueuedFrame, u32)> {
        match self {
            Self::Fifo(queue) => Some((queue.dequeue(pool, now)?, 0)),
            // It was staged when it was found: nothing is dropped here.
            Self::Flows(queue) => Some((queue.dequeue(pool, now)?, 0)),
            Self::Guaranteed(scheduler) => {
                let queued = scheduler.take(head.queue.slice(), head.priority, pool, now);
                Some((queued, scheduler.take_effects().dropped))
            }
        }
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
    fn pop_unserved(&mut self, slice: SliceId, pool: &mut FramePool) -> Option<QueuedFrame> {
        match self {
            Self::Fifo(queue) => queue.pop_unserved(pool),
            Self::Flows(queue) => queue.pop_unserved(pool),
            Self::Guaranteed(scheduler) => scheduler.pop_unserved(slice, pool),
        }
    }

    /// Put a frame at the end of a queue whatever its limits.
    fn append(&mut self, slice: SliceId, queued: QueuedFrame, pool: &mut FramePool) {
        match self {
            Self::Fifo(queue) => queue.append(queued, pool),
            Self::Flows(queue) => queue.append(queued, pool),
            Self::Guaranteed(scheduler) => scheduler.append(slice, queued, pool),
        }
    }
}
