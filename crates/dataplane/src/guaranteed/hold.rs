//! What happens when certain frames of a slice have left.
//!
//! Frames of one flow may wait in a slice when another slice begins to take that flow. A slice that is new
//! accepts frames at once, but is in neither tier until the older frames have left: so none overtakes. To one that is in
//! force already, frames are [joined](Guaranteed::join) that the caller has kept meanwhile.

use super::slice::{Life, NIL, SliceState, Tier};
use super::{Guaranteed, SliceId};
use crate::queue::{FrameList, FramePool, Position};
use slicewise_units::Instant;
use std::collections::{BTreeMap, LinkedList};

/// What is watched for. Lists, because growing moves nothing.
#[derive(Debug, Clone)]
#[expect(clippy::linkedlist, reason = "a change takes a bounded time")]
pub(super) struct Holds {
    /// The slice that others are held behind; [`NIL`] while none is.
    behind: u32,
    /// Slices that are held, and the place in that slice at which each is released.
    held: LinkedList<(u32, Position)>,
    /// Places in slices behind which frames were joined, and when: none of these could leave before, ns.
    joined: BTreeMap<u32, LinkedList<(Position, u64)>>,
}

impl Default for Holds {
    fn default() -> Self {
        Self {
            behind: NIL,
            held: LinkedList::new(),
            joined: BTreeMap::new(),
        }
    }
}

impl Holds {
    fn watches(&self, id: u32) -> bool {
        self.behind == id || self.joined.contains_key(&id)
    }

    /// A slice is no longer there.
    pub(super) fn forget(&mut self, id: u32) {
        self.joined.remove(&id);
    }
}

impl Guaranteed {
    /// Serve slice `id`, which has no frames yet, only when those that `first` has now have left.
    /// Returns how many they are. Slices are only ever held behind the same one. O(1).
    ///
    /// If `first` has a queue for each flow, its frames do not leave in order of arrival, and `id` is
    /// held until `first` is empty.
    pub fn hold_behind(&mut self, id: SliceId, first: SliceId) -> u32 {
        let frames = self.slice_backlog(first);
        debug_assert!(
            [NIL, first.0].contains(&self.holds.behind) && self.slice_backlog(id) == 0,
            "behind the same slice, from the beginning"
        );
        if frames == 0 || id == first {
            return 0;
        }
        let until = self.end_of(first);
        if let Some(slice) = self.slices.get_mut(id.0 as usize) {
            slice.tier = Tier::Held;
            self.holds.behind = first.0;
            self.holds.held.push_back((id.0, until));
            self.slices[first.0 as usize].is_watched = true;
        }
        frames
    }

    /// The slice that others are held behind.
    pub(crate) fn ahead_of_held(&self) -> Option<SliceId> {
        (self.holds.behind != NIL).then_some(SliceId(self.holds.behind))
    }

    /// The place behind the last frame of a slice.
    pub(crate) fn end_of(&self, id: SliceId) -> Position {
        let slice = self.slices.get(id.0 as usize);
        slice.map_or_else(Position::default, SliceState::end)
    }

    /// Whether the frames of a slice before a place have left; with a flow queue, whether no frame of it waits.
    pub(crate) fn is_past(&self, id: SliceId, position: Position) -> bool {
        let slice = self.slices.get(id.0 as usize);
        slice.is_none_or(|slice| slice.is_past(position))
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
        let (was_empty, end) = (slice.packets == 0, slice.end());
        let flow_queue = slice.flow_queue();
        if let Some(index) = flow_queue {
            while let Some(queued) = frames.pop(pool) {
                self.append_by_flow(id.0, index, queued, pool);
            }
            if was_empty {
                self.stage_moved(id.0, pool, now);
            }
        } else {
            slice.join(&frames, pool);
            self.backlog += frames.packets();
        }
        let slice = &mut self.slices[id.0 as usize];
        if was_empty {
            self.place_head_from(id.0, pool, now);
        } else if flow_queue.is_some() {
            // Which frame is next does not follow the order of arrival: all that wait are as late as these.
            slice.committed.refill(now.nanos());
        } else if slice.committed.exists() {
            slice.is_watched = true;
            let joined = self.holds.joined.entry(id.0).or_default();
            joined.push_back((end, now.nanos()));
        }
    }

    /// Frames that were joined will not be told apart from others: all that wait are as late as these.
    pub(super) fn settle_joined(&mut self, id: SliceId, now: Instant) {
        if self.holds.joined.remove(&id.0).is_some()
            && let Some(slice) = self.slices.get_mut(id.0 as usize)
        {
            slice.committed.refill(now.nanos());
            slice.is_watched = self.holds.watches(id.0);
        }
    }

    /// A frame left of a slice that is watched.
    #[cold]
    pub(super) fn on_sent_watched(&mut self, id: u32, pool: &FramePool, now: u64) {
        let slice = &mut self.slices[id as usize];
        if let Some(joined) = self.holds.joined.get_mut(&id) {
            while let Some(&(position, since)) = joined.front()
                && slice.is_past(position)
            {
                // A deadline before that would claim capacity that others were promised.
                slice.committed.refill(since);
                joined.pop_front();
            }
            if joined.is_empty() {
                self.holds.joined.remove(&id);
            }
        }
        if id == self.holds.behind {
            while let Some(&(held, until)) = self.holds.held.front()
                && self.slices[id as usize].is_past(until)
            {
                self.holds.held.pop_front();
                self.release_held(held, pool, now);
            }
            if self.holds.held.is_empty() {
                self.holds.behind = NIL;
            }
        }
        self.slices[id as usize].is_watched = self.holds.watches(id);
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
