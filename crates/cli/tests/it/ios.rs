//! A router's configuration as it is: `check FILE.cfg` and `init --ios`.

use crate::support::Sandbox;
use insta::assert_snapshot;
use std::process::Output;

const BRANCH: &str = include_str!("../../../formats/tests/golden/running/branch-office.cfg");

/// What a command prints and exits with.
fn said(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|b| String::from_utf8_lossy(b));
    format!("{:?}\n{out}{err}", output.status.code())
}

#[test]
fn a_configuration_is_checked_as_what_it_is() {
    let sandbox = Sandbox::new();
    sandbox.write("router.cfg", BRANCH);
    let checked = sandbox.slicewise(&["check", "router.cfg"]);
    assert_eq!(checked.status.code(), Some(0), "{}", said(&checked));
    assert_snapshot!(String::from_utf8_lossy(&checked.stdout), @"
    router.cfg: a configuration of IOS: policy map WAN-SHAPE-50M, 9 slices, on a port of 1 Gbit/s (the usual rate of GigabitEthernet0/0/0, which states none); `slicewise init --ios router.cfg` writes a study of it
    note: packets pass other policies before: GUEST-POLICE (input of GigabitEthernet0/0/1.300); LAN-MARK-IN (input of GigabitEthernet0/0/1.10, GigabitEthernet0/0/1.20)
    ");
    let warnings = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(warnings.contains("--> router.cfg:"), "{warnings}");
    let wrong = BRANCH.replace("bandwidth percent 15", "bandwith percent 15");
    sandbox.write("wrong.cfg", wrong);
    assert_snapshot!(said(&sandbox.slicewise(&["check", "wrong.cfg"])), @"
    Some(2)
    error: unknown command `bandwith`: expected `bandwidth`, `drop`, `fair-queue`, `police`, `priority`, `queue-limit`, `random-detect`, `service-policy`, `set` or `shape`, or the next class or definition
       --> wrong.cfg:104:3
        |
    104 |   bandwith percent 15
        |   ^^^^^^^^
        |
        = help: did you mean `bandwidth`?

    error: 1 mistake in wrong.cfg
    ");
    assert_snapshot!(said(&sandbox.slicewise(&["run", "router.cfg"])), @"
    Some(2)
    error: this is a configuration of IOS
     --> router.cfg:1:1
      |
    1 | Building configuration...
      | ^
      |
      = help: `slicewise init --ios router.cfg` writes a study of it

    error: 1 mistake in router.cfg
    ");
}

#[test]
fn a_study_is_written_of_a_configuration_and_says_what_it_does_not_judge() {
    let sandbox = Sandbox::new();
    sandbox.write("configs/router.cfg", BRANCH);
    let made = sandbox.slicewise(&["init", "--ios", "configs/router.cfg", "study.yaml"]);
    let folder = sandbox.path("configs");
    let made = said(&made).replace(&folder.display().to_string(), "configs");
    assert_snapshot!(made);
    // Shorter, so that it runs in a debug build.
    let study = sandbox.read("study.yaml");
    let shorter = study.replace("repetitions: 34", "repetitions: 2");
    sandbox.write(
        "study.yaml",
        shorter.replace("duration: 10 s", "duration: 200 ms"),
    );
    let checked = sandbox.slicewise(&["check", "study.yaml"]);
    assert_eq!(checked.status.code(), Some(0), "{}", said(&checked));
    let run = sandbox.slicewise(&["run", "study.yaml"]);
    let printed = said(&run);
    assert!(printed.contains("not judged"), "{printed}");
    let page = sandbox.read("results/router/report.html");
    assert!(page.contains("not judged"));
    assert!(page.contains("not about quality of service"));
}
