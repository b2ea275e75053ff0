//! The page's sections on other back ends: verdicts and figures side by side, predictions, and how runs
//! on real packets went.

use super::build::{attribute_view, estimate, slice_figures};
use super::document::{
    BesideFigures, BesideVerdictView, BesideView, PredictedFigureView, PredictionRow,
    PredictionView, SideView, TableView, TestbedView,
};
use crate::attribute::attributes;
use crate::findings::Findings;
use crate::populations::grouped;
use crate::prediction;
use crate::side::{Side, main_first, scalability};
use crate::testbed::{Testbed, TestbedSummary, part_of, run_name, utc};
use slicewise_stats::prediction::{PredictedFigure, PredictionOutcome, Quantity};
use slicewise_stats::verdict::PolicyVerdict;
use slicewise_stats::words::{percent, time};

/// `None` where there is no folder beside.
pub(crate) fn view(findings: &Findings<'_>) -> Option<BesideView> {
    let sides = &findings.sides;
    if sides.len() < 2 {
        return None;
    }
    let policies = names(sides, |side| {
        side.study
            .policies
            .iter()
            .map(|p| p.name.as_str())
            .collect()
    });
    let scenarios = names(sides, |side| side.covered_scenarios().collect());
    let shared = scenarios.iter().rposition(|scenario| {
        let covers = |side: &Side| side.covered_scenarios().any(|name| name == *scenario);
        sides.iter().filter(|side| covers(side)).count() > 1
    });
    Some(BesideView {
        sides: sides
            .iter()
            .map(|side| SideView {
                name: side.name.clone(),
                basis: basis(side, sides),
                left_out: left_out(side),
            })
            .collect(),
        verdicts: policies.iter().map(|p| verdicts(p, sides)).collect(),
        first_scenario: shared.unwrap_or_default(),
        figures: sides
            .iter()
            .map(|side| figures(side, findings, (&policies, &scenarios)))
            .collect(),
        scenarios: scenarios.iter().map(|&name| name.to_owned()).collect(),
    })
}

/// Names of all sides, each once, in the order in which they are met: this report's own side first.
fn names<'a>(sides: &'a [Side], of: impl Fn(&'a Side) -> Vec<&'a str>) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for name in main_first(sides).flat_map(of) {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

fn basis(side: &Side, sides: &[Side]) -> String {
    let mut basis = side.basis();
    let main = sides.iter().find(|side| side.is_main);
    if main.is_some_and(|main| main.study.text_digest != side.study.text_digest) {
        basis.push_str("; of another version of the study");
    }
    basis
}

/// Records of a folder beside that are no part of its verdicts; the page names those of this folder above.
fn left_out(side: &Side) -> Vec<String> {
    if side.is_main {
        Vec::new()
    } else {
        side.damaged_runs.clone()
    }
}

fn verdicts(policy: &str, sides: &[Side]) -> BesideVerdictView {
    let found: Vec<Option<&PolicyVerdict>> =
        sides.iter().map(|side| side.verdict(policy)).collect();
    let of_first = main_first(sides)
        .find_map(|side| side.verdict(policy))
        .map(attributes);
    BesideVerdictView {
        policy: policy.to_owned(),
        published: of_first
            .iter()
            .flatten()
            .filter_map(|a| Some(format!("{}: {}", a.key, a.published.as_ref()?)))
            .collect(),
        sides: found
            .iter()
            .map(|verdict| {
                let [isolation, reallocation, _] = attributes((*verdict)?);
                Some([isolation, reallocation].map(|text| attribute_view(text, Vec::new())))
            })
            .collect(),
        unsupported: found
            .iter()
            .map(|verdict| verdict.is_some_and(|v| v.not_supported.is_some()))
            .collect(),
        scalability: scalability(policy, sides).map(|text| attribute_view(text, Vec::new())),
    }
}

fn figures(
    side: &Side,
    findings: &Findings<'_>,
    (policies, scenarios): (&[&str], &[&str]),
) -> Vec<Vec<Option<BesideFigures>>> {
    let cell = |policy: &str, scenario: &str| {
        let mut cells = side.summary.cells.iter();
        let cell = cells.find(|c| c.policy == policy && c.scenario == scenario)?;
        let slices = findings.study.slices.iter().map(|slice| {
            let mut found = cell.slices.iter();
            Some(slice_figures(found.find(|s| s.slice == slice.name)?))
        });
        Some(BesideFigures {
            repetitions: cell.repetitions,
            slices: slices.collect(),
        })
    };
    policies
        .iter()
        .map(|policy| scenarios.iter().map(|s| cell(policy, s)).collect())
        .collect()
}

/// `None` where nothing was predicted.
pub(crate) fn prediction_view(findings: &Findings<'_>) -> Option<PredictionView> {
    let sides = || findings.sides.iter().filter(|s| !s.prediction.is_empty());
    let finding: Vec<String> = sides()
        .flat_map(prediction::findings)
        .map(|text| text + ".")
        .collect();
    if finding.is_empty() {
        return None;
    }
    Some(PredictionView {
        finding,
        note: format!(
            "Each cell was also simulated, with the same policies, scenarios, repetitions and duration. \
             Throughput and loss are predicted where the interval of the difference contains 0, or where \
             the difference is below what the study's margins call irrelevant; the median delay where it \
             is off by {} at most. Packets as studied were simulated beforehand; for packets as sent, each run was \
             simulated again with the packets that were sent in it, at their times. A difference found only in the first is due to the traffic, such as the phases of real senders, not to the device.",
            prediction::delay_within()
        ),
        rows: sides().flat_map(prediction_rows).collect(),
    })
}

fn prediction_rows(side: &Side) -> Vec<PredictionRow> {
    let of_one_slice = |a: &PredictedFigure, b: &PredictedFigure| {
        (&a.policy, &a.scenario, &a.slice, a.traffic)
            == (&b.policy, &b.scenario, &b.slice, b.traffic)
    };
    let cells = side.prediction.chunk_by(of_one_slice);
    cells
        .filter_map(|figures| {
            let first = figures.first()?;
            let of = |quantity| {
                let mut figures = figures.iter();
                figures.find(|f| f.quantity == quantity).map(predicted)
            };
            Some(PredictionRow {
                names: [
                    side.name.clone(),
                    first.policy.clone(),
                    first.scenario.clone(),
                    first.slice.clone(),
                    first.traffic.to_string(),
                ],
                figures: Quantity::ALL.map(of),
            })
        })
        .collect()
}

fn predicted(figure: &PredictedFigure) -> PredictedFigureView {
    PredictedFigureView {
        outcome: match figure.outcome {
            PredictionOutcome::WithinInterval | PredictionOutcome::WithinTolerance => "holds",
            PredictionOutcome::Missed => "broken",
            PredictionOutcome::NotDecided => "inconclusive",
        },
        measured: estimate(figure.measured.as_ref()),
        predicted: estimate(figure.predicted.as_ref()),
        difference: figure
            .difference
            .map(|mean| (mean, figure.interval.low, figure.interval.high)),
        decided_by: prediction::decided_by(figure),
    }
}

/// Each side whose runs were on real packets.
pub(crate) fn testbed_views(findings: &Findings<'_>) -> Vec<TestbedView> {
    let live = findings.sides.iter().filter(|s| !s.testbed.is_empty());
    live.map(|side| TestbedView {
        name: side.name.clone(),
        table: testbed_table(side),
        rejected: side.testbed.rejected(),
        tolerated: side.testbed.tolerated(),
        versions: side.testbed.versions(),
        order: order(&side.testbed),
    })
    .collect()
}

fn testbed_table(side: &Side) -> TableView {
    let head = [
        "Policy",
        "Runs",
        "Idle delay: median",
        "99 %, worst",
        "largest",
        "Steal: mean",
        "largest",
        "Processors idle: mean",
        "smallest",
        "Sender late: 99 %, worst",
        "largest",
        "Late departures",
        "Rejected attempts",
        "Missed by captures",
    ];
    let policies = side.study.policies.iter().map(|p| p.name.as_str());
    let mut rows: Vec<Vec<String>> = policies
        .map(|policy| (policy, side.testbed.summary(Some(policy))))
        .filter(|(_, summary)| summary.runs > 0)
        .map(|(policy, summary)| testbed_row(policy, &summary))
        .collect();
    rows.push(testbed_row("all", &side.testbed.summary(None)));
    TableView::new(&head, 1, rows)
}

#[expect(clippy::cast_precision_loss, reason = "times that are shown")]
fn testbed_row(name: &str, summary: &TestbedSummary) -> Vec<String> {
    let text = |ns: Option<u64>| ns.map_or_else(none, |ns| time(ns as f64));
    let [p50, p99, max] = summary
        .baseline_ns
        .map_or([None; 3], |times| times.map(Some))
        .map(text);
    let [late_p99, late_max] = summary
        .lateness_ns
        .map_or([None; 2], |times| times.map(Some))
        .map(text);
    let departures = summary.departures.map_or_else(none, |[late, all]| {
        let share = late as f64 / all.max(1) as f64;
        format!("{} ({})", percent(share), part_of([late, all]))
    });
    let [steal, most_steal] = summary.steal_ratio.map(percent);
    let [idle, least_idle] = summary.idle_ratio.map(percent);
    vec![
        name.to_owned(),
        grouped(summary.runs),
        p50,
        p99,
        max,
        steal,
        most_steal,
        idle,
        least_idle,
        late_p99,
        late_max,
        departures,
        grouped(summary.rejected),
        summary.capture_drops.map_or_else(none, grouped),
    ]
}

fn order(testbed: &Testbed) -> Vec<String> {
    let runs = testbed.in_order().into_iter().map(|run| {
        let when = utc(run.live.began_ns);
        format!("{} ({when})", run_name(&run.run))
    });
    runs.collect()
}

fn none() -> String {
    "–".to_owned()
}
