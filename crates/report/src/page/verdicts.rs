//! The page's section on verdicts: each with the number that decided it, and the tests behind it.

use super::{captured, wording};
use crate::attribute::{self, AttributeText, attributes};
use crate::findings::Findings;
use crate::markup::{Prose, Section, icon, outcome};
use crate::matrix::{Cell, Matrix};
use crate::unbroken::unbroken;
use maud::{Markup, html};
use slicewise_stats::description::{PolicyDescription, StudyDescription};
use slicewise_stats::verdict::{
    BoundCheck, Deciding, InfluenceTest, NotJudged, ObjectiveTest, Outcome, PolicyVerdict,
    RunCount, objective_value,
};
use slicewise_stats::words::{percent, share, time};

/// Titles of the attributes.
const ATTRIBUTES: [&str; 3] = [
    "Performance isolation",
    "Resource reallocation",
    "Scalability",
];

/// The sentence that answers the study's question.
pub(super) fn answer(findings: &Findings) -> Markup {
    let (study, verdicts) = (findings.study(), &findings.main().verdicts);
    let captured = captured::answer(&findings.captured);
    let answer = captured
        .filter(|_| !verdicts.says_something())
        .unwrap_or_else(|| crate::answer::answer(study, verdicts, &Matrix::of(verdicts)));
    html! { p.finding { (Prose(&answer)) } }
}

/// `None` where nothing was judged and there is nothing else to say.
pub(super) fn section(findings: &Findings) -> Option<Section> {
    let (study, verdicts) = (findings.study(), &findings.main().verdicts);
    let policies = || study.policies.iter().zip(&verdicts.policies).enumerate();
    let remarks = wording::remarks(study, verdicts, &findings.published);
    let body = html! {
        @if verdicts.says_something() {
            div.table-frame #verdict-table { (matrix(study, &Matrix::of(verdicts))) }
            div.whys { @for (index, (policy, verdict)) in policies() { (why(index, policy, verdict)) } }
        }
        @if !remarks.is_empty() { p #remarks { (Prose(&remarks)) } }
        @if verdicts.says_something() {
            p.key #verdict-key { @for text in wording::verdict_key(study) { span { (Prose(&text)) br; } } }
        }
    };
    let is_empty =
        !verdicts.says_something() && (findings.captured.run_count > 0 || remarks.is_empty());
    (!is_empty).then(|| Section::new("verdicts", "Verdicts", body))
}

/// A row for each policy, as low as a line.
fn matrix(study: &StudyDescription, matrix: &Matrix) -> Markup {
    html! { table.matrix.wide[matrix.head.len() > 6] {
        thead { tr {
            th scope="col" { "Policy" }
            @for head in &matrix.head {
                th scope="col" { (unbroken(&head.name)) span.limit-of { (unbroken(&head.limit)) } }
            }
        } }
        tbody { @for (index, (row, policy)) in matrix.rows.iter().zip(&study.policies).enumerate() {
            @let begins = index > 0 && !study.phases.is_empty() && index % study.phases.len() == 0;
            tr.verdict-row.begins[begins] {
                th scope="row" {
                    a href=(format!("#why-{index}")) title="Why?" { (row.policy) }
                    @if !policy.rests_on.is_empty() { sup title="rests on an assumption" { "*" } }
                    span.policy-title { (policy.title.replace('`', "")) }
                }
                @for cell in &row.cells { td title=(cell.reason) { (sign_and_number(cell)) } }
            }
        } }
    } }
}

fn sign_and_number(cell: &Cell) -> Markup {
    html! {
        span class=(format!("verdict {}", cell.sign)) {
            @if !cell.sign.is_empty() { (icon(cell.sign)) span.unseen { (cell.word) ", " } }
            (unbroken(&cell.number))
            @if let Some((published, Some(agrees))) = &cell.published {
                span.published.differ[!agrees] title=(format!("published: {published}")) {
                    (icon(if *agrees { "agree" } else { "differ" }))
                    span.unseen { @if *agrees { ", as published" } @else { ", published otherwise" } }
                }
            }
        }
    }
}

/// The reasons behind a row, with every test.
fn why(index: usize, policy: &PolicyDescription, verdict: &PolicyVerdict) -> Markup {
    let tests = [
        isolation_tests(verdict),
        reallocation_tests(verdict),
        Vec::new(),
    ];
    html! {
        details.why {
            summary { "Why? " strong { (policy.name) } }
            // A link to what is inside opens it.
            div id=(format!("why-{index}")) {
                @if !policy.title.is_empty() { p.note { (Prose(&policy.title)) } }
                @for assumption in &policy.rests_on { p.said { "* rests on " (Prose(assumption)) } }
                @for ((title, attribute), tests) in ATTRIBUTES.into_iter().zip(&attributes(verdict)).zip(&tests) {
                    h4 { (title) (published(attribute)) }
                    p { (Prose(&attribute.reason)) }
                    @if attribute.key == "isolation" && verdict.isolation.has_only_bounds() {
                        p.note { "A bound that is kept breaks nothing, but does not show isolation: that takes objectives or influence." }
                    }
                    @if !tests.is_empty() { (table(tests)) }
                }
            }
        }
    }
}

fn published(attribute: &AttributeText) -> Markup {
    let said = match attribute.agrees {
        Some(true) => " (as here)",
        Some(false) => " (differs)",
        None => " (not compared)",
    };
    html! { @if let Some(published) = &attribute.published {
        span.said.differ[attribute.agrees == Some(false)] { "published: " (unbroken(published)) (said) }
    } }
}

/// A test, as it is shown.
struct TestRow {
    /// Slice, indicator, scenario, mean, worst run, limit, runs within it.
    texts: [String; 7],
    /// Sign of the outcome, and its word: none where it has none of its own.
    outcome: (&'static str, String),
    /// True for the test that the verdict names.
    decides: bool,
}

fn table(tests: &[TestRow]) -> Markup {
    let head = "Slice | Indicator | Scenario | Mean | Worst run | Limit | Runs within | Outcome";
    html! {
        div.table-frame { table {
            thead { tr { @for text in head.split(" | ") { th scope="col" { (text) } } } }
            tbody { @for TestRow { texts, outcome: (sign, word), decides } in tests {
                tr.decides[*decides] {
                    @for text in texts { td { (Prose(text)) } }
                    td { @if !word.is_empty() { (outcome(sign, word)) } }
                }
            } }
        } }
    }
}

fn runs_within(runs: RunCount) -> String {
    format!("{} of {}", runs.within(), runs.runs)
}

fn isolation_tests(verdict: &PolicyVerdict) -> Vec<TestRow> {
    let isolation = &verdict.isolation;
    let decided_by = isolation.decided_by();
    let objectives = isolation.objectives.iter().flat_map(|o| &o.tests);
    let objectives =
        objectives.map(|test| objective_test(test, decided_by == Some(Deciding::Objective(test))));
    let influence = isolation.influence.tests.iter().map(|test| {
        let decides = decided_by == Some(Deciding::Influence(&test.numbers));
        influence_test(test, decides)
    });
    objectives
        .chain(influence)
        .chain(isolation.bounds.iter().map(bound_check))
        .chain(isolation.not_judged.iter().map(not_judged))
        .collect()
}

fn objective_test(test: &ObjectiveTest, decides: bool) -> TestRow {
    let value = |value: f64| objective_value(test.indicator, value);
    let word = match test.outcome {
        Outcome::Holds => "met".to_owned(),
        Outcome::Broken => "missed".to_owned(),
        outcome => outcome.to_string(),
    };
    TestRow {
        texts: [
            test.slice.clone(),
            format!("objective: {}", test.indicator),
            test.scenario.clone(),
            test.mean
                .map_or_else(|| format!("{} lost", share(test.loss_ratio)), value),
            test.worst_value(),
            format!("{}{}", value(test.held_against), test.not_shown()),
            runs_within(test.runs),
        ],
        outcome: (attribute::sign(test.outcome), word),
        decides,
    }
}

fn influence_test(test: &InfluenceTest, decides: bool) -> TestRow {
    let numbers = &test.numbers;
    let mean = numbers.change(numbers.statistic);
    TestRow {
        texts: [
            numbers.slice.clone(),
            numbers.indicator.map(|i| i.to_string()).unwrap_or_default(),
            numbers.scenario.clone().unwrap_or_default(),
            match numbers.absolute() {
                Some(values) => format!("{values} ({mean})"),
                None => mean,
            },
            (numbers.worst).map_or_else(|| "∞".to_owned(), |worst| numbers.change(worst)),
            format!("{} of the reference", numbers.change(numbers.margin)),
            runs_within(numbers.runs),
        ],
        outcome: (attribute::sign(test.outcome), test.outcome.to_string()),
        decides,
    }
}

fn bound_check(check: &BoundCheck) -> TestRow {
    let indicator = match check.way_unbounded {
        None => "largest delay against its proved bound",
        Some(_) => "largest delay at the scheduler against its proved bound",
    };
    TestRow {
        texts: [
            check.slice.clone(),
            indicator.to_owned(),
            check.scenario.clone(),
            String::new(),
            time(check.largest_ns as f64),
            time(check.bound.end_to_end_ns() as f64),
            "every packet".to_owned(),
        ],
        outcome: (attribute::sign(check.outcome), check.outcome.to_string()),
        decides: check.outcome == Outcome::Broken,
    }
}

fn not_judged(missing: &NotJudged) -> TestRow {
    let indicator = if missing.only_bound {
        "largest delay against a bound"
    } else {
        "all"
    };
    let (slice, scenario, why) = (&missing.slice, &missing.scenario, &missing.why);
    TestRow {
        texts: [slice, indicator, scenario, why, "", "", ""].map(str::to_owned),
        outcome: ("inconclusive", "not tested".to_owned()),
        decides: false,
    }
}

fn reallocation_tests(verdict: &PolicyVerdict) -> Vec<TestRow> {
    let decided = verdict.reallocation.decided_by.as_ref();
    let scenarios = verdict.reallocation.scenarios.iter();
    scenarios
        .map(|scenario| TestRow {
            texts: [
                decided
                    .map(|numbers| numbers.slice.clone())
                    .unwrap_or_default(),
                "reallocated fraction".to_owned(),
                scenario.scenario.clone(),
                percent(scenario.fraction),
                percent(scenario.least),
                decided
                    .map(|numbers| percent(numbers.margin))
                    .unwrap_or_default(),
                format!("{} with an opportunity", scenario.repetitions),
            ],
            outcome: (attribute::sign(verdict.reallocation.outcome), String::new()),
            decides: false,
        })
        .collect()
}
