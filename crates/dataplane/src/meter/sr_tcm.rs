//! The single-rate three-colour marker (RFC 2697).

use crate::bucket::TokenBucket;
use slicewise_model::{Colour, Rate};
use slicewise_units::{ByteCount, FrameLengths, Instant};

/// Two buckets, one rate: overflow of the committed bucket fills the excess bucket
/// (RFC 2697, section 3).
#[derive(Debug, Clone, Copy)]
pub(super) struct SrTcm {
    committed: TokenBucket,
    /// Filled explicitly; its rate only determines the cost of a frame.
    excess: TokenBucket,
}

impl SrTcm {
    pub(super) fn new(cir: Rate, cbs: ByteCount, ebs: ByteCount, now: Instant) -> Self {
        Self {
            committed: TokenBucket::full(cir, cbs, now),
            excess: TokenBucket::full(cir, ebs, now),
        }
    }

    #[inline]
    pub(super) fn colour(&mut self, frame: FrameLengths, incoming: Colour, now: Instant) -> Colour {
        let overflow = self.committed.refill_with_overflow(now);
        self.excess.deposit(overflow);
        let cost = self.committed.cost(frame);
        if incoming == Colour::Green && self.committed.try_spend(cost) {
            Colour::Green
        } else if incoming != Colour::Red && self.excess.try_spend(cost) {
            Colour::Yellow
        } else {
            Colour::Red
        }
    }

    pub(super) fn resume_from(&mut self, old: &Self, now: Instant) {
        // What the old committed bucket overflows until now belongs to the excess bucket.
        let mut old = *old;
        let overflow = old.committed.refill_with_overflow(now);
        old.excess.deposit(overflow);
        self.committed.resume_from(&old.committed, now);
        self.excess.set_credit(old.excess.credit());
    }
}
