//! From findings to what the page shows.

use super::beside;
use super::captured;
use super::document::{
    AttributeView, CellView, Document, DropsView, EstimateView, PolicyView, PublishedView,
    RunsView, ScenarioView, Signs, SliceCellView, SliceFiguresView, SliceView, StudyView,
    TableView, TestView, TransientView, VerdictView,
};
use super::scale;
use super::wording;
use crate::attribute::{self, AttributeText, attributes};
use crate::curves::{ByScenario, Curves};
use crate::data::quantities;
use crate::figures::SLICES_ON_PAGE;
use crate::findings::Findings;
use crate::published::{expected, ours, seen_in, subject};
use crate::signs;
use slicewise_stats::description::StudyDescription;
use slicewise_stats::estimate::Estimate;
use slicewise_stats::published::{PublishedComparison, PublishedOutcome};
use slicewise_stats::summary::{SliceSummary, Summary};
use slicewise_stats::verdict::{
    Deciding, InfluenceTest, ObjectiveTest, Outcome, PolicyVerdict, VerdictTable, objective_value,
};
use slicewise_stats::words::{percent, rate, time};

pub(crate) fn document<'a>(findings: &'a Findings<'_>) -> Document<'a> {
    let study = findings.study;
    let one_cell =
        study.policies.len() == 1 && study.scenarios.len() == 1 && findings.populations.is_empty();
    Document {
        study: study_view(study, findings.summary.confidence),
        runs: RunsView {
            expected: findings.expected_runs,
            finished: findings.finished_runs,
            damaged: findings.damaged_runs.clone(),
        },
        slices: study
            .slices
            .iter()
            .map(|slice| SliceView {
                name: slice.name.clone(),
                share_bits_per_second: slice.share_bits_per_second,
                guaranteed: slice.guaranteed,
            })
            .collect(),
        policies: study
            .policies
            .iter()
            .map(|policy| PolicyView {
                name: policy.name.clone(),
                title: policy.title.clone(),
                configuration: policy.configuration.clone(),
            })
            .collect(),
        scenarios: study
            .scenarios
            .iter()
            .map(|scenario| ScenarioView {
                name: scenario.name.clone(),
                title: scenario.title.clone(),
                reference: scenario.reference,
            })
            .collect(),
        signs: Signs {
            policies: &signs::POLICIES,
            slices: &signs::SLICES,
            markers: signs::MARKERS.map(signs::path).to_vec(),
            dashes: &signs::DASHES,
        },
        one_cell,
        slices_drawn: SLICES_ON_PAGE,
        heaviest_scenario: findings.heaviest_scenario(),
        slices_table: if one_cell {
            slices_table(study, &findings.summary)
        } else {
            TableView::default()
        },
        finding: wording::finding(study, &findings.verdicts, &findings.published),
        verdicts: judged(&findings.verdicts)
            .enumerate()
            .map(verdict_view)
            .collect(),
        verdict_key: wording::verdict_key(study),
        cells: cells(study, &findings.summary, &findings.curves),
        binned: &findings.curves.binned,
        arrivals: &findings.curves.arrivals,
        drops: drops(study, &findings.summary, &findings.curves.drops),
        link_losses: drops(study, &findings.summary, &findings.curves.link_losses),
        marks: drops(study, &findings.summary, &findings.curves.marks),
        published: findings.published.iter().map(published_view).collect(),
        populations: scale::view(findings),
        captured: captured::view(&findings.captured),
        beside: beside::view(findings),
        prediction: beside::prediction_view(findings),
        testbeds: beside::testbed_views(findings),
        method: wording::method(study, &findings.summary),
        command: wording::command(study),
        host: findings
            .host
            .as_ref()
            .map(wording::host)
            .unwrap_or_default(),
    }
}

fn study_view(study: &StudyDescription, confidence: f64) -> StudyView {
    StudyView {
        name: study.name.clone(),
        description: study.description.clone(),
        source: study.source.clone(),
        dut: study.dut.clone(),
        digest: study.digest.clone(),
        seed: study.seed.to_string(),
        program_version: study.program_version.clone(),
        repetitions: study.repetitions,
        duration_ns: study.duration_ns,
        confidence,
        assumptions: study.assumptions.clone(),
    }
}

/// What each slice got, where there is one cell.
fn slices_table(study: &StudyDescription, summary: &Summary) -> TableView {
    let head = [
        "Slice",
        "Throughput",
        "Loss",
        "Delay: mean",
        "median",
        "99 %",
        "largest",
        "PDV: 99 %",
        "IPDV: 99 %",
    ];
    let cell = summary.cells.first();
    let slices = study.slices.iter().zip(cell.iter().flat_map(|c| &c.slices));
    let rows = slices.take(SLICES_LISTED).map(|(description, slice)| {
        let steady = &slice.steady;
        let mut row = vec![
            description.name.clone(),
            estimate_text(steady.throughput_bits_per_second.as_ref(), rate),
            estimate_text(steady.loss_ratio.as_ref(), percent),
        ];
        row.extend(
            [
                &steady.delay_mean_ns,
                &steady.delay_p50_ns,
                &steady.delay_p99_ns,
                &steady.delay_max_ns,
                &steady.pdv_p99_ns,
                &steady.ipdv_p99_ns,
            ]
            .map(|figure| estimate_text(figure.as_ref(), time)),
        );
        row
    });
    TableView::new(&head, 1, rows.collect())
}

/// "17.5 Mbit/s ± 20 kbit/s": the mean and half of its interval.
fn estimate_text(estimate: Option<&Estimate>, text: fn(f64) -> String) -> String {
    let Some(Estimate { mean, interval, .. }) = estimate else {
        return "–".to_owned();
    };
    match (interval.low, interval.high) {
        (Some(low), Some(high)) if high > low => {
            format!("{} ± {}", text(*mean), text((high - low) / 2.0))
        }
        _ => text(*mean),
    }
}

fn cells<'a>(
    study: &StudyDescription,
    summary: &Summary,
    curves: &'a Curves,
) -> Vec<Vec<Option<CellView<'a>>>> {
    let cell = |policy: usize, scenario: usize| {
        let (p, s) = (study.policies.get(policy)?, study.scenarios.get(scenario)?);
        let found = summary
            .cells
            .iter()
            .find(|c| c.policy == p.name && c.scenario == s.name)?;
        let slices = found
            .slices
            .iter()
            .enumerate()
            .map(|(slice, figures)| slice_cell(figures, curves, (policy, scenario, slice)));
        let transient = &found.transient;
        Some(CellView {
            repetitions: found.repetitions,
            transient: TransientView {
                found: transient.found,
                not_reached: transient.not_reached,
                end_ns: estimate(transient.end_ns.as_ref()),
                before: estimate(transient.throughput_before_bits_per_second.as_ref()),
                after: estimate(transient.throughput_after_bits_per_second.as_ref()),
            },
            slices: slices.collect(),
        })
    };
    (0..study.policies.len())
        .map(|policy| {
            (0..study.scenarios.len())
                .map(|scenario| cell(policy, scenario))
                .collect()
        })
        .collect()
}

fn drops(study: &StudyDescription, summary: &Summary, frames: &ByScenario) -> Vec<DropsView> {
    let repetitions = |policy: usize, scenario: usize| {
        let (p, s) = (study.policies.get(policy)?, study.scenarios.get(scenario)?);
        let cell = summary
            .cells
            .iter()
            .find(|c| c.policy == p.name && c.scenario == s.name)?;
        Some(f64::from(cell.repetitions))
    };
    let rows = frames
        .iter()
        .filter(|(_, frames)| frames.values().any(|f| *f > 0));
    rows.map(|((policy, class, reason), by_scenario)| DropsView {
        policy: *policy,
        class: class.clone(),
        reason: reason.clone(),
        frames: (0..study.scenarios.len())
            .map(|scenario| {
                let frames = by_scenario.get(&scenario).copied().unwrap_or_default();
                repetitions(*policy, scenario).map(|repetitions| frames as f64 / repetitions)
            })
            .collect(),
    })
    .collect()
}

fn slice_cell<'a>(
    slice: &SliceSummary,
    curves: &'a Curves,
    place: (usize, usize, usize),
) -> SliceCellView<'a> {
    SliceCellView {
        figures: slice_figures(slice),
        delay_cdf: curves.delay.get(&place),
    }
}

pub(crate) fn slice_figures(slice: &SliceSummary) -> SliceFiguresView {
    let figures = quantities(&slice.steady).into_iter();
    let figures = figures.filter_map(|(column, value)| {
        let name = match column {
            "throughput_bits_per_second" => "throughput",
            "loss_ratio" => "loss",
            time => time.strip_suffix("_ns")?,
        };
        Some((name, estimate(value)))
    });
    figures.collect()
}

pub(crate) fn estimate(estimate: Option<&Estimate>) -> Option<EstimateView> {
    estimate.map(|e| (e.mean, e.interval.low, e.interval.high))
}

/// The policies, or none of them where nothing was judged: captures without a study.
fn judged(verdicts: &VerdictTable) -> impl Iterator<Item = &PolicyVerdict> {
    let policies = verdicts.policies.iter();
    policies.take(if verdicts.says_something() {
        usize::MAX
    } else {
        0
    })
}

fn verdict_view((policy, verdict): (usize, &PolicyVerdict)) -> VerdictView {
    let [isolation, reallocation, scalability] = attributes(verdict);
    VerdictView {
        policy,
        isolation: attribute_view(isolation, isolation_tests(verdict)),
        reallocation: attribute_view(reallocation, reallocation_tests(verdict)),
        scalability: attribute_view(scalability, Vec::new()),
    }
}

pub(crate) fn attribute_view(text: AttributeText, tests: Vec<TestView>) -> AttributeView {
    AttributeView {
        outcome: text.sign,
        word: text.word,
        deciding: text.deciding,
        reason: text.reason,
        published: text.published,
        agrees: text.agrees,
        tests,
    }
}

fn isolation_tests(verdict: &PolicyVerdict) -> Vec<TestView> {
    let isolation = &verdict.isolation;
    let decided_by = isolation.decided_by();
    let objectives = isolation
        .objectives
        .iter()
        .flat_map(|verdict| &verdict.tests);
    let objectives =
        objectives.map(|test| objective_view(test, decided_by == Some(Deciding::Objective(test))));
    let influence = isolation.influence.tests.iter().map(|test| {
        let decides = decided_by == Some(Deciding::Influence(&test.numbers));
        influence_view(test, decides)
    });
    let bounds = verdict.isolation.bounds.iter().map(|check| TestView {
        outcome: attribute::sign(check.outcome),
        word: check.outcome.to_string(),
        slice: check.slice.clone(),
        indicator: match check.way_unbounded {
            None => "largest delay against its proved bound",
            Some(_) => "largest delay at the scheduler against its proved bound",
        }
        .to_owned(),
        scenario: check.scenario.clone(),
        measured: time(check.largest_ns as f64),
        interval: "in every packet".to_owned(),
        margin: time(check.bound.end_to_end_ns() as f64),
        p_value: String::new(),
        decides: check.outcome == Outcome::Broken,
    });
    let not_judged = verdict.isolation.not_judged.iter().map(|missing| TestView {
        outcome: "inconclusive",
        word: "not tested".to_owned(),
        slice: missing.slice.clone(),
        indicator: if missing.only_bound {
            "largest delay against a bound"
        } else {
            "all"
        }
        .to_owned(),
        scenario: missing.scenario.clone(),
        measured: missing.why.clone(),
        interval: String::new(),
        margin: String::new(),
        p_value: String::new(),
        decides: false,
    });
    objectives
        .chain(influence)
        .chain(bounds)
        .chain(not_judged)
        .collect()
}

fn objective_view(test: &ObjectiveTest, decides: bool) -> TestView {
    let value = |value: f64| objective_value(test.indicator, value);
    TestView {
        outcome: attribute::sign(test.outcome),
        word: match test.outcome {
            Outcome::Holds => "met".to_owned(),
            Outcome::Broken => "missed".to_owned(),
            outcome => outcome.to_string(),
        },
        slice: test.slice.clone(),
        indicator: format!("objective: {}", test.indicator),
        scenario: test.scenario.clone(),
        measured: test.value(),
        interval: match (test.interval.low, test.interval.high) {
            _ if test.mean.is_none() => format!("{} lost", percent(test.loss_ratio)),
            (Some(low), Some(high)) => format!("{} to {}", value(low), value(high)),
            _ => "unknown".to_owned(),
        },
        margin: test.compared().replacen("objective ", "", 1),
        p_value: wording::p_value(test.p_met.min(test.p_missed)),
        decides,
    }
}

fn influence_view(test: &InfluenceTest, decides: bool) -> TestView {
    let numbers = &test.numbers;
    TestView {
        outcome: attribute::sign(test.outcome),
        word: test.outcome.to_string(),
        slice: numbers.slice.clone(),
        indicator: numbers
            .indicator
            .map_or_else(String::new, |i| i.to_string()),
        scenario: numbers.scenario.clone().unwrap_or_default(),
        measured: match attribute::absolute(numbers) {
            Some(values) => format!("{values} ({})", attribute::worsening(numbers)),
            None => attribute::worsening(numbers),
        },
        interval: attribute::bounds(numbers),
        margin: format!(
            "{}; {} beyond it",
            attribute::margin(numbers),
            numbers.beyond()
        ),
        p_value: numbers.p_value.map_or_else(String::new, wording::p_value),
        decides,
    }
}

fn reallocation_tests(verdict: &PolicyVerdict) -> Vec<TestView> {
    let decided = verdict.reallocation.decided_by.as_ref();
    let slice = decided.map_or_else(String::new, |numbers| numbers.slice.clone());
    let scenarios = verdict.reallocation.scenarios.iter();
    scenarios
        .map(|scenario| TestView {
            outcome: attribute::sign(verdict.reallocation.outcome),
            word: String::new(),
            slice: slice.clone(),
            indicator: "reallocated fraction".to_owned(),
            scenario: scenario.scenario.clone(),
            measured: percent(scenario.fraction),
            interval: match (scenario.interval.low, scenario.interval.high) {
                (Some(low), Some(high)) => format!("{} to {}", percent(low), percent(high)),
                _ => "unknown".to_owned(),
            },
            margin: decided.map_or_else(String::new, attribute::margin),
            p_value: String::new(),
            decides: false,
        })
        .collect()
}

fn published_view(comparison: &PublishedComparison) -> PublishedView {
    let figure = &comparison.figure;
    let (outcome, word) = match comparison.outcome {
        PublishedOutcome::Agrees => ("holds", "agrees"),
        PublishedOutcome::Differs => ("broken", "differs"),
        PublishedOutcome::NotMeasured => ("inconclusive", "not measured"),
    };
    PublishedView {
        claim: figure.claim.clone(),
        source: figure.source.clone(),
        subject: subject(figure),
        expected: expected(figure),
        ours: ours(comparison),
        seen_in: seen_in(comparison),
        outcome,
        word,
        explanation: figure.explanation.clone(),
    }
}

/// Slices that a table of them holds.
const SLICES_LISTED: usize = 200;
