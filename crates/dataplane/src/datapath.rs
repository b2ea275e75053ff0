//! Data path: classifier, policers, queues and scheduler tree, which frames pass.
//!
//! It knows nothing of changes. A class number may be that of frames that change classes: then it says so, and the
//! [pipeline](crate::Pipeline) has its changes decide.

mod ahead;
mod special;

use crate::build::{Built, ClassState};
use crate::classifier::Classifier;
use crate::elephants::{Arrival, Enqueued};
use crate::frame::{Departure, DropReason, Frame, Verdict};
use crate::meter::policer::PolicerState;
use crate::queue::{FlowHash, FramePool, QueuedFrame};
use crate::slots::Slots;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use slicewise_units::Instant;
use slicewise_wire::Headers;
use special::{Chosen, Parts, choose, condition};
use std::ops::ControlFlow;

/// Most frames in all queues of a pipeline together, whatever their limits: 4 Mi frames,
/// 128 MiB of descriptors. Beyond it frames are dropped as [`DropReason::BufferFull`].
pub(crate) const MAX_BUFFER_FRAMES: u64 = 1 << 22;
/// Frames classified together.
pub(crate) const BURST: usize = 32;
/// Fewer classes than these stay in the processor's caches.
const LARGE: usize = 1 << 13;

/// Everything that frames pass.
#[derive(Debug)]
pub(crate) struct DataPath {
    pub(crate) classifier: Classifier,
    pub(crate) built: Built,
    /// Frames that change classes or queues, and wait beside these.
    pub(crate) aside: u32,
    pub(crate) pool: FramePool,
    flow_hash: FlowHash,
    random: Xoshiro256PlusPlus,
    /// [`Instant::MAX`] for never.
    pub(crate) next_poll: Instant,
    /// The slot behind that of the frame that left last, [`u32::MAX`] without one.
    behind: u32,
}

impl DataPath {
    pub(crate) fn new(classifier: Classifier, built: Built, seed: u64) -> Self {
        Self {
            classifier,
            aside: 0,
            pool: FramePool::with_capacity(buffer_frames(built.capacity)),
            built,
            flow_hash: FlowHash::new(seed),
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            next_poll: Instant::MAX,
            behind: u32::MAX,
        }
    }

    /// Returns whether there are more classes than stay in the processor's caches.
    #[inline]
    pub(crate) fn is_large(&self) -> bool {
        self.built.classes.len() >= LARGE
    }

    /// Returns how many frames wait.
    pub(crate) fn backlog(&self) -> u32 {
        self.built.tree.backlog() + self.aside
    }

    /// Queues a frame of the class `index`, or drops it with one reason. `None` if its class was removed, or is the number of a handover.
    #[inline]
    pub(crate) fn offer(
        &mut self,
        mut frame: Frame,
        headers: &Headers,
        index: u32,
        now: Instant,
        has_memory: &mut impl FnMut(&Frame, u32) -> bool,
    ) -> Option<Verdict> {
        let congested = self.built.tree.backlog() > 0;
        let Some(class) = self.built.classes.get_mut(index as usize) else {
            debug_assert!(false, "the classifier names only classes that exist");
            return Some(Verdict::Dropped(DropReason::BadLength));
        };
        let bytes = u64::from(frame.lengths.l2_bytes);
        class.counters.offered_frames += 1;
        class.counters.offered_bytes += bytes;
        let admitted = Self::admit(class, &mut self.built.policers, &mut frame, congested, now);
        let verdict = admitted.and_then(|()| {
            if !has_memory(&frame, index) {
                return Err(DropReason::BufferFull);
            }
            let own = class.queue;
            let flow = if class.is_by_flow() {
                special::flow_of(
                    class,
                    headers,
                    &frame,
                    now,
                    self.flow_hash,
                    &mut self.built.tree,
                )
            } else {
                0
            };
            let queue = match class.choice_mut() {
                None => own,
                Some(choice) => {
                    let arrival = Arrival {
                        frame: &frame,
                        flow: (headers, self.flow_hash),
                        class: index,
                        now,
                    };
                    let parts = Parts {
                        tree: &mut self.built.tree,
                        pool: &mut self.pool,
                        active_flows: &mut self.built.active_flows,
                        random: &mut self.random,
                    };
                    match choose(choice, own, arrival, flow, parts)? {
                        Chosen::Queue(queue) => queue,
                        Chosen::Enqueued(enqueued) => {
                            self.aside += u32::from(enqueued == Enqueued::Aside);
                            return Ok(enqueued == Enqueued::Front);
                        }
                    }
                }
            };
            let queued = || QueuedFrame::new(&frame, index, now, flow);
            self.built
                .tree
                .try_enqueue(queue, queued, &mut self.pool, &mut self.random)
        });
        match verdict {
            Ok(is_new_front) => {
                class.counters.queued_frames += 1;
                // Behind another frame of its queue it changes neither which frame is next nor when.
                if is_new_front {
                    self.next_poll = self.next_poll.min(now);
                }
                Some(Verdict::Queued)
            }
            Err(DropReason::SliceRemoved) => {
                class.counters.uncount_offered(&frame);
                None
            }
            Err(reason) => {
                class.counters.dropped_frames[reason as usize] += 1;
                Some(Verdict::Dropped(reason))
            }
        }
    }

    /// Have `keep` keep a frame of a class beside its queue, and count it.
    pub(crate) fn keep(
        &mut self,
        class: u32,
        mut frame: Frame,
        headers: &Headers,
        now: Instant,
        keep: impl FnOnce(QueuedFrame, &mut FramePool) -> Result<(), DropReason>,
    ) -> Result<(), DropReason> {
        let congested = self.built.tree.backlog() > 0;
        let Some(state) = self.built.classes.get_mut(class as usize) else {
            return Err(DropReason::BadLength);
        };
        let admitted = Self::admit(state, &mut self.built.policers, &mut frame, congested, now);
        let kept = admitted.and_then(|()| {
            self.built.tree.check_length(state.queue, frame.lengths)?;
            // The queue that it joins may keep flows apart by then, whether it does now or not.
            let flow = if state.is_by_flow() {
                special::flow_of(
                    state,
                    headers,
                    &frame,
                    now,
                    self.flow_hash,
                    &mut self.built.tree,
                )
            } else {
                self.flow_hash.of(headers)
            };
            keep(QueuedFrame::new(&frame, class, now, flow), &mut self.pool)
        });
        match kept {
            Ok(()) => {
                state.counters.count_queued(&frame);
                self.aside += 1;
            }
            Err(reason) => state.counters.count_dropped(&frame, reason),
        }
        kept
    }

    /// Conditions and polices a frame before it reaches a queue.
    #[inline]
    fn admit(
        class: &mut ClassState,
        policers: &mut Slots<(String, PolicerState)>,
        frame: &mut Frame,
        congested: bool,
        now: Instant,
    ) -> Result<(), DropReason> {
        if frame.lengths.l2_bytes == 0 {
            return Err(DropReason::BadLength);
        }
        if let Some(special) = &class.special {
            condition(&special.ingress, policers, frame, now)?;
        }
        if let Some(bucket) = &mut class.priority_police {
            // The bucket always counts, but acts only while others wait, too.
            bucket.refill(now);
            let cost = bucket.cost(frame.lengths);
            let is_covered = bucket.try_spend(cost);
            if congested && !is_covered {
                return Err(DropReason::PriorityExceeded);
            }
        }
        Ok(())
    }

    /// Takes the next frame to send at `now`.
    #[inline(always)]
    pub(crate) fn dequeue(&mut self, now: Instant) -> Option<QueuedFrame> {
        let queued = self
            .built
            .tree
            .dequeue(&mut self.pool, now, self.aside == 0)?;
        count_sent(&mut self.built.classes, &queued);
        self.behind = queued.behind();
        Some(queued)
    }

    /// Hands every frame that may leave at `now` to `send`, until that breaks. None is aside.
    #[inline]
    pub(crate) fn dequeue_each(
        &mut self,
        now: Instant,
        mut send: impl FnMut(Departure) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (Built { tree, classes, .. }, pool) = (&mut self.built, &mut self.pool);
        tree.dequeue_each(pool, now, |queued| {
            count_sent(classes, &queued);
            send(departure(&queued))
        })
    }

    /// A frame has left, and frames of flows that change queues are aside: it may be their turn.
    pub(crate) fn join_elephants(&mut self, now: Instant) {
        for &class in &self.built.with_elephants {
            if let Some(class) = self.built.classes.get_mut(class as usize)
                && let Some(elephants) = class.elephants_mut()
            {
                self.aside -= elephants.join(&mut self.built.tree, &mut self.pool, now);
            }
        }
    }

    /// Returns the handle of the frame behind the one that left last.
    #[inline]
    pub(crate) fn next_handle(&self) -> u64 {
        self.pool.handle(self.behind)
    }

    /// Frames have left at `now`, and others may follow if there are `more`.
    #[inline]
    pub(crate) fn after_departures(&mut self, more: bool, now: Instant) {
        // Frames below a shaper usually have to wait: knowing that now avoids a useless poll when the link becomes
        // free.
        if more && self.built.tree.is_shaped() {
            self.built.tree.settle(&mut self.pool, now);
        }
        self.next_poll = if more && !self.built.tree.is_shaped() && self.built.tree.backlog() > 0 {
            now
        } else {
            self.built.tree.poll_at(now)
        };
        self.count_dropped();
    }

    #[inline]
    pub(crate) fn count_dropped(&mut self) {
        while let Some((class, reason)) = self.pool.count_dropped() {
            if let Some(class) = self.built.classes.get_mut(class as usize) {
                class.counters.queued_frames -= 1;
                class.counters.dropped_frames[reason as usize] += 1;
            }
        }
    }

    /// The queues admit other numbers of frames together.
    pub(crate) fn change_room(&mut self, less: u64, more: u64) {
        self.built.capacity = self.built.capacity.saturating_sub(less) + more;
        // Those that wait may be more than the queues admit from now on.
        let waiting = u64::from(self.backlog());
        self.pool
            .grow_to(buffer_frames(self.built.capacity + waiting));
    }
}

#[inline]
fn count_sent(classes: &mut Slots<ClassState>, queued: &QueuedFrame) {
    if let Some(class) = classes.get_mut(queued.class() as usize) {
        class.counters.queued_frames -= 1;
        class.counters.sent_frames += 1;
        class.counters.sent_bytes += u64::from(queued.lengths().l2_bytes);
        if queued.is_marked() {
            class.counters.marked_frames += 1;
        }
    }
}

#[inline]
pub(crate) const fn departure(queued: &QueuedFrame) -> Departure {
    Departure {
        frame: queued.frame(),
        class: queued.class(),
        queued_at: queued.arrival(),
    }
}

pub(crate) fn buffer_frames(capacity: u64) -> u32 {
    u32::try_from(capacity.min(MAX_BUFFER_FRAMES)).unwrap_or(u32::MAX)
}
