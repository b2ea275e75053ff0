//! Class-based minimums with sharing of spare capacity (weighted fair service in two tiers).
//!
//! First tier: children with a guaranteed minimum and credit for it, in turn. Second tier, when
//! no such child has a frame it may send: all children by deficit round robin on their weights.
//! Service from the second tier does not consume credit of the first, as in HFSC (Stoica, Zhang & Ng,
//! SIGCOMM 1997): a class is not penalised for having used spare capacity.
//!
//! This is the "minimum / excess" pair of the three-parameter schedulers in routers; the third,
//! the maximum, is a [`Shaper`](super::shaper::Shaper) on the child.

use super::choice::{Offers, Step};
use super::deficit_round_robin::DeficitRoundRobin;
use crate::bucket::TokenBucket;
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
    search: Search,
}

/// How far a decision has come, while it waits for the offer of a child.
#[derive(Debug, Clone, Copy)]
struct Search {
    /// Minimums tried.
    tried: usize,
    /// When one that was passed over may come first after all.
    earliest: Instant,
}

impl Search {
    const START: Self = Self {
        tried: 0,
        earliest: Instant::MAX,
    };
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
            search: Search::START,
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

    pub(super) fn on_backlogged(&mut self, position: u32) -> bool {
        if let Some(minimum) = self.minimum_mut(position) {
            minimum.backlogged = true;
        }
        self.excess.on_backlogged(position)
    }

    #[inline(never)]
    pub(super) fn on_departure(
        &mut self,
        position: u32,
        lengths: FrameLengths,
        emptied: bool,
        now: Instant,
    ) -> bool {
        match self.paying.take() {
            Some(entry) => {
                self.minimums[entry].bucket.charge(lengths, now);
                self.next = self.wrapped(entry + 1);
            }
            None => self.excess.charge(position, lengths),
        }
        emptied && self.on_emptied(position)
    }

    /// A child has no frames left. Returns whether it was the last.
    pub(super) fn on_emptied(&mut self, position: u32) -> bool {
        if let Some(minimum) = self.minimum_mut(position) {
            minimum.backlogged = false;
        }
        self.excess.on_emptied(position)
    }

    /// O(classes with a minimum), of which devices hold at most a few hundred.
    #[inline(always)]
    pub(super) fn select(&mut self, offers: Offers<'_>) -> Step {
        let Search {
            mut tried,
            mut earliest,
        } = self.search;
        while tried < self.minimums.len() {
            let entry = self.wrapped(self.next + tried);
            let minimum = &mut self.minimums[entry];
            if minimum.backlogged {
                let Some(offer) = offers.of(minimum.position) else {
                    self.search = Search { tried, earliest };
                    return Step::ask(minimum.position);
                };
                let mut earned = offer.until;
                if offer.is_ready() {
                    let lengths = offers.head(offer).lengths;
                    let Some(covered) = minimum.bucket.wait_until(lengths, offers.now) else {
                        self.paying = Some(entry);
                        self.search = Search::START;
                        return Step::answer(offer.until(earliest));
                    };
                    earned = earned.min(covered);
                }
                earliest = earliest.min(earned);
            }
            tried += 1;
        }
        self.search = Search { tried, earliest };
        let step = self.excess.select(offers);
        let Ok(offer) = step.answered() else {
            return step;
        };
        self.paying = None;
        self.search = Search::START;
        Step::answer(if offer.is_ready() {
            offer.until(earliest)
        } else {
            offer
        })
    }

    /// An entry counted on from the last to the first.
    const fn wrapped(&self, entry: usize) -> usize {
        if entry < self.minimums.len() {
            entry
        } else {
            entry - self.minimums.len()
        }
    }
}
