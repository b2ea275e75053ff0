//! Studies of several devices in a row.

#![allow(clippy::unwrap_used)]

mod support;

use insta::assert_snapshot;
use slicewise_study::{LiveDevice, Study};
use slicewise_units::BitRate;
use support::{STUDY, parse};

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
    assert_snapshot!(refused(&TWO.replace("[a, b]", "[a, b, a]")), @"");
    assert_snapshot!(refused(&TWO.replace("[a, b]", "[a, c]")), @"");
    assert_snapshot!(refused(&TWO.replace("[a, b]", "[]")), @"");
}

#[test]
fn devices_and_a_path_belong_together_and_exclude_a_device_under_test() {
    let refused = |network: &str| on(network).unwrap_err();
    assert_snapshot!(refused(&format!("{DUT}{TWO}")), @"");
    assert_snapshot!(refused(&format!("{DUT}{}", TWO.replace("path: [a, b]\n", ""))), @"");
    assert_snapshot!(refused(&DUT.replace("model: port", "model: port\n  policy: {none: true}")), @"");
    let own = TWO.replace("Mbit/s", "Mbit/s, policy: {none: true}");
    assert_snapshot!(refused(&own), @"");
}

#[test]
fn a_policy_that_one_of_the_devices_cannot_hold_is_refused_with_its_name() {
    let guarantee = "guarantee: {rate: 6 Mbit/s, burst: 3000 B, delay: 20 ms}";
    let promise =
        format!("discipline: guaranteed, classes: [{{name: gold, slice: gold, {guarantee}}}]");
    let text = STUDY.replace(
        "  router:\n    ios: router.cfg\n",
        &format!("  promise: {{{promise}}}\n"),
    );
    let slow = TWO.replace("20 Mbit/s", "5 Mbit/s").replace(
        "port_rate: 10 Mbit/s",
        &format!("port_rate: 10 Mbit/s, policy: {{{promise}}}"),
    );
    let text = text.replace("minimum: 60 %", "weight: 2");
    assert_snapshot!(parse(&text.replace(DUT, &slow)).unwrap_err(), @"");
}

#[test]
fn several_devices_are_simulated_only() {
    let refused = on(TWO).unwrap().into_live(LiveDevice::Gateway).unwrap_err();
    assert_snapshot!(refused, @"");
}
