//! The sentences above the table of verdicts.

use crate::support::{Size, record, study};
use slicewise_results::{Force, ResultsFolder};
use slicewise_stats::description::{Basis, StudyDescription};
use std::fs;

/// The answer and the remarks of a report on runs of these policies and scenarios, by their places in the study.
fn headline(study: &StudyDescription, policies: &[usize], scenarios: &[usize]) -> (String, String) {
    let temporary = tempfile::tempdir().unwrap();
    let folder = ResultsFolder::create(temporary.path(), study, Force::Refuse).unwrap();
    for policy in policies {
        for scenario in scenarios {
            for repetition in 0..study.repetitions {
                let run = record(study, *policy, *scenario, repetition);
                folder.write_run(&run).unwrap();
            }
        }
    }
    let page = slicewise_report::write(&folder).unwrap().html;
    let html = fs::read_to_string(page).unwrap();
    let paragraph = |begin: &str| {
        let after = html.split_once(begin).map_or("", |(_, after)| after);
        after.split("</p>").next().unwrap_or_default().to_owned()
    };
    (
        paragraph("<p class=\"finding\">"),
        paragraph("<p id=\"remarks\">"),
    )
}

/// The synthetic study, of which nothing was published.
fn unpublished(policies: usize) -> StudyDescription {
    let mut study = study(Size {
        policies,
        ..Size::SMALL
    });
    study.published.clear();
    for policy in &mut study.policies {
        policy.published_verdict = None;
    }
    study
}

#[test]
fn names_what_holds_what_is_broken_and_what_is_open() {
    insta::assert_snapshot!(headline(&unpublished(3), &[0, 1, 2], &[0, 1, 2]).0, @"“priority” isolates critical and passes unused capacity on; “shaping” isolates critical but leaves unused capacity idle; “no policy” is undecided.");
}

#[test]
fn does_not_say_of_what_is_inconclusive_that_it_does_not_hold() {
    let mut study = unpublished(2);
    study.margins.rare_runs = 0.01;
    study.margins.delay_relative = 1e3;
    study.margins.loss_absolute = 1.0;
    study.margins.throughput_relative = 1.0;
    insta::assert_snapshot!(headline(&study, &[0, 1], &[0, 1]).0, @"Whether “no policy” and “priority” isolate critical is undecided.");
}

#[test]
fn does_not_say_of_what_is_untested_that_it_does_not_hold() {
    let study = unpublished(2);
    insta::assert_snapshot!(headline(&study, &[0, 1], &[2]).0, @"Whether “no policy” and “priority” isolate critical was not tested.");
}

#[test]
fn says_of_a_policy_without_runs_that_it_was_not_run() {
    let study = unpublished(3);
    insta::assert_snapshot!(headline(&study, &[0], &[0, 1]).0, @"Whether “no policy” isolates critical is undecided.");
    let (_, remarks) = headline(&study, &[0], &[0, 1]);
    assert_eq!(remarks, "priority and shaping were not run.");
}

#[test]
fn says_how_published_verdicts_and_predicted_figures_compare_with_ours() {
    let mut study = study(Size::SMALL);
    study.published[0].basis = Basis::Entailed;
    let (_, of_publication) = headline(&study, &[0, 1, 2], &[0, 1, 2]);
    insta::assert_snapshot!(of_publication, @"All 8 comparable verdicts match the publication. 0 of 1 predicted figure agrees, 1 differs; not counted: 1 entailed.");
}
