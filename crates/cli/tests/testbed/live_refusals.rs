//! What `slicewise run --on gateway|tc` and `slicewise gateway --study` refuse before a packet is sent: exit
//! code 2, and what to do.

use crate::bench::STUDY;
use crate::support::{Sandbox, text};
use insta::assert_snapshot;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Two populations instead of sources.
const POPULATIONS: &str = "
name: many
link: {rate: 1 Gbit/s}
dut: {model: port}
slices:
  critical: {match: {vlan: 10}, share: 10 %}
  bulk: {match: {vlan: 20}, share: 90 %}
populations:
  critical: {sends: bursts, frame: 1514 B, burst: 3028 B, every: 5 ms}
  bulk: {sends: backlog, frame: 1514 B}
scenarios:
  calm: {reference: true, populations: {critical: 1, bulk: 9}}
policies:
  fair:
    discipline: deficit_round_robin
    classes:
      - {name: critical, slice: critical}
      - {name: bulk, slice: bulk}
repetitions: 1
duration: 1 s
";

/// A sandbox with a study, and a folder of programs that exist but do nothing.
fn sandbox(study: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", study);
    for tool in ["ip", "tc", "iperf3", "tcpdump"] {
        sandbox.write(&format!("bin/{tool}"), "#!/bin/sh\nexit 0\n");
    }
    sandbox
}

/// Standard error of a call that is refused: with these programs, and a lock of its own.
fn refused(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let mut command = sandbox.command(arguments);
    command
        .env("PATH", sandbox.path("bin"))
        .env("SLICEWISE_RUN_DIR", sandbox.path("run"));
    stderr(command)
}

fn stderr(mut command: Command) -> String {
    let output = command.output().unwrap();
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(!error.contains("panicked"), "{error}");
    error
}

const RUN: [&str; 4] = ["run", "study.yaml", "--on", "gateway"];

#[test]
fn tools_that_are_missing_are_all_named_with_how_to_get_them() {
    let sandbox = sandbox(STUDY);
    fs::remove_file(sandbox.path("bin/iperf3")).unwrap();
    assert_snapshot!(refused(&sandbox, &RUN), @"error: real packets require programs that are not installed: iperf3; apt-get install iperf3");
    for tool in ["ip", "tc"] {
        fs::remove_file(sandbox.path(&format!("bin/{tool}"))).unwrap();
    }
    assert_snapshot!(refused(&sandbox, &["run", "study.yaml", "--on", "tc"]), @"error: real packets require programs that are not installed: ip, tc, iperf3; apt-get install iproute2 iperf3");
    assert!(!sandbox.path("results").exists());
}

#[test]
fn what_a_testbed_cannot_send_is_said_before_anything_is_built() {
    let alike = STUDY
        .replace("'2001:db8:20::2'", "10.0.10.2")
        .replace("'2001:db8:20::3'", "10.0.10.3");
    assert_snapshot!(refused(&sandbox(&alike), &RUN), @"error: scenario calm: sources from 10.0.10.2 to 10.0.10.3 have different VLAN tags: the testbed sets tags by address, so give each its own");
    assert_snapshot!(refused(&sandbox(POPULATIONS), &RUN), @"error: the slices of this study are populations, whose frames have no headers: they can be simulated only");
    let paused_tcp = STUDY.replace(
        "destination: 10.0.40.3}",
        "destination: 10.0.40.3, protocol: tcp}",
    );
    assert_snapshot!(refused(&sandbox(&paused_tcp), &RUN), @"
    warning: the simulator sends these packets at the source's pace, with TCP's header and without its congestion control, acknowledgements and retransmissions
      --> study.yaml:23:78
       |
    23 |     headers: {vlan: 20, source: 10.0.40.2, destination: 10.0.40.3, protocol: tcp}
       |                                                                              ^^^

    error: scenario calm: source bursts has IP protocol 6: the testbed sends UDP in all patterns, and TCP only with iperf3 at a constant rate
    ");
    let unknown = [&RUN[..], &["--policy", "best"]].concat();
    assert_snapshot!(refused(&sandbox(STUDY), &unknown), @"error: the study has no policy `best`: known are `none`, `priority`, `guaranteed`");
}

/// Hours of measurements may lie before the last case.
#[test]
fn every_case_is_checked_before_the_first_is_measured() {
    let cases = |last: &str| {
        format!(
            "{STUDY}cases:\n  first: {{title: One}}\n  lossy: {{title: Two, link: {{impairments: {{egress: {{loss: 1 %}}}}}}}}\n  last: {{title: Three{last}}}\n"
        )
    };
    let run = ["run", "study.yaml", "--on", "gateway", "--out", "out"];
    let alike =
        cases(", sources: {steady: {headers: {source: 10.0.10.2, destination: 10.0.10.3}}}");
    let alike = sandbox(&alike);
    assert_snapshot!(refused(&alike, &run), @r"
    case lossy is left out: the links of this study are impaired (`link.impairments`), and those of a testbed carry every frame: simulate it, or leave the impairments out in a study that extends this one (`without: [link.impairments]`)
    error: case last: scenario calm: sources from 10.0.10.2 to 10.0.10.3 have different VLAN tags: the testbed sets tags by address, so give each its own
    ");
    assert!(!alike.path("out").exists());
    let only = [&run[..], &["--case", "lossy"]].concat();
    assert_snapshot!(refused(&sandbox(&cases("")), &only), @"error: the links of this study are impaired (`link.impairments`), and those of a testbed carry every frame: simulate it, or leave the impairments out in a study that extends this one (`without: [link.impairments]`)");
}

#[test]
fn options_of_one_back_end_are_refused_by_the_other() {
    let sandbox = sandbox(STUDY);
    let simulated = ["run", "study.yaml", "--tolerate-noise"];
    assert_snapshot!(refused(&sandbox, &simulated), @"error: `--tolerate-noise` is for real packets: a simulation has none");
    let captured = [&RUN[..], &["--captures", "c", "--snap-length", "64"]].concat();
    assert_snapshot!(refused(&sandbox, &captured), @"error: `--snap-length` is for the simulator: captures of real packets keep 128 bytes of each");
}

#[test]
fn without_root_there_is_no_testbed() {
    let sandbox = sandbox(STUDY);
    let id = Command::new("id").arg("-u").output().unwrap();
    let is_root = text(&id.stdout).trim() == "0";
    let setpriv = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let can_change = Command::new("setpriv").args(setpriv).arg("true").output();
    let can_change = can_change.is_ok_and(|output| output.status.success());
    if !can_change && is_root {
        return eprintln!("skipped: setpriv is not installed");
    }
    // Where the program is, and this sandbox, may be root's alone.
    let open = |path: &std::path::Path| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    open(&sandbox.path(""));
    fs::copy(env!("CARGO_BIN_EXE_slicewise"), sandbox.path("slicewise")).unwrap();
    for tool in ["ip", "tc", "iperf3", "tcpdump", "../slicewise"] {
        open(&sandbox.path("bin").join(tool));
    }
    let mut command = if is_root {
        let mut command = Command::new("setpriv");
        command.args(setpriv).arg(sandbox.path("slicewise"));
        command
    } else {
        Command::new(sandbox.path("slicewise"))
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = vec![sandbox.path("bin")];
    folders.extend(std::env::split_paths(&path));
    command
        .args(RUN)
        .current_dir(sandbox.path(""))
        .env("PATH", std::env::join_paths(folders).unwrap())
        .env("SLICEWISE_RUN_DIR", sandbox.path("run"));
    assert_snapshot!(stderr(command), @"error: real packets require root (for namespaces and captures): run it with sudo");
}

#[test]
fn a_gateway_of_a_study_is_checked_without_forwarding() {
    let check = |study: &str, policy: &str| {
        let sandbox = sandbox(study);
        let gateway = ["gateway", "--study", "study.yaml", "--check"];
        let rest = ["--policy", policy, "--interfaces", "left", "right"];
        let output = sandbox.slicewise(&[&gateway[..], &rest].concat());
        format!(
            "{:?}: {}{}",
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr)
        )
    };
    assert_snapshot!(check(STUDY, "priority"), @"Some(0): study.yaml: left and right: no mistakes found");
    assert_snapshot!(check(STUDY, "best"), @"Some(2): error: the study has no policy `best`: it has none, priority, guaranteed");
    assert_snapshot!(check(POPULATIONS, "fair"), @"Some(2): error: the slices of this study are populations, whose frames have no headers: they can be simulated only");
}
