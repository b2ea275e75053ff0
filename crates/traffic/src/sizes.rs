//! How long the packets of a source are.

use crate::pace::Interval;
use crate::random::Random;

/// How long the packets of a source are, in bytes from the destination address to the end of the payload.
#[derive(Debug, Clone)]
pub enum Sizes {
    /// All alike.
    Equal(u32),
    /// Drawn for each packet.
    Mix(Mix),
    /// Sizes of the IP packets of the recording that is replayed.
    Recorded {
        /// Bytes before the IP header.
        l3_offset: u32,
        /// Bytes of a packet without payload: what no packet is shorter than.
        least: u32,
    },
}

/// Sizes drawn by weight, each packet's for itself, from random numbers that nothing else is drawn from:
/// so when packets leave at random times, those times do not depend on the sizes.
#[derive(Debug, Clone)]
pub struct Mix {
    /// In order of `below`.
    sizes: Vec<MixedSize>,
    random: Random,
}

/// A size of a [`Mix`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct MixedSize {
    /// The sum of the weights up to its own.
    below: u64,
    pub(crate) l2_bytes: u32,
    /// How long a packet of it lasts at the source's rate.
    pub(crate) interval: Interval,
}

impl Mix {
    /// Sizes with their weights, and how long a packet of each lasts. `None` where all weights are zero.
    #[must_use]
    pub fn new(
        sizes: impl IntoIterator<Item = (u32, u32, Interval)>,
        random: Random,
    ) -> Option<Self> {
        let mut below = 0u64;
        let sizes: Vec<MixedSize> = sizes
            .into_iter()
            .map(|(l2_bytes, weight, interval)| {
                below = below.saturating_add(u64::from(weight));
                MixedSize {
                    below,
                    l2_bytes,
                    interval,
                }
            })
            .collect();
        (below > 0).then_some(Self { sizes, random })
    }

    #[inline]
    pub(crate) fn draw(&mut self) -> Option<MixedSize> {
        let drawn = self.random.below(self.sizes.last()?.below);
        let place = self.sizes.partition_point(|size| size.below <= drawn);
        self.sizes.get(place).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mix(weights: &[u32], seed: u64) -> Mix {
        let sizes = (1u32..).zip(weights);
        let sizes = sizes.map(|(size, weight)| (size, *weight, Interval::default()));
        Mix::new(sizes, Random::stream(seed, 1)).unwrap()
    }

    fn counts(mix: &mut Mix, sizes: usize, draws: u32) -> Vec<f64> {
        let mut counts = vec![0.0; sizes];
        for _ in 0..draws {
            counts[mix.draw().unwrap().l2_bytes as usize - 1] += 1.0;
        }
        counts
    }

    /// 20 seeds of three sizes are 60 binomial counts: one beyond 4.4 standard deviations (two-sided, 1e-5) would be
    /// one of 1,600 such tests.
    #[test]
    fn weights_are_met_within_the_binomial_interval_for_20_seeds() {
        const DRAWS: u32 = 24_000;
        for seed in 0..20 {
            let counts = counts(&mut mix(&[7, 4, 1], seed), 3, DRAWS);
            for (count, weight) in counts.iter().zip([7.0, 4.0, 1.0]) {
                let p = weight / 12.0;
                let mean = f64::from(DRAWS) * p;
                let deviation = (mean * (1.0 - p)).sqrt();
                assert!(
                    (count - mean).abs() < 4.4 * deviation,
                    "seed {seed}: {counts:?}"
                );
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_size_of_some_weight_is_drawn_and_no_other(
            weights in prop::collection::vec(0u32..20, 1..8),
            seed in any::<u64>(),
        ) {
            prop_assume!(weights.iter().any(|weight| *weight > 0));
            let counts = counts(&mut mix(&weights, seed), weights.len(), 5_000);
            for (count, weight) in counts.iter().zip(&weights) {
                prop_assert_eq!(*count > 0.0, *weight > 0, "{:?} of {:?}", &counts, &weights);
            }
        }
    }

    #[test]
    fn nothing_of_any_weight_is_no_mix() {
        let random = Random::stream(1, 1);
        assert!(Mix::new([(64, 0, Interval::default())], random.clone()).is_none());
        assert!(Mix::new([], random).is_none());
    }
}
