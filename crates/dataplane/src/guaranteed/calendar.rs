//! Slices in order of time: a calendar of buckets, each a list through the slices themselves.
//!
//! A ring of [`BucketSet::SIZE`] buckets of 2^n ns each. Within a bucket slices are in order of
//! arrival; which bucket is next is found by [`BucketSet`]. Everything is O(1). The ring starts
//! at the earliest bucket that holds a slice, so a time before that is no special case; a time
//! beyond the end waits in the last bucket, and whoever finds it there looks at the clock.

use super::bitmap::BucketSet;
use super::slice::{NIL, SliceState};
use std::marker::PhantomData;

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

/// Chooses one of a slice's links: a slice can be in one calendar for each.
pub(super) trait Chain {
    fn links(slice: &mut SliceState) -> &mut Links;
}

/// The wheel and the deadline queue: a slice is in one of them at most.
#[derive(Debug, Clone)]
pub(super) struct TimerChain;

impl Chain for TimerChain {
    fn links(slice: &mut SliceState) -> &mut Links {
        &mut slice.timer
    }
}

/// The parked slices.
#[derive(Debug, Clone)]
pub(super) struct ParkedChain;

impl Chain for ParkedChain {
    fn links(slice: &mut SliceState) -> &mut Links {
        &mut slice.parked
    }
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    head: u32,
    tail: u32,
}

/// Slices by time.
#[derive(Debug, Clone)]
pub(super) struct Calendar<C> {
    chain: PhantomData<C>,
    shift: u32,
    buckets: Box<[Bucket]>,
    occupied: BucketSet,
    slices: u32,
    /// Number of the earliest bucket that holds a slice (time / width). Means nothing while empty.
    first: u64,
    /// Largest number used since it was last empty.
    last: u64,
}

/// Mask of a bucket's place in the ring.
const PLACE: u64 = BucketSet::SIZE as u64 - 1;

impl<C: Chain> Calendar<C> {
    /// An empty calendar of buckets 2^`shift` ns wide.
    pub(super) fn new(shift: u32) -> Self {
        let empty = Bucket {
            head: NIL,
            tail: NIL,
        };
        Self {
            chain: PhantomData,
            shift,
            buckets: vec![empty; BucketSet::SIZE].into(),
            occupied: BucketSet::new(),
            slices: 0,
            first: 0,
            last: 0,
        }
    }

    /// Number of the bucket of `time`.
    pub(super) const fn number(&self, time: u64) -> u64 {
        time >> self.shift
    }

    /// Start of the earliest bucket that holds a slice, ns.
    pub(super) fn next_time(&self) -> Option<u64> {
        (self.slices > 0).then(|| self.first << self.shift)
    }

    /// The slice that is first.
    pub(super) fn front(&self) -> Option<u32> {
        (self.slices > 0).then(|| self.buckets[place(self.first)].head)
    }

    /// Put slice `id` at the end of the bucket numbered `number`, or of the nearest there is.
    pub(super) fn insert(&mut self, slices: &mut [SliceState], id: u32, number: u64) {
        let number = if self.slices == 0 {
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
        self.slices += 1;
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
    pub(super) fn remove(&mut self, slices: &mut [SliceState], id: u32) {
        let links = C::links(&mut slices[id as usize]);
        let Links {
            next,
            previous,
            bucket: at,
        } = std::mem::replace(links, Links::NONE);
        let at = at as usize;
        let bucket = &mut self.buckets[at];
        if next == NIL {
            bucket.tail = previous;
        } else {
            C::links(&mut slices[next as usize]).previous = previous;
        }
        if previous == NIL {
            bucket.head = next;
        } else {
            C::links(&mut slices[previous as usize]).next = next;
        }
        self.slices -= 1;
        if bucket.head == NIL {
            self.occupied.remove(at);
            if self.slices > 0 && at == place(self.first) {
                self.first = self.number_at(self.following(at));
            }
        }
    }

    /// Take the first slice out, where its bucket is numbered at most `number`.
    pub(super) fn pop_until(&mut self, slices: &mut [SliceState], number: u64) -> Option<u32> {
        if self.slices == 0 || self.first > number {
            return None;
        }
        let id = self.buckets[place(self.first)].head;
        self.remove(slices, id);
        Some(id)
    }

    /// Number of the bucket slice `links` is in.
    pub(super) fn number_of(&self, links: &Links) -> u64 {
        self.number_at(links.bucket as usize)
    }

    /// Heads of the buckets from the first on: who is likely to come next. For reading ahead.
    pub(super) fn heads(&self) -> impl Iterator<Item = u32> {
        let mut left = self.slices;
        let mut at = place(self.first);
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let head = self.buckets[at].head;
            at = self.occupied.first_from(at + 1)?;
            Some(head)
        })
    }

    /// The place of the next occupied bucket, round the ring.
    fn following(&self, at: usize) -> usize {
        let ahead = self.occupied.first_from(at);
        ahead.or_else(|| self.occupied.first_from(0)).unwrap_or(at)
    }

    /// Number of the bucket at a place, which is not before the first.
    fn number_at(&self, at: usize) -> u64 {
        let ahead = (at as u64).wrapping_sub(self.first) & PLACE;
        self.first + ahead
    }
}

fn place(number: u64) -> usize {
    // Below 2^18, whatever the size of a usize.
    usize::try_from(number & PLACE).unwrap_or(0)
}
