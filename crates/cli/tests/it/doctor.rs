//! `slicewise doctor`, end to end: on this machine, whatever it can do, with root and without.

use crate::support::{Sandbox, contains, text};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

const TITLES: [&str; 6] = [
    "Machine",
    "Permission",
    "Programs",
    "Testbed",
    "Network",
    "Traffic control",
];
const GROUPS: [&str; 6] = [
    "machine",
    "permission",
    "programs",
    "testbed",
    "network",
    "traffic_control",
];

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.starts_with("Uid:\t0\t0"))
}

#[test]
fn every_group_is_told_and_the_exit_code_is_that_of_runs_on_the_gateway() {
    let sandbox = Sandbox::new();
    let output = sandbox.slicewise(&["doctor"]);
    let stderr = text(&output.stdout);
    for title in TITLES {
        assert!(
            stderr.lines().any(|line| line == title),
            "{title}: {stderr}"
        );
    }
    assert!(!stderr.contains('\u{1b}'), "colours in a file: {stderr}");
    let json = sandbox.slicewise(&["doctor", "--json"]);
    let found: Value = serde_json::from_slice(&json.stdout).unwrap();
    // What other tests do to this machine meanwhile may come between the two calls.
    let can = found["verdicts"]["slicewise run --on gateway"] == "can";
    assert_eq!(json.status.code(), Some(i32::from(!can)));
    let findings = found["findings"].as_array().unwrap();
    let mut groups: Vec<&str> = (findings.iter())
        .map(|finding| finding["group"].as_str().unwrap())
        .collect();
    groups.dedup();
    assert_eq!(groups, GROUPS);
    for finding in findings {
        let has_fix = finding["state"] == "ready" || !finding["fix"].is_null();
        let is_told = finding["detail"]
            .as_str()
            .is_some_and(|text| !text.is_empty());
        assert!(
            is_told && (has_fix || finding["state"] == "unknown"),
            "{finding}"
        );
    }
}

#[test]
fn nothing_is_left_behind() {
    if !is_root() {
        println!("skipped: not root");
        return;
    }
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["doctor", "--json"]);
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let probe = format!("/run/netns/slicewise-{}-probe", child.id());
    child.wait().unwrap();
    assert!(!Path::new(&probe).exists());
}

#[test]
fn without_root_everything_that_can_be_told_is_and_the_rest_says_what_it_needs() {
    if !is_root() {
        println!("skipped: only root can become nobody");
        return;
    }
    // Where nobody can read it.
    let sandbox = Sandbox::new();
    let program = sandbox.path("slicewise");
    fs::copy(env!("CARGO_BIN_EXE_slicewise"), &program).unwrap();
    let everybody = |mode| fs::Permissions::from_mode(mode);
    fs::set_permissions(program.parent().unwrap(), everybody(0o755)).unwrap();
    fs::set_permissions(&program, everybody(0o755)).unwrap();
    let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let output = Command::new("setpriv")
        .args(nobody)
        .arg(&program)
        .arg("doctor")
        .output();
    let Ok(output) = output else {
        println!("skipped: setpriv is not installed");
        return;
    };
    let stderr = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    for title in TITLES {
        assert!(
            stderr.lines().any(|line| line == title),
            "{title}: {stderr}"
        );
    }
    contains(&stderr, "✗ root");
    contains(&stderr, "✓ processors");
    contains(&stderr, "needs root: sudo slicewise doctor");
    contains(&stderr, "This user cannot run");
}
