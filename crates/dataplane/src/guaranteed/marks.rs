//! Marks in the queues of slices: what happens when the frames before one have left.
//!
//! Frames of one flow may wait in a slice when another slice begins to take that flow. The caller keeps what arrives of it
//! meanwhile, and has it [join](Guaranteed::join) the other slice when the older frames have left: so none overtakes.

use super::slice::{NIL, Tier, cost};
use super::{Guaranteed, SliceId};
use crate::queue::{FrameList, FramePool};
use slicewise_model::GuaranteeParams;
use slicewise_units::Instant;
use std::collections::{BTreeMap, LinkedList};

/// Position in the queue of a slice, behind the frame that was its last at some time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DequeueMark(u64);

/// Slices whose frames are counted as they leave.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks {
    watched: BTreeMap<u32, Watch>,
    /// No mark is later.
    last: u64,
}

/// Slice of which frames have to leave before something happens. A list, because growing moves nothing.
#[derive(Debug, Clone)]
#[expect(clippy::linkedlist, reason = "a change takes a bounded time")]
struct Watch {
    /// Where it is: every frame that leaves is one more.
    at: DequeueMark,
    /// The last mark that something waits for.
    last: DequeueMark,
    /// Before this mark, frames may leave in another order than they were counted in.
    mixed: DequeueMark,
    /// Behind these marks frames were joined, and when: none of them could leave before, ns.
    joined: LinkedList<(DequeueMark, u64)>,
    /// The deadline of the frame that was eligible when the delay became shorter, ns. Those behind it are due no earlier: while they
    /// were hidden by it, frames of others were sent that were due before that.
    floor: Option<u64>,
}

impl Watch {
    fn is_past(&self, mark: DequeueMark) -> bool {
        mark <= self.at && self.mixed <= self.at
    }
}

impl Marks {
    #[inline]
    pub(super) fn is_watching(&self) -> bool {
        !self.watched.is_empty()
    }

    /// A slice is no longer there.
    pub(super) fn forget(&mut self, id: u32) {
        self.watched.remove(&id);
    }
}

impl Guaranteed {
    /// Returns the mark behind the last frame of a slice, and what happens there.
    fn watch(&mut self, id: SliceId) -> (DequeueMark, &mut Watch) {
        let packets = self.slice_backlog(id);
        let Marks { watched, last } = &mut self.marks;
        // Marks of a slice that was watched before are passed.
        let watch = watched.entry(id.0).or_insert_with(|| Watch {
            at: DequeueMark(*last),
            last: DequeueMark(*last),
            mixed: DequeueMark(0),
            joined: LinkedList::new(),
            floor: None,
        });
        watch.last = DequeueMark(watch.at.0 + u64::from(packets)).max(watch.last);
        *last = (*last).max(watch.last.0);
        (watch.last, watch)
    }

    /// Returns the mark behind the last frame of a slice.
    pub(crate) fn end_of(&mut self, id: SliceId) -> DequeueMark {
        if self.slice_backlog(id) == 0 {
            return DequeueMark(0);
        }
        self.watch(id).0
    }

    /// Returns whether the frames of a slice before a mark have left. With a flow queue they are those that waited, in whatever order:
    /// none may wait.
    pub(crate) fn is_past(&self, id: SliceId, mark: DequeueMark) -> bool {
        let slice = self.slices.get(id.0 as usize);
        let slice = slice.filter(|slice| slice.packets > 0);
        let (Some(slice), Some(watch)) = (slice, self.marks.watched.get(&id.0)) else {
            return true;
        };
        mark == DequeueMark(0) || slice.flow_queue().is_none() && watch.is_past(mark)
    }

    /// Append frames that were kept elsewhere, in order of arrival, whatever the limits. Until `now` none of them could have
    /// left. O(1), and O(frames) where the slice has a flow queue.
    pub(crate) fn join(
        &mut self,
        id: SliceId,
        mut frames: FrameList,
        pool: &mut FramePool,
        now: Instant,
    ) {
        let Some(slice) = self.slices.get_mut(id.0 as usize) else {
            return;
        };
        if frames.packets() == 0 {
            return;
        }
        let was_empty = slice.packets == 0;
        if let Some(index) = slice.flow_queue() {
            while let Some(queued) = frames.pop(pool) {
                self.append_by_flow(id.0, index, queued, pool);
            }
            if was_empty {
                self.stage_moved(id.0, pool, now);
            } else {
                // Which frame is next does not follow the order of arrival: all that wait are as late as these.
                self.slices[id.0 as usize].committed.refill(now.nanos());
            }
        } else {
            if !was_empty && slice.committed.exists() {
                let (mark, watch) = self.watch(id);
                watch.joined.push_back((mark, now.nanos()));
            }
            self.slices[id.0 as usize].join(&frames, pool);
            self.backlog += frames.packets();
        }
        if was_empty {
            self.place_head_from(id.0, pool, now);
        }
    }

    /// A slice gets the delay of this guarantee. If that is shorter and a frame is eligible, that keeps its deadline, and those behind
    /// it are due no earlier.
    pub(super) fn change_delay(&mut self, id: SliceId, guarantee: Option<&GuaranteeParams>) {
        let after = guarantee.map(|guarantee| self.until_deadline(guarantee));
        let number = after.map(|nanos| self.delays.acquire(nanos));
        let slice = &mut self.slices[id.0 as usize];
        let is_eligible = slice.tier == Tier::Eligible;
        let eligible = slice.committed.clock();
        let before = slice.committed.exists().then(|| {
            let before = self.delays.nanos(slice.delay);
            self.delays.release(slice.delay);
            before
        });
        slice.delay = number.unwrap_or(slice.delay);
        let (Some(before), Some(after)) = (before, after) else {
            return;
        };
        if !is_eligible {
            if let Some(watch) = self.marks.watched.get_mut(&id.0) {
                watch.floor = None;
            }
        } else if after < before {
            let deadline = eligible.saturating_add(before);
            let (_, watch) = self.watch(id);
            watch.floor = watch.floor.max(Some(deadline));
        }
    }

    /// See [`Watch::floor`].
    pub(super) fn floor(&self, id: u32) -> u64 {
        let watch = self.marks.watched.get(&id);
        watch.and_then(|watch| watch.floor).unwrap_or(0)
    }

    /// The frames of a slice begin or cease to wait by flow. Those that were joined are not told apart from others any more:
    /// all that wait are as late as these.
    pub(super) fn on_mixed(&mut self, id: SliceId, now: Instant) {
        let (Some(watch), Some(slice)) = (
            self.marks.watched.get_mut(&id.0),
            self.slices.get_mut(id.0 as usize),
        ) else {
            return;
        };
        let packets = u64::from(slice.packets);
        watch.last = DequeueMark(watch.at.0 + packets).max(watch.last);
        watch.at = DequeueMark(watch.last.0 - packets);
        watch.mixed = watch.last;
        self.marks.last = self.marks.last.max(watch.last.0);
        if !std::mem::take(&mut watch.joined).is_empty() {
            slice.committed.refill(now.nanos());
        }
    }

    /// A frame left while slices are watched.
    #[cold]
    pub(super) fn on_sent_watched(&mut self, id: u32, pool: &FramePool) {
        let Some(mut watch) = self.marks.watched.remove(&id) else {
            return;
        };
        watch.at.0 += 1;
        let slice = &mut self.slices[id as usize];
        // Of a flow queue, frames may have been dropped.
        let is_empty = slice.packets == 0;
        let in_order = slice.flow_queue().is_none();
        let mut joined = 0;
        while let Some(&(mark, since)) = watch.joined.front()
            && (is_empty || in_order && watch.is_past(mark))
        {
            joined = since;
            watch.joined.pop_front();
        }
        // A deadline before that would claim capacity that others were promised.
        slice.committed.refill(joined);
        let is_earlier = |floor: &u64| {
            self.next_deadline(id, pool)
                .is_some_and(|next| next < *floor)
        };
        watch.floor = watch.floor.filter(is_earlier);
        if !is_empty && (!in_order || watch.at < watch.last || watch.floor.is_some()) {
            self.marks.watched.insert(id, watch);
        }
    }

    /// By when the next frame of a slice is due, if there is one and the slice has a guarantee.
    fn next_deadline(&self, id: u32, pool: &FramePool) -> Option<u64> {
        let slice = self.slices.get(id as usize);
        let slice = slice.filter(|slice| slice.committed.exists())?;
        let (lengths, arrival) = (slice.head != NIL).then(|| pool.head(slice.head))?;
        let price = cost(self.counted(lengths));
        let eligible = slice.committed.ready_at(arrival.nanos(), price);
        Some(eligible.saturating_add(self.delays.nanos(slice.delay)))
    }
}
