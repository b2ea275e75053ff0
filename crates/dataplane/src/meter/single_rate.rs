//! The single-rate two-colour meter: one token bucket.

use crate::bucket::TokenBucket;
use slicewise_model::{Colour, Rate};
use slicewise_units::{ByteCount, FrameLengths, Instant};

/// Green while the committed bucket covers the frame, red beyond.
#[derive(Debug, Clone, Copy)]
pub(super) struct SingleRate {
    committed: TokenBucket,
}

impl SingleRate {
    pub(super) fn new(cir: Rate, cbs: ByteCount, now: Instant) -> Self {
        Self {
            committed: TokenBucket::full(cir, cbs, now),
        }
    }

    #[inline]
    pub(super) fn colour(&mut self, frame: FrameLengths, incoming: Colour, now: Instant) -> Colour {
        self.committed.refill(now);
        let cost = self.committed.cost(frame);
        // There is no yellow here: frames that are not green on arrival can only be red.
        if incoming == Colour::Green && self.committed.try_spend(cost) {
            Colour::Green
        } else {
            Colour::Red
        }
    }

    pub(super) fn resume_from(&mut self, old: &Self, now: Instant) {
        self.committed.resume_from(&old.committed, now);
    }
}
