//! Figures of distributions of delay.

use super::Drawing;
use super::axis::Axis;
use super::canvas::line_width;
use super::figure::{Figure, Level, Panel, Point, Series, Shape};
use crate::curves::Curve;
use crate::limits::Limit;
use crate::signs::{self, Sign};
use slicewise_stats::quantity::Quantity;
use slicewise_stats::words;

/// One line a policy, with a logarithmic tail; `None` where no policy has frames to show.
pub(super) fn of_delay(drawing: &Drawing<'_>, slice: usize, scenario: usize) -> Option<Figure> {
    let findings = drawing.findings;
    let study = findings.study();
    let curves = (0..study.policies.len()).filter_map(|policy| {
        let curve = findings.curves.delay.get(&(policy, scenario, slice))?;
        (!curve.0.is_empty()).then_some((policy, curve))
    });
    let curves: Vec<(usize, &Curve)> = curves.collect();
    if curves.is_empty() {
        return None;
    }
    let limits = drawing.limits("delay", slice, Some(scenario));
    let measured = curves
        .iter()
        .flat_map(|(_, curve)| &curve.0)
        .map(|ns| *ns as f64);
    let x = Axis::time(
        "one-way delay",
        measured.chain(limits.iter().map(|limit| limit.value)),
    );
    let mut panel = Panel::new(x, Axis::tail("frames that arrived within it"));
    let mut repetitions = study.repetitions;
    for (place, (policy, curve)) in curves.iter().enumerate() {
        let cell = findings.cell(*policy, scenario);
        let lost = cell.and_then(|cell| cell.slices.get(slice)?.steady.of(Quantity::LossRatio));
        repetitions = lost.map_or(repetitions, |lost| repetitions.min(lost.samples));
        let arrived = 1.0 - lost.map_or(0.0, |lost| lost.mean);
        let points = curve.0.iter().zip(&curve.1);
        let points = points.map(|(ns, part)| Point::of(*ns as f64, Some(part * arrived)));
        panel.series.push(Series {
            name: study
                .policies
                .get(*policy)
                .map_or_else(String::new, |p| p.name.clone()),
            sign: sign(drawing, *policy),
            shape: Shape::Steps,
            width: line_width(place, curves.len()),
            points: points.collect(),
        });
    }
    panel.limits = limits
        .iter()
        .flat_map(|limit| levels(drawing, limit))
        .collect();
    let scenario_name = study.scenarios.get(scenario).map_or("", |s| &s.name);
    Some(Figure {
        subject: format!(
            "Distribution of one-way delay of slice {}, scenario {scenario_name}",
            drawing.slice_name(slice)
        ),
        how: format!(
            "Share of the frames sent that arrived within a delay, over {}; a line that ends below has lost the rest.",
            words::count(u64::from(repetitions), "repetition")
        ),
        panels: vec![panel],
    })
}

/// A bound as a vertical line, an objective as a corner: a line that meets it passes left of and above the corner.
fn levels(drawing: &Drawing<'_>, limit: &Limit) -> Vec<Level> {
    let level = Level {
        on_x: true,
        extent: None,
        ..drawing.level(limit)
    };
    let Some(beyond) = limit.beyond else {
        return vec![level];
    };
    let across = Level {
        on_x: false,
        value: 1.0 - beyond,
        extent: Some((0.0, limit.value)),
        label: String::new(),
        ..level.clone()
    };
    let up = Level {
        extent: Some((1.0 - beyond, 1.0)),
        ..level
    };
    vec![up, across]
}

/// Sign of the policy; its phases differ in marker and dash.
fn sign(drawing: &Drawing<'_>, policy: usize) -> Sign {
    let findings = drawing.findings;
    let own = signs::policy(findings.base_of(policy));
    if findings.study().phases.is_empty() {
        return own;
    }
    Sign {
        colour: own.colour,
        ..signs::policy(policy)
    }
}
