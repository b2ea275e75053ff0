//! Class-based minimums with sharing of spare capacity (weighted fair service in two tiers).
//!
//! First tier: children with a guaranteed minimum and credit for it, in turn. Second tier, when
//! no such child has a frame it may send: all children by deficit round robin on their weights.
//! Service from the second tier does not consume credit of the first, as in HFSC (Stoica, Zhang & Ng,
//! SIGCOMM 1997): a class is not penalised for having used spare capacity.
//!
//! This is the "minimum / excess" pair of the three-parameter schedulers in routers; the third,
//! the maximum, is a [`Shaper`](super::shaper::Shaper) on the child.

use super::deficit_round_robin::{self, DeficitRoundRobin};
use super::{Discipline, NodeId, Peek, Tree};
use crate::bucket::TokenBucket;
use crate::queue::FramePool;
use slicewise_model::Rate;
use slicewise_units::{ByteCount, FrameLengths, Instant};

/// Share of one child.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    /// Guaranteed rate and its burst.
    pub minimum: Option<(Rate, ByteCount)>,
    /// Share of the excess relative to the others.
    pub weight: u32,
}

#[derive(Debug, Clone)]
struct Minimum {
    position: u32,
    bucket: TokenBucket,
    backlogged: bool,
}

/// State of a two-tier node.
#[derive(Debug, Clone)]
pub struct MinimumShare {
    minimums: Vec<Minimum>,
    /// Position of a child → its entry in `minimums`.
    minimum_of: Vec<Option<u32>>,
    /// Entry of `minimums` whose turn is next.
    next: usize,
    excess: DeficitRoundRobin,
    /// The entry charged for the frame last found; `None` if it was excess.
    paying: Option<usize>,
}

impl MinimumShare {
    /// One child per share; buckets are full at `now`.
    #[must_use]
    pub fn new(shares: &[Share], now: Instant) -> Self {
        let mut minimums = Vec::new();
        let mut minimum_of = Vec::with_capacity(shares.len());
        for (position, share) in (0u32..).zip(shares) {
            minimum_of.push(share.minimum.map(|(rate, burst)| {
                let bucket = TokenBucket::full(rate, burst, now);
                minimums.push(Minimum {
                    position,
                    bucket,
                    backlogged: false,
                });
                u32::try_from(minimums.len() - 1).unwrap_or(u32::MAX)
            }));
        }
        let weights: Vec<u32> = shares.iter().map(|share| share.weight).collect();
        let excess = DeficitRoundRobin::new(&weights);
        Self {
            minimums,
            minimum_of,
            next: 0,
            excess,
            paying: None,
        }
    }

    /// Transfer credit or debt of child `position` of `old` to child `to` of this node.
    pub(crate) fn resume_child(&mut self, to: u32, old: &Self, position: u32, now: Instant) {
        let entry = |node: &Self, p: u32| node.minimum_of.get(p as usize).copied().flatten();
        if let (Some(new), Some(old_entry)) = (entry(self, to), entry(old, position)) {
            let old_bucket = &old.minimums[old_entry as usize].bucket;
            self.minimums[new as usize]
                .bucket
                .resume_from(old_bucket, now);
        }
    }

    fn minimum_mut(&mut self, position: u32) -> Option<&mut Minimum> {
        let entry = (*self.minimum_of.get(position as usize)?)?;
        self.minimums.get_mut(entry as usize)
    }

    pub(super) fn on_backlogged(&mut self, position: u32) {
        if let Some(minimum) = self.minimum_mut(position) {
            minimum.backlogged = true;
        }
        self.excess.on_backlogged(position);
    }

    pub(super) fn on_departure(&mut self, position: u32, lengths: FrameLengths, emptied: bool) {
        match self.paying.take() {
            Some(entry) => {
                let bucket = &mut self.minimums[entry].bucket;
                let cost = bucket.cost(lengths);
                bucket.spend(cost);
                self.next = (entry + 1) % self.minimums.len();
            }
            None => self.excess.charge(position, lengths),
        }
        if emptied {
            if let Some(minimum) = self.minimum_mut(position) {
                minimum.backlogged = false;
            }
            self.excess.on_emptied(position);
        }
    }
}

/// O(classes with a minimum), of which devices hold at most a few hundred.
pub(super) fn peek(tree: &mut Tree, id: NodeId, pool: &mut FramePool, now: Instant) -> Peek {
    let Discipline::MinimumShare(node) = tree.discipline_mut(id) else {
        return Peek::Empty;
    };
    node.paying = None;
    let (count, first) = (node.minimums.len(), node.next);
    // When a minimum passed over here may come first after all.
    let mut changes_at = Instant::MAX;
    for step in 0..count {
        let entry = (first + step) % count;
        let Discipline::MinimumShare(node) = tree.discipline_mut(id) else {
            return Peek::Empty;
        };
        let minimum = &mut node.minimums[entry];
        if !minimum.backlogged {
            continue;
        }
        minimum.bucket.refill(now);
        let position = minimum.position;
        let below = tree.peek_child(id, position, pool, now);
        let Discipline::MinimumShare(node) = tree.discipline_mut(id) else {
            return Peek::Empty;
        };
        match below {
            Peek::Ready(head) => {
                let bucket = &node.minimums[entry].bucket;
                let needed = bucket.cost(head.lengths).min(bucket.burst());
                if bucket.credit() >= needed {
                    node.paying = Some(entry);
                    return Peek::Ready(head.until(changes_at));
                }
                let earned = bucket.ready_at(needed).unwrap_or(Instant::MAX);
                changes_at = changes_at.min(earned).min(head.changes_at);
            }
            Peek::Wait(until) => changes_at = changes_at.min(until),
            Peek::Empty => {}
        }
    }
    let excess = deficit_round_robin::peek_ring(tree, id, pool, now, |d| match d {
        Discipline::MinimumShare(node) => Some(&mut node.excess),
        _ => None,
    });
    match excess {
        Peek::Ready(head) => Peek::Ready(head.until(changes_at)),
        waiting => waiting,
    }
}
