//! Where along an axis of a sweep a verdict changes.

use crate::description::Coordinate;

/// How close two values of an axis are to be between which a verdict changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    /// The distance, in the unit.
    pub step: f64,
    /// Decimals with which it is written.
    pub decimals: usize,
    /// Unit of the axis; may be empty.
    pub unit: String,
}

impl Resolution {
    /// A value about half way between two, a whole number of steps from the first; `None` where they are close enough,
    /// or no numbers.
    #[must_use]
    pub fn between(&self, first: &Coordinate, second: &Coordinate) -> Option<String> {
        let (from, to) = (first.number?, second.number?);
        // Decimal fractions are rounded: a distance of one step may be a little more.
        let steps = ((to - from) / self.step - 1e-6).ceil();
        if steps < 2.0 {
            return None;
        }
        let middle = from + (steps / 2.0).floor() * self.step;
        let text = format!("{middle:.0$} {1}", self.decimals, self.unit);
        Some(text.trim_end().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(number: f64) -> Coordinate {
        Coordinate {
            number: Some(number),
            ..Coordinate::default()
        }
    }

    fn of(step: f64, decimals: usize, unit: &str) -> Resolution {
        let unit = unit.to_owned();
        Resolution {
            step,
            decimals,
            unit,
        }
    }

    #[test]
    fn a_value_is_half_way_by_whole_steps_and_has_the_unit() {
        let between =
            |resolution: Resolution, from, to| resolution.between(&value(from), &value(to));
        assert_eq!(
            between(of(5.0, 0, "%"), 50.0, 75.0).as_deref(),
            Some("60 %")
        );
        assert_eq!(
            between(of(0.1, 1, "ms"), 0.2, 0.5).as_deref(),
            Some("0.3 ms")
        );
        assert_eq!(between(of(1.0, 0, ""), 4.0, 16.0).as_deref(), Some("10"));
        assert_eq!(between(of(0.1, 1, "ms"), 0.2, 0.3), None);
        assert_eq!(between(of(5.0, 0, "%"), 70.0, 75.0), None);
        let word = Coordinate::default();
        assert_eq!(of(5.0, 0, "%").between(&word, &value(75.0)), None);
    }

    proptest! {
        #[test]
        fn halving_ends_within_a_step(from in 0_u32..1000, distance in 1_u32..100_000, step in 1_u32..50, limit in 0.0..1.0_f64) {
            let resolution = of(f64::from(step), 0, "");
            let (mut low, mut high) = (f64::from(from), f64::from(from + distance));
            let limit = low + limit * f64::from(distance);
            for _ in 0..40 {
                let Some(text) = resolution.between(&value(low), &value(high)) else { break };
                let middle: f64 = text.parse().unwrap();
                prop_assert!(low < middle && middle < high, "{low} {middle} {high}");
                *(if middle <= limit { &mut low } else { &mut high }) = middle;
            }
            prop_assert!(high - low <= f64::from(step), "{low} {high}");
        }
    }
}
