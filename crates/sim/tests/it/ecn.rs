//! Congestion marks: from the source through a queue into the record.

use slicewise_sim::Simulator;
use slicewise_stats::record::RunRecord;
use slicewise_study::{Backend, MemoryFiles, RunFilter, Study};

/// Two slices, each with a flow queue and more traffic than it can send.
const MARKED: &str = "\
name: marked
link: {rate: 1 Gbit/s}
dut: {model: port, port_rate: 10 Mbit/s}
slices:
  able: {match: {vlan: 10}, share: 50 %, headers: {vlan: 10, ecn: ECN}}
  unable: {match: {vlan: 20}, share: 50 %, headers: {vlan: 20}}
sources:
  first: {slice: able, pattern: cbr, rate: 5.5 Mbit/s, payload: 1000 B}
  second: {slice: unable, pattern: cbr, rate: 5.5 Mbit/s, payload: 1000 B}
scenarios:
  overload: {reference: true, sources: {first: {}, second: {}}}
policies:
  queues:
    discipline: deficit_round_robin
    classes:
      - {name: able, slice: able, flow_queue: {ecn: yes}, queue_limit: 10000 packets}
      - {name: unable, slice: unable, flow_queue: {ecn: yes}, queue_limit: 10000 packets}
repetitions: 1
duration: 2 s
";

fn record(ecn: &str) -> RunRecord {
    record_of(&MARKED.replace("ECN", ecn))
}

fn record_of(text: &str) -> RunRecord {
    let study = Study::parse(text, "marked.yaml", &MemoryFiles::new())
        .map_err(|e| e.to_string())
        .unwrap();
    let runs = study.runs(&RunFilter::default()).unwrap();
    Simulator::default().run(&study, &runs[0]).unwrap()
}

fn dropped(record: &RunRecord, class: &str) -> u64 {
    let drops = record.drops.iter().filter(|drop| drop.class == class);
    drops.map(|drop| drop.frames).sum()
}

#[test]
fn packets_of_an_ecn_capable_source_are_marked_where_those_of_another_are_dropped() {
    for ecn in ["ect0", "ect1"] {
        let record = record(ecn);
        let [able, unable] = &record.slices[..] else {
            panic!("two slices")
        };
        assert!(able.marked_frames > 10, "{}", able.marked_frames);
        assert_eq!(dropped(&record, "able"), 0);
        assert_eq!(able.whole.lost_frames, 0);
        assert!(dropped(&record, "unable") > 10);
        assert_eq!(unable.marked_frames, 0);
    }
}

#[test]
fn without_marks_a_record_says_nothing_of_them() {
    let record = record("not_ect");
    assert!(dropped(&record, "able") > 10);
    assert_eq!(record.slices[0].marked_frames, 0);
    let written = serde_json::to_string(&record).unwrap();
    assert!(!written.contains("marked_frames"));
}

/// A long transfer beside one over CUBIC, in one class with a queue manager.
const TRANSFERS: &str = "\
name: transfers
link: {rate: 1 Gbit/s, propagation: 5 ms}
dut: {model: port, port_rate: 40 Mbit/s}
slices:
  scalable: {match: {vlan: 10}, share: 50 %, headers: {vlan: 10}}
  cubic: {match: {vlan: 20}, share: 50 %, headers: {vlan: 20}}
sources:
  scalable: {slice: scalable, application: bulk, transport: {congestion: SCALABLE}}
  cubic: {slice: cubic, application: bulk}
scenarios:
  both: {reference: true, sources: {scalable: {}, cubic: {}}}
policies:
  queue: {classes: [{name: class-default, dualpi2: {}}]}
repetitions: 1
duration: 8 s
";

/// Rates in Mbit/s, and mean delays in ms, of the scalable sender and of CUBIC.
fn transfers(congestion: &str, seed: u64) -> ([f64; 2], [f64; 2]) {
    let text = TRANSFERS.replace("SCALABLE", congestion) + &format!("seed: {seed}\n");
    let record = record_of(&text);
    let [scalable, cubic] = &record.slices[..] else {
        panic!("two slices")
    };
    assert_eq!(scalable.steady.lost_frames, 0);
    assert!(scalable.marked_frames > 10 && cubic.marked_frames == 0);
    let both = [scalable, cubic].map(|slice| &slice.steady);
    (
        both.map(|figures| figures.throughput_bits_per_second / 1e6),
        both.map(|figures| figures.delay.mean_ns / 1e6),
    )
}

/// RFC 9332, section 1: about equal windows, so that rates are in inverse proportion to round trips of 20.6 and 34.6 ms.
#[test]
fn dualpi2_divides_the_rate_between_prague_and_cubic_and_delays_cubic_alone() {
    for seed in 1..=3 {
        let ([prague, cubic], [prague_ms, cubic_ms]) = transfers("prague", seed);
        assert!(prague + cubic > 38.5, "{prague} {cubic}");
        let windows = prague * 20.6 / (cubic * 34.6);
        assert!((0.6..1.5).contains(&windows), "{prague} {cubic}");
        assert!(prague_ms < 11.5, "{prague_ms}");
        assert!((22.0..28.0).contains(&cubic_ms), "{cubic_ms}");
    }
}

/// DCTCP sends ECT(0), which says nothing of a scalable congestion control.
#[test]
fn packets_with_ect0_wait_in_the_classic_queue() {
    let (_, [dctcp_ms, cubic_ms]) = transfers("dctcp", 1);
    assert!(
        (dctcp_ms - cubic_ms).abs() < 3.0 && dctcp_ms > 20.0,
        "{dctcp_ms} {cubic_ms}"
    );
}
