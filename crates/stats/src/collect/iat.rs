//! Inter-arrival times of one source: exact moments and a histogram.

use super::histogram::Histograms;
use crate::record::IatFigures;
use slicewise_units::Instant;

/// Running sums over the inter-arrival times of one source. Integers, so that no run is too long
/// for the variance.
#[derive(Debug, Clone)]
pub(super) struct IatState {
    last: Option<Instant>,
    samples: u64,
    sum_ns: u128,
    sum_of_squares_ns2: u128,
    max_ns: u64,
    histogram: Histograms,
}

impl IatState {
    pub fn new() -> Self {
        Self {
            last: None,
            samples: 0,
            sum_ns: 0,
            sum_of_squares_ns2: 0,
            max_ns: 0,
            histogram: Histograms::new(1),
        }
    }

    pub fn reset(&mut self) {
        let mut histogram = std::mem::replace(&mut self.histogram, Histograms::new(0));
        histogram.clear();
        *self = Self {
            histogram,
            ..Self::new()
        };
    }

    #[inline]
    pub fn on_sent(&mut self, now: Instant) {
        let Some(last) = self.last.replace(now) else {
            return;
        };
        let interval_ns = now.saturating_since(last).nanos();
        self.samples += 1;
        self.sum_ns += u128::from(interval_ns);
        // 2⁴⁴ intervals of an hour each fit.
        self.sum_of_squares_ns2 = self
            .sum_of_squares_ns2
            .saturating_add(u128::from(interval_ns) * u128::from(interval_ns));
        self.max_ns = self.max_ns.max(interval_ns);
        self.histogram.record(0, interval_ns);
    }

    pub fn figures(&self, max_points: usize) -> IatFigures {
        if self.samples == 0 {
            return IatFigures::default();
        }
        IatFigures {
            samples: self.samples,
            mean_ns: self.sum_ns as f64 / self.samples as f64,
            variance_ns2: self.variance_ns2(),
            cdf: self
                .histogram
                .distribution(0..1)
                .cdf(max_points, self.max_ns),
        }
    }

    /// Sample variance (divisor n − 1); 0 for less than two samples.
    ///
    /// Σ(x − k)² with k the whole part of the mean is exact in integers and as small as it can be,
    /// so that only the last division rounds: Σx² − (Σx)²/n would cancel.
    fn variance_ns2(&self) -> f64 {
        if self.samples < 2 {
            return 0.0;
        }
        let n = u128::from(self.samples);
        let k = self.sum_ns / n;
        let remainder = (self.sum_ns % n) as f64;
        let about_k = self
            .sum_of_squares_ns2
            .saturating_add(n.saturating_mul(k).saturating_mul(k))
            .saturating_sub((2 * k).saturating_mul(self.sum_ns));
        (about_k as f64 - remainder * remainder / n as f64) / (n - 1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures_of(times_ns: &[u64]) -> IatFigures {
        let mut state = IatState::new();
        for &at in times_ns {
            state.on_sent(Instant::from_nanos(at));
        }
        state.figures(200)
    }

    #[test]
    fn mean_and_variance_are_those_of_the_intervals() {
        // Intervals 1, 3, 5: mean 3, sample variance 4.
        let figures = figures_of(&[10, 11, 14, 19]);
        assert_eq!(
            (figures.samples, figures.mean_ns, figures.variance_ns2),
            (3, 3.0, 4.0)
        );
    }

    #[test]
    fn variance_survives_a_large_mean() {
        // Intervals of an hour, ± 1 ns: Σx² − (Σx)²/n in floats would give 0 or noise.
        let hour = 3_600_000_000_000;
        let figures = figures_of(&[0, hour - 1, 2 * hour, 3 * hour - 1, 4 * hour]);
        assert!(
            (figures.variance_ns2 - 4.0 / 3.0).abs() < 1e-9,
            "{}",
            figures.variance_ns2
        );
    }

    #[test]
    fn one_packet_has_no_interval() {
        assert_eq!(figures_of(&[5]), IatFigures::default());
    }
}
