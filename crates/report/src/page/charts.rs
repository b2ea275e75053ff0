//! The page's sections of charts, complete without the page's script: texts and still figures, which the script
//! replaces by charts.

use crate::curves::REPETITIONS_DRAWN;
use crate::figures::{Figures, SLICES_ON_PAGE};
use crate::findings::Findings;
use crate::markup::{Section, table};
use crate::text_table::TextTable;
use crate::unbroken::unbroken;
use maud::{Markup, PreEscaped, html};
use slicewise_stats::estimate::Estimate;
use slicewise_stats::quantity::Quantity;
use slicewise_stats::summary::Estimates;
use slicewise_stats::words::{percent, rate, time};

pub(super) fn slices(findings: &Findings) -> Section {
    let slices = slices_table(findings);
    let body = html! {
        @let span = if findings.captured.run_count > 0 { "in the whole run" } else { "after the transient" };
        p.note { "One policy in one scenario: what each slice got " (span) ". Delay is one-way; PDV is the delay above the smallest of the run, IPDV the absolute difference between the delays of two consecutive packets of a flow (RFC 5481)." }
        div #slices-table { (table(&slices)) }
        @let left_out = findings.study().slices.len().saturating_sub(slices.rows.len());
        @if left_out > 0 { p.key { (left_out) " more slices are in data/cells.csv." } }
    };
    Section::new("slices", "Slices", body)
}

/// Table of the figures of each slice, where there is one cell.
fn slices_table(findings: &Findings) -> TextTable {
    let head = "Slice | Throughput | Loss | Delay: mean | median | 99 % | largest | PDV: 99 % | IPDV: 99 %";
    let cell = findings.main().summary.cells.first();
    let slices = findings
        .study()
        .slices
        .iter()
        .zip(cell.iter().flat_map(|c| &c.slices));
    let rows = slices.take(SLICES_LISTED).map(|(description, slice)| {
        // As flows are counted, so that no page has two values of one quantity.
        let estimates = match findings.captured.run_count {
            0 => &slice.steady,
            _ => &slice.whole,
        };
        let values = SLICES_COLUMNS.map(|quantity| estimate_text(estimates, quantity));
        [vec![description.name.clone()], values.to_vec()].concat()
    });
    TextTable::new(head, 1, rows.collect())
}

/// "17.5 Mbit/s ± 20 kbit/s": the mean and half of its interval.
pub(super) fn estimate_text(estimates: &Estimates, quantity: Quantity) -> String {
    let Some(Estimate { mean, interval, .. }) = estimates.of(quantity) else {
        return "–".to_owned();
    };
    let text = |value| quantity.unit().text(value, 4);
    match (interval.low, interval.high) {
        (Some(low), Some(high)) if high > low => {
            format!("{} ± {}", text(*mean), text((high - low) / 2.0))
        }
        _ => text(*mean),
    }
}

/// A still figure of a slice, in scenario `scenario` unless that is empty; or where it is.
pub(crate) fn drawing(figures: &Figures, kind: &str, slice: &str, scenario: &str) -> Markup {
    match figures.get(kind, slice, scenario) {
        Some(svg) => PreEscaped(svg.to_owned()),
        None => html! { p.quiet { "Not drawn here; see " code { "figures/" } "." } },
    }
}

/// Figures of the first slices, each with a name; the script draws others in their places.
fn still(findings: &Findings, figures: &Figures, kind: &str, end: &str) -> Markup {
    html! { @for slice in findings.study().slices.iter().take(SLICES_ON_PAGE) {
        @let kind_of_slice = if slice.guaranteed { "guaranteed" } else { "best effort" };
        figure {
            figcaption {
                "Slice " (slice.name) " "
                @if slice.share_bits_per_second > 0 {
                    span.quiet { "(" (kind_of_slice) ", " (unbroken(&rate(slice.share_bits_per_second as f64))) ")" }
                }
            }
            div.chart { (drawing(figures, kind, &slice.name, end)) }
        }
    } }
}

/// Data common to all charts of estimates.
fn how_drawn(findings: &Findings) -> String {
    let confidence = percent(findings.main().summary.confidence);
    let study = findings.study();
    let by_influence = study
        .slices
        .iter()
        .any(|s| s.guaranteed && s.objective.is_none());
    let mut text = format!(
        "The middle of a sign is the mean over repetitions, its whisker the {confidence} confidence interval. Dashed lines are what was \
         promised or proved."
    );
    if by_influence && study.scenarios.iter().any(|s| s.reference) {
        text.push_str(
            " A short bar at a sign is the margin: the value of the reference scenario and the worsening that is tolerated.",
        );
    }
    text
}

pub(super) fn throughput(findings: &Findings, figures: &Figures) -> Section {
    let body = html! {
        p.note { "Rate received after the transient, by receive time. " (how_drawn(findings)) }
        div.controls { label { "Axis " select #throughput-axis {
            option value="zero" { "from zero" } option value="fitted" { "fitted to the values" }
        } } }
        div.charts data-metric="throughput" { (still(findings, figures, "throughput", "")) }
    };
    Section::new("throughput", "Throughput", body)
}

pub(super) fn loss(findings: &Findings, figures: &Figures) -> Section {
    let body = html! {
        p.note { "Fraction of the frames sent after the transient that never arrived, by send time." }
        div.charts data-metric="loss_ratio" { (still(findings, figures, "loss", "")) }
        div #drops {}
    };
    Section::new("loss", "Loss", body)
}

pub(super) fn delay(findings: &Findings, figures: &Figures) -> Section {
    let body = html! {
        p.note { "Of frames sent after the transient. " (how_drawn(findings)) }
        div.controls {
            label { "Figure " select #delay-figure {} }
            label { "Axis " select #delay-axis {
                option value="log" { "logarithmic" } option value="zero" { "from zero" }
            } }
        }
        div.charts data-metric="delay" { (still(findings, figures, "delay-mean", "")) }
    };
    Section::new("delay", "Delay", body).headed("One-way delay under its bounds and objectives")
}

pub(super) fn distributions(findings: &Findings, figures: &Figures) -> Section {
    let heaviest = findings.study().scenarios.get(findings.heaviest_scenario());
    let end = heaviest.map_or("", |s| &s.name);
    let body = html! {
        p.note { "Fraction of the frames sent that arrived within this delay, over all repetitions, up to 99.999 %: a line that ends below has lost the rest."
            @if !findings.has_one_cell() { " Dashed lines are proved bounds; a line that meets an objective passes left of and above its corner." }
        }
        div.controls {
            @if findings.study().scenarios.len() > 1 {
                label { "Scenario " select #distribution-scenario {} }
            }
            @if findings.study().phases.len() > 1 { label { "Phase " select #distribution-phase {} } }
        }
        @if findings.has_one_cell() {
            div.scripted { figure { div.chart #slice-distributions {} } }
        } @else {
            div.charts #distribution-charts { (still(findings, figures, "delay-cdf", end)) }
        }
    };
    Section::new("distributions", "Distributions", body)
        .headed("Delay distributions with their tails")
}

pub(super) fn time_series(findings: &Findings) -> Option<Section> {
    let first = findings.curves.binned.first()?;
    let has_phases = !findings.study().phases.is_empty();
    let shaded = if has_phases {
        "What is left out while a phase settles"
    } else {
        "The initial transient"
    };
    let body = html! {
        p.note {
            "Repetition " (first.repetition) ", in intervals of " (unbroken(&time(first.bin_ns as f64)))
            ": rates by send and receive time, loss and delay by send time. " (shaded) " is shaded. To zoom, drag the bar below the chart, or turn the wheel with Ctrl held down."
        }
        div.controls {
            label hidden[findings.study().policies.len() < 2] { "Policy " select #time-policy {} }
            label hidden[findings.study().scenarios.len() < 2] { "Scenario " select #time-scenario {} }
        }
        div #time-chart {}
        @if !has_phases {
            h3 { "The initial transient" }
            p.note { "When it ends, and the rate that all slices together received before and after. It is excluded from everything above; a run that never settles is used as a whole. A dash: no transient was found." }
            div.table-frame #transients {}
        }
    };
    Some(Section::new("time", "Time series", body))
}

pub(super) fn trade_off(findings: &Findings) -> Option<Section> {
    let first = findings.curves.binned.first()?;
    let one = &findings
        .study()
        .slices
        .iter()
        .find(|slice| slice.guaranteed)?
        .name;
    let two = &findings
        .study()
        .slices
        .iter()
        .find(|slice| !slice.guaranteed)?
        .name;
    let body = html! {
        p.note {
            "Mean one-way delay of slice " (one) " against that of slice " (two) ", in the same interval of "
            (unbroken(&time(first.bin_ns as f64))) " after the transient, repetition " (first.repetition)
            ". A flat cloud is isolation: the delay of " (one) " does not depend on that of " (two) "."
        }
        div.controls { label { "Scenario " select #trade-off-scenario {} } }
        div #trade-off-chart {}
    };
    Some(
        Section::new("trade-off", "Trade-off", body)
            .headed("Effect of one slice's load on the other"),
    )
}

pub(super) fn arrivals(findings: &Findings) -> Option<Section> {
    let first = findings
        .curves
        .arrivals
        .iter()
        .find(|a| !a.cdf.0.is_empty())?;
    let policy = findings
        .study()
        .policies
        .get(first.policy)
        .map_or("", |p| findings.study().policy_of_runs(&p.name));
    let of_the_first = match findings.study().repetitions > REPETITIONS_DRAWN {
        true => format!(", of the first {REPETITIONS_DRAWN}"),
        false => String::new(),
    };
    let body = html! {
        p.note { "Time between consecutive frames as sent by the first source of each slice under policy “" (policy) "”; one line per repetition" (of_the_first) ". A policy acts after sending and cannot change them." }
        div.controls { label hidden[findings.study().scenarios.len() < 2] { "Scenario " select #arrivals-scenario {} } }
        div #arrivals-chart {}
    };
    Some(Section::new("arrivals", "Arrivals", body).headed("Inter-arrival times as sent"))
}

/// Slices that a table of them holds.
const SLICES_LISTED: usize = 200;
/// Quantities of slices in that table.
const SLICES_COLUMNS: [Quantity; 8] = [
    Quantity::Throughput,
    Quantity::LossRatio,
    Quantity::DelayMean,
    Quantity::DelayP50,
    Quantity::DelayP99,
    Quantity::DelayMax,
    Quantity::PdvP99,
    Quantity::IpdvP99,
];
