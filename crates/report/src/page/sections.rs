//! The sections of the page, complete without its script: texts, tables and still figures. The script replaces
//! still figures by charts and fills what is marked `scripted`.

use super::document::{CapturedView, Document, PublishedView, TestbedView};
use super::markup::{Prose, facts, list, outcome, table};
use super::verdicts;
use crate::figures::{Figures, SLICES_ON_PAGE as SLICES_DRAWN};
use crate::unbroken::unbroken;
use maud::{Markup, PreEscaped, html};
use slicewise_stats::words::{count, percent, rate, time};

/// A section of the page, and its line in the contents.
pub(super) struct Section {
    pub(super) id: &'static str,
    title: &'static str,
    heading: String,
    body: Markup,
}

impl Section {
    fn new(id: &'static str, title: &'static str, heading: &str, body: Markup) -> Self {
        Self {
            id,
            title,
            heading: heading.to_owned(),
            body,
        }
    }

    /// Its line in the contents. Nothing else is left of a section that only a script can fill.
    pub(super) fn link(&self) -> Markup {
        html! { a.scripted[self.is_scripted()] href=(format!("#{}", self.id)) { (self.title) } }
    }

    pub(super) fn markup(&self) -> Markup {
        let heading = format!("{}-heading", self.id);
        html! {
            section.scripted[self.is_scripted()] id=(self.id) aria-labelledby=(heading) {
                h2 id=(heading) { (self.heading) }
                (self.body)
            }
        }
    }

    fn is_scripted(&self) -> bool {
        ["time", "trade-off", "arrivals"].contains(&self.id)
    }
}

/// Sections before the charts of policies, those charts, and sections after them.
pub(super) fn all(document: &Document<'_>, figures: &Figures) -> [Vec<Section>; 3] {
    let before = [
        Some(judged(document)),
        side_by_side(document),
        prediction(document),
        testbed(&document.testbeds),
        document.captured.as_ref().map(captures),
        document.captured.as_ref().and_then(flows),
        document.captured.as_ref().and_then(hops),
    ];
    let charts = if document.one_cell {
        [
            Some(slices(document)),
            Some(distributions(document, figures)),
            time_series(document),
            None,
            None,
            None,
            None,
        ]
    } else {
        [
            scale(document, figures),
            Some(throughput(document, figures)),
            Some(loss(document, figures)),
            Some(delay(document, figures)),
            Some(distributions(document, figures)),
            time_series(document),
            trade_off(document),
        ]
    };
    let after = [
        arrivals(document),
        published(document),
        Some(method(document)),
    ];
    [
        before.into_iter().flatten().collect(),
        charts.into_iter().flatten().collect(),
        after.into_iter().flatten().collect(),
    ]
}

/// Title, description and what was run.
pub(super) fn masthead(document: &Document<'_>, title: &str) -> Markup {
    let study = &document.study;
    let number = |length: usize, one: &str, more: &str| {
        format!("{length} {}", if length == 1 { one } else { more })
    };
    let runs = format!(
        "{} × {} × {}",
        number(document.policies.len(), "policy", "policies"),
        number(document.scenarios.len(), "scenario", "scenarios"),
        count(study.repetitions.into(), "repetition"),
    );
    let each = match study.duration_ns {
        0 => "duration of the captures".to_owned(),
        ns => format!("{} of traffic", time(ns as f64)),
    };
    html! {
        p.overline { "Slicewise report" }
        h1 #title { (Prose(title)) }
        p.lead { (Prose(&study.description)) }
        (facts([
            ("Device under test", study.dut.as_str()),
            ("Runs", &runs),
            ("Each run", &each),
            ("Publication", &study.source),
        ]))
    }
}

/// Runs that are missing or damaged.
pub(super) fn notices(document: &Document<'_>) -> Markup {
    let runs = &document.runs;
    html! {
        @if runs.finished < runs.expected {
            div.notice role="status" {
                (runs.finished) " of " (runs.expected) " runs are finished. The same command runs the rest; \
                 until then intervals are wider and verdicts may be inconclusive."
            }
        }
        @if !runs.damaged.is_empty() {
            div.notice role="status" {
                (count(runs.damaged.len() as u64, "damaged record")) " left out:"
                (list(&runs.damaged))
            }
        }
    }
}

fn judged(document: &Document<'_>) -> Section {
    let body = html! {
        p.finding { (Prose(&document.finding)) }
        (verdicts::table(document))
    };
    Section::new("verdicts", "Verdicts", "Verdicts", body)
}

fn side_by_side(document: &Document<'_>) -> Option<Section> {
    document.beside.as_ref()?;
    let body = html! {
        p.note { "The same study on several back ends; each is judged on its own runs. Their scenarios and numbers of repetitions may differ." }
        (verdicts::beside(document))
        div.scripted {
            h3 { "Figures" }
            p.note { "Means over repetitions with their " (percent(document.study.confidence)) " confidence intervals, after the transient." }
            div.controls {
                label { "Scenario " select #beside-scenario {} }
                label { "Delay " select #beside-delay {} }
            }
            div.charts #beside-charts {}
            div.table-frame #beside-figures {}
        }
    };
    Some(Section::new("beside", "Side by side", "Side by side", body))
}

fn prediction(document: &Document<'_>) -> Option<Section> {
    let prediction = document.prediction.as_ref()?;
    let body = html! {
        @for text in &prediction.finding { p.finding { (Prose(text)) } }
        p.note { (Prose(&prediction.note)) }
        div.table-frame.scripted #prediction-table {}
    };
    Some(Section::new(
        "prediction",
        "Prediction",
        "Prediction and measurement",
        body,
    ))
}

fn testbed(testbeds: &[TestbedView]) -> Option<Section> {
    if testbeds.is_empty() {
        return None;
    }
    let folded = |number: usize, one: &str, more: &str, texts: &[String]| {
        html! { details {
            summary { (number) " " (if number == 1 { one } else { more }) }
            (list(texts))
        } }
    };
    let body = html! {
        p.note { "Conditions on the machine that carried real packets, not results: its delay when idle, processor time taken by others, lateness of senders and departures, and rejected attempts. A delay below the idle delay, or a tail no longer than the idle tail, shows nothing about a policy." }
        div #testbed-tables { @for bed in testbeds {
            h3 { (bed.name) }
            (table(&bed.table))
            p.key { (bed.versions.join("; ")) }
            @if bed.rejected.is_empty() { p.key { "No attempt was rejected." } }
            @else { (folded(bed.rejected.len(), "attempt was rejected and repeated", "attempts were rejected and repeated", &bed.rejected)) }
            @if !bed.tolerated.is_empty() {
                (folded(bed.tolerated.len(), "run was accepted although the machine was noisy", "runs were accepted although the machine was noisy", &bed.tolerated))
            }
            details {
                summary { "The order of runs" }
                ol { @for run in &bed.order { li { (run) } } }
            }
        } }
    };
    Some(Section::new(
        "testbed",
        "Testbed",
        "How the testbed performed",
        body,
    ))
}

fn captures(captured: &CapturedView) -> Section {
    let body = html! {
        p.note { (Prose(&captured.note)) }
        @if !captured.warnings.is_empty() {
            div.notice { strong { "Note" } (list(&captured.warnings)) }
        }
        h3 { "Captured packets" }
        (table(&captured.points))
        h3 { "Matched packets" }
        (table(&captured.matching))
    };
    Section::new("captures", "Captures", "Measured from captures", body)
}

fn flows(captured: &CapturedView) -> Option<Section> {
    let body = html! {
        p.note { (Prose(&captured.flows_note)) }
        div #flows-table { (table(captured.flows.as_ref()?)) }
        p.key { "Throughput counts received frames without copies, from the first frame to the last. A frame is reordered if one sent after it arrived before it (RFC 4737)." }
    };
    Some(Section::new("flows", "Flows", "Flows", body))
}

fn hops(captured: &CapturedView) -> Option<Section> {
    let body = html! {
        p.note { "From each measuring point to the next, in the order in which frames pass them." }
        (table(captured.hops.as_ref()?))
    };
    Some(Section::new("hops", "Hops", "Hops", body))
}

fn slices(document: &Document<'_>) -> Section {
    let body = html! {
        p.note { "One policy in one scenario: what each slice got after the transient. Delay is one-way; PDV is the delay above the smallest of the run, IPDV the absolute difference between the delays of two consecutive packets of a flow (RFC 5481)." }
        div #slices-table { (table(&document.slices_table)) }
        @let left_out = document.slices.len().saturating_sub(document.slices_table.rows.len());
        @if left_out > 0 { p.key { (left_out) " more slices are in data/cells.csv." } }
    };
    Section::new("slices", "Slices", "Slices", body)
}

/// Figures of the first slices, each with a name; the script draws others in their places.
fn still(document: &Document<'_>, figures: &Figures, kind: &str, end: &str) -> Markup {
    html! { @for slice in document.slices.iter().take(SLICES_DRAWN) {
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

fn drawing(figures: &Figures, kind: &str, slice: &str, end: &str) -> Markup {
    match figures.get(kind, slice, end) {
        Some(svg) => PreEscaped(svg.to_owned()),
        None => html! { p.quiet { "Not drawn here; see " code { "figures/" } "." } },
    }
}

fn scale(document: &Document<'_>, figures: &Figures) -> Option<Section> {
    let populations = document.populations.as_ref()?;
    let drawn = |index: usize| {
        populations
            .rows
            .iter()
            .any(|row| row.slice == index && row.delay_max_ns.is_some() && row.policy.is_some())
    };
    let body = html! {
        p.note { "The same traffic on a growing number of slices. A point is the largest delay of any frame in any repetition; the dashed line is the bound that the policy proves for every frame, however many slices there are." }
        ul.finding { @for text in &populations.finding { li { (Prose(text)) } } }
        div.charts #scale-charts {
            @for (index, slice) in document.slices.iter().enumerate().filter(|(index, _)| drawn(*index)) {
                figure data-slice=(index) {
                    figcaption { (slice.name) " " span.quiet {} }
                    div.chart { (drawing(figures, "scale", &slice.name, "")) }
                }
            }
        }
        div.scripted {
            h3 { "Delay, bound and memory" }
            div.table-frame #scale-table {}
            p.key { (Prose(&populations.cost)) }
            h3 { "Shares of the excess" }
            p.note { "For slices that always have frames waiting: bytes sent per unit of weight, for the slices that got least and most. A turn is what a slice of weight 1 may send before the others; two slices can differ by one turn at any moment, and a run ends in the middle of a round." }
            div.table-frame #scale-shares {}
        }
    };
    Some(Section::new(
        "scale",
        "Slices at scale",
        "Slices at scale",
        body,
    ))
}

fn throughput(document: &Document<'_>, figures: &Figures) -> Section {
    let body = html! {
        p.note { "Rate received after the transient, by receive time. A bar is the mean over repetitions, its whisker the " (percent(document.study.confidence)) " confidence interval. The dashed line is the guaranteed rate of the slice, or its fair share." }
        div.controls { label { "Axis " select #throughput-axis {
            option value="zero" { "from zero" } option value="fitted" { "fitted to the values" }
        } } }
        div.charts data-metric="throughput" { (still(document, figures, "throughput", "")) }
    };
    Section::new("throughput", "Throughput", "Throughput", body)
}

fn loss(document: &Document<'_>, figures: &Figures) -> Section {
    let body = html! {
        p.note { "Fraction of the frames sent after the transient that never arrived, by send time." }
        div.charts data-metric="loss" { (still(document, figures, "loss", "")) }
        div #drops {}
    };
    Section::new("loss", "Loss", "Loss", body)
}

fn delay(document: &Document<'_>, figures: &Figures) -> Section {
    let body = html! {
        p.note { "Of frames sent after the transient. Only an axis from zero has bars; on any other, values are points with the same whiskers." }
        div.controls {
            label { "Figure " select #delay-figure {} }
            label { "Axis " select #delay-axis {
                option value="log" { "logarithmic" } option value="zero" { "from zero" }
            } }
        }
        div.charts data-metric="delay" { (still(document, figures, "delay-mean", "")) }
    };
    Section::new("delay", "Delay", "One-way delay and its variation", body)
}

fn distributions(document: &Document<'_>, figures: &Figures) -> Section {
    let heaviest = document.scenarios.get(document.heaviest_scenario);
    let end = heaviest.map_or(String::new(), |s| s.name.clone());
    let body = html! {
        p.note { "Fraction of frames with at most this delay, over all repetitions." }
        div.controls { @if document.scenarios.len() > 1 {
            label { "Scenario " select #distribution-scenario {} }
        } }
        @if document.one_cell {
            div.scripted { figure { div.chart #slice-distributions {} } }
        } @else {
            div.charts #distribution-charts { (still(document, figures, "delay-cdf", &end)) }
        }
    };
    Section::new(
        "distributions",
        "Distributions",
        "Delay distributions",
        body,
    )
}

fn time_series(document: &Document<'_>) -> Option<Section> {
    let first = document.binned.first()?;
    let body = html! {
        p.note {
            "Repetition " (first.repetition) ", in intervals of " (unbroken(&time(first.bin_ns as f64)))
            ": rates by send and receive time, loss and delay by send time. The initial transient is shaded. To zoom, drag the bar below the chart, or turn the wheel with Ctrl held down."
        }
        div.controls {
            label hidden[document.policies.len() < 2] { "Policy " select #time-policy {} }
            label hidden[document.scenarios.len() < 2] { "Scenario " select #time-scenario {} }
        }
        div #time-chart {}
        h3 { "The initial transient" }
        p.note { "When it ends, and the rate that all slices together received before and after. It is excluded from everything above; a run that never settles is used as a whole. A dash: no transient was found." }
        div.table-frame #transients {}
    };
    Some(Section::new("time", "Time series", "Time series", body))
}

fn trade_off(document: &Document<'_>) -> Option<Section> {
    let first = document.binned.first()?;
    let one = &document.slices.iter().find(|slice| slice.guaranteed)?.name;
    let two = &document.slices.iter().find(|slice| !slice.guaranteed)?.name;
    let body = html! {
        p.note {
            "Mean one-way delay of slice " (one) " against that of slice " (two) ", in the same interval of "
            (unbroken(&time(first.bin_ns as f64))) " after the transient, repetition " (first.repetition)
            ". A flat cloud is isolation: the delay of " (one) " does not depend on that of " (two) "."
        }
        div.controls { label { "Scenario " select #trade-off-scenario {} } }
        div #trade-off-chart {}
    };
    Some(Section::new(
        "trade-off",
        "Trade-off",
        "Effect of one slice's load on the other",
        body,
    ))
}

fn arrivals(document: &Document<'_>) -> Option<Section> {
    let first = document.arrivals.iter().find(|a| !a.cdf.0.is_empty())?;
    let policy = document.policies.get(first.policy).map_or("", |p| &p.name);
    let body = html! {
        p.note { "Time between consecutive frames as sent by the first source of each slice under policy “" (policy) "”; one line per repetition. A policy acts after sending and cannot change them." }
        div.controls { label hidden[document.scenarios.len() < 2] { "Scenario " select #arrivals-scenario {} } }
        div #arrivals-chart {}
    };
    Some(Section::new(
        "arrivals",
        "Arrivals",
        "Inter-arrival times as sent",
        body,
    ))
}

fn published(document: &Document<'_>) -> Option<Section> {
    let figures = &document.published;
    if figures.is_empty() {
        return None;
    }
    let agreeing = figures.iter().filter(|figure| figure.outcome == "holds");
    let body = html! {
        p.note { (agreeing.count()) " of " (figures.len()) " published figures agree with ours. The last column explains known differences." }
        div.table-frame #published-table { table.cards role="table" {
            thead role="rowgroup" { tr role="row" { @for text in PUBLISHED_HEAD { th scope="col" role="columnheader" { (text) } } } }
            tbody role="rowgroup" { @for figure in figures { (published_row(figure)) } }
        } }
    };
    Some(Section::new(
        "published",
        "Published",
        "Compared with published figures",
        body,
    ))
}

const PUBLISHED_HEAD: [&str; 6] = [
    "Published",
    "Where",
    "Expected",
    "Ours",
    "Result",
    "Explanation",
];

fn published_row(figure: &PublishedView) -> Markup {
    let [_, place, expected, ours, result, explanation] = PUBLISHED_HEAD;
    html! { tr role="row" {
        th.claim scope="row" role="rowheader" {
            (Prose(&figure.claim))
            @if !figure.source.is_empty() { span.quiet { " (" (Prose(&figure.source)) ")" } }
        }
        td role="cell" data-label=(place) { (Prose(&figure.subject)) }
        td role="cell" data-label=(expected) { (Prose(&figure.expected)) }
        td role="cell" data-label=(ours) {
            (Prose(&figure.ours))
            @if !figure.seen_in.is_empty() { span.said { (Prose(&figure.seen_in)) } }
        }
        td role="cell" data-label=(result) { (outcome(figure.outcome, figure.word)) }
        td.explanation role="cell" data-label=(explanation) {
            (Prose(&figure.explanation))
            @if figure.explanation.is_empty() && figure.outcome == "broken" { span.quiet { "not explained" } }
        }
    } }
}

fn method(document: &Document<'_>) -> Section {
    let study = &document.study;
    let program = format!("Slicewise {}", study.program_version);
    let body = html! {
        div #method-text { @for text in &document.method { p { (Prose(text)) } } }
        h3 { "Assumptions" }
        div #assumptions {
            @if study.assumptions.is_empty() { p.quiet { "None is declared." } }
            @else { (list(&study.assumptions)) }
        }
        h3 { "Policies as configured" }
        @for policy in &document.policies {
            details.configuration {
                summary { (policy.name) }
                pre { @if policy.configuration.is_empty() { "(nothing configured)" } @else { (policy.configuration) } }
            }
        }
        h3 { "Provenance" }
        (facts([
            ("Study", study.name.as_str()),
            ("Digest of the study", &study.digest),
            ("Seed", &study.seed),
            ("Program", &program),
        ]))
        p { "To run it again:" }
        pre { (document.command) }
        @if !document.host.is_empty() {
            p.quiet { "The host, which results do not depend on:" }
            (facts(document.host.iter().map(|(name, value)| (name.as_str(), value.as_str()))))
        }
        h3 { "Data" }
        p { "Every number of this page is in " code { "data/" } " as Parquet and CSV; figures for papers, drawn from the same numbers, are in " code { "figures/" } " as SVG." }
    };
    Section::new("method", "Method", "Method", body)
}
