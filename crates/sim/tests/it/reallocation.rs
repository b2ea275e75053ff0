//! A loop over the rates of classes in a simulated run.

use crate::support::changed;
use slicewise_sim::Simulator;
use slicewise_stats::record::RunRecord;
use slicewise_study::{Backend, RunFilter};

const STUDY: &str = "
name: loop
link: {rate: 1 Gbit/s}
dut: {model: port, port_rate: 10 Mbit/s, port_counts: L2}
slices:
  gold: {match: {vlan: 10}, share: 50 %, guaranteed: true, headers: {vlan: 10}}
  rest: {match: {vlan: 20}, share: 50 %, headers: {vlan: 20}}
sources:
  gold: {slice: gold, pattern: cbr, rate: 5 Mbit/s, counts: L2, payload: 1000 B, stop: 2 s}
  rest: {slice: rest, pattern: cbr, rate: 20 Mbit/s, counts: L2, payload: 1000 B}
scenarios: {all: {reference: true}}
policies:
  loop:
    classes: [{name: rest, slice: rest, shape: 5 Mbit/s, queue_limit: 10 ms}]
    reallocate:
      every: 100 ms
      classes: {class-default: {guarantee: 50 %}, rest: {guarantee: 50 %, minimum: 50 %}}
repetitions: 3
duration: 6 s
";

fn run(changes: &[(&str, &str)], repetition: usize) -> RunRecord {
    let study = changed(STUDY, changes);
    let runs = study.runs(&RunFilter::default()).unwrap();
    Simulator::default().run(&study, &runs[repetition]).unwrap()
}

/// Rate that the slice `rest` receives in each bin of 50 ms, Mbit/s.
fn rates(record: &RunRecord) -> Vec<f64> {
    let bytes = record.slices[1].series.received_bytes.iter();
    bytes.map(|bytes| *bytes as f64 * 8.0 / 50_000.0).collect()
}

/// Time from 2 s on, when `gold` falls silent, until `rest` has the whole link; s.
fn late_by(changes: &[(&str, &str)], repetition: usize) -> f64 {
    let rates = rates(&run(changes, repetition));
    let silent = 2 * 20;
    let lent = rates[silent..].iter().position(|rate| *rate > 9.5);
    lent.unwrap() as f64 * 0.05
}

#[test]
fn what_a_class_leaves_is_lent_within_two_intervals_and_the_latency() {
    for repetition in 0..3 {
        let rates = rates(&run(&[], repetition));
        assert!(rates[20..40].iter().all(|rate| (4.5..5.5).contains(rate)));
        assert!(rates[50..].iter().all(|rate| *rate > 9.5));
        assert!(late_by(&[], repetition) <= 0.3);
        // The interval in which a class falls silent is half full.
        let slow = [("every: 100 ms", "every: 1 s\n      delay: 800 ms")];
        let late = late_by(&slow, repetition);
        assert!((0.75..=2.9).contains(&late), "{late}");
    }
}

#[test]
fn a_loop_reads_at_another_moment_in_each_repetition() {
    let slow = [("every: 100 ms", "every: 1 s")];
    let late: Vec<f64> = (0..3).map(|it| late_by(&slow, it)).collect();
    assert!(late[0] != late[1] || late[1] != late[2], "{late:?}");
}

#[test]
fn a_limit_of_the_loop_holds() {
    let most = [("minimum: 50 %", "minimum: 50 %, maximum: 70 %")];
    let rates = rates(&run(&most, 0));
    assert!(rates[50..118].iter().all(|rate| (6.5..7.5).contains(rate)));
}

#[test]
fn a_loop_that_always_decides_what_is_written_leaves_the_device_alone() {
    let fixed = [("minimum: 50 %", "minimum: 50 %, maximum: 50 %")];
    let (_, with) = STUDY.split_once("    reallocate:").unwrap();
    let (text, _) = with.split_once("repetitions:").unwrap();
    let without = [(text, ""), ("    reallocate:", "")];
    let (mut looped, plain) = (run(&fixed, 0), run(&without, 0));
    looped.key.clone_from(&plain.key);
    assert_eq!(looped, plain);
}

#[test]
fn a_class_within_its_guarantee_loses_nothing_while_rates_change() {
    let fast = [
        ("every: 100 ms", "every: 7 ms"),
        ("stop: 2 s", "on_off: {on_for: 30 ms, off_for: 20 ms}"),
    ];
    let record = run(&fast, 0);
    assert_eq!(record.slices[0].whole.lost_frames, 0);
    assert!(record.slices[1].whole.lost_frames > 0);
}
