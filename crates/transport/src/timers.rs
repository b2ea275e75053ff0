//! When timers of a host expire.

use slicewise_units::{Duration, Instant};

/// Timers of fewer ticks expire at any, those of up to eight times as many at every eighth, and so on.
const FINE: u64 = 64;
const COARSER: u64 = 8;

/// The ticks at which timers expire, later than they are due.
///
/// A timer is set for a number of whole ticks, rounded up, and expires one tick after that, so that it never does so early.
/// From 64 ticks on they expire at every eighth tick, from 512 on at every 64th, and so on. Measured with Linux 6.18 and ticks
/// of 4 ms: time-outs of 200 ms come after 204 to 208 ms, steps of 32 ms lie between those of 400 ms, and probes come after 4
/// to 8 ms where two round trips take 0.1 ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ticks {
    /// Length of a tick; zero: timers are exact.
    pub length: Duration,
    /// How long the host has been counting ticks at time 0.
    pub phase: Duration,
}

impl Ticks {
    /// When a timer expires that is set at `now` for a time `after` that.
    pub(crate) fn expiry(self, now: Instant, after: Duration) -> Instant {
        let length = self.length.nanos();
        if length == 0 || after == Duration::MAX {
            return now.saturating_add(after);
        }
        let ticks = after.nanos().div_ceil(length);
        let phase = self.phase.nanos();
        let due = now.nanos().saturating_add(phase) / length + ticks;
        let mut step = 1;
        while ticks >= step * FINE && step < 1 << 30 {
            step *= COARSER;
        }
        let nanos = ((due / step + 1) * step).saturating_mul(length);
        Instant::from_nanos(nanos.saturating_sub(phase))
    }
}

#[cfg(test)]
mod tests {
    use super::Ticks;
    use slicewise_units::{Duration, Instant};

    #[test]
    fn timers_expire_as_measured_and_never_early() {
        let ticks = Ticks {
            length: Duration::from_millis(4),
            phase: Duration::from_millis(1),
        };
        for (after_us, least_us, most_us) in [
            (100, 4_000, 8_000),
            (4_000, 4_000, 8_000),
            (200_100, 204_000, 208_000),
            (251_900, 252_000, 256_000),
            (400_200, 404_000, 436_000),
        ] {
            let took = (0..64_000).map(|start_us| {
                let now = Instant::from_nanos(3_000_000 + start_us * 500);
                let at = ticks.expiry(now, Duration::from_micros(after_us));
                at.saturating_since(now).nanos()
            });
            let (least, most) = (took.clone().min().unwrap(), took.max().unwrap());
            assert!(
                least / 1_000 >= least_us && most / 1_000 <= most_us,
                "{after_us}: {least} to {most}"
            );
            assert!(
                least / 1_000 < least_us + 1_000 && most / 1_000 > most_us - 1_000,
                "{after_us}: {least} to {most}"
            );
        }
        let exact = Ticks::default();
        let at = exact.expiry(Instant::from_nanos(5), Duration::from_nanos(7));
        assert_eq!(at, Instant::from_nanos(12));
    }
}
