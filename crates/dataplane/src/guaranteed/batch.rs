//! Prefetches of memory for bursts, which change no decision.
//!
//! With many slices the cost per frame is dominated by cache misses. A burst names its slices in
//! advance, so their cache lines can be fetched in parallel. A plain load does that: processors execute
//! far enough ahead, and it needs no `unsafe`.

use super::calendar::NUMBER_MAX;
use super::slice::{NIL, SliceState};
use super::{Guaranteed, SliceId, WAKES_PER_CALL};
use crate::queue::FramePool;
use slicewise_units::Instant;
use std::hint::black_box;

/// Frames prefetched at a time: about as many lines as a core can fetch in parallel.
pub const READ_AHEAD: usize = 16;

impl Guaranteed {
    /// Prefetch what frames of these slices will need to be queued. No visible effect.
    pub fn arrivals_ahead(&self, slices: &[SliceId], pool: &FramePool) {
        for slices in slices.chunks(READ_AHEAD) {
            let mut ahead = ReadAhead::default();
            for slice in slices {
                ahead.slice(self, slice.index(), |slice| slice.tail);
            }
            ahead.frames(pool);
        }
    }

    /// Prefetch what the next [`READ_AHEAD`] frames will need to leave. Returns the classes of those that are known,
    /// and how many they are. It wakes slices as a call does, and has no other visible effect.
    pub fn departures_ahead(
        &mut self,
        pool: &FramePool,
        now: Instant,
    ) -> ([u32; READ_AHEAD], usize) {
        self.wake_ahead(now.nanos());
        let mut ahead = self.slices_ahead();
        let (slots, found) = (ahead.slots, ahead.found);
        ahead.frames(pool);
        ahead.frames(pool);
        drop(ahead);
        (slots.map(|slot| pool.class(slot)), found)
    }

    /// [`wake_eligible`](Self::wake_eligible), [`READ_AHEAD`] at a time.
    fn wake_ahead(&mut self, now: u64) {
        let due = self.wheel.due(now);
        for _ in 0..WAKES_PER_CALL as usize / READ_AHEAD {
            if !self.wheel.has_until(due) {
                break;
            }
            let mut ahead = ReadAhead::default();
            for id in self.wheel.slices_until(&self.slices, due).take(READ_AHEAD) {
                ahead.slice(self, id, |slice| slice.head);
            }
            let found = ahead.found;
            drop(ahead);
            for _ in 0..found {
                self.wake_one(due, now);
            }
        }
    }

    /// The slices of the next [`READ_AHEAD`] frames; notes these.
    fn slices_ahead(&mut self) -> ReadAhead {
        let mut ahead = ReadAhead::default();
        for id in self
            .deadlines
            .slices_until(&self.slices, NUMBER_MAX)
            .take(READ_AHEAD)
        {
            ahead.slice(self, id, |slice| slice.head);
        }
        for turns in 0..u32::try_from(READ_AHEAD - ahead.found).unwrap_or(0) {
            if let Some(id) = self.excess.ahead(turns) {
                ahead.slice(self, id, |slice| slice.head);
            }
        }
        ahead
    }
}

/// Loads whose results are not used.
struct ReadAhead {
    slots: [u32; READ_AHEAD],
    found: usize,
    lines: u64,
}

impl Default for ReadAhead {
    fn default() -> Self {
        Self {
            slots: [NIL; READ_AHEAD],
            found: 0,
            lines: 0,
        }
    }
}

impl ReadAhead {
    /// Both lines of a slice; notes the frame that will be needed.
    #[inline]
    fn slice(&mut self, of: &Guaranteed, id: u32, frame: impl Fn(&SliceState) -> u32) {
        if let (Some(slice), Some(slot)) =
            (of.slices.get(id as usize), self.slots.get_mut(self.found))
        {
            *slot = frame(slice);
            self.lines ^= slice.committed.clock();
            self.found += 1;
        }
    }

    /// The noted frames; notes those behind them.
    #[inline]
    fn frames(&mut self, pool: &FramePool) {
        for slot in &mut self.slots[..self.found] {
            let (line, next) = pool.fetch(*slot);
            self.lines ^= line;
            *slot = next;
        }
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        // Otherwise the compiler would remove loads with unused results.
        black_box(self.lines);
    }
}
