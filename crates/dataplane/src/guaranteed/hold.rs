//! What happens when certain frames of a slice have left.
//!
//! Frames of one flow may wait in a slice when another slice begins to take that flow. A slice that is new
//! accepts frames at once, but is in neither tier until the older frames have left: so none overtakes. To one that is in
//! force already, frames are [joined](Guaranteed::join) that the caller has kept meanwhile.

use super::slice::{Life, NIL, Tier, cost};
use super::{Guaranteed, SliceId};
use crate::queue::{FrameList, FramePool};
use slicewise_model::GuaranteeParams;
use slicewise_units::Instant;
use std::collections::{BTreeMap, LinkedList};

/// A place in the queue of a slice, behind the frame that was its last at some time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(u64);

/// The slices whose frames are counted as they leave.
#[derive(Debug, Clone, Default)]
pub(super) struct Holds {
    watched: BTreeMap<u32, Watch>,
    /// No place is later.
    last: u64,
}

/// A slice while frames of it have to leave before something happens. Lists, because growing moves nothing.
#[derive(Debug, Clone)]
#[expect(clippy::linkedlist, reason = "a change takes a bounded time")]
struct Watch {
    /// Where it is: every frame that leaves is one more.
    at: Place,
    /// The last place that something waits for.
    last: Place,
    /// Before this place, frames may leave in another order than they were counted in.
    mixed: Place,
    /// Slices that are held, and until when.
    held: LinkedList<(u32, Place)>,
    /// Behind these places frames were joined, and when: none of them could leave before, ns.
    joined: LinkedList<(Place, u64)>,
    /// The deadline of the frame that was eligible when the delay became shorter, ns. Those behind it are due no earlier: while they
    /// were hidden by it, frames of others were sent that were due before that.
    floor: Option<u64>,
}

impl Watch {
    fn is_past(&self, place: Place) -> bool {
        place <= self.at && self.mixed <= self.at
    }
}

impl Holds {
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
    /// The place behind the last frame of a slice, and what happens there.
    fn watch(&mut self, id: SliceId) -> (Place, &mut Watch) {
        let packets = self.slice_backlog(id);
        let Holds { watched, last } = &mut self.holds;
        // Places of a slice that was watched before are passed.
        let watch = watched.entry(id.0).or_insert_with(|| Watch {
            at: Place(*last),
            last: Place(*last),
            mixed: Place(0),
            held: LinkedList::new(),
            joined: LinkedList::new(),
            floor: None,
        });
        watch.last = Place(watch.at.0 + u64::from(packets)).max(watch.last);
        *last = (*last).max(watch.last.0);
        (watch.last, watch)
    }

    /// The place behind the last frame of a slice.
    pub(crate) fn end_of(&mut self, id: SliceId) -> Place {
        if self.slice_backlog(id) == 0 {
            return Place(0);
        }
        self.watch(id).0
    }

    /// Whether the frames of a slice before a place have left. With a flow queue they are those that waited, in whatever order:
    /// none may wait.
    pub(crate) fn is_past(&self, id: SliceId, place: Place) -> bool {
        let slice = self.slices.get(id.0 as usize);
        let slice = slice.filter(|slice| slice.packets > 0);
        let (Some(slice), Some(watch)) = (slice, self.holds.watched.get(&id.0)) else {
            return true;
        };
        place == Place(0) || slice.flow_queue().is_none() && watch.is_past(place)
    }

    /// Serve slice `id`, which has no frames yet, only when those that `first` has now have left.
    /// Returns how many they are. O(log n) in the number of slices of which something waits.
    ///
    /// If `first` has a queue for each flow, its frames do not leave in order of arrival, and `id` is
    /// held until `first` is empty.
    pub fn hold_behind(&mut self, id: SliceId, first: SliceId) -> u32 {
        let frames = self.slice_backlog(first);
        debug_assert_eq!(self.slice_backlog(id), 0, "from the beginning");
        if frames == 0 || id == first {
            return 0;
        }
        if let Some(slice) = self.slices.get_mut(id.0 as usize) {
            slice.tier = Tier::Held;
            let (until, watch) = self.watch(first);
            watch.held.push_back((id.0, until));
        }
        frames
    }

    /// A slice that others are held behind.
    pub(crate) fn ahead_of_held(&self) -> Option<SliceId> {
        let mut watched = self.holds.watched.iter();
        let found = watched.find(|(_, watch)| !watch.held.is_empty());
        found.map(|(&id, _)| SliceId(id))
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
                let (place, watch) = self.watch(id);
                watch.joined.push_back((place, now.nanos()));
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
            if let Some(watch) = self.holds.watched.get_mut(&id.0) {
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
        let watch = self.holds.watched.get(&id);
        watch.and_then(|watch| watch.floor).unwrap_or(0)
    }

    /// The frames of a slice begin or cease to wait by flow. Those that were joined are not told apart from others any more:
    /// all that wait are as late as these.
    pub(super) fn on_mixed(&mut self, id: SliceId, now: Instant) {
        let (Some(watch), Some(slice)) = (
            self.holds.watched.get_mut(&id.0),
            self.slices.get_mut(id.0 as usize),
        ) else {
            return;
        };
        let packets = u64::from(slice.packets);
        watch.last = Place(watch.at.0 + packets).max(watch.last);
        watch.at = Place(watch.last.0 - packets);
        watch.mixed = watch.last;
        self.holds.last = self.holds.last.max(watch.last.0);
        if !std::mem::take(&mut watch.joined).is_empty() {
            slice.committed.refill(now.nanos());
        }
    }

    /// A frame left while slices are watched.
    #[cold]
    pub(super) fn on_sent_watched(&mut self, id: u32, pool: &FramePool, now: u64) {
        let Some(mut watch) = self.holds.watched.remove(&id) else {
            return;
        };
        watch.at.0 += 1;
        let slice = &mut self.slices[id as usize];
        // Of a flow queue, frames may have been dropped.
        let is_empty = slice.packets == 0;
        let in_order = slice.flow_queue().is_none();
        let mut joined = 0;
        while let Some(&(place, since)) = watch.joined.front()
            && (is_empty || in_order && watch.is_past(place))
        {
            joined = since;
            watch.joined.pop_front();
        }
        let mut released = Vec::new();
        while let Some(&(held, until)) = watch.held.front()
            && (is_empty || in_order && watch.is_past(until))
        {
            released.push(held);
            watch.held.pop_front();
        }
        // A deadline before that would claim capacity that others were promised.
        slice.committed.refill(joined);
        let is_earlier = |floor: &u64| {
            self.next_deadline(id, pool)
                .is_some_and(|next| next < *floor)
        };
        watch.floor = watch.floor.filter(is_earlier);
        if !is_empty && (!in_order || watch.at < watch.last || watch.floor.is_some()) {
            self.holds.watched.insert(id, watch);
        }
        for held in released {
            self.release_held(held, pool, now);
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

    fn release_held(&mut self, id: u32, pool: &FramePool, now: u64) {
        let slice = &mut self.slices[id as usize];
        slice.tier = Tier::Idle;
        if slice.packets > 0 {
            // Until now none of its frames could have left: a deadline in the past would claim
            // capacity that others were promised.
            let arrival = Instant::from_nanos(now);
            self.place_head_from(id, pool, arrival);
        } else if slice.life == Life::Draining {
            self.forget(id);
        }
    }
}
