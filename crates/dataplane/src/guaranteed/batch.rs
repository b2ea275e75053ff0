//! Bursts: the same decisions, with the memory they will need read ahead.
//!
//! With many slices the cost of a frame is that of waiting for memory. A burst names its slices
//! in advance, so their cache lines can be fetched side by side instead of one after another. A
//! plain load does that: processors run far enough ahead of it, and it needs no `unsafe`.

use super::{Guaranteed, SliceId};
use crate::frame::{DropReason, Frame};
use crate::queue::{FramePool, QueuedFrame};
use slicewise_units::Instant;
use std::hint::black_box;

/// A frame of a burst.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// Its slice.
    pub slice: SliceId,
    /// The frame.
    pub frame: Frame,
    /// Index of the class it is counted under.
    pub class: u32,
}

/// A frame that left in a burst.
#[derive(Debug, Clone, Copy)]
pub struct Departure {
    /// Its slice.
    pub slice: SliceId,
    /// The frame.
    pub queued: QueuedFrame,
}

/// How many frames are read ahead for at a time: about as many lines as a core fetches at once.
const READ_AHEAD: usize = 16;

impl Guaranteed {
    /// [`try_enqueue`](Self::try_enqueue) each of `arrivals` in order; `on_drop` learns which
    /// were not accepted, and why.
    pub fn enqueue_burst(
        &mut self,
        arrivals: &[Arrival],
        pool: &mut FramePool,
        now: Instant,
        mut on_drop: impl FnMut(&Arrival, DropReason),
    ) {
        for chunk in arrivals.chunks(READ_AHEAD) {
            self.read_ahead(chunk.iter().map(|arrival| arrival.slice.index()), pool);
            for arrival in chunk {
                let accepted =
                    self.try_enqueue(arrival.slice, arrival.frame, arrival.class, pool, now);
                if let Err(reason) = accepted {
                    on_drop(arrival, reason);
                }
            }
        }
    }

    /// Take up to `limit` frames that leave at `now`, one after another, and append them to
    /// `departures`; returns how many.
    pub fn dequeue_burst(
        &mut self,
        limit: usize,
        departures: &mut Vec<Departure>,
        pool: &mut FramePool,
        now: Instant,
    ) -> usize {
        let mut taken = 0;
        while taken < limit {
            let chunk = (limit - taken).min(READ_AHEAD);
            self.read_ahead_next(chunk, pool);
            for _ in 0..chunk {
                let Some((slice, queued)) = self.dequeue(pool, now) else {
                    return taken;
                };
                departures.push(Departure { slice, queued });
                taken += 1;
            }
        }
        taken
    }

    /// The slices that are likely to be served next.
    fn read_ahead_next(&mut self, count: usize, pool: &FramePool) {
        let mut next = [0; READ_AHEAD];
        let mut found = 0;
        for id in self.deadlines.heads().take(count) {
            next[found] = id;
            found += 1;
        }
        for turns in 0u32.. {
            if found == count {
                break;
            }
            let Some(id) = self.excess.ahead(turns) else {
                break;
            };
            next[found] = id;
            found += 1;
        }
        self.read_ahead(next[..found].iter().copied(), pool);
    }

    /// Fetch slices, and then the frames at both ends of their queues.
    fn read_ahead(&self, slices: impl Iterator<Item = u32> + Clone, pool: &FramePool) {
        let mut ends = [(0, 0); READ_AHEAD];
        let mut lines = 0;
        for (end, id) in ends.iter_mut().zip(slices.clone()) {
            if let Some(slice) = self.slices.get(id as usize) {
                *end = (slice.head, slice.tail);
                lines ^= slice.committed.fetch();
            }
        }
        for (head, tail) in ends {
            lines ^= pool.fetch(head) ^ pool.fetch(tail);
        }
        black_box(lines);
    }
}
