//! Each verdict in the few words that a table has room for.

use slicewise_stats::description::SliceLimit;
use slicewise_stats::estimate::Interval;
use slicewise_stats::verdict::{
    BoundCheck, DecidedBy, Deciding, Indicator, IsolationVerdict, ObjectiveTest, Outcome,
    PolicyVerdict, Scale,
};
use slicewise_stats::words::{change, percent, points, rate, signed, time};

/// One attribute of one policy, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AttributeText {
    /// "isolation", "reallocation", "scalability".
    pub(crate) key: &'static str,
    /// What it is drawn as: an outcome's name, or "limit".
    pub(crate) sign: &'static str,
    /// "holds", "256 slices".
    pub(crate) word: String,
    /// The number that decided, and what it was held against.
    pub(crate) deciding: String,
    /// The whole reason, in a line.
    pub(crate) reason: String,
    /// What was published, where it was.
    pub(crate) published: Option<String>,
    /// Whether that is the same; `None` where there is nothing to compare.
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
        None => return all,
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
    let needed = isolation.repetitions_needed();
    let text = match isolation.decided_by() {
        Some(Deciding::Bound(check)) => check.describe(),
        Some(Deciding::Objective(test)) => with_repetitions(objective(test), needed),
        Some(Deciding::Influence(numbers)) => {
            return with_repetitions(influence(numbers), needed);
        }
        None if isolation.outcome == Outcome::Inconclusive => isolation.deciding(),
        None => "no basis for a verdict".to_owned(),
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

/// "voice: delay at 99 % 6.2 ms in scenario storm (objective at most 5 ms, missed)".
fn objective(test: &ObjectiveTest) -> String {
    let lost = match test.mean {
        None => format!("{} lost; ", percent(test.loss_ratio)),
        Some(_) => String::new(),
    };
    format!(
        "{}: {} {} in scenario {} ({lost}{})",
        test.slice,
        test.indicator,
        test.value(),
        test.scenario,
        test.compared()
    )
}

/// "critical: mean delay 200 µs → 408 µs in scenario 6 (+104 %, margin 25 %)".
fn influence(numbers: &DecidedBy) -> String {
    let scenario = numbers
        .scenario
        .as_ref()
        .map_or_else(String::new, |s| format!(" in scenario {s}"));
    let indicator = numbers
        .indicator
        .map_or_else(String::new, |i| i.to_string());
    let (change, margin) = (worsening(numbers), margin(numbers));
    match absolute(numbers) {
        Some(values) => format!(
            "{}: {indicator} {values}{scenario} ({change}, margin {margin})",
            numbers.slice
        ),
        None => format!(
            "{}: {indicator} {change}{scenario} (margin {margin})",
            numbers.slice
        ),
    }
}

/// "200 µs → 408 µs": the indicator in the reference scenario and in this one.
pub(crate) fn absolute(numbers: &DecidedBy) -> Option<String> {
    let value = |value: f64| match numbers.indicator {
        Some(indicator) if indicator.is_rate() => rate(value),
        Some(Indicator::LossRatio | Indicator::ReceivedShare) => percent(value),
        _ => time(value),
    };
    let (reference, treatment) = (numbers.reference?, numbers.treatment?);
    numbers
        .indicator
        .map(|_| format!("{} → {}", value(reference), value(treatment)))
}

fn reallocation(verdict: &PolicyVerdict) -> AttributeText {
    let reallocation = &verdict.reallocation;
    let deciding = reallocation.decided_by.as_ref().map_or_else(
        || "no unused capacity".to_owned(),
        |numbers| {
            let margin = percent(numbers.margin);
            let needed = match reallocation.outcome {
                Outcome::Broken => format!("at most {margin} counts as none"),
                _ => format!("{margin} needed"),
            };
            let fraction = percent(numbers.statistic);
            match (numbers.treatment, numbers.reference) {
                (Some(taken), Some(available)) => format!(
                    "{} of {} unused ({fraction}, {needed})",
                    rate(taken),
                    rate(available)
                ),
                _ => format!("{fraction} of the unused capacity ({needed})"),
            }
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

/// The change that was measured, in the direction in which the indicator moves: throughput that
/// worsens falls, delay and loss rise.
pub(crate) fn worsening(numbers: &DecidedBy) -> String {
    in_words(numbers, numbers.statistic)
}

/// The bounds of that change.
pub(crate) fn bounds(numbers: &DecidedBy) -> String {
    let Interval { low, high } = numbers.interval;
    let (low, high) = if direction(numbers) < 0.0 {
        (high, low)
    } else {
        (low, high)
    };
    let text = |value: f64| in_words(numbers, value);
    match (low, high) {
        (Some(low), Some(high)) => format!("{} to {}", text(low), text(high)),
        (Some(low), None) => format!("at least {}", text(low)),
        (None, Some(high)) => format!("at most {}", text(high)),
        (None, None) => "unknown".to_owned(),
    }
}

/// A worsening, as a change of the indicator.
fn in_words(numbers: &DecidedBy, worsening: f64) -> String {
    let change_of_indicator = direction(numbers) * worsening;
    match numbers.scale {
        Scale::Fraction => percent(worsening),
        Scale::Relative => change(change_of_indicator),
        scale => signed(&quantity(scale, change_of_indicator)),
    }
}

/// What it was held against.
pub(crate) fn margin(numbers: &DecidedBy) -> String {
    quantity(numbers.scale, numbers.margin)
}

fn direction(numbers: &DecidedBy) -> f64 {
    if numbers.indicator.is_some_and(Indicator::falls) {
        -1.0
    } else {
        1.0
    }
}

fn quantity(scale: Scale, value: f64) -> String {
    match scale {
        Scale::Relative | Scale::Fraction => percent(value),
        Scale::RatioDifference => points(value),
        Scale::Nanoseconds => time(value),
    }
}
