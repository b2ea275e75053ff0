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
            .matches("1 point between those where isolation ceases to hold")
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
fn a_search_says_at_which_values_it_stops_and_what_would_decide() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.yaml", format!("{STUDY}{SWEEP}"));
    let (printed, _) = run(&sandbox, &["--repetitions", "1"]);
    let stop = "; `refine` searches only where the first value holds\n";
    contains(&printed, stop);
    let page = sandbox.read("out/report.html");
    contains(
        &page,
        "<code>refine</code> searches only where the first value holds",
    );
}

#[test]
fn policies_that_are_not_run_get_no_points() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.yaml", format!("{STUDY}{SWEEP}"));
    let (_, notes) = run(&sandbox, &["--policy", "first"]);
    assert!(!notes.contains("between"), "{notes}");
}
