//! The systemd unit of the controller.

use crate::support::{Sandbox, contains, is_installed, text, words};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

const UNIT: &str = include_str!("../../../../dist/slicewise-controller.service");
/// Where the unit expects the command.
const INSTALLED: &str = "/usr/local/bin/slicewise";

#[test]
fn the_command_of_the_unit_starts_with_its_state_directory_and_stops_when_told_to() {
    let mut lines = UNIT.lines();
    let start = lines.find_map(|line| line.strip_prefix("ExecStart="));
    let arguments = start.unwrap().strip_prefix(INSTALLED).unwrap();
    let sandbox = Sandbox::new();
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let mut command = sandbox.command(&arguments);
    // The port of the unit may be in use here.
    command.args(["--listen", "127.0.0.1:0"]);
    command.env_clear();
    command.env("STATE_DIRECTORY", sandbox.path("state"));
    let mut controller = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(controller.stderr.take().unwrap()).lines();
    let started = log.next().unwrap().unwrap();
    contains(&started, "event=started");
    assert!(
        sandbox.path("state/controller.sqlite").exists(),
        "{started}"
    );
    // What systemd sends.
    let pid = controller.id().to_string();
    let told = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(told.unwrap().success());
    let stopped = log.next().unwrap().unwrap();
    contains(&stopped, "event=stopped");
    assert_eq!(controller.wait().unwrap().code(), Some(0));
}

#[test]
fn a_controller_reads_its_certificate_again_when_told_to() {
    if !is_installed("openssl") {
        println!("skipped: openssl is not installed");
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.certify("127.0.0.1");
    let mut command = sandbox.command(&["controller", "--listen", "127.0.0.1:0"]);
    command.args(["--store", "sqlite:store.sqlite"]);
    command.args(words("--tls-certificate certificate.pem --tls-key key.pem"));
    let mut controller = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(controller.stderr.take().unwrap()).lines();
    let started = log.find(|line| line.as_ref().unwrap().contains("event=started"));
    assert!(started.is_some());
    // Nothing has changed: without the signal it would not be read.
    let pid = controller.id().to_string();
    let told = Command::new("kill").args(["-HUP", &pid]).status();
    assert!(told.unwrap().success());
    let read = log.find(|line| line.as_ref().unwrap().contains("event=certificate_"));
    let read = read.unwrap().unwrap();
    contains(&read, "event=certificate_read");
    controller.kill().unwrap();
    controller.wait().unwrap();
}

#[test]
fn systemd_accepts_the_unit() {
    if !is_installed("systemd-analyze") {
        println!("skipped: systemd-analyze is not installed");
        return;
    }
    let sandbox = Sandbox::new();
    let name = "slicewise-controller.service";
    sandbox.write(
        name,
        UNIT.replace(INSTALLED, env!("CARGO_BIN_EXE_slicewise")),
    );
    let verified = Command::new("systemd-analyze")
        .args(["verify", "--recursive-errors=no"])
        .arg(sandbox.path(name))
        .output()
        .unwrap();
    let said = text(&verified.stderr);
    assert!(verified.status.success(), "{said}");
    assert!(!said.contains(name), "{said}");
}

#[test]
fn a_token_is_not_made_for_a_store_that_no_controller_has() {
    let sandbox = Sandbox::new();
    let store = format!("sqlite:{}", sandbox.path("other.sqlite").display());
    let refused = |arguments: &[&str]| {
        let mut command = sandbox.command(&["controller"]);
        let ended = command
            .args(arguments)
            .env_remove("STATE_DIRECTORY")
            .env("HOME", sandbox.path(""))
            .env("XDG_DATA_HOME", sandbox.path(""))
            .output()
            .unwrap();
        assert_eq!(ended.status.code(), Some(2));
        assert!(ended.stdout.is_empty());
        let said = text(&ended.stderr);
        contains(&said, "there is no store sqlite:");
    };
    refused(&["--store", &store, "token", "list"]);
    refused(&["--store", &store, "backup", "file"]);
    refused(&["token", "add", "portal", "--scope", "admin"]);
    assert!(!sandbox.path("other.sqlite").exists());
    // A store that is named is made: a controller that others can reach does not start without a token.
    let mut command = sandbox.command(&["controller", "--store", &store]);
    let add = ["token", "add", "portal", "--scope", "admin"];
    let made = command.args(add).output().unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    assert!(text(&made.stderr).contains("other.sqlite is new"));
}

#[test]
fn a_store_is_checked_and_gateways_are_adopted_by_command() {
    let sandbox = Sandbox::new();
    let store = format!("sqlite:{}", sandbox.path("store.sqlite").display());
    let asked = |arguments: &[&str]| {
        let mut command = sandbox.command(&["controller", "--store", &store]);
        let ended = command.args(arguments).output().unwrap();
        let said = [text(&ended.stdout), text(&ended.stderr)].concat();
        (ended.status.code(), said)
    };
    assert_eq!(asked(&["check"]).0, Some(2), "there is no store");
    assert_eq!(
        asked(&["token", "add", "portal", "--scope", "admin"]).0,
        Some(0)
    );
    let (code, said) = asked(&["check"]);
    assert_eq!(code, Some(0));
    assert!(
        said.ends_with("store.sqlite: no mistakes found\n"),
        "{said}"
    );
    let (code, said) = asked(&["adopt", "edge"]);
    assert_eq!(code, Some(2));
    contains(&said, "there is no gateway `edge` in this store");
    sandbox.write("store.sqlite", "");
    let (code, said) = asked(&["check"]);
    assert_eq!(code, Some(2));
    contains(&said, "is an empty file");
}

#[test]
fn a_file_that_is_no_store_is_named_at_once() {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "what I meant to do\n".repeat(100));
    let store = format!("sqlite:{}", sandbox.path("notes.txt").display());
    let refused = sandbox.slicewise(&["controller", "--store", &store, "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    contains(&said, "is not a SQLite database");
}
