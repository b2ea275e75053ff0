//! The throughput that a client measured, averaged as dash.js does: `ThroughputModel.js` and `ThroughputController.js`
//! of version 5.1, with their defaults in `Settings.js`.

use slicewise_units::Duration;

/// Two exponentially weighted means, a fast and a slow one, of which the lower counts. A sample weighs the more the
/// longer its download took.
#[derive(Debug, Clone, Copy, Default)]
pub struct Throughput {
    /// Fast and slow estimate, bit/s, from 0: too low at first.
    estimates: [f64; 2],
    /// Sum of the weights, s.
    weight: f64,
}

/// `throughputFastHalfLifeSeconds` and `throughputSlowHalfLifeSeconds`, s.
const HALF_LIVES: [f64; 2] = [3.0, 8.0];
/// `weightDownloadTimeMultiplicationFactor`: seconds of weight a second of download (0.0015 a millisecond).
const WEIGHT: f64 = 1.5;
/// Shortest download that counts, as in dash.js where its time is not known from the browser.
const SHORTEST: Duration = Duration::from_millis(1);

impl Throughput {
    /// A response of so many bytes arrived, its last byte so long after its first.
    pub fn on_response(&mut self, bytes: u64, took: Duration) {
        let took = took.max(SHORTEST).as_secs_f64();
        let sample = bytes as f64 * 8.0 / took;
        let weight = WEIGHT * took;
        for (estimate, half_life) in self.estimates.iter_mut().zip(HALF_LIVES) {
            let kept = libm::exp2(-weight / half_life);
            *estimate = (1.0 - kept) * sample + kept * *estimate;
        }
        self.weight += weight;
    }

    /// The mean, bit/s; `None` before the first response.
    pub fn mean(&self) -> Option<f64> {
        if self.weight == 0.0 {
            return None;
        }
        // What the estimates lack because they began at 0.
        let mean = |place: usize| {
            self.estimates[place] / (1.0 - libm::exp2(-self.weight / HALF_LIVES[place]))
        };
        Some(mean(0).min(mean(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(samples: &[(u64, u64)]) -> f64 {
        let mut throughput = Throughput::default();
        for &(bytes, millis) in samples {
            throughput.on_response(bytes, Duration::from_millis(millis));
        }
        throughput.mean().unwrap()
    }

    #[test]
    fn equal_samples_have_their_own_mean_from_the_first() {
        assert_eq!(Throughput::default().mean(), None);
        assert!((of(&[(125_000, 500)]) - 2e6).abs() < 1e-6);
        assert!((of(&[(125_000, 500); 7]) - 2e6).abs() < 1e-6);
    }

    #[test]
    fn a_change_counts_by_the_half_lives() {
        // 2 s of 8 Mbit/s, then 2 s of 4 Mbit/s: weights of 3 s each. Fast: kept 1/2, so (0.5·8·0.5 + 0.5·4) / 0.75.
        let fast = 4.0_f64 / 0.75;
        // Slow: kept k = 2^(-3/8).
        let k = 0.771_105_412_703_970_4_f64;
        let slow = ((1.0 - k) * 8.0 * k + (1.0 - k) * 4.0) / (1.0 - k * k);
        let down = of(&[(2_000_000, 2_000), (1_000_000, 2_000)]);
        assert!((down / 1e6 - fast.min(slow)).abs() < 1e-9, "{down}");
        assert!(fast < slow);
        // Up: (0.5·4·0.5 + 0.5·8) / 0.75 against the slow one, which is lower.
        let slow = ((1.0 - k) * 4.0 * k + (1.0 - k) * 8.0) / (1.0 - k * k);
        let up = of(&[(1_000_000, 2_000), (2_000_000, 2_000)]);
        assert!((up / 1e6 - slow).abs() < 1e-9, "{up}");
    }

    #[test]
    fn a_response_in_one_portion_counts_as_a_millisecond() {
        assert!((of(&[(1_000, 0)]) - 8e6).abs() < 1e-3);
    }
}
