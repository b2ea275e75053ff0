//! The page over several cases: the verdicts of each and its published figures, with links to the cases' own reports.

use super::{Head, declared, escaped, fill, sweep};
use crate::answer::nothing_judged;
use crate::attribute::attributes;
use crate::error::ReportError;
use crate::figures::DeclaredFigure;
use crate::findings::Findings;
use crate::markup::{Prose, cards, facts, outcome, table};
use crate::measured;
use crate::published;
use crate::sweep::VerdictMap;
use maud::{Markup, html};
use slicewise_results::{LeftOut, SeriesFolder, write_file};
use slicewise_stats::backend;
use slicewise_stats::verdict::PolicyVerdict;
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

    /// One line for people: the name of the case where it has no title but that of the series, `of_series`.
    #[must_use]
    pub fn title(&self, of_series: &str) -> &str {
        let study = self.findings.study();
        match study.title.as_str() {
            title if title.is_empty() || title == of_series => {
                study.case.as_deref().unwrap_or(&study.name)
            }
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
    let is_judged = (cases.iter()).any(|case| case.findings.main().verdicts.is_judged());
    let drawn = declared::section(drawn);
    let contents = html! {
        @if !is_judged && let Some(section) = &drawn { (section.link()) " " }
        a href="#cases" { (heading) } " "
        @if is_judged && let Some(section) = &drawn { (section.link()) " " }
        @for case in cases.iter().filter(|case| !case.findings.published.is_empty()) {
            a href=(format!("#{}", case.folder)) { (case.name()) } " "
        }
    };
    let figures = cases.iter().flat_map(|case| &case.findings.published);
    let of_cases = html! {
        section #cases aria-labelledby="cases-heading" {
            h2 #cases-heading { (heading) }
            @if let Some(headline) = published::headline(figures) { p.note { (headline) "." } }
            @if is_judged { (verdicts(cases, title)) } @else { (measured_of(cases, title)) }
            (not_carried_out(&series.left_out))
        }
    };
    let drawn = html! { @if let Some(section) = &drawn { (section.markup()) } };
    let main = html! {
        @if is_judged { (of_cases) (drawn) } @else {
            @if let Some(first) = cases.first() {
                section #nothing-judged { p.finding { (Prose(nothing_judged(first.findings.study()))) } }
            }
            (drawn) (of_cases)
        }
        @for case in cases { (published_of(case, title)) }
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

/// Verdicts on all cases, or over the axes of a sweep.
fn verdicts(cases: &[CaseReport], series: &str) -> Markup {
    let findings: Vec<&Findings> = cases.iter().map(|case| &case.findings).collect();
    let maps = VerdictMap::of(&findings);
    html! {
        @if maps.is_empty() {
            div.table-frame { (cards(&HEAD, &html! { @for case in cases { (rows(case, series)) } })) }
        } @else {
            (sweep::maps(&maps, &findings))
        }
    }
}

/// Measured figures of all cases, and links to the reports of those that have one.
fn measured_of(cases: &[CaseReport], series: &str) -> Markup {
    let named = cases.iter().map(|case| {
        let name = case.findings.study().case.clone();
        (name.unwrap_or_default(), &case.findings)
    });
    let mut measured = measured::rows(&named.collect::<Vec<_>>());
    let left_out = measured.rows.len().saturating_sub(MAX_ROWS);
    measured.rows.truncate(MAX_ROWS);
    html! {
        @if cases.iter().any(|case| !case.is_point()) {
            ul.reports { @for case in cases { li { (case.linked(case.title(series))) } } }
        }
        @if !measured.rows.is_empty() { (table(&measured.into())) }
        @if left_out > 0 { p.note { (count(left_out as u64, "more row")) " in data/cells.csv and data/application_cells.csv" } }
    }
}

/// Rows of measured figures; tables of data have all.
const MAX_ROWS: usize = 500;

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
fn rows(case: &CaseReport, series: &str) -> Markup {
    let [_, policy, isolation, reallocation] = HEAD;
    let main = case.findings.main();
    let all = &main.verdicts.policies;
    let judged: Vec<&PolicyVerdict> = all.iter().filter(|verdict| verdict.is_judged()).collect();
    let verdicts = match judged.is_empty() {
        true => all.first().into_iter().collect(),
        false => judged,
    };
    html! {
        @for (index, verdict) in verdicts.into_iter().enumerate() {
            tr.begins[index == 0] role="row" {
                th.claim scope="row" role="rowheader" {
                    @if index == 0 {
                        (case.linked(case.title(series)))
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

fn published_of(case: &CaseReport, series: &str) -> Markup {
    let figures = &case.findings.published;
    html! {
        @if !figures.is_empty() {
            section id=(case.folder) aria-labelledby=(format!("{}-heading", case.folder)) {
                h2 id=(format!("{}-heading", case.folder)) { (Prose(case.title(series))) }
                @if !case.is_point() { p.note { (case.linked("The report of this case")) } }
                (published::table(figures, &format!("{}-published", case.folder)))
            }
        }
    }
}
