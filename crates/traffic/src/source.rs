//! A source: a pattern with a beginning, an end and its own random numbers.

use crate::{Cbr, Interval, Iperf3, OnOff, Poisson, Random, Replay, Sizes};
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

    /// The next packet lasts so long at the rate. The times of Poisson arrivals and of a recording do not
    /// depend on sizes.
    #[inline]
    pub(crate) fn set_interval(&mut self, interval: Interval) {
        match self {
            Self::Iperf3(pattern) => pattern.set_interval(interval),
            Self::Cbr(pattern) => pattern.set_interval(interval),
            Self::OnOff(pattern) => pattern.set_interval(interval),
            Self::Poisson(_) | Self::Replay(_) => {}
        }
    }

    /// Bytes of the IP packet that was recorded at the last departure; 0 where none was.
    pub(crate) fn recorded_bytes(&self) -> u32 {
        match self {
            Self::Replay(pattern) => pattern.recorded_bytes(),
            Self::OnOff(pattern) => pattern.recorded_bytes(),
            Self::Iperf3(_) | Self::Cbr(_) | Self::Poisson(_) => 0,
        }
    }

    /// The next departure, if it is before `until`; never before the last one.
    #[inline(always)]
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

/// A packet that leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// When.
    pub at: Instant,
    /// Its bytes, from the destination address to the end of the payload.
    pub l2_bytes: u32,
}

impl Departure {
    /// Later than any other: the source has stopped.
    pub const NEVER: Self = Self {
        at: Instant::MAX,
        l2_bytes: 0,
    };
}

/// A pattern with a beginning, an end, sizes and its own random numbers.
#[derive(Debug, Clone)]
pub struct Source {
    pattern: Pattern,
    sizes: Sizes,
    until: Instant,
    random: Random,
    /// Source that goes on once this one has stopped.
    next: Option<Box<Source>>,
}

impl Source {
    /// A source that begins at `start` and a random part of `spread` later, uniform between zero
    /// and `spread`, and stops before `until`.
    #[must_use]
    pub fn new(
        mut pattern: Pattern,
        sizes: Sizes,
        start: Instant,
        spread: Duration,
        until: Instant,
        mut random: Random,
    ) -> Self {
        let late = random.below(spread.nanos().saturating_add(1));
        pattern.begin(start.saturating_add(Duration::from_nanos(late)));
        Self {
            pattern,
            sizes,
            until,
            random,
            next: None,
        }
    }

    /// Go on with `next` once everything before it has stopped. It begins no earlier than that.
    #[must_use]
    pub fn followed_by(mut self, next: Self) -> Self {
        let mut last = &mut self.next;
        while let Some(source) = last {
            last = &mut source.next;
        }
        *last = Some(Box::new(next));
        self
    }

    #[cold]
    fn go_on(&mut self) -> Departure {
        match self.next.take() {
            Some(next) => {
                *self = *next;
                self.depart()
            }
            None => Departure::NEVER,
        }
    }

    /// The next packet; `None` once the source has stopped.
    #[inline]
    pub fn next_departure(&mut self) -> Option<Departure> {
        Some(self.depart()).filter(|departure| *departure != Departure::NEVER)
    }

    /// The next packet; [`Departure::NEVER`] once the source has stopped.
    #[inline(always)]
    pub fn depart(&mut self) -> Departure {
        let Sizes::Equal(l2_bytes) = self.sizes else {
            return self.depart_unequal();
        };
        match (self.pattern).next_departure(self.until, &mut self.random) {
            Some(at) => Departure { at, l2_bytes },
            None => self.go_on(),
        }
    }

    /// The same where sizes differ.
    #[inline(never)]
    fn depart_unequal(&mut self) -> Departure {
        let mut l2_bytes = match &mut self.sizes {
            Sizes::Equal(l2_bytes) => *l2_bytes,
            Sizes::Mix(mix) => {
                let Some(drawn) = mix.draw() else {
                    return Departure::NEVER;
                };
                self.pattern.set_interval(drawn.interval);
                drawn.l2_bytes
            }
            Sizes::Recorded { least, .. } => *least,
        };
        let Some(at) = (self.pattern).next_departure(self.until, &mut self.random) else {
            return self.go_on();
        };
        if let Sizes::Recorded { l3_offset, least } = self.sizes {
            let recorded = l3_offset.saturating_add(self.pattern.recorded_bytes());
            l2_bytes = recorded.max(least);
        }
        Departure { at, l2_bytes }
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
            let random = Random::stream(9, stream);
            let mut source = Source::new(pattern, Sizes::Equal(1490), start, spread, until, random);
            let times: Vec<u64> = std::iter::from_fn(|| source.next_departure())
                .map(|departure| departure.at.nanos())
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
