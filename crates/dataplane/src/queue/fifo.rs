//! A queue in order of arrival, with a limit and a manager that decides when frames arrive.

use super::list::{FrameList, Position};
use super::pool::{FramePool, QueuedFrame};
use super::queue_manager::{Backlog, Candidate, Decision, Manager};
use super::tail_drop::TailDrop;
use crate::frame::DropReason;
use rand_core::Rng;
use slicewise_model::{QueueManager, QueueParams, Separation};
use slicewise_units::{FrameLengths, Instant};

/// Frames in order of arrival.
#[derive(Debug, Clone)]
pub struct FifoQueue {
    frames: FrameList,
    limit: TailDrop,
    /// `None`: tail drop. Beside the queue, so that one without a manager is small.
    manager: Option<Box<Manager>>,
}

impl FifoQueue {
    /// An empty queue, if `params` neither separates flows nor drops frames about to leave.
    #[must_use]
    pub fn new(params: &QueueParams) -> Option<Self> {
        let is_fifo = matches!(params.flows, Separation::None)
            && !Manager::judges_departures(&params.manager);
        is_fifo.then(|| Self {
            frames: FrameList::new(),
            limit: TailDrop::new(params.limit),
            manager: (params.manager != QueueManager::TailDrop)
                .then(|| Box::new(Manager::new(&params.manager, 1))),
        })
    }

    /// Queue a frame that has just arrived, or say why not; returns whether it is the only one. O(1).
    ///
    /// # Errors
    /// The reason to drop the frame; the queue is unchanged except for the manager's state.
    #[inline]
    pub fn try_enqueue(
        &mut self,
        pool: &mut FramePool,
        queued: QueuedFrame,
        random: &mut impl Rng,
    ) -> Result<bool, DropReason> {
        let queued = self.admit(queued, random)?;
        let was_empty = self.frames.packets() == 0;
        self.frames
            .try_push(pool, queued)
            .map_err(|_| DropReason::BufferFull)?;
        Ok(was_empty)
    }

    /// Decides whether a frame that has just arrived may be queued, and returns it; it may get a congestion mark.
    #[inline]
    fn admit(
        &mut self,
        mut queued: QueuedFrame,
        random: &mut impl Rng,
    ) -> Result<QueuedFrame, DropReason> {
        if let Some(manager) = &mut self.manager
            && judge(manager, &self.frames, queued, random)?
        {
            queued.mark();
        }
        if !self.limit.admits(&self.frames, queued.lengths()) {
            return Err(DropReason::QueueFull);
        }
        Ok(queued)
    }

    /// Put a frame that has just arrived into a list beside the queue, to be [joined](Self::join) later: room is kept for
    /// it.
    ///
    /// # Errors
    /// The reason to drop the frame, as if it were queued.
    pub(crate) fn try_hold(
        &mut self,
        beside: &mut FrameList,
        pool: &mut FramePool,
        queued: QueuedFrame,
        random: &mut impl Rng,
    ) -> Result<(), DropReason> {
        let queued = self.admit(queued, random)?;
        beside
            .try_push(pool, queued)
            .map_err(|_| DropReason::BufferFull)?;
        self.limit.hold(1, queued.lengths().l2_bytes.into());
        Ok(())
    }

    /// Keep room for frames that were held beside the queue that this one replaces.
    pub(crate) fn hold_again(&mut self, beside: &FrameList) {
        self.limit.hold(beside.packets(), beside.bytes());
    }

    /// Append frames that were held beside the queue. O(1).
    pub(crate) fn join(&mut self, pool: &mut FramePool, held: FrameList) {
        self.limit.release(&held);
        self.frames.splice(pool, held);
    }

    /// The place behind the last frame.
    pub(crate) const fn end(&self) -> Position {
        self.frames.end()
    }

    /// Returns true if all frames before a place have left.
    pub(crate) const fn is_past(&self, position: Position) -> bool {
        self.frames.is_past(position)
    }

    /// The lengths of the oldest frame.
    #[inline]
    #[must_use]
    pub fn front(&self, pool: &FramePool) -> Option<FrameLengths> {
        self.frames.front(pool)
    }

    /// Take the oldest frame. O(1).
    #[inline]
    pub fn dequeue(&mut self, pool: &mut FramePool, now: Instant) -> Option<QueuedFrame> {
        let queued = self.frames.pop(pool)?;
        if let Some(manager) = &mut self.manager {
            on_left(manager, &self.frames, queued, now);
        }
        Some(queued)
    }

    /// Frames waiting.
    #[inline]
    #[must_use]
    pub const fn packets(&self) -> u32 {
        self.frames.packets()
    }

    /// Take a frame unknown to the manager: the queue is being replaced.
    pub(crate) fn pop_unserved(&mut self, pool: &mut FramePool) -> Option<QueuedFrame> {
        self.frames.pop(pool)
    }

    /// Put a frame at the end whatever the limits; it has just been taken from another queue.
    pub(crate) fn append(&mut self, queued: QueuedFrame, pool: &mut FramePool) {
        let pushed = self.frames.try_push(pool, queued);
        debug_assert!(pushed.is_ok(), "the slot just freed is there");
    }

    /// Continue with the manager's state and the positions of `old`, whose frames follow.
    pub(crate) fn resume_from(&mut self, old: &Self) {
        self.frames.resume_from(&old.frames);
        self.limit.resume_from(&old.limit);
        if let (Some(manager), Some(old)) = (&mut self.manager, &old.manager) {
            manager.resume_from(old);
        }
    }
}

/// Has the manager decide on a frame that has just arrived; returns true if it is marked. Frames by value here and below: most queues have no manager, and
/// keep a frame in registers.
#[inline(never)]
fn judge(
    manager: &mut Manager,
    frames: &FrameList,
    mut queued: QueuedFrame,
    random: &mut impl Rng,
) -> Result<bool, DropReason> {
    let backlog = Backlog {
        packets: frames.packets(),
        bytes: frames.bytes(),
    };
    manager.on_arrival(0, backlog, &mut queued, random)?;
    Ok(queued.is_marked())
}

/// Tell the manager that a frame has left.
#[inline(never)]
fn on_left(manager: &mut Manager, frames: &FrameList, queued: QueuedFrame, now: Instant) {
    let candidate = Candidate {
        arrival: queued.arrival(),
        bytes_behind: frames.bytes(),
        is_ecn_capable: queued.ecn().is_capable(),
        is_protected: false,
    };
    let decision = manager.on_departure(0, candidate, now);
    debug_assert_eq!(decision, Decision::Send, "it judges arrivals alone");
    if frames.packets() == 0 {
        manager.on_empty(0, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frame;
    use rand_core::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use slicewise_model::{Colour, QueueLimitParams, QueueManager, RedCurve, WredParams};
    use slicewise_units::Duration;
    use slicewise_wire::{Ecn, TrafficClass};

    fn queued(at: Instant) -> QueuedFrame {
        marked(at, Ecn::NotEct)
    }

    fn marked(at: Instant, ecn: Ecn) -> QueuedFrame {
        let frame = Frame {
            handle: 0,
            lengths: FrameLengths {
                l2_bytes: 100,
                l3_offset: 14,
            },
            traffic_class: TrafficClass::new(0, ecn),
            colour: Colour::Green,
        };
        QueuedFrame::new(&frame, 0, at, 0)
    }

    fn with_red(limit: QueueLimitParams, wred: WredParams) -> FifoQueue {
        let params = QueueParams {
            manager: QueueManager::Red(wred),
            ..QueueParams::tail_drop(limit)
        };
        FifoQueue::new(&params).unwrap()
    }

    #[test]
    fn the_red_average_falls_only_from_when_the_last_frame_left() {
        let limit = QueueLimitParams::of_packets(10);
        // Half of each sample counts, and an average of one packet drops all.
        let step = RedCurve {
            min_packets: 1,
            max_packets: 1,
            mark_denominator: 1,
        };
        let wred = WredParams {
            curves: vec![step; 64],
            exponential_weight: 1,
            typical_transmission: Duration::from_micros(100),
            ecn: false,
        };
        let mut queue = with_red(limit, wred);
        let mut pool = FramePool::with_capacity(10);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut arrive = |queue: &mut FifoQueue, pool: &mut FramePool, millis| {
            let at = Instant::ZERO + Duration::from_millis(millis);
            queue.try_enqueue(pool, queued(at), &mut random)
        };
        assert_eq!(arrive(&mut queue, &mut pool, 0), Ok(true));
        assert_eq!(arrive(&mut queue, &mut pool, 0), Ok(false));
        let forced = Err(DropReason::RedForced);
        assert_eq!(arrive(&mut queue, &mut pool, 0), forced);
        for millis in [1, 1_000] {
            let now = Instant::ZERO + Duration::from_millis(millis);
            assert!(queue.dequeue(&mut pool, now).is_some());
        }
        assert_eq!(arrive(&mut queue, &mut pool, 1_000), forced);
        assert_eq!(arrive(&mut queue, &mut pool, 1_001), Ok(true));
    }

    #[test]
    fn red_marks_where_it_would_drop_by_chance_and_never_above_the_maximum() {
        let limit = QueueLimitParams::of_packets(100);
        // From an average of one packet on, the next or the one after it is chosen.
        let curve = RedCurve {
            min_packets: 1,
            max_packets: 8,
            mark_denominator: 1,
        };
        let outcomes = |ecn_of_queue, ecn| {
            let wred = WredParams {
                curves: vec![curve; 64],
                exponential_weight: 1,
                typical_transmission: Duration::from_micros(100),
                ecn: ecn_of_queue,
            };
            let mut queue = with_red(limit, wred);
            let mut pool = FramePool::with_capacity(100);
            let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
            let mut reasons = Vec::new();
            for _ in 0..100 {
                let frame = marked(Instant::ZERO, ecn);
                reasons.extend(queue.try_enqueue(&mut pool, frame, &mut random).err());
            }
            let count = |reason| reasons.iter().filter(|it| **it == reason).count();
            let frames = std::iter::from_fn(|| queue.dequeue(&mut pool, Instant::ZERO));
            let marks = frames.filter(|frame| frame.ecn() == Ecn::Ce).count();
            [
                count(DropReason::RedEarly),
                count(DropReason::RedForced),
                marks,
            ]
        };
        for (of_queue, ecn) in [(false, Ecn::Ect0), (true, Ecn::NotEct)] {
            let [early, _, marks] = outcomes(of_queue, ecn);
            assert!(early > 0 && marks == 0, "{early} {marks}");
        }
        for ecn in [Ecn::Ect0, Ecn::Ect1] {
            let [early, forced, marks] = outcomes(true, ecn);
            assert!(
                early == 0 && forced > 0 && marks > 0,
                "{early} {forced} {marks}"
            );
        }
    }
}
