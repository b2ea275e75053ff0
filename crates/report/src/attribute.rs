//! Each verdict in the few words that a table has room for.

use slicewise_stats::description::SliceLimit;
use slicewise_stats::verdict::{
    BoundCheck, DecidedBy, Deciding, InfluenceVerdict, IsolationVerdict, Outcome, PolicyVerdict,
};
use slicewise_stats::words::{percent, time};

/// One attribute of one policy, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AttributeText {
    /// "isolation", "reallocation", "scalability".
    pub(crate) key: &'static str,
    /// Sign to draw: an outcome's name, or "limit".
    pub(crate) sign: &'static str,
    /// "holds", "256 slices".
    pub(crate) word: String,
    /// The number that decided, and what it was held against.
    pub(crate) deciding: String,
    /// The whole reason, in a line.
    pub(crate) reason: String,
    /// Published verdict, where there is one.
    pub(crate) published: Option<String>,
    /// True if ours is the same; `None` where there is nothing to compare.
    pub(crate) agrees: Option<bool>,
}

/// The three attributes of a policy, in the order of the table.
pub(crate) fn attributes(verdict: &PolicyVerdict) -> [AttributeText; 3] {
    let mut all = [
        isolation(verdict),
        reallocation(verdict),
        scalability(verdict),
    ];
    let (sign, word, why) = match &verdict.not_supported {
        Some(why) => ("unsupported", "not supported", why.as_str()),
        None if verdict.not_run => ("inconclusive", "not run", "no run of this policy is there"),
        None => {
            if let Some(others) = &verdict.not_judged {
                let [isolation, reallocation, _] = &mut all;
                for text in [isolation, reallocation] {
                    text.deciding.push_str(&format!("; not judged: {others}"));
                    text.reason.push_str(&format!("; not judged: {others}"));
                }
            }
            return all;
        }
    };
    for text in &mut all {
        text.agrees = None;
    }
    let [isolation, reallocation, _] = &mut all;
    for text in [isolation, reallocation] {
        text.sign = sign;
        text.word = word.to_owned();
        text.deciding = why.to_owned();
        text.reason = format!("{word}: {why}");
    }
    all
}

fn isolation(verdict: &PolicyVerdict) -> AttributeText {
    let isolation = &verdict.isolation;
    let deciding = if isolation.broken_bound().is_some() {
        isolation.deciding()
    } else {
        let bounds = isolation.bounds.iter().map(bound);
        std::iter::once(deciding(isolation))
            .chain(bounds)
            .chain(isolation.unbounded())
            .collect::<Vec<_>>()
            .join("; ")
    };
    AttributeText {
        key: "isolation",
        sign: sign(isolation.outcome),
        word: isolation.outcome.to_string(),
        deciding,
        reason: isolation.reason(),
        published: verdict
            .published
            .as_ref()
            .map(|p| match (p.isolation, p.remark.as_str()) {
                (true, _) => "yes".to_owned(),
                (false, "") => "no".to_owned(),
                (false, remark) => format!("no ({remark})"),
            }),
        agrees: verdict.agrees.isolation,
    }
}

/// The test that decided isolation, and influence beside it where objectives did.
fn deciding(isolation: &IsolationVerdict) -> String {
    let text = match isolation.decided_by() {
        Some(Deciding::Bound(check)) => check.describe(),
        Some(Deciding::Objective(test)) => {
            format!("{}; {}{}", test.claim(), test.measured(), test.not_shown())
        }
        Some(Deciding::Influence(numbers)) => {
            let verdict = isolation.deciding_influence.as_ref();
            let open = verdict.map_or_else(String::new, InfluenceVerdict::not_shown);
            return format!("{}{open}", influence(numbers));
        }
        None => isolation.deciding(),
    };
    if isolation.objectives.is_none() {
        return text;
    }
    let of_influence = isolation.influence.decided_by.as_ref();
    match (isolation.influence.outcome, of_influence) {
        (Outcome::Holds, _) => format!("{text}; no influence beyond the margins"),
        (Outcome::Broken, Some(numbers)) => format!("{text}; influence: {}", influence(numbers)),
        _ => text,
    }
}

/// "critical: mean delay 200 µs → 408 µs (+104 %) in s6, within +25 % in 0 of 34 runs".
pub(crate) fn influence(numbers: &DecidedBy) -> String {
    let indicator = numbers
        .indicator
        .map_or_else(String::new, |i| i.to_string());
    let change = numbers.change(numbers.statistic);
    let change = match numbers.absolute() {
        Some(values) => format!("{values} ({change})"),
        None => change,
    };
    let scenario = (numbers.scenario.as_ref()).map_or_else(String::new, |s| format!(" in {s}"));
    format!(
        "{}: {indicator} {change}{scenario}, within {}{}",
        numbers.slice,
        numbers.change(numbers.margin),
        numbers.runs.in_words(),
    )
}

fn reallocation(verdict: &PolicyVerdict) -> AttributeText {
    let reallocation = &verdict.reallocation;
    let none = match reallocation.rate_varies {
        true => "the shared rate changes",
        false => "no unused capacity",
    };
    let deciding = reallocation.decided_by.as_ref().map_or_else(
        || none.to_owned(),
        |numbers| {
            let (rates, runs) = (reallocation.rates(numbers), numbers.runs.in_words());
            let (fraction, claim) = (
                percent(numbers.statistic),
                reallocation.claimed_part(numbers),
            );
            format!("{rates}{fraction} of the unused capacity, {claim}{runs}")
        },
    );
    AttributeText {
        key: "reallocation",
        sign: sign(reallocation.outcome),
        word: reallocation.outcome.to_string(),
        deciding: with_repetitions(deciding, reallocation.repetitions_needed),
        reason: reallocation.reason(),
        published: verdict
            .published
            .as_ref()
            .map(|p| if p.reallocation { "yes" } else { "no" }.to_owned()),
        agrees: verdict.agrees.reallocation,
    }
}

fn scalability(verdict: &PolicyVerdict) -> AttributeText {
    let scalability = &verdict.scalability;
    AttributeText {
        key: "scalability",
        sign: "limit",
        word: scalability.limit.to_string(),
        // That there is no limit is a claim: the table names its source.
        deciding: match scalability.limit {
            SliceLimit::NoPracticalLimit => {
                format!("{} ({})", scalability.limited_by, scalability.source)
            }
            SliceLimit::Slices(_) | SliceLimit::NotStated => scalability.limited_by.clone(),
        },
        reason: match scalability.source.as_str() {
            "" => scalability.reason(),
            source => format!("{} (source: {source})", scalability.reason()),
        },
        published: verdict
            .published
            .as_ref()
            .map(|p| p.scalability.clone())
            .filter(|text| !text.is_empty()),
        agrees: verdict.agrees.scalability,
    }
}

/// A bound that is kept, beside the largest delay measured.
fn bound(check: &BoundCheck) -> String {
    let time = |ns: u64| time(ns as f64);
    let (part, way) = match &check.way_unbounded {
        None => ("", String::new()),
        Some(why) => (
            " at the scheduler",
            format!("; the path to the device has no bound, because {why}"),
        ),
    };
    format!(
        "delay bound of {}{part} {}, largest measured {} (scenario {}{way})",
        check.slice,
        time(check.bound.end_to_end_ns()),
        time(check.largest_ns),
        check.scenario
    )
}

fn with_repetitions(deciding: String, needed: Option<u32>) -> String {
    match needed {
        Some(needed) => format!("{deciding}; about {needed} repetitions would decide"),
        None => deciding,
    }
}

/// The name under which an outcome is drawn.
pub(crate) fn sign(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Holds => "holds",
        Outcome::Broken => "broken",
        Outcome::Partial => "partial",
        Outcome::Inconclusive | Outcome::NotTested => "inconclusive",
    }
}
