//! Axes: where they begin and end, which values are written along them, and where a value lies.

use crate::populations::grouped;
use slicewise_stats::words::digits;

/// An axis of a figure, in the units of the data.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    /// Quantity, and the unit of the labels; may be empty.
    quantity: String,
    unit: String,
    /// One unit of the labels in that of the data.
    factor: f64,
    low: f64,
    high: f64,
    /// Values that have labels instead of round ones, in ascending order.
    labelled: Vec<f64>,
    pub(super) scale: Scale,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scale {
    Linear,
    Logarithmic,
    /// Shares of a whole with a logarithmic tail: 0, 90, 99 … 99.999 % at equal distances.
    Tail,
    /// A place for each name.
    Categories(Vec<String>),
}

impl Axis {
    fn new(quantity: &str, (unit, factor): (&str, f64), range: (f64, f64), scale: Scale) -> Self {
        Self {
            quantity: quantity.to_owned(),
            unit: unit.to_owned(),
            factor,
            low: range.0,
            high: range.1,
            labelled: Vec::new(),
            scale,
        }
    }

    /// From 0 to a round value at or above `largest`.
    pub(super) fn from_zero(quantity: &str, unit: (&str, f64), largest: f64) -> Self {
        let largest = if largest > 0.0 { largest } else { unit.1 };
        let step = nice_step(largest / 5.0);
        let high = (largest / step * (1.0 - 1e-9)).ceil().max(1.0) * step;
        Self::new(quantity, unit, (0.0, high), Scale::Linear)
    }

    /// From exactly 0 to exactly `end`: time, s.
    pub(super) fn seconds(end: f64) -> Self {
        let end = if end > 0.0 { end } else { 1.0 };
        Self::new(
            "time since the start of the run",
            ("s", 1.0),
            (0.0, end),
            Scale::Linear,
        )
    }

    /// Around all of `values`: logarithmic where they lie far apart.
    pub(super) fn around(quantity: &str, values: &[f64]) -> Self {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if least > 0.0 && most / least > 20.0 {
            return Self::logarithmic(quantity, ("", 1.0), values.iter().copied());
        }
        let room = if most > least {
            most - least
        } else {
            most.abs().max(1.0)
        } * 0.04;
        Self::new(
            quantity,
            ("", 1.0),
            (least - room, most + room),
            Scale::Linear,
        )
    }

    /// An axis of cells at `values`, which ascend, and the edges of the cells: half way between neighbours; logarithmic
    /// where the values lie far apart.
    pub(super) fn of_cells(quantity: &str, values: &[f64]) -> (Self, Vec<f64>) {
        let (first, last) = (values.first().copied(), values.last().copied());
        let (first, last) = first.zip(last).unwrap_or((0.0, 1.0));
        let is_logarithmic = first > 0.0 && last / first > 20.0;
        let to = |value: f64| if is_logarithmic { value.ln() } else { value };
        let from = |place: f64| if is_logarithmic { place.exp() } else { place };
        let scale = match is_logarithmic {
            true => Scale::Logarithmic,
            false => Scale::Linear,
        };
        let places: Vec<f64> = values.iter().map(|value| to(*value)).collect();
        let between = places.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0);
        let between: Vec<f64> = between.collect();
        // The outer cells reach as far out as in.
        let beyond = |value: f64, edge: Option<&f64>| 2.0 * to(value) - edge.unwrap_or(&to(value));
        let low = beyond(first, between.first());
        let high = beyond(last, between.last());
        let edges = std::iter::once(low).chain(between).chain([high]);
        let edges: Vec<f64> = edges.map(from).collect();
        let axis = Self::new(quantity, ("", 1.0), (from(low), from(high)), scale);
        let labelled = values.to_vec();
        (Self { labelled, ..axis }, edges)
    }

    /// A logarithmic axis with round ends around all of `values` that are above 0.
    pub(super) fn logarithmic(
        quantity: &str,
        unit: (&str, f64),
        values: impl Iterator<Item = f64>,
    ) -> Self {
        let (mut low, mut high) = (f64::INFINITY, 0.0f64);
        for value in values.filter(|v| v.is_finite() && *v > 0.0) {
            low = low.min(value);
            high = high.max(value);
        }
        if high == 0.0 {
            (low, high) = (unit.1, 10.0 * unit.1);
        }
        let range = (round_log(low * 0.97, false), round_log(high * 1.03, true));
        Self::new(quantity, unit, range, Scale::Logarithmic)
    }

    /// A logarithmic axis of times in ns, in the unit that suits the largest.
    pub(super) fn time(quantity: &str, values: impl Iterator<Item = f64>) -> Self {
        let mut axis = Self::logarithmic(quantity, ("ms", 1e6), values);
        let units = [("s", 1e9, 1e10), ("ms", 1e6, 1e6), ("µs", 1e3, 0.0)];
        let suits = |(_, _, from): &(&str, f64, f64)| axis.high > *from;
        if let Some((unit, factor, _)) = units.into_iter().find(suits) {
            (axis.unit, axis.factor) = (unit.to_owned(), factor);
        }
        axis
    }

    /// Shares of a whole with a logarithmic tail.
    pub(super) fn tail(quantity: &str) -> Self {
        Self::new(quantity, ("%", 0.01), (0.0, 1.0 - RAREST), Scale::Tail)
    }

    /// One place for each name, with room around it.
    pub(super) fn categories(quantity: &str, names: Vec<String>) -> Self {
        let high = super::count(names.len()).max(1.0);
        Self::new(quantity, ("", 1.0), (0.0, high), Scale::Categories(names))
    }

    /// Quantity and unit, as they are written along the axis.
    pub(super) fn name(&self) -> String {
        match self.unit.as_str() {
            "" => self.quantity.clone(),
            unit => format!("{} ({unit})", self.quantity),
        }
    }

    /// A value in the unit of the labels.
    pub(super) fn in_unit(&self, value: f64) -> f64 {
        value / self.factor
    }

    /// Returns the value that is so many units of the labels.
    pub(super) fn in_data(&self, value: f64) -> f64 {
        value * self.factor
    }

    /// Returns true if `value` is between the ends.
    pub(super) fn holds(&self, value: f64) -> bool {
        let rounding = 1e-9 * (self.high - self.low);
        (self.low - rounding..=self.high + rounding).contains(&value)
    }

    /// Where `value` lies between the ends, 0 to 1; values outside lie at the ends.
    pub(super) fn place(&self, value: f64) -> f64 {
        let value = value.max(self.low).min(self.high);
        let place = match self.scale {
            Scale::Logarithmic => (value / self.low).log10() / (self.high / self.low).log10(),
            Scale::Tail => (1.0 - value).log10() / RAREST.log10(),
            Scale::Linear | Scale::Categories(_) => (value - self.low) / (self.high - self.low),
        };
        // Axes of numbers beyond what a float holds.
        if place.is_finite() { place } else { 0.5 }
    }

    /// About `most` values with their labels; all names of categories.
    pub(super) fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        let label = |value: f64| (value, self.label(value));
        match &self.scale {
            _ if !self.labelled.is_empty() => {
                let mut last = f64::NEG_INFINITY;
                let apart = 0.5 / super::count(most);
                let values = self.labelled.iter().copied().filter(|value| {
                    let is_apart = self.place(*value) >= last + apart;
                    if is_apart {
                        last = self.place(*value);
                    }
                    is_apart
                });
                values.map(label).collect()
            }
            Scale::Linear => self.linear_ticks(most).into_iter().map(label).collect(),
            Scale::Logarithmic => {
                let fine = self.powers(&[1.0, 2.0, 5.0]);
                let mut values = if fine.len() <= most {
                    fine
                } else {
                    self.powers(&[1.0])
                };
                if values.len() < 2 {
                    values = vec![self.low, self.high];
                }
                let every = values.len().div_ceil(most.max(2));
                values.into_iter().step_by(every).map(label).collect()
            }
            Scale::Tail => [0.0, 0.9, 0.99, 0.999, 0.9999, 1.0 - RAREST]
                .map(label)
                .to_vec(),
            Scale::Categories(names) => {
                let places = (0..names.len()).map(|index| super::count(index) + 0.5);
                places.zip(names.iter().cloned()).collect()
            }
        }
    }

    /// Multiples of a round step; of a smaller one where none lies between the ends.
    fn linear_ticks(&self, most: usize) -> Vec<f64> {
        let ticks = |most: usize| -> Vec<f64> {
            let step = nice_step((self.high - self.low) / super::count(most));
            let first = (self.low / step - 1e-9).ceil();
            let values = (0..MOST_TICKS).map(|n| (first + f64::from(n)) * step);
            values
                .take_while(|value| *value <= self.high + step * 1e-9)
                .collect()
        };
        let most = most.max(1);
        let found = [most, 2 * most, 4 * most, 8 * most].map(ticks);
        let mut found = found.into_iter();
        found.find(|ticks| !ticks.is_empty()).unwrap_or_default()
    }

    /// Values between the labels, by which a logarithmic axis is known.
    pub(super) fn minor_ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Logarithmic if self.labelled.is_empty() => {
                self.powers(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
            }
            _ => Vec::new(),
        }
    }

    fn powers(&self, steps: &[f64]) -> Vec<f64> {
        let first = 10f64.powf((self.low / self.factor).log10().floor()) * self.factor;
        let powers = (0..MOST_TICKS).map(|n| first * 10f64.powf(f64::from(n)));
        let values = powers.flat_map(|power| steps.iter().map(move |step| step * power));
        let inside = values.filter(|v| *v >= self.low * (1.0 - 1e-9));
        inside
            .take_while(|v| *v <= self.high * (1.0 + 1e-9))
            .collect()
    }

    fn label(&self, value: f64) -> String {
        let value = value / self.factor;
        if self.scale == Scale::Tail {
            return digits(value, 5);
        }
        if (1e4..1e15).contains(&value) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked above"
            )]
            return grouped(value.round() as u64);
        }
        digits(value, 4)
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

const MOST_TICKS: i32 = 40;
/// Frames that are later than all that a tail shows: 1 in 100,000.
const RAREST: f64 = 1e-5;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(axis: &Axis, most: usize) -> Vec<String> {
        axis.ticks(most)
            .into_iter()
            .map(|(_, label)| label)
            .collect()
    }

    #[test]
    fn labels_round_values() {
        let rate = Axis::from_zero("rate", ("Mbit/s", 1e6), 19_300_000.0);
        assert_eq!(labels(&rate, 5), ["0", "5", "10", "15", "20"]);
        assert_eq!(labels(&rate, 2), ["0", "10", "20"]);
        let loss = Axis::from_zero("loss", ("%", 0.01), 0.0);
        assert_eq!(labels(&loss, 5), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        let delay = Axis::time("delay", [126_000.0, 450_000.0].into_iter());
        assert_eq!(labels(&delay, 9), ["100", "200", "500"]);
        assert_eq!(delay.name(), "delay (µs)");
        assert_eq!(
            labels(&Axis::seconds(40.0), 5),
            ["0", "10", "20", "30", "40"]
        );
        let many = Axis::around("slices", &[100.0, 1e6]);
        assert_eq!(
            labels(&many, 3),
            ["100", "10\u{202f}000", "1\u{202f}000\u{202f}000"]
        );
        let tail = Axis::tail("frames");
        assert_eq!(
            labels(&tail, 1),
            ["0", "90", "99", "99.9", "99.99", "99.999"]
        );
        assert!((tail.place(0.99) - 0.4).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn every_value_of_cells_lies_between_the_edges_of_its_own(values in proptest::collection::btree_set(1u32.., 2..20)) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let (axis, edges) = Axis::of_cells("", &values);
            prop_assert_eq!(edges.len(), values.len() + 1);
            for (value, ends) in values.iter().zip(edges.windows(2)) {
                prop_assert!(ends[0] < *value && *value < ends[1], "{} in {:?}", value, edges);
            }
            prop_assert_eq!([axis.low, axis.high], [edges[0], edges[values.len()]]);
            prop_assert!(axis.ticks(3).len() <= 7);
        }

        #[test]
        fn every_value_lies_inside(values in proptest::collection::vec(1u32.., 1..20), most in 1usize..12) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let largest = values.iter().copied().fold(0.0, f64::max);
            for axis in [
                Axis::from_zero("", ("", 1.0), largest),
                Axis::time("", values.iter().copied()),
                Axis::around("", &values),
            ] {
                let ticks = axis.ticks(most);
                prop_assert!(!ticks.is_empty() && ticks.len() <= most.max(2) + 2, "{ticks:?}");
                for value in ticks.iter().map(|(value, _)| value).chain(&values) {
                    prop_assert!(axis.low <= value * (1.0 + 1e-9) && value * (1.0 - 1e-9) <= axis.high);
                    prop_assert!((0.0..=1.0).contains(&axis.place(*value)));
                }
            }
        }
    }
}
