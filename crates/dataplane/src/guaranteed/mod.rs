//! Guaranteed slices: a delay bound for each, the excess by weight, at any number of slices.
//!
//! One queue per slice, served in two modes. In the *guarantee* tier a token bucket (CIR, CBS)
//! makes each frame eligible at a time that depends on nothing but the slice's own arrivals; an
//! eligible frame has the deadline `eligible + D`, D the slice's delay less one bucket, and the earliest
//! deadline goes first. If nothing is eligible, the *excess* tier gives the link to tenants and their
//! slices by weight, up to each slice's maximum (PIR, PBS), without consuming the guarantee's tokens, as
//! in HFSC (Stoica, Zhang & Ng, SIGCOMM 1997).
//!
//! For slices that pass the admission test, a frame within its slice's (CIR, CBS) leaves no
//! later than `eligible + D` plus one bucket width ([`Guaranteed::granularity`]), whatever others
//! send: regulated earliest deadline first (Georgiadis et al., IEEE/ACM ToN 4(4), 1996), proved step by step in
//! `docs/mechanisms/guaranteed-bound.md`: eligible times (step 1) are in `slice.rs`, who may be sent (2) in `place.rs` and `wheel.rs`. Calendars
//! with find-first-set bitmaps, in the manner of Carousel (SIGCOMM 2017) and Eiffel (NSDI 2019),
//! make every decision O(1).

mod apply;
mod batch;
mod bitmap;
mod calendar;
mod delays;
mod excess;
mod flow_queues;
mod marks;
mod place;
mod ring;
mod slice;
mod turns;
mod wheel;

pub use batch::READ_AHEAD;
pub use wheel::WAKES_PER_CALL;

use crate::frame::DropReason;
use crate::queue::{FramePool, QueuedFrame};
use crate::slots::Slots;
use bitmap::BucketSet;
use calendar::{Calendar, NUMBER_MAX, ParkedChain, TimerChain};
use delays::Delays;
use excess::ExcessTier;
pub(crate) use flow_queues::Effects;
use flow_queues::FlowQueues;
pub(crate) use marks::DequeueMark;
use marks::Marks;
use slice::{Life, NIL, SliceState, Tier, cost};
use slicewise_model::{DelayRange, GuaranteeParams, GuaranteedParams, MAX_DELAYS, SliceParams};
use slicewise_units::{Accounting, Duration, FrameLengths, Instant};
use wheel::Wheel;

/// Identifies a slice of a [`Guaranteed`] scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SliceId(u32);

impl SliceId {
    /// The slice at position `index`: slices are numbered in the order they were added, and numbers of
    /// removed ones are reused.
    #[must_use]
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// Its position.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0
    }
}

/// Why a slice cannot be added, changed or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SliceError {
    /// There is no such slice, or it is being drained.
    #[error("there is no slice {0}")]
    Unknown(u32),
    /// Slices have too many distinct delays.
    #[error("slices have {MAX_DELAYS} distinct delays, the maximum: use one of those")]
    TooManyDelays,
    /// Its tenant is not one of the scheduler's.
    #[error("unknown tenant {0}")]
    UnknownTenant(u32),
    /// No more tenants can be numbered.
    #[error("there are {0} tenants, the maximum")]
    TooManyTenants(u32),
    /// No more slices can be numbered.
    #[error("there are {0} slices, the maximum")]
    TooMany(u32),
}

/// State of a removed slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Removal {
    /// It is gone.
    Gone,
    /// It accepts no more frames; those waiting leave first, under the same guarantee. Its reservation
    /// may be reused only after that.
    Draining {
        /// Frames that wait.
        packets: u32,
    },
}

/// Most slices: as many as a ring can number.
const MAX_SLICES: u32 = 1 << 30;
// From now to the deadline of the longest class: half of the buckets, so that late and early deadlines
// also fit.
const _: () = assert!(DelayRange::BUCKETS_AHEAD == BucketSet::SIZE as u64 / 2);
/// Most tenants.
const MAX_TENANTS: u32 = 1 << 16;
/// Buckets of the wheel and of the parked slices are 2^n times as wide as those of deadlines, so
/// that slow slices fit, too. Only deadlines need to be exact: a slice that wakes early
/// keeps its deadline, and one that is parked up to a bucket too long loses no credit as long as
/// its PBS holds a frame and what its PIR earns in a bucket.
const COARSER: u32 = 4;
/// Parked slices checked per frame sent: more than one, so that they do not accumulate, and few, so that
/// no decision takes long.
const UNPARKED_PER_FRAME: u32 = 2;

/// The frame that leaves next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Selected {
    /// Its slice.
    pub slice: SliceId,
    /// Its lengths.
    pub lengths: FrameLengths,
    /// It leaves under its slice's guarantee, not as excess.
    pub guaranteed: bool,
    /// From then on another may be first.
    pub changes_at: Instant,
}

/// Answer of a guaranteed scheduler to a request for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// This one may leave now.
    Ready(Selected),
    /// Frames wait, but all of their slices are at their maximum until this time.
    Wait(Instant),
    /// No frame waits.
    Empty,
}

/// A scheduler of slices, each with one queue. Frames are in a [`FramePool`] that the caller
/// keeps; it must be the same in all calls.
#[derive(Debug, Clone)]
pub struct Guaranteed {
    counting: Counting,
    largest_frame: u64,
    delays: Delays,
    slices: Slots<SliceState>,
    /// First free slot in `slices`.
    free: u32,
    live: u32,
    /// Slices whose head is not eligible yet, by when it is.
    wheel: Wheel,
    /// Sum of the guaranteed rates of slices that accept frames, bit/s.
    rates: u128,
    /// Slices whose head is eligible, by its deadline.
    deadlines: Calendar<TimerChain>,
    /// Slices at their maximum, by when they may send again.
    parked: Calendar<ParkedChain>,
    excess: ExcessTier,
    flow_queues: FlowQueues,
    marks: Marks,
    backlog: u32,
    shift: u32,
    /// Number of the busy period, or of the next one.
    busy_period: u64,
    /// The busy period in which the last frame of a removed slice left, of whichever slice that was.
    drained_in: u64,
}

impl Guaranteed {
    /// A scheduler without slices. Memory for `slices` of them is reserved.
    #[must_use]
    pub fn new(params: &GuaranteedParams, slices: usize) -> Self {
        let shift = shift_of(params.delays);
        let largest_frame = largest_frame_of(params);
        Self {
            counting: Counting(params.accounting),
            largest_frame,
            delays: Delays::default(),
            slices: Slots::with_capacity(slices),
            free: NIL,
            live: 0,
            wheel: Wheel::new(shift),
            rates: 0,
            deadlines: Calendar::new(shift),
            parked: Calendar::new(shift + COARSER),
            excess: ExcessTier::new(&params.tenants, largest_frame),
            flow_queues: FlowQueues::default(),
            marks: Marks::default(),
            backlog: 0,
            shift,
            busy_period: 0,
            drained_in: 0,
        }
    }

    /// Width of a bucket: the resolution of deadlines, so a frame may leave this much later.
    #[must_use]
    pub const fn granularity(&self) -> Duration {
        Duration::from_nanos(1 << self.shift)
    }

    /// Frames waiting.
    #[must_use]
    pub const fn backlog(&self) -> u32 {
        self.backlog
    }

    /// Slices that accept frames.
    #[must_use]
    pub const fn slices(&self) -> u32 {
        self.live
    }

    /// Bytes of state per slice, without its frames.
    #[must_use]
    pub const fn bytes_per_slice() -> usize {
        // An entry of a ring, and less than that for the list of its chunks.
        size_of::<SliceState>() + 2 * size_of::<u32>()
    }

    /// Bytes of the calendars, independent of the number of slices.
    #[must_use]
    pub const fn bytes_of_calendars() -> usize {
        3 * calendar::BYTES
    }

    /// Slices with frames of which none may leave under the guarantee yet. A call wakes at most [`WAKES_PER_CALL`] of them.
    #[must_use]
    pub const fn sleeping_slices(&self) -> u32 {
        self.wheel.slices()
    }

    /// Frames waiting of one slice.
    #[must_use]
    pub fn slice_backlog(&self, id: SliceId) -> u32 {
        let slice = self.slices.get(id.0 as usize);
        slice.map_or(0, |slice| slice.packets)
    }

    /// Add a slice whose buckets are full at `now`. The admission test must have accepted it before.
    /// O(1), except when memory has to grow.
    ///
    /// # Errors
    /// Where its tenant does not exist or there are too many slices; nothing is changed then.
    pub fn add_slice(&mut self, params: &SliceParams, now: Instant) -> Result<SliceId, SliceError> {
        self.check_slice(params)?;
        let mut slice = SliceState::new(params, now.nanos());
        if let Some(guarantee) = &params.guarantee {
            slice.delay = self.delays.acquire(self.until_deadline(guarantee));
        }
        Ok(self.insert(slice))
    }

    /// Add a tenant without slices; returns its number.
    ///
    /// # Errors
    /// If there are too many.
    pub fn add_tenant(&mut self, weight: u32) -> Result<u32, SliceError> {
        let number = u32::try_from(self.excess.tenants()).unwrap_or(u32::MAX);
        if number >= MAX_TENANTS {
            return Err(SliceError::TooManyTenants(MAX_TENANTS));
        }
        self.excess.add_tenant(weight);
        Ok(number)
    }

    /// Give a tenant another weight, from its next turn on.
    pub fn set_tenant_weight(&mut self, tenant: u32, weight: u32) {
        self.excess.set_tenant_weight(tenant, weight);
    }

    /// Checks that a slice may belong to its tenant, and have its delay.
    pub(crate) fn check_params(&self, params: &SliceParams) -> Result<(), SliceError> {
        if params.tenant as usize >= self.excess.tenants() {
            return Err(SliceError::UnknownTenant(params.tenant));
        }
        let until_deadline = params
            .guarantee
            .map(|guarantee| self.until_deadline(&guarantee));
        if until_deadline.is_some_and(|nanos| self.delays.find(nanos).is_none()) {
            return Err(SliceError::TooManyDelays);
        }
        Ok(())
    }

    /// D of a guarantee, ns: its delay is D and the width of a bucket.
    fn until_deadline(&self, guarantee: &GuaranteeParams) -> u64 {
        (guarantee.delay - self.granularity()).nanos()
    }

    /// Checks that [`add_slice`](Self::add_slice) would succeed.
    pub(crate) fn check_slice(&self, params: &SliceParams) -> Result<(), SliceError> {
        self.check_params(params)?;
        if self.live >= MAX_SLICES {
            return Err(SliceError::TooMany(MAX_SLICES));
        }
        Ok(())
    }

    /// The link has at least the rate that is guaranteed to slices together.
    pub(super) fn set_rates(&mut self, rates: u128) {
        self.rates = rates;
        let rate = u64::try_from(rates).unwrap_or(u64::MAX);
        self.wheel.set_frame_time(self.largest_frame, rate);
    }

    fn insert(&mut self, slice: SliceState) -> SliceId {
        self.set_rates(self.rates + u128::from(slice.committed.rate()));
        self.excess.add_slice(slice.tenant);
        self.live += 1;
        let id = self.free;
        if id != NIL {
            self.free = self.slices[id as usize].head;
            self.slices[id as usize] = slice;
            return SliceId(id);
        }
        self.slices.push(slice);
        SliceId(u32::try_from(self.slices.len() - 1).unwrap_or(NIL))
    }

    #[inline]
    fn counted(&self, lengths: FrameLengths) -> u64 {
        self.counting.bytes(lengths)
    }

    /// Checks that guarantees were computed for frames of these lengths.
    pub(crate) fn check_length(&self, lengths: FrameLengths) -> Result<(), DropReason> {
        if self.counted(lengths) > self.largest_frame {
            return Err(DropReason::FrameTooLong);
        }
        Ok(())
    }

    /// Put a frame that has just arrived at the end of its slice's queue. O(1).
    ///
    /// # Errors
    /// Why it must be dropped: the slice does not exist (any more), the frame is too long, or its queue
    /// or the pool is full.
    pub fn try_enqueue(
        &mut self,
        id: SliceId,
        queued: QueuedFrame,
        pool: &mut FramePool,
    ) -> Result<(), DropReason> {
        let lengths = queued.lengths();
        let bytes = self.counted(lengths);
        let slice = match self.slices.get_mut(id.0 as usize) {
            Some(slice) if slice.life == Life::Live => slice,
            _ => return Err(DropReason::SliceRemoved),
        };
        if bytes > self.largest_frame {
            return Err(DropReason::FrameTooLong);
        }
        if let Some(index) = slice.flow_queue() {
            return self.enqueue_by_flow(id.0, index, queued, pool);
        }
        if !slice.has_room(lengths.l2_bytes) {
            return Err(DropReason::QueueFull);
        }
        let slot = pool.try_take(queued).ok_or(DropReason::BufferFull)?;
        self.backlog += 1;
        let was_empty = slice.push(slot, lengths.l2_bytes, pool);
        if !was_empty {
            return Ok(());
        }
        let now = queued.arrival().nanos();
        self.place(id.0, now, cost(bytes), now);
        Ok(())
    }

    /// The frame that would leave at `now`. O(1): at most [`WAKES_PER_CALL`] slices are woken.
    pub fn select(&mut self, pool: &FramePool, now: Instant) -> Selection {
        if self.backlog == 0 {
            return Selection::Empty;
        }
        let now = now.nanos();
        self.wake_eligible(now);
        let next_eligible = self.wheel.next_time();
        let changes_at = next_eligible.map_or(Instant::MAX, Instant::from_nanos);
        let (id, guaranteed) = match self.deadlines.front() {
            Some(id) => (id, true),
            None => match self.select_excess(pool, now) {
                Some(id) => (id, false),
                None => {
                    let next_unparked = self.parked.next_time();
                    let next = next_eligible.into_iter().chain(next_unparked).min();
                    debug_assert!(
                        next.is_some_and(|next| next > now)
                            || self.wheel.has_until(self.wheel.due(now)),
                        "otherwise it would be here"
                    );
                    // At once where more slices are to be woken than one call may.
                    let next = next.map_or(u64::MAX, |next| next.max(now.saturating_add(1)));
                    return Selection::Wait(Instant::from_nanos(next));
                }
            },
        };
        let (lengths, _) = pool.head(self.slices[id as usize].head);
        Selection::Ready(Selected {
            slice: SliceId(id),
            lengths,
            guaranteed,
            changes_at,
        })
    }

    /// Returns true if a frame waits at `now` that is to leave under a guarantee, before its deadline.
    pub(crate) fn has_eligible(&mut self, now: Instant) -> bool {
        self.wake_eligible(now.nanos());
        self.is_busy(now.nanos())
    }

    /// Returns true if a slice is awake, or is to wake at `now`.
    #[inline]
    fn is_busy(&self, now: u64) -> bool {
        self.deadlines.front().is_some() || self.wheel.has_until(self.wheel.due(now))
    }

    /// The number of the busy period of the guarantee tier, in which frames are eligible all the time; none if no frame is
    /// eligible at `now`. When such a frame leaves depends on the frames that became eligible in the same busy period, and on
    /// no others.
    pub(crate) fn busy_period(&mut self, now: Instant) -> Option<u64> {
        self.has_eligible(now).then_some(self.busy_period)
    }

    /// A busy period: the last frame of each removed slice left in it or before.
    pub(crate) const fn drained_in(&self) -> u64 {
        self.drained_in
    }

    /// Take the frame that [`select`](Self::select) has just found in `slice`, under its guarantee
    /// or as excess.
    pub fn take(
        &mut self,
        slice: SliceId,
        guaranteed: bool,
        pool: &mut FramePool,
        now: Instant,
    ) -> QueuedFrame {
        if guaranteed {
            self.deadlines.remove(&mut self.slices, slice.0);
            self.serve_guaranteed(slice.0, pool, now.nanos())
        } else {
            self.serve_excess(slice.0, pool, now.nanos())
        }
    }

    /// Take the frame that leaves at `now`, if one may. O(1): at most [`WAKES_PER_CALL`] slices are woken.
    #[inline]
    pub fn dequeue(
        &mut self,
        pool: &mut FramePool,
        now: Instant,
    ) -> Option<(SliceId, QueuedFrame)> {
        let now = now.nanos();
        self.wake_eligible(now);
        if let Some(id) = self.deadlines.pop_until(&mut self.slices, NUMBER_MAX) {
            return Some((SliceId(id), self.serve_guaranteed(id, pool, now)));
        }
        if self.backlog == 0 {
            return None;
        }
        let id = self.select_excess(pool, now)?;
        Some((SliceId(id), self.serve_excess(id, pool, now)))
    }

    /// Send the head of a slice that was eligible, and has left the deadline queue.
    #[inline]
    fn serve_guaranteed(&mut self, id: u32, pool: &mut FramePool, now: u64) -> QueuedFrame {
        let queued = self.pop(id, pool, now);
        let price = cost(self.counted(queued.lengths()));
        let slice = &mut self.slices[id as usize];
        slice.tier = Tier::Idle;
        // Clocked by eligibility, not by departure: the wait of a frame does not penalise those behind
        // it.
        slice.committed.pay(price);
        if slice.peak.exists() {
            slice.peak.spend(now, price);
        }
        self.place_next(id, pool, now);
        queued
    }

    /// Send the head of a slice whose turn it is.
    fn serve_excess(&mut self, id: u32, pool: &mut FramePool, now: u64) -> QueuedFrame {
        let queued = self.pop(id, pool, now);
        let bytes = self.counted(queued.lengths());
        let next = self.slices[id as usize].head;
        let next_bytes = (next != NIL).then(|| self.counted(pool.head(next).0));
        let slice = &mut self.slices[id as usize];
        if slice.committed.exists() {
            // Tokens stay. But a frame that was not eligible until now cannot have been so before: a
            // deadline in the past would claim unreserved capacity.
            slice.committed.rewind(now);
        }
        if slice.peak.exists() {
            slice.peak.spend(now, cost(bytes));
        }
        self.excess.charge(slice, bytes, next_bytes);
        self.place_next(id, pool, now);
        queued
    }

    #[inline]
    fn pop(&mut self, id: u32, pool: &mut FramePool, now: u64) -> QueuedFrame {
        if let Some(index) = self.slices[id as usize].flow_queue()
            && let Some(queued) = self.pop_staged(id, index, pool, Instant::from_nanos(now))
        {
            return queued;
        }
        self.backlog -= 1;
        self.slices[id as usize].pop(pool)
    }

    #[inline]
    fn place_next(&mut self, id: u32, pool: &FramePool, now: u64) {
        if self.marks.is_watching() {
            self.on_sent_watched(id, pool);
        }
        if self.slices[id as usize].head == NIL {
            self.on_emptied(id);
        } else {
            self.place_waiting(id, pool, now);
        }
        if !self.is_busy(now) {
            self.busy_period += 1;
        }
    }
}

/// Buckets of deadlines are 2^n ns wide.
fn shift_of(delays: DelayRange) -> u32 {
    delays.bucket_width().nanos().trailing_zeros()
}

fn largest_frame_of(params: &GuaranteedParams) -> u64 {
    params.largest_frame.bytes().max(1)
}

/// Counts frames as the rates do; almost always their plain length.
#[derive(Debug, Clone, Copy)]
struct Counting(Accounting);

impl Counting {
    #[inline]
    fn bytes(self, lengths: FrameLengths) -> u64 {
        if self.0 == Accounting::L2 {
            u64::from(lengths.l2_bytes)
        } else {
            self.0.count(lengths).bytes()
        }
    }
}
