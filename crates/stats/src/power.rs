//! How many repetitions a decision needs.

use crate::estimate::{normal_quantile, t_quantile, valid_confidence};

/// Repetitions in each of `groups` independent samples that a one-sided t test at `confidence`
/// needs to detect a contrast of `distance` from its margin with a probability of [`POWER`].
///
/// `variance` is that of the contrast with one repetition in each sample. `None` where it would
/// take more than [`MAX_REPETITIONS`].
///
/// n = (t₁₋α + t_power)² × variance / distance², solved for n because the quantiles depend on it.
#[must_use]
pub fn repetitions_needed(
    distance: f64,
    variance: f64,
    confidence: f64,
    groups: u32,
) -> Option<u32> {
    let ratio = variance / (distance * distance);
    if !ratio.is_finite() {
        return None;
    }
    let confidence = valid_confidence(confidence);
    let normal = (normal_quantile(confidence) + normal_quantile(POWER)).powi(2) * ratio;
    if normal > f64::from(MAX_REPETITIONS) {
        return None;
    }
    // The t quantiles are larger than the normal ones: the answer lies above, and not far.
    let suffices = |n: u32| {
        let freedom = f64::from(groups.max(1)) * f64::from(n - 1);
        let sum = t_quantile(confidence, freedom) + t_quantile(POWER, freedom);
        sum * sum * ratio <= f64::from(n)
    };
    #[expect(clippy::cast_possible_truncation, reason = "at most MAX_REPETITIONS")]
    #[expect(clippy::cast_sign_loss, reason = "a square")]
    let start = (normal.ceil() as u32).max(2);
    (start..=MAX_REPETITIONS).find(|&n| suffices(n))
}

/// Power targeted by [`repetitions_needed`].
pub const POWER: f64 = 0.8;
/// A practical limit.
pub const MAX_REPETITIONS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_textbook_size_of_a_two_sample_test() {
        // One-sided 5 %, power 80 %, difference half a standard deviation: 51 per group.
        assert_eq!(repetitions_needed(0.5, 2.0, 0.95, 2), Some(51));
        // One sample, difference one standard deviation: 8.
        assert_eq!(repetitions_needed(1.0, 1.0, 0.95, 1), Some(8));
    }

    #[test]
    fn a_clear_case_needs_two_and_a_tie_cannot_be_decided() {
        assert_eq!(repetitions_needed(1.0, 0.0, 0.95, 2), Some(2));
        assert_eq!(repetitions_needed(0.0, 1.0, 0.95, 2), None);
        assert_eq!(repetitions_needed(0.0, 0.0, 0.95, 2), None);
        assert_eq!(repetitions_needed(1e-6, 1.0, 0.95, 2), None);
    }
}
