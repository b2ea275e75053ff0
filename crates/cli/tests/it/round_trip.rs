//! A simulated run and the captures of it tell the same, field by field.

use crate::support::{Sandbox, is_installed, records_below, words};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Tags tell the slices apart; the port is overloaded, and a source pauses.
const TAGGED: &str = "
name: tagged
link: {rate: 1 Gbit/s}
dut: {model: port, port_rate: 10 Mbit/s}
slices:
  critical: {match: {vlan: 10}, share: 50 %, guaranteed: true, headers: {vlan: 10}}
  rest: {match: {vlan: 20}, share: 50 %, headers: {vlan: 20}}
sources:
  critical: {slice: critical, pattern: iperf3, payload: 1000 B, rate: 40 %}
  second: {slice: critical, pattern: cbr, payload: 200 B, rate: 2 %, headers: {source_port: 50000}}
  rest: {slice: rest, pattern: poisson, payload: 1000 B, on_off: {on_for: 600 ms, off_for: 400 ms}}
scenarios:
  calm: {reference: true, sources: {rest: {rate: 40 %}}}
  crowded: {sources: {rest: {rate: 120 %}}}
policies:
  shared: {none: true}
  first:
    classes:
      - {name: critical, slice: critical, priority: {rate: 5 Mbit/s}}
repetitions: 2
duration: 3 s
seed: 7
measure: {bin: 50 ms}
";

/// Two tags, both versions of IP; what exceeds a policer is marked anew on the way.
const REMARKED: &str = "
name: remarked
link: {rate: 1 Gbit/s}
dut: {model: port, port_rate: 10 Mbit/s}
slices:
  gold: {match: {vlan: 10, inner_vlan: 7}, share: 60 %, guaranteed: true}
  six: {match: {vlan: 10, inner_vlan: 8}, share: 40 %}
sources:
  gold: {slice: gold, pattern: cbr, rate: 50 %, payload: 1000 B, headers: {vlan: 10, inner_vlan: 7, dscp: af11}}
  six: {slice: six, pattern: poisson, rate: 60 %, payload: 500 B, headers: {vlan: 10, inner_vlan: 8, dscp: af21, source: '2001:db8::1', destination: '2001:db8::2'}}
  tcp: {slice: six, pattern: cbr, rate: 5 %, payload: 300 B, headers: {vlan: 10, inner_vlan: 8, protocol: tcp}}
scenarios:
  heavy: {reference: true}
policies:
  marked:
    classes:
      - {name: gold, slice: gold, minimum: 60 %, police: {rate: 2 Mbit/s, exceed: set_dscp af13}}
      - {name: six, slice: six, queue_limit: 20 packets}
repetitions: 2
duration: 2 s
seed: 3
";

/// Run `study` with captures into `wire`, and say what was printed of verdicts.
fn simulated(sandbox: &Sandbox, study: &str, more: &[&str]) -> String {
    sandbox.write("study.yaml", study);
    let run = words("run study.yaml --captures wire --out simulated");
    verdicts(&sandbox.succeeded(&[&run[..], more].concat()).0)
}

/// Analyse what is in `wire`.
fn analysed(sandbox: &Sandbox, out: &str) -> String {
    let analyse = [
        "analyse",
        "--runs",
        "wire",
        "--slices",
        "study.yaml",
        "--out",
        out,
    ];
    verdicts(&sandbox.succeeded(&analyse).0)
}

/// The first table: it ends with an empty line.
fn verdicts(printed: &str) -> String {
    printed.split("\n\n").next().unwrap().to_owned()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Every figure of every run is the same. What only one of the two can know is left out: the digest and
/// the seed a run drew from, the device's own counters of drops, time in its scheduler, and how captures were measured.
fn assert_same_records(sandbox: &Sandbox, out: &str, runs: usize) {
    let records = |results: &str| {
        let runs = sandbox.path(results).join("runs");
        let records = records_below(&runs).into_iter();
        let parsed = records.map(|(file, line)| {
            let record: Value = serde_json::from_str(&line).unwrap();
            (file.strip_prefix(&runs).unwrap().to_owned(), record)
        });
        let mut parsed: Vec<_> = parsed.collect();
        parsed.sort_by_key(|(file, record)| (file.clone(), record["key"]["repetition"].as_u64()));
        parsed
    };
    let (simulated, analysed) = (records("simulated"), records(out));
    assert_eq!((simulated.len(), analysed.len()), (runs, runs));
    for ((name, mut ours), (other, mut captured)) in simulated.into_iter().zip(analysed) {
        assert_eq!(name, other);
        assert!(captured["capture"]["matched_frames"].as_u64().unwrap() > 0);
        let unsure = ["ambiguous_sent_frames", "unsent_frames", "duplicate_frames"];
        for count in unsure {
            assert_eq!(captured["capture"][count], 0, "{count}");
        }
        for slice in ours["slices"].as_array_mut().unwrap() {
            let scheduler = slice.as_object_mut().unwrap().remove("scheduler");
            assert!(scheduler.unwrap()["delay_max_ns"].as_u64() > Some(0));
        }
        for record in [&mut ours, &mut captured] {
            let record = record.as_object_mut().unwrap();
            for field in words("sha256 drops capture flows hops") {
                record.remove(field);
            }
            let key = record["key"].as_object_mut().unwrap();
            key.remove("seed");
            key.remove("inputs");
        }
        if let Some(place) = difference(&ours, &captured, String::new()) {
            panic!("{}: {place}", name.display());
        }
    }
}

/// Where two values first differ.
fn difference(a: &Value, b: &Value, place: String) -> Option<String> {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) if x.len() == y.len() => x
            .iter()
            .find_map(|(key, value)| difference(value, y.get(key)?, format!("{place}.{key}")))
            .or_else(|| (a != b).then(|| format!("{place}: other fields"))),
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            let mut pairs = x.iter().zip(y).enumerate();
            pairs.find_map(|(index, (a, b))| difference(a, b, format!("{place}[{index}]")))
        }
        _ => (a != b).then(|| format!("{place}: {a} simulated, {b} from captures")),
    }
}

/// Frames lost in all runs.
fn lost(sandbox: &Sandbox) -> u64 {
    let of_run = |(_, line): &(PathBuf, String)| {
        let run: Value = serde_json::from_str(line).unwrap();
        let slices = run["slices"].as_array().unwrap().clone();
        let of_slice = |slice: &Value| slice["whole"]["lost_frames"].as_u64().unwrap();
        slices.iter().map(of_slice).sum::<u64>()
    };
    let runs = records_below(&sandbox.path("simulated/runs"));
    runs.iter().map(of_run).sum()
}

#[test]
fn captures_of_96_bytes_a_frame_give_back_every_figure_of_tagged_slices() {
    let sandbox = Sandbox::new();
    let stderr = simulated(&sandbox, TAGGED, &[]);
    assert!(lost(&sandbox) > 0, "loss is what is hard to tell");
    assert_eq!(analysed(&sandbox, "analysed"), stderr);
    assert_same_records(&sandbox, "analysed", 8);
    the_same_after_compression(&sandbox, &stderr);
}

fn the_same_after_compression(sandbox: &Sandbox, stderr: &str) {
    for (program, suffix) in [("gzip", "gz"), ("zstd", "zst")] {
        if !is_installed(program) {
            eprintln!("skipped: {program} is not installed");
            continue;
        }
        for file in files_below(&sandbox.path("wire")) {
            // What was compressed before is compressed the other way.
            let plain = file.with_file_name(
                file.file_name()
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .replace(".gz", ""),
            );
            if plain != file {
                let done = Command::new("gzip").arg("-d").arg(&file).status().unwrap();
                assert!(done.success());
            }
            let mut compress = Command::new(program);
            if program == "zstd" {
                compress.args(["-q", "--rm"]);
            }
            assert!(compress.arg(&plain).status().unwrap().success());
        }
        let captures = files_below(&sandbox.path("wire"));
        assert!(
            captures
                .iter()
                .all(|file| file.extension().unwrap() == suffix)
        );
        assert_eq!(analysed(sandbox, suffix), stderr, "{program}");
        assert_same_records(sandbox, suffix, 8);
    }
}

#[test]
fn whole_frames_of_two_tags_and_ipv6_give_back_every_figure_though_they_are_remarked() {
    let sandbox = Sandbox::new();
    let stderr = simulated(&sandbox, REMARKED, &["--snap-length", "2000"]);
    assert!(lost(&sandbox) > 0, "loss is what is hard to tell");
    assert_eq!(analysed(&sandbox, "analysed"), stderr);
    assert_same_records(&sandbox, "analysed", 2);
    let records = sandbox.read("analysed/runs/marked/heavy.jsonl");
    let run: Value = serde_json::from_str(records.lines().next().unwrap()).unwrap();
    let flows = run["flows"].clone();
    let vlans = |flow: &Value| flow["flow"]["vlans"].clone();
    let vlans: Vec<Value> = flows.as_array().unwrap().iter().map(vlans).collect();
    assert_eq!(vlans.len(), 3, "a flow that is remarked is one flow");
    assert!(vlans.contains(&serde_json::json!([10, 7])));
}
