//! Poisson arrivals: independent, exponentially distributed gaps.

use crate::random::{Random, rounded};
use slicewise_units::{Duration, Instant};

/// Gaps drawn at a time: between other work of a simulation that costs less than one by one (`docs/benchmarks/tcp.md`).
const DRAWN: usize = 16;

/// Independent exponential gaps, rounded to a nanosecond.
#[derive(Debug, Clone)]
pub struct Poisson {
    mean_gap_ns: f64,
    last: Instant,
    /// Gaps of mean 1, and which of them comes next.
    drawn: [f64; DRAWN],
    next: usize,
}

impl Poisson {
    /// Packets that are `mean_gap_ns` apart on average.
    #[must_use]
    pub fn new(mean_gap_ns: f64) -> Self {
        Self {
            mean_gap_ns,
            last: Instant::ZERO,
            drawn: [0.0; DRAWN],
            next: DRAWN,
        }
    }

    pub(crate) fn begin(&mut self, at: Instant) {
        self.last = at;
    }

    #[inline]
    pub(crate) fn next_departure(&mut self, random: &mut Random) -> Instant {
        if self.next == DRAWN {
            for gap in &mut self.drawn {
                *gap = random.unit_exponential();
            }
            self.next = 0;
        }
        let gap = rounded(self.drawn[self.next] * self.mean_gap_ns);
        self.next += 1;
        self.last = self.last.saturating_add(Duration::from_nanos(gap));
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pace;
    use crate::source::Pattern;
    use crate::source::tests::departures;
    use slicewise_units::BitRate;

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "a statistic")]
    fn gaps_have_the_mean_and_the_variance_of_an_exponential() {
        let pace = Pace::new(1250, BitRate::new(100_000_000)).unwrap();
        let times = departures(
            Pattern::Poisson(Poisson::new(pace.interval_ns())),
            Duration::from_secs(10),
            7,
        );
        let gaps: Vec<f64> = times
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as f64)
            .collect();
        let count = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / count;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
        // 100 us; 100,000 gaps: standard errors of 0.32 % (mean) and 0.9 % (variance).
        assert!((mean / 1e5 - 1.0).abs() < 4.0 * 0.0032, "{mean}");
        assert!((variance / 1e10 - 1.0).abs() < 4.0 * 0.009, "{variance}");
    }

    #[test]
    fn gaps_are_those_that_are_drawn_one_by_one_also_by_a_clone() {
        let mut pattern = Poisson::new(10_000.0);
        pattern.begin(Instant::ZERO);
        let [mut drawn, mut expected] = [(); 2].map(|()| Random::stream(3, 1));
        let mut at = Instant::ZERO;
        for number in 0..5 * DRAWN {
            at = at.saturating_add(Duration::from_nanos(expected.exponential(10_000.0)));
            let (mut clone, mut random) = (pattern.clone(), drawn.clone());
            assert_eq!(pattern.next_departure(&mut drawn), at, "{number}");
            assert_eq!(clone.next_departure(&mut random), at, "{number}");
        }
    }

    /// Fails where a platform's own logarithm is used.
    #[test]
    fn the_first_departures_are_the_same_on_every_machine() {
        let pace = Pace::new(1250, BitRate::new(100_000_000)).unwrap();
        let times = departures(
            Pattern::Poisson(Poisson::new(pace.interval_ns())),
            Duration::from_millis(1),
            7,
        );
        assert_eq!(times[..5], [79_739, 168_694, 311_582, 326_139, 408_267]);
    }
}
