//! Figures over an axis of a sweep, and those of a sweep that declares none.

use super::drawable::{Drawable, scenarios, slices};
use super::objective::{has_flows, has_requests};
use crate::cases::SweepAxis;
use crate::params::ApplicationParams;
use crate::study::Study;
use slicewise_stats::description::Coordinate;
use slicewise_stats::plot::{PlotCase, PlotDescription, PlotGroup, PlotValue, PlotX};
use slicewise_stats::quantity::Quantity;

/// Most figures of a file.
pub(super) const MAX_FIGURES: usize = 100;
/// Fewest numbers of an axis that make a curve.
const MIN_OF_CURVE: usize = 3;

/// Returns how points stand along an axis of the sweep, with the place of each. The values of the other axes make a line,
/// unless cases that have one in common are written.
pub(super) fn along(
    axis: &SweepAxis,
    drawn: &[&Drawable<'_>],
    (axes, mut groups): (&[SweepAxis], Vec<PlotGroup>),
) -> (PlotX, Vec<PlotGroup>) {
    let is_of_numbers = numbers(axis, drawn).is_some();
    let place = |of: &Drawable<'_>| {
        let coordinate = of.coordinate(axis);
        let unit = coordinate.map_or("", |it| it.unit.as_str());
        match coordinate.and_then(|it| it.number.filter(|_| is_of_numbers)) {
            Some(number) if unit.is_empty() => format!("{number} {}", axis.name),
            Some(number) => format!("{number} {} ({unit})", axis.name),
            None => format!("{} {}", axis.name, coordinate.map_or("", |it| &it.text)),
        }
    };
    let x = match is_of_numbers {
        true => PlotX::CaseNumber,
        false => PlotX::Case,
    };
    if groups.iter().any(|group| !group.name.is_empty()) {
        for case in groups.iter_mut().flat_map(|group| &mut group.cases) {
            if let Some(of) = drawn.iter().find(|of| of.case() == case.name) {
                case.x = place(of);
            }
        }
        return (x, groups);
    }
    let mut lines: Vec<PlotGroup> = Vec::new();
    for of in drawn {
        let others = axes
            .iter()
            .filter(|other| *other != axis && !other.is_drawn);
        let others = others.filter_map(|other| of.coordinate(other));
        let others = others.map(|other| format!("{} = {}", other.axis, other.text));
        let name = others.collect::<Vec<_>>().join(", ");
        let case = PlotCase {
            name: of.case().to_owned(),
            x: place(of),
        };
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.cases.push(case),
            None => lines.push(PlotGroup {
                name,
                cases: vec![case],
            }),
        }
    }
    (x, lines)
}

/// Numbers of the points along an axis, where all have one in one unit.
fn numbers(axis: &SweepAxis, drawn: &[&Drawable<'_>]) -> Option<Vec<f64>> {
    let coordinates = drawn.iter().map(|of| of.coordinate(axis));
    let coordinates: Vec<&Coordinate> = coordinates.collect::<Option<_>>()?;
    let unit = &coordinates.first()?.unit;
    let of_unit = |it: &&Coordinate| it.number.filter(|_| it.unit == *unit);
    coordinates.iter().map(of_unit).collect()
}

/// "Loss ratio of gold in storm over load".
pub(super) fn title(y: &PlotValue, scenario: &str, axis: &SweepAxis) -> String {
    let words = y.metric.words();
    let (first, rest) = words.split_at(words.chars().next().map_or(0, char::len_utf8));
    let mut title = format!("{}{rest}", first.to_uppercase());
    for (word, what) in [
        (
            "of",
            y.slice.as_ref().or(y.queue.as_ref()).map_or("", |of| of),
        ),
        ("in", scenario),
        ("over", &axis.name),
    ] {
        if !what.is_empty() {
            title.push_str(&format!(" {word} {what}"));
        }
    }
    title
}

/// Quantities of a slice that are drawn: times of its applications, throughput, loss and delay.
fn quantities(study: &Study, slice: usize) -> Vec<Quantity> {
    let all = study.scenarios.iter().flat_map(|of| &of.applications);
    let own: Vec<_> = all.filter(|source| source.slice == slice).collect();
    let has = |is: fn(&ApplicationParams) -> bool| own.iter().any(|of| is(&of.application));
    let drawn = [
        (has(has_flows), Quantity::CompletionTimeP99),
        (has(has_requests), Quantity::RequestLatencyP99),
        (true, Quantity::Throughput),
        (true, Quantity::LossRatio),
        (true, Quantity::DelayP99),
    ];
    let drawn = drawn.into_iter().filter(|(is_there, _)| *is_there);
    drawn.map(|(_, quantity)| quantity).collect()
}

/// Figures of a sweep that declares none: of each slice, over the first axis that has numbers enough for a curve.
pub(crate) fn curves(studies: &[Drawable<'_>], axes: &[SweepAxis]) -> Vec<PlotDescription> {
    let drawn: Vec<&Drawable<'_>> = studies.iter().collect();
    let has_curve = |axis: &&SweepAxis| {
        let mut numbers = numbers(axis, &drawn).unwrap_or_default();
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        numbers.len() >= MIN_OF_CURVE
    };
    let (Some(axis), Some(first)) = (axes.iter().find(has_curve), studies.first()) else {
        return Vec::new();
    };
    let (x, groups) = along(axis, &drawn, (axes, Vec::new()));
    // The reference is what others are compared with, and hardly ever changes along an axis.
    let all = first.study.scenarios.iter();
    let others = all.filter(|scenario| !scenario.reference);
    let others: Vec<&str> = others.map(|scenario| scenario.name.as_str()).collect();
    let scenarios = match (first.study.scenarios.len(), others.is_empty()) {
        (1, _) => vec![""],
        (_, true) => scenarios(first.study),
        (_, false) => others,
    };
    let figures = slices(first.study)
        .into_iter()
        .enumerate()
        .flat_map(|(index, slice)| {
            let quantities = quantities(first.study, index);
            let cells = scenarios.iter().map(move |scenario| (slice, *scenario));
            cells.flat_map(move |cell| quantities.clone().into_iter().map(move |of| (cell, of)))
        });
    let figures = figures.map(|((slice, scenario), quantity)| {
        let y = PlotValue {
            metric: quantity.into(),
            slice: Some(slice.to_owned()),
            queue: None,
        };
        let name = [quantity.name(), slice, scenario];
        let name: Vec<&str> = name.into_iter().filter(|part| !part.is_empty()).collect();
        let of_scenario = (!scenario.is_empty()).then(|| scenario.to_owned());
        PlotDescription {
            name: name.join("-"),
            title: title(&y, scenario, axis),
            groups: groups.clone(),
            policies: Vec::new(),
            scenarios: of_scenario.into_iter().collect(),
            x: x.clone(),
            y: Some(y),
            fits: Vec::new(),
        }
    });
    figures.take(MAX_FIGURES).collect()
}
