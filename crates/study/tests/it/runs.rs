//! Which runs there are, and their seeds.

use crate::support::{STUDY, changed, parse};
use slicewise_study::{FilterError, RunError, RunFilter, RunSpec, Study};
use slicewise_traffic::SourceError;
use std::collections::BTreeSet;

fn study() -> Study {
    parse(STUDY).unwrap()
}

fn all(study: &Study) -> Vec<RunSpec> {
    study.runs(&RunFilter::default()).unwrap()
}

#[test]
fn there_is_a_run_for_each_policy_scenario_and_repetition() {
    let runs = all(&study());
    assert_eq!(runs.len(), 3 * 2 * 2);
    let cells: BTreeSet<_> = runs
        .iter()
        .map(|r| (r.policy, r.scenario, r.repetition))
        .collect();
    assert_eq!(cells.len(), runs.len());
}

#[test]
fn no_two_runs_share_a_seed() {
    let runs = all(&study());
    let seeds: BTreeSet<u64> = runs.iter().map(|run| run.seed).collect();
    assert_eq!(seeds.len(), runs.len());
}

#[test]
fn a_source_is_the_same_in_every_policy_and_scenario_of_a_repetition() {
    let runs = all(&study());
    let seeds: BTreeSet<(u32, u64)> = runs
        .iter()
        .map(|run| (run.repetition, run.source_seed("steady")))
        .collect();
    assert_eq!(seeds.len(), 2);
    let distinct: BTreeSet<u64> = runs
        .iter()
        .flat_map(|run| ["steady", "other"].map(|source| run.source_seed(source)))
        .collect();
    assert_eq!(distinct.len(), 4);
}

#[test]
fn further_policies_scenarios_and_repetitions_change_no_seed() {
    let text = changed("repetitions: 2", "repetitions: 3")
        .replacen(
            "  nothing: {none: true}",
            "  first: {none: true}\n  nothing: {none: true}",
            1,
        )
        .replacen("scenarios:\n", "scenarios:\n  early: {without: []}\n", 1);
    let larger = parse(&text).unwrap();
    let key = |study: &Study, run: &RunSpec| {
        let key = run.key(study).unwrap();
        (
            key.policy,
            key.scenario,
            key.repetition,
            run.seed,
            run.source_seed("steady"),
        )
    };
    let more: BTreeSet<_> = all(&larger).iter().map(|run| key(&larger, run)).collect();
    let study = study();
    assert_eq!(more.len(), 4 * 3 * 3);
    assert!(
        all(&study)
            .iter()
            .all(|run| more.contains(&key(&study, run)))
    );
}

#[test]
fn seeds_are_what_they_were_when_results_were_published() {
    let runs = all(&study());
    let seeds: Vec<String> = runs
        .iter()
        .take(4)
        .map(|run| {
            format!(
                "{} {} {:016x} {:016x}",
                run.scenario,
                run.repetition,
                run.seed,
                run.source_seed("steady")
            )
        })
        .collect();
    insta::assert_snapshot!(seeds.join("\n"), @"
    0 0 bd3c526e90f301af ae71279dba80d64a
    0 1 70a1b40fe75671ec d964f239bee9aedb
    1 0 5d76533964949303 ae71279dba80d64a
    1 1 62a4dc62a463f9fa d964f239bee9aedb
    ");
}

#[test]
fn another_seed_changes_all_of_them() {
    let mut other = study();
    other.seed = 2;
    let (ours, others) = (all(&study()), all(&other));
    assert!(ours.iter().zip(&others).all(|(a, b)| a.seed != b.seed));
    assert!(
        ours.iter()
            .zip(&others)
            .all(|(a, b)| a.source_seed("steady") != b.source_seed("steady"))
    );
}

#[test]
fn a_filter_leaves_what_it_names() {
    let filter = RunFilter {
        policies: vec!["router".to_owned()],
        scenarios: vec!["storm".to_owned()],
        repetitions: Some(5),
    };
    let study = study();
    let runs = study.runs(&filter).unwrap();
    assert_eq!(runs.len(), 5);
    assert!(runs.iter().all(|run| (run.policy, run.scenario) == (2, 1)));
    assert!(runs.iter().take(2).all(|run| all(&study).contains(run)));
}

#[test]
fn a_filter_that_names_nothing_known_says_so() {
    let filter = RunFilter {
        policies: vec!["ruter".to_owned()],
        ..RunFilter::default()
    };
    let error = study().runs(&filter).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the study has no policy `ruter`: did you mean `router`?"
    );
    let filter = RunFilter {
        repetitions: Some(0),
        ..RunFilter::default()
    };
    assert_eq!(study().runs(&filter), Err(FilterError::NoRepetitions));
}

#[test]
fn a_run_of_another_study_has_no_key() {
    let run = RunSpec {
        policy: 99,
        ..all(&study())[0]
    };
    assert_eq!(run.key(&study()), None);
}

#[test]
fn a_source_that_cannot_send_fails_its_run_and_names_a_file_that_is_at_fault() {
    let never = RunError::from(SourceError::RateZero("voice".to_owned()));
    assert!(matches!(never, RunError::Failed(_)));
    insta::assert_snapshot!(never, @"source `voice` has a rate of zero");
    let missing = RunError::from(SourceError::Unopened {
        path: "recorded.pcapng".into(),
        error: std::io::Error::other("gone"),
    });
    assert!(matches!(&missing, RunError::Input { path, .. } if path == "recorded.pcapng"));
    insta::assert_snapshot!(missing, @"recorded.pcapng: gone");
}
