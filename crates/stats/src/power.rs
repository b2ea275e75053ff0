//! How many repetitions a decision needs.

use crate::estimate::{normal_quantile, t_quantile, valid_confidence};

/// Whether `runs` repetitions (2 at least) give a one-sided t test at `confidence` a chance of [`POWER`] to see a
/// contrast of `distance` from its margin; `variance` is that of the contrast with one repetition.
///
/// n ≥ (t₁₋α + t_power)² × variance / distance², both quantiles with n − 1 degrees of freedom.
#[must_use]
pub fn suffices(runs: u32, distance: f64, variance: f64, confidence: f64) -> bool {
    let ratio = variance / (distance * distance);
    if !ratio.is_finite() {
        return false;
    }
    let confidence = valid_confidence(confidence);
    let (runs, freedom) = (f64::from(runs), f64::from(runs.saturating_sub(1).max(1)));
    // The t quantiles are larger than the normal ones, and dearer.
    let normal = normal_quantile(confidence) + normal_quantile(POWER);
    if normal * normal * ratio > runs {
        return false;
    }
    let sum = t_quantile(confidence, freedom) + t_quantile(POWER, freedom);
    sum * sum * ratio <= runs
}

/// The fewest repetitions, 2 at least, that are `enough`, where more than enough are enough as well; `None` where
/// [`MAX_REPETITIONS`] are not.
#[must_use]
pub fn fewest(enough: impl Fn(u32) -> bool) -> Option<u32> {
    if !enough(MAX_REPETITIONS) {
        return None;
    }
    let (mut too_few, mut found) = (1, MAX_REPETITIONS);
    while found - too_few > 1 {
        let middle = too_few.midpoint(found);
        if enough(middle) {
            found = middle;
        } else {
            too_few = middle;
        }
    }
    Some(found)
}

/// Power targeted by [`suffices`].
pub const POWER: f64 = 0.8;
/// A practical limit.
pub const MAX_REPETITIONS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn needed(distance: f64, variance: f64) -> Option<u32> {
        fewest(|runs| suffices(runs, distance, variance, 0.95))
    }

    #[test]
    fn equals_the_textbook_size_of_a_one_sample_test() {
        // One-sided 5 %, power 80 %: difference one standard deviation, and a half.
        assert_eq!(needed(1.0, 1.0), Some(8));
        assert_eq!(needed(0.5, 1.0), Some(27));
    }

    #[test]
    fn a_clear_case_needs_two_and_a_tie_cannot_be_decided() {
        assert_eq!(needed(1.0, 0.0), Some(2));
        assert_eq!(needed(0.0, 1.0), None);
        assert_eq!(needed(0.0, 0.0), None);
        assert_eq!(needed(1e-6, 1.0), None);
    }
}
