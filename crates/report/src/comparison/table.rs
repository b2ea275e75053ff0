//! A comparison as plain text for a terminal.

use super::{ComparedFolder, FolderComparison, places};
use crate::published::outcome_word;
use crate::terminal::{Colours, Column, Listing, marked_as, wrapped};
use slicewise_stats::backend;
use slicewise_stats::verdict::comparison::{Change, ComparedFigure, ResultsComparison};
use slicewise_stats::verdict::quantity;
use slicewise_stats::words::count;

/// "B against A: 3 of 84 figures worse, 1 better, 70 the same within the margins, 10 inconclusive".
#[must_use]
pub fn headline(results: &ResultsComparison) -> String {
    let of = |outcome| results.count(outcome);
    let figures = count(results.figures.len() as u64, "figure");
    let mut parts = vec![
        format!("{} of {figures} worse", of(Change::Worse)),
        format!("{} better", of(Change::Better)),
        format!("{} the same within the margins", of(Change::Same)),
    ];
    if of(Change::NotWorse) > 0 {
        parts.push(format!("{} not worse", of(Change::NotWorse)));
    }
    parts.push(format!("{} inconclusive", of(Change::Inconclusive)));
    format!("B against A: {}", parts.join(", "))
}

/// The whole comparison: the headline, what A and B are, then a row per figure that is not the same (of `all`, of
/// every figure), and what else changed.
///
/// No line is wider than `width`.
#[must_use]
pub fn table(comparison: &FolderComparison, all: bool, width: u16, colours: Colours) -> String {
    let results = &comparison.results;
    let mut lines = vec![headline(results)];
    lines.extend(undecided(results));
    lines.push(format!("A: {}", folder(&comparison.a)));
    lines.push(format!("B: {}", folder(&comparison.b)));
    lines.extend(how_compared(results));
    lines.extend(figures(results, all, width, colours));
    lines.extend(results.verdicts.iter().map(|verdict| {
        format!(
            "{}: {} {} → {}",
            verdict.policy, verdict.attribute, verdict.a, verdict.b
        )
    }));
    lines.extend(results.published.iter().map(|figure| {
        let (a, b) = (outcome_word(figure.a), outcome_word(figure.b));
        format!("Published figure: {}: {a} → {b}", figure.claim)
    }));
    lines.extend(
        (results.not_compared.iter())
            .map(|missing| format!("Not compared: {}: {}", missing.place, missing.why)),
    );
    for (side, only) in [("A", &results.only_in_a), ("B", &results.only_in_b)] {
        if !only.is_empty() {
            lines.push(format!("Only in {side}: {}", places(only)));
        }
    }
    // Rows of the table fit already.
    let lines = lines.iter().map(|line| match line.contains('\n') {
        true => line.clone(),
        false => wrapped(line, width.into()),
    });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// Why figures are undecided, and what would decide them.
fn undecided(results: &ResultsComparison) -> Option<String> {
    let undecided: Vec<&ComparedFigure> = (results.figures.iter())
        .filter(|figure| figure.outcome == Change::Inconclusive)
        .collect();
    let equal = undecided.iter().filter(|figure| figure.equal).count();
    let needed = undecided.iter().filter_map(|f| f.repetitions_needed).max();
    let mut parts = Vec::new();
    if equal > 0 {
        parts.push(format!("{equal} are equal in every repetition"));
    }
    parts.extend(needed.map(|needed| {
        format!("about {needed} repetitions in each folder would decide all of them")
    }));
    (!parts.is_empty()).then(|| format!("Inconclusive figures: {}", parts.join("; ")))
}

/// "results/old: study small, simulator, seed 7, version 0.1.0, 12 runs".
fn folder(folder: &ComparedFolder) -> String {
    let digest: String = folder.study_digest.chars().take(8).collect();
    format!(
        "{}: study {} ({digest}), {}, version {}, seed {}, {} of {}",
        folder.results.display(),
        folder.study,
        backend::name(&folder.backend),
        folder.program_version,
        folder.seed,
        folder.finished_runs,
        count(folder.expected_runs, "run"),
    )
}

fn how_compared(results: &ResultsComparison) -> Option<String> {
    let paired = results.figures.iter().filter(|f| f.paired).count();
    let text = match paired {
        _ if results.figures.is_empty() => return None,
        0 => "Repetitions are compared in the order of their numbers: they have nothing in common.",
        paired if paired == results.figures.len() => {
            "Repetitions are compared in pairs: those of A and B have the same seeds."
        }
        _ => "Repetitions are compared in pairs where those of A and B have the same seeds.",
    };
    Some(text.to_owned())
}

fn figures(results: &ResultsComparison, all: bool, width: u16, colours: Colours) -> Option<String> {
    let mut shown: Vec<&ComparedFigure> = (results.figures.iter())
        .filter(|figure| all || figure.outcome != Change::Same)
        .collect();
    if shown.is_empty() {
        return None;
    }
    // What got worse comes first; figures of one outcome stay in the order of the study.
    shown.sort_by_key(|figure| rank(figure.outcome));
    let mut table = Listing::new([
        Column::Text("Result"),
        Column::Name("Policy"),
        Column::Name("Scenario"),
        Column::Name("Slice"),
        Column::Text("Quantity"),
        Column::Number("Change"),
        Column::Number("A → B"),
        Column::Text("Runs"),
        Column::Number("Margin"),
    ]);
    for figure in shown {
        table.add(row(figure));
    }
    let table = table.fitted(width, "see --json", colours);
    Some(table.trim_end().to_owned())
}

fn row(figure: &ComparedFigure) -> [String; 9] {
    let numbers = &figure.numbers;
    let runs = count(numbers.runs.runs.into(), "run");
    let (change, runs) = match figure.outcome {
        _ if figure.equal => ("equal".to_owned(), String::new()),
        outcome => {
            let (direction, beyond) = match outcome {
                Change::Better => ("better", figure.better.beyond),
                _ => ("worse", numbers.runs.beyond),
            };
            let change = numbers.change(numbers.statistic);
            (change, format!("{beyond} of {runs} {direction}"))
        }
    };
    let indicator = numbers.indicator.map(|of| of.to_string());
    [
        marked_as(sign(figure.outcome), &figure.outcome.to_string()),
        figure.policy.clone(),
        numbers.scenario.clone().unwrap_or_default(),
        numbers.slice.clone(),
        indicator.unwrap_or_default(),
        change,
        numbers.absolute().unwrap_or_default(),
        runs,
        quantity(numbers.scale, numbers.margin),
    ]
}

const fn rank(outcome: Change) -> u8 {
    match outcome {
        Change::Worse => 0,
        Change::Inconclusive => 1,
        Change::Better => 2,
        Change::NotWorse => 3,
        Change::Same => 4,
    }
}

/// The verdict whose colour an outcome has.
const fn sign(outcome: Change) -> &'static str {
    match outcome {
        Change::Worse => "broken",
        Change::Better => "holds",
        Change::Inconclusive => "inconclusive",
        Change::NotWorse | Change::Same => "",
    }
}
