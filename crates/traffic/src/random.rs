//! Random numbers: one independent stream for each source, the same on every machine.

use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

/// A stream of random numbers (Blackman & Vigna 2021, xoshiro256++).
#[derive(Debug, Clone)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// Stream number `stream` of `seed`. The 256 bits of state are drawn by SplitMix64 from both,
    /// so streams are as good as independent and adding one leaves the others as they were.
    #[must_use]
    pub fn stream(seed: u64, stream: u64) -> Self {
        let mut seeds = SplitMix64::seed_from_u64(seed);
        let seed = seeds.next_u64() ^ SplitMix64::seed_from_u64(stream).next_u64().rotate_left(17);
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Uniform in [0, `bound`), without bias (Lemire 2019, "Fast random integer generation in an
    /// interval"); 0 for a bound of 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        let drawn = self.multiplied(bound);
        let [high, low] = split(drawn);
        if low >= bound {
            return high;
        }
        self.drawn_again(drawn, bound)
    }

    /// Returns the number drawn, or the next where that would be biased.
    #[cold]
    fn drawn_again(&mut self, mut drawn: u128, bound: u64) -> u64 {
        let least = bound.wrapping_neg().checked_rem(bound).unwrap_or(0);
        while split(drawn)[1] < least {
            drawn = self.multiplied(bound);
        }
        split(drawn)[0]
    }

    #[inline]
    fn multiplied(&mut self, bound: u64) -> u128 {
        u128::from(self.0.next_u64()) * u128::from(bound)
    }

    /// True with this probability, from 0 to 1.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Normally distributed with mean 0 and standard deviation 1 (the polar method: G. Marsaglia, T. A.
    /// Bray, "A convenient method for generating normal variables", SIAM Review 6, 1964).
    pub fn normal(&mut self) -> f64 {
        loop {
            let [x, y] = [self.uniform(), self.uniform()].map(|uniform| 2.0 * uniform - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * libm::sqrt(-2.0 * libm::log(square) / square);
            }
        }
    }

    /// Uniform in [0, 1), 53 bits.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "53 bits")]
    fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Exponentially distributed with the given mean, rounded to whole units.
    ///
    /// The logarithm is computed in software, because that of the platform's library may differ
    /// in its last bit from one machine to the next.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> u64 {
        rounded(self.unit_exponential() * mean)
    }

    /// Exponentially distributed with mean 1.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "53 bits")]
    pub(crate) fn unit_exponential(&mut self) -> f64 {
        let uniform = ((self.0.next_u64() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64);
        -libm::log(uniform)
    }
}

/// Rounds a number that is not negative to the nearest integer as `libm::round` does it, which also looks for a sign:
/// to add one half itself would round the largest number below it up.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "finite and not negative"
)]
pub(crate) fn rounded(value: f64) -> u64 {
    (value + 0.5_f64.next_down()) as u64
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the halves of a u128")]
const fn split(product: u128) -> [u64; 2] {
    [(product >> 64) as u64, product as u64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_and_repeat() {
        let draw = |seed, stream| {
            let mut random = Random::stream(seed, stream);
            [random.below(u64::MAX), random.below(u64::MAX)]
        };
        assert_eq!(draw(1, 0), draw(1, 0));
        assert_ne!(draw(1, 0), draw(1, 1));
        assert_ne!(draw(1, 0), draw(2, 0));
        assert_ne!(draw(1, 2), draw(2, 1));
    }

    #[test]
    fn below_stays_below_and_reaches_every_value() {
        let mut random = Random::stream(3, 0);
        let mut seen = [0u32; 5];
        for _ in 0..5_000 {
            seen[usize::try_from(random.below(5)).unwrap()] += 1;
        }
        // 1,000 ± 28 (one standard deviation) each.
        assert!(
            seen.iter().all(|count| (850..1_150).contains(count)),
            "{seen:?}"
        );
        assert_eq!(random.below(0), 0);
        assert_eq!(random.below(1), 0);
    }

    #[test]
    fn normal_has_its_moments() {
        let mut random = Random::stream(5, 0);
        let draws: Vec<f64> = (0..100_000).map(|_| random.normal()).collect();
        let moment = |power: i32| draws.iter().map(|x| x.powi(power)).sum::<f64>() / 1e5;
        // Standard errors: sqrt(1/n), sqrt(2/n), sqrt(96/n).
        assert!(moment(1).abs() < 4.0 * 0.0032, "{}", moment(1));
        assert!((moment(2) - 1.0).abs() < 4.0 * 0.0045, "{}", moment(2));
        assert!((moment(4) - 3.0).abs() < 4.0 * 0.031, "{}", moment(4));
    }

    #[test]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative"
    )]
    fn rounding_is_that_of_libm() {
        let powers = (0..63).map(|exponent| libm::exp2(exponent.into()));
        let values = powers.flat_map(|power| [0.25, 0.5, 0.75, 1.0, 1.5].map(|part| part * power));
        for value in values.flat_map(|value| [value.next_down(), value, value.next_up()]) {
            assert_eq!(rounded(value), libm::round(value) as u64, "{value}");
        }
        assert_eq!([0.0, -0.0].map(rounded), [0; 2]);
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "a statistic")]
    fn exponential_has_its_mean() {
        let mut random = Random::stream(4, 0);
        let sum: u64 = (0..100_000).map(|_| random.exponential(1e6)).sum();
        let mean = sum as f64 / 100_000.0;
        // The standard error of the mean is 1e6 / sqrt(100,000) = 3,162.
        assert!((mean - 1e6).abs() < 4.0 * 3_162.0, "{mean}");
    }
}
