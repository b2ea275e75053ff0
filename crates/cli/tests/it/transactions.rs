//! `slicewise run --transactions`: exact rows, beside records that stay what they are.

use crate::shards::{assert_same, collect_into, contents};
use crate::support::seal::sealed;
use crate::support::small_study::STUDY;
use crate::support::{Sandbox, contains, files_with, words};
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::{self, File};
use std::path::Path;

pub const WEB: &str = "
name: web
link: {rate: 1 Gbit/s, propagation: 1 ms}
dut: {model: port, port_rate: 5 Mbit/s}
slices: {web: {match: {source: 10.0.0.1}, headers: {source: 10.0.0.1, destination: 10.1.0.1}, share: 100 %}}
sources:
  calls: {slice: web, application: {kind: requests, rate: 40 /s, connections: 3, response: {exponential: 8 kB}}}
  films: {slice: web, headers: {destination: 10.1.0.4}, application: {kind: video, clients: 2, segment: 1 s, buffer: 3 s, ladder: [100 kbit/s, 400 kbit/s]}}
scenarios:
  calm: {reference: true}
  busy: {sources: {rest: {slice: web, headers: {destination: 10.1.0.5}, application: bulk}}}
policies:
  fifo: {none: true}
  short: {classes: [{name: class-default, queue_limit: 20 packets}]}
repetitions: 2
duration: 3 s
";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("web.yaml", WEB);
    sandbox
}

/// Rows of a file, as text, without what is the same in all.
fn rows(path: &Path) -> Vec<String> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| row.unwrap().to_string()).collect()
}

/// Results without what the option writes.
fn without_rows(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let all = contents(folder).into_iter();
    all.filter(|(name, _)| !name.starts_with("transactions/") && name != "report.html")
        .collect()
}

#[test]
fn transactions_are_written_for_each_run_and_change_nothing_else() {
    let sandbox = sandbox();
    sandbox.succeeded(&words("run web.yaml --out plain"));
    assert!(!sandbox.path("plain/transactions").exists());
    let (_, noted) = sandbox.succeeded(&words("run web.yaml --out rows --transactions"));
    // 120 requests and 2 × 8 segments in each run.
    contains(
        &noted,
        "transactions of 8 runs: at most about 1088 rows, 43.52 kB",
    );
    assert_eq!(
        without_rows(&sandbox.path("plain")),
        without_rows(&sandbox.path("rows"))
    );
    assert_eq!(
        files_with(&sandbox.path("rows/transactions"), "parquet").len(),
        8
    );
    let rows = rows(&sandbox.path("rows/transactions/fifo/calm/rep-001.parquet"));
    insta::assert_snapshot!(rows[0], @r#"{policy: "fifo", scenario: "calm", repetition: 1, seed: 17404594917994798675, slice: "web", source: "calls", kind: "request", connection: 0, number: 0, begins_ns: 12815841, sent_ns: 17114727, ends_ns: 46913422, bytes: 4949, quality: null}"#);
    let requests = rows.iter().filter(|row| row.contains("\"request\""));
    assert_eq!(requests.count(), 120);
    assert!(
        rows.last()
            .unwrap()
            .contains("source: \"films\", kind: \"segment\"")
    );
    // The same command finds all of it there.
    let (_, noted) = sandbox.succeeded(&words("run web.yaml --out rows --transactions"));
    contains(&noted, "8 of 8 runs were finished before and are kept");
    assert!(!noted.contains("transactions of"), "{noted}");
}

#[test]
fn runs_that_lack_them_are_carried_out_again_and_their_records_stay() {
    let sandbox = sandbox();
    sandbox.succeeded(&words("run web.yaml --out whole --transactions"));
    sandbox.succeeded(&words("run web.yaml --out later"));
    let before = contents(&sandbox.path("later/runs"));
    let (_, noted) = sandbox.succeeded(&words("run web.yaml --out later --transactions"));
    contains(
        &noted,
        "carried out again for their transactions, with records that stay: 8",
    );
    assert_eq!(contents(&sandbox.path("later/runs")), before);
    let rows = |folder: &str| contents(&sandbox.path(folder).join("transactions"));
    assert_eq!(rows("later"), rows("whole"));
    // One is lost, of another a killed process left the beginning.
    let lost = sandbox.path("later/transactions/short/busy/rep-000.parquet");
    fs::remove_file(&lost).unwrap();
    let begun = sandbox.path("later/transactions/short/busy/.rep-000.parquet.9-1.partial");
    fs::write(&begun, "PAR1").unwrap();
    let (_, noted) = sandbox.succeeded(&words("run web.yaml --out later --transactions"));
    contains(
        &noted,
        "carried out again for their transactions, with records that stay: 1",
    );
    contains(&noted, "7 of 8 runs were finished before and are kept");
    assert_eq!(rows("later"), rows("whole"));
    assert_eq!(contents(&sandbox.path("later/runs")), before);
}

#[test]
fn a_run_that_comes_out_otherwise_than_its_record_replaces_nothing() {
    let sandbox = sandbox();
    sandbox.succeeded(&words("run web.yaml --policy fifo --scenario calm"));
    let name = "results/web/runs/fifo/calm.jsonl";
    let text = sandbox.read(name);
    let changed = text.replacen("\"recoveries\":0", "\"recoveries\":1", 1);
    assert_ne!(changed, text);
    let lines: Vec<String> = changed.lines().map(sealed).collect();
    let changed = format!("{}\n", lines.join("\n"));
    sandbox.write(name, &changed);
    let run = "run web.yaml --policy fifo --scenario calm --transactions";
    let error = sandbox.refused(1, &words(run));
    contains(&error, "error: policy fifo, scenario calm, repetition 1: ");
    contains(
        &error,
        "the run came out otherwise than its record, which stays",
    );
    assert_eq!(sandbox.read(name), changed);
    let there = files_with(&sandbox.path("results/web/transactions"), "parquet");
    assert_eq!(there.len(), 1, "{there:?}");
}

#[test]
fn shards_are_collected_with_their_transactions() {
    let sandbox = sandbox();
    sandbox.succeeded(&words("run web.yaml --out whole --transactions"));
    let shards = ["1/2", "2/2"].map(|shard| {
        let out = format!("shard-{}", &shard[..1]);
        sandbox.succeeded(&[
            "run",
            "web.yaml",
            "--transactions",
            "--shard",
            shard,
            "--out",
            &out,
        ]);
        out
    });
    let (_, noted) = sandbox.succeeded(&collect_into("all", &shards));
    contains(&noted, "transactions of 8 runs were copied with them");
    for host in ["whole/host.json", "all/host.json"] {
        let _ = fs::remove_file(sandbox.path(host));
    }
    sandbox.succeeded(&words("report whole"));
    sandbox.succeeded(&words("report all"));
    assert_same(&sandbox, "whole", "all");
    // Records came first, from shards without them.
    sandbox.succeeded(&words("run web.yaml --out late"));
    let (_, noted) = sandbox.succeeded(&collect_into("late", &shards[..1]));
    contains(&noted, "transactions of 4 runs were copied with them");
    assert_eq!(
        files_with(&sandbox.path("late/transactions"), "parquet").len(),
        4
    );
}

#[test]
fn cases_with_the_same_runs_have_transactions_each() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "web.yaml",
        format!("{WEB}cases:\n  one: {{}}\n  judged: {{margins: {{loss: 1 %}}}}\n"),
    );
    sandbox.succeeded(&words(
        "run web.yaml --policy fifo --transactions --out out",
    ));
    for case in ["web-one", "web-judged"] {
        let there = files_with(
            &sandbox.path("out").join(case).join("transactions"),
            "parquet",
        );
        assert_eq!(there.len(), 4, "{case}");
        assert!(there.iter().all(|file| rows(file).len() > 120), "{case}");
    }
}

#[test]
fn transactions_that_cannot_be_written_are_refused_before_any_run() {
    let sandbox = sandbox();
    let refused = |arguments: &str| sandbox.refused(2, &words(arguments));
    let long = WEB.replace("duration: 3 s", "duration: 10 h");
    sandbox.write("long.yaml", long.replace("40 /s", "10000000 /s"));
    let error = refused("run long.yaml --transactions --repetitions 10000");
    // 360,000 million requests in each of 40,000 runs.
    contains(
        &error,
        "\nerror: `--transactions` would write about 1440000",
    );
    contains(&error, " rows, 576100000 GB, ");
    contains(
        &error,
        " GB free: choose another folder (`--out DIR`), or fewer runs",
    );
    assert!(!sandbox.path("results/web/runs").exists());
    sandbox.write("small.yaml", STUDY);
    insta::assert_snapshot!(refused("run small.yaml --transactions"), @"error: these runs have no transactions, which are requests, flows of a given size and segments of a video: leave out `--transactions`, or add a source with an `application` that has them");
    insta::assert_snapshot!(refused("run web.yaml --transactions --seeds 3"), @"error: `--seeds` keeps no runs: for the transactions of those of one seed, use `--seed N --transactions`");
    #[cfg(feature = "linux")]
    insta::assert_snapshot!(refused("run web.yaml --transactions --on gateway"), @"error: `--transactions` is for the simulator: leave it out, or leave out `--on`");
}

#[test]
fn a_refusal_leaves_results_that_were_to_be_replaced() {
    let sandbox = sandbox();
    sandbox.succeeded(&words("run web.yaml --out out"));
    let before = contents(&sandbox.path("out"));
    sandbox.write("small.yaml", STUDY);
    let long = WEB.replace("duration: 3 s", "duration: 24 h");
    sandbox.write("long.yaml", long.replace("40 /s", "10000000 /s"));
    for study in ["small.yaml", "long.yaml --repetitions 10000"] {
        let run = format!("run {study} --out out --replace --transactions");
        let output = sandbox.command(&words(&run)).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{run}");
        assert_eq!(contents(&sandbox.path("out")), before, "{run}");
    }
}

#[test]
fn a_shard_whose_runs_have_no_transactions_goes_on() {
    let sandbox = sandbox();
    let steady = "calm: {reference: true, without: [calls, films], sources: {steady: {slice: web, pattern: cbr, payload: 500 B, rate: 1 Mbit/s}}}";
    sandbox.write("web.yaml", WEB.replace("calm: {reference: true}", steady));
    for shard in 1..=8 {
        sandbox.succeeded(&words(&format!(
            "run web.yaml --shard {shard}/8 --out s{shard} --transactions"
        )));
    }
    let folders: Vec<String> = (1..=8).map(|shard| format!("s{shard}")).collect();
    sandbox.succeeded(&words(&format!("collect out {}", folders.join(" "))));
    assert!(
        sandbox
            .path("out/transactions/fifo/busy/rep-001.parquet")
            .exists()
    );
    assert!(!sandbox.path("out/transactions/fifo/calm").exists());
}
