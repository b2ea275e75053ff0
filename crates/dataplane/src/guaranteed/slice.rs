//! State of one slice: two cache lines.

use crate::queue::{FrameList, FramePool, QueuedFrame};
use slicewise_model::{QueueLimitParams, SliceParams};
use slicewise_units::{BitRate, ByteCount, NANOS_PER_SECOND};

/// No slice, no frame.
pub(super) const NIL: u32 = u32::MAX;

/// A slice's neighbours in a bucket, and which bucket that is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links {
    pub(super) next: u32,
    pub(super) previous: u32,
    pub(super) bucket: u32,
}

impl Links {
    pub(super) const NONE: Self = Self {
        next: NIL,
        previous: NIL,
        bucket: NIL,
    };
}

/// Cost of one byte, in nanobits.
const NANOBITS_PER_BYTE: u64 = 8 * NANOS_PER_SECOND;
/// The largest burst that 63 bits hold: 1.15 GB.
const BURST_MAX: u64 = i64::MAX.unsigned_abs() / NANOBITS_PER_BYTE;

/// A token bucket in 32 bytes (step 1 of the proof): as exact as [`TokenBucket`](crate::bucket::TokenBucket), but with a burst
/// of at most 1.15 GB, so that credit fits in 64 bits. Frames that cost less than the smallest are charged as that.
#[derive(Debug, Clone, Copy)]
pub(super) struct SmallBucket {
    /// bit/s; zero where there is no such bucket.
    rate: u64,
    /// Most credit, bytes.
    burst_bytes: u32,
    /// The smallest frame, bytes.
    smallest_bytes: u32,
    /// Credit at `clock`, nanobits; negative is debt.
    credit: i64,
    /// ns.
    clock: u64,
}

impl SmallBucket {
    const ABSENT: Self = Self {
        rate: 0,
        burst_bytes: 0,
        smallest_bytes: 0,
        credit: 0,
        clock: 0,
    };

    fn full(rate: BitRate, burst: ByteCount, smallest_frame: ByteCount, now: u64) -> Self {
        let bytes =
            |size: ByteCount| u32::try_from(size.bytes().min(BURST_MAX)).unwrap_or(u32::MAX);
        let burst_bytes = bytes(burst);
        Self {
            rate: rate.bits_per_second(),
            burst_bytes,
            smallest_bytes: bytes(smallest_frame),
            credit: nanobits(burst_bytes),
            clock: now,
        }
    }

    /// Most credit, nanobits.
    #[inline]
    fn burst(&self) -> i64 {
        nanobits(self.burst_bytes)
    }

    /// Nanobits that a frame of this cost is charged.
    #[inline]
    fn charge(&self, price: i64) -> i64 {
        price.max(nanobits(self.smallest_bytes))
    }

    pub(super) const fn exists(&self) -> bool {
        self.rate > 0
    }

    /// Most bytes that conform to it within `nanos`, rounded up.
    pub(super) fn most_bytes_in(&self, nanos: u64) -> u64 {
        let earned = u128::from(self.rate) * u128::from(nanos);
        let nanobits = u128::from(self.burst().unsigned_abs()) + earned;
        u64::try_from(nanobits.div_ceil(NANOBITS_PER_BYTE.into())).unwrap_or(u64::MAX)
    }

    /// bit/s; zero where there is no such bucket.
    pub(super) const fn rate(&self) -> u64 {
        self.rate
    }

    /// Time of its credit. For a committed bucket: the eligible time of the slice's head, while it has
    /// one; else of the last frame charged.
    pub(super) const fn clock(&self) -> u64 {
        self.clock
    }

    /// Advance its clock to `time`, if that is later.
    #[inline]
    pub(super) fn refill(&mut self, time: u64) {
        if time <= self.clock {
            return;
        }
        let room = self
            .burst()
            .saturating_sub(self.credit)
            .max(0)
            .unsigned_abs();
        // What does not fit in 64 bits exceeds every bucket.
        let earned = self.rate.checked_mul(time - self.clock);
        let earned = earned.map_or(room, |earned| earned.min(room));
        self.credit = self.credit.saturating_add_unsigned(earned);
        self.clock = time;
    }

    /// The earliest time, from `time` on, at which it covers `cost`.
    #[inline]
    pub(super) fn ready_at(&self, time: u64, cost: i64) -> u64 {
        let mut bucket = *self;
        bucket.advance(time, cost)
    }

    /// Move its clock to the earliest time, from `time` on, at which it pays `cost`, or is full
    /// where that is more than its burst: nothing waits forever. Until it has paid,
    /// [`rewind`](Self::rewind) takes that back.
    #[inline]
    pub(super) fn advance(&mut self, time: u64, cost: i64) -> u64 {
        self.refill(time);
        let missing = self
            .charge(cost)
            .min(self.burst())
            .saturating_sub(self.credit);
        if missing > 0 {
            let wait = missing.unsigned_abs().div_ceil(self.rate.max(1));
            self.clock = self.clock.saturating_add(wait);
            // Above the burst by less than a nanosecond's worth: discarded when charged.
            let earned = self.rate.saturating_mul(wait);
            self.credit = self.credit.saturating_add_unsigned(earned);
        }
        self.clock
    }

    /// Move its clock to `now`, back where it is ahead: it has not paid after all.
    pub(super) fn rewind(&mut self, now: u64) {
        match self.clock.checked_sub(now) {
            Some(ahead) => {
                let earned = self.rate.saturating_mul(ahead);
                self.credit = self.credit.saturating_sub_unsigned(earned);
                self.clock = now;
            }
            None => self.refill(now),
        }
    }

    /// Pay `cost` where its clock is.
    #[inline]
    pub(super) fn pay(&mut self, cost: i64) {
        self.credit = self
            .credit
            .min(self.burst())
            .saturating_sub(self.charge(cost));
    }

    /// Pay `cost` at `time`, into debt if need be.
    #[inline]
    pub(super) fn spend(&mut self, time: u64, cost: i64) {
        self.refill(time);
        self.pay(cost);
    }

    /// Keep the credit or debt of `old` at `now`, up to this bucket's burst. Where
    /// `eligible`, a head that it has been advanced to is eligible from the same time on.
    fn resume_from(&mut self, old: &Self, eligible: bool, now: u64) {
        if self.exists() && old.exists() {
            let mut old = *old;
            // What was earned so far was earned at the old rate.
            if !eligible {
                old.rewind(now);
            }
            self.credit = old.credit.min(self.burst());
            self.clock = old.clock;
        }
    }
}

/// Nanobits of bytes that a bucket keeps: at most [`BURST_MAX`], so that the product fits.
#[inline]
fn nanobits(bytes: u32) -> i64 {
    i64::from(bytes) * NANOBITS_PER_BYTE.cast_signed()
}

/// Cost of a frame that counts as `bytes`, in nanobits.
pub(super) fn cost(bytes: u64) -> i64 {
    i64::try_from(bytes.saturating_mul(NANOBITS_PER_BYTE)).unwrap_or(i64::MAX)
}

/// Which calendar of the guarantee tier a slice is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tier {
    /// Nothing waits, or nothing is guaranteed.
    Idle,
    /// On the wheel, until its head is eligible.
    Waiting,
    /// Its head is eligible: by deadline.
    Eligible,
}

/// State of a slice in the excess tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Excess {
    /// Nothing waits.
    Out,
    /// It takes its turn.
    InRing,
    /// It is at its maximum and parked.
    Parked,
}

/// State of a slot for a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// This slot is free.
    Free,
    /// It accepts frames.
    Live,
    /// It accepts no more, and disappears when its backlog has left.
    Draining,
}

/// One slice. Two cache lines of 64 bytes: the first is what a frame that joins a queue needs,
/// the second pays for one that leaves.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(super) struct SliceState {
    /// Oldest frame, in the pool. In a free slot: the next free one.
    pub(super) head: u32,
    /// Newest frame. With a flow queue: the number of that.
    pub(super) tail: u32,
    pub(super) packets: u32,
    pub(super) bytes: u32,
    /// Zero where frames wait in a flow queue, of which `head` is staged.
    limit_packets: u32,
    limit_bytes: u32,
    /// In the wheel or the deadline queue.
    pub(super) timer: Links,
    /// In the calendar of parked slices.
    pub(super) parked: Links,
    /// Bytes it may still send in its turn.
    pub(super) deficit: i32,
    /// Its place in the ring of its tenant, or the last it had.
    pub(super) turn: u32,
    pub(super) weight: u16,
    pub(super) tenant: u16,
    /// The number of its delay, if it has a guarantee.
    pub(super) delay: u8,
    pub(super) tier: Tier,
    pub(super) excess: Excess,
    pub(super) life: Life,
    /// CIR and CBS.
    pub(super) committed: SmallBucket,
    /// PIR and PBS.
    pub(super) peak: SmallBucket,
}

/// A weight as it is stored.
pub(super) fn weight(weight: u32) -> u16 {
    u16::try_from(weight).unwrap_or(u16::MAX).max(1)
}

impl SliceState {
    pub(super) fn new(params: &SliceParams, now: u64) -> Self {
        let limit = params.queue_limit;
        Self {
            head: NIL,
            tail: NIL,
            packets: 0,
            bytes: 0,
            limit_packets: limit.packets.max(1),
            limit_bytes: u32::try_from(limit.bytes.bytes()).unwrap_or(u32::MAX),
            timer: Links::NONE,
            parked: Links::NONE,
            deficit: 0,
            turn: 0,
            weight: weight(params.weight),
            tenant: u16::try_from(params.tenant).unwrap_or(u16::MAX),
            delay: 0,
            tier: Tier::Idle,
            excess: Excess::Out,
            life: Life::Live,
            committed: params.guarantee.map_or(SmallBucket::ABSENT, |g| {
                SmallBucket::full(g.rate, g.burst, g.smallest_frame, now)
            }),
            peak: params.maximum.map_or(SmallBucket::ABSENT, |m| {
                SmallBucket::full(m.rate, m.burst, ByteCount::ZERO, now)
            }),
        }
    }

    /// Limits its excess no longer.
    pub(super) const fn end_maximum(&mut self) {
        self.peak = SmallBucket::ABSENT;
    }

    /// Apply new parameters except the weight; frames, credit and debt stay.
    pub(super) fn change(&mut self, params: &SliceParams, now: u64) {
        let mut new = Self::new(params, now);
        new.resume_from(self, now);
        if self.flow_queue().is_none() {
            self.limit_packets = new.limit_packets;
        }
        self.limit_bytes = new.limit_bytes;
        self.committed = new.committed;
        self.peak = new.peak;
    }

    /// Keep the credit or debt of `old`.
    pub(super) fn resume_from(&mut self, old: &Self, now: u64) {
        let eligible = old.tier == Tier::Eligible;
        self.committed.resume_from(&old.committed, eligible, now);
        self.peak.resume_from(&old.peak, false, now);
    }

    /// Have its frames, of which it has none, wait in one queue.
    pub(super) fn set_one_queue(&mut self, limit: QueueLimitParams) {
        (self.head, self.tail) = (NIL, NIL);
        self.limit_packets = limit.packets.max(1);
    }

    /// Have its frames wait in flow queue `index`.
    pub(super) const fn set_flow_queue(&mut self, index: u32) {
        self.limit_packets = 0;
        self.tail = index;
    }

    /// The flow queue its frames wait in, if they do.
    #[inline]
    pub(super) const fn flow_queue(&self) -> Option<u32> {
        if self.limit_packets == 0 {
            Some(self.tail)
        } else {
            None
        }
    }

    /// Take the oldest frame from the queue.
    #[inline]
    pub(super) fn pop(&mut self, pool: &mut FramePool) -> QueuedFrame {
        let (queued, next) = pool.release(self.head);
        self.head = next;
        self.packets -= 1;
        self.bytes = self.bytes.saturating_sub(queued.lengths().l2_bytes);
        pool.prefetch_behind(next, self.packets);
        queued
    }

    /// Put frames at the end of the queue. O(1).
    pub(super) fn join(&mut self, frames: &FrameList, pool: &mut FramePool) {
        if self.packets == 0 {
            self.head = frames.head();
        } else {
            pool.link(self.tail, frames.head());
        }
        self.tail = frames.tail();
        self.packets += frames.packets();
        let bytes = u32::try_from(frames.bytes()).unwrap_or(u32::MAX);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Put a frame at the end of the queue; returns whether that was empty.
    #[inline]
    pub(super) fn push(&mut self, slot: u32, bytes: u32, pool: &mut FramePool) -> bool {
        let was_empty = self.packets == 0;
        if was_empty {
            self.head = slot;
        } else {
            pool.link(self.tail, slot);
        }
        self.tail = slot;
        self.packets += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        was_empty
    }

    /// Returns true if a frame of this many bytes still fits in its queue.
    pub(super) const fn has_room(&self, bytes: u32) -> bool {
        self.packets < self.limit_packets && bytes <= self.limit_bytes.saturating_sub(self.bytes)
    }
}
