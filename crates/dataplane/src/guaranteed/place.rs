//! Where a slice belongs when its first frame, its tokens or its promise has changed.

use super::slice::{Excess, Life, Tier, cost};
use super::{Guaranteed, UNPARKED_PER_FRAME};
use crate::queue::{FramePool, QueuedFrame};

impl Guaranteed {
    /// A slice has a new first frame, or new parameters: put it where that belongs.
    pub(super) fn place(&mut self, id: u32, head: &QueuedFrame, now: u64) {
        let price = cost(self.bytes(head.frame.lengths));
        if self.slices[id as usize].committed.exists() {
            self.place_by_eligibility(id, head, price, now);
            // The excess tier only ever serves those that are not: no need to join it.
            if self.slices[id as usize].tier == Tier::Eligible {
                return;
            }
        }
        self.place_by_maximum(id, price, now);
    }

    /// Into the deadline queue where the head is eligible, else onto the wheel.
    fn place_by_eligibility(&mut self, id: u32, head: &QueuedFrame, price: i64, now: u64) {
        let slice = &mut self.slices[id as usize];
        let eligible = slice.eligible_at(head, price);
        let number = self.wheel.number(eligible);
        if slice.tier == Tier::Waiting {
            // It stays where it is if that is not too late: whoever finds it there looks again.
            if self.wheel.number_of(&slice.timer) <= number {
                return;
            }
            self.wheel.remove(&mut self.slices, id);
        }
        let slice = &mut self.slices[id as usize];
        // Less than a bucket too early does no harm: the deadline stays what it is.
        if number <= self.wheel.number(now) {
            slice.tier = Tier::Eligible;
            let deadline = eligible.saturating_add(self.delays[usize::from(slice.class)]);
            let number = self.deadlines.number(deadline);
            self.deadlines.insert(&mut self.slices, id, number);
        } else {
            slice.tier = Tier::Waiting;
            self.wheel.insert(&mut self.slices, id, number);
        }
    }

    /// Into the ring where its maximum lets the head leave, else among the parked.
    fn place_by_maximum(&mut self, id: u32, price: i64, now: u64) {
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
        self.parked.insert(&mut self.slices, id, number);
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
            self.forget(id);
        }
    }

    /// Every slice on the wheel whose time has come joins the deadline queue.
    pub(super) fn wake_eligible(&mut self, pool: &FramePool, now: u64) {
        let number = self.wheel.number(now);
        while let Some(id) = self.wheel.pop_until(&mut self.slices, number) {
            let slice = &mut self.slices[id as usize];
            slice.tier = Tier::Idle;
            let head = pool.get(slice.head);
            let price = cost(self.bytes(head.frame.lengths));
            self.place_by_eligibility(id, &head, price, now);
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
            let head = pool.get(slice.head);
            let price = cost(self.bytes(head.frame.lengths));
            self.place_by_maximum(id, price, now);
        }
        let accounting = self.accounting;
        self.excess.select(&mut self.slices, |slice| {
            let lengths = pool.get(slice.head).frame.lengths;
            accounting.count(lengths).bytes()
        })
    }
}
