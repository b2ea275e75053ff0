//! The command itself, end to end: what it prints, writes and exits with.

use crate::support::small_study::STUDY;
use crate::support::{Sandbox, contains, records_below, text, words};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("small.yaml", STUDY);
    sandbox
}

fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Records with the files they lie in.
fn runs_in(folder: &Path) -> Vec<(PathBuf, String)> {
    records_below(&folder.join("runs"))
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path)
            } else {
                found.push(path)
            }
        }
    }
    found.sort();
    found
}

#[test]
fn simulated_connections_are_not_captured_and_that_is_said_before_anything_is_run() {
    let study = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/tcp-linux.yaml");
    let run = ["run", study, "--out", "out", "--captures", "wire"];
    let sandbox = sandbox();
    let output = sandbox.slicewise(&run);
    assert_eq!(output.status.code(), Some(2));
    let stderr = text(&output.stderr);
    assert_eq!(stderr.matches("cannot be captured").count(), 1, "{stderr}");
    assert!(!sandbox.path("wire").exists());
}

#[test]
fn captures_lie_where_they_were_asked_for_and_change_no_record() {
    let sandbox = sandbox();
    let run = words("run small.yaml --policy first --repetitions 1 --out");
    let with = |out: &str, more: &[&str]| {
        let output = sandbox.slicewise(&[&run[..], &[out], more].concat());
        succeeded(&output);
        text(&output.stderr)
    };
    with("plain", &[]);
    let stderr = with("captured", &["--captures", "wire", "--snap-length", "64"]);
    contains(&stderr, "captures of 2 runs are in wire");
    for scenario in ["calm", "crowded"] {
        let folder = sandbox.path("wire/first").join(scenario).join("rep-000");
        let size = |name: &str| fs::metadata(folder.join(name)).unwrap().len();
        assert!(size("sent.pcapng") >= size("received.pcapng"));
        let record = |out: &str| sandbox.read(&format!("{out}/runs/first/{scenario}.jsonl"));
        assert_eq!(record("plain"), record("captured"));
    }
    let stderr = with("captured", &["--captures", "wire"]);
    contains(&stderr, "no captures of the 2 runs kept from before");
    sandbox.refused(2, &["run", "small.yaml", "--snap-length", "96"]);
    sandbox.refused(2, &words("run small.yaml --captures wire --snap-length 20"));
}

#[test]
fn packets_of_captures_go_into_their_results_and_leave_other_folders_alone() {
    let sandbox = sandbox();
    let run = ["run", "small.yaml", "--policy", "first", "--captures"];
    let run = [&run[..], &["wire", "--repetitions", "1"]].concat();
    succeeded(&sandbox.slicewise(&run));
    let captured = "wire/first/calm/rep-000";
    let (sent, received) = (
        format!("{captured}/sent.pcapng"),
        format!("{captured}/received.pcapng"),
    );
    let ends = ["analyse", "--sent", &sent, "--received", &received];
    let stderr = [&ends[..], &["--slices", "small.yaml", "--out", "sliced"]].concat();
    let packets = |out: &str| sandbox.path(out).join("packets");
    // Slices that are found in the captures.
    let found = [&ends[..], &["--packets", "--out", "found"]].concat();
    succeeded(&sandbox.slicewise(&found));
    assert_eq!(files_below(&packets("found")).len(), 1);
    assert!(!sandbox.path("found/.packets.partial").exists());
    // Slices given by `--slices`; packets are requested only later.
    succeeded(&sandbox.slicewise(&stderr));
    assert!(!packets("sliced").exists());
    succeeded(&sandbox.slicewise(&[&stderr[..], &["--packets"]].concat()));
    assert_eq!(files_below(&packets("sliced")).len(), 1);
    // Results of something else.
    let before = files_below(&sandbox.path("results/small"));
    let other = [&ends[..], &["--packets", "--out", "results/small"]].concat();
    sandbox.refused(2, &other);
    assert_eq!(files_below(&sandbox.path("results/small")), before);
}

#[test]
fn a_study_runs_from_file_to_report() {
    let sandbox = sandbox();
    let printed = succeeded(&sandbox.slicewise(&["run", "small.yaml"]));
    contains(&printed, "isolation");
    contains(&printed, "shared");
    contains(&printed, "first");
    contains(&printed, "report.html");
    let results = sandbox.path("results/small");
    assert_eq!(runs_in(&results).len(), 2 * 2 * 3);
    let page = fs::read_to_string(results.join("report.html")).unwrap();
    assert!(
        !page.contains("<script src") && !page.contains("<link"),
        "the page stands alone"
    );
    for table in ["runs", "cells", "series", "verdicts"] {
        assert!(
            results.join("data").join(format!("{table}.csv")).exists(),
            "{table}"
        );
        assert!(
            results
                .join("data")
                .join(format!("{table}.parquet"))
                .exists(),
            "{table}"
        );
    }
}

#[test]
fn the_same_study_and_seed_give_the_same_bytes_whatever_the_number_of_jobs() {
    let sandbox = sandbox();
    succeeded(&sandbox.slicewise(&["run", "small.yaml", "--out", "one", "--jobs", "1"]));
    succeeded(&sandbox.slicewise(&["run", "small.yaml", "--out", "two", "--jobs", "3"]));
    let (one, two) = (runs_in(&sandbox.path("one")), runs_in(&sandbox.path("two")));
    let bytes = |folder: &str| {
        let files = files_below(&sandbox.path(folder).join("runs"));
        let bytes = |file: PathBuf| fs::read(file).unwrap();
        files.into_iter().map(bytes).collect::<Vec<_>>()
    };
    assert_eq!(one.len(), two.len());
    assert_eq!(bytes("one"), bytes("two"));
    succeeded(&sandbox.slicewise(&["run", "small.yaml", "--out", "three", "--seed", "8"]));
    let three = runs_in(&sandbox.path("three"));
    assert_ne!(one[0].1, three[0].1);
}

#[test]
fn the_same_command_goes_on_and_repairs_what_a_killed_run_left() {
    let sandbox = sandbox();
    succeeded(&sandbox.slicewise(&["run", "small.yaml"]));
    let results = sandbox.path("results/small");
    let runs = runs_in(&results);
    // A record that was changed, and half of the next one.
    let (file, first) = &runs[0];
    let changed = first.replacen("\"lost_frames\":0", "\"lost_frames\":1", 1);
    let half = &runs[1].1[..runs[1].1.len() / 2];
    let whole = fs::read(file).unwrap();
    fs::write(file, format!("{}\n{changed}\n{half}", runs[2].1)).unwrap();
    let output = sandbox.slicewise(&["run", "small.yaml"]);
    succeeded(&output);
    let stderr = text(&output.stderr);
    contains(&stderr, "10 of 12 runs were finished before");
    assert!(
        stderr.contains("cannot be trusted") && stderr.contains("this run is repeated"),
        "the damaged record is named: {stderr}"
    );
    assert_eq!(fs::read(file).unwrap(), whole);
    assert_eq!(runs_in(&results), runs);
}

#[test]
fn results_of_another_study_are_never_mixed_in_or_overwritten_silently() {
    let sandbox = sandbox();
    succeeded(&sandbox.slicewise(&["run", "small.yaml"]));
    let before = runs_in(&sandbox.path("results/small"));
    sandbox.write(
        "small.yaml",
        STUDY.replace("duration: 4 s", "duration: 3 s"),
    );
    let error = sandbox.refused(2, &["run", "small.yaml"]);
    assert!(
        error.contains("results") && error.contains("--"),
        "says what to do: {error}"
    );
    assert_eq!(runs_in(&sandbox.path("results/small")), before);
    succeeded(&sandbox.slicewise(&["run", "small.yaml", "--replace"]));

    fs::create_dir(sandbox.path("precious")).unwrap();
    sandbox.write("precious/letter.txt", "dear");
    sandbox.refused(2, &["run", "small.yaml", "--out", "precious"]);
    sandbox.refused(2, &["run", "small.yaml", "--out", "precious", "--replace"]);
    assert_eq!(
        fs::read_to_string(sandbox.path("precious/letter.txt")).unwrap(),
        "dear"
    );
}

#[test]
fn a_study_that_grows_runs_what_is_new_and_rewrites_nothing() {
    let sandbox = sandbox();
    let run = |study: &str, more: &[&str]| {
        sandbox.write("small.yaml", study);
        let output = sandbox.slicewise(&[&["run", "small.yaml"], more].concat());
        succeeded(&output);
        text(&output.stderr)
    };
    run(STUDY, &[]);
    let results = sandbox.path("results/small");
    let written = |paths: &[PathBuf]| -> Vec<_> {
        let modified = |path: &PathBuf| fs::metadata(path).unwrap().modified().unwrap();
        paths.iter().map(modified).collect()
    };
    let first = files_below(&results.join("runs"));
    let before = written(&first);

    let comment = format!("# for the paper\ntitle: Two slices\n{STUDY}");
    contains(&run(&comment, &[]), "12 of 12 runs were finished before");
    let crowded = "  crowded: {sources: {rest: {rate: 90 %}}}\n";
    let third = format!("{crowded}  full: {{sources: {{rest: {{rate: 200 %}}}}}}\n");
    let larger = STUDY.replace(crowded, &third);
    let stderr = run(&larger, &[]);
    contains(
        &stderr,
        "since the last run into `results/small`: scenario `full` is new",
    );
    contains(&stderr, "12 of 18 runs were finished before");
    assert_eq!(written(&first), before);
    assert_eq!(runs_in(&results).len(), 18);
    let stderr = run(STUDY, &[]);
    contains(&stderr, "scenario `full` is gone, and its runs stay unread");
    contains(&run(&larger, &[]), "18 of 18 runs were finished before");

    let other = larger.replace("rate: 5 Mbit/s", "rate: 4 Mbit/s");
    sandbox.write("small.yaml", &other);
    let refused = sandbox.refused(2, &["run", "small.yaml"]);
    insta::assert_snapshot!(refused, @"error: `results/small` holds 9 runs of policy `first` with other inputs, and 9 with the same: name another folder for the new results (`--out DIR`), or discard these results (`--replace`)");
    assert_eq!(written(&first), before);
    contains(
        &run(&other, &["--replace"]),
        "9 of 18 runs were finished before",
    );
    let kept: Vec<PathBuf> = first
        .iter()
        .filter(|run| run.to_str().unwrap().contains("shared"))
        .cloned()
        .collect();
    assert_eq!(kept.len(), 2);
    assert_eq!(written(&kept), before[2..]);
}

#[test]
fn an_unwritable_results_folder_is_told() {
    let sandbox = sandbox();
    let error = sandbox.refused(1, &["run", "small.yaml", "--out", "/proc/slicewise"]);
    contains(&error, "/proc/slicewise");
    let error = sandbox.refused(2, &["run", "small.yaml", "--out", "small.yaml"]);
    contains(&error, "small.yaml");
}

#[test]
fn a_filter_that_names_nothing_is_told_with_what_there_is() {
    let sandbox = sandbox();
    let error = sandbox.refused(2, &["run", "small.yaml", "--policy", "frist"]);
    contains(&error, "frist");
    contains(&error, "first");
    let error = sandbox.refused(2, &["run", "small.yaml", "--scenario", "storm"]);
    contains(&error, "storm");
    sandbox.refused(2, &["run", "small.yaml", "--repetitions", "0"]);
    sandbox.refused(2, &["run", "small.yaml", "--repetitions", "4000000000"]);
    sandbox.refused(2, &["run", "small.yaml", "--jobs", "none"]);
}

#[test]
fn a_part_of_a_study_runs_and_says_what_it_could_not_judge() {
    let sandbox = sandbox();
    let arguments = words("run small.yaml --policy first --repetitions 2");
    let output = sandbox.slicewise(&arguments);
    succeeded(&output);
    assert_eq!(runs_in(&sandbox.path("results/small")).len(), 2 * 2);
    // The whole study then goes on from there.
    let output = sandbox.slicewise(&["run", "small.yaml"]);
    succeeded(&output);
    assert!(text(&output.stderr).contains("4 of 12 runs were finished before"));
}

#[test]
fn check_tells_every_mistake_with_its_place() {
    let sandbox = sandbox();
    let printed = succeeded(&sandbox.slicewise(&["check", "small.yaml"]));
    contains(&printed, "12 runs");

    let broken = STUDY
        .replace("slice: rest,", "slice: rst,")
        .replace("duration: 4 s", "duration: -4 s");
    sandbox.write("broken.yaml", &broken);
    sandbox.write(
        "uneven.yaml",
        STUDY.replace("duration: 4 s", "duration: 75 ms"),
    );
    let error = sandbox.refused(2, &["check", "uneven.yaml"]);
    contains(&error, "whole number of bins");
    let error = sandbox.refused(2, &["check", "broken.yaml"]);
    contains(&error, "broken.yaml:");
    contains(&error, "rst");
    contains(&error, "-4 s");
}

#[test]
fn what_is_no_study_is_refused() {
    let sandbox = sandbox();
    sandbox.write("malformed.yaml", "name: [unclosed");
    sandbox.write("empty.yaml", "");
    fs::write(sandbox.path("binary.yaml"), [0xff, 0xfe, 0x00]).unwrap();
    let huge = fs::File::create(sandbox.path("huge.yaml")).unwrap();
    huge.set_len(10 << 30).unwrap();
    for name in words("malformed.yaml empty.yaml binary.yaml huge.yaml absent.yaml .") {
        let error = sandbox.refused(2, &["check", name]);
        assert!(error.contains(name), "{name}: {error}");
    }
}

#[test]
fn the_report_is_made_again_from_the_folder_alone() {
    let sandbox = sandbox();
    succeeded(&sandbox.slicewise(&["run", "small.yaml", "--out", "here"]));
    let before = fs::read(sandbox.path("here/report.html")).unwrap();
    fs::remove_file(sandbox.path("small.yaml")).unwrap();
    fs::remove_file(sandbox.path("here/report.html")).unwrap();
    let printed = succeeded(&sandbox.slicewise(&["report", "here"]));
    assert!(!printed.contains("Performance isolation"), "{printed}");
    let explained = succeeded(&sandbox.slicewise(&["report", "here", "--explain"]));
    contains(&explained, "Performance isolation");
    assert_eq!(fs::read(sandbox.path("here/report.html")).unwrap(), before);
    sandbox.refused(2, &["report", "nowhere"]);
}

#[test]
fn the_schema_is_json() {
    let sandbox = sandbox();
    let printed = succeeded(&sandbox.slicewise(&["schema"]));
    let schema: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert!(schema["properties"]["policies"].is_object());
}

#[test]
fn a_policy_is_exported_as_ios_text() {
    let sandbox = sandbox();
    let study = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/router-mechanisms.yaml");
    let study = study.to_str().unwrap();
    let arguments = ["export", study, "--policy", "priority", "--to", "ios"];
    let printed = succeeded(&sandbox.slicewise(&arguments));
    contains(&printed, "priority 17500");
    let error = sandbox.refused(2, &["export", study, "--policy", "none", "--to", "ios"]);
    assert!(error.contains("no-policy"), "names what there is: {error}");
}

#[test]
fn an_exported_policy_map_keeps_the_name_it_was_read_under() {
    let sandbox = sandbox();
    let policies = "policies:
  router:
    ios: |
      class-map match-any critical
       match vlan 10
      policy-map GOLD
       class critical
        bandwidth 5000
";
    sandbox.write("ios.yaml", STUDY.replace("policies:\n", policies));
    let export = |policy| {
        let arguments = ["export", "ios.yaml", "--policy", policy, "--to", "ios"];
        succeeded(&sandbox.slicewise(&arguments))
    };
    let printed = export("router");
    contains(
        &printed,
        "policy-map GOLD\n class critical\n  bandwidth 5000",
    );
    assert!(export("first").contains("policy-map first\n"));
}

#[test]
fn a_policy_is_exported_as_commands_of_linux_traffic_control() {
    let sandbox = sandbox();
    let study = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/router-mechanisms.yaml");
    let study = study.to_str().unwrap();
    let arguments = ["export", study, "--policy", "priority", "--to", "tc"];
    let printed = succeeded(&sandbox.slicewise(&arguments));
    assert!(
        printed.contains(
            "tc qdisc add dev eth0 root handle 1: stab overhead -14 tbf rate 35000000bit"
        ),
        "the licence is the link: {printed}"
    );
    let printed =
        succeeded(&sandbox.slicewise(&[&arguments[..], &["--interface", "right"]].concat()));
    contains(&printed, "dev right root");
    for (policy, reason) in [
        ("guaranteed", "no scheduler that keeps a delay bound"),
        ("wred", "several curves"),
    ] {
        let error = sandbox.refused(2, &["export", study, "--policy", policy, "--to", "tc"]);
        contains(&error, reason);
    }
    let ios = [
        "export",
        study,
        "--policy",
        "priority",
        "--to",
        "ios",
        "--interface",
        "right",
    ];
    sandbox.refused(2, &ios);
}

#[test]
fn a_policy_is_exported_as_the_requests_it_was_read_from() {
    let sandbox = sandbox();
    let policies = r#"policies:
  requested:
    data_plane: baseline
    p4_tins: |
      {"minRate": 1000000, "maxRate": 2000000, "allowBurst": 5000, "peakBurst": 5000,
       "flows": [{"ipv4Source": "10.0.1.1"}]}
"#;
    sandbox.write("requests.yaml", STUDY.replace("policies:\n", policies));
    let export = |policy| {
        [
            "export",
            "requests.yaml",
            "--policy",
            policy,
            "--to",
            "p4-tins",
        ]
    };
    let printed = succeeded(&sandbox.slicewise(&export("requested")));
    contains(&printed, r#""minRate": "1 Mbit/s","#);
    let error = sandbox.refused(2, &export("first"));
    contains(&error, "there is no slice to request");
}

/// Start a study of many runs, wait for the first of them, do `change` to the results folder, and
/// give what the command prints; it must exit with 1.
fn disturbed(sandbox: &Sandbox, change: impl FnOnce(&Path)) -> String {
    sandbox.write(
        "small.yaml",
        STUDY.replace("repetitions: 3", "repetitions: 400"),
    );
    let mut child = sandbox
        .command(&["run", "small.yaml", "--jobs", "1"])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let results = sandbox.path("results/small");
    while child.try_wait().unwrap().is_none() && runs_in(&results).len() < 2 {
        std::thread::yield_now();
    }
    change(&results);
    let output = child.wait_with_output().unwrap();
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(!error.contains("panicked"), "{error}");
    error
}

#[test]
fn a_results_folder_that_is_taken_away_stops_the_study_and_does_not_come_back() {
    let sandbox = sandbox();
    let elsewhere = sandbox.path("elsewhere");
    let error = disturbed(&sandbox, |results| fs::rename(results, &elsewhere).unwrap());
    contains(&error, "study.json` is gone");
    contains(&error, "no finished run is left");
    assert!(!sandbox.path("results/small").exists());
    // What was finished is where it was taken, and can be gone on with from there.
    let finished = runs_in(&elsewhere).len();
    assert!((2..1600).contains(&finished), "{finished} runs");
    fs::rename(&elsewhere, sandbox.path("results/small")).unwrap();
    let output = sandbox.slicewise(&["run", "small.yaml", "--repetitions", "3", "--seed", "7"]);
    succeeded(&output);
    assert!(text(&output.stderr).contains("were finished before"));
}

#[test]
fn a_results_folder_without_its_marker_gets_no_more_runs() {
    let sandbox = sandbox();
    let error = disturbed(&sandbox, |results| {
        fs::remove_file(results.join("study.json")).unwrap();
    });
    contains(&error, "is gone");
    contains(&error, "finished runs are left there");
    let results = sandbox.path("results/small");
    assert!(!results.join("host.json").exists() && !results.join("report.html").exists());
}

#[test]
fn a_record_that_cannot_be_written_stops_the_study_and_keeps_what_is_finished() {
    let sandbox = sandbox();
    // A file where a folder has to be: works for root too, whom permissions do not stop.
    let error = disturbed(&sandbox, |results| {
        fs::write(results.join("runs/first"), "in the way").unwrap();
    });
    let results = sandbox.path("results/small");
    contains(&error, "runs/first");
    contains(&error, "800 finished runs are on disk");
    fs::remove_file(results.join("runs/first")).unwrap();
    let output = sandbox.slicewise(&["run", "small.yaml", "--repetitions", "3"]);
    succeeded(&output);
    assert!(text(&output.stderr).contains("6 of 12 runs were finished before"));
}

#[test]
fn a_damaged_study_file_is_replaced_where_that_is_asked_for() {
    let sandbox = sandbox();
    succeeded(&sandbox.slicewise(&["run", "small.yaml"]));
    sandbox.write("results/small/study.json", "{\n  \"sha256\": \"0");
    let error = sandbox.refused(1, &["run", "small.yaml"]);
    contains(&error, "damaged");
    contains(&error, "--replace");
    let error = sandbox.refused(1, &["report", "results/small"]);
    contains(&error, "damaged");
    assert!(!error.contains("--replace"), "{error}");
    succeeded(&sandbox.slicewise(&["run", "small.yaml", "--replace"]));
}

#[test]
fn a_report_of_what_is_no_results_folder_is_told_which_one_to_name() {
    let sandbox = sandbox();
    let error = sandbox.refused(2, &["report", "."]);
    assert_eq!(
        error.trim(),
        "error: `.` holds no results of a study: name the folder that a study was run into"
    );
    let error = sandbox.refused(2, &["report", "small.yaml"]);
    assert_eq!(
        error.trim(),
        "error: `small.yaml` is a file: name the folder that a study was run into"
    );
    succeeded(&sandbox.slicewise(&["run", "small.yaml"]));
    let error = sandbox.refused(2, &["report", "results/small/report.html"]);
    contains(&error, "here `results/small`");
}

#[test]
#[cfg(unix)]
fn an_interrupted_study_keeps_what_is_finished_and_goes_on() {
    let sandbox = sandbox();
    sandbox.write(
        "small.yaml",
        STUDY.replace("repetitions: 3", "repetitions: 400"),
    );
    let mut child = sandbox
        .command(&["run", "small.yaml", "--jobs", "1"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // Wait for the first finished run, however slow the machine.
    let results = sandbox.path("results/small");
    while child.try_wait().unwrap().is_none() && runs_in(&results).len() < 2 {
        std::thread::yield_now();
    }
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let finished = runs_in(&results);
    assert!(
        (2..1600).contains(&finished.len()),
        "{} runs",
        finished.len()
    );

    succeeded(&sandbox.slicewise(&["run", "small.yaml", "--repetitions", "3"]));
    let runs = runs_in(&results);
    assert!(finished.iter().all(|run| runs.contains(run)));
}
