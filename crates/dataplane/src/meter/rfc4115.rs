//! The two-rate three-colour marker with efficient handling of in-profile traffic (RFC 4115).

use crate::bucket::TokenBucket;
use slicewise_model::{Colour, Rate};
use slicewise_units::{ByteCount, FrameLengths, Instant};

/// Two independent buckets, each with its own rate; green spends from the committed bucket alone,
/// yellow from the excess bucket alone (RFC 4115, section 3). Unlike in RFC 2698, green never consumes
/// tokens of yellow, and a burst of yellow never affects green traffic.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rfc4115 {
    committed: TokenBucket,
    excess: TokenBucket,
}

impl Rfc4115 {
    pub(super) fn new(cir: Rate, cbs: ByteCount, eir: Rate, ebs: ByteCount, now: Instant) -> Self {
        Self {
            committed: TokenBucket::full(cir, cbs, now),
            excess: TokenBucket::full(eir, ebs, now),
        }
    }

    #[inline]
    pub(super) fn colour(&mut self, frame: FrameLengths, incoming: Colour, now: Instant) -> Colour {
        self.committed.refill(now);
        self.excess.refill(now);
        let committed_cost = self.committed.cost(frame);
        if incoming == Colour::Green && self.committed.try_spend(committed_cost) {
            return Colour::Green;
        }
        let excess_cost = self.excess.cost(frame);
        if incoming != Colour::Red && self.excess.try_spend(excess_cost) {
            return Colour::Yellow;
        }
        Colour::Red
    }

    pub(super) fn resume_from(&mut self, old: &Self, now: Instant) {
        self.committed.resume_from(&old.committed, now);
        self.excess.resume_from(&old.excess, now);
    }
}
