//! Pipes of DPDK's scheduler behind the threads of `qos_sched`.

use crate::support::changed;
use slicewise_sim::Simulator;
use slicewise_stats::record::RunRecord;
use slicewise_study::{Backend, RunFilter};

/// Two pipes of 20 Mbit/s. A thin slice alone, with another that its pipe carries, and with one of which it does not carry
/// a third.
const STUDY: &str = "\
name: pipes
link: {rate: 10 Gbit/s}
dut: {model: qos_sched, burst: 8}
slices:
  thin: {match: {inner_vlan: 3}, share: 0.2 %, guaranteed: true, headers: {vlan: 0, inner_vlan: 3, destination: 10.0.10.12}}
  wide: {match: {inner_vlan: 0}, share: 0.2 %, headers: {vlan: 0, inner_vlan: 0, destination: 10.0.11.13}}
sources:
  thin: {slice: thin, pattern: cbr, payload: 58 B, rate: 848 kbit/s, counts: L2}
scenarios:
  alone: {reference: true}
  fits: {sources: {wide: &wide {slice: wide, pattern: poisson, payload: 1400 B, rate: 15 Mbit/s, counts: L2}}}
  exceeds: {sources: {wide: {<<: *wide, rate: 30 Mbit/s}}}
policies:
  pipes:
    dpdk: |
PROFILE
repetitions: 1
duration: 2 s
";

fn rates(rate: u32, period: u32) -> String {
    let classes: String = (0..13)
        .map(|class| format!("tc {class} rate = {rate}\n"))
        .collect();
    format!("tb rate = {rate}\ntb size = 1000000\n{classes}tc period = {period}\n")
}

/// The records of all scenarios, with `more` in the profile.
fn records(more: &str) -> Vec<RunRecord> {
    let profile = format!(
        "[subport 0]\nnumber of pipes per subport = 16\nqueue sizes ={}\npipe 0-15 = 0\n\
         [subport profile 0]\n{}[pipe profile 0]\n{}{more}",
        " 64".repeat(13),
        rates(1_250_000_000, 10),
        rates(2_500_000, 40)
    );
    let lines = profile.lines().map(|line| format!("      {line}"));
    let lines: Vec<String> = lines.collect();
    let study = changed(STUDY, &[("PROFILE", &lines.join("\n"))]);
    let runs = study.runs(&RunFilter::default()).unwrap();
    let run = |run| Simulator::default().run(&study, run).unwrap();
    runs.iter().map(run).collect()
}

/// Class, reason and frames.
fn drops(record: &RunRecord) -> Vec<(&str, &str, u64)> {
    let drops = record.drops.iter();
    let drops = drops.map(|drop| (drop.class.as_str(), drop.reason.as_str(), drop.frames));
    drops.collect()
}

/// A class uses the credits of its period at once, and what it sends then completes bursts. For the rest of 40 ms a pipe
/// that is asked for more sends nothing.
#[test]
fn a_pipe_beyond_its_rate_completes_bursts_of_others_only_where_a_period_begins() {
    let records = records("");
    let median = |record: &RunRecord| record.slices[0].whole.delay.p50_ns;
    let [alone, fits, exceeds] = records.as_slice() else {
        panic!("{} records", records.len())
    };
    // Of eight packets the last waits for none, the fourth from the end for three gaps.
    let gap_ns = 2_000_000_000 / records[0].slices[0].whole.sent_frames;
    assert!(
        median(alone).abs_diff(3 * gap_ns) < 50_000,
        "{}",
        median(alone)
    );
    assert!(
        median(exceeds).abs_diff(3 * gap_ns) < 50_000,
        "{}",
        median(exceeds)
    );
    assert!(median(fits) * 10 < median(alone) * 6, "{}", median(fits));
}

#[test]
fn what_queues_drop_is_recorded_by_pipe_and_class_as_on_the_real_device() {
    let full = records("");
    assert_eq!(drops(&full[1]), []);
    let wide = full[2].slices[1].whole.lost_frames;
    assert!(wide > 1_000, "{wide}");
    let queue = "subport 0 pipe 0 tc 12 queue 1";
    assert_eq!(drops(&full[2]), [(queue, "queue_full", wide)]);
    let curves = "[red]\ntc 12 red min = 4 4 4\ntc 12 red max = 8 8 8\ntc 12 red inv prob = 1 1 1\ntc 12 red weight = 1 1 1\n";
    let early = records(curves);
    let wide = early[2].slices[1].whole.lost_frames;
    assert_eq!(drops(&early[2]), [(queue, "red", wide)]);
}
