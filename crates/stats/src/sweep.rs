//! Where along an axis of a sweep a verdict changes.

use crate::description::Coordinate;

/// How close two values of an axis are to be between which a verdict changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    /// The distance, in the unit, or as a part of the smaller value.
    pub step: f64,
    /// True if the distance is a part of the smaller value.
    pub is_relative: bool,
    /// Decimals with which it is written.
    pub decimals: usize,
    /// Unit of the axis; may be empty.
    pub unit: String,
}

impl Resolution {
    /// A value about half way between two, a whole number of steps from the first unless they are relative; `None` where they are close enough, are
    /// no numbers, or none between them can be written with so many decimals.
    #[must_use]
    pub fn between(&self, first: &Coordinate, second: &Coordinate) -> Option<String> {
        let (from, to) = (first.number?, second.number?);
        // Decimal fractions are rounded: a distance of one step may be a little more.
        let step = match self.is_relative {
            true => self.step * from.abs(),
            false => self.step,
        };
        let steps = ((to - from) / step - 1e-6).ceil();
        if steps < 2.0 {
            return None;
        }
        let middle = match self.is_relative {
            true => from + (to - from) / 2.0,
            false => from + (steps / 2.0).floor() * step,
        };
        let decimals = self.decimals.max(decimals(&first.text));
        let text = format!("{middle:.decimals$}");
        let text = match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.'),
            false => &text,
        };
        let number: f64 = text.parse().ok()?;
        let is_between = from < number && number < to;
        is_between.then(|| format!("{text} {}", self.unit).trim_end().to_owned())
    }
}

/// Decimals with which a number is written.
#[must_use]
pub fn decimals(text: &str) -> usize {
    let (_, rest) = text.split_once('.').unwrap_or_default();
    rest.chars().take_while(char::is_ascii_digit).count()
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
            is_relative: false,
            decimals,
            unit,
        }
    }

    #[test]
    fn a_relative_distance_is_a_part_of_the_smaller_value() {
        let resolution = Resolution {
            is_relative: true,
            ..of(0.1, 0, "packets")
        };
        let between = |from, to| resolution.between(&value(from), &value(to));
        assert_eq!(between(128.0, 256.0).as_deref(), Some("192 packets"));
        assert_eq!(between(240.0, 265.0).as_deref(), Some("252 packets"));
        assert_eq!(between(240.0, 264.0), None);
        // No whole number is between them.
        assert_eq!(between(1.0, 2.0), None);
        assert_eq!(between(0.0, 2.0).as_deref(), Some("1 packets"));
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
        let written = |text: &str, to| {
            let first = Coordinate {
                text: text.to_owned(),
                number: text.parse().ok(),
                ..Coordinate::default()
            };
            of(1.0, 0, "%").between(&first, &value(to))
        };
        // A value that begins with decimals keeps them; zeros are none.
        assert_eq!(written("40.5", 43.0).as_deref(), Some("41.5 %"));
        assert_eq!(written("40.6", 41.7).as_deref(), Some("41.6 %"));
        assert_eq!(written("40.0", 44.0).as_deref(), Some("42 %"));
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
