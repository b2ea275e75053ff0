//! Files that this program did not make stay as they are, and cannot stop or mislead it.
#![cfg(unix)]

use crate::support::seal;
use crate::support::small_study::STUDY;
use crate::support::{Sandbox, contains, text, words};
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::symlink;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const RUN: [&str; 6] = ["run", "small.yaml", "--repetitions", "1", "--out", "out"];
const RECORD: &str = "out/runs/first/calm.jsonl";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("small.yaml", STUDY);
    sandbox
}

fn results() -> Sandbox {
    let sandbox = sandbox();
    sandbox.succeeded(&RUN);
    sandbox
}

/// What a command that must not hang gives.
fn soon(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    let mut child = sandbox
        .command(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(120) {
            child.kill().unwrap();
            panic!("{arguments:?} hangs");
        }
        sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

fn make_pipe(sandbox: &Sandbox, name: &str) {
    let path = sandbox.path(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs::remove_file(&path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_lock_that_is_a_link_is_neither_followed_nor_emptied() {
    let sandbox = sandbox();
    sandbox.write("precious", "years of work");
    fs::create_dir(sandbox.path("out")).unwrap();
    symlink(sandbox.path("precious"), sandbox.path("out/.lock")).unwrap();
    insta::assert_snapshot!(sandbox.refused(2, &RUN), @"error: `out/.lock` is a link, not a file: this program did not make it and leaves it alone; move it away, or name another folder");
    assert_eq!(sandbox.read("precious"), "years of work");

    // A file of that name is locked, and not emptied either.
    fs::remove_file(sandbox.path("out/.lock")).unwrap();
    sandbox.write("out/.lock", "mine");
    sandbox.succeeded(&RUN);
    assert_eq!(sandbox.read("out/.lock"), "mine");
}

#[test]
fn captures_of_others_are_refused_before_anything_is_run_and_simulated_ones_are_replaced() {
    let sandbox = sandbox();
    let run = [&RUN[..], &["--captures", "wire"]].concat();
    let theirs = "wire/first/crowded/rep-000/received.pcapng";
    sandbox.write(theirs, "real packets");
    insta::assert_snapshot!(sandbox.refused(2, &run), @"error: `wire/first/crowded/rep-000/received.pcapng` exists and is not replaced: move it away, or name another folder for the captures (`--captures DIR`)");
    assert_eq!(sandbox.read(theirs), "real packets");
    assert!(!sandbox.path("wire/shared").exists() && !sandbox.path("out/runs").exists());

    fs::remove_file(sandbox.path(theirs)).unwrap();
    sandbox.succeeded(&run);
    let captured = fs::read(sandbox.path(theirs)).unwrap();
    // What a killed process left is no obstacle.
    sandbox.write(
        "wire/first/crowded/rep-000/received.pcapng.part",
        &captured[..200],
    );
    sandbox.succeeded(&[&run[..], &["--replace"]].concat());
    assert_eq!(fs::read(sandbox.path(theirs)).unwrap(), captured);
    assert_eq!(
        fs::read_dir(sandbox.path("wire/first/crowded/rep-000"))
            .unwrap()
            .count(),
        2
    );
}

#[test]
fn captures_are_not_written_through_links() {
    let sandbox = sandbox();
    let run = [&RUN[..], &["--captures", "wire"]].concat();
    sandbox.write("precious", "years of work");
    fs::create_dir_all(sandbox.path("wire/first/calm/rep-000")).unwrap();
    let part = sandbox.path("wire/first/calm/rep-000/sent.pcapng.part");
    symlink(sandbox.path("precious"), part).unwrap();
    fs::create_dir(sandbox.path("elsewhere")).unwrap();
    symlink(sandbox.path("elsewhere"), sandbox.path("wire/shared")).unwrap();
    let error = sandbox.refused(1, &run);
    contains(&error, "`wire/shared` is not a folder");
    contains(&error, "has this name, and is left alone");
    assert_eq!(sandbox.read("precious"), "years of work");
    assert_eq!(fs::read_dir(sandbox.path("elsewhere")).unwrap().count(), 0);
}

#[test]
fn replacing_results_keeps_what_somebody_put_beside_them() {
    let sandbox = results();
    let theirs = ["out/data/mine.csv", "out/figures/mine.svg", "out/notes.txt"];
    for name in theirs {
        sandbox.write(name, name);
    }
    let first = sandbox.read(RECORD);
    sandbox.succeeded(&[&RUN[..], &["--replace", "--seed", "8"]].concat());
    assert_ne!(sandbox.read(RECORD), first);
    for name in theirs {
        assert_eq!(sandbox.read(name), name);
    }
}

#[test]
fn a_table_of_verdicts_over_seeds_replaces_no_other_file() {
    let sandbox = sandbox();
    let run = words("run small.yaml --repetitions 2 --seeds 2 --out table");
    for name in ["table/seed_verdicts.csv", "table/seed_verdicts.parquet"] {
        sandbox.write(name, "my own table");
        sandbox.refused(2, &run);
        let error = sandbox.refused(2, &[&run[..], &["--replace"]].concat());
        contains(&error, "is not a table of verdicts over seeds");
        assert_eq!(sandbox.read(name), "my own table");
        fs::remove_file(sandbox.path(name)).unwrap();
    }
    sandbox.succeeded(&run);
    sandbox.refused(2, &run);
    sandbox.succeeded(&[&run[..], &["--replace"]].concat());
}

#[test]
fn a_description_that_is_no_file_is_named_and_not_waited_for() {
    let sandbox = sandbox();
    make_pipe(&sandbox, "out/study.json");
    fs::create_dir(sandbox.path("zero")).unwrap();
    symlink("/dev/zero", sandbox.path("zero/study.json")).unwrap();
    let stderr = [&["report", "out"][..], &RUN, &["report", "zero"]].map(|arguments| {
        let output = soon(&sandbox, arguments);
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    });
    insta::assert_snapshot!(stderr.concat(), @"
    error: `out/study.json` is a named pipe, not a file: this program did not make it and leaves it alone; move it away, or name another folder
    error: `out/study.json` is a named pipe, not a file: this program did not make it and leaves it alone; move it away, or name another folder
    error: `zero/study.json` is a device, not a file: this program did not make it and leaves it alone; move it away, or name another folder
    ");
}

#[test]
fn records_that_cannot_be_trusted_are_left_out_and_done_again() {
    let sandbox = results();
    let good = sandbox.read(RECORD);
    let report = |expected: &str| {
        let output = soon(&sandbox, &["report", "out"]);
        let error = text(&output.stderr);
        assert!(output.status.success(), "{error}");
        contains(&error, expected);
    };
    let altered = good.replacen(r#""lost_frames":0"#, r#""lost_frames":1"#, 1);
    assert_ne!(altered, good);
    sandbox.write(RECORD, altered);
    report(
        "calm.jsonl`, line 1, cannot be trusted (its checksum does not match: it was changed or damaged after",
    );
    sandbox.write(
        RECORD,
        seal::sealed(&good).replace(r#""sha256":"#, r#""sha265":"#),
    );
    report("it has no checksum");
    make_pipe(&sandbox, RECORD);
    report("it is a named pipe, not a file");
    fs::remove_file(sandbox.path(RECORD)).unwrap();
    let mut long = File::create(sandbox.path(RECORD)).unwrap();
    long.write_all(&good.as_bytes()[..300]).unwrap();
    long.set_len(2 << 30).unwrap();
    long.seek(SeekFrom::End(0)).unwrap();
    long.write_all(b"\n").unwrap();
    report("it is larger than 1024 MiB, the limit");

    let (_, stderr) = sandbox.succeeded(&RUN);
    contains(&stderr, "this run is repeated");
    assert_eq!(sandbox.read(RECORD), good);
}

#[test]
fn facts_about_the_host_that_are_no_file_are_passed_over() {
    let sandbox = results();
    make_pipe(&sandbox, "out/host.json");
    assert!(soon(&sandbox, &["report", "out"]).status.success());
    make_pipe(&sandbox, "out/unsupported.json");
    let output = soon(&sandbox, &["report", "out"]);
    assert_ne!(output.status.code(), Some(101), "{}", text(&output.stderr));
}

#[test]
fn results_of_the_version_before_say_that_the_study_must_be_run_again() {
    let sandbox = results();
    let description = sandbox.read("out/study.json");
    let mut lines: Vec<&str> = description.lines().collect();
    lines.remove(1);
    let earlier = lines
        .join("\n")
        .replace("\"schema_version\": 5", "\"schema_version\": 4");
    sandbox.write("out/study.json", earlier);
    insta::assert_snapshot!(sandbox.refused(1, &["report", "out"]), @"error: `out/study.json` has schema version 4, this program reads version 5: run the study again into another folder, or use the version of the program that wrote this one");
    sandbox.succeeded(&[&RUN[..], &["--replace"]].concat());
}

#[test]
fn a_description_of_more_runs_than_there_can_be_is_refused() {
    let sandbox = results();
    let description = sandbox.read("out/study.json");
    let endless = description.replace("\"repetitions\": 1,", "\"repetitions\": 4294967295,");
    assert_ne!(description, endless);
    sandbox.write("out/study.json", seal::sealed(&endless));
    let output = soon(&sandbox, &["report", "out"]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    contains(&error, "is damaged (it has 4294967295 repetitions)");
}

#[test]
fn a_folder_in_the_place_of_a_record_is_reported() {
    let sandbox = results();
    fs::remove_file(sandbox.path(RECORD)).unwrap();
    sandbox.write(&format!("{RECORD}/notes.txt"), "theirs");
    let output = soon(&sandbox, &["report", "out"]);
    assert!(text(&output.stderr).contains("it is a folder, not a file"));
    let error = sandbox.refused(1, &RUN);
    contains(&error, "calm.jsonl` is a folder, not a file");
    assert_eq!(sandbox.read(&format!("{RECORD}/notes.txt")), "theirs");
}

#[test]
fn verdicts_come_and_runs_stay_where_the_report_cannot_be_written() {
    let sandbox = results();
    fs::remove_file(sandbox.path("out/report.html")).unwrap();
    // It cannot be replaced.
    fs::create_dir(sandbox.path("out/report.html")).unwrap();
    sandbox.write("out/report.html/theirs", "");
    let output = sandbox.slicewise(&RUN);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error
            .contains("all finished runs are on disk, and `slicewise report out` makes the report"),
        "{error}"
    );
    assert!(text(&output.stdout).contains("isolation"));
    fs::remove_dir_all(sandbox.path("out/report.html")).unwrap();
    sandbox.succeeded(&["report", "out"]);
}
