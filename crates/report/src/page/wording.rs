//! The sentences of the page.

use crate::attribute::attributes;
use crate::published::headline;
use slicewise_results::host::HostFacts;
use slicewise_stats::description::{ComparedDelay, Margins, SliceDescription, StudyDescription};
use slicewise_stats::published::PublishedComparison;
use slicewise_stats::summary::Summary;
use slicewise_stats::verdict::{Outcome, PolicyVerdict, VerdictTable};
use slicewise_stats::words::{count, percent, time};

/// Summarises the verdicts, and how they and the figures compare with published ones.
pub(crate) fn finding(
    study: &StudyDescription,
    verdicts: &VerdictTable,
    figures: &[PublishedComparison],
) -> String {
    let all = &verdicts.policies;
    let (unsupported, others): (Vec<_>, Vec<_>) = all
        .iter()
        .partition(|policy| policy.not_supported.is_some());
    let (absent, policies): (Vec<_>, Vec<_>) = others.into_iter().partition(|p| p.not_run);
    let mut sentences = Vec::new();
    if !policies.is_empty() {
        sentences.push(finding_of(study, &policies));
        sentences.extend(agreement(&policies));
        sentences.extend(headline(figures).map(|text| format!("{text}.")));
    }
    for (without, [is, are]) in [
        (
            unsupported,
            ["is not supported here", "are not supported here"],
        ),
        (absent, ["was not run", "were not run"]),
    ] {
        let mut names: Vec<&str> = without
            .iter()
            .map(|p| study.policy_of_runs(&p.policy))
            .collect();
        names.dedup();
        if !names.is_empty() {
            let predicate = if names.len() == 1 { is } else { are };
            sentences.push(format!("{} {predicate}.", listed(&names)));
        }
    }
    sentences.join(" ")
}

/// Summarises the verdicts of policies that have runs: each outcome is counted, as only "broken" says that something
/// does not hold.
fn finding_of(study: &StudyDescription, policies: &[&PolicyVerdict]) -> String {
    let mut names: Vec<&str> = policies
        .iter()
        .map(|verdict| study.policy_of_runs(&verdict.policy))
        .collect();
    names.dedup();
    let outcomes = |of: fn(&PolicyVerdict) -> Outcome| -> Vec<Outcome> {
        let phases_of = |name: &&str| {
            let phases = policies.iter();
            let phases = phases.filter(|verdict| study.policy_of_runs(&verdict.policy) == *name);
            in_all_phases(&phases.map(|verdict| of(verdict)).collect::<Vec<_>>())
        };
        names.iter().map(phases_of).collect()
    };
    let isolation = outcomes(|policy| policy.isolation.outcome);
    let reallocation = outcomes(|policy| policy.reallocation.outcome);
    let mut all = isolation.iter().chain(&reallocation);
    if all.all(|outcome| *outcome == Outcome::NotTested) {
        return "Nothing was judged: a verdict requires a slice with an objective, or a guaranteed slice and a \
                scenario to compare with."
            .to_owned();
    }
    let subject = match judged_slices(study).as_str() {
        "" => "Isolation".to_owned(),
        slices => format!("Isolation of {slices}"),
    };
    let has_phases = !study.phases.is_empty();
    let mut sentences = vec![
        counted(&subject, &isolation, has_phases),
        counted("Reallocation of unused capacity", &reallocation, has_phases),
    ];
    sentences.extend(both(&names, &isolation, &reallocation));
    sentences.join(" ")
}

/// Combines the verdicts of a policy in each phase. It holds where it does in every phase.
fn in_all_phases(phases: &[Outcome]) -> Outcome {
    use Outcome::{Broken, Inconclusive, NotTested, Partial};
    let mut from_worst = [Broken, Partial, Inconclusive, NotTested].into_iter();
    let worst = from_worst.find(|outcome| phases.contains(outcome));
    worst.unwrap_or(Outcome::Holds)
}

/// "Isolation of gold holds under 1 of 3 policies and is inconclusive under 2."
fn counted(subject: &str, outcomes: &[Outcome], has_phases: bool) -> String {
    let (every, one) = match has_phases {
        true => (" in every phase", " in a phase"),
        false => ("", ""),
    };
    let words = [
        (Outcome::Holds, "holds", every),
        (Outcome::Partial, "is partial", one),
        (Outcome::Broken, "is broken", one),
        (Outcome::Inconclusive, "is inconclusive", one),
        (Outcome::NotTested, "is untested", one),
    ];
    let total = outcomes.len();
    let mut parts: Vec<String> = Vec::new();
    for (outcome, word, phases) in words {
        let policies = match outcomes.iter().filter(|o| **o == outcome).count() {
            0 => continue,
            1 if total == 1 => "the one policy".to_owned(),
            2 if total == 2 => "both policies".to_owned(),
            n if n == total => format!("all {n} policies"),
            n if parts.is_empty() => format!("{n} of {total} policies"),
            n => n.to_string(),
        };
        parts.push(format!("{word}{phases} under {policies}"));
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    format!("{subject} {}.", listed(&parts))
}

/// The policies under which both hold; `None` where that is none so far, and there may be one.
fn both(names: &[&str], isolation: &[Outcome], reallocation: &[Outcome]) -> Option<String> {
    let pairs = || isolation.iter().zip(reallocation);
    let holding = names.iter().zip(pairs());
    let holding = holding.filter(|(_, pair)| *pair == (&Outcome::Holds, &Outcome::Holds));
    // One may be called "no policy".
    let holding: Vec<String> = holding.map(|(name, _)| format!("“{name}”")).collect();
    let holding: Vec<&str> = holding.iter().map(String::as_str).collect();
    let fails = |outcome: &Outcome| matches!(outcome, Outcome::Broken | Outcome::Partial);
    match holding.as_slice() {
        _ if names.len() == 1 => None,
        [] if pairs().all(|(a, b)| fails(a) || fails(b)) => {
            Some("Both hold under none.".to_owned())
        }
        [] => None,
        holding => Some(format!("Both hold under {}.", listed(holding))),
    }
}

/// The slices whose isolation is judged, by name as far as that stays short.
fn judged_slices(study: &StudyDescription) -> String {
    let slices = study.slices.iter();
    let names: Vec<&str> = slices
        .filter(|slice| slice.guaranteed || slice.objective.is_some())
        .map(|slice| slice.name.as_str())
        .collect();
    if names.len() > MOST_NAMES {
        return format!("all {} slices that are judged", names.len());
    }
    listed(&names)
}

/// How our verdicts compare with the published ones; `None` where none was published.
fn agreement(policies: &[&PolicyVerdict]) -> Option<String> {
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
    if compared == 0 {
        return None;
    }
    let names: Vec<&str> = differing.iter().map(String::as_str).collect();
    Some(match names.as_slice() {
        [] => format!("All {compared} comparable verdicts match the publication."),
        names => format!(
            "{} of {compared} comparable verdicts match the publication ({} {}).",
            compared - names.len(),
            listed(names),
            if names.len() == 1 {
                "differs"
            } else {
                "differ"
            }
        ),
    })
}

/// More slices than these are counted, not named.
const MOST_NAMES: usize = 3;

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
    let mut isolation = Vec::new();
    if study.slices.iter().any(|slice| slice.objective.is_some()) {
        isolation.push(
            "Isolation of a slice with objectives: whether it meets them in every scenario in which it sends no \
             more than its share. The number is the worst miss or, if all are met, the objective whose worst run is nearest to \
             its limit."
                .to_owned(),
        );
    }
    let by_influence = |slice: &SliceDescription| slice.guaranteed && slice.objective.is_none();
    if study.slices.iter().any(by_influence) {
        isolation.push(format!(
            "Isolation: how much worse a guaranteed slice fares than in {reference}, where no slice \
             exceeds what was promised. The number is the worst breach or, if there is none, the change closest to its margin."
        ));
    }
    isolation.extend([
        format!(
            "Reallocation: the fraction of the capacity unused by guaranteed slices that best effort gets while \
             it has demand; it holds from {} on and is broken up to {}.",
            percent(margins.reallocation_holds),
            percent(margins.reallocation_broken)
        ),
        "Scalability: how many slices the mechanism can distinguish on this device.".to_owned(),
    ]);
    isolation
}

/// How it was measured and judged, a paragraph each.
pub(crate) fn method(study: &StudyDescription, summary: &Summary) -> Vec<String> {
    let margins = &study.margins;
    let confidence = percent(summary.confidence);
    let resolution = match margins.delay_resolution_ns {
        0 => String::new(),
        ns => format!(
            " (never less than {}: the transmission time of the largest frame, or the resolution of the method)",
            time(ns as f64)
        ),
    };
    let compared = match margins.delay_of {
        ComparedDelay::Queueing => {
            "queueing delay (one-way delay minus the smallest of the slice under the policy)"
        }
        ComparedDelay::OneWay => "one-way delay",
    };
    vec![
        "Rates count whole Ethernet frames without their check sequence. Sent rate, loss and \
         delay are counted at the send time of a frame, received rate at its arrival: by send time, a rate would be overstated while queues fill. Delay is one-way, of every \
         frame that arrived."
            .to_owned(),
        "The initial transient of each run is found by MSER-5 (White 1997) on the received rate, \
         averaged over whole load cycles, and left out of every estimate and verdict; the time \
         series show it. A phase of a timeline is measured from the end of its settling time instead."
            .to_owned(),
        format!(
            "A run is one sample, a frame is not: an estimate is the mean over runs with Student's \
             {confidence} interval. In each run a limit is kept or exceeded. “Holds” says that it is kept in at \
             least {} of all runs, “broken” that it is kept in fewer than {}, each at {confidence} by an e-value, which \
             may be looked at after every run; where one of many tests may break a verdict, each needs as many \
             times the evidence. A verdict that the runs cannot decide is inconclusive, never guessed.",
            percent(1.0 - margins.rare_runs),
            percent(1.0 - margins.rare_runs.min(Margins::default().rare_runs))
        ),
        format!(
            "Without objectives isolation holds where, in every scenario with overload, throughput falls \
             by at most {}, the loss ratio rises by at most {} points, and mean and 99th \
             percentile of {compared} rise by at most {}{resolution}.",
            percent(margins.throughput_relative),
            percent(margins.loss_absolute).trim_end_matches(" %"),
            percent(margins.delay_relative),
        ),
    ]
}

/// Returns the command that runs the study again.
pub(crate) fn command(study: &StudyDescription) -> String {
    let (sudo, on) = if study.is_on_testbed() {
        ("sudo ", format!(" --on {}", study.backend))
    } else {
        ("", String::new())
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
    fn counts_each_outcome_and_takes_none_for_another() {
        use Outcome::{Broken, Holds, Inconclusive, NotTested, Partial};
        let of = |outcomes: &[Outcome]| counted("It", outcomes, false);
        assert_eq!(of(&[Broken]), "It is broken under the one policy.");
        assert_eq!(of(&[NotTested; 2]), "It is untested under both policies.");
        assert_eq!(of(&[Holds; 3]), "It holds under all 3 policies.");
        assert_eq!(
            of(&[Inconclusive, Broken, Holds, Partial, NotTested, Holds]),
            "It holds under 2 of 6 policies, is partial under 1, is broken under 1, is inconclusive under 1 and is \
             untested under 1."
        );
    }

    #[test]
    fn what_is_not_broken_in_a_phase_holds_where_it_does_in_every_phase() {
        use Outcome::{Broken, Holds, Inconclusive, NotTested};
        let policies = [
            in_all_phases(&[Holds, Holds]),
            in_all_phases(&[Holds, Broken, Inconclusive]),
            in_all_phases(&[Inconclusive, Holds]),
            in_all_phases(&[Holds, NotTested]),
        ];
        assert_eq!(
            counted("It", &policies, true),
            "It holds in every phase under 1 of 4 policies, is broken in a phase under 1, is inconclusive in a phase \
             under 1 and is untested in a phase under 1."
        );
    }

    #[test]
    fn both_hold_under_none_only_where_one_fails_under_each() {
        use Outcome::{Broken, Holds, Inconclusive, Partial};
        let names = ["no policy", "other"];
        let of = |isolation: [Outcome; 2], reallocation: [Outcome; 2]| {
            both(&names, &isolation, &reallocation).unwrap_or_default()
        };
        assert_eq!(
            of([Holds, Broken], [Holds, Holds]),
            "Both hold under “no policy”."
        );
        assert_eq!(
            of([Holds, Broken], [Partial, Holds]),
            "Both hold under none."
        );
        assert_eq!(of([Holds, Broken], [Inconclusive, Holds]), "");
    }

    #[test]
    fn quotes_what_a_shell_would_take_apart() {
        assert_eq!(quoted("router-mechanisms.yaml"), "router-mechanisms.yaml");
        assert_eq!(quoted("my study's.yaml"), r"'my study'\''s.yaml'");
    }
}
