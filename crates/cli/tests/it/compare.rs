//! `slicewise compare`, end to end: what it prints of two results folders, and what it exits with.

use crate::support::small_study::STUDY;
use crate::support::{Sandbox, contains, text};
use serde_json::Value;
use std::fs;

/// The small study, shorter, with repetitions enough for its margins.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let study = STUDY.replace("duration: 4 s", "duration: 2 s");
    sandbox.write("small.yaml", &study);
    // The priority class gets less than the slice sends.
    sandbox.write(
        "lower.yaml",
        study.replace("rate: 5 Mbit/s", "rate: 3 Mbit/s"),
    );
    sandbox
}

fn run(sandbox: &Sandbox, study: &str, out: &str, more: &[&str]) {
    sandbox.succeeded(&[&["run", study, "--out", out], more].concat());
}

fn json(sandbox: &Sandbox, arguments: &[&str]) -> Value {
    let (out, _) = sandbox.succeeded(&[&["compare", "--json"], arguments].concat());
    serde_json::from_str(&out).unwrap()
}

#[test]
fn the_same_study_and_seed_are_the_same_in_every_figure() {
    let sandbox = sandbox();
    run(&sandbox, "small.yaml", "a", &[]);
    run(&sandbox, "small.yaml", "b", &["--jobs", "1"]);
    let document = json(&sandbox, &["a", "b"]);
    assert_eq!(document["schema_version"], 2);
    assert_eq!(document["summary"]["figures"], 32);
    assert_eq!(document["summary"]["same"], 32);
    for figure in document["figures"].as_array().unwrap() {
        assert_eq!(figure["numbers"]["statistic"], 0.0, "{figure}");
        assert_eq!(figure["paired"], true);
    }
    let gated = ["compare", "a", "b", "--fail-on", "inconclusive"];
    let (out, error) = sandbox.succeeded(&gated);
    assert_eq!(error, "");
    assert!(out.starts_with("B against A: 0 of 32 figures worse, 0 better, 32 the same within the margins, 0 inconclusive\n"), "{out}");
    assert!(!out.contains("Margin"), "nothing to show in a table: {out}");
    let (out, _) = sandbox.succeeded(&["compare", "a", "b", "--all"]);
    assert_eq!(out.matches("equal").count(), 32, "{out}");
}

#[test]
fn another_seed_makes_nothing_worse() {
    let sandbox = sandbox();
    let repetitions = ["--repetitions", "6"];
    run(&sandbox, "small.yaml", "a", &repetitions);
    run(
        &sandbox,
        "small.yaml",
        "b",
        &["--seed", "8", "--repetitions", "6"],
    );
    let document = json(&sandbox, &["a", "b"]);
    assert_eq!(document["summary"]["worse"], 0, "{}", document["summary"]);
    assert_eq!(document["summary"]["better"], 0, "{}", document["summary"]);
    assert_eq!(document["figures"][0]["paired"], false);
}

#[test]
fn a_policy_with_a_lower_rate_is_worse_and_fails_a_pipeline() {
    let sandbox = sandbox();
    run(&sandbox, "small.yaml", "a", &[]);
    run(&sandbox, "lower.yaml", "b", &[]);
    let output = sandbox.slicewise(&["compare", "a", "b", "--fail-on", "worse"]);
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(3), "{out}{error}");
    assert!(error.starts_with("failed: B against A: "), "{error}");
    let worse = out.lines().find(|line| line.contains("worse  ")).unwrap();
    assert!(
        worse.contains("first") && worse.contains("critical"),
        "{out}"
    );
    contains(&out, "→");
    if let Some(shown) = sandbox.on_a_terminal(80, "NO_COLOR=1 $slicewise compare a b") {
        let widest = shown.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{shown}");
        contains(&shown, "Not shown: ");
    }

    let document = json(&sandbox, &["a", "b"]);
    let changed = document["figures"].as_array().unwrap().iter();
    let changed: Vec<&Value> = changed.filter(|f| f["outcome"] == "worse").collect();
    assert!(!changed.is_empty());
    assert!(changed.iter().all(|figure| figure["policy"] == "first"));
    assert!(document["verdicts"].is_array());
    // The other way round the same figures are better.
    let back = json(&sandbox, &["b", "a"]);
    assert_eq!(back["summary"]["better"], document["summary"]["worse"]);
    assert_eq!(back["summary"]["worse"], document["summary"]["better"]);
}

#[test]
fn what_only_the_baseline_has_fails_a_gate_on_what_is_inconclusive() {
    let sandbox = sandbox();
    run(&sandbox, "small.yaml", "a", &[]);
    run(&sandbox, "small.yaml", "b", &["--policy", "first"]);
    let (out, _) = sandbox.succeeded(&["compare", "a", "b", "--fail-on", "worse"]);
    contains(&out, "\nOnly in A: policy shared\n");
    let error = sandbox.refused(3, &["compare", "a", "b", "--fail-on", "inconclusive"]);
    assert_eq!(error, "failed: policy shared: only in A\n");
}

#[test]
fn folders_that_cannot_be_compared_are_refused_with_what_to_do() {
    let sandbox = sandbox();
    run(&sandbox, "small.yaml", "a", &["--policy", "first"]);
    run(&sandbox, "small.yaml", "b", &["--policy", "shared"]);
    let refused =
        |arguments: [&str; 2]| sandbox.refused(2, &[&["compare"], &arguments[..]].concat());
    insta::assert_snapshot!(refused(["a", "b"]), @"error: `a` and `b` have no slice of a policy and scenario in common that has runs in both: only the first has policy first, only the second policy shared; compare results of studies that share these names");
    insta::assert_snapshot!(refused(["a", "./a/"]), @"error: `./a/` is named twice: name each results folder once");
    insta::assert_snapshot!(refused(["a", "nowhere"]), @"error: `nowhere` does not exist: run a study first, or name the folder one was run into");
    fs::create_dir(sandbox.path("empty")).unwrap();
    insta::assert_snapshot!(refused(["empty", "a"]), @"error: `empty` holds no results of a study: name the folder that a study was run into");
    sandbox.write(
        "c/study.json",
        fs::read(sandbox.path("a/study.json")).unwrap(),
    );
    insta::assert_snapshot!(refused(["a", "c"]), @"error: `c` holds no finished run: run the study first");
}

#[test]
fn damaged_records_are_left_out_and_named_and_other_margins_are_noted() {
    let sandbox = sandbox();
    let study = sandbox.read("small.yaml");
    sandbox.write(
        "strict.yaml",
        study.replace("rare_runs: 66 %", "rare_runs: 50 %"),
    );
    run(&sandbox, "small.yaml", "a", &[]);
    run(&sandbox, "strict.yaml", "b", &[]);
    let records = "b/runs/first/calm.jsonl";
    let changed = sandbox
        .read(records)
        .replacen("\"lost_frames\":0", "\"lost_frames\":1", 1);
    sandbox.write(records, changed);
    let (out, error) = sandbox.succeeded(&["compare", "a", "b"]);
    contains(
        &error,
        "warning: B: left out: `runs/first/calm.jsonl`, line 1, cannot be trusted",
    );
    contains(
        &error,
        "note: the margins of A and B differ; both are judged by those of A",
    );
    contains(&out, "11 of 12 runs");
    contains(
        &out,
        "are equal in every repetition; about 3 repetitions in each folder would decide all of them",
    );
}

#[test]
fn control_characters_of_a_path_reach_no_terminal() {
    let sandbox = sandbox();
    let (a, b) = ("a\u{1b}]0;title\u{7}", "b\u{1b}[2J");
    run(&sandbox, "small.yaml", a, &[]);
    run(&sandbox, "small.yaml", b, &[]);
    let (out, _) = sandbox.succeeded(&["compare", a, b, "--all"]);
    contains(&out, "b\\u{1b}[2J: study small");
    assert!(!out.contains('\u{1b}') && !out.contains('\u{7}'), "{out:?}");
}
