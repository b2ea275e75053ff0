//! The section of applications: what each source got, and figures of it.

use super::charts::{drawing, estimate_text};
use crate::figures::{APPLICATION_FIGURES, APPLICATION_SERIES, Figures, SLICES_ON_PAGE};
use crate::findings::Findings;
use crate::markup::{Section, list, table};
use crate::text_table::TextTable;
use maud::{Markup, html};
use slicewise_stats::quantity::Quantity;
use slicewise_stats::words::{count, percent};

/// Columns of the table of each kind: heads, and the quantities below them.
const COLUMNS: [(&str, Quantity); 16] = [
    ("Goodput", Quantity::Goodput),
    ("Sent again", Quantity::RetransmittedRatio),
    ("Round trip: mean", Quantity::RttMean),
    ("Window: mean", Quantity::WindowMean),
    ("Fairness", Quantity::Fairness),
    ("Requests/s: due", Quantity::RequestsOffered),
    ("answered", Quantity::RequestsAchieved),
    ("Request latency: mean", Quantity::RequestLatencyMean),
    ("99 %", Quantity::RequestLatencyP99),
    ("99.9 %", Quantity::RequestLatencyP999),
    ("Completion time: mean", Quantity::CompletionTimeMean),
    ("99 %", Quantity::CompletionTimeP99),
    ("Quality: mean", Quantity::QualityMean),
    ("Switches/min", Quantity::SwitchesPerMinute),
    ("Start-up", Quantity::StartUpMean),
    ("Stalled", Quantity::StalledRatio),
];

/// `None` where no source is an application.
pub(super) fn section(findings: &Findings, figures: &Figures) -> Option<Section> {
    let cells = &findings.main().summary.cells;
    let mut sources: Vec<(&str, &str)> = Vec::new();
    for of in cells.iter().flat_map(|cell| &cell.applications) {
        if let Some(source) = &of.source
            && !sources.contains(&(source, &of.slice))
        {
            sources.push((source, &of.slice));
        }
    }
    if sources.is_empty() {
        return None;
    }
    let left_out = sources.len().saturating_sub(SOURCES_LISTED);
    let body = html! {
        p.note { "What sources that react to the network got over TCP in whole runs: means over repetitions, and half of their "
            (percent(findings.main().summary.confidence)) " confidence intervals. Goodput is the bytes that reached the application in order / the length of the run. Every policy meets the same demand, and not the same packets: what such a source sends follows from what it gets. The latency of a request counts from when it was due, so that waiting for a slow response counts, too." }
        @for (source, slice) in sources.iter().take(SOURCES_LISTED) {
            h3 { "Source " (source) " " span.quiet { "(slice " (slice) ")" } }
            (table(&of_source(findings, source)))
            (failed(findings, source))
        }
        @if left_out > 0 { p.key { (left_out) " more sources are in data/application_cells.csv." } }
        div.charts { (drawings(findings, figures)) }
    };
    Some(Section::new("applications", "Applications", body))
}

/// Which of its connections failed, where some did.
fn failed(findings: &Findings, source: &str) -> Markup {
    let cells = findings.main().summary.cells.iter();
    let texts = cells.flat_map(|cell| {
        let own = cell.applications.iter();
        let own = own.filter(|of| of.source.as_deref() == Some(source));
        own.flat_map(|of| &of.failures).map(move |failure| {
            let connections = count(failure.connections, "connection");
            format!(
                "{} in scenario {}: {connections} ({})",
                cell.policy, cell.scenario, failure.reason
            )
        })
    });
    let texts: Vec<String> = texts.collect();
    html! { @if !texts.is_empty() {
        p.note { "Connections that ended before their work was done, in all repetitions:" }
        (list(&texts))
    } }
}

/// A row a cell, and the columns that the source has a value for.
fn of_source(findings: &Findings, source: &str) -> TextTable {
    let cells = findings.main().summary.cells.iter();
    let its = cells.filter_map(|cell| {
        let mut all = cell.applications.iter();
        let its = all.find(|of| of.source.as_deref() == Some(source))?;
        Some((cell, its))
    });
    let its: Vec<_> = its.collect();
    let is_there = |(_, quantity): &&(_, Quantity)| {
        its.iter()
            .any(|(_, of)| of.estimates.of(*quantity).is_some())
    };
    let columns: Vec<&(&str, Quantity)> = COLUMNS.iter().filter(is_there).collect();
    let mut head = vec!["Policy", "Scenario"];
    head.extend(columns.iter().map(|(head, _)| head));
    let rows = its.iter().map(|(cell, of)| {
        let mut row = vec![cell.policy.clone(), cell.scenario.clone()];
        let values = columns
            .iter()
            .map(|(_, quantity)| estimate_text(&of.estimates, *quantity));
        row.extend(values);
        row
    });
    TextTable::new(&head.join(" | "), 2, rows.collect())
}

/// Figures of the first slices that have applications, then windows and round-trip times over time.
fn drawings(findings: &Findings, figures: &Figures) -> Markup {
    let study = findings.study();
    let shown =
        |kind: &str, subject: &str, scenario: &str| figures.get(kind, subject, scenario).is_some();
    let heaviest = study.scenarios.get(findings.heaviest_scenario());
    let scenario = heaviest.map_or("", |scenario| &scenario.name);
    html! {
        @for slice in study.slices.iter().take(SLICES_ON_PAGE) {
            @for figure in APPLICATION_FIGURES {
                @if shown(figure.kind, &slice.name, "") {
                    figure { figcaption { (figure.title) ", slice " (slice.name) } div.chart.drawn { (drawing(figures, figure.kind, &slice.name, "")) } }
                }
            }
        }
        @for policy in findings.main().policies_of_runs() {
            @if shown(APPLICATION_SERIES, policy, scenario) {
                figure { figcaption { "First connection of each source, policy " (policy) ", scenario " (scenario) }
                    div.chart.drawn { (drawing(figures, APPLICATION_SERIES, policy, scenario)) } }
            }
        }
    }
}

/// Sources that have a table.
const SOURCES_LISTED: usize = 20;
