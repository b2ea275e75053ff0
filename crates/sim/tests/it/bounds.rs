//! Bounds of delay that studies promise, against what the simulator measures: of every packet.

use crate::support::changed;
use slicewise_sim::Simulator;
use slicewise_stats::description::{DelayBound, StudyDescription};
use slicewise_stats::observations::Observations;
use slicewise_stats::record::{RunRecord, SchedulerFigures};
use slicewise_stats::verdict::{self, Outcome, PolicyVerdict};
use slicewise_study::{Backend, RunFilter, Study};
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
    changed(SMALL, changes)
}

fn bound(description: &StudyDescription, policy: &str, slice: &str) -> DelayBound {
    let policy = description.policies.iter().find(|p| p.name == policy);
    let policy = policy.unwrap();
    assert_eq!(policy.unbounded, []);
    policy.delay_bounds[slice]
}

/// Runs under `policy`, in all scenarios.
fn runs(study: &Study, policy: &str, repetitions: u32) -> Vec<RunRecord> {
    let filter = RunFilter {
        policies: vec![policy.to_owned()],
        repetitions: Some(repetitions),
        ..RunFilter::default()
    };
    let simulator = Simulator::default();
    let runs = study.runs(&filter).unwrap();
    runs.iter()
        .map(|run| simulator.run(study, run).unwrap())
        .collect()
}

/// The largest delay of the first slice under `policy`, in all its scenarios.
fn largest(study: &Study, policy: &str, repetitions: u32) -> u64 {
    let runs = runs(study, policy, repetitions);
    let delays = runs.iter().map(|run| {
        let delay = &run.slices[0].whole.delay;
        assert!(delay.samples > 1_000, "{delay:?}");
        delay.max_ns
    });
    delays.max().unwrap()
}

/// The largest times of the first slice in the scheduler, of all runs.
fn in_scheduler(runs: &[RunRecord]) -> (u64, u64) {
    let figures = || {
        runs.iter()
            .map(|run| run.slices[0].scheduler.expect("measured"))
    };
    let delay = |f: SchedulerFigures| f.delay_max_ns;
    let after_eligible = |f: SchedulerFigures| f.after_eligible_max_ns.expect("has a guarantee");
    (
        figures().map(delay).max().unwrap(),
        figures().map(after_eligible).max().unwrap(),
    )
}

fn judge(description: &StudyDescription, runs: &[RunRecord]) -> PolicyVerdict {
    let mut observations = Observations::default();
    for run in runs {
        observations.add(description, run).unwrap();
    }
    verdict::judge(description, &observations)
        .policies
        .remove(0)
}

#[test]
fn no_critical_packet_of_the_router_study_is_late() {
    let study = Study::load(Path::new(ROUTER_STUDY))
        .map_err(|e| e.to_string())
        .unwrap();
    let bound = bound(&study.description("test"), "guaranteed", "critical");
    // What was asked for, a bucket included.
    assert_eq!(bound.scheduler_ns, 2_000_000);
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
    let slow_timers: &[(&str, &str)] = &[
        ("timer: 1 ms", "clock_drift: 5 %, timer: 5 ms"),
        ("timer_slack: 50 us", "timer_slack: 2 ms"),
    ];
    // Sizes of which small ones come to more on the link than the rate counts.
    let mixed: &[(&str, &str)] = &[
        (
            "rate: 2 Mbit/s, payload: 1000 B",
            "rate: 2 Mbit/s, counts: payload, payload: {64 B: 7, 576 B: 4, 1000 B: 1}",
        ),
        (
            "rate: 500 kbit/s, payload: 100 B",
            "rate: 300 kbit/s, payload: imix",
        ),
        ("burst: 3400 B", "burst: 6200 B"),
        ("delay: 5.2 ms", "delay: 15 ms"),
    ];
    // At least so much of the bound is seen: else it would say little.
    for (changes, percent) in [
        (&[][..], 15),
        (slow_link, 40),
        (licence, 15),
        (bursty, 20),
        (slow_timers, 20),
        (mixed, 15),
    ] {
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

/// Best effort that is Poisson, on the link that gold shares with it. Gold sends a frame at a time, is guaranteed
/// little more, and gets little of the excess.
const RANDOM: &[(&str, &str)] = &[
    (
        "  short: {slice: gold, pattern: cbr, rate: 500 kbit/s, payload: 100 B}\n",
        "",
    ),
    (
        "guarantee: {rate: 4 Mbit/s, burst: 3400 B, delay: 5.2 ms}}",
        "guarantee: {rate: 2.2 Mbit/s, burst: 1522 B, delay: 3.05 ms}}\n      - {name: rest, slice: rest, weight: 100}",
    ),
    ("link: {rate: 1 Gbit/s", "link: {rate: 20 Mbit/s"),
    (
        "pattern: iperf3, rate: 2 Mbit/s",
        "pattern: cbr, rate: 2 Mbit/s",
    ),
    (
        "pattern: iperf3\n        rate: 40 Mbit/s",
        "pattern: poisson\n        rate: 12 Mbit/s",
    ),
    (
        "slice: rest, pattern: cbr, rate: 2 Mbit/s",
        "slice: rest, pattern: poisson, rate: 15 Mbit/s",
    ),
];

#[test]
fn beside_random_best_effort_no_packet_leaves_later_than_proved_after_its_eligible_time() {
    let study = parse(RANDOM);
    let mut description = study.description("test");
    let policy = &description.policies[0];
    assert!(policy.delay_bounds.is_empty(), "the way has no bound");
    let scenarios: Vec<_> = policy
        .unbounded
        .iter()
        .map(|u| u.scenario.clone())
        .collect();
    assert_eq!(scenarios, ["calm", "storm"]);
    let bound = policy.unbounded[0].scheduler_ns.expect("gold conforms");

    let runs = runs(&study, "promise", 8);
    let (from_queued, after_eligible) = in_scheduler(&runs);
    assert!(after_eligible <= bound, "{after_eligible} of {bound}");
    assert!(
        after_eligible * 100 >= bound * 25,
        "{after_eligible} of {bound}"
    );
    // Frames held up on the link together come as a burst above the guarantee's, and wait for more than the bound.
    assert!(from_queued > bound, "{from_queued} of {bound}");
    let isolation = judge(&description, &runs).isolation;
    let check = &isolation.bounds[0];
    assert_eq!((check.outcome, check.runs), (Outcome::Holds, 16));
    assert_eq!(
        (check.largest_ns, check.bound.scheduler_ns),
        (after_eligible, bound)
    );

    // A bound that the scheduler does not keep.
    for unbounded in &mut description.policies[0].unbounded {
        unbounded.scheduler_ns = Some(after_eligible - 1);
    }
    let isolation = judge(&description, &runs).isolation;
    assert_eq!(isolation.outcome, Outcome::Broken);
    assert_eq!(isolation.broken_bound().unwrap().largest_ns, after_eligible);
}

#[test]
fn a_slice_beyond_its_guarantee_is_late_after_queueing_but_never_after_its_eligible_time() {
    let mut changes = RANDOM.to_vec();
    for change in &mut changes {
        if change.0.contains("iperf3, rate: 2 Mbit/s") {
            change.1 = "pattern: poisson, rate: 2.5 Mbit/s";
        }
    }
    let study = parse(&changes);
    let description = study.description("test");
    assert_eq!(description.policies[0].unbounded[0].scheduler_ns, None);
    let conforming = parse(RANDOM).description("test");
    let bound = conforming.policies[0].unbounded[0].scheduler_ns.unwrap();
    let (from_queued, after_eligible) = in_scheduler(&runs(&study, "promise", 4));
    assert!(after_eligible <= bound, "{after_eligible} of {bound}");
    assert!(from_queued > 2 * bound, "{from_queued} of {bound}");
}
