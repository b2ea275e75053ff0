//! Rates of token buckets as fractions of the port's rate, with the rounding of the library.
//!
//! The library (`rte_approx_64`) takes the fraction with the smallest denominator that differs from the
//! quotient of two rates by less than 10^-7, counted in units of 10^-8. It computes that quotient in double
//! precision, and rounds it down to such a unit; so this does, too.

/// The largest error of a rate, relative to the rate of the port.
const ERROR: f64 = 1e-7;

/// Bytes earned, and bytes of port time in which they are earned; `None` where no fraction is close enough.
pub(super) fn share_of_port(rate: u64, port_rate: u64) -> Option<(u64, u64)> {
    if rate == port_rate {
        return Some((1, 1));
    }
    #[expect(clippy::cast_precision_loss, reason = "as the library computes it")]
    let (mut share, mut error) = (rate as f64 / port_rate as f64, ERROR);
    let mut units: u64 = 1;
    while error < 1.0 {
        share *= 10.0;
        error *= 10.0;
        units *= 10;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rounded down, and not negative"
    )]
    let (share, error) = (share as u64, error as u64);
    let is_possible = 0 < error && error < share && share + error < units;
    is_possible.then(|| simplest_between((share - error, units), (share + error, units)))
}

/// The fraction with the smallest denominator that is greater than `low` and less than `high`, two fractions of
/// which the first is less: the first node of the Stern-Brocot tree between them.
fn simplest_between(low: (u64, u64), high: (u64, u64)) -> (u64, u64) {
    let whole = low.0 / low.1;
    if (whole + 1) * high.1 < high.0 {
        return (whole + 1, 1);
    }
    // Both have the same whole part, unless `high` is the next whole number: what is left is less than one, and its
    // inverse is searched.
    let (low_rest, high_rest) = (low.0 - whole * low.1, high.0 - whole * high.1);
    if low_rest == 0 {
        // Any 1/n that is small enough.
        let n = high.1 / high_rest + 1;
        return (whole * n + 1, n);
    }
    let (denominator, numerator) = simplest_between((high.1, high_rest), (low.1, low_rest));
    (whole * denominator + numerator, denominator)
}

#[cfg(test)]
mod tests {
    use super::{share_of_port, simplest_between};
    use proptest::prelude::*;

    /// Compares with the answers of the library's `rte_approx_64` (22.11) for a port of 1.25 GB/s.
    #[test]
    fn rates_are_rounded_as_by_the_library() {
        for (rate, expected) in [
            (1_250_000_000, Some((1, 1))),
            (625_000_000, Some((1, 2))),
            (333_333_333, Some((4, 15))),
            (305_175, Some((1, 4096))),
            (1_000_003, Some((1, 1250))),
            (1_249_999_870, Some((3_333_333, 3_333_334))),
            (126, None),
            (1_249_999_999, None),
        ] {
            assert_eq!(share_of_port(rate, 1_250_000_000), expected, "{rate}");
        }
    }

    proptest! {
        #[test]
        fn no_fraction_between_has_a_smaller_denominator(low in 0_u64..400, width in 1_u64..50) {
            let (low, high) = ((low, 401), (low + width, 401));
            let (numerator, denominator) = simplest_between(low, high);
            let between = |n: u64, d: u64| low.0 * d < n * low.1 && n * high.1 < high.0 * d;
            prop_assert!(between(numerator, denominator));
            for d in 1..denominator {
                prop_assert!((0..=2 * d).all(|n| !between(n, d)), "{d}");
            }
        }
    }
}
