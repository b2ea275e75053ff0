//! An upper bound of a small share of packets, pooled over runs.
//!
//! M. P. Fay, E. J. Feuer, *Confidence intervals for directly standardized rates: a method based on the gamma distribution*, Statistics
//! in Medicine 16, 1997. With the variance between runs in place of that of a Poisson count, packets of one run may depend on each other.
//!
//! More runs may be added until the bound is low enough, so it is looked at only when their number has doubled, each time at half the
//! chance of being wrong: at 32 runs with α/2, at 64 with α/4, and so on, which is α together.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// Runs at which the bound is looked at first; of fewer all are.
const FIRST_LOOK: usize = 32;

/// Packets of several runs, and those of them beyond a limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PooledShare {
    /// Packets beyond the limit.
    pub beyond: u64,
    /// All packets.
    pub of: u64,
    /// Runs.
    pub runs: u32,
    /// Upper bound of the share beyond the limit, at the confidence of the table and however often it is looked at; at most 1.
    pub upper: f64,
}

/// Of this many runs those that the bound is of at the latest look, and the chance of being wrong at it.
#[must_use]
pub fn latest_look(runs: usize, confidence: f64) -> (usize, f64) {
    let doublings = (runs / FIRST_LOOK).max(1).ilog2();
    let chance = (1.0 - confidence) / 2f64.powi(doublings as i32 + 1);
    (runs.min(FIRST_LOOK << doublings), chance)
}

impl PooledShare {
    /// Of each run, the packets beyond the limit and all packets; `None` without packets.
    #[must_use]
    pub fn new(runs: &[(u64, u64)], confidence: f64) -> Option<Self> {
        let beyond = runs.iter().map(|run| run.0).sum();
        let of: u64 = runs.iter().map(|run| run.1).sum();
        let (looked_at, chance) = latest_look(runs.len(), confidence);
        let looked_at = &runs[..looked_at];
        let upper = upper_share(looked_at, chance)?;
        Some(Self {
            beyond,
            of,
            runs: u32::try_from(runs.len()).unwrap_or(u32::MAX),
            upper,
        })
    }

    /// The smallest share beyond the limit that as many packets without one could exclude.
    #[must_use]
    pub fn resolution(self, confidence: f64) -> f64 {
        let (looked_at, chance) = latest_look(self.runs as usize, confidence);
        -chance.ln() / self.of as f64 * f64::from(self.runs) / looked_at as f64
    }
}

/// Packets of which none may be beyond the limit for the bound of their share to be `allowed`, in the first 32 runs.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a whole number of packets, at least one"
)]
pub fn packets_needed(allowed: f64, confidence: f64) -> Option<u64> {
    let (_, chance) = latest_look(1, confidence);
    let needed = (-chance.ln() / allowed).ceil();
    // Beyond that floats are no whole numbers.
    (allowed > 0.0 && needed < 9e15).then_some(needed as u64)
}

/// The fewest runs of `packets` each of which none may be beyond the limit for the bound of their share to be `allowed`; `None` where no
/// number within reason is enough.
#[must_use]
pub fn runs_needed(allowed: f64, packets: f64, confidence: f64) -> Option<u32> {
    let is_enough = |runs: usize| {
        let (looked_at, chance) = latest_look(runs, confidence);
        -chance.ln() <= allowed * packets * looked_at as f64
    };
    let looks = (0..10).map(|doublings| FIRST_LOOK << doublings);
    let runs = (1..FIRST_LOOK).chain(looks).find(|&runs| is_enough(runs))?;
    u32::try_from(runs).ok()
}

/// Upper bound of the share beyond the limit, at most 1, which is too low with this chance; `None` without packets.
pub(crate) fn upper_share(runs: &[(u64, u64)], chance: f64) -> Option<f64> {
    let of: u64 = runs.iter().map(|run| run.1).sum();
    let upper = upper_count(runs, chance)? / of as f64;
    (of > 0).then_some(upper.min(1.0))
}

/// Upper bound of the expected number of packets beyond the limit in as many packets.
fn upper_count(runs: &[(u64, u64)], chance: f64) -> Option<f64> {
    let number = runs.len() as f64;
    let counts = runs.iter().map(|run| run.0 as f64);
    let sum: f64 = counts.clone().sum();
    if sum == 0.0 {
        return Some(-chance.ln());
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
    Some(variance / (2.0 * sum) * chi_squared.inverse_cdf(1.0 - chance))
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
    fn without_an_excess_the_bound_is_that_of_the_rule_of_three_at_half_the_chance() {
        // ln 40 = 3.689.
        assert!((upper(&[(0, 1_000), (0, 2_000)]) - 0.001_229_6).abs() < 1e-6);
        assert_eq!(packets_needed(0.001, 0.95), Some(3_689));
        assert_eq!(packets_needed(1e-7, 0.95), Some(36_888_795));
        assert_eq!(packets_needed(0.0, 0.95), None);
        assert_eq!(PooledShare::new(&[(0, 0)], 0.95), None);
        assert_eq!(PooledShare::new(&[], 0.95), None);
    }

    #[test]
    fn as_many_runs_as_are_said_to_be_needed_show_it() {
        for packets in [10u32, 1_000, 1_154, 40_000] {
            let runs = runs_needed(1e-4, packets.into(), 0.95).unwrap() as usize;
            let none = |runs: usize| upper(&vec![(0, packets.into()); runs]);
            assert!(none(runs) <= 1.001e-4, "{packets}: {runs}");
            assert!(runs == 1 || none(runs - 1) > 1e-4, "{packets}: {runs}");
        }
        assert_eq!(runs_needed(1e-9, 10.0, 0.95), None);
    }

    #[test]
    fn the_bound_is_looked_at_when_the_number_of_runs_has_doubled() {
        let looks = [1, 31, 32, 63, 64, 200].map(|runs| latest_look(runs, 0.95));
        assert_eq!(looks.map(|look| look.0), [1, 31, 32, 32, 64, 128]);
        for ((_, chance), expected) in looks.iter().zip([40, 40, 40, 40, 80, 160]) {
            assert!((chance * f64::from(expected) - 1.0).abs() < 1e-9);
        }
        let mut runs = vec![(0, 100); 32];
        let at_first = upper(&runs);
        runs.push((50, 100));
        let pooled = PooledShare::new(&runs, 0.95).unwrap();
        assert_eq!((pooled.beyond, pooled.of), (50, 3_300));
        assert_eq!(pooled.upper, at_first);
    }

    /// Five events of a Poisson count are at most 11.668 (Garwood, 97.5 %).
    #[test]
    fn counts_that_vary_like_poisson_ones_have_about_the_exact_bound() {
        let spread: Vec<(u64, u64)> = (0..32)
            .map(|run| (u64::from(run % 6 == 0 && run < 30), 1_000))
            .collect();
        let bound = upper(&spread) * 32_000.0;
        assert!((11.0..12.3).contains(&bound), "{bound}");
    }

    #[test]
    fn counts_that_come_together_have_a_wider_bound_than_as_many_apart() {
        let mut together = vec![(50, 1_000)];
        together.resize(64, (0, 1_000));
        let apart: Vec<(u64, u64)> = (0..64).map(|run| (run % 2, 1_000)).collect();
        assert!(upper(&together) > 2.0 * upper(&apart));
    }

    fn happens(random: &mut Xoshiro256PlusPlus, share: f64) -> bool {
        ((random.next_u64() >> 11) as f64) < share * (1u64 << 53) as f64
    }

    /// The share of samples of up to 256 runs whose bound is below the true share at some look, of `draw` counts of 1,000 packets in each.
    fn misses(mean: f64, draw: impl Fn(&mut Xoshiro256PlusPlus) -> u64) -> f64 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let samples = 2_000;
        let missed = (0..samples).filter(|_| {
            let runs: Vec<(u64, u64)> = (0..256).map(|_| (draw(&mut random), 1_000)).collect();
            [32, 64, 128, 256]
                .iter()
                .any(|&number| upper(&runs[..number]) < mean / 1_000.0)
        });
        missed.count() as f64 / f64::from(samples)
    }

    #[test]
    fn the_bound_misses_as_seldom_as_stated_at_any_look() {
        // Knuth.
        let poisson = |mean: f64| {
            move |random: &mut Xoshiro256PlusPlus| {
                let mut unit = || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
                let (mut events, mut product) = (0, unit());
                while product > (-mean).exp() {
                    events += 1;
                    product *= unit();
                }
                events
            }
        };
        for mean in [0.1, 0.3, 3.0] {
            let missed = misses(mean, poisson(mean));
            assert!(missed <= 0.055, "{missed} at a mean of {mean}");
        }
        // Losses in bursts of ten, in every fifth run.
        let bursts = |random: &mut Xoshiro256PlusPlus| 10 * u64::from(happens(random, 0.2));
        let missed = misses(2.0, bursts);
        assert!(missed <= 0.055, "{missed} of bursts");
    }
}
