//! Published figures: which cells they speak of, and their values in the metric's unit.

use super::{Checker, Table};
use crate::file::At;
use crate::spec::{
    Figure, List, Name, Named, OneOrMany, Percent, PublishedSpec, Scalar, StudySpec, Text, number,
};
use slicewise_stats::description::{Cell, Expected, Metric, PublishedFigure};
use slicewise_units::{BitRate, Duration};

impl Checker<'_> {
    pub(super) fn published(&mut self, spec: &StudySpec) -> Vec<PublishedFigure> {
        let figures = spec.published.0.iter();
        figures
            .filter_map(|figure| self.published_figure(figure, spec))
            .collect()
    }

    fn published_figure(
        &mut self,
        At {
            value: figure,
            span,
        }: &At<PublishedSpec>,
        spec: &StudySpec,
    ) -> Option<PublishedFigure> {
        let policies =
            self.known_names(Table::Policies, &figure.policies, &names_of(&spec.policies));
        let scenarios = self.known_names(
            Table::Scenarios,
            &figure.scenarios,
            &names_of(&spec.scenarios),
        );
        let slices = names_of(&spec.slices);
        let slice = figure.slice.as_ref().and_then(|slice| {
            self.index_of(Table::Slices, slice, &slices)
                .map(|_| slice.text().to_owned())
        });
        let relative_to = figure.relative_to.as_ref().map(|cell| {
            let (policy, scenario) = (&cell.value.policy, &cell.value.scenario);
            if policy.is_none() && scenario.is_none() {
                let message = "`policy` or `scenario` is missing: what is it relative to?";
                self.problems.add(cell.span, message);
            }
            let mut name = |table, text: &Option<Text<Name>>, known: &[&str]| {
                let text = text.as_ref()?;
                self.index_of(table, text, known)
                    .map(|_| text.text().to_owned())
            };
            Cell {
                policy: name(Table::Policies, policy, &names_of(&spec.policies)),
                scenario: name(Table::Scenarios, scenario, &names_of(&spec.scenarios)),
            }
        });
        let metric = figure.metric.read(self.problems)?;
        if is_of_a_slice(metric) && figure.slice.is_none() {
            let message = format!("`slice` is missing: whose {} is it?", figure.metric.text());
            self.problems.add(figure.metric.span(), message);
        }
        if let (false, Some(slice)) = (is_of_a_slice(metric), &figure.slice) {
            let message = format!("{} is of all slices together", figure.metric.text());
            self.problems.add(slice.span(), message);
        }
        let unit = if figure.relative_to.is_some() {
            Unit::Percent
        } else {
            unit_of(metric)
        };
        let text = |field: &Text<String>| field.text().trim().to_owned();
        Some(PublishedFigure {
            claim: text(&figure.claim),
            source: text(&figure.source),
            metric,
            policies,
            scenarios,
            slice,
            relative_to,
            expected: self.expected(figure, unit, *span)?,
            explanation: figure.explanation.as_ref().map(text).unwrap_or_default(),
        })
    }

    fn known_names(
        &mut self,
        table: Table,
        written: &OneOrMany<Text<Name>>,
        known: &[&str],
    ) -> Vec<String> {
        let names = written.0.iter();
        names
            .filter_map(|name| {
                self.index_of(table, name, known)
                    .map(|_| name.text().to_owned())
            })
            .collect()
    }

    fn expected(
        &mut self,
        figure: &PublishedSpec,
        unit: Unit,
        at: crate::file::Span,
    ) -> Option<Expected> {
        if let (None, Some(within)) = (&figure.about, &figure.within) {
            self.problems
                .add(within.span(), "`within` requires `about`");
        }
        match (
            &figure.about,
            &figure.between,
            &figure.at_least,
            &figure.at_most,
        ) {
            (Some(about), None, None, None) => self.about(about, figure.within.as_ref(), unit),
            (None, Some(between), None, None) => self.between(between, unit),
            (None, None, Some(value), None) => Some(Expected::AtLeast {
                value: self.figure(value, unit)?,
            }),
            (None, None, None, Some(value)) => Some(Expected::AtMost {
                value: self.figure(value, unit)?,
            }),
            _ => {
                let message = "the published value is given by exactly one of `about`, `between`, \
                               `at_least` and `at_most`";
                self.problems.add(at, message);
                None
            }
        }
    }

    fn about(
        &mut self,
        about: &Text<Figure>,
        within: Option<&Text<Figure>>,
        unit: Unit,
    ) -> Option<Expected> {
        let value = self.figure(about, unit)?;
        let Some(within) = within else {
            self.problems.add(
                about.span(),
                "`within` is missing: which difference still agrees?",
            );
            return None;
        };
        // Relative to the value, except to zero.
        let tolerance_unit = if value == 0.0 { unit } else { Unit::Percent };
        let tolerance = self.figure(within, tolerance_unit)?;
        if tolerance < 0.0 {
            self.problems
                .add(within.span(), "a tolerance cannot be negative");
        }
        Some(Expected::About { value, tolerance })
    }

    fn between(&mut self, between: &At<List<Text<Figure>>>, unit: Unit) -> Option<Expected> {
        let [low, high] = between.value.0.as_slice() else {
            self.problems
                .add(between.span, "`between` has two ends, as `[0.2 ms, 1 ms]`");
            return None;
        };
        let expected = Expected::Between {
            low: self.figure(low, unit)?,
            high: self.figure(high, unit)?,
        };
        if matches!(expected, Expected::Between { low, high } if low > high) {
            self.problems
                .add(low.span(), "the lower end is above the upper end");
        }
        Some(expected)
    }

    fn figure(&mut self, text: &Text<Figure>, unit: Unit) -> Option<f64> {
        let value = parse_figure(text.text().trim(), unit);
        value
            .map_err(|message| self.problems.add(text.span(), message))
            .ok()
    }
}

/// How the values of a metric are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Rate,
    Time,
    TimeSquared,
    /// A fraction, written in percent; may be negative.
    Percent,
    /// A count, or a statistic without dimension.
    Number,
}

fn unit_of(metric: Metric) -> Unit {
    match metric {
        Metric::Throughput | Metric::TransientThroughput | Metric::AggregateThroughput => {
            Unit::Rate
        }
        Metric::LossRatio => Unit::Percent,
        Metric::DelayMean
        | Metric::DelayMeanWhole
        | Metric::DelayMin
        | Metric::DelayP50
        | Metric::DelayP99
        | Metric::DelayMax
        | Metric::IatMean
        | Metric::TransientEnd => Unit::Time,
        Metric::IatVariance => Unit::TimeSquared,
        Metric::IatSamples | Metric::IatKolmogorovSmirnov => Unit::Number,
    }
}

fn is_of_a_slice(metric: Metric) -> bool {
    !matches!(
        metric,
        Metric::TransientEnd | Metric::TransientThroughput | Metric::AggregateThroughput
    )
}

fn parse_figure(text: &str, unit: Unit) -> Result<f64, String> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a figure to compare with, not to count with"
    )]
    let float = |value: u64| value as f64;
    match unit {
        Unit::Rate => BitRate::from_text(text).map(|rate| float(rate.bits_per_second())),
        Unit::Time => Duration::from_text(text).map(|time| float(time.nanos())),
        Unit::TimeSquared => parse_time_squared(text),
        Unit::Percent => match text.strip_prefix(['-', '−']) {
            Some(rest) => Percent::from_text(rest).map(|percent| -percent.fraction()),
            None => Percent::from_text(text.trim_start_matches('+')).map(Percent::fraction),
        },
        Unit::Number => match number::<f64>(text, "a number")? {
            number if number.is_finite() => Ok(number),
            _ => Err(format!("`{text}` is not a number")),
        },
    }
}

/// A variance of times, as `0.1847 ms^2`, in ns².
fn parse_time_squared(text: &str) -> Result<f64, String> {
    let expected =
        || format!("`{text}` is not a variance of times: write for example `0.1847 ms^2`");
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .ok_or_else(|| {
            format!("`{text}` is a number without a unit: write for example `{text} ms^2`")
        })?;
    let (number, unit) = text.split_at(end);
    let factor = match unit.trim() {
        "ns^2" | "ns²" => 1.0,
        "us^2" | "us²" | "µs^2" | "µs²" => 1e6,
        "ms^2" | "ms²" => 1e12,
        "s^2" | "s²" => 1e18,
        _ => return Err(expected()),
    };
    number
        .parse::<f64>()
        .map(|number| number * factor)
        .map_err(|_| expected())
}

fn names_of<T>(table: &Named<T>) -> Vec<&str> {
    table.iter().map(|(name, _)| name.text()).collect()
}
