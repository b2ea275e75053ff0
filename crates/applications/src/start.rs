//! When connections begin.

use slicewise_traffic::Random;
use slicewise_units::{Duration, Instant};

/// Streams of random numbers of starts: above those of connections.
const STREAMS: u64 = 1 << 32;

/// When an application begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// No connection begins before.
    pub at: Instant,
    /// Each begins later by a random part of this, uniform from zero, so that no result depends on connections that began in step.
    pub spread: Duration,
}

impl From<Instant> for Start {
    fn from(at: Instant) -> Self {
        let spread = Duration::ZERO;
        Self { at, spread }
    }
}

impl Start {
    /// When a connection begins, the same for the same `seed`.
    pub(crate) fn of(&self, connection: u32, seed: u64) -> Instant {
        let bound = self.spread.nanos().saturating_add(1);
        let mut random = Random::stream(seed, STREAMS + u64::from(connection));
        self.at + Duration::from_nanos(random.below(bound))
    }
}
