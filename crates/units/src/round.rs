//! Quantities rounded for people.

use crate::{BitRate, ByteCount, Duration};

/// Digits that are kept.
const DIGITS: u32 = 4;

/// To four significant digits.
pub trait Rounded: Sized {
    /// To the next value below, or the same.
    #[must_use]
    fn rounded_down(self) -> Self;
    /// To the next value above, or the same.
    #[must_use]
    fn rounded_up(self) -> Self;
}

macro_rules! rounded {
    ($type:ty, $new:path, $value:path) => {
        impl Rounded for $type {
            fn rounded_down(self) -> Self {
                let value = $value(self);
                $new(value - value % step(value))
            }

            fn rounded_up(self) -> Self {
                let value = $value(self);
                $new(value.checked_next_multiple_of(step(value)).unwrap_or(value))
            }
        }
    };
}

rounded!(BitRate, BitRate::new, BitRate::bits_per_second);
rounded!(ByteCount, ByteCount::new, ByteCount::bytes);
rounded!(Duration, Duration::from_nanos, Duration::nanos);

/// Returns the number to a multiple of which a value is rounded.
fn step(value: u64) -> u64 {
    10u64.pow((value.checked_ilog10().unwrap_or(0) + 1).saturating_sub(DIGITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_are_kept() {
        let shown = |nanos| {
            let exact = Duration::from_nanos(nanos);
            [exact.rounded_down(), exact.rounded_up()].map(|rounded| rounded.to_string())
        };
        assert_eq!(shown(0), ["0 ns", "0 ns"]);
        assert_eq!(shown(9_999), ["9.999 µs", "9.999 µs"]);
        assert_eq!(shown(8_610_816), ["8.61 ms", "8.611 ms"]);
        assert_eq!(shown(99_999_999), ["99.99 ms", "100 ms"]);
        assert_eq!(
            ByteCount::new(6_149_128_506).rounded_down().to_string(),
            "6.149 GB"
        );
        assert_eq!(Duration::MAX.rounded_up(), Duration::MAX);
        assert_eq!(BitRate::ZERO.rounded_up(), BitRate::ZERO);
    }
}
