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
    /// Periods are drawn from it, with these means; `None`: all are alike.
    random: Option<Random>,
    on_until: Instant,
    next_on: Instant,
}

impl OnOff {
    /// `inner` for `on`, silence for `off`, and so on. `None` where `on` is zero.
    #[must_use]
    pub fn new(inner: Pattern, on: Duration, off: Duration) -> Option<Self> {
        (on > Duration::ZERO).then_some(Self {
            inner,
            on,
            off,
            random: None,
            on_until: Instant::ZERO,
            next_on: Instant::ZERO,
        })
    }

    /// Periods are independent and exponentially distributed, with the lengths given as their means.
    #[must_use]
    pub fn at_random(mut self, random: Random) -> Self {
        self.random = Some(random);
        self
    }

    /// The length of a period, at least 1 ns of one of mean `mean`, so that time passes.
    fn period(&mut self, mean: Duration) -> Duration {
        match &mut self.random {
            Some(random) => Duration::from_nanos(random.exponential(mean.nanos() as f64).max(1)),
            None => mean,
        }
    }

    pub(crate) fn begin(&mut self, at: Instant) {
        self.on_until = at.saturating_add(self.period(self.on));
        self.next_on = self.on_until.saturating_add(self.period(self.off));
        self.inner.begin(at);
    }

    #[inline]
    pub(crate) fn set_interval(&mut self, interval: Interval) {
        self.inner.set_interval(interval);
    }

    pub(crate) fn recorded_bytes(&self) -> u32 {
        self.inner.recorded_bytes()
    }

    #[inline(never)]
    pub(crate) fn next_departure(
        &mut self,
        until: Instant,
        random: &mut Random,
    ) -> Option<Instant> {
        loop {
            if let Some(at) = self.inner.next_departure(self.on_until.min(until), random) {
                return Some(at);
            }
            if self.next_on >= until {
                return None;
            }
            self.begin(self.next_on);
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

    /// Lengths of the times without a gap of more than a packet's interval, 1 ms, and of the gaps.
    fn periods(mean_on: Duration, mean_off: Duration) -> (Vec<f64>, Vec<f64>) {
        let pace = Pace::new(1250, BitRate::new(1_000_000_000)).unwrap();
        let gated = OnOff::new(Pattern::Cbr(Cbr::new(pace)), mean_on, mean_off).unwrap();
        let gated = gated.at_random(Random::stream(3, 2));
        let times = departures(Pattern::OnOff(Box::new(gated)), Duration::from_secs(20), 1);
        let (mut on, mut off) = (Vec::new(), Vec::new());
        let mut begun = times[0];
        for pair in times.windows(2) {
            if pair[1] - pair[0] > 10_000 {
                on.push((pair[0] - begun + 10_000) as f64);
                off.push((pair[1] - pair[0] - 10_000) as f64);
                begun = pair[1];
            }
        }
        (on, off)
    }

    #[test]
    fn random_periods_have_the_mean_and_the_spread_of_an_exponential() {
        let (on, off) = periods(Duration::from_millis(2), Duration::from_millis(6));
        // About 2500 of each in 20 s, in steps of 10 µs.
        for (periods, mean) in [(on, 2e6), (off, 6e6)] {
            let count = periods.len() as f64;
            assert!(count > 2_200.0, "{count}");
            let measured = periods.iter().sum::<f64>() / count;
            let square = periods.iter().map(|p| (p - measured).powi(2)).sum::<f64>() / count;
            // Standard errors: mean / √n, and the mean times √(8 / n) / 2 for the deviation.
            let error = mean / count.sqrt();
            assert!((measured - mean).abs() < 4.0 * error, "{measured}");
            assert!(
                (square.sqrt() - mean).abs() < 6.0 * error,
                "{}",
                square.sqrt()
            );
        }
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
