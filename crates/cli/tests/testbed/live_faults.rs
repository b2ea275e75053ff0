//! What goes wrong while a study runs on real packets: somebody dies, the disk is full, the user has enough.
//!
//! They require root and network namespaces. Without them each test reports that it was skipped.

use crate::bench::{self, Bench, children_of, delete, is_alive, signal};
use crate::support::{contains, text, words};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// One cell.
const CELL: &str = "priority/overload";

fn one_cell<'a>(out: &'a str, repetitions: &'a str) -> Vec<&'a str> {
    let cell = words("--on gateway --policy priority --scenario overload");
    [&cell[..], &["--out", out, "--repetitions", repetitions]].concat()
}

/// The words of a client of iperf3 that has begun: of which there is one in an attempt.
const CLIENT: [&str; 3] = ["iperf3", "-c", "10.0.10.3"];

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + bench::PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Until one of two repetitions is on disk.
fn wait_for_a_record(bench: &Bench) {
    let is_there = || (0..2).any(|repetition| bench.record("out", CELL, repetition).is_some());
    wait_until("no record", is_there);
}

/// Whom to kill: a name, and words of the command line.
const VICTIMS: [(&str, &[&str]); 4] = [
    ("the gateway ended", &["gateway", "--policy"]),
    (
        "iperf3 client of critical ended",
        &["iperf3", "-c", "10.0.10.3"],
    ),
    (
        "iperf3 server of steady ended",
        &["iperf3", "-s", "2001:db8:20::3"],
    ),
    ("tcpdump at the receiving end ended", &["tcpdump", "in"]),
];

#[test]
fn a_run_in_which_a_program_was_killed_is_done_again_and_its_record_tells() {
    let Some(bench) = Bench::new() else { return };
    let mut running = bench.start(&one_cell("out", "2"));
    for (index, (ended, words)) in VICTIMS.iter().enumerate() {
        if index == 2 {
            // Two in each repetition, for no run is tried without end.
            wait_for_a_record(&bench);
        }
        // Once an attempt has been given up, or has its record, all of its programs are gone.
        running.child(&CLIENT);
        signal("KILL", &running.child(words).to_string());
        running.wait_for(ended);
    }
    let (status, stderr) = running.end();
    assert_eq!(status.code(), Some(0), "{stderr}");
    let mut rejected = Vec::new();
    for repetition in 0..2 {
        let record = bench.record("out", CELL, repetition).unwrap();
        assert_eq!(record["slices"][0]["whole"]["lost_frames"], 0);
        let whys = record["live"]["rejected"].as_array().unwrap();
        rejected.extend(whys.iter().map(|why| why.as_str().unwrap().to_owned()));
    }
    for (ended, _) in VICTIMS {
        let found = rejected.iter().find(|why| why.contains(ended));
        assert!(
            found.is_some_and(|why| why.contains("SIGKILL")),
            "{rejected:?}"
        );
    }
    bench.assert_cleared_up();
}

/// A file system of a few kilobytes, unmounted when this is dropped.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(at: &'a Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
            .arg(at);
        let is_mounted = mount.output().is_ok_and(|output| output.status.success());
        is_mounted.then_some(Self(at))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).output();
    }
}

#[test]
fn a_disk_that_is_full_of_captures_fails_the_run_and_is_named() {
    let Some(bench) = Bench::new() else { return };
    let folder = bench.sandbox.path("tmp");
    let Some(disk) = SmallDisk::mount(&folder) else {
        return eprintln!("skipped: nothing can be mounted");
    };
    let stderr = bench.stderr(1, &one_cell("out", "1"));
    contains(&stderr, "No space left on device");
    contains(&stderr, "-files");
    assert!(!stderr.contains("rejected:"), "tried again: {stderr}");
    bench.assert_cleared_up();
    drop(disk);
    bench.stderr(0, &one_cell("out", "1"));
}

#[test]
fn sigterm_clears_up_as_ctrl_c_does() {
    let Some(bench) = Bench::new() else { return };
    let running = bench.start(&one_cell("out", "1"));
    let client = running.child(&CLIENT);
    // Killed as it connects, iperf3 leaves a file: it has to be in a folder that is deleted.
    let environment = fs::read(format!("/proc/{client}/environ")).unwrap();
    let own_folder = format!("TMPDIR={}/slicewise-", bench.sandbox.path("tmp").display());
    assert!(text(&environment).contains(&own_folder));
    let children = children_of(running.pid());
    running.signal("TERM");
    let (status, stderr) = running.end();
    assert_eq!(status.code(), Some(130), "{stderr}");
    assert!(children.iter().all(|pid| !is_alive(*pid)));
    bench.assert_cleared_up();
}

#[test]
fn ctrl_c_ends_the_run_at_once_and_the_same_command_goes_on() {
    let Some(bench) = Bench::new() else { return };
    let command = one_cell("out", "2");
    let running = bench.start(&command);
    wait_for_a_record(&bench);
    running.child(&CLIENT);
    let children = children_of(running.pid());
    assert!(children.len() >= 6, "{children:?}");
    running.ctrl_c();
    let (status, stderr) = running.end();
    assert_eq!(status.code(), Some(130), "{stderr}");
    contains(&stderr, "stopped: ");
    assert!(
        !stderr.contains("rejected:") && !stderr.contains("error"),
        "{stderr}"
    );
    assert!(children.iter().all(|pid| !is_alive(*pid)));
    bench.assert_cleared_up();
    let stderr = bench.stderr(0, &command);
    // The other was not waited for.
    contains(&stderr, "1 of 2 runs were finished before");
    bench.assert_cleared_up();
}

/// Deleted when this is dropped.
struct Foreign(&'static str);

impl Foreign {
    fn new(name: &'static str) -> Self {
        delete(name);
        let added = Command::new("ip").args(["netns", "add", name]).output();
        assert!(added.unwrap().status.success());
        Self(name)
    }

    fn exists(&self) -> bool {
        Path::new("/run/netns").join(self.0).exists()
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        delete(self.0);
    }
}

#[test]
fn one_testbed_waits_for_another_and_clears_up_after_one_that_was_killed() {
    let Some(bench) = Bench::new() else { return };
    let other = Foreign::new("slicewise-other");
    let killed = bench.start(&one_cell("out", "1"));
    killed.child(&CLIENT);

    let elsewhere = one_cell("elsewhere", "1");
    let mut waiting = bench.start(&elsewhere);
    waiting.wait_for("another testbed is running on this machine: waiting for it to finish");
    waiting.ctrl_c();
    let (status, stderr) = waiting.end();
    assert_eq!(status.code(), Some(130), "{stderr}");
    assert!(!bench.sandbox.path("elsewhere").exists());

    let mut waiting = bench.start(&elsewhere);
    waiting.wait_for("another testbed is running");
    let children = children_of(killed.pid());
    let namespaces = bench.namespaces();
    assert_eq!(namespaces.len(), 3);
    killed.signal("KILL");
    let (status, _) = killed.end();
    assert_eq!(status.code(), None);
    let (status, stderr) = waiting.end();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert!(children.iter().all(|pid| !is_alive(*pid)));
    for name in namespaces {
        let deleted = format!("deleted namespace {name}, left by a testbed that was killed");
        contains(&stderr, &deleted);
    }
    contains(&stderr, "deleted folder ");
    assert!(other.exists());
    bench.assert_cleared_up();
}
