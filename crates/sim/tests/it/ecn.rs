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
    let text = MARKED.replace("ECN", ecn);
    let study = Study::parse(&text, "marked.yaml", &MemoryFiles::new())
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
