//! The verdicts as a matrix: a row for each policy, and in each cell a sign and one number.

use crate::attribute::{attributes, influence, sign};
use slicewise_stats::description::SliceLimit;
use slicewise_stats::quantity::Quantity;
use slicewise_stats::verdict::{
    DecidedBy, Deciding, InfluenceTest, IsolationVerdict, ObjectiveIndicator, ObjectiveTest,
    Outcome, PolicyVerdict, VerdictTable, objective_value,
};
use slicewise_stats::words::{percent, share};

/// Matrix of policies and the properties that were judged.
#[derive(Debug)]
pub(crate) struct Matrix {
    pub(crate) head: Vec<Head>,
    /// In the order of the verdicts.
    pub(crate) rows: Vec<Row>,
}

/// Head of a column.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// "delay at 99.9 %".
    pub(crate) name: String,
    /// Limit it is held against: "voice ≤ 5 ms".
    pub(crate) limit: String,
}

/// A policy.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) policy: String,
    pub(crate) cells: Vec<Cell>,
}

/// A property of a policy.
#[derive(Debug)]
pub(crate) struct Cell {
    /// Sign to draw; empty for none.
    pub(crate) sign: &'static str,
    /// Outcome in a word.
    pub(crate) word: String,
    /// The number, with its unit.
    pub(crate) number: String,
    /// Subject of the number, and the whole reason.
    pub(crate) reason: String,
    /// Published verdict, and whether it agrees where that can be said.
    pub(crate) published: Option<(String, Option<bool>)>,
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Property {
    Isolation,
    Reallocation,
    Objective(ObjectiveIndicator),
    Influence(Quantity),
    Bound,
    Scalability,
}

impl Matrix {
    pub(crate) fn of(verdicts: &VerdictTable) -> Self {
        let policies = &verdicts.policies;
        let properties = properties(policies);
        let head = properties.iter().map(|p| head(*p, policies));
        let row = |verdict: &PolicyVerdict| {
            let cells = properties.iter().map(|p| cell(*p, verdict));
            Row {
                policy: verdict.policy.clone(),
                cells: cells.collect(),
            }
        };
        Self {
            head: head.collect(),
            rows: policies.iter().map(row).collect(),
        }
    }
}

/// Columns that have something to show.
fn properties(policies: &[PolicyVerdict]) -> Vec<Property> {
    let mut found = vec![Property::Isolation, Property::Reallocation];
    let objectives = policies.iter().flat_map(objective_tests);
    let influence = policies.iter().flat_map(influence_tests);
    let judged = objectives
        .map(|test| Property::Objective(test.indicator))
        .chain(influence.filter_map(|test| test.numbers.indicator.map(Property::Influence)));
    for property in judged {
        if !found.contains(&property) {
            found.push(property);
        }
    }
    if policies.iter().any(|v| !v.isolation.bounds.is_empty()) {
        found.push(Property::Bound);
    }
    let states = |v: &PolicyVerdict| v.scalability.limit != SliceLimit::NotStated;
    if policies.iter().any(states) {
        found.push(Property::Scalability);
    }
    found
}

fn objective_tests(verdict: &PolicyVerdict) -> impl Iterator<Item = &ObjectiveTest> {
    let objectives = verdict.isolation.objectives.iter();
    objectives.flat_map(|o| &o.tests)
}

/// Tests of slices that influence decides about.
fn influence_tests(verdict: &PolicyVerdict) -> impl Iterator<Item = &InfluenceTest> {
    let influence = verdict.isolation.deciding_influence.iter();
    influence.flat_map(|i| &i.tests)
}

fn head(property: Property, policies: &[PolicyVerdict]) -> Head {
    let (name, limit) = match property {
        Property::Isolation => ("isolation".to_owned(), String::new()),
        Property::Reallocation => ("reallocation".to_owned(), "of unused capacity".to_owned()),
        Property::Scalability => ("slices".to_owned(), "at most".to_owned()),
        Property::Bound => ("largest delay".to_owned(), "of its proved bound".to_owned()),
        Property::Objective(indicator) => {
            let tests = policies.iter().flat_map(objective_tests);
            let tests = tests.filter(|test| test.indicator == indicator);
            let relation = indicator.relation();
            let limit = |test: &ObjectiveTest| {
                let value = objective_value(indicator, test.limit);
                (test.slice.clone(), format!("{relation} {value}"))
            };
            (indicator.to_string(), common(tests.map(limit)))
        }
        Property::Influence(quantity) => {
            let tests = policies.iter().flat_map(influence_tests);
            let tests = tests.filter(|test| test.numbers.indicator == Some(quantity));
            let falls = quantity.is_better_if_more();
            let relation = if falls { '≥' } else { '≤' };
            let limit = |test: &InfluenceTest| {
                let margin = test.numbers.change(test.numbers.margin);
                (test.numbers.slice.clone(), format!("{relation} {margin}"))
            };
            (quantity.to_string(), common(tests.map(limit)))
        }
    };
    Head { name, limit }
}

/// "voice ≤ 5 ms", as far as slices and limits have it in common.
fn common(tests: impl Iterator<Item = (String, String)>) -> String {
    let (mut slices, mut limits): (Vec<String>, Vec<String>) = tests.unzip();
    for texts in [&mut slices, &mut limits] {
        texts.sort_unstable();
        texts.dedup();
    }
    let slices = match slices.as_slice() {
        [only] => only.clone(),
        several => format!("worst of {} slices", several.len()),
    };
    match limits.as_slice() {
        [limit] => format!("{slices} {limit}"),
        _ => slices,
    }
}

fn cell(property: Property, verdict: &PolicyVerdict) -> Cell {
    let [isolation, reallocation, scalability] = attributes(verdict);
    let number = match property {
        Property::Isolation => isolation_number(&verdict.isolation),
        Property::Reallocation => {
            let numbers = verdict.reallocation.decided_by.as_ref();
            numbers.map(|numbers| percent(numbers.statistic))
        }
        Property::Scalability => Some(match verdict.scalability.limit {
            SliceLimit::Slices(slices) => slices.to_string(),
            SliceLimit::NoPracticalLimit => "no limit".to_owned(),
            SliceLimit::NotStated => "–".to_owned(),
        }),
        Property::Objective(indicator) => return objective_cell(indicator, verdict),
        Property::Influence(quantity) => return influence_cell(quantity, verdict),
        Property::Bound => return bound_cell(&verdict.isolation),
    };
    let attribute = match property {
        Property::Isolation => isolation,
        Property::Reallocation => reallocation,
        _ => scalability,
    };
    let is_judged = verdict.not_supported.is_none() && !verdict.not_run;
    let is_known = is_judged || property == Property::Scalability;
    Cell {
        sign: match property {
            Property::Scalability => "",
            _ => attribute.sign,
        },
        number: number
            .filter(|_| is_known)
            .unwrap_or_else(|| attribute.word.clone()),
        word: attribute.word,
        reason: attribute.reason,
        published: attribute.published.map(|text| (text, attribute.agrees)),
    }
}

/// The number that decided isolation: "17.5 % lost", "132.3 µs variation", "+104 % delay".
fn isolation_number(isolation: &IsolationVerdict) -> Option<String> {
    Some(match isolation.decided_by()? {
        Deciding::Bound(check) => format!("{} of bound", percent(check.part())),
        Deciding::Objective(test) if test.mean.is_none() => objective_number(test),
        Deciding::Objective(test) => {
            let subject = match test.indicator {
                ObjectiveIndicator::Throughput => "received",
                ObjectiveIndicator::LossRatio => "lost",
                ObjectiveIndicator::Delay(_) => "delay",
                ObjectiveIndicator::DelayVariation(_) => "variation",
                ObjectiveIndicator::Goodput => "goodput",
                ObjectiveIndicator::CompletionTime(_) => "completion",
                ObjectiveIndicator::RequestLatency(_) => "latency",
                ObjectiveIndicator::Availability { .. } => "available",
            };
            format!("{} {subject}", objective_number(test))
        }
        Deciding::Influence(numbers) => {
            let change = numbers.change(numbers.statistic);
            let indicator = numbers.indicator.map(short);
            format!("{change} {}", indicator.unwrap_or_default())
        }
    })
}

/// An indicator of influence in a word.
fn short(quantity: Quantity) -> String {
    match quantity {
        Quantity::LossRatio => "lost".to_owned(),
        Quantity::QueueingDelayMean | Quantity::DelayMean => "delay".to_owned(),
        Quantity::QueueingDelayP99 | Quantity::DelayP99 => "p99 delay".to_owned(),
        other => other.to_string(),
    }
}

/// Mean over runs; where that is infinite because packets are lost, how many are.
fn objective_number(test: &ObjectiveTest) -> String {
    match test.mean {
        Some(mean) => objective_value(test.indicator, mean),
        None => format!("{} lost", share(test.loss_ratio)),
    }
}

/// An objective in the scenario and slice in which it fares worst.
fn objective_cell(indicator: ObjectiveIndicator, verdict: &PolicyVerdict) -> Cell {
    let tests = objective_tests(verdict).filter(|test| test.indicator == indicator);
    let key = |test: &&ObjectiveTest| (severity(test.outcome), -test.room.unwrap_or(f64::MIN));
    let worst = tests.max_by(|a, b| {
        key(a)
            .partial_cmp(&key(b))
            .unwrap_or(a.scenario.cmp(&b.scenario))
    });
    worst.map_or_else(none, |test| Cell {
        number: objective_number(test),
        ..tested(test.outcome, test.describe())
    })
}

fn influence_cell(quantity: Quantity, verdict: &PolicyVerdict) -> Cell {
    let tests = influence_tests(verdict);
    let tests = tests.filter(|test| test.numbers.indicator == Some(quantity));
    let part = |numbers: &DecidedBy| numbers.statistic / numbers.margin.max(f64::MIN_POSITIVE);
    let key = |test: &&InfluenceTest| (severity(test.outcome), part(&test.numbers));
    let worst = tests.max_by(|a, b| {
        key(a)
            .partial_cmp(&key(b))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    worst.map_or_else(none, |test| Cell {
        number: test.numbers.change(test.numbers.statistic),
        ..tested(test.outcome, influence(&test.numbers))
    })
}

fn bound_cell(isolation: &IsolationVerdict) -> Cell {
    (isolation.worst_bound()).map_or_else(none, |check| Cell {
        number: percent(check.part()),
        ..tested(check.outcome, check.describe())
    })
}

const fn severity(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Broken => 3,
        Outcome::Inconclusive => 2,
        Outcome::Partial => 1,
        Outcome::Holds | Outcome::NotTested => 0,
    }
}

fn tested(outcome: Outcome, reason: String) -> Cell {
    Cell {
        sign: sign(outcome),
        word: outcome.to_string(),
        number: String::new(),
        reason,
        published: None,
    }
}

fn none() -> Cell {
    Cell {
        sign: "",
        word: "not tested".to_owned(),
        number: "–".to_owned(),
        reason: String::new(),
        published: None,
    }
}
