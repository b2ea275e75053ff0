//! Elephants: flows above a rate are found, and wait in a queue of their own from then on.
//!
//! Frames of a flow that changes queues must not overtake those that wait in the old one. So they are put *aside*, into a
//! list of their flow that no scheduler serves, until the last of those has left; then the list is joined to the new queue.
//! Meanwhile the old queue has frames, so no link idles because of the list, and a frame waits no longer than it would
//! have in the old queue.

mod change;
mod flow;
mod flow_table;
mod space_saving;
mod watch;

use crate::frame::{DropReason, Frame};
use crate::queue::{FifoQueue, FlowHash, FramePool, QueuedFrame};
use crate::scheduler::{QueueId, Tree};
use flow::Flow;
use flow_table::FlowTable;
use rand_core::Rng;
use slicewise_model::{Detector, ElephantsParams};
use slicewise_units::Instant;
use slicewise_wire::Headers;
use space_saving::SpaceSaving;
use std::collections::VecDeque;

pub(crate) use watch::Watch;
pub use watch::{ElephantsSeen, FlowsChanged};

/// Most flows of a class with frames aside, in each direction. Others stay where they are until one of them has moved.
const ASIDE_MAX: usize = 1 << 10;

/// Counts of flows in a class that moves elephants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ElephantCounters {
    /// Flows that were found to be elephants.
    pub tagged: u64,
    /// Flows that moved to the queue of elephants.
    pub moved: u64,
    /// Flows that moved back, as they were elephants no longer.
    pub moved_back: u64,
    /// Frames of flows for which there was no counter: more would have had to be followed than there may be.
    pub unfollowed_frames: u64,
}

impl ElephantCounters {
    fn absorb(&mut self, other: Self) {
        self.tagged += other.tagged;
        self.moved += other.moved;
        self.moved_back += other.moved_back;
        self.unfollowed_frames += other.unfollowed_frames;
    }
}

/// The flows of a class.
#[derive(Debug)]
pub(crate) struct Elephants {
    pub(crate) params: ElephantsParams,
    /// The queue of the class, and that of elephants: both in order of arrival.
    pub(crate) queues: [QueueId; 2],
    flows: FlowTable<Flow>,
    /// Counts flows that are not followed, where not all are.
    sketch: Option<SpaceSaving>,
    /// The interval now, and its end.
    interval: u64,
    ends: Instant,
    /// The flow to look at next, whether it needs to be followed any longer.
    next: usize,
    /// Flows with frames aside, by the queue that they leave.
    leaving: [VecDeque<u64>; 2],
    pub(crate) counters: ElephantCounters,
}

impl Elephants {
    pub(crate) fn new(params: &ElephantsParams, queues: [QueueId; 2]) -> Self {
        let is_sketch = params.detector == Detector::HeavyHitters;
        let most = ASIDE_MAX.min(params.flows as usize);
        Self {
            params: params.clone(),
            queues,
            flows: FlowTable::with_capacity(params.flows),
            sketch: is_sketch.then(|| SpaceSaving::new(params.flows)),
            interval: 0,
            ends: Instant::ZERO,
            next: 0,
            leaving: [0, 1].map(|_| VecDeque::with_capacity(most)),
            counters: ElephantCounters::default(),
        }
    }

    /// The queue of elephants.
    pub(crate) const fn queue(&self) -> QueueId {
        self.queues[1]
    }

    /// Count a frame that has passed the policers, and queue it, or put it aside while its flow moves.
    ///
    /// # Errors
    /// The reason to drop the frame.
    #[inline(never)]
    pub(crate) fn on_frame(
        &mut self,
        arrival: Arrival<'_>,
        tree: &mut Tree,
        pool: &mut FramePool,
        random: &mut impl Rng,
    ) -> Result<Enqueued, DropReason> {
        let (frame, now) = (arrival.frame, arrival.now);
        let (headers, hash) = arrival.flow;
        let flow = hash.wide(headers);
        let position = self.count(flow, frame.lengths.l2_bytes, now, tree);
        let queued = QueuedFrame::new(frame, arrival.class, now, 0);
        self.try_enqueue((flow, position), queued, tree, pool, random)
    }

    /// Count a frame; returns the position of its flow, if that is followed.
    fn count(&mut self, flow: u64, bytes: u32, now: Instant, tree: &Tree) -> Option<usize> {
        if now >= self.ends {
            self.begin_interval(now);
        }
        self.look_at_next(tree);
        let bytes = u64::from(bytes);
        if let Some(position) = self.flows.find(flow)
            && let Some(followed) = self.flows.get_mut(position)
        {
            let tagged = followed.end_intervals(self.interval, &self.params);
            self.counters.tagged += u64::from(tagged);
            if self.sketch.is_none() || !followed.is_ordinary() {
                followed.bytes += bytes;
                self.tag_early(position);
                return Some(position);
            }
            self.flows.remove(position);
        }
        let counted = match &mut self.sketch {
            None => bytes,
            Some(sketch) => {
                let sent = sketch.add(flow, bytes).guaranteed();
                if sent <= self.params.threshold.bytes() {
                    return None;
                }
                sent
            }
        };
        self.follow(flow, counted, tree)
    }

    /// Follow a flow that has sent so much in this interval.
    fn follow(&mut self, flow: u64, bytes: u64, tree: &Tree) -> Option<usize> {
        let queue = tree.fifo(self.queues[0]);
        let last = queue.map_or_else(Default::default, FifoQueue::end);
        let position = self
            .flows
            .insert(flow, Flow::new(self.interval, bytes, last));
        match position {
            Some(position) => self.tag_early(position),
            None => self.counters.unfollowed_frames += 1,
        }
        position
    }

    fn tag_early(&mut self, position: usize) {
        // Counters of flows are read only at the end of an interval.
        if self.sketch.is_some()
            && let Some(flow) = self.flows.get_mut(position)
        {
            self.counters.tagged += u64::from(flow.tag_early(&self.params));
        }
    }

    #[cold]
    fn begin_interval(&mut self, now: Instant) {
        let length = self.params.interval.nanos().max(1);
        self.interval = now.nanos() / length;
        self.ends = Instant::from_nanos((self.interval + 1).saturating_mul(length));
        if let Some(sketch) = &mut self.sketch {
            sketch.clear();
        }
    }

    /// Look at one flow for each frame, so that one that sends no more is forgotten, and moves back where it can.
    fn look_at_next(&mut self, tree: &Tree) {
        let position = self.next;
        self.next += 1;
        let Some(flow) = self.flows.get_mut(position) else {
            self.next = 0;
            return;
        };
        if flow.interval == self.interval {
            return;
        }
        let tagged = flow.end_intervals(self.interval, &self.params);
        self.counters.tagged += u64::from(tagged);
        if !flow.is_tagged
            && flow.queue == 1
            && flow.aside.packets() == 0
            && is_past(tree, self.queues, flow)
        {
            flow.queue = 0;
            self.counters.moved_back += 1;
        }
        if flow.is_ordinary() {
            self.flows.remove(position);
            self.next = position;
        }
    }

    /// Queue a frame of a flow, which may be followed at `position`, or put it aside.
    fn try_enqueue(
        &mut self,
        (key, position): (u64, Option<usize>),
        queued: QueuedFrame,
        tree: &mut Tree,
        pool: &mut FramePool,
        random: &mut impl Rng,
    ) -> Result<Enqueued, DropReason> {
        let Some(flow) = position.and_then(|position| self.flows.get_mut(position)) else {
            let is_front = tree.try_enqueue(self.queues[0], || queued, pool, random)?;
            return Ok(Enqueued::queued(is_front));
        };
        let from = flow.queue;
        if flow.aside.packets() == 0 {
            let wanted = usize::from(flow.is_tagged);
            if wanted != from && is_past(tree, self.queues, flow) {
                self.counters.count_move(wanted);
                flow.queue = wanted;
            }
            let leaving = &self.leaving[from];
            if wanted == flow.queue || leaving.len() == leaving.capacity() {
                let queue = self.queues[flow.queue];
                let is_front = tree.try_enqueue(queue, || queued, pool, random)?;
                flow.last = tree.fifo(queue).map_or(flow.last, FifoQueue::end);
                return Ok(Enqueued::queued(is_front));
            }
        }
        let to = tree
            .fifo_mut(self.queues[1 - from])
            .ok_or(DropReason::QueueFull)?;
        to.try_hold(&mut flow.aside, pool, queued, random)?;
        if flow.aside.packets() == 1 {
            self.leaving[from].push_back(key);
        }
        Ok(Enqueued::Aside)
    }

    /// Frames have left: those aside whose turn it is join the queue that their flow moves to. Returns how many.
    pub(crate) fn join(&mut self, tree: &mut Tree, pool: &mut FramePool, now: Instant) -> u32 {
        let mut joined = 0;
        for from in [0, 1] {
            while let Some(&key) = self.leaving[from].front() {
                let position = self.flows.find(key);
                let Some(flow) = position.and_then(|position| self.flows.get_mut(position)) else {
                    debug_assert!(false, "a flow with frames aside is followed");
                    self.leaving[from].pop_front();
                    continue;
                };
                if !is_past(tree, self.queues, flow) {
                    break;
                }
                self.leaving[from].pop_front();
                let to = 1 - from;
                let aside = std::mem::take(&mut flow.aside);
                joined += aside.packets();
                tree.join(self.queues[to], aside, pool, now);
                flow.last = tree.fifo(self.queues[to]).map_or(flow.last, FifoQueue::end);
                flow.queue = to;
                self.counters.count_move(to);
            }
        }
        joined
    }
}

impl ElephantCounters {
    const fn count_move(&mut self, to: usize) {
        if to == 0 {
            self.moved_back += 1;
        } else {
            self.moved += 1;
        }
    }
}

/// A frame that has passed the policers of its class.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival<'a> {
    pub(crate) frame: &'a Frame,
    /// Fields by which its flow is told.
    pub(crate) flow: (&'a Headers, FlowHash),
    pub(crate) class: u32,
    pub(crate) now: Instant,
}

/// Outcome of a frame's arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enqueued {
    /// It is in a queue, and may be the next to leave it.
    Front,
    /// It is in a queue behind others.
    Behind,
    /// It is aside.
    Aside,
}

impl Enqueued {
    const fn queued(is_front: bool) -> Self {
        if is_front { Self::Front } else { Self::Behind }
    }
}

/// Returns true if the frames that a flow has in its queue have left.
fn is_past(tree: &Tree, queues: [QueueId; 2], flow: &Flow) -> bool {
    tree.fifo(queues[flow.queue])
        .is_none_or(|queue| queue.is_past(flow.last))
}

#[cfg(test)]
mod tests;
