//! A subport: pipes, their queues, and the eight grinders that work on them in turn.

mod build;
mod next_time;

use super::HqosCounters;
use super::active::ActiveQueues;
use super::credits::{Credits, Oversubscription};
use super::grinder::{Grinder, Step};
use super::place::{PIPE_QUEUES, class_of};
use super::port_time::PortTime;
use super::queues::Queues;
use super::red::{Random, Red};
use super::round_robin::RoundRobin;
use crate::frame::DropReason;
use crate::queue::{FramePool, NIL, QueuedFrame};
use slicewise_model::hqos::{
    BEST_EFFORT, BEST_EFFORT_QUEUES, HqosCredits, HqosPipeParams, QUEUES, TRAFFIC_CLASSES,
};
use slicewise_units::FrameLengths;

/// Pipes that are worked on at the same time (`RTE_SCHED_PORT_N_GRINDERS`). The library does so to fetch the memory of
/// one while it works on another; here it decides on the order of departures.
const GRINDERS: usize = 8;
/// No group of queues, and no pipe.
const NONE: u32 = u32::MAX;

/// Steps of grinders in a call of the library.
#[derive(Debug)]
pub(super) struct Steps {
    /// Of this subport.
    number: usize,
    /// The step of this number was taken. Whether the subport has more is asked when the next frame is.
    is_taken: bool,
}

impl Steps {
    /// A call begins.
    pub(super) const FIRST: Self = Self {
        number: 0,
        is_taken: false,
    };
    /// Another subport had nothing more. The library then begins with the second grinder.
    const NEXT: Self = Self {
        number: 1,
        is_taken: false,
    };
}

/// A subport of a port.
#[derive(Debug)]
pub(super) struct Subport {
    params: HqosCredits,
    credits: Credits,
    oversubscription: Oversubscription,
    overhead: u32,
    profiles: Box<[Profile]>,
    /// The profile of each pipe.
    profile_of: Box<[u8]>,
    pipes: Box<[Pipe]>,
    queues: Queues,
    drops: Box<[Drops]>,
    /// Highest cost with which a frame can leave, whatever its class and pipe.
    always_fits: u64,
    /// The most that a frame has cost.
    largest_cost: u64,
    /// Packets of each queue of a pipe.
    sizes: [u32; QUEUES],
    red: Option<Red>,
    active: ActiveQueues,
    grinders: [Grinder; GRINDERS],
    /// The group of queues of each grinder.
    groups: [u32; GRINDERS],
    /// Grinders that have a pipe.
    busy: u32,
    /// The first pipe that was visited without sending a frame since one was sent or a call began.
    pipe_loop: u32,
    /// It was visited again.
    is_exhausted: bool,
}

/// A pipe profile in a subport.
#[derive(Debug)]
struct Profile {
    params: HqosPipeParams,
    /// The most that a frame of each class can cost and ever leave.
    longest: [u64; TRAFFIC_CLASSES],
}

/// A pipe, in three cache lines. Best effort and class 0 need only the first.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
struct Pipe {
    /// Credits of best effort in a period of the subport.
    oversubscription_credits: u64,
    tokens: [u16; BEST_EFFORT_QUEUES],
    /// The period of the subport for which `oversubscription_credits` are.
    period: u8,
    credits: Credits,
}

/// Frames that were dropped at a queue.
#[derive(Debug, Clone, Copy, Default)]
struct Drops {
    full: u64,
    early: u64,
    too_long: u64,
}

impl Subport {
    /// Queue a frame in queue `index`; returns whether it is the only one there.
    ///
    /// # Errors
    /// The reason to drop it.
    #[inline]
    pub(super) fn try_enqueue(
        &mut self,
        (index, colour): (u32, usize),
        queued: QueuedFrame,
        pool: &mut FramePool,
        moment: (u64, &mut Random),
    ) -> Result<bool, DropReason> {
        let admitted = self.admit((index, colour), &queued, moment).and_then(|()| {
            let slot = pool.try_take(queued);
            slot.ok_or(DropReason::BufferFull)
        });
        match admitted {
            Ok(slot) => {
                let queue = &mut self.queues[index];
                queue.frames += 1;
                queue.bytes += u64::from(queued.lengths().l2_bytes);
                Ok(self.append(index, slot, pool))
            }
            Err(reason) => {
                let drops = &mut self.drops[index as usize];
                match reason {
                    DropReason::RedEarly | DropReason::RedForced => drops.early += 1,
                    DropReason::FrameTooLong => drops.too_long += 1,
                    DropReason::QueueFull => drops.full += 1,
                    // Of frame memory, which all queues share.
                    _ => {}
                }
                Err(reason)
            }
        }
    }

    #[inline]
    fn admit(
        &mut self,
        (index, colour): (u32, usize),
        queued: &QueuedFrame,
        moment: (u64, &mut Random),
    ) -> Result<(), DropReason> {
        let queue = index as usize % QUEUES;
        let class = class_of(queue);
        let (size, waiting) = (self.sizes[queue], self.queues[index].packets);
        let cost = u64::from(queued.lengths().l2_bytes) + u64::from(self.overhead);
        if cost > self.always_fits
            && size > 0
            && cost > self.profile(index / PIPE_QUEUES).longest[class]
        {
            return Err(DropReason::FrameTooLong);
        }
        if let Some(red) = &mut self.red {
            red.on_arrival(index as usize, (class, colour), waiting, moment)?;
        }
        if waiting >= size {
            return Err(DropReason::QueueFull);
        }
        self.largest_cost = self.largest_cost.max(cost);
        Ok(())
    }

    /// Put the frame in `slot` at the end of a queue; returns whether it is the only one there.
    #[inline]
    fn append(&mut self, index: u32, slot: u32, pool: &mut FramePool) -> bool {
        let queue = &mut self.queues[index];
        let was_empty = queue.packets == 0;
        if was_empty {
            queue.head = slot;
            self.active.insert(index);
        } else {
            pool.link(queue.tail, slot);
        }
        queue.tail = slot;
        queue.packets += 1;
        was_empty
    }

    /// Remove the first frame of a queue; returns it, and whether the queue is empty now.
    #[inline]
    fn pop(&mut self, index: u32, pool: &mut FramePool) -> Option<(QueuedFrame, bool)> {
        let queue = &mut self.queues[index];
        let (queued, next) = pool.try_release(queue.head)?;
        queue.head = next;
        queue.packets -= 1;
        let is_empty = next == NIL;
        if is_empty {
            self.active.remove(index);
        }
        Some((queued, is_empty))
    }

    /// Remove the first frame of any queue.
    pub(super) fn pop_any(&mut self, pool: &mut FramePool) -> Option<(u32, QueuedFrame)> {
        let (first, bits) = self.active.scan()?;
        let index = first + bits.trailing_zeros();
        let (queued, _) = self.pop(index, pool)?;
        Some((index, queued))
    }

    /// Put a frame at the end of a queue whatever its limit.
    pub(super) fn append_moved(&mut self, index: u32, queued: QueuedFrame, pool: &mut FramePool) {
        if let Some(slot) = pool.try_take(queued) {
            self.append(index, slot, pool);
        }
    }

    /// Returns true if each frame that waits in `old` can leave from here.
    pub(super) const fn can_send_from(&self, old: &Self) -> bool {
        self.always_fits >= old.largest_cost
    }

    /// Keep the credits and counters of `old`, whose pipes are the same: the time of its port is `then`, and here it is
    /// `now`.
    pub(super) fn resume_from(&mut self, old: &mut Self, then: u64, now: u64) {
        self.largest_cost = old.largest_cost;
        old.credits.earn(&old.params, then);
        self.credits
            .resume_from(&old.credits, &self.params, then, now);
        self.oversubscription.resume_from(&old.oversubscription);
        for number in 0..self.pipes.len() {
            let params = old.profiles[usize::from(old.profile_of[number])].params;
            let old = &mut old.pipes[number];
            old.credits.earn(&params.credits, then);
            let params = &self.profiles[usize::from(self.profile_of[number])].params;
            let pipe = &mut self.pipes[number];
            pipe.credits
                .resume_from(&old.credits, &params.credits, then, now);
            (pipe.oversubscription_credits, pipe.period, pipe.tokens) =
                (old.oversubscription_credits, old.period, old.tokens);
        }
        for (new, old) in self.queues.iter_mut().zip(old.queues.iter_mut()) {
            (new.frames, new.bytes) = (old.frames, old.bytes);
        }
        std::mem::swap(&mut self.drops, &mut old.drops);
    }

    /// A call of the library begins.
    #[inline]
    pub(super) const fn begin(&mut self) {
        self.pipe_loop = NONE;
    }

    /// Let grinders take turns until a frame leaves; `None` when nothing more is found here in this call.
    #[inline]
    pub(super) fn run(
        &mut self,
        steps: &mut Steps,
        port: &mut PortTime,
        pool: &mut FramePool,
    ) -> Option<QueuedFrame> {
        let Steps {
            mut number,
            mut is_taken,
        } = *steps;
        loop {
            if is_taken {
                if self.is_exhausted || self.busy == 0 && number >= GRINDERS {
                    self.is_exhausted = false;
                    *steps = Steps::NEXT;
                    return None;
                }
                number += 1;
            }
            is_taken = true;
            if let Some(queued) = self.step(number % GRINDERS, port, pool) {
                *steps = Steps { number, is_taken };
                return Some(queued);
            }
        }
    }

    /// Take a grinder one step further; returns the frame that leaves.
    #[inline]
    fn step(
        &mut self,
        index: usize,
        port: &mut PortTime,
        pool: &mut FramePool,
    ) -> Option<QueuedFrame> {
        match self.grinders[index].step {
            Step::Pipe => {
                if self.next_pipe(index) {
                    self.busy += 1;
                    self.grinders[index].step = Step::Credits;
                }
            }
            Step::Credits => {
                self.begin_class(index);
                self.renew(self.grinders[index].pipe, port.bytes());
                self.read_frame(index, pool);
                self.grinders[index].step = Step::Fetch;
            }
            Step::Fetch => self.grinders[index].step = Step::Send,
            Step::Send => {
                let Some(lengths) = self.try_spend(index, port, pool) else {
                    self.leave_class(index, pool);
                    return None;
                };
                return self.send(index, lengths, port, pool);
            }
        }
        None
    }

    /// Pay for the frame of a grinder, if credits suffice; returns its lengths.
    #[inline]
    fn try_spend(
        &mut self,
        index: usize,
        port: &mut PortTime,
        pool: &FramePool,
    ) -> Option<FrameLengths> {
        let grinder = &self.grinders[index];
        let class = grinder.class;
        let lengths = pool.lengths(self.queues[grinder.queue()].head)?;
        let cost = u64::from(lengths.l2_bytes) + u64::from(self.overhead);
        let pipe = &mut self.pipes[grinder.pipe as usize];
        let is_best_effort = class == BEST_EFFORT;
        let suffices = pipe.credits.suffice(class, cost)
            && self.credits.suffice(class, cost)
            && (!is_best_effort || cost <= pipe.oversubscription_credits);
        if !suffices {
            return None;
        }
        self.credits.spend(class, cost);
        pipe.credits.spend(class, cost);
        port.on_departure(cost);
        if is_best_effort {
            pipe.oversubscription_credits -= cost;
        }
        Some(lengths)
    }

    /// Send the frame of a grinder, which is paid for.
    fn send(
        &mut self,
        index: usize,
        lengths: FrameLengths,
        port: &PortTime,
        pool: &mut FramePool,
    ) -> Option<QueuedFrame> {
        let queue = self.grinders[index].queue();
        let (queued, is_empty) = self.pop(queue, pool)?;
        self.pipe_loop = NONE;
        let costs = self.profile(self.grinders[index].pipe).params.wrr_costs;
        let grinder = &mut self.grinders[index];
        let chosen = grinder.chosen;
        let is_best_effort = grinder.class == BEST_EFFORT;
        grinder.is_productive = true;
        if is_best_effort {
            let cost = lengths.l2_bytes.wrapping_add(self.overhead);
            grinder
                .round_robin
                .spend(chosen, cost, costs[usize::from(chosen)]);
        }
        if is_empty {
            grinder.queues &= !(1 << chosen);
            if is_best_effort {
                grinder.round_robin.on_empty(chosen);
            }
            if let Some(red) = &mut self.red {
                red.on_empty(queue as usize, port.bytes());
            }
        }
        if grinder.queues == 0 {
            self.leave_class(index, pool);
        } else {
            if is_best_effort {
                grinder.chosen = grinder.round_robin.choose();
            }
            self.read_behind(index, pool);
        }
        Some(queued)
    }

    /// A grinder goes on to the next class, or to the next pipe.
    #[inline]
    fn leave_class(&mut self, index: usize, pool: &FramePool) {
        let grinder = &mut self.grinders[index];
        if grinder.class == BEST_EFFORT {
            self.pipes[grinder.pipe as usize].tokens = grinder.round_robin.store();
        }
        let next = if grinder.next_class() {
            self.begin_class(index);
            self.read_frame(index, pool);
            Step::Fetch
        } else {
            if !grinder.is_productive && self.pipe_loop == NONE {
                self.pipe_loop = grinder.pipe;
            }
            if self.next_pipe(index) {
                Step::Credits
            } else {
                self.busy -= 1;
                Step::Pipe
            }
        };
        self.grinders[index].step = next;
    }

    /// Give a grinder the next pipe with frames, if there is one that no other has.
    #[inline]
    fn next_pipe(&mut self, index: usize) -> bool {
        let grinder = &mut self.grinders[index];
        if grinder.further == 0 {
            let Some((first, queues)) = self.active.scan() else {
                return false;
            };
            // Of all, without a branch for each: its own is another by now.
            self.groups[index] = NONE;
            let groups = self.groups.iter();
            if groups.fold(false, |found, group| found | (*group == first)) {
                return false;
            }
            self.groups[index] = first;
            grinder.further = queues;
            grinder.next_pipe = first / PIPE_QUEUES;
        }
        grinder.take_pipe();
        if grinder.pipe == self.pipe_loop {
            self.is_exhausted = true;
            self.pipe_loop = NONE;
        }
        self.read_pipe(index);
        true
    }

    /// Read into the processor's caches what the credits of a grinder's pipe need, before the other grinders take their
    /// steps: the reads of all of them overlap.
    #[inline]
    fn read_pipe(&self, index: usize) {
        let grinder = &self.grinders[index];
        let pipe = self.pipes[grinder.pipe as usize].oversubscription_credits;
        let head = self.queues[grinder.first].head;
        std::hint::black_box((pipe, head));
    }

    /// The same for the frame that is next.
    #[inline]
    fn read_frame(&self, index: usize, pool: &FramePool) {
        let head = self.queues[self.grinders[index].queue()].head;
        std::hint::black_box(pool.fetch(head).0);
    }

    /// The same for the frame behind the one that is next.
    #[inline]
    fn read_behind(&self, index: usize, pool: &FramePool) {
        let head = self.queues[self.grinders[index].queue()].head;
        let (_, behind) = pool.fetch(head);
        std::hint::black_box(pool.fetch(behind).0);
    }

    /// The same for a frame that will be queued in queue `index`.
    #[inline]
    pub(super) fn read_for(&self, index: u32, pool: &FramePool) -> u64 {
        pool.fetch(self.queues[index].tail).0
    }

    /// Find the first queue of the class of a grinder.
    #[inline]
    fn begin_class(&mut self, index: usize) {
        let grinder = &mut self.grinders[index];
        grinder.chosen = 0;
        if grinder.class == BEST_EFFORT {
            let kept = self.pipes[grinder.pipe as usize].tokens;
            grinder.round_robin = RoundRobin::load(kept, grinder.queues);
            grinder.chosen = grinder.round_robin.choose();
        }
    }

    /// A visit of a pipe: credits are renewed.
    #[inline]
    fn renew(&mut self, number: u32, time: u64) {
        let profile = &self.profiles[usize::from(self.profile_of[number as usize])].params;
        let pipe = &mut self.pipes[number as usize];
        self.credits.earn(&self.params, time);
        pipe.credits.earn(&profile.credits, time);
        if self.credits.is_period_over(time) {
            self.oversubscription
                .next_period(&self.credits, &self.params);
            self.credits.renew(&self.params, time);
        }
        if pipe.credits.is_period_over(time) {
            pipe.credits.renew(&profile.credits, time);
        }
        if pipe.period != self.oversubscription.period() {
            pipe.oversubscription_credits = self
                .oversubscription
                .credits(profile.oversubscription_weight);
            pipe.period = self.oversubscription.period();
        }
    }

    #[inline]
    fn profile(&self, pipe: u32) -> &Profile {
        &self.profiles[usize::from(self.profile_of[pipe as usize])]
    }

    /// Returns the counters of a queue.
    pub(super) fn counters(&self, index: u32) -> HqosCounters {
        let (queue, drops) = (self.queues[index], self.drops[index as usize]);
        HqosCounters {
            queued_frames: queue.frames,
            queued_bytes: queue.bytes,
            waiting_frames: queue.packets,
            dropped_full: drops.full,
            dropped_early: drops.early,
            dropped_too_long: drops.too_long,
        }
    }

    /// Bytes of memory.
    pub(super) fn state_bytes(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&*self.profiles)
            + size_of_val(&*self.profile_of)
            + size_of_val(&*self.pipes)
            + self.queues.state_bytes()
            + size_of_val(&*self.drops)
            + self.active.state_bytes()
            + self.red.as_ref().map_or(0, Red::state_bytes)
    }

    /// Pipes.
    pub(super) fn pipes(&self) -> usize {
        self.pipes.len()
    }
}
