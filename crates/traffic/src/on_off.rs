//! A pattern that runs part of the time.

use crate::pace::Interval;
use crate::random::Random;
use crate::source::Pattern;
use slicewise_units::{Duration, Instant};

/// Gates another pattern: it runs for a while, then is silent for a while. Each time it begins
/// anew, owing nothing for the silence, as a program started again would.
#[derive(Debug, Clone)]
pub struct OnOff {
    inner: Pattern,
    on: Duration,
    off: Duration,
    on_until: Instant,
}

impl OnOff {
    /// `inner` for `on`, silence for `off`, and so on. `None` where `on` is zero.
    #[must_use]
    pub fn new(inner: Pattern, on: Duration, off: Duration) -> Option<Self> {
        (on > Duration::ZERO).then_some(Self {
            inner,
            on,
            off,
            on_until: Instant::ZERO,
        })
    }

    pub(crate) fn begin(&mut self, at: Instant) {
        self.on_until = at.saturating_add(self.on);
        self.inner.begin(at);
    }

    #[inline]
    pub(crate) fn set_interval(&mut self, interval: Interval) {
        self.inner.set_interval(interval);
    }

    pub(crate) fn recorded_bytes(&self) -> u32 {
        self.inner.recorded_bytes()
    }

    #[inline]
    pub(crate) fn next_departure(
        &mut self,
        until: Instant,
        random: &mut Random,
    ) -> Option<Instant> {
        loop {
            if let Some(at) = self.inner.next_departure(self.on_until.min(until), random) {
                return Some(at);
            }
            let next_on = self.on_until.saturating_add(self.off);
            if next_on >= until {
                return None;
            }
            self.begin(next_on);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tests::departures;
    use crate::{Cbr, Pace};
    use slicewise_units::BitRate;

    fn on_off(rate: u64, on: Duration, off: Duration) -> Pattern {
        let pace = Pace::new(1250, BitRate::new(rate)).unwrap();
        Pattern::OnOff(Box::new(
            OnOff::new(Pattern::Cbr(Cbr::new(pace)), on, off).unwrap(),
        ))
    }

    #[test]
    fn sends_while_on_and_owes_nothing_for_the_silence() {
        let second = Duration::from_secs(1);
        let times = departures(
            on_off(10_000_000, second, second),
            Duration::from_secs(5),
            1,
        );
        // 10,000-bit packets at 10 Mbit/s: 1,000 in each of three seconds on.
        assert_eq!(times.len(), 3_000);
        assert!(
            times
                .iter()
                .all(|at| (at / 1_000_000_000).is_multiple_of(2))
        );
        assert_eq!([times[999], times[1_000]], [999_000_000, 2_000_000_000]);
        // None of the gaps within a burst is shorter than the rate says.
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 1_000_000));
    }

    #[test]
    fn patterns_nest() {
        let inner = on_off(
            10_000_000,
            Duration::from_millis(10),
            Duration::from_millis(10),
        );
        let outer = OnOff::new(
            inner,
            Duration::from_millis(100),
            Duration::from_millis(300),
        );
        let times = departures(
            Pattern::OnOff(Box::new(outer.unwrap())),
            Duration::from_millis(400),
            1,
        );
        assert_eq!(times.len(), 50);
    }

    #[test]
    fn a_run_shorter_than_the_first_silence_ends() {
        let times = departures(
            on_off(
                10_000_000,
                Duration::from_millis(2),
                Duration::from_secs(3_600),
            ),
            Duration::from_secs(1),
            1,
        );
        assert_eq!(times, [0, 1_000_000]);
    }
}
