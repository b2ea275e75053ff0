//! Results of several back ends side by side, from the command line.

use crate::support::seal;
use crate::support::small_study::STUDY;
use crate::support::{Sandbox, words};
use std::fs;
use std::path::Path;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// `results/small` of the simulator, and `results/small-gateway` that claims to be of a gateway and to
/// have been predicted.
fn two_back_ends() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("small.yaml", STUDY);
    sandbox.succeeded(&["run", "small.yaml"]);
    let (simulator, gateway) = (
        sandbox.path("results/small"),
        sandbox.path("results/small-gateway"),
    );
    copy(&simulator, &gateway);
    copy(&simulator, &gateway.join("prediction"));
    let description = sandbox.read("results/small-gateway/study.json");
    let claimed = description.replace(r#""backend": "simulator""#, r#""backend": "gateway""#);
    assert_ne!(description, claimed);
    sandbox.write("results/small-gateway/study.json", seal::sealed(&claimed));
    sandbox
}

#[test]
fn a_report_shows_the_folders_it_is_told_to() {
    let sandbox = two_back_ends();
    let (out, _) = sandbox.succeeded(&words(
        "report results/small --beside results/small-gateway",
    ));
    assert!(out.contains("Isolation / reallocation; each back end is judged by its own runs"));
    assert!(out.contains("of 24 figures of gateway were predicted"));
    assert!(sandbox.path("results/small/data/prediction.csv").is_file());
    let (out, _) = sandbox.succeeded(&["report", "results/small"]);
    assert!(!out.contains("each back end is judged"));
}

#[test]
fn a_run_takes_the_other_back_ends_beside_and_bears_one_that_cannot_be_read() {
    let sandbox = two_back_ends();
    sandbox.write("results/small-tc/study.json", "{");
    let (out, notes) = sandbox.succeeded(&["run", "small.yaml"]);
    assert!(out.contains("of 24 figures of gateway were predicted"));
    assert!(notes.contains("note: not shown side by side: `results/small-tc/study.json`"));
    // Results that were sent elsewhere are a matter of their own.
    let (out, notes) = sandbox.succeeded(&["run", "small.yaml", "--out", "elsewhere"]);
    assert!(!out.contains("each back end is judged") && !notes.contains("side by side"));
}

#[test]
fn what_cannot_be_beside_is_refused() {
    let sandbox = two_back_ends();
    let refused = |beside: &[&str]| {
        let mut arguments = vec!["report", "results/small"];
        arguments.extend(beside.iter().flat_map(|folder| ["--beside", *folder]));
        sandbox.refused(2, &arguments)
    };
    let gateway = "results/small-gateway";
    insta::assert_snapshot!(refused(&[gateway, gateway]).trim(), @"error: `results/small-gateway` is named twice: name each results folder once");
    insta::assert_snapshot!(refused(&["results/small/"]).trim(), @"error: `results/small/` is named twice: name each results folder once");
    insta::assert_snapshot!(refused(&["nowhere"]).trim(), @"error: `nowhere` does not exist: run a study first, or name the folder one was run into");
    let description = sandbox.read("results/small-gateway/study.json");
    let other = description.replace(r#""name": "small""#, r#""name": "large""#);
    sandbox.write("results/small-gateway/study.json", seal::sealed(&other));
    insta::assert_snapshot!(refused(&[gateway]).trim(), @"error: `results/small-gateway` holds results of study `large`, not of `small`: combine folders of one study only, or run `small` on another back end first");
}
