//! `slicewise plan`: whether guarantees can all be kept on a link, and what is left.

use crate::Failure;
use crate::arguments::PlanOptions;
use crate::exit::Exit;
use crate::output::{self, colours};
use serde_json::{Value, json};
use slicewise_model::{ClassUse, DelayReason, GuaranteeRequest, Problem};
use slicewise_report::terminal::{Colours, Column, Listing, wrapped};
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
        let (width, colours) = (output::columns(), colours());
        let texts = outcomes
            .iter()
            .map(|(p, o)| plan_text(p, o, width, colours));
        let texts: Vec<String> = texts.collect();
        output::coloured_line(&texts.join("\n\n"));
    }
    let fits = outcomes.iter().all(|(_, outcome)| outcome.is_admitted());
    Ok(if fits { Exit::Success } else { Exit::Failure })
}

/// For people, in lines of at most `width` columns: what is promised and taken rounded up and what is left rounded down,
/// to four digits. The exact numbers are in JSON.
fn plan_text(plan: &Plan, outcome: &PlanOutcome, width: u16, colours: Colours) -> String {
    let fitted = |table: Listing| table.fitted(width, "see --json", colours);
    let wrapped = |line: String| wrapped(&line, width.into()) + "\n";
    let mut text = wrapped(heading(plan)) + &fitted(slices_table(plan, outcome));
    let slices = || plan.slices.iter().zip(&outcome.slices);
    for (slice, outcome) in slices() {
        if let SliceOutcome::Refused(refusal) = outcome {
            text.push_str(&wrapped(format!("{}: {refusal}", slice.name)));
        }
    }
    for (slice, outcome) in slices() {
        match chosen(plan, slice, outcome) {
            None | Some((_, DelayReason::Default)) => {}
            Some((bound, reason)) => {
                let bound = bound.rounded_up();
                text.push_str(&wrapped(format!("{}: {bound} ({reason})", slice.name)));
            }
        }
    }
    if !outcome.classes.is_empty() {
        text.push('\n');
        text.push_str(&fitted(classes_table(&outcome.classes)));
    }
    let counts = plan.link.link.accounting;
    if outcome.held_for_small_frames > BitRate::ZERO {
        text.push_str(&wrapped(format!(
            "{} of the link is reserved in case all frames are small: state `smallest_frame` of a guarantee, or count {counts}, to \
             free some of it",
            outcome.held_for_small_frames.rounded_down()
        )));
    }
    if !plan.end_to_end.is_empty() {
        let bounds = plan.end_to_end.iter();
        let bounds: Vec<String> = bounds
            .map(|(slice, bound)| format!("{slice} {}", bound.rounded_up()))
            .collect();
        text.push_str(&wrapped(format!(
            "bound of one-way delay over the whole path, links and hosts included: {}",
            bounds.join(", ")
        )));
    }
    text + wrapped(conclusion(plan, outcome)).trim_end()
}

/// Says if all guarantees are admitted, names those that are not with the reason, and states the rest of the link.
fn conclusion(plan: &Plan, outcome: &PlanOutcome) -> String {
    let counts = plan.link.link.accounting;
    let mut left = format!("{} ({counts})", outcome.rate_left.rounded_down());
    match (outcome.buffer_left, plan.link.buffer) {
        (Some(buffer), Some(all)) => {
            left.push_str(&format!(
                " and {} of {all} buffer are unreserved",
                buffer.rounded_down()
            ));
        }
        _ => left.push_str(" is unreserved"),
    }
    let (mut guarantees, mut refused) = (0, Vec::new());
    for (slice, outcome) in plan.slices.iter().zip(&outcome.slices) {
        match outcome {
            SliceOutcome::BestEffort => {}
            SliceOutcome::Admitted { .. } => guarantees += slice.count,
            SliceOutcome::Refused(refusal) => {
                refused.push(format!("{} ({})", slice.name, condition(&refusal.problem)));
            }
        }
    }
    match (guarantees, refused.as_slice()) {
        (0, []) => format!("No slice has a guarantee; {left}."),
        (1, []) => format!("Admitted: the guarantee fits; {left}."),
        (_, []) => format!("Admitted: all {guarantees} guarantees fit together; {left}."),
        _ => format!(
            "Not admitted: there is no room for {}. Without that, {left}.",
            refused.join(", ")
        ),
    }
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
    heading.push_str(&format!(": link of {} ({})", link.rate, link.accounting));
    if link.accounting != counted {
        heading.push_str(&format!("; guarantees count {counted}"));
    }
    heading
}

fn slices_table(plan: &Plan, outcome: &PlanOutcome) -> Listing {
    let mut table = Listing::new([
        Column::Name("Slice"),
        Column::Text("Guarantee"),
        Column::Number("Count"),
        Column::Number("CIR"),
        Column::Number("CBS"),
        Column::Number("Delay\nbound"),
        Column::Number("Delay\nrequested"),
    ]);
    for (slice, outcome) in plan.slices.iter().zip(&outcome.slices) {
        let of = |value: fn(&GuaranteeRequest) -> String| {
            let request = slice.request.as_ref();
            request.map_or_else(String::new, value)
        };
        let (bound, verdict) = match outcome {
            SliceOutcome::BestEffort => (String::new(), String::new()),
            SliceOutcome::Admitted { bound } => {
                (bound.rounded_up().to_string(), "✓ admitted".to_owned())
            }
            SliceOutcome::Refused(_) => (String::new(), Listing::bad("✗ refused")),
        };
        table.add([
            slice.name.clone(),
            verdict,
            slice.count.to_string(),
            of(|request| request.rate.to_string()),
            of(|request| request.burst.to_string()),
            bound,
            of(|request| {
                request
                    .delay
                    .map_or_else(String::new, |delay| delay.to_string())
            }),
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

fn classes_table(classes: &[ClassUse]) -> Listing {
    let mut table = Listing::new([
        Column::Number("Delay class"),
        Column::Number("Slices"),
        Column::Number("CIR"),
        Column::Number("CBS"),
        Column::Number("Unreserved burst"),
    ]);
    for class in classes {
        table.add([
            class.reserved.delay.rounded_up().to_string(),
            class.reserved.count.to_string(),
            class.reserved.rate.rounded_up().to_string(),
            class.reserved.burst.rounded_up().to_string(),
            class.slack.rounded_down().to_string(),
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
        Problem::DelayBelowShortest { .. } | Problem::NoDelays { .. } | Problem::Delay { .. } => {
            "delay"
        }
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
        "link_counts": plan.link.link.accounting.to_string(),
        "guarantees_count": plan.link.accounting.to_string(),
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
