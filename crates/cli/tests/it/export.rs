//! Policies of studies that ship, exported in the languages of switches and schedulers.

use crate::support::{Sandbox, contains, text};
use std::path::Path;
use std::process::Output;

fn exported(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_policy_is_exported_as_commands_of_open_vswitch() {
    let sandbox = Sandbox::new();
    let study = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/router-mechanisms.yaml");
    let study = study.to_str().unwrap();
    let export = |policy| ["export", study, "--policy", policy, "--to", "ovs"];
    let arguments = [&export("bandwidth")[..], &["--interface", "right"]].concat();
    let printed = exported(&sandbox.slicewise(&arguments));
    contains(&printed, "set port right qos=@qos");
    contains(&printed, "min-rate=17500000");
    let error = sandbox.refused(2, &export("wred"));
    contains(&error, "its queues drop at their end alone");
}

#[test]
fn a_policy_is_exported_as_a_profile_of_dpdk() {
    let sandbox = Sandbox::new();
    let study = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/dpdk-hqos.yaml");
    let study = study.to_str().unwrap();
    let export = |policy| {
        [
            "export", study, "--case", "e1", "--policy", policy, "--to", "dpdk",
        ]
    };
    let printed = exported(&sandbox.slicewise(&export("q128-b8")));
    contains(&printed, "queue sizes = 128 128");
    contains(&printed, "pipe 0-7 = 0");
    let error = sandbox.refused(2, &export("guaranteed"));
    contains(&error, "only policies that were written as a profile");
}

#[test]
fn a_rate_that_changes_is_no_rate_of_a_configuration() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "study.yaml",
        "name: small\nlink: {rate: 1 Gbit/s}\n\
         dut: {model: port, port_rate: [{at: 0 s, rate: 20 Mbit/s}, {at: 1 s, rate: 5 Mbit/s}]}\n\
         slices: {all: {match: {vlan: 10}, share: 1 Mbit/s, headers: {vlan: 10}}}\n\
         scenarios: {storm: {sources: {all: {slice: all, pattern: cbr, rate: 9 Mbit/s, payload: 500 B}}}}\n\
         policies: {one: {classes: [{name: all, slice: all, shape: 4 Mbit/s}]}}\n\
         repetitions: 1\nduration: 4 s\n",
    );
    let export = |to| ["export", "study.yaml", "--policy", "one", "--to", to];
    for to in ["tc", "ovs"] {
        let error = sandbox.refused(2, &export(to));
        contains(&error, "changes during a run (`dut.port_rate`)");
    }
    let (ios, _) = sandbox.succeeded(&export("ios"));
    contains(&ios, "shape average 4000000");
}
