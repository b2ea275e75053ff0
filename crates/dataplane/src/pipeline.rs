//! The pipeline: classifier, policers, queues and scheduler tree behind three calls.

mod ahead;
mod figures;
mod slices;
mod special;

use crate::active_flows::ActiveFlows;
use crate::build::{self, BuildError, Built, ClassState, CreditNodes, PipelineParams};
use crate::change::slice::{self, Arrived, Arriving};
use crate::change::{self, Basis, Change, Ledger, Prepared, Replaced, Stale};
use crate::classifier::Classifier;
use crate::counters::ClassCounters;
use crate::elephants::{Arrival, Enqueued};
use crate::frame::{Departure, DropReason, Dropped, Frame, FrameOwner, Verdict};
use crate::guaranteed::READ_AHEAD;
use crate::meter::policer::PolicerState;
use crate::queue::{FlowHash, FramePool, QueuedFrame};
use crate::scheduler::{QueueId, Tree};
use crate::slots::Slots;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use slicewise_units::Instant;
use slicewise_wire::Headers;
use special::{Chosen, Parts, choose, condition};
use std::collections::{BTreeMap, LinkedList};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Most frames in all queues of a pipeline together, whatever their limits: 4 Mi frames,
/// 128 MiB of descriptors. Beyond it frames are dropped as [`DropReason::BufferFull`].
pub(crate) const MAX_BUFFER_FRAMES: u64 = 1 << 22;
/// Frames classified together.
const BURST: usize = 32;
/// Fewer classes than these stay in the processor's caches.
const LARGE: usize = 1 << 13;

/// A data plane for one egress port.
///
/// Drive it with three calls and a clock of your own: [`on_frame`](Self::on_frame) when a frame
/// arrives, [`poll_egress`](Self::poll_egress) when the port can send, and
/// [`poll_at`](Self::poll_at) to know when to poll next; or with [`enqueue_burst`](Self::enqueue_burst) and
/// [`dequeue_burst`](Self::dequeue_burst) where frames arrive and leave by the dozen. Time must not go backwards. If the policy has
/// flow queues, [`poll_dropped`](Self::poll_dropped) returns the frames they dropped.
#[derive(Debug)]
pub struct Pipeline {
    /// Without the classes of a guaranteed policy, which `ledger` keeps.
    pub(crate) params: Arc<PipelineParams>,
    /// Changes committed so far.
    pub(crate) version: u64,
    /// What changes of single slices need, in a guaranteed policy.
    pub(crate) ledger: Option<Box<Ledger>>,
    pub(crate) classifier: Classifier,
    pub(crate) classes: Slots<ClassState>,
    /// Counters of slices that were removed one by one, until they are read. A list, because growing moves nothing.
    #[expect(clippy::linkedlist, reason = "a change takes a bounded time")]
    pub(crate) removed: LinkedList<ClassCounters>,
    /// Classes that a change of the whole policy removed while frames of them wait, by name.
    pub(crate) retired: BTreeMap<String, u32>,
    pub(crate) policers: Slots<(String, PolicerState)>,
    pub(crate) tree: Tree,
    pub(crate) credits: CreditNodes,
    /// The named queues, by their path.
    pub(crate) named: BTreeMap<String, QueueId>,
    /// Where weights are multiplied by them.
    pub(crate) active_flows: ActiveFlows,
    /// Where frames wait that a change took out of their queues.
    pub(crate) drain: Option<QueueId>,
    /// Frames of flows that change queues, which wait beside these: see [`elephants`](crate::elephants).
    pub(crate) aside: u32,
    /// A class waits in a hierarchy.
    pub(crate) has_places: bool,
    /// The classes that move elephants.
    pub(crate) with_elephants: Box<[u32]>,
    pub(crate) pool: FramePool,
    /// Frames that the limits of all queues admit together.
    pub(crate) room: u64,
    pub(crate) flow_hash: FlowHash,
    pub(crate) random: Xoshiro256PlusPlus,
    /// [`Instant::MAX`] for never.
    pub(crate) next_poll: Instant,
    /// The slot behind that of the frame that left last, [`u32::MAX`] without one.
    behind: u32,
}

impl Pipeline {
    /// A pipeline whose token buckets are full at `now`.
    ///
    /// # Errors
    /// If the policy is valid but exceeds a limit of the implementation.
    pub fn new(params: &PipelineParams, now: Instant) -> Result<Self, BuildError> {
        let mut built = build::build_policy(&params.policy, params.seed, now)?;
        build::add_port_shaper(&mut built, params.port_shaper.as_ref(), now);
        let Built {
            classes,
            policers,
            tree,
            credits,
            named,
            active_flows,
            capacity,
            with_elephants,
            has_places,
        } = built;
        let (classifier, seed) = (Classifier::new(&params.policy), params.seed);
        let mut params = params.clone();
        Ok(Self {
            ledger: change::ledger_of(&mut params.policy, &classes),
            params: Arc::new(params),
            version: 0,
            classifier,
            classes,
            removed: LinkedList::new(),
            retired: BTreeMap::new(),
            policers,
            tree,
            credits,
            named,
            active_flows,
            drain: None,
            aside: 0,
            has_places,
            with_elephants,
            pool: FramePool::with_capacity(buffer_frames(capacity)),
            room: capacity,
            flow_hash: FlowHash::new(seed),
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            next_poll: Instant::MAX,
            behind: u32::MAX,
        })
    }

    /// Reserve memory for as many frames as a pipeline can hold, 128 MiB, which is touched only as it is first used. So none is
    /// moved when slices or policies with longer queues come, which takes milliseconds otherwise.
    pub fn reserve(&mut self) {
        self.pool.reserve(buffer_frames(u64::MAX));
    }

    /// Classify, meter, and queue `frame`, or drop it with one reason.
    ///
    /// O(1), but for class maps that do not compile into tables (`docs/mechanisms/classifier.md`).
    #[inline]
    pub fn on_frame(&mut self, frame: Frame, headers: &Headers, now: Instant) -> Verdict {
        let class = self.classifier.classify(headers);
        self.on_classified_frame(frame, headers, class, now, true)
    }

    /// [`on_frame`](Self::on_frame) for a frame whose `class` the [classifier](Self::classifier) has found, in a device whose
    /// buffer may hold less than all queues together. If the buffer has no room (`has_room` is false), a frame that would be queued
    /// is dropped as [`DropReason::BufferFull`].
    #[inline]
    pub fn on_classified_frame(
        &mut self,
        frame: Frame,
        headers: &Headers,
        class: u32,
        now: Instant,
        has_room: bool,
    ) -> Verdict {
        // Moved: in a register.
        let verdict = self.offer(frame, headers, class, now, move |_, _| has_room);
        self.count_dropped();
        verdict
    }

    /// [`on_frame`](Self::on_frame) and [`poll_dropped`](Self::poll_dropped) for each of some frames that have arrived
    /// together, with its headers at the same position: their outcome is the same, and classification is faster.
    /// What is dropped goes back to `owner`.
    #[inline]
    pub fn enqueue_burst(
        &mut self,
        frames: &[Frame],
        headers: &[Headers],
        now: Instant,
        owner: &mut impl FrameOwner,
    ) {
        debug_assert_eq!(frames.len(), headers.len(), "each frame has its headers");
        let mut classes = [0; BURST];
        for (frames, headers) in frames.chunks(BURST).zip(headers.chunks(BURST)) {
            self.classifier.classify_burst(headers, &mut classes);
            if self.classes.len() >= LARGE || self.has_places {
                self.arrivals_ahead(&classes[..headers.len()], headers);
            }
            for ((frame, headers), &class) in frames.iter().zip(headers).zip(&classes) {
                let held = |frame: &Frame, class| owner.try_hold(frame, class);
                if let Verdict::Dropped(reason) = self.offer(*frame, headers, class, now, held) {
                    owner.on_dropped(frame, reason);
                }
                if self.pool.has_dropped() {
                    self.hand_back(owner);
                }
            }
        }
    }

    /// Count queued frames that were dropped, and return them to their owner.
    #[cold]
    fn hand_back(&mut self, owner: &mut impl FrameOwner) {
        self.count_dropped();
        while let Some(dropped) = self.poll_dropped() {
            owner.on_dropped(&dropped.frame, dropped.reason);
        }
    }

    #[inline]
    fn offer(
        &mut self,
        mut frame: Frame,
        headers: &Headers,
        index: u32,
        now: Instant,
        mut has_memory: impl FnMut(&Frame, u32) -> bool,
    ) -> Verdict {
        let congested = self.tree.backlog() > 0;
        let Some(class) = self.classes.get_mut(index as usize) else {
            debug_assert!(false, "the classifier names only classes that exist");
            return Verdict::Dropped(DropReason::BadLength);
        };
        let bytes = u64::from(frame.lengths.l2_bytes);
        class.counters.offered_frames += 1;
        class.counters.offered_bytes += bytes;
        let admitted = Self::admit(class, &mut self.policers, &mut frame, congested, now);
        let verdict = admitted.and_then(|()| {
            if !has_memory(&frame, index) {
                return Err(DropReason::BufferFull);
            }
            let own = class.queue;
            let flow = if class.is_by_flow() {
                special::flow_of(class, headers, &frame, now, self.flow_hash, &mut self.tree)
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
                        tree: &mut self.tree,
                        pool: &mut self.pool,
                        active_flows: &mut self.active_flows,
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
            self.tree
                .try_enqueue(queue, queued, &mut self.pool, &mut self.random)
        });
        match verdict {
            Ok(is_new_front) => {
                class.counters.queued_frames += 1;
                // Behind another frame of its queue it changes neither which frame is next nor when.
                if is_new_front {
                    self.next_poll = self.next_poll.min(now);
                }
                Verdict::Queued
            }
            Err(reason) => {
                class.counters.dropped_frames[reason as usize] += 1;
                if reason == DropReason::SliceRemoved {
                    return self.on_moving(index, frame, headers, now, &mut has_memory);
                }
                Verdict::Dropped(reason)
            }
        }
    }

    /// A frame of a class has left, and frames are aside: it may be their turn to join a queue.
    #[cold]
    fn join_aside(&mut self, class: u32, now: Instant) {
        // The last of the class may have been dropped when this one left.
        self.count_dropped();
        slice::on_departure(self, class, now);
        for &class in &self.with_elephants {
            if let Some(class) = self.classes.get_mut(class as usize)
                && let Some(elephants) = class.elephants_mut()
            {
                self.aside -= elephants.join(&mut self.tree, &mut self.pool, now);
            }
        }
    }

    /// A frame counts as dropped because its class was removed, or is on its way to another. Mostly it was not dropped
    /// after all: it waits beside the queue of that, or belongs to it already.
    #[cold]
    fn on_moving(
        &mut self,
        class: u32,
        frame: Frame,
        headers: &Headers,
        now: Instant,
        has_memory: &mut dyn FnMut(&Frame, u32) -> bool,
    ) -> Verdict {
        let reason = DropReason::SliceRemoved;
        // If the class ends now, its counters are final.
        if let Some(state) = self.classes.get_mut(class as usize) {
            state.counters.uncount_dropped(&frame, reason);
        }
        let arriving = Arriving {
            class,
            frame,
            headers,
        };
        match slice::on_moving(self, arriving, now, has_memory) {
            Arrived::Held => Verdict::Queued,
            Arrived::Dropped(reason) => Verdict::Dropped(reason),
            Arrived::Of(class) => self.offer(frame, headers, class, now, has_memory),
            Arrived::Removed => {
                // What a slice has lost has a class number without a name: class-default counts for it.
                let state = self.classes.get(class as usize);
                let is_unnamed = state.is_none_or(ClassState::is_unused);
                let default = self.ledger.as_ref().map(|ledger| ledger.default);
                let class = default.filter(|_| is_unnamed).unwrap_or(class);
                if let Some(state) = self.classes.get_mut(class as usize) {
                    state.counters.count_dropped(&frame, reason);
                }
                Verdict::Dropped(reason)
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
        let congested = self.tree.backlog() > 0;
        let Some(state) = self.classes.get_mut(class as usize) else {
            return Err(DropReason::BadLength);
        };
        let admitted = Self::admit(state, &mut self.policers, &mut frame, congested, now);
        let kept = admitted.and_then(|()| {
            self.tree.check_length(state.queue, frame.lengths)?;
            // The queue that it joins may keep flows apart by then, whether it does now or not.
            let flow = if state.is_by_flow() {
                special::flow_of(state, headers, &frame, now, self.flow_hash, &mut self.tree)
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

    /// What happens to a frame before it reaches a queue.
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

    /// The next frame to send at `now`, if one may leave; call again while there is one.
    ///
    /// O(depth of the policy), and O(classes) in a policy with guaranteed minimums.
    #[inline]
    pub fn poll_egress(&mut self, now: Instant) -> Option<Frame> {
        self.poll_departure(now).map(|departure| departure.frame)
    }

    /// [`poll_egress`](Self::poll_egress), with the queue and arrival time of the frame.
    #[inline]
    pub fn poll_departure(&mut self, now: Instant) -> Option<Departure> {
        let departure = self.next_departure(now);
        self.after_departures(departure.is_some(), now);
        departure
    }

    /// [`poll_departure`](Self::poll_departure) again and again: hands every frame that may leave at `now` to `send`,
    /// until that breaks. Returns what `send` answered last.
    #[inline]
    pub fn dequeue_burst(
        &mut self,
        now: Instant,
        mut send: impl FnMut(Departure) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let ended = if self.classes.len() >= LARGE || self.aside > 0 {
            self.dequeue_ahead(now, send)
        } else {
            let Self {
                tree,
                pool,
                classes,
                ..
            } = self;
            tree.dequeue_each(pool, now, |queued| {
                count_sent(classes, &queued);
                send(departure(&queued))
            })
        };
        self.after_departures(ended.is_break(), now);
        ended
    }

    /// [`dequeue_burst`](Self::dequeue_burst) for more classes than the processor's caches hold, or where frames are aside.
    #[inline(never)]
    fn dequeue_ahead(
        &mut self,
        now: Instant,
        mut send: impl FnMut(Departure) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        loop {
            self.departures_ahead(now);
            for _ in 0..READ_AHEAD {
                let Some(departure) = self.next_departure(now) else {
                    return ControlFlow::Continue(());
                };
                send(departure)?;
            }
        }
    }

    #[inline(always)]
    fn next_departure(&mut self, now: Instant) -> Option<Departure> {
        let queued = self.tree.dequeue(&mut self.pool, now, self.aside == 0)?;
        count_sent(&mut self.classes, &queued);
        self.behind = queued.behind();
        if self.aside > 0 {
            self.join_aside(queued.class(), now);
        }
        Some(departure(&queued))
    }

    /// The handle of the frame that was behind the one that [`poll_egress`](Self::poll_egress) returned last, in the same
    /// queue: what belongs to it will soon be needed. Only a hint; [`u64::MAX`] without one.
    #[inline]
    #[must_use]
    pub fn next_handle(&self) -> u64 {
        self.pool.handle(self.behind)
    }

    /// Frames have left at `now`, and others may follow if there are `more`.
    #[inline]
    fn after_departures(&mut self, more: bool, now: Instant) {
        // Frames below a shaper usually have to wait: knowing that now avoids a useless poll when the link becomes
        // free.
        if more && self.tree.is_shaped() {
            self.tree.settle(&mut self.pool, now);
        }
        self.next_poll = if more && !self.tree.is_shaped() && self.tree.backlog() > 0 {
            now
        } else {
            self.tree.poll_at(now)
        };
        self.count_dropped();
    }

    /// Whether [`poll_dropped`](Self::poll_dropped) returns a frame.
    #[inline]
    #[must_use]
    pub const fn has_dropped(&self) -> bool {
        self.pool.has_dropped()
    }

    /// A frame dropped after it was queued: its handle returns to the caller, and it is counted. If a
    /// policy has flow queues, call this until it returns `None`, after [`on_frame`](Self::on_frame),
    /// [`poll_egress`](Self::poll_egress), and changes: such frames occupy the frame memory until then.
    #[inline]
    pub fn poll_dropped(&mut self) -> Option<Dropped> {
        self.pool.poll_dropped()
    }

    #[inline]
    pub(crate) fn count_dropped(&mut self) {
        while let Some((class, reason)) = self.pool.count_dropped() {
            if let Some(class) = self.classes.get_mut(class as usize) {
                class.counters.queued_frames -= 1;
                class.counters.dropped_frames[reason as usize] += 1;
            }
        }
    }

    /// When to poll next; `None` while nothing waits. Early calls are harmless; late calls cost
    /// delay.
    #[must_use]
    pub const fn poll_at(&self) -> Option<Instant> {
        if self.next_poll.nanos() == Instant::MAX.nanos() {
            None
        } else {
            Some(self.next_poll)
        }
    }

    /// What the pipeline runs: the base for [preparing](Basis::prepare) a change, on this thread or
    /// another.
    #[must_use]
    pub fn basis(&self) -> Basis {
        Basis {
            params: Arc::clone(&self.params),
            slices: self.ledger.as_ref().map(|ledger| ledger.slices.clone()),
            version: self.version,
        }
    }

    /// Put a change in force while frames wait: nothing queued is lost, reordered or reset.
    /// O(classes + frames waiting).
    ///
    /// # Errors
    /// If another change was committed after this one was prepared; nothing is changed then.
    pub fn commit(&mut self, prepared: Prepared, now: Instant) -> Result<Replaced, Stale> {
        if prepared.version() != self.version {
            return Err(Stale);
        }
        Ok(change::commit(self, prepared, now))
    }

    /// Changes so far, of whole policies and of single slices; [`Basis::version`] is that of a basis.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Prepare and commit a change.
    ///
    /// # Errors
    /// If the new configuration cannot be built; the old one then stays active.
    pub fn apply(&mut self, change: Change, now: Instant) -> Result<Replaced, BuildError> {
        let prepared = self.basis().prepare(change, now)?;
        // Nothing came in between.
        Ok(change::commit(self, prepared, now))
    }

    /// The queues admit other numbers of frames together.
    pub(crate) fn change_room(&mut self, less: u64, more: u64) {
        self.room = self.room.saturating_sub(less) + more;
        // Those that wait may be more than the queues admit from now on.
        let waiting = u64::from(self.backlog());
        self.pool.grow_to(buffer_frames(self.room + waiting));
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
const fn departure(queued: &QueuedFrame) -> Departure {
    Departure {
        frame: queued.frame(),
        class: queued.class(),
        queued_at: queued.arrival(),
    }
}

pub(crate) fn buffer_frames(capacity: u64) -> u32 {
    u32::try_from(capacity.min(MAX_BUFFER_FRAMES)).unwrap_or(u32::MAX)
}
