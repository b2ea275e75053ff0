//! Bounds of delay that studies promise, against what the simulator measures: of every packet.

#![allow(clippy::unwrap_used, reason = "tests")]

use slicewise_sim::Simulator;
use slicewise_stats::description::{DelayBound, StudyDescription};
use slicewise_study::{Backend, MemoryFiles, RunFilter, Study};
use std::path::Path;

const ROUTER_STUDY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../studies/router-mechanisms.yaml"
);

/// Gold is promised 3 Mbit/s of a port that others overload.
const SMALL: &str = "\
name: small
link: {rate: 1 Gbit/s, propagation: 2 us}
dut: {model: port, port_rate: 10 Mbit/s, processing_delay: 5 us}
hosts: {timer: 1 ms, timer_slack: 50 us, send_cost: 15 us, interrupt_moderation: 20 us}
slices:
  gold: {match: {vlan: 10}, share: 40 %, guaranteed: true, headers: {vlan: 10}}
  rest: {match: {vlan: 20}, share: 60 %, headers: {vlan: 20}}
sources:
  steady: {slice: gold, pattern: iperf3, rate: 2 Mbit/s, payload: 1000 B}
  short: {slice: gold, pattern: cbr, rate: 500 kbit/s, payload: 100 B}
scenarios:
  calm:
    reference: true
    sources: {other: {slice: rest, pattern: cbr, rate: 2 Mbit/s, payload: 1400 B}}
  storm:
    sources:
      other:
        slice: rest
        pattern: iperf3
        rate: 40 Mbit/s
        payload: 1400 B
        on_off: {on_for: 30 ms, off_for: 20 ms}
      more: {slice: rest, pattern: cbr, rate: 3 Mbit/s, payload: 1400 B}
policies:
  promise:
    discipline: guaranteed
    classes:
      - {name: gold, slice: gold, guarantee: {rate: 4 Mbit/s, burst: 3400 B, delay: 5.2 ms}}
repetitions: 3
duration: 2 s
";

fn parse(changes: &[(&str, &str)]) -> Study {
    let mut text = SMALL.to_owned();
    for (old, new) in changes {
        assert!(text.contains(old), "`{old}` is not in the study");
        text = text.replacen(old, new, 1);
    }
    Study::parse(&text, "small.yaml", &MemoryFiles::new())
        .map_err(|e| e.to_string())
        .unwrap()
}

fn bound(description: &StudyDescription, policy: &str, slice: &str) -> DelayBound {
    let policy = description.policies.iter().find(|p| p.name == policy);
    let policy = policy.unwrap();
    assert_eq!(policy.unbounded, []);
    policy.delay_bounds[slice]
}

/// The largest delay of the first slice under `policy`, in all its scenarios.
fn largest(study: &Study, policy: &str, repetitions: u32) -> u64 {
    let filter = RunFilter {
        policies: vec![policy.to_owned()],
        repetitions: Some(repetitions),
        ..RunFilter::default()
    };
    let simulator = Simulator::default();
    let runs = study.runs(&filter).unwrap();
    let delays = runs.iter().map(|run| {
        let delay = &simulator.run(study, run).unwrap().slices[0].whole.delay;
        assert!(delay.samples > 1_000, "{delay:?}");
        delay.max_ns
    });
    delays.max().unwrap()
}

#[test]
fn no_critical_packet_of_the_router_study_is_late() {
    let study = Study::load(Path::new(ROUTER_STUDY))
        .map_err(|e| e.to_string())
        .unwrap();
    let bound = bound(&study.description("test"), "guaranteed", "critical");
    // The longest class within 2 ms, and a bucket.
    assert_eq!(bound.scheduler_ns, 1_810_176 + 1_024);
    let largest = largest(&study, "guaranteed", 1);
    assert!(largest <= bound.end_to_end_ns(), "{largest} of {bound:?}");
    // Guaranteed packets borrow from the licence: the wait for the interrupt is the most of it.
    assert!(largest > bound.outside_ns / 2, "{largest} of {bound:?}");
}

/// Where the port, the first link or a licence is what packets wait for.
#[test]
fn no_packet_is_late_wherever_it_waits() {
    let port = "dut: {model: port, port_rate: 10 Mbit/s, processing_delay: 5 us}";
    let slow_link: &[(&str, &str)] = &[
        ("link: {rate: 1 Gbit/s", "link: {rate: 60 Mbit/s"),
        ("port_rate: 10 Mbit/s", "port_rate: 1 Gbit/s"),
        ("share: 40 %", "share: 4 Mbit/s"),
        ("share: 60 %", "share: 6 Mbit/s"),
        ("delay: 5.2 ms", "delay: 100 us"),
    ];
    let licence: &[(&str, &str)] = &[(
        port,
        "dut: {model: isr4221, processing_delay: 5 us, licence: {rate: 10 Mbit/s, credit: 10 \
             ms, counts: L3, priority: waits}}",
    )];
    let bursty: &[(&str, &str)] = &[
        ("timer: 1 ms", "timer: 5 ms"),
        ("timer_slack: 50 us", "timer_slack: 2 ms"),
        ("send_cost: 15 us", "send_cost: 0 us"),
    ];
    // At least so much of the bound is seen: else it would say little.
    for (changes, percent) in [(&[][..], 15), (slow_link, 40), (licence, 15), (bursty, 20)] {
        let study = parse(changes);
        let bound = bound(&study.description("test"), "promise", "gold");
        let largest = largest(&study, "promise", 3);
        let all = bound.end_to_end_ns();

        assert!(largest <= all, "{changes:?}: {largest} of {bound:?}");
        assert!(
            largest * 100 >= all * percent,
            "{changes:?}: {largest} of {bound:?}"
        );
    }
}
