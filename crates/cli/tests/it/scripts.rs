//! What scripts and new users need: verdicts as JSON and exit codes, a starter study, completions, manual pages.

use crate::support::small_study::STUDY;
use crate::support::{Sandbox, text, words};
use serde_json::Value;
use std::fs;
use std::process::Output;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("small.yaml", STUDY);
    sandbox
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn verdicts_come_as_json_and_nothing_else_does() {
    let sandbox = sandbox();
    let run = sandbox.slicewise(&["run", "small.yaml", "--out", "results", "--json"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let judgement = json(&run);
    assert_eq!(judgement["schema_version"], 1);
    assert_eq!(judgement["study"], "small");
    assert_eq!(judgement["finished_runs"], 12);
    assert_eq!(judgement["report"], "results/report.html");
    let outcomes: Vec<_> = judgement["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|policy| (&policy["policy"], &policy["isolation"]["outcome"]))
        .collect();
    assert_eq!(outcomes[0], (&"shared".into(), &"broken".into()));
    assert_eq!(outcomes[1].0, &Value::from("first"));
    // The report of the same folder says the same.
    let report = sandbox.slicewise(&["report", "results", "--json"]);
    assert_eq!(json(&report), judgement);
}

#[test]
fn a_broken_verdict_fails_a_pipeline_that_asks_for_it() {
    let sandbox = sandbox();
    let run = sandbox.slicewise(&["run", "small.yaml", "--out", "results"]);
    assert_eq!(run.status.code(), Some(0), "nobody asked");
    let gated = sandbox.slicewise(&["report", "results", "--fail-on", "broken"]);
    assert_eq!(gated.status.code(), Some(3));
    assert!(text(&gated.stderr).contains("failed: shared: isolation is broken"));
    assert!(
        text(&gated.stdout).contains("Report: "),
        "the tables come all the same"
    );
    // `first` alone holds, or is left open by three repetitions; it is not broken.
    let run = |fail_on| {
        let arguments = words("run small.yaml --policy first --out first --fail-on");
        sandbox.slicewise(&[&arguments[..], &[fail_on]].concat())
    };
    assert_eq!(run("broken").status.code(), Some(0));
}

#[test]
fn a_gate_is_about_the_selected_policies_whatever_else_the_folder_holds() {
    let sandbox = sandbox();
    sandbox.succeeded(&["run", "small.yaml", "--out", "results"]);
    let gated = |policy| {
        let run = ["run", "small.yaml", "--out", "results", "--json"];
        let gate = ["--policy", policy, "--fail-on", "broken"];
        let output = sandbox.slicewise(&[&run[..], &gate[..]].concat());
        let policies = json(&output)["policies"].clone();
        assert_eq!(policies.as_array().unwrap().len(), 1);
        assert_eq!(policies[0]["policy"], policy);
        output.status.code()
    };
    assert_eq!(gated("first"), Some(0));
    assert_eq!(gated("shared"), Some(3));
    // The report is still of all of them.
    let report = sandbox.slicewise(&["report", "results", "--json"]);
    assert_eq!(json(&report)["policies"].as_array().unwrap().len(), 2);
}

#[test]
fn what_could_not_be_judged_does_not_pass_a_gate_on_inconclusive_verdicts() {
    let sandbox = sandbox();
    let arguments = ["run", "small.yaml", "--scenario", "calm", "--out", "calm"];
    let gated = |fail_on| {
        let output = sandbox.slicewise(&[&arguments[..], &["--fail-on", fail_on]].concat());
        (output.status.code(), text(&output.stderr))
    };
    assert_eq!(gated("broken").0, Some(0));
    let (code, error) = gated("inconclusive");
    assert_eq!(code, Some(3), "{error}");
    assert!(error.contains("failed: "), "{error}");
}

#[test]
fn several_seeds_have_no_single_verdict_to_fail_on() {
    let sandbox = sandbox();
    let arguments = ["run", "small.yaml", "--seeds", "2", "--fail-on", "broken"];
    let refused = sandbox.slicewise(&arguments);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("cannot be used with"));
}

#[test]
fn the_starter_study_passes_check_and_is_never_written_over_a_file() {
    let sandbox = sandbox();
    let made = sandbox.slicewise(&["init"]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let check = sandbox.slicewise(&["check", "study.yaml"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check.stderr));
    assert_eq!(text(&check.stderr), "", "nothing to remark on");
    let printed = sandbox.slicewise(&["init", "-"]);
    let written = fs::read(sandbox.path("study.yaml")).unwrap();
    assert_eq!(printed.stdout, written);

    fs::write(sandbox.path("study.yaml"), "mine").unwrap();
    let refused = sandbox.slicewise(&["init"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("`study.yaml` exists"));
    assert_eq!(fs::read(sandbox.path("study.yaml")).unwrap(), b"mine");

    // A link is not followed, not even one to nowhere.
    std::os::unix::fs::symlink(sandbox.path("elsewhere"), sandbox.path("link.yaml")).unwrap();
    let refused = sandbox.slicewise(&["init", "link.yaml"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(!sandbox.path("elsewhere").exists());
}

/// What the comments of the starter study promise: a policy of each kind of verdict.
#[test]
fn the_starter_study_shows_a_verdict_of_each_kind() {
    let sandbox = sandbox();
    sandbox.slicewise(&["init"]);
    let study = fs::read_to_string(sandbox.path("study.yaml")).unwrap();
    // The same study for less time, so that it runs in a debug build.
    let shorter = study.replace("duration: 5 s", "duration: 1 s");
    fs::write(sandbox.path("study.yaml"), shorter).unwrap();
    let run = sandbox.slicewise(&["run", "study.yaml", "--json"]);
    let judgement = json(&run);
    let outcomes: Vec<_> = judgement["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|policy| policy["isolation"]["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["broken", "holds", "holds"]);
}

#[test]
fn every_shell_gets_a_completion_script_and_every_command_a_manual_page() {
    let sandbox = sandbox();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = sandbox.slicewise(&["completions", shell]);
        assert_eq!(script.status.code(), Some(0));
        assert!(text(&script.stdout).contains("fail-on"), "{shell}");
    }
    let page = sandbox.slicewise(&["man"]);
    assert!(text(&page.stdout).contains(".TH slicewise 1"));
    let written = sandbox.slicewise(&["man", "--out", "pages/man1"]);
    assert_eq!(written.status.code(), Some(0), "{}", text(&written.stderr));
    for page in ["slicewise.1", "slicewise-run.1", "slicewise-init.1"] {
        assert!(sandbox.path("pages/man1").join(page).exists(), "{page}");
    }
}

#[test]
fn quiet_prints_no_progress_and_verbose_a_line_for_each_run() {
    let sandbox = sandbox();
    let errors = |arguments: &[&str]| {
        let output = sandbox.slicewise(arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    let run = ["run", "small.yaml", "--out", "results"];
    let verbose = errors(&[&run[..], &["-v"]].concat());
    let done = verbose.lines().filter(|line| line.contains(": done in "));
    assert_eq!(done.count(), 12, "{verbose}");
    assert!(verbose.contains("first / crowded / 002: done in "));
    // The second time there is something to note: runs are kept.
    assert!(errors(&run).contains("12 of 12 runs were finished before"));
    assert_eq!(errors(&[&["--quiet"], &run[..]].concat()), "");
    let both = sandbox.slicewise(&[&run[..], &["-q", "-v"]].concat());
    assert_eq!(both.status.code(), Some(2));
}
