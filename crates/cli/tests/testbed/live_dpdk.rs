//! `slicewise run --on dpdk`: DPDK's scheduler with real packets, and what is refused before any is sent.
//!
//! With packets they require root, network namespaces, a compiler and DPDK 22.11. Without them each test reports that it
//! was skipped.

use crate::bench::{Bench, STUDY};
use crate::support::{Sandbox, contains, record, text, words};
use insta::assert_snapshot;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Frames per second of the thin slice.
const RATE: f64 = 1_000.0;

/// A pipe of 20 Mbit/s for each of two slices; the thin one sends 1,000 frames/s, the wide one less than its pipe forwards,
/// or half as much again.
const PIPES: &str = "
name: pipes
link: {rate: 10 Gbit/s}
dut: {model: qos_sched}
slices:
  thin: {match: {vlan: 0, inner_vlan: 3}, share: 0.2 %, guaranteed: true}
  wide: {match: {vlan: 0, inner_vlan: 0}, share: 0.2 %}
sources:
  thin:
    slice: thin
    headers: {vlan: 0, inner_vlan: 3, source: 10.0.10.2, destination: 10.0.10.12}
    pattern: cbr
    payload: 58 B
    rate: 848 kbit/s
    counts: L2
scenarios:
  alone: {reference: true}
  both:
    sources:
      wide: &wide
        slice: wide
        headers: {vlan: 0, inner_vlan: 0, source: 10.0.11.2, destination: 10.0.11.13}
        pattern: poisson
        payload: 1400 B
        rate: 30 Mbit/s
        counts: L2
  fits: {sources: {wide: {<<: *wide, rate: 15 Mbit/s}}}
policies:
  one: {dpdk: profile.cfg, dut: {burst: 1}}
  eight: {dpdk: profile.cfg, dut: {burst: 8}}
  sixty-four: {dpdk: profile.cfg, dut: {burst: 64}}
  none: {none: true}
repetitions: 1
duration: 2 s
seed: 5
";

/// All that limits traffic are the pipes.
fn profile() -> String {
    let rates = |rate: u32, period: u32| {
        let classes: String = (0..13)
            .map(|class| format!("tc {class} rate = {rate}\n"))
            .collect();
        format!("tb rate = {rate}\ntb size = 1000000\n{classes}tc period = {period}\n")
    };
    format!(
        "[port]\nframe overhead = 24\nnumber of subports per port = 1\n\
         [subport 0]\nnumber of pipes per subport = 16\nqueue sizes ={}\npipe 0-15 = 0\n\
         [subport profile 0]\n{}[pipe profile 0]\n{}\
         tc 12 oversubscription weight = 1\ntc 12 wrr weights = 1 1 1 1\n",
        " 64".repeat(13),
        rates(1_250_000_000, 10),
        rates(2_500_000, 40)
    )
}

fn bench() -> Option<Bench> {
    let version = Command::new("pkg-config")
        .args(["--modversion", "libdpdk"])
        .output();
    let has_library = version.is_ok_and(|it| text(&it.stdout).starts_with("22.11"));
    if !has_library || Command::new("cc").arg("--version").output().is_err() {
        let missing = "gcc, pkg-config and libdpdk-dev of DPDK 22.11 are not installed";
        let required = std::env::var("SLICEWISE_REQUIRE").unwrap_or_default();
        let is_required = required.split(',').any(|word| word == "dpdk");
        assert!(!is_required, "SLICEWISE_REQUIRE={required}, but {missing}");
        eprintln!("skipped: {missing}");
        return None;
    }
    let bench = Bench::new()?;
    bench.sandbox.write("study.yaml", PIPES);
    bench.sandbox.write("profile.cfg", profile());
    Some(bench)
}

fn whole(bench: &Bench, cell: &str, slice: usize) -> Value {
    bench.record("out", cell, 0).unwrap()["slices"][slice]["whole"].clone()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn a_thin_slice_waits_for_a_whole_burst_and_less_where_others_complete_it() {
    let Some(bench) = bench() else { return };
    let scenarios = ["--scenario", "alone", "--scenario", "fits"];
    let arguments = [&["--on", "dpdk", "--out", "out"], &scenarios[..]].concat();
    let stderr = bench.stderr(0, &arguments);
    contains(
        &stderr,
        "none: not on dpdk: only policies written as profile files",
    );
    contains(&stderr, "measuring 6 runs on dpdk");
    bench.assert_cleared_up();
    for (policy, burst) in [("one", 1.0), ("eight", 8.0), ("sixty-four", 64.0)] {
        let alone = whole(&bench, &format!("{policy}/alone"), 0);
        let beside = whole(&bench, &format!("{policy}/fits"), 0);
        // The first of a burst waits (b - 1) / r and the last not at all. What the machine adds is not judged closely.
        let expected_ms = (burst - 1.0) / RATE / 2.0 * 1e3;
        let median_ms = number(&alone["delay"]["p50_ns"]) / 1e6;
        let range = 0.85 * expected_ms - 0.1..1.3 * expected_ms + 2.0;
        assert!(range.contains(&median_ms), "{policy}: {median_ms} ms");
        assert_eq!(number(&alone["lost_frames"]), 0.0, "{policy}");
        assert_eq!(number(&beside["lost_frames"]), 0.0, "{policy}");
        // The other slice sends 1,300 frames/s. Of one beyond the rate of its pipe nothing leaves between the credits of two
        // periods, and bursts of 8 are as late as alone.
        if burst > 1.0 {
            let median_beside_ms = number(&beside["delay"]["p50_ns"]) / 1e6;
            let most_ms = 0.6 * median_ms + 0.3;
            assert!(
                median_beside_ms < most_ms,
                "{policy}: {median_beside_ms} ms"
            );
        }
    }
}

#[test]
fn policies_that_differ_by_threads_alone_are_measured_once_on_a_device_without_threads() {
    let Some(bench) = bench() else { return };
    let without_device = PIPES.replace(", dut: {burst: 64}", "");
    bench.sandbox.write("study.yaml", without_device);
    let policies = ["one", "eight", "sixty-four", "none"].map(|policy| ["--policy", policy]);
    let one_run = ["--on", "gateway", "--scenario", "alone", "--out", "out"];
    let stderr = bench.stderr(0, &[&one_run[..], policies.as_flattened()].concat());
    for policy in ["eight", "sixty-four"] {
        let left_out = "not on gateway: it differs from one by the device that is modelled";
        let left_out = format!("{policy}: {left_out}");
        contains(&stderr, &left_out);
    }
    contains(&stderr, "measuring 2 runs on gateway");
    let listed = record(&bench.sandbox.path("out/unsupported.json")).to_string();
    contains(&listed, "\"eight\"");
    assert!(!listed.contains("\"none\""), "{listed}");
    // Alone it stands for itself.
    let alone = [&one_run[..4], &["--policy", "eight", "--out", "alone"]].concat();
    let stderr = bench.stderr(0, &alone);
    contains(&stderr, "measuring 1 runs on gateway");
}

#[test]
fn what_a_full_queue_drops_is_counted_by_pipe_and_is_what_does_not_arrive() {
    let Some(bench) = bench() else { return };
    let one = ["--policy", "eight", "--scenario", "both", "--out", "out"];
    bench.stderr(0, &[&["--on", "dpdk"], &one[..]].concat());
    let record = bench.record("out", "eight/both", 0).unwrap();
    let device = record["live"]["device"].as_str().unwrap();
    assert!(device.starts_with("DPDK 22.11."), "{device}");
    let drops = record["drops"].as_array().unwrap();
    assert_eq!(drops.len(), 1, "{drops:?}");
    assert_eq!(drops[0]["class"], "subport 0 pipe 0 tc 12 queue 1");
    assert_eq!(drops[0]["reason"], "queue_full");
    let wide = &record["slices"][1]["whole"];
    assert!(number(&wide["lost_frames"]) > 0.2 * number(&wide["sent_frames"]));
    // The queue also drops what is sent before and after the measured time, if anything is.
    assert!(number(&drops[0]["frames"]) >= number(&wide["lost_frames"]));
}

#[test]
fn early_detection_drops_on_the_device_and_is_a_reason_of_its_own() {
    let Some(bench) = bench() else { return };
    let curve = |class: u32| {
        format!(
            "tc {class} wred min = 4 4 4\ntc {class} wred max = 8 8 8\n\
             tc {class} wred inv prob = 1 1 1\ntc {class} wred weight = 1 1 1\n"
        )
    };
    let curves: String = (0..13).map(curve).collect();
    let with_red = format!("{}[red]\n{curves}", profile());
    bench.sandbox.write("profile.cfg", with_red);
    let one = ["--policy", "eight", "--scenario", "both", "--out", "out"];
    bench.stderr(0, &[&["--on", "dpdk"], &one[..]].concat());
    let record = bench.record("out", "eight/both", 0).unwrap();
    let drops = record["drops"].as_array().unwrap();
    let early = drops.iter().find(|drop| drop["reason"] == "red");
    let early = early.unwrap_or_else(|| panic!("{drops:?}"));
    assert_eq!(early["class"], "subport 0 pipe 0 tc 12 queue 1");
    assert!(number(&early["frames"]) > 100.0, "{drops:?}");
}

#[test]
fn each_subport_has_the_profile_that_is_written_for_it() {
    let Some(bench) = bench() else { return };
    let first = profile();
    let slow = first.replace("subport profile 0", "subport profile 1");
    let (_, slow) = slow.split_once("[subport profile 1]").unwrap();
    let (slow, _) = slow.split_once("[pipe profile 0]").unwrap();
    let slow = (slow.replace("1250000000", "250000")).replace("1000000\n", "10000\n");
    let (_, subport) = first.split_once("[subport 0]").unwrap();
    let (subport, _) = subport.split_once("[subport profile 0]").unwrap();
    let both = first.replace("per port = 1\n", "per port = 2\nsubport 1 = 1\n");
    let both = format!("{both}[subport 1]{subport}[subport profile 1]{slow}");
    bench.sandbox.write("profile.cfg", both);
    // 30 Mbit/s to a subport of 2 Mbit/s.
    let study = PIPES.replace("{vlan: 0, inner_vlan: 0", "{vlan: 1, inner_vlan: 0");
    bench.sandbox.write("study.yaml", study);
    let one = ["--policy", "eight", "--scenario", "both", "--out", "out"];
    bench.stderr(0, &[&["--on", "dpdk"], &one[..]].concat());
    let thin = whole(&bench, "eight/both", 0);
    assert_eq!(number(&thin["lost_frames"]), 0.0);
    let wide = whole(&bench, "eight/both", 1);
    let lost = number(&wide["lost_frames"]) / number(&wide["sent_frames"]);
    assert!(lost > 0.8, "{lost}");
}

#[test]
fn an_interface_that_goes_while_the_device_runs_is_named_and_the_run_is_done_again() {
    let Some(bench) = bench() else { return };
    let one = words("--on dpdk --policy one --scenario alone --out out");
    let mut running = bench.start(&one);
    running.wait_for("measuring 1 runs");
    running.child(&["tcpdump", "in"]);
    let device = (bench.namespaces().into_iter()).find(|name| name.ends_with("-device"));
    let down = Command::new("ip")
        .args(["-n", &device.unwrap(), "link", "set", "right", "down"])
        .status();
    assert!(down.unwrap().success());
    let (status, stderr) = running.end();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert!(
        stderr
            .contains("rejected: one / alone, repetition 0: the program around librte_sched ended"),
        "{stderr}"
    );
    contains(&stderr, "interface right is gone or down");
    bench.assert_cleared_up();
}

/// A sandbox with programs that exist and do nothing, and a library of this version.
fn sandbox(version: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", STUDY);
    let answer = format!("#!/bin/sh\necho {version}\n");
    for tool in ["ip", "tc", "iperf3", "tcpdump", "cc", "pkg-config"] {
        sandbox.write(&format!("bin/{tool}"), &answer);
        let path = sandbox.path(&format!("bin/{tool}"));
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    sandbox
}

fn refused(sandbox: &Sandbox) -> String {
    let mut command = sandbox.command(&["run", "study.yaml", "--on", "dpdk"]);
    let output = command.env("PATH", sandbox.path("bin")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    text(&output.stderr)
}

#[test]
fn what_the_device_is_compiled_with_is_named_where_it_is_missing_or_of_another_version() {
    assert_snapshot!(refused(&sandbox("24.11.2")), @"error: DPDK 24.11.2 is installed, and the device of `--on dpdk` is written for 22.11: use Debian 12, whose libdpdk-dev it is, or point PKG_CONFIG_PATH to a build of 22.11");
    let without = sandbox("22.11.11");
    for tool in ["cc", "pkg-config"] {
        std::fs::remove_file(without.path(&format!("bin/{tool}"))).unwrap();
    }
    assert_snapshot!(refused(&without), @"error: the device of `--on dpdk` is compiled here, with programs that are not installed: cc, pkg-config; apt-get install gcc pkg-config libdpdk-dev");
}
