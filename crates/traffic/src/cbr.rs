//! Constant bit rate: packets evenly spaced, without drift.

use crate::pace::{Interval, Pace};
use slicewise_units::{Duration, Instant};

/// Packets evenly spaced; each at the nanosecond below its exact time.
#[derive(Debug, Clone)]
pub struct Cbr {
    pace: Pace,
    start: Instant,
}

impl Cbr {
    /// Packets at `pace`.
    #[must_use]
    pub const fn new(pace: Pace) -> Self {
        Self {
            pace,
            start: Instant::ZERO,
        }
    }

    pub(crate) fn begin(&mut self, at: Instant) {
        self.pace.restart();
        self.start = at;
    }

    #[inline]
    pub(crate) const fn set_interval(&mut self, interval: Interval) {
        self.pace.set_interval(interval);
    }

    #[inline]
    pub(crate) fn next_departure(&mut self) -> Instant {
        let at = self
            .start
            .saturating_add(Duration::from_nanos(self.pace.due()));
        self.pace.advance();
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Pattern;
    use crate::source::tests::departures;
    use slicewise_units::BitRate;

    #[test]
    fn packets_are_evenly_spaced_and_do_not_drift() {
        let pace = Pace::new(1448, BitRate::new(15_750_000)).unwrap();
        let times = departures(Pattern::Cbr(Cbr::new(pace)), Duration::from_secs(40), 1);
        assert_eq!(times.len(), 54_386);
        assert!(
            times
                .windows(2)
                .all(|pair| matches!(pair[1] - pair[0], 735_492 | 735_493))
        );
        // 1448 × 8 bits at 15.75 Mbit/s, 54,385 times.
        assert_eq!(times[54_385], 54_385 * 1_158_400_000 / 1_575);
    }
}
