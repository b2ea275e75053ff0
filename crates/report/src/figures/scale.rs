//! Largest delay against the number of slices, bound beside measurement.

use super::axis::Axis;
use super::panel::{DrawError, Panel, Place, figure};
use super::{HEIGHT, policy_legend, slice_name};
use crate::findings::Findings;
use crate::populations::{PopulationFinding, grouped};
use crate::signs;
use slicewise_stats::words::time;

/// One line a policy, dashed where the policy proves a bound; `None` where the slice is no
/// population, or nothing of it arrived.
pub(super) fn largest_delays(
    findings: &Findings,
    slice: usize,
) -> Option<Result<String, DrawError>> {
    let measured = |finding: &&PopulationFinding| finding.delay_max_ns.is_some();
    let all: Vec<&PopulationFinding> = findings.populations.iter().filter(measured).collect();
    if !all.iter().any(|finding| finding.slice_index == slice) {
        return None;
    }
    // Axes of all populations are the same, so that their figures can be compared.
    let slices = all.iter().map(|finding| float(finding.all_slices));
    let delays = all
        .iter()
        .flat_map(|finding| [finding.delay_max_ns, finding.delay_bound_ns]);
    let x = Axis::logarithmic("slices on the link", slices, slice_count);
    let y = Axis::logarithmic("largest one-way delay", delays.flatten().map(float), time);
    let proved = all
        .iter()
        .any(|finding| finding.slice_index == slice && finding.delay_bound_ns.is_some());
    let dashed = if proved {
        " (dashed: proved bound)"
    } else {
        ""
    };
    let title = format!("Largest delay of {}{dashed}", slice_name(findings, slice));
    Some(figure(&title, &policy_legend(findings), HEIGHT, |area| {
        let mut panel = Panel::new(area, &x, &y)?;
        for (policy, description) in findings.study().policies.iter().enumerate() {
            let mut own: Vec<&PopulationFinding> = all
                .iter()
                .copied()
                .filter(|finding| {
                    finding.slice_index == slice && finding.policy == description.name
                })
                .collect();
            own.sort_by_key(|finding| finding.all_slices);
            let sign = signs::policy(policy);
            let points = || {
                own.iter().map(|finding| {
                    let delay = finding.delay_max_ns.map(float);
                    (float(finding.all_slices), delay)
                })
            };
            if let Some(bound) = own.iter().find_map(|finding| finding.delay_bound_ns) {
                panel.level(float(bound), sign.colour)?;
            }
            // Earlier lines are wider, so that none hides another that runs along it.
            let later = u32::try_from(findings.study().policies.len() - policy).unwrap_or(1);
            panel.signed_line(points(), sign, 3 * later.min(4))?;
            for (slices, delay) in points() {
                if let Some(delay) = delay {
                    panel.point((slices, delay), sign, (f64::MAX, Place::Around))?;
                }
            }
        }
        Ok(())
    }))
}

fn float(number: u64) -> f64 {
    number as f64
}

/// A value of the axis of slices; those are whole, and far below what a float holds exactly.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast saturates, and the axis is above zero"
)]
fn slice_count(value: f64) -> String {
    grouped(value.round() as u64)
}
