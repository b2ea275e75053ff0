//! Reschedules a slice after a change of its first frame, tokens or parameters.

use super::slice::{Excess, Life, Tier, cost};
use super::{Guaranteed, UNPARKED_PER_FRAME, WAKES_PER_CALL};
use crate::queue::FramePool;
use slicewise_units::Instant;

impl Guaranteed {
    /// A slice has a new first frame, which came at `arrival` and costs `price`, or new parameters:
    /// reschedule it.
    #[inline]
    pub(super) fn place(&mut self, id: u32, arrival: u64, price: i64, now: u64) {
        let slice = &mut self.slices[id as usize];
        if slice.committed.exists() {
            // Conforming to (CIR, CBS), counted from the frames that were served as guaranteed
            // before it, whenever they left.
            let eligible = slice.committed.advance(arrival, price);
            if slice.tier == Tier::Waiting {
                self.move_on_wheel(id, eligible, now);
            } else {
                self.place_by_eligibility(id, eligible, self.wheel.due(now), now);
            }
            // The excess tier only ever serves slices that are not eligible: no need to join it.
            if self.slices[id as usize].tier == Tier::Eligible {
                return;
            }
        }
        let slice = &self.slices[id as usize];
        if slice.excess != Excess::InRing || slice.peak.exists() {
            self.place_by_maximum(id, price, now);
        }
    }

    /// [`place`](Self::place) a slice by its first frame, which is in the pool.
    #[inline]
    pub(super) fn place_head(&mut self, id: u32, pool: &FramePool, now: u64) {
        let (lengths, arrival) = pool.head(self.slices[id as usize].head);
        let price = cost(self.counted(lengths));
        self.place(id, arrival.nanos(), price, now);
    }

    /// [`place_head`](Self::place_head), where the head could not leave before `now`.
    pub(super) fn place_head_from(&mut self, id: u32, pool: &FramePool, now: Instant) {
        let (lengths, _) = pool.head(self.slices[id as usize].head);
        let price = cost(self.counted(lengths));
        self.place(id, now.nanos(), price, now.nanos());
    }

    /// Into the deadline queue if the head is eligible in a bucket up to `due`, else onto the wheel.
    #[inline(always)]
    pub(super) fn place_by_eligibility(&mut self, id: u32, eligible: u64, due: u64, now: u64) {
        if self
            .wheel
            .try_insert(&mut self.slices, id, eligible, due, now)
        {
            self.slices[id as usize].tier = Tier::Waiting;
            return;
        }
        // Too early is harmless: the deadline does not change.
        let slice = &mut self.slices[id as usize];
        slice.tier = Tier::Eligible;
        let mut deadline = eligible.saturating_add(self.delays.nanos(slice.delay));
        if self.marks.is_watching() {
            deadline = deadline.max(self.floor(id));
        }
        let number = self.deadlines.number(deadline);
        self.deadlines.insert(&mut self.slices, id, number, now);
    }

    /// The frame for which a slice is on the wheel has left as excess, and the next is eligible at
    /// another time. If the slice is found there too early, it is checked again.
    fn move_on_wheel(&mut self, id: u32, eligible: u64, now: u64) {
        if self.wheel.is_after(&self.slices[id as usize], eligible) {
            self.wheel.remove(&mut self.slices, id);
            self.place_by_eligibility(id, eligible, self.wheel.due(now), now);
        }
    }

    /// Into the ring if its maximum lets the head leave, else among the parked.
    pub(super) fn place_by_maximum(&mut self, id: u32, price: i64, now: u64) {
        let slice = &mut self.slices[id as usize];
        let ready = if slice.peak.exists() {
            slice.peak.ready_at(now, price)
        } else {
            now
        };
        if ready <= now {
            match slice.excess {
                Excess::InRing => return,
                Excess::Parked => self.parked.remove(&mut self.slices, id),
                Excess::Out => {}
            }
            let slice = &mut self.slices[id as usize];
            slice.excess = Excess::InRing;
            self.excess.join(slice, id);
            return;
        }
        match slice.excess {
            Excess::InRing => self.excess.leave(slice, id),
            Excess::Parked => self.parked.remove(&mut self.slices, id),
            Excess::Out => {}
        }
        self.slices[id as usize].excess = Excess::Parked;
        // The first bucket that begins no earlier: never more than the maximum.
        let number = self
            .parked
            .number(ready.saturating_sub(1))
            .saturating_add(1);
        self.parked.insert(&mut self.slices, id, number, now);
    }

    /// A slice's last frame has left.
    pub(super) fn on_emptied(&mut self, id: u32) {
        if self.slices[id as usize].tier == Tier::Waiting {
            self.wheel.remove(&mut self.slices, id);
        }
        let slice = &mut self.slices[id as usize];
        slice.tier = Tier::Idle;
        match std::mem::replace(&mut slice.excess, Excess::Out) {
            Excess::InRing => self.excess.leave(slice, id),
            Excess::Parked => self.parked.remove(&mut self.slices, id),
            Excess::Out => {}
        }
        if self.slices[id as usize].life == Life::Draining {
            self.drained_in = self.busy_period;
            self.forget(id);
        }
    }

    /// Slices on the wheel whose time has come join the deadline queue, at most [`WAKES_PER_CALL`].
    #[inline]
    pub(super) fn wake_eligible(&mut self, now: u64) {
        let due = self.wheel.due(now);
        for _ in 0..WAKES_PER_CALL {
            if !self.wheel.has_until(due) {
                break;
            }
            self.wake_one(due, now);
        }
    }

    /// The first slice on the wheel, where it is in a bucket up to `due`.
    #[inline(always)]
    pub(super) fn wake_one(&mut self, due: u64, now: u64) {
        if let Some(id) = self.wheel.pop_until(&mut self.slices, due) {
            let eligible = self.slices[id as usize].committed.clock();
            self.place_by_eligibility(id, eligible, due, now);
        }
    }

    /// A few slices that may send again take their turns; then whose turn it is.
    pub(super) fn select_excess(&mut self, pool: &FramePool, now: u64) -> Option<u32> {
        let number = self.parked.number(now);
        let mut looked_at = 0;
        while looked_at < UNPARKED_PER_FRAME || self.excess.is_empty() {
            let Some(id) = self.parked.pop_until(&mut self.slices, number) else {
                break;
            };
            looked_at += 1;
            let slice = &mut self.slices[id as usize];
            slice.excess = Excess::Out;
            let (lengths, _) = pool.head(slice.head);
            let price = cost(self.counted(lengths));
            self.place_by_maximum(id, price, now);
        }
        let counting = self.counting;
        self.excess.select(&mut self.slices, |slice| {
            let (lengths, _) = pool.head(slice.head);
            counting.bytes(lengths)
        })
    }
}
