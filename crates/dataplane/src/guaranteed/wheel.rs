//! Slices that wait until their first frame is eligible, by when that is.
//!
//! A call wakes at most W = [`WAKES_PER_CALL`] slices, however many become eligible at once. So that none is late, they
//! wake ahead of time where many wait: of n slices each wakes ⌊n / W⌋ frame times early. In a frame time, in which the
//! link sends a largest frame, at least one call comes. Proof: `docs/mechanisms/guaranteed.md`.

use super::COARSER;
use super::calendar::{Calendar, TimerChain};
use super::slice::{SliceState, cost};
use crate::slots::Slots;
use slicewise_model::DelayRange;

/// Most slices that a call wakes.
pub const WAKES_PER_CALL: u32 = 64;

/// Slices whose first frame is not eligible yet.
#[derive(Debug, Clone)]
pub(super) struct Wheel {
    calendar: Calendar<TimerChain>,
    /// Slices in the calendar.
    slices: u32,
    /// The link sends a largest frame in at most this time, ns.
    frame_time: u64,
    /// The longest delay / W, ns: admission allows no more slices than the link sends frames in the longest delay.
    ahead_max: u64,
    /// How early slices wake, ns.
    ahead: u64,
}

/// The longest delay / W in buckets.
const AHEAD_MAX: u64 = (DelayRange::BUCKETS_AHEAD >> COARSER) / WAKES_PER_CALL as u64;

impl Wheel {
    /// Without slices, beside a deadline queue of buckets 2^`shift` ns wide.
    pub(super) fn new(shift: u32) -> Self {
        let shift = shift + COARSER;
        Self {
            calendar: Calendar::new(shift),
            slices: 0,
            frame_time: 0,
            ahead_max: AHEAD_MAX << shift,
            ahead: 0,
        }
    }

    /// A largest frame takes `bytes`, and the link has at least this rate, bit/s.
    pub(super) fn set_frame_time(&mut self, bytes: u64, rate: u64) {
        self.frame_time = cost(bytes).unsigned_abs().div_ceil(rate.max(1));
        self.set_ahead();
    }

    /// Number of slices.
    pub(super) const fn slices(&self) -> u32 {
        self.slices
    }

    fn set_ahead(&mut self) {
        let calls = u64::from(self.slices / WAKES_PER_CALL);
        self.ahead = calls.saturating_mul(self.frame_time).min(self.ahead_max);
    }

    /// A slice joins.
    #[inline]
    fn count_in(&mut self) {
        self.slices += 1;
        if self.slices.is_multiple_of(WAKES_PER_CALL) {
            self.set_ahead();
        }
    }

    /// A slice leaves.
    #[inline]
    fn count_out(&mut self) {
        let is_fewer_calls = self.slices.is_multiple_of(WAKES_PER_CALL);
        self.slices -= 1;
        if is_fewer_calls {
            self.set_ahead();
        }
    }

    /// The last bucket of which slices wake at `now`.
    #[inline]
    pub(super) fn due(&self, now: u64) -> u64 {
        self.calendar.number(now.saturating_add(self.ahead))
    }

    /// Returns true if a slice is in a bucket up to `due`.
    #[inline]
    pub(super) const fn has_until(&self, due: u64) -> bool {
        self.calendar.has_until(due)
    }

    /// When the next slice is to wake, ns.
    #[inline]
    pub(super) fn next_time(&self) -> Option<u64> {
        let first = self.calendar.next_time()?;
        Some(first.saturating_sub(self.ahead))
    }

    /// Let slice `id` wait until `eligible`; false where it is to be awake already, as those of buckets up to `due`.
    #[inline]
    pub(super) fn try_insert(
        &mut self,
        slices: &mut Slots<SliceState>,
        id: u32,
        eligible: u64,
        due: u64,
        now: u64,
    ) -> bool {
        let number = self.calendar.number(eligible);
        if number <= due {
            return false;
        }
        self.calendar.insert(slices, id, number, now);
        self.count_in();
        true
    }

    /// Take slice `id` out.
    pub(super) fn remove(&mut self, slices: &mut Slots<SliceState>, id: u32) {
        self.calendar.remove(slices, id);
        self.count_out();
    }

    /// Returns true if a slice waits for a later bucket than that of `eligible`.
    #[inline]
    pub(super) fn is_after(&self, slice: &SliceState, eligible: u64) -> bool {
        self.calendar.number(eligible) < self.calendar.number_of(&slice.timer)
    }

    /// Take the next slice out, where it is in a bucket up to `due`.
    #[inline]
    pub(super) fn pop_until(&mut self, slices: &mut Slots<SliceState>, due: u64) -> Option<u32> {
        let id = self.calendar.pop_until(slices, due)?;
        self.count_out();
        Some(id)
    }

    /// The slices in buckets up to `due`, in order. For reading ahead.
    pub(super) fn slices_until<'a>(
        &'a self,
        slices: &'a Slots<SliceState>,
        due: u64,
    ) -> impl Iterator<Item = u32> + 'a {
        self.calendar.slices_until(slices, due)
    }
}

#[cfg(test)]
mod tests;
