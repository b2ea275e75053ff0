//! Slices in time order: a calendar of buckets, each a list through the slices themselves.
//!
//! A ring of [`BucketSet::SIZE`] buckets of 2^n ns each. Within a bucket slices are in arrival order;
//! [`BucketSet`] finds the next bucket. Everything is O(1). The ring starts at the earliest bucket that
//! holds a slice, so earlier times need no special case; a time beyond the end waits in the last bucket,
//! and is checked again there.

use super::bitmap::BucketSet;
use super::slice::{Links, NIL, SliceState};
use crate::slots::Slots;
use std::marker::PhantomData;

/// Chooses one of a slice's links: a slice can be in one calendar for each.
pub(super) trait Chain {
    fn links(slice: &mut SliceState) -> &mut Links;
    fn links_of(slice: &SliceState) -> &Links;
}

/// The wheel and the deadline queue: a slice is in one of them at most.
#[derive(Debug, Clone)]
pub(super) struct TimerChain;

impl Chain for TimerChain {
    fn links(slice: &mut SliceState) -> &mut Links {
        &mut slice.timer
    }

    fn links_of(slice: &SliceState) -> &Links {
        &slice.timer
    }
}

/// The parked slices.
#[derive(Debug, Clone)]
pub(super) struct ParkedChain;

impl Chain for ParkedChain {
    fn links(slice: &mut SliceState) -> &mut Links {
        &mut slice.parked
    }

    fn links_of(slice: &SliceState) -> &Links {
        &slice.parked
    }
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    head: u32,
    tail: u32,
}

impl Bucket {
    const EMPTY: Self = Self {
        head: NIL,
        tail: NIL,
    };
}

/// The ring; its fixed size avoids bounds checks.
type Buckets = [Bucket; BucketSet::SIZE];

/// Slices by time.
#[derive(Debug, Clone)]
pub(super) struct Calendar<C> {
    chain: PhantomData<C>,
    shift: u32,
    /// Number of the earliest bucket that holds a slice (time / width); [`EMPTY`] if none does.
    first: u64,
    /// Largest number used since it was last empty.
    last: u64,
    buckets: Box<Buckets>,
    occupied: BucketSet,
}

/// Mask of a bucket's index in the ring.
const PLACE: u64 = BucketSet::SIZE as u64 - 1;
/// After all numbers.
const EMPTY: u64 = u64::MAX;
/// The largest distinct number, so that sums of numbers fit.
pub(super) const NUMBER_MAX: u64 = u64::MAX / 2;
/// Memory of a calendar: its buckets, and a bit for each.
pub(super) const BYTES: usize = size_of::<Buckets>() + BucketSet::SIZE / 8;

impl<C: Chain> Calendar<C> {
    /// An empty calendar of buckets 2^`shift` ns wide.
    pub(super) fn new(shift: u32) -> Self {
        let buckets = vec![Bucket::EMPTY; BucketSet::SIZE].into_boxed_slice();
        let Ok(buckets) = Box::<Buckets>::try_from(buckets) else {
            unreachable!("it was made in this size");
        };
        Self {
            chain: PhantomData,
            shift,
            first: EMPTY,
            last: 0,
            buckets,
            occupied: BucketSet::new(),
        }
    }

    /// Number of the bucket of `time`.
    #[inline]
    pub(super) const fn number(&self, time: u64) -> u64 {
        time >> self.shift
    }

    /// Start of the earliest bucket that holds a slice, ns.
    #[inline]
    pub(super) fn next_time(&self) -> Option<u64> {
        (self.first != EMPTY).then(|| self.first << self.shift)
    }

    /// Returns true if a slice is in a bucket numbered at most `number`.
    #[inline]
    pub(super) const fn has_until(&self, number: u64) -> bool {
        self.first <= number
    }

    /// The slice that is first.
    #[inline]
    pub(super) fn front(&self) -> Option<u32> {
        (self.first != EMPTY).then(|| self.buckets[place(self.first)].head)
    }

    /// Put slice `id` at the end of the bucket numbered `number`, or of the nearest existing one.
    ///
    /// Nothing is inserted further ahead of `now` than the length of the ring, so a later arrival that
    /// is due earlier, but not before now, always gets its own bucket.
    #[inline]
    pub(super) fn insert(
        &mut self,
        slices: &mut Slots<SliceState>,
        id: u32,
        number: u64,
        now: u64,
    ) {
        let number = number.min(self.number(now) + PLACE).min(NUMBER_MAX);
        let number = if self.first == EMPTY {
            self.first = number;
            self.last = number;
            number
        } else if number < self.first {
            let number = number.max(self.last.saturating_sub(PLACE));
            self.first = number;
            number
        } else {
            number.min(self.first + PLACE)
        };
        self.last = self.last.max(number);
        let at = place(number);
        let bucket = &mut self.buckets[at];
        let previous = bucket.tail;
        bucket.tail = id;
        if previous == NIL {
            bucket.head = id;
            self.occupied.insert(at);
        } else {
            C::links(&mut slices[previous as usize]).next = id;
        }
        *C::links(&mut slices[id as usize]) = Links {
            next: NIL,
            previous,
            bucket: u32::try_from(at).unwrap_or(NIL),
        };
    }

    /// Take slice `id`, which is in this calendar, out of it.
    pub(super) fn remove(&mut self, slices: &mut Slots<SliceState>, id: u32) {
        let links = *C::links(&mut slices[id as usize]);
        let at = place(u64::from(links.bucket));
        let bucket = &mut self.buckets[at];
        // The `previous` of a head is stale: see `pop_until`.
        if bucket.head == id {
            bucket.head = links.next;
        } else {
            C::links(&mut slices[links.previous as usize]).next = links.next;
        }
        if bucket.tail == id {
            bucket.tail = if bucket.head == NIL {
                NIL
            } else {
                links.previous
            };
        } else {
            C::links(&mut slices[links.next as usize]).previous = links.previous;
        }
        let emptied = bucket.head == NIL;
        self.on_removed(at, emptied);
    }

    /// Take the first slice out, where its bucket is numbered at most `number`.
    #[inline]
    pub(super) fn pop_until(&mut self, slices: &mut Slots<SliceState>, number: u64) -> Option<u32> {
        if !self.has_until(number) {
            return None;
        }
        let at = place(self.first);
        let bucket = &mut self.buckets[at];
        let id = bucket.head;
        // The next slice is not touched, though it is the head now: it need not be in the cache.
        bucket.head = C::links(&mut slices[id as usize]).next;
        let emptied = bucket.head == NIL;
        if emptied {
            bucket.tail = NIL;
        }
        self.on_removed(at, emptied);
        Some(id)
    }

    #[inline]
    fn on_removed(&mut self, at: usize, emptied: bool) {
        if !emptied {
            return;
        }
        self.occupied.remove(at);
        if at == place(self.first) {
            let ahead = self.occupied.first_from(at);
            let next = ahead.or_else(|| self.occupied.first_from(0));
            self.first = next.map_or(EMPTY, |next| self.number_at(next));
        }
    }

    /// Number of the bucket that a slice with these links is in.
    pub(super) fn number_of(&self, links: &Links) -> u64 {
        self.number_at(links.bucket as usize)
    }

    /// Number of the bucket at a place, which is not before the first.
    #[inline]
    fn number_at(&self, at: usize) -> u64 {
        let ahead = (at as u64).wrapping_sub(self.first) & PLACE;
        self.first + ahead
    }

    /// The slices in buckets numbered at most `number`, in order. For reading ahead.
    pub(super) fn slices_until<'a>(
        &'a self,
        slices: &'a Slots<SliceState>,
        number: u64,
    ) -> impl Iterator<Item = u32> + 'a {
        let mut bucket = self.has_until(number).then(|| place(self.first));
        let mut next = bucket.map_or(NIL, |at| self.buckets[at].head);
        std::iter::from_fn(move || {
            if next == NIL {
                bucket = self
                    .occupied
                    .first_from(bucket? + 1)
                    .filter(|&at| self.number_at(at) <= number);
                next = self.buckets[bucket?].head;
            }
            let id = next;
            next = slices
                .get(id as usize)
                .map_or(NIL, |slice| C::links_of(slice).next);
            Some(id)
        })
    }
}

#[inline]
fn place(number: u64) -> usize {
    // Below 2^18, whatever the size of a usize.
    usize::try_from(number & PLACE).unwrap_or(0)
}

#[cfg(test)]
mod tests;
