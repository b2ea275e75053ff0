//! The pipeline: a data path and its changes behind a few calls.

mod figures;
mod slices;

use crate::build::{self, BuildError, ClassState, PipelineParams};
use crate::change::slice::{Arrived, Arriving};
use crate::change::{self, Basis, Change, Prepared, Reconfigurator, Replaced, Stale};
use crate::classifier::Classifier;
use crate::datapath::{BURST, DataPath, buffer_frames, departure};
use crate::frame::{Departure, DropReason, Dropped, Frame, FrameOwner, Verdict};
use crate::guaranteed::READ_AHEAD;
use slicewise_units::Instant;
use slicewise_wire::Headers;
use std::ops::ControlFlow;

/// A data plane for one egress port.
///
/// Drive it with three calls and a clock of your own: [`on_frame`](Self::on_frame) when a frame
/// arrives, [`poll_egress`](Self::poll_egress) when the port can send, and
/// [`poll_at`](Self::poll_at) to know when to poll next; or with [`enqueue_burst`](Self::enqueue_burst) and
/// [`dequeue_burst`](Self::dequeue_burst) where frames arrive and leave by the dozen. Time must not go backwards. If the policy has
/// flow queues, [`poll_dropped`](Self::poll_dropped) returns the frames they dropped.
#[derive(Debug)]
pub struct Pipeline {
    pub(crate) path: DataPath,
    pub(crate) changes: Reconfigurator,
}

impl Pipeline {
    /// A pipeline whose token buckets are full at `now`.
    ///
    /// # Errors
    /// If the policy is valid but exceeds a limit of the implementation.
    pub fn new(params: &PipelineParams, now: Instant) -> Result<Self, BuildError> {
        let mut built = build::build_policy(&params.policy, params.seed, now)?;
        build::add_port_shaper(&mut built, params.port_shaper.as_ref(), now);
        let classifier = Classifier::new(&params.policy);
        Ok(Self {
            changes: Reconfigurator::new(params.clone(), built.slices_leaf),
            path: DataPath::new(classifier, built, params.seed),
        })
    }

    /// Reserve memory for as many frames as a pipeline can hold, 128 MiB, which is touched only as it is first used. So none is
    /// moved when slices or policies with longer queues come, which takes milliseconds otherwise.
    pub fn reserve(&mut self) {
        self.path.pool.reserve(buffer_frames(u64::MAX));
    }

    /// Classify, meter, and queue `frame`, or drop it with one reason.
    ///
    /// O(1), but for class maps that do not compile into tables (`docs/mechanisms/classifier.md`).
    #[inline]
    pub fn on_frame(&mut self, frame: Frame, headers: &Headers, now: Instant) -> Verdict {
        let class = self.path.classifier.classify(headers);
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
        self.path.count_dropped();
        verdict
    }

    /// [`on_frame`](Self::on_frame) and [`poll_dropped`](Self::poll_dropped) for each of some frames that have arrived
    /// together, with its headers at the same position: their outcome is the same, and classification is faster.
    /// Dropped frames go back to `owner`.
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
            self.path.classifier.classify_burst(headers, &mut classes);
            if self.path.is_large() || self.path.built.has_places {
                self.path.arrivals_ahead(&classes[..headers.len()], headers);
            }
            for ((frame, headers), &class) in frames.iter().zip(headers).zip(&classes) {
                let held = |frame: &Frame, class| owner.try_hold(frame, class);
                if let Verdict::Dropped(reason) = self.offer(*frame, headers, class, now, held) {
                    owner.on_dropped(frame, reason);
                }
                if self.path.pool.has_dropped() {
                    self.hand_back(owner);
                }
            }
        }
    }

    /// Count queued frames that were dropped, and return them to their owner.
    #[cold]
    fn hand_back(&mut self, owner: &mut impl FrameOwner) {
        self.path.count_dropped();
        while let Some(dropped) = self.poll_dropped() {
            owner.on_dropped(&dropped.frame, dropped.reason);
        }
    }

    #[inline]
    fn offer(
        &mut self,
        frame: Frame,
        headers: &Headers,
        class: u32,
        now: Instant,
        mut has_memory: impl FnMut(&Frame, u32) -> bool,
    ) -> Verdict {
        match self.path.offer(frame, headers, class, now, &mut has_memory) {
            Some(verdict) => verdict,
            None => self.on_handover(class, frame, headers, now, &mut has_memory),
        }
    }

    /// A frame has the class number of a slice that was removed, or of a handover: mostly it waits beside the queue of its next
    /// class, or belongs to that already.
    #[cold]
    fn on_handover(
        &mut self,
        class: u32,
        frame: Frame,
        headers: &Headers,
        now: Instant,
        mut has_memory: &mut dyn FnMut(&Frame, u32) -> bool,
    ) -> Verdict {
        let mut class = class;
        loop {
            let arriving = Arriving {
                class,
                frame,
                headers,
            };
            match self
                .changes
                .on_arrival(&mut self.path, arriving, now, has_memory)
            {
                Arrived::Held => return Verdict::Queued,
                Arrived::Dropped(reason) => return Verdict::Dropped(reason),
                Arrived::Removed => return self.drop_removed(class, &frame),
                Arrived::Of(next) => class = next,
            }
            if let Some(verdict) = self.path.offer(frame, headers, class, now, &mut has_memory) {
                return verdict;
            }
        }
    }

    /// Counts a frame of a removed slice. Packets that it had lost before have a class number without a name: class-default counts them.
    fn drop_removed(&mut self, class: u32, frame: &Frame) -> Verdict {
        let reason = DropReason::SliceRemoved;
        let classes = &mut self.path.built.classes;
        let is_unnamed = classes
            .get(class as usize)
            .is_none_or(ClassState::is_unused);
        let default = self.changes.ledger.as_ref().map(|ledger| ledger.default);
        let class = default.filter(|_| is_unnamed).unwrap_or(class);
        if let Some(state) = classes.get_mut(class as usize) {
            state.counters.count_dropped(frame, reason);
        }
        Verdict::Dropped(reason)
    }

    /// A frame of a class has left, and frames are aside: it may be their turn to join a queue.
    #[cold]
    fn join_aside(&mut self, class: u32, now: Instant) {
        // The last of the class may have been dropped when this one left.
        self.path.count_dropped();
        self.changes.on_departure(&mut self.path, class, now);
        self.path.join_elephants(now);
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
        self.path.after_departures(departure.is_some(), now);
        departure
    }

    /// [`poll_departure`](Self::poll_departure) again and again: hands every frame that may leave at `now` to `send`,
    /// until that breaks. Returns what `send` answered last.
    #[inline]
    pub fn dequeue_burst(
        &mut self,
        now: Instant,
        send: impl FnMut(Departure) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let ended = if self.path.is_large() || self.path.aside > 0 {
            self.dequeue_ahead(now, send)
        } else {
            self.path.dequeue_each(now, send)
        };
        self.path.after_departures(ended.is_break(), now);
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
            self.path.departures_ahead(now);
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
        let queued = self.path.dequeue(now)?;
        if self.path.aside > 0 {
            self.join_aside(queued.class(), now);
        }
        Some(departure(&queued))
    }

    /// The handle of the frame that was behind the one that [`poll_egress`](Self::poll_egress) returned last, in the same
    /// queue: what belongs to it will soon be needed. Only a hint; [`u64::MAX`] without one.
    #[inline]
    #[must_use]
    pub fn next_handle(&self) -> u64 {
        self.path.next_handle()
    }

    /// Returns whether [`poll_dropped`](Self::poll_dropped) returns a frame.
    #[inline]
    #[must_use]
    pub const fn has_dropped(&self) -> bool {
        self.path.pool.has_dropped()
    }

    /// A frame dropped after it was queued: its handle returns to the caller, and it is counted. If a
    /// policy has flow queues, call this until it returns `None`, after [`on_frame`](Self::on_frame),
    /// [`poll_egress`](Self::poll_egress), and changes: such frames occupy the frame memory until then.
    #[inline]
    pub fn poll_dropped(&mut self) -> Option<Dropped> {
        self.path.pool.poll_dropped()
    }

    /// When to poll next; `None` while nothing waits. Early calls are harmless; late calls cost
    /// delay.
    #[must_use]
    pub const fn poll_at(&self) -> Option<Instant> {
        if self.path.next_poll.nanos() == Instant::MAX.nanos() {
            None
        } else {
            Some(self.path.next_poll)
        }
    }

    /// Returns what the pipeline runs: the base for [preparing](Basis::prepare) a change, on this thread or
    /// another.
    #[must_use]
    pub fn basis(&self) -> Basis {
        self.changes.basis()
    }

    /// Put a change in force while frames wait: nothing queued is lost, reordered or reset.
    /// O(classes + frames waiting).
    ///
    /// # Errors
    /// If another change was committed after this one was prepared; nothing is changed then.
    pub fn commit(&mut self, prepared: Prepared, now: Instant) -> Result<Replaced, Stale> {
        if prepared.version() != self.changes.version {
            return Err(Stale);
        }
        Ok(change::commit(
            (&mut self.path, &mut self.changes),
            prepared,
            now,
        ))
    }

    /// Changes so far, of whole policies and of single slices; [`Basis::version`] is that of a basis.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.changes.version
    }

    /// Prepare and commit a change.
    ///
    /// # Errors
    /// If the new configuration cannot be built; the old one then stays active.
    pub fn apply(&mut self, change: Change, now: Instant) -> Result<Replaced, BuildError> {
        let prepared = self.basis().prepare(change, now)?;
        // Nothing came in between.
        Ok(change::commit(
            (&mut self.path, &mut self.changes),
            prepared,
            now,
        ))
    }
}
