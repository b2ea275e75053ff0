//! A source: a pattern with a beginning, an end and its own random numbers.

use crate::{Cbr, Iperf3, OnOff, Poisson, Random, Replay};
use slicewise_units::{Duration, Instant};

/// When the packets of a flow leave.
#[derive(Debug, Clone)]
pub enum Pattern {
    /// As iperf3 paces.
    Iperf3(Iperf3),
    /// Evenly spaced.
    Cbr(Cbr),
    /// Independent exponential gaps.
    Poisson(Poisson),
    /// Another pattern, part of the time.
    OnOff(Box<OnOff>),
    /// The gaps of a recording.
    Replay(Replay),
}

impl Pattern {
    /// Start sending at `at`, owing nothing from before.
    pub fn begin(&mut self, at: Instant) {
        match self {
            Self::Iperf3(pattern) => pattern.begin(at),
            Self::Cbr(pattern) => pattern.begin(at),
            Self::Poisson(pattern) => pattern.begin(at),
            Self::OnOff(pattern) => pattern.begin(at),
            Self::Replay(pattern) => pattern.begin(at),
        }
    }

    /// The next departure, if it is before `until`; never before the last one.
    #[inline]
    pub fn next_departure(&mut self, until: Instant, random: &mut Random) -> Option<Instant> {
        let at = match self {
            Self::Iperf3(pattern) => pattern.next_departure(random),
            Self::Cbr(pattern) => pattern.next_departure(),
            Self::Poisson(pattern) => pattern.next_departure(random),
            Self::OnOff(pattern) => return pattern.next_departure(until, random),
            Self::Replay(pattern) => pattern.next_departure()?,
        };
        (at < until).then_some(at)
    }
}

/// A pattern with a beginning, an end and its own random numbers.
#[derive(Debug, Clone)]
pub struct Source {
    pattern: Pattern,
    until: Instant,
    random: Random,
}

impl Source {
    /// A source that begins at `start` and a random part of `spread` later, uniform between zero
    /// and `spread`, and stops before `until`.
    #[must_use]
    pub fn new(
        mut pattern: Pattern,
        start: Instant,
        spread: Duration,
        until: Instant,
        mut random: Random,
    ) -> Self {
        let late = random.below(spread.nanos().saturating_add(1));
        pattern.begin(start.saturating_add(Duration::from_nanos(late)));
        Self {
            pattern,
            until,
            random,
        }
    }

    /// The next departure; `None` once the source has stopped.
    #[inline]
    pub fn next_departure(&mut self) -> Option<Instant> {
        self.pattern.next_departure(self.until, &mut self.random)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Pace;
    use slicewise_units::BitRate;

    /// All departures of a pattern that begins at zero.
    pub(crate) fn departures(mut pattern: Pattern, until: Duration, seed: u64) -> Vec<u64> {
        let mut random = Random::stream(seed, 0);
        let until = Instant::ZERO.saturating_add(until);
        pattern.begin(Instant::ZERO);
        std::iter::from_fn(|| pattern.next_departure(until, &mut random))
            .map(Instant::nanos)
            .collect()
    }

    #[test]
    fn a_source_starts_within_its_spread_and_stops_in_time() {
        let spread = Duration::from_millis(1);
        let start = Instant::from_nanos(5_000_000);
        let until = Instant::from_nanos(20_000_000);
        let mut firsts = Vec::new();
        for stream in 0..50 {
            let pace = Pace::new(1448, BitRate::new(15_750_000)).unwrap();
            let pattern = Pattern::Cbr(Cbr::new(pace));
            let mut source = Source::new(pattern, start, spread, until, Random::stream(9, stream));
            let times: Vec<u64> = std::iter::from_fn(|| source.next_departure())
                .map(Instant::nanos)
                .collect();
            assert!((5_000_000..=6_000_000).contains(&times[0]));
            assert!(times.iter().all(|at| *at < until.nanos()));
            assert!(until.nanos() - times[times.len() - 1] <= 735_493);
            firsts.push(times[0]);
        }
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts.len(), 50, "fifty draws of a million differ");
    }
}
