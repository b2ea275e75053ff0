//! Studies of several devices in a row.

use crate::support::{STUDY, parse};
use insta::assert_snapshot;
use slicewise_study::{Pacing, Study};
use slicewise_units::BitRate;

const DUT: &str = "dut:
  model: port
  port_rate: 10 Mbit/s
";

/// The study of the other tests, on these devices instead of one.
fn on(network: &str) -> Result<Study, String> {
    assert!(STUDY.contains(DUT));
    parse(&STUDY.replace(DUT, network))
}

const TWO: &str = "path: [a, b]
devices:
  a: {model: port, port_rate: 20 Mbit/s}
  b: {model: port, port_rate: 10 Mbit/s, processing_delay: 7 us}
";

#[test]
fn the_device_with_the_least_capacity_limits_a_path() {
    let study = on(TWO).unwrap();
    assert_eq!(study.dut.capacity().rate, BitRate::new(10_000_000));
    let names: Vec<&str> = study.path.iter().map(|hop| hop.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let rates = |policy| -> Vec<u64> {
        let hops = study.hops(policy);
        hops.map(|(device, _)| device.port_rate.rate.bits_per_second())
            .collect()
    };
    assert_eq!(rates(0), [20_000_000, 10_000_000]);
    assert_eq!(rates(9), [0; 0]);
    assert_snapshot!(study.description("test").dut, @"path of a: egress port of 20 Mbit/s (model); b: egress port of 10 Mbit/s (model)");
}

#[test]
fn a_device_is_under_its_own_policy_or_the_one_compared() {
    let own = "policy: {classes: [{name: gold, slice: gold, priority: {level: 1}}]}";
    let network = TWO.replace("processing_delay: 7 us", own);
    let study = on(&network).unwrap();
    // The one that is compared limits, although the other is slower.
    assert_eq!(study.dut.capacity().rate, BitRate::new(20_000_000));
    for index in 0..study.policies.len() {
        let hops: Vec<_> = study.hops(index).map(|(_, policy)| policy).collect();
        assert_eq!(*hops[0], study.policies[index].params);
        assert_eq!(hops[1].name, "b");
    }
}

#[test]
fn a_path_that_frames_cannot_take_is_refused() {
    let refused = |network: &str| on(network).unwrap_err();
    assert_snapshot!(refused(&TWO.replace("[a, b]", "[a, b, a]")), @"study.yaml:3:14 `a`: the path comes back to device `a`: frames would go round in a loop");
    assert_snapshot!(refused(&TWO.replace("[a, b]", "[a, c]")), @"
    study.yaml:3:11 `c`: there is no device `c`; help: known are `a`, `b`
    study.yaml:6:3 `b`: device `b` is not on the path; help: name it in `path`, or leave it out
    ");
    assert_snapshot!(refused(&TWO.replace("[a, b]", "[]")), @"study.yaml:3:1 `path`: a path needs at least one device");
}

#[test]
fn devices_and_a_path_belong_together_and_exclude_a_device_under_test() {
    let refused = |network: &str| on(network).unwrap_err();
    assert_snapshot!(refused(&format!("{DUT}{TWO}")), @"study.yaml:6:1 `path`: `path` and `dut` exclude each other: `dut` is a path of one device");
    assert_snapshot!(refused(&format!("{DUT}{}", TWO.replace("path: [a, b]\n", ""))), @"study.yaml:6:1 `devices`: `devices` are those of a `path`, and there is none");
    assert_snapshot!(refused(&DUT.replace("model: port", "model: port\n  policy: {none: true}")), @"study.yaml:5:3 `policy`: `dut` is under the policies that are compared: only a device of `devices` has its own");
    let own = TWO.replace("Mbit/s", "Mbit/s, policy: {none: true}");
    assert_snapshot!(refused(&own), @"study.yaml:3:1 `path`: every device of the path has a policy of its own: none is under those that are compared");
}

#[test]
fn a_policy_that_one_of_the_devices_cannot_hold_is_refused_with_its_name() {
    let guarantee = "guarantee: {rate: 30 Mbit/s, burst: 3000 B, delay: 20 ms}";
    let classes = format!("classes: [{{name: gold, slice: gold, {guarantee}}}]");
    let own = format!("20 Mbit/s, policy: {{discipline: guaranteed, {classes}}}");
    let refused = on(&TWO.replace("20 Mbit/s", &own)).unwrap_err();
    assert_snapshot!(refused, @"study.yaml:5:42 `policy`: on device `a`: guarantees 30 Mbit/s (L2), in small frames 42 Mbit/s (L1), but only 20 Mbit/s (L1) of the link is free: write a rate of at most 14.28 Mbit/s (L2), or `counts: L1` for all guarantees of the link");
}

#[test]
fn several_devices_are_simulated_only() {
    let refused = on(TWO)
        .unwrap()
        .into_testbed(Pacing::Departures)
        .unwrap_err();
    assert_snapshot!(refused, @"this study has a path of several devices, and a testbed has one: simulate it, or give `dut` in a study that extends this one (`without: [path, devices]`)");
}

#[test]
fn rates_in_percent_of_a_device_that_is_not_known_overload_no_link() {
    let refused = |network: &str| {
        let study = STUDY.replace("20 Mbit/s, payload", "150 %, payload");
        parse(&study.replace(DUT, network)).unwrap_err()
    };
    assert_snapshot!(refused(&TWO.replace("path: [a, b]", "path: a")), @"study.yaml:3:7 `a`: a list is expected here, for example `[first, second]`");
    assert_snapshot!(refused(&TWO.replace("path: [a, b]", "path: []")), @"study.yaml:3:1 `path`: a path needs at least one device");
    assert_snapshot!(refused(&TWO.replace("path: [a, b]\n", "")), @"study.yaml:3:1 `devices`: `path` is missing: in which order do frames pass the devices?; help: add their names in that order, for example `path: [first, second]`");
}

#[test]
fn a_path_that_cannot_be_read_is_one_mistake() {
    let refused = |network: &str| on(network).unwrap_err();
    assert_snapshot!(refused(&TWO.replace("[a, b]", "a")), @"study.yaml:3:7 `a`: a list is expected here, for example `[first, second]`");
    assert_snapshot!(refused(&TWO.replace("path:", "pth:")), @"study.yaml:3:1 `pth`: `pth` is not a setting here; help: did you mean `path`?");
    assert_snapshot!(refused(&TWO.replace("b: {model: port", "b: {modl: port")), @"study.yaml:6:7 `modl`: `modl` is not a setting here; help: did you mean `model`?");
    let own = TWO.replace("20 Mbit/s", "20 Mbit/s, policy: 1");
    assert_snapshot!(refused(&own), @"study.yaml:5:50 `1`: settings are expected here, for example `title: …`");
}
