//! The sentences of the page.

use crate::attribute::attributes;
use crate::host::HostFacts;
use slicewise_stats::description::StudyDescription;
use slicewise_stats::summary::Summary;
use slicewise_stats::verdict::{Outcome, PolicyVerdict, VerdictTable};
use slicewise_stats::words::{count, percent, time};

/// What the verdicts come to.
pub(crate) fn finding(verdicts: &VerdictTable) -> String {
    let (policies, unsupported): (Vec<_>, Vec<_>) = verdicts
        .policies
        .iter()
        .partition(|policy| policy.not_supported.is_none());
    let mut text = if policies.is_empty() {
        String::new()
    } else {
        finding_of(&policies)
    };
    let names: Vec<&str> = unsupported.iter().map(|p| p.policy.as_str()).collect();
    if !names.is_empty() {
        let (separator, be) = (
            if text.is_empty() { "" } else { " " },
            if names.len() == 1 { "is" } else { "are" },
        );
        text.push_str(&format!(
            "{separator}{} {be} not supported here.",
            listed(&names)
        ));
    }
    text
}

/// What the verdicts of policies that have runs come to.
fn finding_of(policies: &[&PolicyVerdict]) -> String {
    let that = |holds: fn(&PolicyVerdict) -> bool| -> Vec<&str> {
        policies
            .iter()
            .filter(|p| holds(p))
            .map(|p| p.policy.as_str())
            .collect()
    };
    let isolating = that(|p| p.isolation.outcome == Outcome::Holds);
    let reallocating = that(|p| p.reallocation.outcome == Outcome::Holds);
    let both =
        that(|p| p.isolation.outcome == Outcome::Holds && p.reallocation.outcome == Outcome::Holds);
    let total = policies.len();
    let unjudged = |p: &PolicyVerdict| {
        p.isolation.outcome == Outcome::NotTested && p.reallocation.outcome == Outcome::NotTested
    };
    if policies.iter().copied().all(unjudged) {
        let text =
            "Nothing was judged: that needs a guaranteed slice, and a scenario to compare with.";
        return text.to_owned() + &agreement(policies);
    }
    let isolates = number_verb(isolating.len(), "isolates", "isolate");
    let untested = |p: &PolicyVerdict| p.reallocation.outcome == Outcome::NotTested;
    if policies.iter().copied().all(untested) {
        let text = format!(
            "Of {}, {isolates} the guaranteed slice; it left nothing to give to others.",
            count_policies(total)
        );
        return text + &agreement(policies);
    }
    let mut text = format!(
        "Of {}, {isolates} the guaranteed slice and {} what it leaves to others; ",
        count_policies(total),
        number_verb(reallocating.len(), "gives", "give"),
    );
    text.push_str(&match both.as_slice() {
        [] => "none does both.".to_owned(),
        names => format!(
            "{} {} both.",
            listed(names),
            if names.len() == 1 { "does" } else { "do" }
        ),
    });
    text.push_str(&agreement(policies));
    text
}

/// How our verdicts compare with the published ones.
fn agreement(policies: &[&PolicyVerdict]) -> String {
    let mut compared = 0;
    let mut differing = Vec::new();
    for policy in policies {
        for attribute in attributes(policy) {
            match attribute.agrees {
                Some(true) => compared += 1,
                Some(false) => {
                    compared += 1;
                    differing.push(format!("{} of {}", attribute.key, policy.policy));
                }
                None => {}
            }
        }
    }
    match (compared, differing.as_slice()) {
        (0, _) => String::new(),
        (_, []) => format!(" All {compared} verdicts are the published ones."),
        (_, differing) => {
            let names: Vec<&str> = differing.iter().map(String::as_str).collect();
            format!(
                " {} of {compared} verdicts are the published ones; {} {}.",
                compared - differing.len(),
                listed(&names),
                if differing.len() == 1 {
                    "differs"
                } else {
                    "differ"
                }
            )
        }
    }
}

fn count_policies(number: usize) -> String {
    if number == 1 {
        "1 policy".to_owned()
    } else {
        format!("{number} policies")
    }
}

fn number_verb(number: usize, one: &str, several: &str) -> String {
    match number {
        0 => format!("none {one}"),
        1 => format!("1 {one}"),
        n => format!("{n} {several}"),
    }
}

/// "a", "a and b", "a, b and c".
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// How to read the verdict table, a line each.
pub(crate) fn verdict_key(study: &StudyDescription) -> Vec<String> {
    let margins = &study.margins;
    let references: Vec<&str> = study
        .scenarios
        .iter()
        .filter(|s| s.reference)
        .map(|s| s.name.as_str())
        .collect();
    let reference = match references.as_slice() {
        [] => "the reference scenario".to_owned(),
        names => format!("scenario {}", listed(names)),
    };
    vec![
        format!(
            "Isolation: how much worse a guaranteed slice fares than in {reference}, where nobody \
             asks for more than was promised. The number is the worst breach, or, where none is \
             found, the closest call."
        ),
        format!(
            "Reallocation: the part of what guaranteed slices leave that best effort gets while it \
             wants it; from {} it holds, up to {} it is broken.",
            percent(margins.reallocation_holds),
            percent(margins.reallocation_broken)
        ),
        "Scalability: how many slices the mechanism can tell apart on this device.".to_owned(),
    ]
}

/// How it was measured and judged, a paragraph each.
pub(crate) fn method(study: &StudyDescription, summary: &Summary) -> Vec<String> {
    let margins = &study.margins;
    let confidence = percent(summary.confidence);
    let resolution = match margins.delay_resolution_ns {
        0 => String::new(),
        ns => format!(
            " (never less than {}, which the method cannot resolve)",
            time(ns as f64)
        ),
    };
    vec![
        "Rates count whole Ethernet frames without their check sequence. Sent rate, loss and \
         delay belong to the moment a frame was sent, received rate to the moment it arrived: \
         counted when sent, a rate is overstated while queues fill. Delay is one-way, of every \
         frame that arrived."
            .to_owned(),
        "The initial transient of each run is found by MSER-5 (White 1997) on the received rate, \
         averaged over whole load cycles, and left out of every estimate and verdict; the time \
         series show it."
            .to_owned(),
        format!(
            "A repetition is one sample, a frame is not: an estimate is the mean over repetitions \
             with Student's {confidence} interval, and tests compare repetitions. Every decision \
             is one-sided at {confidence}; where one of many tests may break a verdict, Holm's \
             correction applies. A verdict that the repetitions cannot decide is inconclusive, \
             never guessed."
        ),
        format!(
            "Isolation holds where, in every scenario with overload, throughput is shown to fall \
             by less than {}, the loss ratio to rise by less than {} points, and mean and 99th \
             percentile of delay to rise by less than {}{resolution}.",
            percent(margins.throughput_relative),
            percent(margins.loss_absolute).trim_end_matches(" %"),
            percent(margins.delay_relative),
        ),
    ]
}

/// What to type to run the study again.
pub(crate) fn command(study: &StudyDescription) -> String {
    let sudo = if study.is_live() { "sudo " } else { "" };
    let on = match study.backend.as_str() {
        backend @ ("gateway" | "tc") => format!(" --on {backend}"),
        _ => String::new(),
    };
    let quick = if study.is_quick { " --quick" } else { "" };
    format!(
        "{sudo}slicewise run {}{on}{quick} --seed {} --repetitions {}",
        quoted(&study.file_name),
        study.seed,
        study.repetitions
    )
}

/// A file name as a POSIX shell reads it.
fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', r"'\''"))
    }
}

/// A p-value, as far down as it means something.
pub(crate) fn p_value(p: f64) -> String {
    if p < 0.001 {
        "< 0.001".to_owned()
    } else {
        format!("{p:.3}")
    }
}

/// Facts about the host, those that are known.
pub(crate) fn host(facts: &HostFacts) -> Vec<(String, String)> {
    let system = format!("{} {}", facts.operating_system, facts.architecture);
    let processors = match facts.logical_processors {
        0 => String::new(),
        n => format!("{n} usable, {} at a time", count(facts.jobs.into(), "run")),
    };
    let took = match facts.elapsed_ms {
        0 => String::new(),
        ms => format!(
            "{} in {}",
            count(facts.runs_done, "run"),
            time(ms as f64 * 1e6)
        ),
    };
    [
        ("System", system.trim().to_owned()),
        ("Processor", facts.processor.clone()),
        ("Logical processors", processors),
        ("Last invocation", took),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_names_as_a_sentence_does() {
        assert_eq!(listed(&["a"]), "a");
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
    }

    #[test]
    fn quotes_what_a_shell_would_take_apart() {
        assert_eq!(quoted("router-mechanisms.yaml"), "router-mechanisms.yaml");
        assert_eq!(quoted("my study's.yaml"), r"'my study'\''s.yaml'");
    }
}
