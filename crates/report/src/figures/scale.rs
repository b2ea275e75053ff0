//! Largest delay against the number of slices, bound beside measurement.

use super::Drawing;
use super::axis::Axis;
use super::canvas::line_width;
use super::figure::{Figure, Level, Panel, Point, Series, Shape};
use crate::populations::PopulationFinding;
use crate::signs;
use slicewise_stats::words::time;

/// One line a policy, and a level where the policy proves a bound; `None` where the slice is no population, or nothing
/// of it arrived.
pub(super) fn largest_delays(drawing: &Drawing<'_>, slice: usize) -> Option<Figure> {
    let findings = drawing.findings;
    let measured = |finding: &&PopulationFinding| finding.delay_max_ns.is_some();
    let all: Vec<&PopulationFinding> = findings.populations.iter().filter(measured).collect();
    if !all.iter().any(|finding| finding.slice_index == slice) {
        return None;
    }
    // Axes of all populations are the same, so that their figures can be compared.
    let slices: Vec<f64> = all
        .iter()
        .map(|finding| finding.all_slices as f64)
        .collect();
    let delays = all
        .iter()
        .flat_map(|finding| [finding.delay_max_ns, finding.delay_bound_ns]);
    let y = Axis::time(
        "largest one-way delay",
        delays.flatten().map(|ns| ns as f64),
    );
    let mut panel = Panel::new(Axis::around("slices on the link", &slices), y);
    for (policy, description) in findings.study().policies.iter().enumerate() {
        let own = all
            .iter()
            .filter(|finding| finding.slice_index == slice && finding.policy == description.name);
        let sign = signs::policy(policy);
        if let Some(bound) = own.clone().find_map(|finding| finding.delay_bound_ns) {
            let value = bound as f64;
            panel.limits.push(Level {
                value,
                on_x: false,
                extent: None,
                label: format!("bound proved by {}: {}", description.name, time(value)),
                colour: sign.colour,
            });
        }
        let points = own.map(|finding| {
            let delay = finding.delay_max_ns.map(|ns| ns as f64);
            Point::of(finding.all_slices as f64, delay)
        });
        let mut points: Vec<Point> = points.collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        panel.series.push(Series {
            name: description.name.clone(),
            sign,
            shape: Shape::SignedLine,
            width: line_width(policy, findings.study().policies.len()),
            points,
        });
    }
    Some(Figure {
        subject: format!(
            "Largest delay of {} against the number of slices",
            drawing.slice_name(slice)
        ),
        how: "A sign is the largest delay of any frame in any repetition.".to_owned(),
        panels: vec![panel],
    })
}
