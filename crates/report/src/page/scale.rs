//! The page's section on slices by the thousand.

use super::charts::drawing;
use crate::figures::Figures;
use crate::findings::Findings;
use crate::markup::{Prose, Section};
use crate::object::object;
use crate::populations::{PopulationFinding, finding, grouped, memory, time_a_frame};
use crate::text_table::{or_dash, time_or_dash};
use maud::html;
use serde::Serialize;
use slicewise_stats::words::{digits, percent};

object! {
    /// A population under a policy in a scenario; all but the numbers that charts draw are texts.
    Population(findings: &Findings, finding: &PopulationFinding) {
        /// Places in the study.
        policy: Option<usize> = findings.study().policy_place(&finding.policy),
        scenario: Option<usize> = findings.study().scenario_place(&finding.scenario),
        slice: usize = finding.slice_index,
        backlogged: bool = finding.backlogged,
        all_slices: u64 = finding.all_slices,
        delay_max_ns: Option<u64> = finding.delay_max_ns,
        delay_bound_ns: Option<u64> = finding.delay_bound_ns,
        within_bound: Option<bool> = finding.part_of_bound().map(|part| part <= 1.0),
        slices_text: String = grouped(finding.slices.into()),
        all_slices_text: String = grouped(finding.all_slices),
        delay_max: String = time_or_dash(finding.delay_max_ns),
        delay_bound: String = time_or_dash(finding.delay_bound_ns),
        part_of_bound: String = or_dash(finding.part_of_bound(), percent),
        bytes_per_weight: String = or_dash(finding.bytes_per_weight, |(least, most)| {
            format!("{} to {} B", grouped(least), grouped(most))
        }),
        turns_apart: String = or_dash(finding.turns_apart(), |turns| digits(turns, 2)),
        state: String = memory(finding.state_bytes),
        state_in_all: String = memory(finding.state_bytes_in_all()),
        ns_a_frame: String = or_dash(finding.ns_a_frame, time_a_frame),
    }
}

/// `None` in a study without populations.
pub(super) fn script(findings: &Findings) -> Option<Vec<Population>> {
    let rows = findings.populations.iter();
    let rows: Vec<Population> = rows.map(|f| Population::of(findings, f)).collect();
    (!rows.is_empty()).then_some(rows)
}

pub(super) fn section(findings: &Findings, figures: &Figures) -> Option<Section> {
    if findings.populations.is_empty() {
        return None;
    }
    let study = findings.study();
    let is_drawn = |index: usize, finding: &PopulationFinding| {
        let is_known = study.policy_place(&finding.policy).is_some();
        finding.slice_index == index && finding.delay_max_ns.is_some() && is_known
    };
    let drawn = study.slices.iter().enumerate().filter(|(index, _)| {
        let mut populations = findings.populations.iter();
        populations.any(|finding| is_drawn(*index, finding))
    });
    let body = html! {
        p.note { "The same traffic on a growing number of slices. A point is the largest delay of any frame in any repetition; the dashed line is the bound that the policy proves for every frame, however many slices there are." }
        ul.finding { @for text in finding(study, &findings.populations) { li { (Prose(&text)) } } }
        div.charts #scale-charts {
            @for (index, slice) in drawn {
                figure data-slice=(index) {
                    figcaption { (slice.name) " " span.quiet {} }
                    div.chart { (drawing(figures, "scale", &slice.name, "")) }
                }
            }
        }
        div.scripted {
            h3 { "Delay, bound and memory" }
            div.table-frame #scale-table {}
            p.key { (Prose(&cost(findings))) }
            h3 { "Shares of the excess" }
            p.note { "For slices that always have frames waiting: bytes sent per unit of weight, for the slices that got least and most. A turn is what a slice of weight 1 may send before the others; two slices can differ by one turn at any moment, and a run ends in the middle of a round." }
            div.table-frame #scale-shares {}
        }
    };
    Some(Section::new("scale", "Slices at scale", body))
}

/// Describes what the times cover, and what they do not.
fn cost(findings: &Findings) -> String {
    let timed = findings.populations.iter().any(|f| f.ns_a_frame.is_some());
    let Some(host) = findings.host.as_ref().filter(|_| timed) else {
        return String::new();
    };
    let processor = if host.processor.is_empty() {
        String::new()
    } else {
        format!(" on {}", host.processor)
    };
    let company = match host.jobs {
        0 | 1 => String::new(),
        jobs => format!(", with {jobs} runs at a time"),
    };
    format!(
        "Time per frame is that of the whole simulation{processor}{company}: filling the \
         slices, traffic, scheduler and measurement. It describes the host and is not a result; it is an upper limit of the scheduler's time. Memory is the scheduler's state for slices, without queued frames."
    )
}
