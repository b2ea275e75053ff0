//! The two-rate three-colour marker (RFC 2698).

use crate::bucket::TokenBucket;
use slicewise_model::{Colour, Rate};
use slicewise_units::{ByteCount, FrameLengths, Instant};

/// Two independent buckets; green spends from both, yellow from the peak bucket alone, red from
/// neither (RFC 2698, section 3).
#[derive(Debug, Clone, Copy)]
pub(super) struct TrTcm {
    committed: TokenBucket,
    peak: TokenBucket,
}

impl TrTcm {
    pub(super) fn new(cir: Rate, cbs: ByteCount, pir: Rate, pbs: ByteCount, now: Instant) -> Self {
        Self {
            committed: TokenBucket::full(cir, cbs, now),
            peak: TokenBucket::full(pir, pbs, now),
        }
    }

    #[inline]
    pub(super) fn colour(&mut self, frame: FrameLengths, incoming: Colour, now: Instant) -> Colour {
        self.committed.refill(now);
        self.peak.refill(now);
        let peak_cost = self.peak.cost(frame);
        if incoming == Colour::Red || !self.peak.try_spend(peak_cost) {
            return Colour::Red;
        }
        let committed_cost = self.committed.cost(frame);
        if incoming == Colour::Yellow || !self.committed.try_spend(committed_cost) {
            return Colour::Yellow;
        }
        Colour::Green
    }

    pub(super) fn resume_from(&mut self, old: &Self, now: Instant) {
        self.committed.resume_from(&old.committed, now);
        self.peak.resume_from(&old.peak, now);
    }
}
