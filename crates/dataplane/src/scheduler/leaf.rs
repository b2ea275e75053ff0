//! Leaves: what frames wait in.

use super::offer::{Head, Offer};
use super::place::{NONE, Place};
use crate::frame::DropReason;
use crate::guaranteed::{Effects, Guaranteed, Selection, SliceId};
use crate::hqos::{Hqos, HqosOffer, HqosPlace};
use crate::queue::{FifoQueue, FlowQueue, FramePool, QueuedFrame};
use rand_core::Rng;
use slicewise_model::QueueParams;
use slicewise_units::{FrameLengths, Instant};

/// A leaf of the tree.
#[derive(Debug)]
#[repr(u8)]
pub enum Leaf {
    /// Frames in order of arrival.
    Fifo(FifoQueue),
    /// One queue per flow, or one whose manager judges frames about to leave.
    Flows(Box<FlowQueue>),
    /// Slices with a queue each, by deadline and by weight.
    Guaranteed(Box<Guaranteed>),
    /// DPDK's hierarchy; a slice is the place of a frame.
    Hqos(Box<Hqos>),
}

impl Enqueued {
    const fn new(was_empty: bool, is_new_front: bool) -> Self {
        if was_empty {
            Self::First
        } else if is_new_front {
            Self::NewFront
        } else {
            Self::Behind
        }
    }
}

/// A leaf in its tree.
#[derive(Debug)]
pub(super) struct LeafNode {
    pub(super) leaf: Leaf,
    pub(super) place: Place,
    /// The frame last offered; of one in order of arrival without its lengths.
    head: Head,
}

impl LeafNode {
    pub(super) const fn new(leaf: Leaf, priority: bool) -> Self {
        Self {
            leaf,
            place: Place::ROOT,
            head: Head {
                slice: SliceId::new(NONE),
                lengths: FrameLengths::NONE,
                priority,
            },
        }
    }

    /// The frame that it offers.
    #[inline]
    pub(super) fn head(&self, pool: &FramePool) -> Head {
        match &self.leaf {
            Leaf::Fifo(queue) => Head {
                lengths: queue.front(pool).unwrap_or(FrameLengths::NONE),
                ..self.head
            },
            Leaf::Flows(_) | Leaf::Guaranteed(_) | Leaf::Hqos(_) => self.head,
        }
    }

    /// Returns its offer at `now`, having frames; `leaf` is its position. Frames that are dropped to find it are no
    /// longer counted in `backlog`.
    pub(super) fn offer(
        &mut self,
        leaf: u32,
        pool: &mut FramePool,
        now: Instant,
        backlog: &mut u32,
    ) -> Offer {
        match &mut self.leaf {
            Leaf::Fifo(queue) if queue.packets() > 0 => Offer::ready(leaf),
            Leaf::Fifo(_) => Offer::UNKNOWN,
            Leaf::Flows(flows) => {
                let slot = flows.stage(pool, now);
                *backlog -= flows.take_dropped();
                slot.map_or(Offer::UNKNOWN, |slot| {
                    self.head.lengths = pool.get(slot).lengths();
                    Offer::ready(leaf)
                })
            }
            Leaf::Guaranteed(scheduler) => match scheduler.select(pool, now) {
                Selection::Ready(selected) => {
                    self.head = Head {
                        slice: selected.slice,
                        lengths: selected.lengths,
                        priority: selected.guaranteed,
                    };
                    Offer::ready(leaf).until(selected.changes_at)
                }
                Selection::Wait(until) => Offer::wait(until),
                Selection::Empty => Offer::UNKNOWN,
            },
            Leaf::Hqos(scheduler) => match scheduler.select(pool, now) {
                HqosOffer::Ready(lengths) => {
                    self.head.lengths = lengths;
                    Offer::ready(leaf)
                }
                HqosOffer::Wait(until) => Offer::wait(until),
                HqosOffer::Empty => Offer::UNKNOWN,
            },
        }
    }

    /// Take the frame last offered, no longer counted in `backlog`; others may be dropped with it, but
    /// never all.
    #[inline(never)]
    pub(super) fn take(
        &mut self,
        pool: &mut FramePool,
        now: Instant,
        backlog: &mut u32,
    ) -> Option<QueuedFrame> {
        *backlog -= 1;
        match &mut self.leaf {
            Leaf::Fifo(queue) => queue.dequeue(pool, now),
            // It was staged when it was found: nothing is dropped here.
            Leaf::Flows(queue) => queue.dequeue(pool, now),
            Leaf::Guaranteed(scheduler) => {
                let Head {
                    slice, priority, ..
                } = self.head;
                let queued = scheduler.take(slice, priority, pool, now);
                *backlog -= scheduler.take_effects().dropped;
                Some(queued)
            }
            Leaf::Hqos(scheduler) => scheduler.take(),
        }
    }
}

/// Effect of a frame that was queued.
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
    /// The leaf that a queue is.
    #[must_use]
    pub fn of_queue(params: &QueueParams) -> Self {
        FifoQueue::new(params)
            .map_or_else(|| Self::Flows(Box::new(FlowQueue::new(params))), Self::Fifo)
    }

    /// Queue the frame that `queued` makes, and count it in `backlog`. Others may be dropped for it, but never all.
    ///
    /// # Errors
    /// The reason to drop the frame.
    #[inline]
    pub(super) fn try_enqueue(
        &mut self,
        slice: SliceId,
        queued: impl FnOnce() -> QueuedFrame,
        pool: &mut FramePool,
        random: &mut impl Rng,
        backlog: &mut u32,
    ) -> Result<Enqueued, DropReason> {
        // Made in each arm, so that in the first it is written to its slot at once.
        let enqueued = match self {
            Self::Fifo(queue) => {
                if queue.try_enqueue(pool, queued(), random)? {
                    Enqueued::First
                } else {
                    Enqueued::Behind
                }
            }
            Self::Flows(queue) => enqueue_by_flow(queue, queued(), pool, random, backlog)?,
            Self::Guaranteed(scheduler) => {
                enqueue_by_slice(scheduler, slice, queued(), pool, backlog)?
            }
            Self::Hqos(scheduler) => enqueue_by_place(scheduler, slice, queued(), pool)?,
        };
        *backlog += 1;
        Ok(enqueued)
    }

    /// True where no frame waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Fifo(queue) => queue.packets() == 0,
            Self::Flows(queue) => queue.packets() == 0,
            Self::Guaranteed(scheduler) => scheduler.backlog() == 0,
            Self::Hqos(scheduler) => scheduler.backlog() == 0,
        }
    }

    /// Frames waiting in one queue.
    pub(super) fn packets(&self, slice: SliceId) -> u32 {
        match self {
            Self::Fifo(queue) => queue.packets(),
            Self::Flows(queue) => queue.packets(),
            Self::Guaranteed(scheduler) => scheduler.slice_backlog(slice),
            Self::Hqos(scheduler) => scheduler.backlog(),
        }
    }

    /// Move the frames of a queue of `old`, which is being replaced, to the end of a queue of this
    /// leaf, renaming their classes; the state of the queue manager is kept. Limits do not
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
            (Self::Hqos(scheduler), Self::Hqos(old)) => {
                return scheduler.take_over(old, pool, rename, now);
            }
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
            Self::Hqos(scheduler) => scheduler.pop_unserved(pool),
        }
    }

    /// Put a frame at the end of a queue whatever its limits.
    pub(super) fn append(&mut self, slice: SliceId, queued: QueuedFrame, pool: &mut FramePool) {
        match self {
            Self::Fifo(queue) => queue.append(queued, pool),
            Self::Flows(queue) => queue.append(queued, pool),
            Self::Guaranteed(scheduler) => scheduler.append(slice, queued, pool),
            Self::Hqos(scheduler) => scheduler.append(place(slice), queued, pool),
        }
    }
}

#[inline(never)]
fn enqueue_by_flow(
    queue: &mut FlowQueue,
    mut queued: QueuedFrame,
    pool: &mut FramePool,
    random: &mut impl Rng,
    backlog: &mut u32,
) -> Result<Enqueued, DropReason> {
    queue.admit(&mut queued, random)?;
    let was_empty = queue.packets() == 0;
    let is_new_front = queue.try_enqueue(pool, queued)?;
    *backlog -= queue.take_dropped();
    Ok(Enqueued::new(was_empty, is_new_front))
}

#[inline(never)]
fn enqueue_by_slice(
    scheduler: &mut Guaranteed,
    slice: SliceId,
    queued: QueuedFrame,
    pool: &mut FramePool,
    backlog: &mut u32,
) -> Result<Enqueued, DropReason> {
    let was_empty = scheduler.backlog() == 0;
    let slice_was_empty = scheduler.slice_backlog(slice) == 0;
    scheduler.try_enqueue(slice, queued, pool)?;
    let Effects { dropped, restaged } = scheduler.take_effects();
    *backlog -= dropped;
    Ok(Enqueued::new(was_empty, slice_was_empty || restaged))
}

#[inline(never)]
fn enqueue_by_place(
    scheduler: &mut Hqos,
    slice: SliceId,
    queued: QueuedFrame,
    pool: &mut FramePool,
) -> Result<Enqueued, DropReason> {
    let was_empty = scheduler.backlog() == 0;
    let is_first = scheduler.try_enqueue(place(slice), queued, pool)?;
    Ok(Enqueued::new(was_empty, is_first))
}

/// The place that a slice of a hierarchy is.
const fn place(slice: SliceId) -> HqosPlace {
    HqosPlace::unpacked(slice.index())
}
