//! Cases and points of studies in which nothing is promised: their measured figures are shown.

use crate::support::{Sandbox, contains, words};

/// Transfers through a queue, whose slice is promised nothing.
const STUDY: &str = "
name: transfers
title: Short transfers through a queue
link: {rate: 1 Gbit/s}
dut: {model: port, port_rate: 10 Mbit/s}
slices:
  web: {match: {vlan: 10}, headers: {vlan: 10}}
sources:
  web: {slice: web, application: {kind: short_flows, clients: 3, response: 50 kB, pause: 100 ms}}
scenarios:
  all: {}
policies:
  tail-drop: {classes: [{name: class-default, queue_limit: 16 packets}]}
  codel: {classes: [{name: class-default, codel: {}}]}
repetitions: 2
duration: 2 s
";

fn sandbox(more: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", format!("{STUDY}{more}"));
    sandbox
}

const SWEEP: &str = "sweep:
  axes:
    buffer: {path: 'policies.tail-drop.classes[class-default].queue_limit', values: [4 packets, 64 packets]}
    propagation: {path: link.propagation, values: [0 s, 5 ms]}
";

#[test]
fn a_sweep_in_which_nothing_is_promised_shows_what_was_measured() {
    let sandbox = sandbox(SWEEP);
    let (checked, _) = sandbox.succeeded(&words("check study.yaml"));
    assert!(!checked.contains("cannot show"), "{checked}");
    let (printed, noted) = sandbox.succeeded(&words("run study.yaml --out out"));
    assert!(!noted.contains("cannot show"), "{noted}");
    let (_, table) = printed
        .split_once("99th percentile of completion time of web")
        .unwrap();
    insta::assert_snapshot!(table.split("\n\n").next().unwrap(), @r"
    , by buffer
    ───────────────────────────────────────────────
     policy     propagation  4 packets  64 packets
    ═══════════════════════════════════════════════
     tail-drop  0 s           559.7 ms    105.8 ms
     tail-drop  5 ms          239.6 ms    151.8 ms
     codel      0 s           105.1 ms    105.1 ms
     codel      5 ms          157.6 ms    157.6 ms
    ───────────────────────────────────────────────
    ");
    let page = sandbox.read("out/report.html");
    contains(
        &page,
        "No slice has a guarantee or an objective, so nothing is judged.",
    );
    assert!(!page.contains("not tested"));
}

#[test]
fn a_sweep_has_the_results_of_applications_in_tables_with_its_axes() {
    let sandbox = sandbox(SWEEP);
    sandbox.succeeded(&words("run study.yaml --out out"));
    let runs = sandbox.read("out/data/applications.csv");
    let columns = "case,axis_buffer,axis_propagation,policy,scenario,";
    assert!(runs.starts_with(columns), "{runs}");
    // Two values of each axis, two policies and two repetitions.
    assert_eq!(runs.lines().count(), 1 + 16);
    let cells = sandbox.read("out/data/application_cells.csv");
    assert!(cells.starts_with(columns), "{cells}");
    let row = "\"buffer-4packets_propagation-5ms\",4.0,5.0,\"tail-drop\",\"all\",\"web\",\"web\",\"completion_time_p99_ns\",2,";
    contains(&cells, row);
    assert!(sandbox.path("out/data/application_cells.parquet").exists());
    // Other points without applications leave none behind.
    let packets = STUDY.replace(
        "application: {kind: short_flows, clients: 3, response: 50 kB, pause: 100 ms}",
        "pattern: cbr, rate: 10 %, payload: 1000 B",
    );
    sandbox.write("study.yaml", format!("{packets}{SWEEP}"));
    sandbox.succeeded(&words("run study.yaml --out out --replace"));
    assert!(!sandbox.path("out/data/application_cells.csv").exists());
    assert!(!sandbox.path("out/data/applications.parquet").exists());
}

#[test]
fn cases_in_which_nothing_is_promised_are_told_by_their_names_and_values() {
    let sandbox = sandbox("cases: {short: {}, long: {link: {propagation: 5 ms}}}\n");
    let (printed, _) = sandbox.succeeded(&words("run study.yaml --out out"));
    insta::assert_snapshot!(printed, @r"
    ──────────────────────────────────────────────────────────────────────────────────────────
     Case   Policy       throughput  loss_ratio  delay_p99       goodput  completion_time_p99
    ══════════════════════════════════════════════════════════════════════════════════════════
     short  tail-drop  7.671 Mbit/s      13.1 %   20.91 ms  7.284 Mbit/s             307.8 ms
     short  codel      8.682 Mbit/s     0.063 %   40.65 ms  8.243 Mbit/s             105.1 ms
     long   tail-drop  5.382 Mbit/s      7.28 %   30.09 ms   5.11 Mbit/s             421.5 ms
     long   codel      5.582 Mbit/s     0.098 %   53.49 ms    5.3 Mbit/s             157.6 ms
    ──────────────────────────────────────────────────────────────────────────────────────────

    No slice has a guarantee or an objective, so nothing is judged.

    Report: out/report.html
    ");
    let page = sandbox.read("out/report.html");
    contains(&page, "<a href=\"transfers-long/report.html\">long</a>");
    contains(&page, ">completion_time_p99</th>");
    // Once as the heading, and as that of the window.
    assert_eq!(page.matches("Short transfers through a queue").count(), 2);
    let (json, _) = sandbox.succeeded(&words("report out --json"));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let measured = json["transfers-long"]["measured"].as_array().unwrap();
    let of = |quantity: &str| {
        let mut own = measured.iter().filter(|of| of["policy"] == "codel");
        own.find(|of| of["quantity"] == quantity).unwrap()
    };
    assert_eq!(of("completion_time_p99")["unit"], "ns");
    assert_eq!(of("completion_time_p99")["repetitions"], 2);
    assert!(of("goodput")["interval_high"].as_f64().unwrap() > 0.0);
}
