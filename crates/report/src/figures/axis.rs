//! Axes: where they begin and end, and which values are written along them.

/// An axis of a figure. Everything is drawn in its own coordinates: [`Axis::place`].
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    /// Written along the axis.
    pub(crate) name: String,
    low: f64,
    high: f64,
    logarithmic: bool,
    /// Labelled values.
    ticks: Vec<(f64, String)>,
}

impl Axis {
    /// From 0 to a round value above `largest`; labels in units of `factor`.
    pub(crate) fn from_zero(name: &str, largest: f64, factor: f64) -> Self {
        let largest = if largest > 0.0 { largest } else { factor };
        let step = nice_step(largest / 5.0);
        let steps = (largest / step * (1.0 - 1e-9)).ceil().max(1.0);
        let ticks = (0..=MOST_TICKS)
            .map(f64::from)
            .take_while(|n| *n <= steps)
            .map(|n| {
                (
                    n * step,
                    slicewise_stats::words::digits(n * step / factor, 4),
                )
            })
            .collect();
        Self {
            name: name.to_owned(),
            low: 0.0,
            high: steps * step,
            logarithmic: false,
            ticks,
        }
    }

    /// From exactly 0 to exactly `end`, for time.
    pub(crate) fn span(name: &str, end: f64) -> Self {
        let mut axis = Self::from_zero(name, end, 1.0);
        axis.ticks.retain(|(value, _)| *value <= end * (1.0 + 1e-9));
        axis.high = if end > 0.0 { end } else { 1.0 };
        axis
    }

    /// One place for each name, with room around it.
    pub(crate) fn categories(name: &str, names: &[String]) -> Self {
        let ticks = (0u32..)
            .zip(names)
            .map(|(i, n)| (f64::from(i) + 0.5, n.clone()))
            .collect();
        let high = f64::from(u32::try_from(names.len()).unwrap_or(u32::MAX)).max(1.0);
        Self {
            name: name.to_owned(),
            low: 0.0,
            high,
            logarithmic: false,
            ticks,
        }
    }

    /// A logarithmic axis around all of `values` that are above 0; `label` writes one.
    pub(crate) fn logarithmic(
        name: &str,
        values: impl Iterator<Item = f64>,
        label: fn(f64) -> String,
    ) -> Self {
        let (mut low, mut high) = (f64::INFINITY, 0.0f64);
        for value in values.filter(|v| v.is_finite() && *v > 0.0) {
            low = low.min(value);
            high = high.max(value);
        }
        if high == 0.0 {
            (low, high) = (1.0, 10.0);
        }
        let (low, high) = (round_log(low * 0.97, false), round_log(high * 1.03, true));
        let decades = (high / low).log10();
        let steps: &[f64] = if decades > 3.0 {
            &[1.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        let mut ticks = Vec::new();
        let mut power = 10f64.powf(low.log10().floor());
        while power <= high * (1.0 + 1e-9) && ticks.len() < MOST_TICKS as usize {
            let inside =
                |value: &f64| *value >= low * (1.0 - 1e-9) && *value <= high * (1.0 + 1e-9);
            ticks.extend(
                steps
                    .iter()
                    .map(|s| s * power)
                    .filter(inside)
                    .map(|v| (v, label(v))),
            );
            power *= 10.0;
        }
        Self {
            name: name.to_owned(),
            low,
            high,
            logarithmic: true,
            ticks,
        }
    }

    /// Returns true if the axis is logarithmic: lengths along it mean nothing.
    pub(crate) fn is_logarithmic(&self) -> bool {
        self.logarithmic
    }

    /// Where `value` lies on the axis, kept between its ends.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        if self.logarithmic {
            value.log10()
        } else {
            value
        }
    }

    /// The axis's ends, in its own coordinates.
    pub(crate) fn range(&self) -> std::ops::Range<f64> {
        self.place(self.low)..self.place(self.high)
    }

    /// Places of the labels.
    pub(crate) fn tick_places(&self) -> Vec<f64> {
        self.ticks
            .iter()
            .map(|(value, _)| self.place(*value))
            .collect()
    }

    /// The label at a place.
    pub(crate) fn label_at(&self, place: f64) -> String {
        let near = |value: f64| (self.place(value) - place).abs() < 1e-9;
        let found = self.ticks.iter().find(|(value, _)| near(*value));
        found.map_or_else(String::new, |(_, label)| label.clone())
    }
}

/// 1, 2 or 5 times a power of ten, at least `step`.
fn nice_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|s| s * power)
        .find(|s| *s >= step * (1.0 - 1e-9))
        .unwrap_or(step)
}

/// 1, 2 or 5 times a power of ten next to `value`.
fn round_log(value: f64, upward: bool) -> f64 {
    let up = nice_step(value);
    if upward || up <= value {
        return up;
    }
    let power = 10f64.powf(value.log10().floor());
    [5.0, 2.0, 1.0]
        .into_iter()
        .map(|s| s * power)
        .find(|s| *s <= value)
        .unwrap_or(value)
}

const MOST_TICKS: u32 = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use slicewise_stats::words::time;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.tick_places()
            .into_iter()
            .map(|place| axis.label_at(place))
            .collect()
    }

    #[test]
    fn labels_round_values() {
        let rate = Axis::from_zero("Mbit/s", 19_300_000.0, 1e6);
        assert_eq!(labels(&rate), ["0", "5", "10", "15", "20"]);
        assert_eq!(
            labels(&Axis::from_zero("%", 0.0, 0.01)),
            ["0", "0.2", "0.4", "0.6", "0.8", "1"]
        );
        let delay = Axis::logarithmic("delay", [126_000.0, 450_000.0].into_iter(), time);
        assert_eq!(labels(&delay), ["100 µs", "200 µs", "500 µs"]);
        assert_eq!(
            labels(&Axis::span("s", 40.0)),
            ["0", "10", "20", "30", "40"]
        );
    }

    proptest! {
        #[test]
        fn every_value_lies_inside(values in proptest::collection::vec(1u32.., 1..20)) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let largest = values.iter().copied().fold(0.0, f64::max);
            for axis in [
                Axis::from_zero("", largest, 1.0),
                Axis::logarithmic("", values.iter().copied(), time),
            ] {
                prop_assert!(!axis.ticks.is_empty() && axis.ticks.len() <= MOST_TICKS as usize);
                for value in &values {
                    prop_assert!(axis.low <= *value && *value <= axis.high);
                    prop_assert!(axis.range().start <= axis.place(*value));
                    prop_assert!(axis.place(*value) <= axis.range().end);
                }
            }
        }
    }
}
