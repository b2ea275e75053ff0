//! `slicewise run --on gateway` and `--on tc`, from the command to the report, on real packets.
//!
//! They require root and network namespaces. Without them each test reports that it was skipped. A busy
//! machine makes delays longer, so none is judged here: what a policy must keep is the loss.

use crate::bench::{Bench, STUDY};
use crate::support::{contains, record, words};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// Frames of a slice that were sent, and lost.
fn frames(bench: &Bench, cell: &str, slice: usize) -> [u64; 2] {
    let record = bench.record("out", cell, 0).unwrap();
    let whole = &record["slices"][slice]["whole"];
    [number(&whole["sent_frames"]), number(&whole["lost_frames"])]
}

/// What is written down beside the figures.
fn assert_is_live(record: &Value, device: &str) {
    let live = &record["live"];
    assert!(
        live["device"].as_str().unwrap().starts_with(device),
        "{live}"
    );
    let baseline = &live["baseline"];
    assert!(number(&baseline["samples"]) > 20 && number(&baseline["p50_ns"]) > 0);
    for ratio in ["steal_ratio", "idle_ratio"] {
        let ratio = live[ratio].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&ratio), "{live}");
    }
    let versions = live["versions"].as_array().unwrap();
    for name in ["Linux", "iperf3", "tcpdump", "tc"] {
        let version = versions.iter().find(|version| version[0] == name).unwrap();
        assert!(!version[1].as_str().unwrap().is_empty(), "{version}");
    }
    let senders = live["senders"].as_array().unwrap();
    assert_eq!(senders.len(), 1);
    assert_eq!(senders[0]["source"], "bursts");
    assert!(number(&senders[0]["sent_frames"]) > 0);
}

fn assert_isolates(bench: &Bench, policy: &str) {
    for scenario in ["calm", "overload"] {
        let cell = format!("{policy}/{scenario}");
        let [sent, lost] = frames(bench, &cell, 0);
        // 6 Mbit/s of 1446 bytes for 1 s are 518.
        assert!((400..620).contains(&sent), "{cell}: {sent}");
        assert_eq!(lost, 0, "{cell}: of {sent}");
    }
    let overload = format!("{policy}/overload");
    let [sent, lost] = frames(bench, &overload, 1);
    assert!(
        lost > sent / 20,
        "{overload}: best effort loses {lost} of {sent}"
    );
}

/// Without a policy, critical waits where best effort does. Which of them then loses most depends on how the
/// phases of their senders happen to lie: it may be best effort alone.
fn assert_shares_a_queue(bench: &Bench) {
    let all = |slice| frames(bench, "none/overload", slice)[1];
    assert!(all(0) + all(1) > 100);
    assert_eq!(frames(bench, "none/calm", 0)[1], 0);
    let record = bench.record("out", "none/overload", 0).unwrap();
    let longest = number(&record["slices"][0]["whole"]["delay"]["max_ns"]);
    // The queue holds 50 ms, and is full while the bursts last.
    assert!(longest > 30_000_000, "{longest} ns");
}

fn assert_reported(results: &Path) {
    for file in words(
        "report.html prediction/study.json replay/study.json data/cells.csv data/prediction.csv data/testbed_runs.parquet",
    ) {
        let length = fs::metadata(results.join(file)).map(|file| file.len());
        assert!(
            length.as_ref().is_ok_and(|&length| length > 0),
            "{file}: {length:?}"
        );
    }
}

#[test]
fn a_study_on_the_gateway_gives_records_a_prediction_and_a_report_and_leaves_nothing_behind() {
    let Some(bench) = Bench::new() else { return };
    let out = ["--on", "gateway", "--out", "out", "--repetitions", "1"];
    let stderr = bench.stderr(0, &out);
    contains(&stderr, "measuring 6 runs on gateway");
    bench.assert_cleared_up();
    let results = bench.sandbox.path("out");
    assert_reported(&results);
    assert!(!results.join("unsupported.json").exists());
    for policy in ["none", "priority", "guaranteed"] {
        for scenario in ["calm", "overload"] {
            let cell = format!("{policy}/{scenario}");
            let record = bench.record("out", &cell, 0).unwrap();
            assert_is_live(&record, "Slicewise gateway, af_");
            assert!(number(&record["live"]["departures"]["frames"]) > 1_000);
            assert!(bench.record("out/prediction", &cell, 0).is_some());
            assert!(bench.record("out/replay", &cell, 0).is_some());
        }
    }
    assert_isolates(&bench, "priority");
    assert_isolates(&bench, "guaranteed");
    assert_shares_a_queue(&bench);

    // What is there is kept, byte for byte.
    let file = bench.records("out", "priority/overload");
    let before = fs::read(&file).unwrap();
    let stderr = bench.stderr(0, &out);
    contains(&stderr, "6 of 6 runs were finished before");
    assert_eq!(fs::read(&file).unwrap(), before);
    bench.assert_cleared_up();
}

#[test]
fn a_study_on_the_kernel_runs_what_it_can_express_and_says_why_not_the_rest() {
    let Some(bench) = Bench::new() else { return };
    let stderr = bench.stderr(0, &["--on", "tc", "--out", "out", "--repetitions", "1"]);
    contains(
        &stderr,
        "guaranteed: not on tc: class `critical`: guarantee: the kernel has no",
    );
    contains(&stderr, "measuring 4 runs on tc");
    bench.assert_cleared_up();
    assert_reported(&bench.sandbox.path("out"));
    let unsupported = record(&bench.sandbox.path("out/unsupported.json"));
    let listed = unsupported.to_string();
    contains(&listed, "\"guaranteed\"");
    contains(&listed, "reason");
    assert!(bench.record("out", "guaranteed/calm", 0).is_none());
    // It stays reported when only another policy is requested.
    let only_none = words("--on tc --out out --repetitions 1 --policy none");
    bench.stderr(0, &only_none);
    assert_eq!(
        record(&bench.sandbox.path("out/unsupported.json")),
        unsupported
    );
    for cell in words("none/calm none/overload priority/calm priority/overload") {
        assert_is_live(&bench.record("out", cell, 0).unwrap(), "Linux tc");
    }
    assert_isolates(&bench, "priority");
    assert_shares_a_queue(&bench);
    // What the captures miss at the far end is what the queues dropped.
    let overload = bench.record("out", "priority/overload", 0).unwrap();
    let drops = overload["drops"].as_array().unwrap().iter();
    let dropped: u64 = drops.map(|drop| number(&drop["frames"])).sum();
    let lost = number(&overload["slices"][1]["whole"]["lost_frames"]);
    // Queues also drop what is sent before and after the measured second.
    assert!(dropped >= lost, "{dropped} dropped, {lost} lost");
}

#[test]
fn captures_are_kept_where_they_are_asked_for() {
    let Some(bench) = Bench::new() else { return };
    let one = words("--policy priority --scenario calm --repetitions 1");
    let more = ["--on", "gateway", "--out", "out", "--captures", "captures"];
    let stderr = bench.stderr(0, &[&one[..], &more].concat());
    contains(&stderr, "captures of 1 runs are in captures");
    for end in ["sent", "received"] {
        let file = format!("captures/priority/calm/rep-000/{end}.pcap");
        let length = fs::metadata(bench.sandbox.path(&file)).unwrap().len();
        assert!(length > 50_000, "{file}: {length}");
    }
    bench.assert_cleared_up();
    let folder = bench.sandbox.path("captures/priority/calm/rep-000");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 2);
    // Real packets cannot be captured again.
    let more = words("--on gateway --out again --captures captures");
    let stderr = bench.stderr(2, &[&one[..], &more].concat());
    contains(&stderr, "sent.pcap` exists and is not replaced");
}

#[test]
fn a_timeline_reloads_the_gateway_and_changes_senders_during_a_run() {
    let Some(bench) = Bench::new() else { return };
    let timeline = "
timeline:
  settle: 250 ms
  changes:
    more:
      at: 1 s
      slices: {critical: {share: 60 %}, best-effort: {share: 40 %}}
      sources: {critical: {rate: 50 %}}
      policies:
        guaranteed:
          classes:
            - {name: critical, slice: critical, guarantee: {rate: 12 Mbit/s, burst: 16 kB, delay: 20 ms}}
";
    // Without pauses, so that frames wait whenever the change comes.
    let study = STUDY
        .replace("duration: 1 s", "duration: 2 s")
        .replace("on_off: {on_for: 250 ms, off_for: 250 ms}", "rate: 10 %");
    (bench.sandbox).write("study.yaml", format!("{study}{timeline}"));
    let one = words("--policy guaranteed --scenario overload --repetitions 1");
    let out = ["--on", "gateway", "--out", "out"];
    bench.stderr(0, &[&one[..], &out].concat());
    bench.assert_cleared_up();
    let record = bench.record("out", "guaranteed/overload", 0).unwrap();
    let phases = record["phases"].as_array().unwrap();
    assert_eq!(phases.len(), 2);
    // 6 and 10 Mbit/s of 1446 bytes, for 750 ms.
    for (phase, frames) in phases.iter().zip([388, 648]) {
        let critical = &phase["slices"][0];
        let sent = number(&critical["figures"]["sent_frames"]);
        assert!(sent.abs_diff(frames) < frames / 5, "{sent} of {frames}");
        assert_eq!(number(&critical["figures"]["lost_frames"]), 0);
        assert_eq!(number(&critical["reordered_frames"]), 0);
    }
    assert!(phases[0]["change"].is_null());
    let change = &phases[1]["change"];
    assert!(number(&change["waiting_frames"]) > 0, "{change}");
    assert_eq!(number(&change["lost_frames"]), 0);
    assert!(change["refused"].is_null(), "{change}");
}

#[test]
fn a_search_adds_points_on_real_packets_where_isolation_ceases_to_hold() {
    let Some(bench) = Bench::new() else { return };
    let study = STUDY
        .replace(
            "guaranteed: true",
            "guaranteed: true, objective: {loss: 2 %}",
        )
        .replace(
            "repetitions: 2",
            "repetitions: 1\nmargins: {rare_runs: 96 %}",
        );
    let sweep = "sweep:
  axes: {load: {path: scenarios.overload.sources.bursts.rate, values: [20 %, 120 %]}}
  refine: 50 %
";
    bench.sandbox.write("study.yaml", format!("{study}{sweep}"));
    let gateway = ["--on", "gateway", "--out", "out", "--policy", "none"];
    let stderr = bench.stderr(0, &gateway);
    contains(
        &stderr,
        "1 point between those where isolation begins or ceases to hold",
    );
    let [calm, overload] = ["calm", "overload"].map(|scenario| {
        let cell = format!("none/{scenario}");
        bench.record("out/live-load-70pct", &cell, 0)
    });
    assert!(calm.is_some() && overload.is_some());
    bench.assert_cleared_up();
}
