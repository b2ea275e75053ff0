//! Figures that a file declares: which cases and cells they draw, and their axes.

use super::curves::{MAX_FIGURES, along, title};
use super::drawable::{Drawable, policies, scenarios, slices};
use crate::cases::SweepAxis;
use crate::file::{Decode, Entry, Placed, Problems, Schemas, Span, Value};
use crate::spec::{At, AxisName, Named, OneOrMany, Positive, Reference, Scalar, Words};
use crate::study::Study;
use crate::{problem, settings};
use serde_json::{Value as Json, json};
use slicewise_stats::description::number_and_unit;
use slicewise_stats::fit::FitKind;
use slicewise_stats::plot::{
    Distributed, PlotCase, PlotDescription, PlotDistribution, PlotGroup, PlotValue, PlotX,
};
use slicewise_stats::quantity::{Metric, Quantity};

settings! {
    /// A figure of the report: a quantity over cases, scenarios or policies, two quantities over each other, or a
    /// distribution.
    struct FigureSpec as "FigureSpec", strict {
        /// Caption. Default: names the axes.
        title: String,
        /// Cases that are drawn: one, a list, or lists of cases by the name of the line that they make. Default: all.
        cases: CasesSpec,
        /// Policies that are drawn. Default: all.
        policies: OneOrMany<At<Reference>>,
        /// Scenarios that are drawn. Default: all.
        scenarios: OneOrMany<At<Reference>>,
        /// Horizontal axis: names, numbers that cases or scenarios state as their `x`, or a quantity.
        [required] x: Option<AxisSpec>,
        /// Vertical axis; none for a distribution.
        y: Option<Placed<ValueSpec>>,
        /// Curves that are fitted to the points of each line by least squares.
        fit: OneOrMany<At<FitKind>>,
    }
}

settings! {
    /// A quantity of a figure.
    struct ValueSpec as "FigureValueSpec", strict {
        /// The quantity.
        metric: Option<Metric>,
        /// Instead of `metric`, for `x`: what is distributed. The share is then on the vertical axis.
        distribution: Option<Distributed>,
        /// With `distribution: lost_frames`: length of the intervals, a multiple of `measure.bin`.
        every: Option<At<Positive>>,
        /// Slice it is of; required for quantities of a slice.
        slice: Option<At<Reference>>,
        /// Queue it is of; required for the length of a queue.
        queue: Option<At<String>>,
    }
}

/// Cases of a figure, in groups; none where the file does not say.
#[derive(Debug, Clone, Default)]
pub(crate) struct CasesSpec(Vec<(String, Vec<At<Reference>>)>);

impl Decode for CasesSpec {
    fn decode(entry: Entry<'_>, problems: &mut Problems) -> Option<Self> {
        let Value::Mapping(groups) = &entry.node.value else {
            let OneOrMany(cases) = OneOrMany::decode(entry, problems)?;
            return Some(Self(vec![(String::new(), cases)]));
        };
        let groups = groups.iter().map(|(key, node)| {
            let key_span = Some(key.span);
            let entry = Entry {
                node,
                key: key_span,
            };
            let OneOrMany(cases) = OneOrMany::decode(entry, problems)?;
            Some((key.text.clone(), cases))
        });
        groups.collect::<Option<Vec<_>>>().map(Self)
    }

    fn schema(schemas: &mut Schemas) -> Json {
        let cases = OneOrMany::<At<Reference>>::schema(schemas);
        json!({ "anyOf": [cases, { "type": "object", "additionalProperties": cases }] })
    }
}

/// A horizontal axis.
#[derive(Debug, Clone)]
pub(crate) enum AxisSpec {
    /// A fixed name, or that of an axis of the sweep.
    Named(At<String>),
    Value(Placed<ValueSpec>),
}

impl Decode for AxisSpec {
    fn decode(entry: Entry<'_>, problems: &mut Problems) -> Option<Self> {
        match &entry.node.value {
            Value::Mapping(_) => Placed::decode(entry, problems).map(Self::Value),
            _ => At::decode(entry, problems).map(Self::Named),
        }
    }

    fn schema(schemas: &mut Schemas) -> Json {
        let names = [AxisName::schema(schemas), Reference::schema(schemas)];
        let [fixed, swept] = names;
        json!({ "anyOf": [fixed, swept, Placed::<ValueSpec>::schema(schemas)] })
    }
}

/// Checks the figures of a file with these studies; with these axes, if they are points of a sweep.
pub(crate) fn figures(
    specs: &Named<Placed<FigureSpec>>,
    (studies, axes): (&[Drawable<'_>], &[SweepAxis]),
    problems: &mut Problems,
) -> Vec<PlotDescription> {
    super::check_names(specs, problems);
    if let Some((name, _)) = specs.iter().nth(MAX_FIGURES) {
        problem!(problems, name.span => "there are more than {MAX_FIGURES} figures");
        return Vec::new();
    }
    let figures = specs.iter().filter_map(|(name, spec)| {
        check_lists(spec, problems)?;
        let (groups, drawn) = groups(&spec.value.cases, studies, problems)?;
        let mut figure = FigureCheck {
            spec,
            drawn,
            axes,
            problems,
        };
        figure.description(&name.value, groups)
    });
    figures.collect()
}

/// Checks that lists that are written have entries: left out, they mean all.
fn check_lists(spec: &Placed<FigureSpec>, problems: &mut Problems) -> Option<()> {
    let FigureSpec {
        cases,
        policies,
        scenarios,
        fit,
        ..
    } = &spec.value;
    let are_empty = [
        (
            "cases",
            cases.0.is_empty() || cases.0.iter().any(|(_, cases)| cases.is_empty()),
        ),
        ("policies", policies.0.is_empty()),
        ("scenarios", scenarios.0.is_empty()),
        ("fit", fit.0.is_empty()),
    ];
    for (key, is_empty) in are_empty {
        if let Some(at) = spec.place(key).filter(|_| is_empty) {
            problem!(problems, at => "a list of `{key}` is empty"; "write at least one, or leave it out");
            return None;
        }
    }
    Some(())
}

type Groups<'s, 'a> = (Vec<PlotGroup>, Vec<&'s Drawable<'a>>);

/// Returns the cases of a figure in their groups, and all of them.
fn groups<'s, 'a>(
    written: &CasesSpec,
    studies: &'s [Drawable<'a>],
    problems: &mut Problems,
) -> Option<Groups<'s, 'a>> {
    let has_cases = studies.iter().any(|of| of.study.case.is_some());
    let first = written.0.iter().flat_map(|(_, cases)| cases).next();
    if let (Some(case), false) = (first, has_cases) {
        problem!(problems, case.span => "this file has no `cases`: the figure draws its only study");
        return None;
    }
    if written.0.is_empty() {
        let all = studies.iter().map(plot_case).collect();
        let group = PlotGroup {
            name: String::new(),
            cases: all,
        };
        let groups = if has_cases { vec![group] } else { Vec::new() };
        return Some((groups, studies.iter().collect()));
    }
    let known: Vec<&str> = studies.iter().map(Drawable::case).collect();
    let (mut groups, mut drawn) = (Vec::new(), Vec::<&Drawable<'_>>::new());
    for (name, cases) in &written.0 {
        let mut group = PlotGroup {
            name: name.clone(),
            cases: Vec::new(),
        };
        for case in cases {
            let text = case.value.as_ref();
            let Some(found) = studies.iter().find(|of| of.case() == text) else {
                let message = format!("there is no case `{text}`");
                problems.add_unknown(case.span, message, (text, &known));
                continue;
            };
            if drawn.iter().any(|of| of.case() == text) {
                problem!(problems, case.span => "case `{text}` is drawn already: a point has one line");
                continue;
            }
            group.cases.push(plot_case(found));
            drawn.push(found);
        }
        groups.push(group);
    }
    (!drawn.is_empty()).then_some((groups, drawn))
}

fn plot_case(of: &Drawable<'_>) -> PlotCase {
    PlotCase {
        name: of.case().to_owned(),
        x: of.x.unwrap_or_default().to_owned(),
    }
}

struct FigureCheck<'s, 'a, 'p> {
    spec: &'s Placed<FigureSpec>,
    drawn: Vec<&'s Drawable<'a>>,
    axes: &'s [SweepAxis],
    problems: &'p mut Problems,
}

impl FigureCheck<'_, '_, '_> {
    fn description(&mut self, name: &str, groups: Vec<PlotGroup>) -> Option<PlotDescription> {
        let spec = &self.spec.value;
        let policies = self.names("policy", &spec.policies.0, policies);
        let scenarios = self.names("scenario", &spec.scenarios.0, scenarios);
        let axis = spec.x.as_ref()?;
        let swept = match axis {
            AxisSpec::Named(name) => self.axes.iter().find(|axis| axis.name == name.value),
            AxisSpec::Value(_) => None,
        };
        let (x, groups) = match swept {
            Some(axis) => {
                let (x, groups) = along(axis, &self.drawn, (self.axes, groups));
                (Some(x), groups)
            }
            None => (self.x(axis, &scenarios), groups),
        };
        let y = match (&spec.y, &x) {
            (Some(y), Some(PlotX::Distribution(_))) => {
                problem!(self.problems, y.span => "the vertical axis of a distribution is the share: leave out `y`");
                None
            }
            (Some(y), _) => Some(self.value(y)?),
            (None, Some(PlotX::Distribution(_)) | None) => None,
            (None, Some(_)) => {
                problem!(self.problems, self.spec.span => "`y` is missing: what is drawn?");
                None
            }
        };
        let x = x?;
        let is_of_names = matches!(
            x,
            PlotX::Policy | PlotX::Case | PlotX::Scenario | PlotX::Distribution(_)
        );
        if let (Some(fit), true) = (spec.fit.0.first(), is_of_names) {
            problem!(self.problems, fit.span => "a fit needs numbers along the horizontal axis";
                "write `x: case_number`, `x: scenario_number`, an axis of a sweep that has numbers, or a quantity");
        }
        let title = match (swept, &y) {
            (Some(axis), Some(y)) if spec.title.is_empty() => title(y, "", axis),
            _ => spec.title.clone(),
        };
        Some(PlotDescription {
            name: name.to_owned(),
            title,
            groups,
            policies,
            scenarios,
            x,
            y,
            fits: spec.fit.0.iter().map(|fit| fit.value).collect(),
        })
    }

    /// Names that are each in some study, and of which each study has one; all where none is written.
    fn names(
        &mut self,
        what: &str,
        written: &[At<Reference>],
        of: fn(&Study) -> Vec<&str>,
    ) -> Vec<String> {
        let mut known: Vec<String> = Vec::new();
        for name in self.drawn.iter().flat_map(|drawn| of(drawn.study)) {
            if !known.iter().any(|other| other == name) {
                known.push(name.to_owned());
            }
        }
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let names = written.iter().map(|name| name.value.as_ref());
        for name in written {
            let text = name.value.as_ref();
            if !known.contains(&text) {
                let message = format!("there is no {what} `{text}` in what the figure draws");
                self.problems
                    .add_unknown(name.span, message, (text, &known));
                return Vec::new();
            }
        }
        let without = self.drawn.iter().find(|drawn| {
            let own = of(drawn.study);
            !written.is_empty() && !names.clone().any(|name| own.contains(&name))
        });
        if let (Some(without), Some(first)) = (without, written.first()) {
            problem!(self.problems, first.span => "{} has no such {what}: it would have no point", without.named());
        }
        names.map(str::to_owned).collect()
    }

    fn x(&mut self, axis: &AxisSpec, scenarios: &[String]) -> Option<PlotX> {
        let name = match axis {
            AxisSpec::Named(name) => name,
            AxisSpec::Value(value) => return self.value_or_distribution(value),
        };
        let fixed = match AxisName::from_text(&name.value) {
            Ok(fixed) => fixed,
            Err(message) if self.axes.is_empty() => {
                self.problems.add(name.span, message);
                return None;
            }
            Err(_) => {
                let message = format!("`{}` is no axis of the sweep or of figures", name.value);
                let swept = self.axes.iter().map(|axis| axis.name.as_str());
                let fixed = AxisName::WORDS.iter().map(|(word, _)| *word);
                let known: Vec<&str> = swept.chain(fixed).collect();
                self.problems
                    .add_unknown(name.span, message, (&name.value, &known));
                return None;
            }
        };
        let has_cases = self.drawn.iter().any(|of| of.study.case.is_some());
        if matches!(fixed, AxisName::Case | AxisName::CaseNumber) && !has_cases {
            problem!(self.problems, name.span => "this file has no `cases`";
                "write `scenario`, `scenario_number`, `policy` or a quantity");
            return None;
        }
        if let (AxisName::CaseNumber, Some(axis)) = (fixed, self.axes.first()) {
            problem!(self.problems, name.span => "points of a sweep state no `x`";
                "write the name of an axis of the sweep, for example `{}`", axis.name);
            return None;
        }
        Some(match fixed {
            AxisName::Policy => PlotX::Policy,
            AxisName::Case => PlotX::Case,
            AxisName::Scenario => PlotX::Scenario,
            AxisName::CaseNumber => {
                let places = self.drawn.iter().map(|of| (of.named(), of.x));
                let places: Vec<_> = places.collect();
                self.check_numbers(name.span, &places);
                PlotX::CaseNumber
            }
            AxisName::ScenarioNumber => {
                let drawn = self.drawn.iter().flat_map(|of| &of.study.scenarios);
                let drawn = drawn.filter(|s| scenarios.is_empty() || scenarios.contains(&s.name));
                let places = drawn.map(|s| (format!("scenario `{}`", s.name), Some(&*s.x)));
                let places: Vec<_> = places.collect();
                self.check_numbers(name.span, &places);
                PlotX::ScenarioNumber
            }
        })
    }

    /// All places are numbers of one unit.
    fn check_numbers(&mut self, at: Span, places: &[(String, Option<&str>)]) {
        let mut first: Option<&str> = None;
        for (named, place) in places {
            let Some((_, unit)) = place.and_then(number_and_unit) else {
                problem!(self.problems, at => "{named} states no `x`";
                    "write its number with a unit there, for example `x: 0.75 of the link`");
                return;
            };
            if let Some(first) = first.filter(|first| *first != unit) {
                problem!(self.problems, at => "{named} is at a number in `{unit}`, others in `{first}`";
                    "give all of them one unit");
                return;
            }
            first = Some(unit);
        }
    }

    fn value_or_distribution(&mut self, spec: &Placed<ValueSpec>) -> Option<PlotX> {
        let Some(of) = spec.value.distribution else {
            return self.value(spec).map(PlotX::Value);
        };
        let at = spec.place("distribution").unwrap_or(spec.span);
        if spec.value.metric.is_some() {
            problem!(self.problems, at => "an axis has either `metric` or `distribution`");
        }
        let Some(slice) = &spec.value.slice else {
            problem!(self.problems, at => "`slice` is missing: whose distribution is it?");
            return None;
        };
        let slice = self.slice(slice)?;
        let every_ns = self.every(spec, of)?;
        let distribution = PlotDistribution {
            of,
            slice,
            every_ns,
        };
        Some(PlotX::Distribution(distribution))
    }

    /// Length of the intervals of a distribution, where it is of intervals.
    fn every(&mut self, spec: &Placed<ValueSpec>, of: Distributed) -> Option<Option<u64>> {
        let Some(every) = &spec.value.every else {
            if of == Distributed::LostFrames {
                problem!(self.problems, spec.span => "`every` is missing: in intervals of which length are frames counted?");
                return None;
            }
            return Some(None);
        };
        if of != Distributed::LostFrames {
            problem!(self.problems, every.span => "`every` is of `distribution: lost_frames` alone");
            return None;
        }
        let length = every.value.0.nanos();
        for of in &self.drawn {
            let (bin, duration) = (of.study.measure.bin, of.study.duration);
            if length % bin.nanos() != 0 || every.value.0 > duration {
                problem!(self.problems, every.span => "{} has bins of {bin} and runs of {duration}", of.named();
                    "choose a multiple of the bin, and no more than a run");
                return None;
            }
        }
        Some(Some(length))
    }

    fn value(&mut self, spec: &Placed<ValueSpec>) -> Option<PlotValue> {
        let value = &spec.value;
        if let Some(at) = spec.place("distribution") {
            problem!(self.problems, at => "a distribution is on the horizontal axis: write it as `x`");
            return None;
        }
        if let Some(every) = &value.every {
            problem!(self.problems, every.span => "`every` is of `distribution: lost_frames` alone");
        }
        let (Some(metric), Some(at)) = (value.metric, spec.place("metric")) else {
            problem!(self.problems, spec.span => "`metric` is missing: which quantity is it?");
            return None;
        };
        let word = metric.name();
        if metric.quantity == Quantity::IatKolmogorovSmirnov {
            problem!(self.problems, at => "{word} compares repetitions: no run has a value of it");
        }
        match (metric.quantity.is_of_a_slice(), &value.slice) {
            (true, None) => {
                problem!(self.problems, at => "`slice` is missing: whose {word} is it?")
            }
            (false, Some(slice)) => {
                problem!(self.problems, slice.span => "{word} is not of one slice");
            }
            _ => {}
        }
        let is_of_a_queue = metric.quantity == Quantity::QueueLength;
        match &value.queue {
            None if is_of_a_queue => {
                problem!(self.problems, at => "`queue` is missing: whose length is it?");
            }
            Some(queue) if !is_of_a_queue => {
                problem!(self.problems, queue.span => "`queue` is of `metric: queue_length` alone");
            }
            _ => {}
        }
        let looks = |of: &&Drawable<'_>| of.study.measure.queue_lengths.is_some();
        if is_of_a_queue && !self.drawn.iter().all(looks) {
            problem!(self.problems, at => "the lengths of queues are not measured";
                "add `measure: {{queue_lengths: 10 ms}}`: how often queues are looked at");
        }
        let slice = match &value.slice {
            Some(slice) => Some(self.slice(slice)?),
            None => None,
        };
        Some(PlotValue {
            metric,
            slice,
            queue: value.queue.as_ref().map(|queue| queue.value.clone()),
        })
    }

    /// A slice that all studies have.
    fn slice(&mut self, name: &At<Reference>) -> Option<String> {
        let text = name.value.as_ref();
        let without = self
            .drawn
            .iter()
            .find(|of| !slices(of.study).contains(&text));
        if let Some(without) = without {
            let message = format!("{} has no slice `{text}`", without.named());
            let known = slices(without.study);
            self.problems
                .add_unknown(name.span, message, (text, &known));
            return None;
        }
        Some(text.to_owned())
    }
}
