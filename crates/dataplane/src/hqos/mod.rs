//! DPDK's hierarchical scheduler: port, subports, pipes, 13 traffic classes, 16 queues.
//!
//! The arithmetic and the order of departures are those of `librte_sched` 22.11, held against the library packet by packet
//! (`docs/mechanisms/hqos.md`). The library is asked for packets again and again; here a call answers when the next may
//! leave, and what a call does beyond that is the same.

mod active;
mod credits;
mod grinder;
mod place;
mod port_time;
mod queues;
mod red;
mod round_robin;
mod subport;

use place::PIPE_QUEUES;
pub use place::{HqosPlace, HqosPlaces};

use crate::frame::DropReason;
use crate::queue::{FramePool, QueuedFrame};
use port_time::PortTime;
use red::Random;
use slicewise_model::HqosParams;
use slicewise_model::hqos::QUEUES;
use slicewise_units::{FrameLengths, Instant};
use subport::{Steps, Subport};

/// Calls in a row that send nothing although a frame may leave: a call ends before every pipe has been visited where
/// pipes visited before had no credits.
const CALLS: u32 = 4;

/// A hierarchical scheduler.
#[derive(Debug)]
pub struct Hqos {
    port: PortTime,
    subports: Box<[Subport]>,
    /// The subport whose turn it is.
    turn: usize,
    call: Call,
    /// The frame that leaves next, which has left its queue.
    staged: Option<QueuedFrame>,
    /// Frames in queues.
    in_queues: u32,
    random: Random,
}

/// A call of the library's `rte_sched_port_dequeue`, which goes on as long as frames are taken at the same time.
#[derive(Debug)]
struct Call {
    at: Instant,
    /// It has not ended because nothing was found.
    is_open: bool,
    steps: Steps,
    /// Times that a subport had nothing more.
    done: usize,
}

/// Offer of a scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HqosOffer {
    /// A frame of these lengths may leave.
    Ready(FrameLengths),
    /// None before this time.
    Wait(Instant),
    /// None waits.
    Empty,
}

/// Counters of a queue since the scheduler was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HqosCounters {
    /// Frames that were queued.
    pub queued_frames: u64,
    /// Their bytes, L2 without FCS.
    pub queued_bytes: u64,
    /// Frames that wait.
    pub waiting_frames: u32,
    /// Frames dropped because the queue was full.
    pub dropped_full: u64,
    /// Frames dropped by early detection.
    pub dropped_early: u64,
    /// Frames dropped because no credits could ever suffice for them.
    pub dropped_too_long: u64,
}

impl std::ops::AddAssign for HqosCounters {
    fn add_assign(&mut self, other: Self) {
        self.queued_frames += other.queued_frames;
        self.queued_bytes += other.queued_bytes;
        self.waiting_frames += other.waiting_frames;
        self.dropped_full += other.dropped_full;
        self.dropped_early += other.dropped_early;
        self.dropped_too_long += other.dropped_too_long;
    }
}

impl Hqos {
    /// An empty scheduler whose time begins at `now`. `seed` is for early detection.
    #[must_use]
    pub fn new(params: &HqosParams, seed: u64, now: Instant) -> Self {
        let subports = params.subports.iter();
        Self {
            port: PortTime::new(params.rate, now),
            subports: subports
                .map(|subport| Subport::new(params, subport))
                .collect(),
            turn: 0,
            call: Call {
                at: now,
                is_open: false,
                steps: Steps::FIRST,
                done: 0,
            },
            staged: None,
            in_queues: 0,
            random: Random::new(seed),
        }
    }

    /// Frames waiting.
    #[inline]
    #[must_use]
    pub const fn backlog(&self) -> u32 {
        self.in_queues + self.staged.is_some() as u32
    }

    /// Read what frames at these places will need into the processor's caches.
    #[inline]
    pub fn arrivals_ahead(&self, places: impl Iterator<Item = HqosPlace>, pool: &FramePool) {
        let read = places.fold(0, |read, place| {
            read ^ self.subports[place.subport as usize].read_for(place.index(), pool)
        });
        std::hint::black_box(read);
    }

    /// Queue a frame at its place; returns whether it is the first of its queue.
    ///
    /// # Errors
    /// The reason to drop it.
    #[inline]
    pub fn try_enqueue(
        &mut self,
        place: HqosPlace,
        queued: QueuedFrame,
        pool: &mut FramePool,
    ) -> Result<bool, DropReason> {
        let moment = (self.port.bytes(), &mut self.random);
        let subport = &mut self.subports[place.subport as usize];
        let is_first =
            subport.try_enqueue((place.index(), place.colour as usize), queued, pool, moment)?;
        self.in_queues += 1;
        Ok(is_first)
    }

    /// Returns its offer at `now`. The frame that it offers stays the next one until it is [taken](Self::take).
    pub fn select(&mut self, pool: &mut FramePool, now: Instant) -> HqosOffer {
        if let Some(staged) = &self.staged {
            return HqosOffer::Ready(staged.lengths());
        }
        if self.in_queues == 0 {
            return HqosOffer::Empty;
        }
        for _ in 0..CALLS {
            if !self.call.is_open || self.call.at != now {
                self.begin(now);
            }
            if let Some(queued) = self.next(pool) {
                self.staged = Some(queued);
                return HqosOffer::Ready(queued.lengths());
            }
            let time = self.port.bytes();
            let next = self.subports.iter().map(|s| s.next_time(pool, time)).min();
            let next = next.unwrap_or(u64::MAX);
            if next > time {
                return HqosOffer::Wait(self.port.instant_of(next));
            }
        }
        HqosOffer::Wait(Instant::from_nanos(now.nanos().saturating_add(1)))
    }

    /// Take the frame that was offered.
    #[inline]
    pub fn take(&mut self) -> Option<QueuedFrame> {
        self.staged.take()
    }

    /// A call of the library begins. If the one before had frames to the last, the next subport is first.
    pub fn begin(&mut self, now: Instant) {
        if self.call.is_open {
            self.turn = (self.turn + 1) % self.subports.len().max(1);
        }
        self.port.advance(now);
        self.subports.iter_mut().for_each(Subport::begin);
        self.call = Call {
            at: now,
            is_open: true,
            steps: Steps::FIRST,
            done: 0,
        };
    }

    /// The next frame of the call that has begun; `None` where the library would return.
    pub fn next(&mut self, pool: &mut FramePool) -> Option<QueuedFrame> {
        loop {
            let subport = &mut self.subports[self.turn];
            if let Some(queued) = subport.run(&mut self.call.steps, &mut self.port, pool) {
                self.in_queues -= 1;
                return Some(queued);
            }
            self.turn = (self.turn + 1) % self.subports.len();
            self.call.done += 1;
            if self.call.done == self.subports.len() {
                self.call.is_open = false;
                return None;
            }
        }
    }

    /// Returns true if each frame that waits in `old`, a scheduler with the same places, can leave from here.
    pub(crate) fn can_replace(&self, old: &Self) -> bool {
        let mut subports = self.subports.iter().zip(&old.subports);
        subports.all(|(new, old)| new.can_send_from(old))
    }

    /// Frames of the same queues of `old`, a scheduler with the same places that this one replaces, come here; and credits.
    /// Returns how many frames came.
    pub(crate) fn take_over(
        &mut self,
        old: &mut Self,
        pool: &mut FramePool,
        rename: impl Fn(u32) -> u32,
        now: Instant,
    ) -> u32 {
        self.port.advance(now);
        old.port.advance(now);
        let (then, now) = (old.port.bytes(), self.port.bytes());
        let renamed = |mut queued: QueuedFrame| {
            queued.set_class(rename(queued.class()));
            queued
        };
        self.staged = old.staged.take().map(&renamed);
        self.in_queues += std::mem::take(&mut old.in_queues);
        for (new, old) in self.subports.iter_mut().zip(&mut old.subports) {
            while let Some((index, queued)) = old.pop_any(pool) {
                new.append_moved(index, renamed(queued), pool);
            }
            new.resume_from(old, then, now);
        }
        self.backlog()
    }

    /// Put a frame at the end of a queue whatever its limit.
    pub(crate) fn append(&mut self, place: HqosPlace, queued: QueuedFrame, pool: &mut FramePool) {
        let subport = &mut self.subports[place.subport as usize];
        subport.append_moved(place.index(), queued, pool);
        self.in_queues += 1;
    }

    /// Remove a frame of a scheduler that is being replaced; of each queue the first.
    pub(crate) fn pop_unserved(&mut self, pool: &mut FramePool) -> Option<QueuedFrame> {
        if let Some(staged) = self.staged.take() {
            return Some(staged);
        }
        let mut subports = self.subports.iter_mut();
        let queued = subports.find_map(|subport| Some(subport.pop_any(pool)?.1))?;
        self.in_queues -= 1;
        Some(queued)
    }

    /// Bytes of memory, without the frames.
    #[must_use]
    pub fn state_bytes(&self) -> usize {
        size_of::<Self>()
            + self
                .subports
                .iter()
                .map(Subport::state_bytes)
                .sum::<usize>()
    }

    /// Counters of the queues in which frames were queued or dropped. What frame memory had no room for is counted by class
    /// alone.
    pub fn counters(&self) -> impl Iterator<Item = (HqosPlace, HqosCounters)> {
        (0..).zip(&self.subports).flat_map(|(subport, queues)| {
            let indices = 0u32..u32::try_from(queues.pipes() * QUEUES).unwrap_or(0);
            indices.filter_map(move |index| {
                let counters = queues.counters(index);
                let place = HqosPlace {
                    subport,
                    pipe: index / PIPE_QUEUES,
                    queue: index % PIPE_QUEUES,
                    colour: 0,
                };
                (counters != HqosCounters::default()).then_some((place, counters))
            })
        })
    }
}
