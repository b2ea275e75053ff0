//! The page over several cases: the verdicts of each and its published figures, with links to the cases' own reports.

use super::{Head, declared, escaped, fill, sweep};
use crate::attribute::attributes;
use crate::error::ReportError;
use crate::figures::DeclaredFigure;
use crate::findings::Findings;
use crate::markup::{Prose, cards, facts, outcome};
use crate::published;
use crate::sweep::VerdictMap;
use maud::{Markup, html};
use slicewise_results::{LeftOut, SeriesFolder, write_file};
use slicewise_stats::backend;
use slicewise_stats::verdict::{Outcome, PolicyVerdict};
use slicewise_stats::words::count;

/// A case and what was found.
#[derive(Debug)]
pub struct CaseReport {
    /// Name of its folder.
    pub folder: String,
    /// Findings of its runs.
    pub findings: Findings,
}

impl CaseReport {
    /// The name of the study that it is.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.findings.study().name
    }

    /// One line for people.
    #[must_use]
    pub fn title(&self) -> &str {
        match self.findings.study().title.as_str() {
            "" => self.name(),
            title => title,
        }
    }

    /// Returns true of a point of a sweep, which has no report of its own.
    fn is_point(&self) -> bool {
        !self.findings.study().coordinates.is_empty()
    }

    /// The title, as a link to the report where there is one.
    fn linked(&self, text: &str) -> Markup {
        html! {
            @if self.is_point() { (Prose(text)) }
            @else { a href=(format!("{}/report.html", self.folder)) { (Prose(text)) } }
        }
    }
}

const TEMPLATE: &str = include_str!("../../assets/page/series.html");
const HEAD: [&str; 4] = [
    "Case",
    "Policy",
    "Performance isolation",
    "Resource reallocation",
];

/// Write the page of `folder` over `cases`.
pub(crate) fn write_series_page(
    folder: &SeriesFolder,
    cases: &[CaseReport],
    drawn: &[DeclaredFigure],
) -> Result<(), ReportError> {
    let series = folder.description();
    let title = match series.title.as_str() {
        "" => &series.name,
        title => title,
    };
    let is_sweep = cases.iter().any(CaseReport::is_point);
    let [heading, noun] = match is_sweep {
        true => ["Points", "point"],
        false => ["Cases", "case"],
    };
    let masthead = html! {
        p.overline { "Slicewise report" }
        h1 #title { (Prose(title)) }
        p.lead { (Prose(&series.description)) }
        (facts([
            (heading, count(cases.len() as u64, noun).as_str()),
            ("Publication", series.source.as_str()),
        ]))
    };
    let drawn = declared::section(drawn);
    let contents = html! {
        a href="#cases" { (heading) } " "
        @if let Some(section) = &drawn { (section.link()) " " }
        @for case in cases.iter().filter(|case| !case.findings.published.is_empty()) {
            a href=(format!("#{}", case.folder)) { (case.name()) } " "
        }
    };
    let figures = cases.iter().flat_map(|case| &case.findings.published);
    let findings: Vec<&Findings> = cases.iter().map(|case| &case.findings).collect();
    let maps = VerdictMap::of(&findings);
    let main = html! {
        section #cases aria-labelledby="cases-heading" {
            h2 #cases-heading { (heading) }
            @if let Some(headline) = published::headline(figures) { p.note { (headline) "." } }
            @if maps.is_empty() {
                div.table-frame { (cards(&HEAD, &html! { @for case in cases { (rows(case)) } })) }
            } @else {
                (sweep::maps(&maps))
            }
            (not_carried_out(&series.left_out))
        }
        @if let Some(section) = &drawn { (section.markup()) }
        @for case in cases { (published_of(case)) }
    };
    let head = Head {
        version: &series.program_version,
        title,
        masthead: masthead.into_string(),
        contents: contents.into_string(),
        first: "cases",
        policy: "default-src 'none'; style-src 'unsafe-inline'",
    };
    let html = fill(
        TEMPLATE,
        &[
            ("head", &head.markup()),
            ("version", &escaped(&series.program_version)),
            ("main", &main.into_string()),
        ],
    );
    write_file(&folder.report_path(), html.as_bytes())?;
    Ok(())
}

/// Cases that a back end could not carry out, and why.
fn not_carried_out(cases: &[LeftOut]) -> Markup {
    html! {
        @if !cases.is_empty() {
            h3 { "Left out" }
            ul { @for case in cases {
                li {
                    @let title = if case.title.is_empty() { &case.case } else { &case.title };
                    (Prose(title)) ", " (backend::name(&case.backend)) ": " (Prose(&case.reason))
                }
            } }
        }
    }
}

/// A row for each policy of which something was judged, one at least.
fn rows(case: &CaseReport) -> Markup {
    let [_, policy, isolation, reallocation] = HEAD;
    let main = case.findings.main();
    let all = &main.verdicts.policies;
    let judged: Vec<&PolicyVerdict> = all.iter().filter(|verdict| is_judged(verdict)).collect();
    let verdicts = match judged.is_empty() {
        true => all.first().into_iter().collect(),
        false => judged,
    };
    html! {
        @for (index, verdict) in verdicts.into_iter().enumerate() {
            tr.begins[index == 0] role="row" {
                th.claim scope="row" role="rowheader" {
                    @if index == 0 {
                        (case.linked(case.title()))
                        span.said { (backend::name(&case.findings.study().backend)) }
                        @if main.finished_runs < main.expected_runs {
                            span.said { (main.finished_runs) " of " (main.expected_runs) " runs" }
                        }
                    }
                }
                td role="cell" data-label=(policy) { (verdict.policy) }
                @let [of_isolation, of_reallocation, _] = attributes(verdict);
                td role="cell" data-label=(isolation) { (outcome(of_isolation.sign, &of_isolation.word)) }
                td role="cell" data-label=(reallocation) { (outcome(of_reallocation.sign, &of_reallocation.word)) }
            }
        }
    }
}

fn is_judged(verdict: &PolicyVerdict) -> bool {
    let outcomes = [verdict.isolation.outcome, verdict.reallocation.outcome];
    outcomes
        .iter()
        .any(|outcome| *outcome != Outcome::NotTested)
}

fn published_of(case: &CaseReport) -> Markup {
    let figures = &case.findings.published;
    html! {
        @if !figures.is_empty() {
            section id=(case.folder) aria-labelledby=(format!("{}-heading", case.folder)) {
                h2 id=(format!("{}-heading", case.folder)) { (Prose(case.title())) }
                @if !case.is_point() { p.note { (case.linked("The report of this case")) } }
                (published::table(figures, &format!("{}-published", case.folder)))
            }
        }
    }
}
