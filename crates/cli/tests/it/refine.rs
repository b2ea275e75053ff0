//! Points that a sweep gets where isolation ceases to hold.

use crate::support::small_study::STUDY;
use crate::support::{Sandbox, contains};

/// Frames of the rest wait in the queue of critical ones until the port is full: 40 % and 60 %.
const SWEEP: &str = "sweep:
  axes:
    load: {path: scenarios.crowded.sources.rest.rate, values: [40 %, 120 %]}
  refine: 5 %
";

fn run(sandbox: &Sandbox, more: &[&str]) -> (String, String) {
    let run = ["run", "sweep.yaml", "--out", "out", "--jobs", "2"];
    sandbox.succeeded(&[&run[..], more].concat())
}

#[test]
fn values_between_which_isolation_ceases_to_hold_come_as_close_as_asked_for() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.yaml", format!("{STUDY}{SWEEP}"));
    let (printed, notes) = run(&sandbox, &[]);
    insta::assert_snapshot!(printed.split("Resource").next().unwrap(), @r"
    Performance isolation
    ────────────────────────────────────────────────────────────────────────────────
     policy  holds, by load  broken, by load  40 %              120 %
    ════════════════════════════════════════════════════════════════════════════════
     shared  up to 40 %      from 50 %        ✓ 0 % throughput  ✗ +29.8 points lost
     first   everywhere      –                ✓ 0 % throughput  ✓ +168.6 µs delay
    ────────────────────────────────────────────────────────────────────────────────
    ");
    // Only the policy whose verdict changes is run there.
    assert_eq!(
        notes
            .matches("1 point between those where isolation begins or ceases to hold")
            .count(),
        4
    );
    let added = sandbox.path("out/small-load-80pct/runs");
    assert!(added.join("shared").exists() && !added.join("first").exists());
    // The same command carries out nothing again, and finds the same.
    let (again, notes) = run(&sandbox, &[]);
    assert_eq!(again, printed);
    contains(&notes, "24 of 24 runs were finished before");
    let found = notes.matches("6 of 6 runs were finished before");
    assert_eq!(found.count(), 4, "{notes}");
    let page = sandbox.read("out/report.html");
    contains(&page, "up to 40\u{a0}%");
    let cells = sandbox.read("out/data/cells.csv");
    assert!(
        cells.starts_with("case,axis_load,policy,"),
        "{}",
        &cells[..80]
    );
    contains(&cells, "\"load-45pct\",45.0,\"shared\"");
}

#[test]
fn the_smallest_value_from_which_isolation_holds_is_found_as_well() {
    let sandbox = Sandbox::new();
    let sweep = SWEEP.replace(
        "path: scenarios.crowded.sources.rest.rate, values: [40 %, 120 %]",
        "path: dut.port_rate, values: [8 Mbit/s, 16 Mbit/s]",
    );
    let sweep = sweep.replace("load:", "rate:").replace("5 %", "1 Mbit/s");
    let study = STUDY.replace("rate: 90 %", "rate: 7 Mbit/s");
    let study = study.replace("rate: 40 %", "rate: 4 Mbit/s");
    let study = study.replace(
        "guaranteed: true",
        "guaranteed: true, objective: {loss: 1 %}",
    );
    sandbox.write("sweep.yaml", format!("{study}{sweep}"));
    let (printed, _) = run(&sandbox, &[]);
    insta::assert_snapshot!(printed.split("Resource").next().unwrap(), @"
    Performance isolation: lost
    ──────────────────────────────────────────────────────────────
     policy  holds, by rate  broken, by rate  8 Mbit/s  16 Mbit/s
    ══════════════════════════════════════════════════════════════
     shared  from 12 Mbit/s  up to 11 Mbit/s  ✗ 19.7 %  ✓ 0 %
     first   everywhere      –                ✓ 0 %     ✓ 0 %
    ──────────────────────────────────────────────────────────────
    ");
}

#[test]
fn what_would_decide_is_said_and_that_a_search_finds_nothing_between() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.yaml", format!("{STUDY}{SWEEP}"));
    let (printed, notes) = run(&sandbox, &["--repetitions", "1"]);
    contains(&printed, "shared: undecided at 40 %, 120 % (about");
    contains(
        &notes,
        "note: `refine` adds no point: no verdict of isolation changes along the axis",
    );
}

#[test]
fn policies_that_are_not_run_get_no_points() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.yaml", format!("{STUDY}{SWEEP}"));
    let (_, notes) = run(&sandbox, &["--policy", "first"]);
    assert!(!notes.contains("point between"), "{notes}");
}

#[test]
fn a_point_may_be_chosen_by_its_coordinates_though_no_grid_has_it() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.yaml", format!("{STUDY}{SWEEP}"));
    let export = |case: &str| {
        let words = [
            "export",
            "sweep.yaml",
            "--policy",
            "first",
            "--to",
            "tc",
            "--case",
            case,
        ];
        sandbox.command(&words).output().unwrap()
    };
    assert!(export("load=75 %").status.success());
    assert_eq!(export("load=40 %").stdout, export("load-40pct").stdout);
    assert!(export("load=40%").status.success());
    let said = |case: &str| String::from_utf8(export(case).stderr).unwrap();
    insta::assert_snapshot!(said("load=75 %,x=1"), @"error: `load=75 %,x=1` is no point of sweep.yaml: it takes one value on each axis, load");
    insta::assert_snapshot!(said("x=1"), @"error: `x=1` is no point of sweep.yaml: it takes one value on each axis, load");
    insta::assert_snapshot!(said("load=fast"), @"
    error: `fast` is not a rate: write for example `17.5 Mbit/s` (in point `load-fast`)
      --> sweep.yaml:24:1
       |
    24 | sweep:
       | ^^^^^

    error: 1 mistake in sweep.yaml
    ");
}
