//! The sentences of the page.

use crate::answer::listed;
use crate::attribute::attributes;
use crate::published::headline;
use slicewise_results::host::HostFacts;
use slicewise_stats::description::{ComparedDelay, Margins, SliceDescription, StudyDescription};
use slicewise_stats::published::PublishedComparison;
use slicewise_stats::shell;
use slicewise_stats::summary::Summary;
use slicewise_stats::verdict::{PolicyVerdict, VerdictTable};
use slicewise_stats::words::{count, percent, time};

/// How verdicts and figures compare with published ones, and which policies have no runs.
pub(crate) fn remarks(
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
        let names = without.iter();
        let names = names.map(|p| study.policy_of_runs(&p.policy).to_owned());
        let mut names: Vec<String> = names.collect();
        names.dedup();
        if !names.is_empty() {
            let predicate = if names.len() == 1 { is } else { are };
            sentences.push(format!("{} {predicate}.", listed(&names)));
        }
    }
    sentences.join(" ")
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

/// How to read the matrix, a line each.
pub(crate) fn verdict_key(study: &StudyDescription) -> Vec<String> {
    let margins = &study.margins;
    let references = study.scenarios.iter().filter(|s| s.reference);
    let references: Vec<&str> = references.map(|s| s.name.as_str()).collect();
    let reference = match references.as_slice() {
        [] => "the reference scenario".to_owned(),
        names => format!("scenario {}", listed(names)),
    };
    let mut lines = Vec::new();
    if study.slices.iter().any(|slice| slice.objective.is_some()) {
        lines.push(
            "Objectives: means over runs in the scenario in which the slice fares worst, of those in which it sends no more \
             than its share. A packet that is lost has an infinite delay."
                .to_owned(),
        );
    }
    let by_influence = |slice: &SliceDescription| slice.guaranteed && slice.objective.is_none();
    if study.slices.iter().any(by_influence) {
        lines.push(format!(
            "Signed numbers: the worst change of a guaranteed slice against {reference}, where no slice \
             exceeds what was promised."
        ));
    }
    lines.push(format!(
        "Reallocation: the fraction of the capacity unused by guaranteed slices that best effort gets while \
         it has demand; it holds from {} on and is broken up to {}.",
        percent(margins.reallocation_holds),
        percent(margins.reallocation_broken)
    ));
    lines
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
        shell::word(name)
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
    fn quotes_what_a_shell_would_take_apart() {
        assert_eq!(quoted("router-mechanisms.yaml"), "router-mechanisms.yaml");
        assert_eq!(quoted("my study's.yaml"), r"'my study'\''s.yaml'");
    }
}
