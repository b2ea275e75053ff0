//! Studies that share settings, in one file.

use crate::support::{STUDY, changed, files, told};
use insta::assert_snapshot;
use slicewise_study::{Study, StudyFile};

/// The study of the other tests, with cases.
fn with(cases: &str) -> Result<StudyFile, String> {
    let text = format!("{STUDY}{cases}");
    StudyFile::parse(&text, "study.yaml", &files()).map_err(|mistakes| told(&mistakes))
}

fn cases(cases: &str) -> Vec<Study> {
    match with(cases) {
        Ok(StudyFile::Series(series)) => series.cases,
        other => panic!("no cases: {other:?}"),
    }
}

fn refused(cases: &str) -> String {
    with(cases).expect_err("this should be refused")
}

const CASES: &str = "\
cases:
  wide:
    title: twice the rate
    dut: {port_rate: 20 Mbit/s}
  bare:
    without: [policies.router, policies.weighted]
    duration: 2 s
";

#[test]
fn a_case_is_the_study_with_settings_of_its_own() {
    let studies = cases(CASES);
    let names: Vec<&str> = studies.iter().map(|study| study.name.as_str()).collect();
    assert_eq!(names, ["small-wide", "small-bare"]);
    let rates = studies.iter().map(|study| study.dut.port_rate.rate);
    let rates: Vec<u64> = rates.map(|rate| rate.bits_per_second()).collect();
    assert_eq!(rates, [20_000_000, 10_000_000]);
    // A share in percent is of the case's own device.
    let shares = studies.iter().map(|study| study.slices[0].share);
    let shares: Vec<u64> = shares.map(|share| share.bits_per_second()).collect();
    assert_eq!(shares, [12_000_000, 6_000_000]);
    let policies: Vec<usize> = studies.iter().map(|study| study.policies.len()).collect();
    assert_eq!(policies, [3, 1]);
    let titles: Vec<&str> = studies.iter().map(|study| study.title.as_str()).collect();
    assert_eq!(titles, ["twice the rate", "small-bare"]);
}

#[test]
fn results_of_two_cases_never_mix() {
    let studies = cases(CASES);
    assert_ne!(studies[0].inputs(0, 0, 1), studies[1].inputs(0, 0, 1));
    assert_eq!(studies[0].series(), Some("small"));
}

#[test]
fn a_policy_with_aliases_is_shown_as_it_is_in_its_case() {
    let studies = cases(
        "cases:
  first: {policies: {own: {classes: [&rest {name: class-default, shape: 5 Mbit/s}]}}}
  second: {policies: {own: {classes: [{name: gold, slice: gold, shape: 1 Mbit/s}, *rest]}}}
",
    );
    let own = studies[1]
        .policies
        .iter()
        .find(|policy| policy.name == "own");
    assert_eq!(
        own.unwrap().configuration,
        "classes:\n  - {name: gold, slice: gold, shape: 1 Mbit/s}\n  - {name: class-default, shape: 5 Mbit/s}"
    );
}

#[test]
fn a_file_without_cases_is_a_study() {
    let Ok(StudyFile::Study(study)) = with("") else {
        panic!("no study");
    };
    assert_eq!((study.case.as_deref(), study.series()), (None, None));
}

#[test]
fn a_case_is_found_by_its_name() {
    let Ok(StudyFile::Series(series)) = with(CASES) else {
        panic!("no cases");
    };
    let bare = series.case("bare").unwrap();
    assert_eq!(bare.duration.nanos(), 2_000_000_000);
    let names = |name: &str| series.case(name).unwrap_err();
    assert_eq!(names("bar"), "there is no case `bar`: did you mean `bare`?");
    assert_eq!(
        names("other"),
        "there is no case `other`: known are `wide`, `bare`"
    );
}

#[test]
fn a_mistake_says_in_which_case_it_is() {
    assert_snapshot!(refused("cases:\n  a: {dut: {port_rate: 20 MB}}\n  b: {duraton: 2 s}\n"), @"
    study.yaml:35:24 `20 MB`: `MB` is not a unit of a rate: did you mean `MB/s`? (in case `a`)
    study.yaml:36:7 `duraton`: `duraton` is not a setting here (in case `b`); help: did you mean `duration`?
    ");
    assert_snapshot!(refused("cases:\n  a: {policies: {weighted: {classes: [{name: gold, slice: gold, minimum: 200 Mbit/s}]}}}\n"), @"study.yaml:35:74 `200 Mbit/s`: class `gold`, minimum: guarantees 200 Mbit/s, more than the available 10 Mbit/s (in case `a`)");
}

#[test]
fn a_mistake_of_several_cases_is_told_once_and_says_of_how_many() {
    let text = changed("duration: 5 s", "duration: 5");
    let told_of = |cases: &str| {
        let text = format!("{text}cases: {{{cases}}}\n");
        told(&StudyFile::parse(&text, "study.yaml", &files()).unwrap_err())
    };
    assert_snapshot!(told_of("a: {duration: 2 s}, b: {}"), @"study.yaml:33:11 `5`: `5` is a number without a unit: a duration needs one of ns, µs, ms, s, min, h (in case `b`)");
    assert_snapshot!(told_of("a: {}, b: {}"), @"study.yaml:33:11 `5`: `5` is a number without a unit: a duration needs one of ns, µs, ms, s, min, h (in case `a` and 1 other)");
    assert_snapshot!(told_of("a: {}, b: {}, c: {duration: 2 s}, d: {}"), @"study.yaml:33:11 `5`: `5` is a number without a unit: a duration needs one of ns, µs, ms, s, min, h (in case `a` and 2 others)");
}

#[test]
fn what_is_no_case_is_refused_where_it_stands() {
    assert_snapshot!(refused("cases: {}\n"), @"study.yaml:34:1 `cases`: a file has from 1 to 256 cases, and not 0");
    assert_snapshot!(refused("cases: {one: {}, One: {}}\n"), @"study.yaml:34:18 `One`: `One` and `one` differ in case only: a file system may take them for one");
    assert_snapshot!(refused("cases: [a]\n"), @"study.yaml:34:1 `cases`: `cases` holds settings by the name of the case, for example `c1: {title: ...}`");
    assert_snapshot!(refused("cases:\n  a: x\n  b: {name: c, extends: d.yaml, cases: {}}\n"), @"
    study.yaml:35:3 `a`: case `a` holds settings, as a study does
    study.yaml:36:7 `name`: `name` is said of the whole file, not of a case
    study.yaml:36:16 `extends`: `extends` is said of the whole file, not of a case
    study.yaml:36:33 `cases`: `cases` is said of the whole file, not of a case
    ");
    assert_snapshot!(refused("cases:\n  a: {without: [policies.rooter]}\n"), @"study.yaml:35:17 `policies.rooter`: `rooter` cannot be left out: it does not exist; help: did you mean `router`?");
    assert_snapshot!(refused("cases:\n  a/b: {duration: 2 s}\n"), @"study.yaml:35:3 `a/b`: the name `small-a/b` has an invalid character: letters, digits, `.`, `_` and `-` are allowed (in case `a/b`)");
}

#[test]
fn whoever_takes_one_study_refuses_a_file_with_cases() {
    let text = format!("{STUDY}{CASES}");
    let refused = Study::parse(&text, "study.yaml", &files()).unwrap_err();
    assert_snapshot!(refused.to_string(), @r"
    error: this file holds cases, each of them a study: this command takes one study
      --> study.yaml:34:1
       |
    34 | cases:
       | ^^^^^
       |
       = help: choose a case (`--case NAME`), where the command has that option
    ");
}
