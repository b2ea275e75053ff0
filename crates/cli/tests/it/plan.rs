//! `slicewise plan`, end to end: what it prints and exits with.

use crate::support::Sandbox;
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
    assert_snapshot!(printed(0, FITTING));
}

/// Neither fits with its default, in either order.
#[test]
fn slices_that_state_no_delay_get_one_that_fits_and_the_plan_says_which_and_why() {
    let text = "
link: {rate: 100 Mbit/s, counts: L2}
slices:
  a: {guarantee: {rate: 90 Mbit/s, burst: 600 kB}}
  b: {guarantee: {rate: 10 Mbit/s, burst: 840 kB}}
";
    assert_snapshot!(printed(0, text));
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
    assert_snapshot!(printed(1, text));
}

#[test]
fn a_plan_fits_the_terminal_and_says_what_it_leaves_out() {
    let text = "
link: 100 Mbit/s
slices:
  voice-of-a-customer-with-a-long-name-in-berlin: {guarantee: {rate: 1 Mbit/s, delay: 20 ms}}
  ten: {count: 50, guarantee: {rate: 1.25 Mbit/s, delay: 5 ms}}
  rest: {weight: 3}
";
    let sandbox = Sandbox::new();
    sandbox.write("plan.yaml", text);
    for columns in [80, 120, 60] {
        let printed = sandbox.on_a_terminal(columns, "NO_COLOR=1 $slicewise plan plan.yaml");
        let Some(printed) = printed else { return };
        let widest = printed.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(columns.into()), "{printed}");
        assert_snapshot!(format!("a_plan_on_{columns}_columns"), printed);
    }
    let coloured = sandbox.on_a_terminal(80, "$slicewise plan plan.yaml");
    let coloured = coloured.unwrap();
    assert!(
        coloured.contains("\u{1b}[1;31m✗ refused\u{1b}[0m"),
        "{coloured}"
    );
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
    assert_eq!(plan["slices"][0]["delay_bound_ns"], 1_000_000);
    assert_eq!(plan["slices"][3]["verdict"], "best_effort");
    assert_eq!(plan["delay_classes"][0]["slices"], 20);
    let tight = FITTING.replace("1 Gbit/s", "300 Mbit/s");
    let output = run(&tight, &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let refusal = &json["plans"][0]["slices"][0]["refusal"];
    assert_eq!(refusal["condition"], "delay");
    assert_eq!(refusal["largest_count"], 11);
    assert_eq!(
        json["plans"][0]["slices"][2]["refusal"]["condition"],
        "rate"
    );
}

#[test]
fn a_million_slices_are_one_line() {
    let text = "
link: {rate: 400 Gbit/s, counts: L2}
slices: {all: {count: 1000000, guarantee: {rate: 400 kbit/s, burst: 1522 B, delay: 80 ms}}}
";
    assert_snapshot!(printed(0, text), @"
    plan.yaml: link of 400 Gbit/s (L2)
    ────────────────────────────────────────────────────────────────────
     Slice  Guarantee     Count         CIR       CBS  Delay      Delay
                                                       bound  requested
    ════════════════════════════════════════════════════════════════════
     all    ✓ admitted  1000000  400 kbit/s  1.522 kB  80 ms      80 ms
    ────────────────────────────────────────────────────────────────────

    ──────────────────────────────────────────────────────────────
     Delay class   Slices         CIR       CBS  Unreserved burst
    ══════════════════════════════════════════════════════════════
           80 ms  1000000  400 Gbit/s  1.522 GB          2.477 GB
    ──────────────────────────────────────────────────────────────
    Admitted: all 1000000 guarantees fit together; 0 bit/s (L2) is unreserved.
    ");
}

#[test]
fn bad_input_is_told_at_its_place() {
    assert_snapshot!(mistakes(
        "
link: 1 Gbit/s
slices:
  a: {guarantee: {rate: 99999999999999999999 Mbit/s, burst: 99999999999 GB}}
  b: {weight: 0, count: 0}
  c: {guarantee: 0 bit/s}
  d: {guarantee: 2 Mbit/s, maximum: 1 Mbit/s}
  e: {tenant: nobody}
"
    ));
    assert_snapshot!(mistakes("
link: 1 Gbit/s
slices:
  a: {guarantee: 1 Mbit/s}
  a: {guarantee: 2 Mbit/s}
"), @"
error: duplicate mapping key `a` is not allowed here
 --> plan.yaml:5:3
  |
5 |   a: {guarantee: 2 Mbit/s}
  |   ^

error: 1 mistake in plan.yaml
");
    assert_snapshot!(mistakes(
        "
link: 0 bit/s
largest_frame: 100 kB
delay: {shortest: 1 us}
tenants: {gold: 0}
"
    ));
    assert_snapshot!(mistakes(""), @"
error: the file is empty: it should hold a study
 --> plan.yaml:1:1
  |
1 |
  | ^

error: 1 mistake in plan.yaml
");
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
    assert_snapshot!(printed(0, study));
    assert_snapshot!(mistakes(&study.replace("rate: 2 Mbit/s", "rate: 9 Mbit/s")), @"
    error: class `gold`, guarantee: guarantees 9 Mbit/s (L2), in small frames 12.6 Mbit/s (L1), but only 10 Mbit/s (L1) of the link is free: write a rate of at most 7.142 Mbit/s (L2), a smallest frame of at least 216 B, or `counts: L1` for all guarantees of the link
      --> plan.yaml:14:41
       |
    14 |     classes: [{name: gold, slice: gold, guarantee: {rate: 9 Mbit/s, delay: 20 ms}}]
       |                                         ^^^^^^^^^

    error: 1 mistake in plan.yaml
    ");
    let without = study
        .replace("    discipline: guaranteed\n", "")
        .replace(", guarantee: {rate: 2 Mbit/s, delay: 20 ms}", "");
    assert_snapshot!(mistakes(&without), @"error: plan.yaml: no policy of this study has the discipline `guaranteed`: there is nothing to plan");
}

const PATH: &str = "
name: small
link: {rate: 1 Gbit/s}
path: [access, core]
devices:
  access: {model: port, port_rate: 20 Mbit/s}
  core: {model: port, port_rate: 10 Mbit/s}
slices:
  gold: {match: {vlan: 10}, share: 50 %, guaranteed: true}
sources:
  gold: {slice: gold, headers: {vlan: 10, source: 10.0.10.2, destination: 10.0.10.3}, pattern: cbr, payload: 1000 B, rate: 1 Mbit/s}
scenarios: {calm: {reference: true}}
policies:
  promised:
    discipline: guaranteed
    classes: [{name: gold, slice: gold, guarantee: {rate: 2 Mbit/s, delay: 20 ms}}]
repetitions: 1
duration: 2 s
";

#[test]
fn a_study_of_a_path_is_planned_device_by_device() {
    assert_snapshot!(printed(0, PATH));
    let own = "20 Mbit/s, policy: {discipline: guaranteed, classes: [{name: gold, slice: gold, guarantee: {rate: 2 Mbit/s, delay: 10 ms}}]}";
    let with_own = PATH.replace("20 Mbit/s", own);
    let json: serde_json::Value =
        serde_json::from_slice(&run(&with_own, &["--json"]).stdout).unwrap();
    let asked: Vec<_> = json["plans"]
        .as_array()
        .unwrap()
        .iter()
        .map(|plan| {
            let device = plan["device"].as_str().unwrap();
            (
                device,
                plan["slices"][0]["delay_asked_ns"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(asked, [("access", 10_000_000), ("core", 20_000_000)]);
}

#[test]
fn a_study_with_a_timeline_is_planned_phase_by_phase() {
    let timeline = "timeline: {settle: 100 ms, changes: {more: {at: 1 s, policies: {promised: {classes: [{name: gold, slice: gold, guarantee: {rate: 3 Mbit/s, delay: 20 ms}}]}}}}}\n";
    let study = PATH.replace(
        "path: [access, core]\ndevices:\n  access: {model: port, port_rate: 20 Mbit/s}\n  core:",
        "dut:",
    );
    assert_snapshot!(printed(0, &format!("{study}{timeline}")));
}

/// Two scenarios of a study of populations; in the second, `gold` has as many slices as is written.
fn populations(gold: u32) -> String {
    format!(
        "
name: many
link: {{rate: 1 Gbit/s}}
dut: {{model: port}}
slices:
  gold: {{match: {{vlan: 10}}, share: 400 Mbit/s}}
  rest: {{match: {{vlan: 20}}, share: 500 Mbit/s}}
populations:
  gold: {{sends: bursts, frame: 1514 B, burst: 3028 B, every: 5 ms}}
  rest: {{sends: backlog, frame: 1514 B}}
scenarios:
  few: {{populations: {{gold: 4, rest: 10}}}}
  many: {{populations: {{gold: {gold}, rest: 200}}}}
policies:
  bounded:
    discipline: guaranteed
    guaranteed: {{counts: L1, largest_frame: 1546 B}}
    classes:
      - {{name: gold, slice: gold, guarantee: {{rate: 10 Mbit/s, burst: 3092 B, delay: 2 ms}}}}
      - {{name: rest, slice: rest}}
repetitions: 1
duration: 50 ms
"
    )
}

#[test]
fn populations_are_planned_with_the_slices_of_each_scenario() {
    assert_snapshot!(printed(0, &populations(60)));
    let output = run(&populations(60), &["--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let left: Vec<(&str, u64)> = json["plans"]
        .as_array()
        .unwrap()
        .iter()
        .map(|plan| {
            let left = plan["rate_left_bits_per_second"].as_u64().unwrap();
            (plan["scenario"].as_str().unwrap(), left)
        })
        .collect();
    assert_eq!(left, [("few", 960_000_000), ("many", 400_000_000)]);
    assert_snapshot!(mistakes(&populations(120)), @"
    error: under policy `bounded`: guarantees 1.2 Gbit/s (L1), but only 1 Gbit/s (L1) of the link is free: write 80 such slices
      --> plan.yaml:13:30
       |
    13 |   many: {populations: {gold: 120, rest: 200}}
       |                              ^^^

    error: 1 mistake in plan.yaml
    ");
}

#[test]
fn the_largest_frame_is_one_that_the_layer_counted_can_have() {
    let plan = |settings: &str| {
        format!("link: 1 Gbit/s\n{settings}\nslices: {{a: {{guarantee: 1 Mbit/s}}}}\n")
    };
    assert_snapshot!(mistakes(&plan("counts: L1\nlargest_frame: 60 B")), @"
    error: largest_frame: 60 B is outside 84 B to 65.581 kB, the shortest and the longest frame as L1 counts them
     --> plan.yaml:3:16
      |
    3 | largest_frame: 60 B
      |                ^^^^

    error: 1 mistake in plan.yaml
    ");
    assert_snapshot!(mistakes(&plan("counts: L3\nlargest_frame: 65536 B")), @"
    error: largest_frame: 65.536 kB is outside 38 B to 65.535 kB, the shortest and the longest frame as L3 counts them
     --> plan.yaml:3:16
      |
    3 | largest_frame: 65536 B
      |                ^^^^^^^

    error: 1 mistake in plan.yaml
    ");
    for least in [
        "counts: L1\nlargest_frame: 84 B",
        "largest_frame: 60 B",
        "counts: L3\nlargest_frame: 38 B",
    ] {
        assert_eq!(run(&plan(least), &[]).status.code(), Some(0), "{least}");
    }
}
