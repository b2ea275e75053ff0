//! The sentence that answers a study's question, on the page and in the terminal.

use crate::matrix::Matrix;
use slicewise_stats::description::{SliceDescription, StudyDescription};
use slicewise_stats::verdict::{Outcome, VerdictTable};

/// More slices than these are counted, not named.
const MOST_NAMES: usize = 3;

/// Answers the study's question in one sentence: which policies isolate, which do not and by how much, and which are
/// undecided.
pub(crate) fn answer(study: &StudyDescription, verdicts: &VerdictTable, matrix: &Matrix) -> String {
    let subject = subject(study);
    let of = |wanted: Outcome| -> Vec<Judged> {
        let all = judged(study, verdicts, matrix).into_iter();
        all.filter(|policy| policy.isolation == wanted).collect()
    };
    let (holding, broken) = (of(Outcome::Holds), of(Outcome::Broken));
    let mut clauses = Vec::new();
    for (outcome, and) in REALLOCATION {
        let those: Vec<&Judged> = holding
            .iter()
            .filter(|p| p.reallocation == outcome)
            .collect();
        if !those.is_empty() {
            let (verb, clause) = (subject.verb(those.len()), listed(&quoted_names(&those)));
            clauses.push(format!(
                "{clause} {verb}{}",
                and[usize::from(those.len() > 1)]
            ));
        }
    }
    if !broken.is_empty() {
        let names = broken.iter().map(|p| match p.number.as_str() {
            "" => format!("“{}”", p.name),
            number => format!("“{}” ({number})", p.name),
        });
        let names = listed(&names.collect::<Vec<_>>());
        let does = if broken.len() == 1 { "does" } else { "do" };
        clauses.push(match holding.is_empty() {
            true => format!("{names} {does} not {}", subject.verb(2)),
            false => format!("{names} {does} not"),
        });
    }
    for (outcome, [one, several]) in [
        (Outcome::Inconclusive, ["is undecided", "are undecided"]),
        (Outcome::NotTested, ["was not tested", "were not tested"]),
    ] {
        let open = of(outcome);
        let names = listed(&quoted_names(&open.iter().collect::<Vec<_>>()));
        let verb = subject.verb(open.len());
        match open.len() {
            0 => {}
            _ if clauses.is_empty() => clauses.push(format!("Whether {names} {verb} {one}")),
            1 => clauses.push(format!("{names} {one}")),
            _ => clauses.push(format!("{names} {several}")),
        }
    }
    if !verdicts.is_judged() {
        return nothing_judged(study).to_owned();
    }
    format!("{}.", clauses.join("; "))
}

/// Why nothing was judged.
pub(crate) fn nothing_judged(study: &StudyDescription) -> &'static str {
    let is_promised = |slice: &SliceDescription| slice.guaranteed || slice.objective.is_some();
    match study.slices.iter().any(is_promised) {
        true => {
            "Nothing was judged: a verdict requires a slice with an objective, or a guaranteed slice and a scenario to \
             compare with."
        }
        false => "No slice has a guarantee or an objective, so nothing is judged.",
    }
}

/// Words about a policy that isolates, of one and of several, by the outcome of reallocation.
const REALLOCATION: [(Outcome, [&str; 2]); 5] = [
    (
        Outcome::Holds,
        [
            " and passes unused capacity on",
            " and pass unused capacity on",
        ],
    ),
    (
        Outcome::Partial,
        [
            " and passes a part of the unused capacity on",
            " and pass a part of the unused capacity on",
        ],
    ),
    (
        Outcome::Broken,
        [
            " but leaves unused capacity idle",
            " but leave unused capacity idle",
        ],
    ),
    (
        Outcome::Inconclusive,
        [
            " (reallocation is undecided)",
            " (reallocation is undecided)",
        ],
    ),
    (Outcome::NotTested, ["", ""]),
];

/// A policy over all of its phases.
struct Judged<'a> {
    name: &'a str,
    isolation: Outcome,
    reallocation: Outcome,
    /// The number that broke isolation.
    number: String,
}

/// Policies that have runs.
fn judged<'a>(
    study: &'a StudyDescription,
    verdicts: &'a VerdictTable,
    matrix: &Matrix,
) -> Vec<Judged<'a>> {
    let mut found: Vec<(Judged, Vec<[Outcome; 2]>)> = Vec::new();
    for (verdict, row) in verdicts.policies.iter().zip(&matrix.rows) {
        if verdict.not_run || verdict.not_supported.is_some() {
            continue;
        }
        let name = study.policy_of_runs(&verdict.policy);
        if found.last().is_none_or(|(last, _)| last.name != name) {
            let new = Judged {
                name,
                isolation: Outcome::NotTested,
                reallocation: Outcome::NotTested,
                number: String::new(),
            };
            found.push((new, Vec::new()));
        }
        let Some((policy, phases)) = found.last_mut() else {
            continue;
        };
        let isolation = verdict.isolation.outcome;
        if isolation == Outcome::Broken && policy.number.is_empty() {
            let cell = row.cells.first();
            policy.number = cell.map_or_else(String::new, |cell| cell.number.clone());
        }
        phases.push([isolation, verdict.reallocation.outcome]);
    }
    let over = |phases: &[[Outcome; 2]], place: usize| {
        in_all_phases(&phases.iter().map(|both| both[place]).collect::<Vec<_>>())
    };
    let policies = found.into_iter().map(|(policy, phases)| Judged {
        isolation: over(&phases, 0),
        reallocation: over(&phases, 1),
        ..policy
    });
    policies.collect()
}

/// One may be called "no policy".
fn quoted_names(policies: &[&Judged]) -> Vec<String> {
    let names = policies.iter().map(|policy| format!("“{}”", policy.name));
    names.collect()
}

/// Subject of isolation.
struct Subject {
    slices: String,
    by_objectives: bool,
    has_phases: bool,
}

impl Subject {
    /// "meets the objectives of voice", "isolate critical in every phase".
    fn verb(&self, policies: usize) -> String {
        let verb = match (self.by_objectives, policies) {
            (true, 1) => "meets the objectives of",
            (true, _) => "meet the objectives of",
            (false, 1) => "isolates",
            (false, _) => "isolate",
        };
        let phases = if self.has_phases {
            " in every phase"
        } else {
            ""
        };
        format!("{verb} {}{phases}", self.slices)
    }
}

fn subject(study: &StudyDescription) -> Subject {
    let judged = || {
        let slices = study.slices.iter();
        slices.filter(|slice| slice.guaranteed || slice.objective.is_some())
    };
    let names: Vec<String> = judged().map(|slice| slice.name.clone()).collect();
    Subject {
        slices: match names.len() {
            0 => "slices".to_owned(),
            n if n > MOST_NAMES => format!("all {n} slices that are judged"),
            _ => listed(&names),
        },
        by_objectives: judged().all(|slice| slice.objective.is_some()),
        has_phases: !study.phases.is_empty(),
    }
}

/// Combines the verdicts of a policy in each phase. It holds where it does in every phase.
fn in_all_phases(phases: &[Outcome]) -> Outcome {
    use Outcome::{Broken, Inconclusive, NotTested, Partial};
    let mut from_worst = [Broken, Partial, Inconclusive, NotTested].into_iter();
    let worst = from_worst.find(|outcome| phases.contains(outcome));
    worst.unwrap_or(Outcome::Holds)
}

/// "a", "a and b", "a, b and c".
pub(crate) fn listed(names: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.as_slice() {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
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
    fn what_is_not_broken_in_a_phase_holds_where_it_does_in_every_phase() {
        use Outcome::{Broken, Holds, Inconclusive, NotTested};
        assert_eq!(in_all_phases(&[Holds, Holds]), Holds);
        assert_eq!(in_all_phases(&[Holds, Broken, Inconclusive]), Broken);
        assert_eq!(in_all_phases(&[Inconclusive, Holds]), Inconclusive);
        assert_eq!(in_all_phases(&[Holds, NotTested]), NotTested);
    }
}
