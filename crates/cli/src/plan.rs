//! `slicewise plan`: whether guarantees can all be kept on a link, and what is left.

use crate::Failure;
use crate::arguments::PlanOptions;
use crate::exit::Exit;
use crate::output;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
use serde_json::{Value, json};
use slicewise_model::{ClassUse, DelayReason, GuaranteeRequest, Problem};
use slicewise_study::{Plan, PlanOutcome, PlannedSlice, SliceOutcome};
use slicewise_units::{BitRate, Duration, Rounded};

pub fn plan(options: &PlanOptions) -> Result<Exit, Failure> {
    let plans =
        Plan::load(&options.file).map_err(|found| Failure::mistakes(found, &options.file))?;
    if plans.is_empty() {
        return Err(Failure::mistake(format!(
            "{}: no policy of this study has the discipline `guaranteed`: there is nothing to plan",
            options.file.display()
        )));
    }
    let outcomes: Vec<(&Plan, PlanOutcome)> =
        plans.iter().map(|plan| (plan, plan.outcome())).collect();
    if options.json {
        let plans: Vec<Value> = outcomes.iter().map(|(p, o)| plan_json(p, o)).collect();
        output::json(&json!({ "plans": plans }));
    } else {
        let texts: Vec<String> = outcomes.iter().map(|(p, o)| plan_text(p, o)).collect();
        output::line(&texts.join("\n\n"));
    }
    let fits = outcomes.iter().all(|(_, outcome)| outcome.is_admitted());
    Ok(if fits { Exit::Success } else { Exit::Failure })
}

/// For people: what is promised and taken rounded up and what is left rounded down, to four digits. The exact
/// numbers are in JSON.
fn plan_text(plan: &Plan, outcome: &PlanOutcome) -> String {
    let mut lines = vec![heading(plan), slices_table(plan, outcome).to_string()];
    let refused = plan
        .slices
        .iter()
        .zip(&outcome.slices)
        .filter_map(|(slice, outcome)| match outcome {
            SliceOutcome::Refused(refusal) => Some(format!("{}: {refusal}", slice.name)),
            _ => None,
        });
    lines.extend(refused);
    let slices = plan.slices.iter().zip(&outcome.slices);
    let chosen = slices.filter_map(|(slice, outcome)| {
        let (bound, reason) = chosen(plan, slice, outcome)?;
        let is_default = reason == DelayReason::Default;
        (!is_default).then(|| format!("{}: {} ({reason})", slice.name, bound.rounded_up()))
    });
    lines.extend(chosen);
    if !outcome.classes.is_empty() {
        lines.push(String::new());
        lines.push(classes_table(&outcome.classes).to_string());
    }
    let layer = plan.link.link.accounting.layer;
    let mut left = format!("unreserved: {} ({layer})", outcome.rate_left.rounded_down());
    if let (Some(buffer), Some(all)) = (outcome.buffer_left, plan.link.buffer) {
        left.push_str(&format!(", {} of {all} buffer", buffer.rounded_down()));
    }
    lines.push(left);
    if outcome.held_for_small_frames > BitRate::ZERO {
        lines.push(format!(
            "{} of the link is reserved in case all frames are small: state `smallest_frame` of a guarantee, or count {layer}, to \
             free some of it",
            outcome.held_for_small_frames.rounded_down()
        ));
    }
    if !plan.end_to_end.is_empty() {
        let bounds = plan.end_to_end.iter();
        let bounds: Vec<String> = bounds
            .map(|(slice, bound)| format!("{slice} {}", bound.rounded_up()))
            .collect();
        lines.push(format!(
            "bound of one-way delay over the whole path, links and hosts included: {}",
            bounds.join(", ")
        ));
    }
    lines.join("\n")
}

fn heading(plan: &Plan) -> String {
    let link = plan.link.link;
    let counted = plan.link.accounting;
    let mut heading = plan.name.clone();
    for (what, name) in [
        ("phase", &plan.phase),
        ("scenario", &plan.scenario),
        ("device", &plan.device),
    ] {
        if let Some(name) = name {
            heading.push_str(&format!(", {what} {name}"));
        }
    }
    heading.push_str(&format!(
        ": link of {} ({})",
        link.rate, link.accounting.layer
    ));
    if link.accounting != counted {
        heading.push_str(&format!("; guarantees count {}", counted.layer));
    }
    heading
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    table
}

fn number(text: impl ToString) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn slices_table(plan: &Plan, outcome: &PlanOutcome) -> Table {
    let mut table = table(&[
        "Slice",
        "Count",
        "CIR",
        "CBS",
        "Delay requested",
        "Delay bound",
        "Guarantee",
    ]);
    for (slice, outcome) in plan.slices.iter().zip(&outcome.slices) {
        let none = String::new;
        let request = slice.request.as_ref();
        let of = |value: fn(&GuaranteeRequest) -> String| request.map_or_else(none, value);
        let (bound, verdict) = match outcome {
            SliceOutcome::BestEffort => (none(), "none".to_owned()),
            SliceOutcome::Admitted { bound } => {
                (bound.rounded_up().to_string(), "admitted".to_owned())
            }
            SliceOutcome::Refused(refusal) => {
                (none(), format!("refused: {}", condition(&refusal.problem)))
            }
        };
        table.add_row(vec![
            Cell::new(&slice.name),
            number(slice.count),
            number(of(|request| request.rate.to_string())),
            number(of(|request| request.burst.to_string())),
            number(of(|request| {
                let delay = request.delay.map(|delay| delay.to_string());
                delay.unwrap_or_else(|| "none".to_owned())
            })),
            number(bound),
            Cell::new(verdict),
        ]);
    }
    table
}

/// The delay of a slice that states none, and why it has that.
fn chosen(
    plan: &Plan,
    slice: &PlannedSlice,
    outcome: &SliceOutcome,
) -> Option<(Duration, DelayReason)> {
    let request = slice
        .request
        .as_ref()
        .filter(|request| request.delay.is_none())?;
    match outcome {
        SliceOutcome::Admitted { bound } => {
            Some((*bound, request.delay_reason(*bound, plan.link.delays)))
        }
        _ => None,
    }
}

fn classes_table(classes: &[ClassUse]) -> Table {
    let mut table = table(&["Delay class", "Slices", "CIR", "CBS", "Unreserved burst"]);
    for class in classes {
        table.add_row(vec![
            number(class.reserved.delay.rounded_up()),
            number(class.reserved.count),
            number(class.reserved.rate.rounded_up()),
            number(class.reserved.burst.rounded_up()),
            number(class.slack.rounded_down()),
        ]);
    }
    table
}

/// The condition that failed, in a word.
fn condition(problem: &Problem) -> &'static str {
    match problem {
        Problem::ZeroRate | Problem::Rate { .. } => "rate",
        Problem::BurstBelowFrame { .. } | Problem::Burst { .. } => "burst",
        Problem::SmallestAboveLargest { .. } => "smallest_frame",
        Problem::DelayBelowShortest { .. } | Problem::Delay { .. } => "delay",
        Problem::Buffer { .. } => "buffer",
    }
}

fn plan_json(plan: &Plan, outcome: &PlanOutcome) -> Value {
    let slices: Vec<Value> = plan
        .slices
        .iter()
        .zip(&outcome.slices)
        .map(|(slice, outcome)| slice_json(plan, slice, outcome))
        .collect();
    let end_to_end = plan.end_to_end.iter();
    let end_to_end: serde_json::Map<String, Value> = end_to_end
        .map(|(slice, bound)| (slice.clone(), bound.nanos().into()))
        .collect();
    let classes: Vec<Value> = outcome
        .classes
        .iter()
        .map(|class| {
            json!({
                "delay_ns": class.reserved.delay.nanos(),
                "slices": class.reserved.count,
                "rate_bits_per_second": class.reserved.rate.bits_per_second(),
                "burst_bytes": class.reserved.burst.bytes(),
                "link_rate_bits_per_second": class.reserved.link_rate.bits_per_second(),
                "burst_left_bytes": class.slack.bytes(),
            })
        })
        .collect();
    json!({
        "name": plan.name,
        "scenario": plan.scenario,
        "phase": plan.phase,
        "device": plan.device,
        "end_to_end_bounds_ns": end_to_end,
        "admitted": outcome.is_admitted(),
        "link_bits_per_second": plan.link.link.rate.bits_per_second(),
        "link_counts": plan.link.link.accounting.layer.to_string(),
        "guarantees_count": plan.link.accounting.layer.to_string(),
        "held_for_small_frames_bits_per_second": outcome.held_for_small_frames.bits_per_second(),
        "rate_left_bits_per_second": outcome.rate_left.bits_per_second(),
        "buffer_left_bytes": outcome.buffer_left.map(|left| left.bytes()),
        "slices": slices,
        "delay_classes": classes,
    })
}

fn slice_json(plan: &Plan, slice: &PlannedSlice, outcome: &SliceOutcome) -> Value {
    let request = slice.request.as_ref();
    let (verdict, bound, refusal) = match outcome {
        SliceOutcome::BestEffort => ("best_effort", None, None),
        SliceOutcome::Admitted { bound } => ("admitted", Some(bound.nanos()), None),
        SliceOutcome::Refused(refusal) => ("refused", None, Some(refusal)),
    };
    json!({
        "name": slice.name,
        "count": slice.count,
        "rate_bits_per_second": request.map(|request| request.rate.bits_per_second()),
        "burst_bytes": request.map(|request| request.burst.bytes()),
        "smallest_frame_bytes": request.map(|request| request.smallest_frame.bytes()).filter(|bytes| *bytes > 0),
        "delay_asked_ns": request.and_then(|request| request.delay).map(|delay| delay.nanos()),
        "verdict": verdict,
        "delay_bound_ns": bound,
        "delay_reason": chosen(plan, slice, outcome).map(|(_, reason)| reason.to_string()),
        "refusal": refusal.map(|refusal| json!({
            "condition": condition(&refusal.problem),
            "text": refusal.to_string(),
            "largest_rate_bits_per_second": refusal.offer.rate.map(BitRate::bits_per_second),
            "largest_burst_bytes": refusal.offer.burst.map(|burst| burst.bytes()),
            "smallest_delay_ns": refusal.offer.delay.map(|delay| delay.nanos()),
            "largest_count": refusal.offer.count,
            "least_smallest_frame_bytes": refusal.offer.smallest_frame.map(|frame| frame.bytes()),
        })),
    })
}
