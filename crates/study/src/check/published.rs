//! Published figures: which cells they speak of, and their values in the metric's unit.

use super::{Checker, StudySpec, Table, timeline};
use crate::file::Placed;
use crate::spec::{At, Figure, List, OneOrMany, Percent, Reference, Scalar, number};
use crate::{problem, settings};
use slicewise_stats::description::{Basis, Cell, Expected, PublishedFigure};
use slicewise_stats::quantity::{Metric, Quantity, Unit};
use slicewise_units::{BitRate, Duration};

settings! {
    /// A published figure: which quantity of which runs, and what was published. Exactly one of
    /// `about`, `between`, `at_least` and `at_most`.
    struct PublishedSpec as "PublishedSpec", strict {
        /// Claim of the publication, in a few words.
        [required] claim: String,
        /// Where it says it: section, figure or table.
        [required] source: String,
        /// The quantity.
        [required] metric: Option<Metric>,
        /// Policies it applies to. Default: all.
        policies: OneOrMany<At<Reference>>,
        /// Scenarios it applies to. Default: all.
        scenarios: OneOrMany<At<Reference>>,
        /// Phase of the `timeline` it applies to; required where there is one.
        phase: Option<At<Reference>>,
        /// Slice it applies to; required for quantities of a slice.
        slice: Option<At<Reference>>,
        /// Queue it applies to, by its name or that of its class; required for the length of a queue.
        queue: Option<At<String>>,
        /// The figure is a change relative to another policy, scenario, or both: ours / theirs − 1.
        relative_to: Option<At<CellSpec>>,
        /// The value.
        about: Option<At<Figure>>,
        /// Tolerance of agreement, in percent of the value (absolute if the value is 0): the published precision or
        /// the reading error.
        within: Option<At<Figure>>,
        /// The lower and the upper end.
        between: Option<At<List<At<Figure>>>>,
        /// The least value.
        at_least: Option<At<Figure>>,
        /// The largest value.
        at_most: Option<At<Figure>>,
        /// Reason for the tolerance, as "two published digits"; required with `within`. Also for a bound that the
        /// publication states in words.
        tolerance_from: String,
        /// Relation to the model: `predicted`; `calibrated` if a constant of the study was derived from the value;
        /// `entailed` if it follows from the configuration, whatever the model does. Only predicted values count.
        /// Default: predicted.
        basis: Basis,
        /// A known difference and its physical reason.
        explanation: String,
    }
}

settings! {
    /// Reference of a relative figure.
    struct CellSpec as "CellSpec" {
        /// The policy, where it is another one.
        policy: Option<At<Reference>>,
        /// The scenario, where it is another one.
        scenario: Option<At<Reference>>,
    }
}

impl Checker<'_> {
    pub(super) fn published(&mut self, spec: &StudySpec) -> Vec<PublishedFigure> {
        let figures = spec.published.0.iter();
        figures
            .filter_map(|figure| self.published_figure(figure, spec))
            .collect()
    }

    fn published_figure(
        &mut self,
        written: &Placed<PublishedSpec>,
        spec: &StudySpec,
    ) -> Option<PublishedFigure> {
        let figure = &written.value;
        let (policies, scenarios) = (spec.policies.names(), spec.scenarios.names());
        let slices = spec.slices.names();
        let mut one = |table, name: &Option<At<Reference>>, known: &[&str]| {
            let name = name.as_ref()?;
            self.known_names(table, std::slice::from_ref(name), known)
                .pop()
        };
        let slice = one(Table::SLICES, &figure.slice, &slices);
        let relative_to = figure.relative_to.as_ref().map(|cell| Cell {
            policy: one(Table::POLICIES, &cell.value.policy, &policies),
            scenario: one(Table::SCENARIOS, &cell.value.scenario, &scenarios),
        });
        let policies = self.known_names(Table::POLICIES, &figure.policies.0, &policies);
        let scenarios = self.known_names(Table::SCENARIOS, &figure.scenarios.0, &scenarios);
        if let Some(cell) = &figure.relative_to
            && cell.value.policy.is_none()
            && cell.value.scenario.is_none()
        {
            problem!(self.problems, cell.span => "`policy` or `scenario` is missing: what is it relative to?");
        }
        let metric = figure.metric?;
        let word = metric.name();
        match (
            metric.quantity.is_of_a_slice(),
            &figure.slice,
            written.place("metric"),
        ) {
            (true, None, Some(at)) => {
                problem!(self.problems, at => "`slice` is missing: whose {word} is it?");
            }
            (false, Some(slice), _) => {
                problem!(self.problems, slice.span => "{word} is of all slices together");
            }
            _ => {}
        }
        self.check_queue(written, spec);
        let unit = match figure.relative_to {
            Some(_) => Unit::Ratio,
            None => metric.quantity.unit(),
        };
        Some(PublishedFigure {
            claim: figure.claim.clone(),
            source: figure.source.clone(),
            metric,
            policies,
            scenarios,
            phase: self.phase(written, spec),
            slice,
            queue: figure.queue.as_ref().map(|queue| queue.value.clone()),
            relative_to,
            basis: figure.basis,
            expected: self.expected(figure, unit, written.span)?,
            tolerance_from: figure.tolerance_from.clone(),
            explanation: figure.explanation.clone(),
        })
    }

    /// The length of a queue needs a name, and looks at queues.
    fn check_queue(&mut self, written: &Placed<PublishedSpec>, spec: &StudySpec) {
        let figure = &written.value;
        let is_of_a_queue = figure.metric == Some(Quantity::QueueLength.into());
        match (&figure.queue, written.place("metric")) {
            (None, Some(at)) if is_of_a_queue => {
                problem!(self.problems, at => "`queue` is missing: whose length is it?");
            }
            (Some(queue), _) if !is_of_a_queue => {
                problem!(self.problems, queue.span => "`queue` is of `metric: queue_length` alone");
            }
            _ => {}
        }
        let measure = spec.measure.as_ref();
        let is_measured = measure.is_some_and(|measure| measure.value.queue_lengths.is_some());
        if let Some(at) = written.place("metric")
            && is_of_a_queue
            && !is_measured
        {
            problem!(self.problems, at => "the lengths of queues are not measured";
                "add `measure: {{queue_lengths: 10 ms}}`: how often queues are looked at");
        }
    }

    /// The phase of a figure, where there are phases.
    fn phase(&mut self, figure: &Placed<PublishedSpec>, spec: &StudySpec) -> Option<String> {
        let phases = timeline::phase_names(spec);
        match &figure.value.phase {
            Some(phase) if phases.is_empty() => {
                problem!(self.problems, phase.span => "without a `timeline` there are no phases");
            }
            Some(phase) if !phases.contains(&phase.value.as_ref()) => {
                let message = format!("there is no phase `{}`", phase.value.as_ref());
                let unknown = (phase.value.as_ref(), phases.as_slice());
                self.problems.add_unknown(phase.span, message, unknown);
            }
            Some(phase) => return Some(phase.value.as_ref().to_owned()),
            None if phases.is_empty() => {}
            None => {
                problem!(self.problems, figure.span => "`phase` is missing: one of {}", phases.join(", "));
            }
        }
        None
    }

    fn known_names(
        &mut self,
        table: Table,
        written: &[At<Reference>],
        known: &[&str],
    ) -> Vec<String> {
        let is_known = |name: &&At<Reference>| self.index_of(table, name, known).is_some();
        let names = written.iter().filter(is_known);
        names.map(|name| name.value.0.0.clone()).collect()
    }

    fn expected(
        &mut self,
        figure: &PublishedSpec,
        unit: Unit,
        at: crate::file::Span,
    ) -> Option<Expected> {
        if let (None, Some(within)) = (&figure.about, &figure.within) {
            self.problems.add(within.span, "`within` requires `about`");
        }
        if let Some(within) = &figure.within
            && figure.tolerance_from.trim().is_empty()
        {
            problem!(self.problems, within.span => "`tolerance_from` is missing: why does this difference still agree?";
                "write for example `tolerance_from: two published digits`, `read from the figure to half a division`, \
                 or, if nothing is known, `our reading of \"about\"`");
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
                problem!(self.problems, at => "the published value is given by exactly one of `about`, `between`, \
                    `at_least` and `at_most`");
                None
            }
        }
    }

    fn about(
        &mut self,
        about: &At<Figure>,
        within: Option<&At<Figure>>,
        unit: Unit,
    ) -> Option<Expected> {
        let value = self.figure(about, unit)?;
        let Some(within) = within else {
            problem!(self.problems, about.span => "`within` is missing: which difference still agrees?");
            return None;
        };
        // Relative to the value, except to zero.
        let tolerance_unit = if value == 0.0 { unit } else { Unit::Ratio };
        let tolerance = self.figure(within, tolerance_unit)?;
        if tolerance < 0.0 {
            problem!(self.problems, within.span => "a tolerance cannot be negative");
        }
        Some(Expected::About { value, tolerance })
    }

    fn between(&mut self, between: &At<List<At<Figure>>>, unit: Unit) -> Option<Expected> {
        let [low, high] = between.value.0.as_slice() else {
            problem!(self.problems, between.span => "`between` has two ends, as `[0.2 ms, 1 ms]`");
            return None;
        };
        let expected = Expected::Between {
            low: self.figure(low, unit)?,
            high: self.figure(high, unit)?,
        };
        if matches!(expected, Expected::Between { low, high } if low > high) {
            problem!(self.problems, low.span => "the lower end is above the upper end");
        }
        Some(expected)
    }

    fn figure(&mut self, text: &At<Figure>, unit: Unit) -> Option<f64> {
        let value = parse_figure(&text.value.0, unit);
        value
            .map_err(|message| self.problems.add(text.span, message))
            .ok()
    }
}

fn parse_figure(text: &str, unit: Unit) -> Result<f64, String> {
    let float = |value: u64| value as f64;
    match unit {
        Unit::Rate => BitRate::from_text(text).map(|rate| float(rate.bits_per_second())),
        Unit::Time => Duration::from_text(text).map(|time| float(time.nanos())),
        Unit::TimeSquared => parse_time_squared(text),
        Unit::Ratio => match text.strip_prefix(['-', '−']) {
            Some(rest) => Percent::from_text(rest).map(|percent| -percent.fraction()),
            None => Percent::from_text(text.trim_start_matches('+')).map(Percent::fraction),
        },
        Unit::Statistic | Unit::Bytes | Unit::PerSecond(_) | Unit::Number(_) => {
            match number::<f64>(text, "a number")? {
                number if number.is_finite() => Ok(number),
                _ => Err(format!("`{text}` is not a number")),
            }
        }
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
