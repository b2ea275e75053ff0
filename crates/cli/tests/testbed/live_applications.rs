//! Applications over the TCP of this machine, through the gateway and through the kernel.
//!
//! As for other runs on real packets, no delay is judged: a slice with priority loses nothing, and the rest gets what is
//! left of the link.

use crate::bench::Bench;
use serde_json::Value;

/// A link of 20 Mbit/s for transfers that take what they get, and requests that need little. VLAN tags are those of both
/// directions.
const STUDY: &str = "
name: applications
link: {rate: 1 Gbit/s}
dut: {model: port, port_rate: 20 Mbit/s}
slices:
  gold: {match: {vlan: 10}, share: 50 %, guaranteed: true}
  rest: {match: {vlan: 20}, share: 50 %}
sources:
  web:
    slice: gold
    headers: {vlan: 10, source: 10.0.10.2, destination: 10.0.10.3, protocol: tcp}
    application: {kind: requests, rate: 100 /s, connections: 10, response: 2 kB}
  slow:
    slice: gold
    headers: {vlan: 10, source: 10.0.10.2, destination: 10.0.10.3, protocol: tcp, source_port: 81, destination_port: 40000}
    transport: {congestion: reno}
    application: {kind: short_flows, clients: 2, response: 10 kB, pause: 50 ms, service_time: 1 ms}
  files:
    slice: rest
    headers: {vlan: 20, source: '2001:db8:20::2', destination: '2001:db8:20::3', protocol: tcp}
    transport: {congestion: reno}
    application: {kind: bulk, flows: 2}
  film:
    slice: rest
    headers: {vlan: 20, source: '2001:db8:20::2', destination: '2001:db8:20::3', protocol: tcp, source_port: 82, destination_port: 41000}
    application: {kind: video, ladder: [200 kbit/s, 400 kbit/s], segment: 500 ms, buffer: 2 s}
scenarios:
  one: {reference: true}
policies:
  none: {none: true}
  priority:
    classes:
      - {name: gold, slice: gold, priority: {}}
repetitions: 1
duration: 3 s
";

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// What every application got under a policy.
fn assert_all_work(record: &Value, policy: &str) {
    let applications = record["applications"].as_array().unwrap();
    let [web, slow, files, film] = applications.as_slice() else {
        panic!("{applications:?}");
    };
    for application in applications {
        assert!(application.get("failures").is_none(), "{application}");
        let transport = &application["transport"];
        assert!(number(&transport["goodput_bits_per_second"]) > 0.0);
        assert!(number(&transport["rtt_samples"]) > 0.0, "{application}");
    }
    assert_eq!(number(&web["transport"]["connections"]), 10.0);
    assert_eq!(number(&files["transport"]["connections"]), 2.0);
    assert!(number(&slow["flows"]["completed"]) > 5.0, "{slow}");
    assert!(number(&film["video"]["segments"]) > 2.0, "{film}");
    // The link carries 20 Mbit/s with all headers, and the other applications need a tenth of it.
    let goodput = number(&files["transport"]["goodput_bits_per_second"]);
    assert!((9e6..19e6).contains(&goodput), "{files}");
    let goodput = files["series"]["goodput_bytes"].as_array().unwrap();
    assert!(goodput.iter().map(number).sum::<f64>() > 3_000_000.0);
    if policy == "priority" {
        let requests = &web["requests"];
        assert!(number(&requests["achieved_per_second"]) > 80.0, "{web}");
        assert_eq!(record["slices"][0]["whole"]["lost_frames"], 0);
        assert_eq!(number(&web["transport"]["timeouts"]), 0.0, "{web}");
    }
}

fn assert_runs_on(device: &str) {
    let Some(bench) = Bench::new() else { return };
    bench.sandbox.write("study.yaml", STUDY);
    bench.stderr(0, &["--on", device, "--out", "out"]);
    bench.assert_cleared_up();
    for policy in ["none", "priority"] {
        let record = bench.record("out", &format!("{policy}/one"), 0).unwrap();
        assert_all_work(&record, policy);
        assert!(number(&record["live"]["baseline"]["samples"]) > 20.0);
    }
    // What TCP would have sent next depends on what became of it.
    assert!(bench.record("out/replay", "none/one", 0).is_none());
}

#[test]
fn applications_use_real_tcp_through_the_gateway() {
    assert_runs_on("gateway");
}

#[test]
fn applications_use_real_tcp_through_the_kernel() {
    assert_runs_on("tc");
}

#[test]
fn hosts_have_one_largest_buffer_and_a_study_that_asks_for_two_is_refused() {
    let Some(bench) = Bench::new() else { return };
    let other = "congestion: reno, receive_buffer: 1 MiB}\n    application: {kind: bulk";
    let study = STUDY.replace("congestion: reno}\n    application: {kind: bulk", other);
    bench.sandbox.write("study.yaml", study);
    let stderr = bench.stderr(2, &["--on", "gateway"]);
    assert!(stderr.contains("have different buffers"), "{stderr}");
    bench.assert_cleared_up();
}
