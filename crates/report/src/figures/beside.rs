//! Back ends beside each other: one place a policy, one point a back end.

use super::axis::Axis;
use super::panel::{DrawError, Panel, Place, figure};
use super::{HEIGHT, QUANTITIES, Quantity, count, slice_name};
use crate::findings::Findings;
use crate::side::Side;
use crate::signs;
use slicewise_stats::estimate::Estimate;
use slicewise_stats::words::time;

/// Names and drawings: what a guaranteed slice got in the heaviest scenario that more than one back end
/// has; none where there is no such scenario.
pub(crate) fn figures_beside(
    findings: &Findings<'_>,
    slice: usize,
) -> Vec<(&'static str, Result<String, DrawError>)> {
    let sides = &findings.sides;
    let is_guaranteed = findings
        .study
        .slices
        .get(slice)
        .is_some_and(|s| s.guaranteed);
    let covers = |side: &&Side, scenario: &str| side.covered_scenarios().any(|s| s == scenario);
    let mut scenarios = findings.study.scenarios.iter().rev();
    let shared = scenarios.find(|scenario| {
        let covering = sides.iter().filter(|side| covers(side, &scenario.name));
        covering.count() > 1
    });
    let Some(scenario) = shared.filter(|_| is_guaranteed) else {
        return Vec::new();
    };
    let drawn = QUANTITIES.iter().filter(|q| q.file_name != "throughput");
    drawn
        .map(|&quantity| {
            (
                quantity.file_name,
                points(findings, slice, &scenario.name, quantity),
            )
        })
        .collect()
}

/// An estimate and where it is drawn.
struct Mark<'a> {
    policy: usize,
    side: usize,
    estimate: &'a Estimate,
}

fn points(
    findings: &Findings<'_>,
    slice: usize,
    scenario: &str,
    quantity: Quantity,
) -> Result<String, DrawError> {
    let sides = &findings.sides;
    let name = slice_name(findings, slice);
    let marks = marks(findings, name, scenario, quantity);
    let highest = |mark: &Mark<'_>| mark.estimate.interval.high.unwrap_or(mark.estimate.mean);
    let y = match quantity.unit {
        Some((unit, factor)) => {
            let largest = marks.iter().map(highest).fold(0.0, f64::max);
            let title = format!("{}, {unit}", quantity.title.to_lowercase());
            Axis::from_zero(&title, largest, factor)
        }
        None => {
            let values = marks.iter().flat_map(|m| {
                let low = m.estimate.interval.low.unwrap_or(0.0);
                [low, highest(m), m.estimate.mean]
            });
            Axis::logarithmic("one-way delay", values, time)
        }
    };
    let policies: Vec<String> = findings
        .study
        .policies
        .iter()
        .map(|p| p.name.clone())
        .collect();
    let x = Axis::categories("policy", &policies);
    let title = format!("{} of slice {name}, scenario {scenario}", quantity.title);
    let legend: Vec<_> = sides
        .iter()
        .enumerate()
        .map(|(index, side)| (side.name.clone(), signs::slice(index)))
        .collect();
    figure(&title, &legend, HEIGHT, |area| {
        let mut panel = Panel::new(area, &x, &y)?;
        let width = POINTS_WIDTH / count(sides.len()).max(1.0);
        for mark in &marks {
            let sign = signs::slice(mark.side);
            let left = (1.0 - POINTS_WIDTH) / 2.0;
            let at = count(mark.policy) + left + (count(mark.side) + 0.5) * width;
            panel.point((at, mark.estimate.mean), sign, (width, Place::Around))?;
            if let (Some(low), Some(high)) =
                (mark.estimate.interval.low, mark.estimate.interval.high)
                && high > low
            {
                panel.whisker(at, (low, high), width * 0.5, (sign.colour, 3))?;
            }
        }
        Ok(())
    })
}

/// In the order in which they are drawn; slices are found by name, as sides may differ.
fn marks<'a>(
    findings: &'a Findings<'_>,
    slice: &str,
    scenario: &str,
    quantity: Quantity,
) -> Vec<Mark<'a>> {
    let sides = findings.sides.iter().enumerate();
    let of_side = |(index, side): (usize, &'a Side)| {
        let cells = side.summary.cells.iter();
        let marks = cells
            .filter(|cell| cell.scenario == scenario)
            .filter_map(move |cell| {
                let mut policies = findings.study.policies.iter();
                let mut slices = cell.slices.iter();
                Some(Mark {
                    policy: policies.position(|p| p.name == cell.policy)?,
                    side: index,
                    estimate: (quantity.of)(slices.find(|s| s.slice == slice)?)?,
                })
            });
        marks.collect::<Vec<_>>()
    };
    sides.flat_map(of_side).collect()
}

/// The part of a policy's room that its points take.
const POINTS_WIDTH: f64 = 0.6;
