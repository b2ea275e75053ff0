//! What the command prints: to a terminal, to a pipe that nobody reads, and to a full disk.
#![cfg(unix)]

use crate::support::seal;
use crate::support::small_study::STUDY;
use crate::support::{Sandbox, text, words};
use slicewise_stats::path::path_component;
use std::fs::File;
use std::process::Stdio;

const PLAN: &str = "link: 1 Gbit/s\nslices: {all: {count: 3, guarantee: 1 Mbit/s}}\n";
const MISSPELT: &str = "link: 1 Gbit/s\nslices: {all: {counts: 3}}\n";
const GATEWAY: &str = "interfaces: [left, right]\nlink: 1 Gbit/s\npolicy: {none: true}\n";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("small.yaml", STUDY);
    sandbox.write("plan.yaml", PLAN);
    sandbox.write("misspelt.yaml", MISSPELT);
    sandbox.write("gateway.yaml", GATEWAY);
    let run = words("run small.yaml --repetitions 1 --out done --captures wire");
    sandbox.succeeded(&run);
    sandbox
}

/// Every subcommand that ends by itself, and what it ends with.
const COMMANDS: [(i32, &[&str]); 16] = [
    (0, &["--help"]),
    (0, &["--version"]),
    (2, &["unknown"]),
    (0, &["check", "small.yaml"]),
    (2, &["check", "misspelt.yaml"]),
    (2, &["check", "nowhere.yaml"]),
    (0, &["schema"]),
    (0, &["plan", "plan.yaml"]),
    (0, &["plan", "plan.yaml", "--json"]),
    (0, &["report", "done"]),
    (
        0,
        &["export", "small.yaml", "--policy", "first", "--to", "ios"],
    ),
    (0, &["gateway", "--check", "gateway.yaml"]),
    (
        0,
        &["run", "small.yaml", "--repetitions", "1", "--out", "out"],
    ),
    (
        0,
        &["run", "small.yaml", "--repetitions", "1", "--seeds", "2"],
    ),
    (2, &["top", "--port", "1", "--once"]),
    (
        0,
        &[
            "analyse",
            "--runs",
            "wire",
            "--slices",
            "small.yaml",
            "--out",
            "analysed",
        ],
    ),
];

/// A pipe whose reader has left.
fn closed() -> Stdio {
    let (_, writer) = std::io::pipe().unwrap();
    writer.into()
}

fn full() -> Stdio {
    File::options()
        .write(true)
        .open("/dev/full")
        .unwrap()
        .into()
}

#[test]
fn a_reader_that_leaves_ends_no_command_in_an_error() {
    let sandbox = sandbox();
    for (code, arguments) in COMMANDS {
        let output = sandbox
            .command(arguments)
            .stdout(closed())
            .output()
            .unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
        assert!(
            !error.contains("panicked") && !error.contains("Broken pipe"),
            "{error}"
        );
        let status = sandbox
            .command(arguments)
            .stdout(closed())
            .stderr(closed())
            .status();
        assert_eq!(
            status.unwrap().code(),
            Some(code),
            "{arguments:?}, both closed"
        );
    }
    assert!(sandbox.path("out/report.html").is_file());
    // What it ends with depends on the machine.
    let doctor = sandbox
        .command(&["doctor"])
        .stdout(closed())
        .stderr(closed())
        .status();
    assert!([Some(0), Some(1)].contains(&doctor.unwrap().code()));
}

#[test]
fn a_full_disk_is_reported_with_exit_code_1() {
    let sandbox = sandbox();
    for (code, arguments) in COMMANDS {
        let output = sandbox.command(arguments).stdout(full()).output().unwrap();
        let error = text(&output.stderr);
        let expected = if code == 0 { 1 } else { code };
        assert_eq!(
            output.status.code(),
            Some(expected),
            "{arguments:?}: {error}"
        );
        if code == 0 {
            let words = "error: cannot write to standard output: No space left on device";
            assert!(error.contains(words), "{arguments:?}: {error}");
        }
        // Where nothing can be said, the exit code says it.
        let status = sandbox
            .command(arguments)
            .stdout(full())
            .stderr(full())
            .status();
        assert_eq!(
            status.unwrap().code(),
            Some(expected),
            "{arguments:?}, both full"
        );
    }
    let run = ["run", "small.yaml", "--repetitions", "1", "--out", "out"];
    let status = sandbox
        .command(&run)
        .stdout(Stdio::null())
        .stderr(full())
        .status();
    assert_eq!(status.unwrap().code(), Some(1), "its messages are lost");
    assert!(sandbox.path("out/report.html").is_file());
}

/// Results that somebody else handed over: the policy `first` is called `name` in them.
fn results_with_policy(name: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("small.yaml", STUDY);
    let run = ["run", "small.yaml", "--repetitions", "2", "--out", "out"];
    sandbox.succeeded(&run);
    let name_in_json = serde_json::to_string(name).unwrap();
    let rename = |file: &str| {
        let text = sandbox.read(file).replace("\"first\"", &name_in_json);
        sandbox.write(
            file,
            match file.ends_with(".jsonl") {
                true => text
                    .lines()
                    .map(|line| format!("{}\n", seal::sealed(line)))
                    .collect(),
                false => seal::sealed(&text),
            },
        );
    };
    rename("out/study.json");
    rename("out/runs/first/calm.jsonl");
    rename("out/runs/first/crowded.jsonl");
    let runs = sandbox.path("out/runs");
    std::fs::rename(runs.join("first"), runs.join(path_component(name))).unwrap();
    sandbox
}

#[test]
fn no_control_character_of_a_file_reaches_the_terminal() {
    let sandbox = results_with_policy("fi\u{1b}]0;pwned\u{7}\u{9b}31m\u{202e}rst");
    std::fs::rename(sandbox.path("out"), sandbox.path("o\u{1b}[31mut")).unwrap();
    let name = "wrong \u{1b}[31m\u{9b}1m.yaml";
    sandbox.write(
        name,
        "\u{9b}31m: \"\\e[31m\"\nna\u{9b}me: x\n\"\\e[1m\": 3\n",
    );
    let calls: [(i32, &[&str]); 4] = [
        (0, &["report", "o\u{1b}[31mut"]),
        (2, &["check", name]),
        (2, &["run", "small.yaml", "--policy", "\u{1b}[31m"]),
        (
            2,
            &[
                "export",
                "small.yaml",
                "--policy",
                "\u{1b}[31m",
                "--to",
                "tc",
            ],
        ),
    ];
    for (code, arguments) in calls {
        let output = sandbox.slicewise(arguments);
        let printed = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{printed}");
        let wrong = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!printed.contains(wrong), "{arguments:?}: {printed:?}");
        assert!(printed.contains(r"\u{1b}"), "{printed}");
    }
}

#[test]
fn no_text_in_a_table_is_a_formula_to_a_spreadsheet() {
    for name in ["=1+2", "+1", "-1", "@sum", "\tx"] {
        let sandbox = results_with_policy(name);
        sandbox.succeeded(&["report", "out"]);
        for table in ["runs", "cells", "verdicts"] {
            let table = sandbox.read(&format!("out/data/{table}.csv"));
            assert!(table.contains(&format!("\"'{name}\"")), "{table}");
            assert!(!table.contains(&format!("\"{name}\"")), "{table}");
        }
    }
}

#[test]
fn an_error_says_so_once_and_in_colour_only_where_colour_is_wanted() {
    let sandbox = Sandbox::new();
    sandbox.write("misspelt.yaml", MISSPELT);
    let Some(coloured) = sandbox.on_a_terminal(80, "$slicewise check misspelt.yaml") else {
        return;
    };
    assert!(coloured.contains("\u{1b}["), "{coloured}");
    let plain = sandbox.on_a_terminal(80, "NO_COLOR=1 $slicewise check misspelt.yaml");
    let plain = plain.unwrap();
    insta::assert_snapshot!(plain, @"
    error: `counts` is not a setting here
     --> misspelt.yaml:2:16
      |
    2 | slices: {all: {counts: 3}}
      |                ^^^^^^
      |
      = help: did you mean `count`?

    error: 1 mistake in misspelt.yaml
    ");
    let words = console::strip_ansi_codes(&coloured).into_owned();
    assert_eq!(words, plain);
    assert!(!words.contains("error: error"), "{words}");
}
