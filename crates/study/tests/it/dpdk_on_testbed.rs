//! Studies made ready for DPDK's scheduler on real packets.

use crate::support::parse;
use slicewise_study::{DutModel, DutParams, Pacing, QosSchedBursts, Study};
use slicewise_units::BitRate;

const STUDY: &str = "\
name: threads
link: {rate: 10 Gbit/s}
dut: {model: qos_sched, burst: 16}
slices:
  first: {match: {vlan: 0, inner_vlan: 3}, share: 5 %, headers: {vlan: 0, inner_vlan: 3}}
sources:
  first: {slice: first, pattern: cbr, rate: 1 %, payload: 1000 B}
scenarios:
  alone: {reference: true}
policies:
  of-the-study: {none: true}
  its-own: {none: true, dut: {burst: 8}}
  a-port: {none: true, dut: {model: port, port_rate: 200 Mbit/s}}
repetitions: 1
duration: 1 s
";

/// Bursts at which the transmit thread waits.
fn waits_for(device: &DutParams) -> Option<u32> {
    match device.model {
        DutModel::QosSched(threads) => Some(threads.burst.dequeue),
        _ => None,
    }
}

fn on(pacing: Pacing) -> Study {
    parse(STUDY).unwrap().into_testbed(pacing).unwrap()
}

#[test]
fn bursts_of_a_study_and_of_a_policy_are_those_of_the_real_device() {
    let study = on(Pacing::Bursts);
    assert_eq!(waits_for(&study.dut), Some(16));
    let own: Vec<Option<u32>> = (study.policies.iter())
        .map(|policy| waits_for(policy.device.as_ref()?))
        .collect();
    let sample = QosSchedBursts {
        dequeue: 32,
        ..QosSchedBursts::all(64)
    };
    assert_eq!(own, [None, Some(8), Some(sample.dequeue)]);
    let port = study.policies[2].device.unwrap().port_rate.rate;
    assert_eq!(port, BitRate::new(200_000_000));
}

#[test]
fn a_study_without_threads_gets_those_of_the_sample_application() {
    let plain = STUDY
        .replace("{model: qos_sched, burst: 16}", "{model: port}")
        .replace("dut: {burst: 8}", "dut: {model: port}");
    let study = parse(&plain).unwrap().into_testbed(Pacing::Bursts).unwrap();
    assert_eq!(waits_for(&study.dut), Some(32));
}

#[test]
fn descriptors_of_a_card_have_no_effect_on_virtual_interfaces_which_is_said() {
    assert_eq!(on(Pacing::Bursts).descriptors_without_effect(), None);
    for (old, new) in [
        ("burst: 16", "ring: {transmit: 256}"),
        ("burst: 8", "ring: {transmit: 256}"),
    ] {
        let study = parse(&STUDY.replace(old, new)).unwrap();
        let bursts = study.clone().into_testbed(Pacing::Bursts).unwrap();
        assert!(
            bursts
                .descriptors_without_effect()
                .unwrap()
                .contains("`ring.transmit`"),
            "{new}"
        );
        let departures = study.into_testbed(Pacing::Departures).unwrap();
        assert_eq!(departures.descriptors_without_effect(), None);
    }
}

#[test]
fn links_that_take_time_are_refused_on_a_testbed() {
    let with = |propagation: &str| {
        let link = format!("{{rate: 10 Gbit/s, propagation: {propagation}}}");
        let study = parse(&STUDY.replace("{rate: 10 Gbit/s}", &link)).unwrap();
        study.into_testbed(Pacing::Bursts)
    };
    assert!(with("500 us").is_ok());
    let refused = with("501 us").unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the links of this study take 501 µs (`link.propagation`), and those of a testbed take no time: simulate it, or \
         give at most 500 µs in a study that extends this one"
    );
}

#[test]
fn other_devices_have_no_threads_and_the_rate_of_the_device_that_a_policy_is_on() {
    for pacing in [Pacing::Departures, Pacing::TokenBucket] {
        let study = on(pacing);
        assert_eq!(waits_for(&study.dut), None);
        let mut own = study.policies.iter().filter_map(|policy| policy.device);
        assert!(own.all(|device| waits_for(&device).is_none()));
        let rate = study.capacity_of(&study.policies[2]).rate;
        assert_eq!(rate, BitRate::new(200_000_000));
    }
}
