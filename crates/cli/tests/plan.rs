//! `slicewise plan`, end to end: what it prints and exits with.
#![allow(clippy::unwrap_used)]

use insta::assert_snapshot;
use std::process::{Command, Output};

/// What `slicewise plan` does with a file of this text.
fn run(text: &str, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("plan.yaml"), text).unwrap();
    Command::new(env!("CARGO_BIN_EXE_slicewise"))
        .args(["plan", "plan.yaml"])
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .unwrap()
}

fn printed(code: i32, text: &str) -> String {
    let output = run(text, &[]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert_eq!(error, "");
    // The table pads its last column.
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    printed
        .lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join("\n")
}

fn mistakes(text: &str) -> String {
    let output = run(text, &[]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(output.stdout.is_empty());
    error
}

const FITTING: &str = "
link: {rate: 1 Gbit/s, counts: L2}
buffer: 10 MB
slices:
  voice: {count: 20, guarantee: {rate: 1 Mbit/s, burst: 3044 B, delay: 1 ms}}
  video: {guarantee: {rate: 300 Mbit/s, burst: 100 kB, delay: 10 ms}, maximum: 400 Mbit/s}
  own: {guarantee: 10 Mbit/s}
  rest: {weight: 3}
";

#[test]
fn a_plan_that_fits_shows_bounds_and_what_is_left() {
    assert_snapshot!(printed(0, FITTING), @"");
}

#[test]
fn a_plan_that_does_not_fit_says_why_and_what_would() {
    let text = "
link: 100 Mbit/s
slices:
  voice: {guarantee: {rate: 1 Mbit/s, burst: 1000 B, delay: 1 ms}}
  quick: {guarantee: {rate: 1 Mbit/s, delay: 9 us}}
  video: {guarantee: {rate: 200 Mbit/s, burst: 3044 B, delay: 10 ms}}
  ten: {count: 50, guarantee: {rate: 1 Mbit/s, delay: 5 ms}}
  kept: {guarantee: {rate: 10 Mbit/s, delay: 50 ms}}
";
    assert_snapshot!(printed(1, text), @"");
}

#[test]
fn the_same_as_json() {
    let output = run(FITTING, &["--json"]);
    assert_eq!(output.status.code(), Some(0));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let plan = &json["plans"][0];
    assert_eq!(plan["admitted"], true);
    assert_eq!(plan["rate_left_bits_per_second"], 670_000_000);
    assert_eq!(plan["slices"][0]["verdict"], "admitted");
    assert_eq!(plan["slices"][0]["delay_bound_ns"], 905_088);
    assert_eq!(plan["slices"][3]["verdict"], "best_effort");
    assert_eq!(plan["delay_classes"][0]["slices"], 20);
    let tight = FITTING.replace("1 Gbit/s", "300 Mbit/s");
    let output = run(&tight, &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let refusal = &json["plans"][0]["slices"][1]["refusal"];
    assert_eq!(refusal["condition"], "rate");
    assert_eq!(refusal["largest_rate_bits_per_second"], 280_000_000);
}

#[test]
fn a_million_slices_are_one_line() {
    let text = "
link: {rate: 400 Gbit/s, counts: L2}
slices: {all: {count: 1_000_000, guarantee: {rate: 400 kbit/s, burst: 1522 B, delay: 80 ms}}}
";
    assert_snapshot!(printed(0, text), @"");
}

#[test]
fn bad_input_is_told_at_its_place() {
    assert_snapshot!(mistakes("
link: 1 Gbit/s
slices:
  a: {guarantee: {rate: 99999999999999999999 Mbit/s, burst: 99999999999 GB}}
  b: {weight: 0, count: 0}
  c: {guarantee: 0 bit/s}
  d: {guarantee: 2 Mbit/s, maximum: 1 Mbit/s}
  e: {tenant: nobody}
"), @"");
    assert_snapshot!(mistakes("
link: 1 Gbit/s
slices:
  a: {guarantee: 1 Mbit/s}
  a: {guarantee: 2 Mbit/s}
"), @"");
    assert_snapshot!(mistakes("
link: 0 bit/s
largest_frame: 100 kB
delay: {shortest: 1 us}
tenants: {gold: 0}
"), @"");
    assert_snapshot!(mistakes(""), @"");
}

#[test]
fn a_study_is_planned_policy_by_policy() {
    let study = "
name: small
link: {rate: 1 Gbit/s}
dut: {model: port, port_rate: 10 Mbit/s}
slices:
  gold: {match: {vlan: 10}, share: 50 %}
sources:
  gold: {slice: gold, headers: {vlan: 10, source: 10.0.10.2, destination: 10.0.10.3}, pattern: cbr, payload: 1000 B, rate: 40 %}
scenarios: {calm: {}}
policies:
  shared: {none: true}
  promised:
    discipline: guaranteed
    classes: [{name: gold, slice: gold, guarantee: {rate: 2 Mbit/s, delay: 20 ms}}]
repetitions: 1
duration: 1 s
";
    assert_snapshot!(printed(0, study), @"");
    assert_snapshot!(mistakes(&study.replace("rate: 2 Mbit/s", "rate: 9 Mbit/s")), @"");
    let without = study
        .replace("    discipline: guaranteed\n", "")
        .replace(", guarantee: {rate: 2 Mbit/s, delay: 20 ms}", "");
    assert_snapshot!(mistakes(&without), @"");
}
