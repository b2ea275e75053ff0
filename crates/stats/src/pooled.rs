//! An upper bound of a small share of packets, pooled over runs.
//!
//! M. P. Fay, E. J. Feuer, *Confidence intervals for directly standardized rates: a method based on the gamma distribution*, Statistics
//! in Medicine 16, 1997. With the variance between runs in place of that of a Poisson count, packets of one run may depend on each other.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// Packets of several runs, and those of them beyond a limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PooledShare {
    /// Packets beyond the limit.
    pub beyond: u64,
    /// All packets.
    pub of: u64,
    /// Upper bound of the share beyond the limit, at the confidence of the table; at most 1.
    pub upper: f64,
}

impl PooledShare {
    /// Of each run, the packets beyond the limit and all packets; `None` without packets.
    #[must_use]
    pub fn new(runs: &[(u64, u64)], confidence: f64) -> Option<Self> {
        let beyond = runs.iter().map(|run| run.0).sum();
        let of: u64 = runs.iter().map(|run| run.1).sum();
        let upper = upper_count(runs, confidence)? / of as f64;
        (of > 0).then_some(Self {
            beyond,
            of,
            upper: upper.min(1.0),
        })
    }
}

/// Packets of which none may be beyond the limit for the bound of their share to be `allowed`.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a whole number of packets, at least one"
)]
pub fn packets_needed(allowed: f64, confidence: f64) -> Option<u64> {
    let needed = (-(1.0 - confidence).ln() / allowed).ceil();
    // Beyond that floats are no whole numbers.
    (allowed > 0.0 && needed < 9e15).then_some(needed as u64)
}

/// Upper bound of the expected number of packets beyond the limit in as many packets.
fn upper_count(runs: &[(u64, u64)], confidence: f64) -> Option<f64> {
    let number = runs.len() as f64;
    let counts = runs.iter().map(|run| run.0 as f64);
    let sum: f64 = counts.clone().sum();
    if sum == 0.0 {
        return Some(-(1.0 - confidence).ln());
    }
    let mean = sum / number;
    let squares: f64 = counts.clone().map(|count| (count - mean).powi(2)).sum();
    // The variance of the sum; of one run that of a Poisson count.
    let variance = match runs.len() {
        0 | 1 => sum,
        _ => number * squares / (number - 1.0),
    };
    let weight = counts.fold(1.0, f64::max);
    let (sum, variance) = (sum + weight, variance + weight * weight);
    let chi_squared = ChiSquared::new(2.0 * sum * sum / variance).ok()?;
    Some(variance / (2.0 * sum) * chi_squared.inverse_cdf(confidence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn upper(runs: &[(u64, u64)]) -> f64 {
        PooledShare::new(runs, 0.95).unwrap().upper
    }

    #[test]
    fn without_an_excess_the_bound_is_that_of_the_rule_of_three() {
        assert!((upper(&[(0, 1_000), (0, 2_000)]) - 0.000_998_6).abs() < 1e-6);
        assert_eq!(packets_needed(0.001, 0.95), Some(2_996));
        assert_eq!(packets_needed(1e-7, 0.95), Some(29_957_323));
        assert_eq!(packets_needed(0.0, 0.95), None);
        assert_eq!(PooledShare::new(&[(0, 0)], 0.95), None);
        assert_eq!(PooledShare::new(&[], 0.95), None);
    }

    /// Five events of a Poisson count are at most 10.513 (Garwood).
    #[test]
    fn counts_that_vary_like_poisson_ones_have_about_the_exact_bound() {
        let spread: Vec<(u64, u64)> = (0..100)
            .map(|run| (u64::from(run % 20 == 0), 1_000))
            .collect();
        let bound = upper(&spread) * 100_000.0;
        assert!((10.0..11.0).contains(&bound), "{bound}");
    }

    #[test]
    fn counts_that_come_together_have_a_wider_bound_than_as_many_apart() {
        let mut together = vec![(0, 1_000); 99];
        together.push((50, 1_000));
        let apart: Vec<(u64, u64)> = (0..100).map(|run| (run % 2, 1_000)).collect();
        assert!(upper(&together) > 2.0 * upper(&apart));
    }

    /// The share of samples whose bound is below the true share, of `draw` counts of 1,000 packets in each of 32 runs.
    fn misses(mean: f64, draw: impl Fn(&mut Xoshiro256PlusPlus) -> u64) -> f64 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let samples = 4_000;
        let missed = (0..samples).filter(|_| {
            let runs: Vec<(u64, u64)> = (0..32).map(|_| (draw(&mut random), 1_000)).collect();
            upper(&runs) < mean / 1_000.0
        });
        missed.count() as f64 / f64::from(samples)
    }

    #[test]
    fn the_bound_misses_as_seldom_as_stated() {
        let happens = |random: &mut Xoshiro256PlusPlus, share: f64| {
            ((random.next_u64() >> 11) as f64) < share * (1u64 << 53) as f64
        };
        let binomial = |share: f64| {
            move |random: &mut Xoshiro256PlusPlus| {
                (0..1_000).filter(|_| happens(random, share)).count() as u64
            }
        };
        for mean in [0.1, 0.3, 3.0] {
            let missed = misses(mean, binomial(mean / 1_000.0));
            assert!(missed <= 0.055, "{missed} at a mean of {mean}");
        }
        // Losses in bursts of ten, in every fifth run.
        let bursts = |random: &mut Xoshiro256PlusPlus| 10 * u64::from(happens(random, 0.2));
        let missed = misses(2.0, bursts);
        assert!(missed <= 0.055, "{missed} of bursts");
    }
}
