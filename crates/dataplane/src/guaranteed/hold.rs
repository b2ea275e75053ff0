//! Slices that are held back until the frames another slice had when they were added have left.
//!
//! Frames of one flow may wait in a slice when another slice begins to take that flow. The new slice
//! accepts frames at once, but is in neither tier until the older frames have left: so none overtakes.

use super::slice::{Life, NIL, Tier};
use super::{Guaranteed, SliceId};
use crate::queue::FramePool;
use slicewise_units::Instant;
use std::collections::LinkedList;

/// The slices that are held, all behind the same one.
#[derive(Debug, Clone)]
pub(super) struct Holds {
    /// The slice whose frames leave first; [`NIL`] while nothing is held.
    behind: u32,
    /// Frames it has sent since the first of those that are held was added.
    sent: u64,
    /// Slices that are held, and the number of frames sent at which each is released. A list, because growing moves
    /// nothing.
    #[expect(clippy::linkedlist, reason = "a change takes a bounded time")]
    held: LinkedList<(u32, u64)>,
}

impl Default for Holds {
    fn default() -> Self {
        Self {
            behind: NIL,
            sent: 0,
            held: LinkedList::new(),
        }
    }
}

impl Holds {
    #[inline]
    pub(super) const fn behind(&self) -> u32 {
        self.behind
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
        if let Some(slice) = self.slices.get_mut(id.0 as usize) {
            slice.tier = Tier::Held;
            self.holds.behind = first.0;
            let until = self.holds.sent + u64::from(frames);
            self.holds.held.push_back((id.0, until));
        }
        frames
    }

    /// The slice that others are held behind.
    pub(crate) fn ahead_of_held(&self) -> Option<SliceId> {
        (self.holds.behind != NIL).then_some(SliceId(self.holds.behind))
    }

    /// A frame left of the slice that others are held behind.
    #[cold]
    pub(super) fn on_sent_ahead(&mut self, pool: &FramePool, now: u64) {
        let first = &self.slices[self.holds.behind as usize];
        self.holds.sent += 1;
        let sent = match first.flow_queue() {
            _ if first.packets == 0 => u64::MAX,
            Some(_) => 0,
            None => self.holds.sent,
        };
        while let Some(&(id, until)) = self.holds.held.front()
            && until <= sent
        {
            self.holds.held.pop_front();
            self.release_held(id, pool, now);
        }
        if self.holds.held.is_empty() {
            self.holds.behind = NIL;
            self.holds.sent = 0;
        }
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
