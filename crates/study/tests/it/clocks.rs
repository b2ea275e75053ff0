//! Clocks of the machines that send: how they drift apart, and what of a study does not change them.

use crate::support::{STUDY, changed, mistakes, parse};
use insta::assert_snapshot;
use slicewise_study::{HostTiming, Pacing, Study};
use slicewise_units::Duration;
use std::collections::BTreeSet;

/// A crystal's tolerance (IEEE 802.3), parts per billion.
const CRYSTAL_PPB: u32 = 100_000;

fn hosts(setting: &str) -> HostTiming {
    let hosts = format!("hosts: {{{setting}}}\nslices:");
    parse(&changed("slices:", &hosts)).unwrap().hosts
}

fn timers(hosts: &HostTiming, machines: u32) -> Vec<u64> {
    (0..machines).map(|m| hosts.timer_of(m).nanos()).collect()
}

#[test]
fn each_timer_is_slower_than_the_one_before_by_the_drift() {
    let default = parse(STUDY).unwrap().hosts;
    assert_eq!(timers(&default, 3), [1_000_100, 1_000_200, 1_000_300]);
    let declared = hosts("timer: 5 ms, clock_drift: 0.1 %");
    assert_eq!(timers(&declared, 3), [5_005_000, 5_010_000, 5_015_000]);
    assert_eq!(hosts("clock_drift: 1000 ppm"), hosts("clock_drift: 0.1 %"));
}

#[test]
fn without_drift_all_have_one_clock() {
    let hosts = hosts("clock_drift: 0 ppm");
    assert_eq!(timers(&hosts, 2), [1_000_000; 2]);
    assert_eq!([0, 1].map(|m| hosts.cbr_slowness_ppb(m)), [0; 2]);
}

#[test]
fn no_timer_is_slower_by_more_than_a_tenth_however_many_there_are() {
    for (drift, clocks) in [("100 ppm", 1_000), ("1 %", 10), ("10 %", 1)] {
        let hosts = hosts(&format!("clock_drift: {drift}"));
        let timers = timers(&hosts, 100_000);
        assert_eq!(timers.iter().max(), Some(&1_100_000), "{drift}");
        assert_eq!(timers.iter().collect::<BTreeSet<_>>().len(), clocks);
        assert!(hosts.timer_of(u32::MAX).nanos() <= 1_100_000);
    }
}

#[test]
fn rates_of_constant_bit_rate_differ_within_the_tolerance_of_a_crystal() {
    for (drift, most) in [("0.1 %", CRYSTAL_PPB), ("20 ppm", 20_000)] {
        let hosts = hosts(&format!("clock_drift: {drift}"));
        let mut slowness: Vec<u32> = (0..50).map(|m| hosts.cbr_slowness_ppb(m)).collect();
        slowness.sort_unstable();
        assert!(*slowness.last().unwrap() < most);
        let closest = slowness.windows(2).map(|pair| pair[1] - pair[0]).min();
        // Fifty of them evenly spread would be a fiftieth apart.
        assert!(closest.unwrap() > most / 150, "{drift}: {slowness:?}");
    }
}

#[test]
fn a_source_is_on_the_same_machine_in_every_scenario() {
    let machines = |study: &Study, scenario: usize| -> Vec<(String, u32)> {
        let sources = study.scenarios[scenario].sources.iter();
        sources.map(|s| (s.name.clone(), s.machine)).collect()
    };
    let text = changed(
        "sources: {other: {slice: rest, pattern: poisson, rate: 20 Mbit/s, payload: 500 B}}",
        "without: [steady]\n    sources:\n      \
         more: {slice: rest, pattern: cbr, rate: 1 Mbit/s, payload: 500 B}\n      \
         other: {slice: rest, pattern: poisson, rate: 20 Mbit/s, payload: 500 B}",
    );
    let study = parse(&text).unwrap();
    let named = |sources: &[(&str, u32)]| -> Vec<(String, u32)> {
        let owned = |&(name, machine): &(&str, u32)| (name.to_owned(), machine);
        sources.iter().map(owned).collect()
    };
    assert_eq!(machines(&study, 0), named(&[("steady", 0), ("other", 1)]));
    assert_eq!(machines(&study, 1), named(&[("more", 2), ("other", 1)]));
}

#[test]
fn a_drift_is_in_parts_per_million_and_a_tenth_at_most() {
    let refused = |drift: &str| {
        let hosts = format!("hosts: {{clock_drift: {drift}}}\nslices:");
        mistakes("slices:", &hosts)
    };
    assert_snapshot!(["100", "-5 ppm", "1 ms", "10.001 %"].map(refused).join("\n"), @"
    study.yaml:6:22 `100`: `100` is not a number of parts per million: write for example `100 ppm` or `0.1 %`
    study.yaml:6:22 `-5 ppm`: `-5 ppm` is not a number of parts per million: write for example `100 ppm` or `0.1 %`
    study.yaml:6:22 `1 ms`: `1 ms` is not a number of parts per million: write for example `100 ppm` or `0.1 %`
    study.yaml:6:22 `10.001 %`: a clock drift may be at most 10 %
    ");
}

/// iperf3 takes whole microseconds, and prediction and measurement are to have the same timers.
#[test]
fn timers_of_real_packets_are_whole_microseconds_apart() {
    for (setting, expected) in [
        ("clock_drift: 0 ppm", [1_000, 1_000]),
        ("clock_drift: 1 ppm", [1_001, 1_002]),
        ("clock_drift: 0.1 %", [1_001, 1_002]),
        ("clock_drift: 0.26 %", [1_003, 1_006]),
        ("timer: 3 ms", [3_001, 3_002]),
        ("timer: 100 us", [101, 102]),
    ] {
        let text = changed("slices:", &format!("hosts: {{{setting}}}\nslices:"));
        let hosts = parse(&text)
            .unwrap()
            .into_testbed(Pacing::Departures)
            .unwrap()
            .hosts;
        let timers = [0, 1].map(|machine| hosts.timer_of(machine));
        assert_eq!(timers, expected.map(Duration::from_micros), "{setting}");
    }
}
