//! Many tests at once: Holm's step-down correction (S. Holm, Scand. J. Stat. 6, 1979).

/// Adjusted p-values, in the order of `p_values`: rejecting those at or below α keeps the chance
/// of any false rejection at α, whatever the dependence between the tests.
#[must_use]
pub fn holm_adjusted(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest = 0.0f64;
    for (rank, &index) in order.iter().enumerate() {
        let remaining = (p_values.len() - rank) as f64;
        largest = largest.max((p_values[index] * remaining).min(1.0));
        adjusted[index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn adjusts_a_worked_example() {
        let adjusted = holm_adjusted(&[0.01, 0.04, 0.03, 0.005]);
        for (value, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((value - expected).abs() < 1e-12, "{adjusted:?}");
        }
        assert!(holm_adjusted(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn keeps_the_order_and_lies_between_the_raw_and_bonferronis(
            p_values in prop::collection::vec(0.0f64..=1.0, 1..40),
        ) {
            let adjusted = holm_adjusted(&p_values);
            for (&raw, &value) in p_values.iter().zip(&adjusted) {
                prop_assert!(raw <= value && value <= (raw * p_values.len() as f64).min(1.0));
                for (&other_raw, &other) in p_values.iter().zip(&adjusted) {
                    prop_assert!(raw > other_raw || value <= other);
                }
            }
        }
    }
}
