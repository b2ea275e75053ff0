//! Studies whose port changes its rate during a run.

use slicewise_sim::Simulator;
use slicewise_stats::record::RunRecord;
use slicewise_study::{Backend, MemoryFiles, RunFilter, Study};

/// A port that is always full, and one class.
const FULL: &str = "\
name: full
link: {rate: 1 Gbit/s}
dut: {model: port, port_rate: RATE, port_counts: L2}
slices:
  all: {match: {vlan: 10}, share: 1 Mbit/s, headers: {vlan: 10}}
scenarios:
  storm: {sources: {all: {slice: all, pattern: cbr, rate: 100 Mbit/s, payload: 1000 B}}}
policies:
  nothing: {none: true}
measure: {bin: 100 ms}
repetitions: 1
duration: 6 s
";

fn record(rate: &str, trace: &str) -> RunRecord {
    let files = MemoryFiles::new().with("up.trace", trace);
    let study = Study::parse(&FULL.replace("RATE", rate), "full.yaml", &files);
    let study = study.map_err(|e| e.to_string()).unwrap();
    let runs = study.runs(&RunFilter::default()).unwrap();
    Simulator::default().run(&study, &runs[0]).unwrap()
}

/// Mbit/s that arrive in each bin, L2.
fn rates(record: &RunRecord) -> Vec<f64> {
    let bytes = record.slices[0].series.served_bytes.iter();
    #[expect(clippy::cast_precision_loss, reason = "megabits")]
    let rates = bytes.map(|bytes| *bytes as f64 * 8.0 / 1e5);
    rates.collect()
}

#[test]
fn a_full_port_sends_at_the_rate_of_each_step() {
    let record = record(
        "[{at: 0 s, rate: 20 Mbit/s}, {at: 2 s, rate: 5 Mbit/s}, {at: 3 s, rate: 0 bit/s}, {at: 4 s, rate: 40 Mbit/s}]",
        "",
    );
    let rates = rates(&record);
    let expected = |bin: usize| match bin {
        0..20 => 20.0,
        20..30 => 5.0,
        30..40 => 0.0,
        _ => 40.0,
    };
    // The first bin begins with the first frame, and a frame is 0.08 Mbit/s of a bin.
    for (bin, rate) in rates.iter().enumerate().take(60).skip(1) {
        let error = (rate - expected(bin)).abs();
        assert!(
            error < 0.2,
            "bin {bin}: {rate:.2} of {} Mbit/s",
            expected(bin)
        );
    }
}

#[test]
fn a_trace_is_repeated_to_the_end_of_the_run() {
    // 24 Mbit/s for 100 ms, nothing for 100 ms.
    let mut trace: Vec<String> = (1..=100)
        .flat_map(|ms| [ms.to_string(), ms.to_string()])
        .collect();
    trace.push("200".to_owned());
    let rates = rates(&record("{trace: up.trace}", &trace.join("\n")));
    for (bin, rate) in rates.iter().enumerate().take(60).skip(2) {
        let expected = if bin % 2 == 0 { 24.0 } else { 0.12 };
        assert!(
            (rate - expected).abs() < 0.2,
            "bin {bin}: {rate:.2} of {expected} Mbit/s"
        );
    }
}

#[test]
fn steps_of_one_rate_are_that_rate() {
    let [one, steps] = [
        "20 Mbit/s",
        "[{at: 0 s, rate: 20 Mbit/s}, {at: 3 s, rate: 20 Mbit/s}]",
    ]
    .map(|rate| record(rate, ""));
    assert_eq!(one.slices, steps.slices);
    assert_eq!(one.drops, steps.drops);
}
