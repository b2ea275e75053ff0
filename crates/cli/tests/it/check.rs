//! `slicewise check` and `slicewise schema`, end to end: every kind of file, and warnings.

use crate::support::small_study::STUDY;
use crate::support::{Sandbox, contains};
use insta::assert_snapshot;
use std::fs;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A folder with a file of this text in it.
fn folder(text: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file.yaml"), text).unwrap();
    folder
}

fn slicewise(folder: &TempDir, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_slicewise"))
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .unwrap()
}

/// What `check` prints and exits with.
fn check(text: &str) -> String {
    let output = slicewise(&folder(text), &["check", "file.yaml"]);
    let [out, err] = [&output.stdout, &output.stderr].map(|b| String::from_utf8_lossy(b));
    format!("{:?}\n{out}{err}", output.status.code())
}

#[test]
fn every_kind_of_file_is_checked_as_what_it_is() {
    assert_snapshot!(check(STUDY), @"
    Some(0)
    file.yaml: 2 policies × 2 scenarios × 3 repetitions = 12 runs of 4 s
    ");
    let once = STUDY.replace("repetitions: 3", "repetitions: 1");
    assert!(check(&once).contains("2 scenarios × 1 repetition = 4 runs of 4 s"));
    assert_snapshot!(check("link: 1 Gbit/s\nslices: {all: {count: 3, guarantee: 1 Mbit/s}}\n"), @"
    Some(0)
    file.yaml: a plan of 3 slices; `slicewise plan` says whether they fit
    ");
    assert_snapshot!(check("slices: {gold: {match: {vlan: 10}}, rest: {match: {}}}\n"), @"
    Some(0)
    file.yaml: a measured study of 2 slices, 0 policies and 0 scenarios
    ");
    assert_snapshot!(check("interfaces: [left, right]\nlink: 1 Gbit/s\npolicy: {none: true}\n"), @"
    Some(0)
    file.yaml: a gateway between left and right
    ");
    assert_snapshot!(check("link: 1 Gbit/s\nslices: {all: {counts: 3}}\n"), @"
    Some(2)
    error: `counts` is not a setting here
     --> file.yaml:2:16
      |
    2 | slices: {all: {counts: 3}}
      |                ^^^^^^
      |
      = help: did you mean `count`?

    error: 1 mistake in file.yaml
    ");
}

#[test]
fn what_is_not_simulated_is_warned_of_and_stated_in_the_report() {
    let text = STUDY.replace(
        "match: {vlan: 20}",
        "headers: {protocol: tcp}, match: {vlan: 20}",
    );
    assert_snapshot!(check(&text), @"
    Some(0)
    file.yaml: 2 policies × 2 scenarios × 3 repetitions = 12 runs of 4 s
    warning: the simulator sends these packets at the source's pace, with TCP's header and without its congestion control, acknowledgements and retransmissions
     --> file.yaml:7:30
      |
    7 |   rest: {headers: {protocol: tcp}, match: {vlan: 20}, share: 50 %}
      |                              ^^^
    ");
    let folder = folder(&text);
    let run = ["run", "file.yaml", "--repetitions", "1", "--out", "out"];
    let output = slicewise(&folder, &run);
    assert!(output.status.success());
    let stderr = String::from_utf8_lossy(&output.stderr);
    contains(&stderr, "warning: the simulator sends these packets");
    contains(&stderr, "--> file.yaml:7:");
    let report = fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(report.contains("TCP is not simulated"));
}

#[test]
fn every_kind_of_file_has_a_schema() {
    let folder = folder("");
    let titles: Vec<String> = ["study", "plan", "measured", "gateway"]
        .map(|kind| {
            let output = slicewise(&folder, &["schema", "--of", kind]);
            let schema: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            schema["title"].as_str().unwrap().to_owned()
        })
        .into();
    assert_snapshot!(titles.join("\n"), @"
    Slicewise study
    Slicewise plan
    Slicewise measured study
    Slicewise gateway
    ");
}

#[test]
fn a_misspelt_setting_at_the_top_leaves_a_file_what_it_is() {
    for (text, meant) in [
        (
            "interfacs: [left, right]\nlink: 1 Gbit/s\npolicy: {none: true}\n",
            "interfaces",
        ),
        (
            "link: 1 Gbit/s\nsliecs: {all: {count: 3, guarantee: 1 Mbit/s}}\n",
            "slices",
        ),
        (
            "lnk: 1 Gbit/s\nslices: {all: {count: 3, guarantee: 1 Mbit/s}}\n",
            "link",
        ),
        (&STUDY.replace("\ndut:", "\nduts:"), "dut"),
        (&STUDY.replace("policies:", "polices:"), "policies"),
    ] {
        let stderr = check(text);
        contains(&stderr, &format!("did you mean `{meant}`?"));
        assert!(
            stderr.ends_with("error: 1 mistake in file.yaml\n"),
            "{stderr}"
        );
    }
}

#[test]
fn mistakes_are_counted_in_the_file_that_has_them() {
    let sandbox = Sandbox::new();
    let study = STUDY.replace(
        "  shared: {none: true}\n",
        "  shared: {none: true}\n  a: {ios: a.cfg}\n  b: {ios: b.cfg}\n",
    );
    sandbox.write("s.yaml", study);
    sandbox.write(
        "a.cfg",
        "policy-map a\n class class-default\n  bandwith 5\n",
    );
    sandbox.write(
        "b.cfg",
        "policy-map b\n class class-default\n  shape average 5000000\n",
    );
    let refused = sandbox.refused(2, &["check", "s.yaml"]);
    assert!(
        refused.ends_with("error: 1 mistake in a.cfg\n"),
        "{refused}"
    );
    sandbox.write(
        "b.cfg",
        "policy-map b\n class class-default\n  bandwith 5\n",
    );
    let refused = sandbox.refused(2, &["check", "s.yaml"]);
    assert!(
        refused.ends_with("error: 2 mistakes in s.yaml and the files it names\n"),
        "{refused}"
    );
}

/// Of one scenario there is no verdict that says why there is no bound.
#[test]
fn a_run_of_a_single_scenario_says_what_has_no_bound() {
    let sandbox = Sandbox::new();
    let study = include_str!("../../../sim/tests/cases/merge2.yaml");
    sandbox.write("merge.yaml", study);
    let (_, notes) = sandbox.succeeded(&["run", "merge.yaml", "--out", "out"]);
    contains(&notes, "218 packets may wait");
}
