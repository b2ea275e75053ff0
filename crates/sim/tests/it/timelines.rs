//! Policies and sources that change during a run.

use crate::support::changed;
use slicewise_sim::Simulator;
use slicewise_stats::application::ApplicationRecord;
use slicewise_stats::quantity::Quantity;
use slicewise_stats::record::{DropCount, RunRecord};
use slicewise_stats::summary::SummaryBuilder;
use slicewise_stats::verdict::{self, Outcome};
use slicewise_study::{Backend, RunFilter, Study};

const STUDY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/upgrade.yaml");

/// The study that ships, three times as fast.
fn study(changes: &[(&str, &str)]) -> Study {
    let faster = [
        ("duration: 18 s", "duration: 6 s"),
        ("at: 6 s", "at: 2 s"),
        ("at: 12 s", "at: 4 s"),
    ];
    let text = std::fs::read_to_string(STUDY).unwrap();
    changed(&text, &[&faster, changes].concat())
}

fn run(study: &Study, policy: &str, scenario: &str) -> RunRecord {
    let filter = RunFilter {
        policies: vec![policy.to_owned()],
        scenarios: vec![scenario.to_owned()],
        repetitions: Some(1),
    };
    let runs = study.runs(&filter).unwrap();
    Simulator::default().run(study, &runs[0]).unwrap()
}

#[test]
fn a_slice_gets_in_each_phase_what_is_promised_to_it_there() {
    let record = run(&study(&[]), "guaranteed", "overload");
    let rates = record.phases.iter().map(|phase| {
        let video = &phase.slices[0].figures;
        assert_eq!(video.lost_frames, 0);
        (video.throughput_bits_per_second / 1e6).round()
    });
    assert_eq!(rates.collect::<Vec<_>>(), [19.0, 68.0, 19.0]);
    let minimum = run(&study(&[]), "minimum", "overload");
    let lost = minimum.phases.iter();
    let lost = lost.map(|phase| phase.slices[0].figures.lost_frames > 0);
    assert_eq!(lost.collect::<Vec<_>>(), [false, true, false]);
}

#[test]
fn a_change_drops_and_reorders_nothing_that_waits() {
    let record = run(&study(&[]), "guaranteed", "overload");
    assert_eq!(record.phases[0].change, None);
    for phase in &record.phases[1..] {
        let change = phase.change.as_ref().unwrap();
        assert!(change.waiting_frames > 100, "{change:?}");
        assert_eq!((change.lost_frames, &change.refused), (0, &None));
        assert!(phase.slices.iter().all(|slice| slice.reordered_frames == 0));
    }
    // Where no policy changes, the device is left alone.
    let fifo = run(&study(&[]), "fifo", "overload");
    assert!(fifo.phases.iter().all(|phase| phase.change.is_none()));
}

#[test]
fn what_is_dropped_in_the_phases_is_dropped_in_the_run() {
    for policy in ["fifo", "guaranteed"] {
        let record = run(&study(&[]), policy, "overload");
        let frames = |drops: &[DropCount]| -> u64 { drops.iter().map(|drop| drop.frames).sum() };
        let in_phases: u64 = record.phases.iter().map(|p| frames(&p.drops)).sum();
        assert!(in_phases > 1_000);
        assert_eq!(in_phases, frames(&record.drops), "{policy}");
    }
}

#[test]
fn what_is_dropped_on_a_path_is_counted_in_its_phase_once() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/two-hops.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let change = "timeline: {settle: 100 ms, changes: {less: {at: 1 s, scenarios: {both: {sources: {bulk: {rate: 200 %}}}}}}}\n";
    let study = changed(
        &format!("{text}{change}"),
        &[("duration: 5 s", "duration: 2 s")],
    );
    let record = run(&study, "fifo", "both");
    let frames = |drops: &[DropCount]| drops.iter().map(|drop| drop.frames).sum::<u64>();
    let in_phases: Vec<u64> = record.phases.iter().map(|p| frames(&p.drops)).collect();
    assert_eq!(in_phases.iter().sum::<u64>(), frames(&record.drops));
    assert!(
        in_phases.iter().all(|frames| *frames > 1_000),
        "{in_phases:?}"
    );
}

#[test]
fn what_a_class_dropped_stays_counted_when_a_change_removes_it() {
    let with_class = [
        (
            "delay: 10 ms}}\n\ntimeline",
            "delay: 10 ms}}\n      - {name: bulk, slice: bulk}\n\ntimeline",
        ),
        (
            "    upgraded:\n      at: 2 s\n",
            "    upgraded:\n      at: 2 s\n      scenarios: {overload: {sources: {bulk: {rate: 10 %}}}}\n",
        ),
    ];
    let record = run(&study(&with_class), "guaranteed", "overload");
    let lost: u64 = record.slices.iter().map(|s| s.whole.lost_frames).sum();
    let frames = |drops: &[DropCount]| drops.iter().map(|drop| drop.frames).sum::<u64>();
    assert_eq!(frames(&record.drops), lost);
    assert!(frames(&record.phases[0].drops) > 1_000);
}

#[test]
fn figures_of_a_phase_are_those_of_its_bins() {
    let record = run(&study(&[]), "fifo", "overload");
    for phase in &record.phases {
        let bin = |ns: u64| usize::try_from(ns / record.bin_ns).unwrap();
        let bins = bin(phase.measured_from_ns)..bin(phase.ends_ns);
        for (slice, own) in record.slices.iter().zip(&phase.slices) {
            let series = &slice.series;
            let sum = |values: &[u64]| values[bins.clone()].iter().sum::<u64>();
            assert_eq!(own.figures.sent_bytes, sum(&series.sent_bytes));
            assert_eq!(own.figures.received_bytes, sum(&series.received_bytes));
            let lost: u32 = series.lost_frames[bins.clone()].iter().sum();
            assert_eq!(own.figures.lost_frames, u64::from(lost));
            let largest = series.delay_max_ns[bins.clone()].iter().flatten().max();
            assert_eq!(Some(&own.figures.delay.max_ns), largest);
        }
    }
}

#[test]
fn a_timeline_that_changes_nothing_changes_no_record() {
    let text = std::fs::read_to_string(STUDY).unwrap();
    let (before, timeline) = text.split_once("timeline:").unwrap();
    let (_, after) = timeline.split_once("repetitions:").unwrap();
    let without = format!("{before}repetitions:{after}");
    let short = [("duration: 18 s", "duration: 6 s")];
    let same = "timeline: {settle: 1 s, changes: {same: {at: 3 s, sources: {video: {rate: 19 Mbit/s}}, policies: {fifo: {none: true}}}}}\n";
    let plain = run(&changed(&without, &short), "guaranteed", "overload");
    let changed = changed(&format!("{without}{same}"), &short);
    let mut phased = run(&changed, "guaranteed", "overload");
    assert_eq!(phased.phases.len(), 2);
    phased.phases.clear();
    phased.key.clone_from(&plain.key);
    for slice in &mut phased.slices {
        slice.scheduler = None;
    }
    let plain = RunRecord {
        slices: (plain.slices.into_iter())
            .map(|slice| slicewise_stats::record::SliceRecord {
                scheduler: None,
                ..slice
            })
            .collect(),
        ..plain
    };
    assert_eq!(phased, plain);
}

#[test]
fn each_phase_is_judged_by_its_own_objectives() {
    let study = study(&[("repetitions: 34", "repetitions: 4")]);
    let judged = study.description("test").by_phase();
    let mut builder = SummaryBuilder::new(&judged);
    let runs = study.runs(&RunFilter::default()).unwrap();
    for run in &runs {
        let record = Simulator::default().run(&study, run).unwrap();
        builder.add(&record).unwrap();
    }
    assert_eq!(builder.runs(), 24);
    let verdicts = verdict::judge(&judged, builder.observations()).policies;
    let broken = verdicts.iter();
    let broken = broken.filter(|v| v.isolation.outcome == Outcome::Broken);
    let names: Vec<&str> = broken.map(|v| v.policy.as_str()).collect();
    // Four repetitions do not show that anything holds; what is broken is broken in the right phase.
    assert_eq!(
        names,
        [
            "fifo/before",
            "fifo/upgraded",
            "fifo/released",
            "minimum/upgraded"
        ]
    );
    // 68 Mbit/s are 95 % of nothing but the promise of that phase.
    let cells = builder.summary().cells;
    let upgraded = cells
        .iter()
        .find(|cell| cell.policy == "guaranteed/upgraded" && cell.scenario == "overload");
    let estimates = &upgraded.unwrap().slices[0].steady;
    assert!(estimates.of(Quantity::Throughput).unwrap().mean > 67e6);
}

/// TCP in both slices of a switch, and a change of shares in the middle.
const TCP: &str = "\
name: tcp-changes
link: {rate: 50 Mbit/s, propagation: 100 us}
dut: {model: switch, buffer: 400 packets}
slices:
  gold: {match: {vlan: 10}, share: 60 %, guaranteed: true, headers: {vlan: 10, protocol: tcp}}
  rest: {match: {vlan: 20}, share: 40 %, headers: {vlan: 20, protocol: tcp}}
sources:
  gold: {slice: gold, application: bulk, host: a}
  rest: {slice: rest, application: bulk, host: b}
  asks: {slice: rest, application: {kind: requests, rate: 100 /s, response: 2 kB}, host: b}
  late: {slice: gold, application: bulk, host: c, start: 4 s, stop: 5 s}
scenarios:
  both: {reference: true}
policies:
  shared:
    discipline: deficit_round_robin
    classes:
      - {name: gold, slice: gold, weight: 1, queue_limit: 100 packets}
      - {name: rest, slice: rest, weight: 1, queue_limit: 100 packets}
timeline:
  settle: 500 ms
  changes:
    more:
      at: 3 s
      policies:
        shared:
          classes:
            - {name: gold, slice: gold, weight: 4, queue_limit: 100 packets}
            - {name: rest, slice: rest, weight: 1, queue_limit: 100 packets}
repetitions: 1
duration: 6 s
";

#[test]
fn a_policy_changes_under_tcp_without_loss_or_reordering_and_each_phase_has_its_goodput() {
    let study = changed(TCP, &[]);
    let record = run(&study, "shared", "both");
    let goodput = |phase: usize| -> Vec<f64> {
        let of_phase = record.phases[phase].applications.iter();
        of_phase
            .map(|of| of.transport.goodput_bits_per_second / 1e6)
            .collect()
    };
    let names = |of: &[ApplicationRecord]| -> Vec<String> {
        of.iter().map(|of| of.source.clone()).collect()
    };
    let (before, after) = (goodput(0), goodput(1));
    // Of 50 Mbit/s, 1448 of 1538 B are data: 47 Mbit/s, in halves, then four fifths for gold.
    assert!((22.0..25.0).contains(&before[0]), "{before:?}");
    assert!((35.0..38.5).contains(&(after[0] + after[3])), "{after:?}");
    assert!((7.0..8.5).contains(&after[1]), "{after:?}");
    // What waited when the phase began is answered in it, too.
    assert!(
        (1.5..1.8).contains(&before[2]) && after[2] > 0.5,
        "{before:?} {after:?}"
    );
    assert_eq!(before[3], 0.0);
    let change = record.phases[1].change.as_ref().unwrap();
    assert!(change.waiting_frames > 20, "{change:?}");
    assert_eq!((change.lost_frames, &change.refused), (0, &None));
    for phase in &record.phases {
        assert_eq!(names(&phase.applications), names(&record.applications));
        assert!(phase.slices.iter().all(|slice| slice.reordered_frames == 0));
    }
}

#[test]
fn figures_of_applications_in_a_phase_are_those_of_its_measured_bins() {
    let study = changed(TCP, &[]);
    let record = run(&study, "shared", "both");
    for phase in &record.phases {
        let bin = |ns: u64| usize::try_from(ns / record.bin_ns).unwrap();
        let bins = bin(phase.measured_from_ns)..bin(phase.ends_ns);
        for (of_phase, of_run) in phase.applications.iter().zip(&record.applications) {
            let (figures, series) = (&of_phase.transport, &of_run.series);
            let span_ns = phase.ends_ns - phase.measured_from_ns;
            assert_eq!(figures.span_ns, span_ns);
            let bytes: u64 = series.goodput_bytes[bins.clone()].iter().sum();
            let rate = bytes as f64 * 8e9 / span_ns as f64;
            assert!((figures.goodput_bits_per_second - rate).abs() < 1e-3);
            let resent = series.retransmitted_segments[bins.clone()].iter();
            let resent: u64 = resent.map(|n| u64::from(*n)).sum();
            assert_eq!(figures.retransmitted_segments, resent);
            if let Some(requests) = &of_phase.requests {
                assert!(
                    (requests.offered_per_second - 100.0).abs() < 1.0,
                    "{requests:?}"
                );
            }
        }
    }
    // What is judged and shown of a phase is that.
    let views = record.by_phase();
    let judged = views.iter().map(|view| &view.applications[0].transport);
    let own = record
        .phases
        .iter()
        .map(|phase| &phase.applications[0].transport);
    assert!(judged.eq(own));
}

#[test]
fn an_application_that_has_not_begun_is_not_judged_in_that_phase() {
    let study = changed(
        TCP,
        &[
            (
                "{slice: gold, application: bulk, host: a}",
                "{slice: gold, application: bulk, host: a, start: 3 s}",
            ),
            ("weight: 4", "weight: 1"),
            (
                "both: {reference: true}",
                "alone: {reference: true, without: [rest]}\n  both: {}",
            ),
            ("start: 4 s", "start: 5 s"),
            ("stop: 5 s", "stop: 6 s"),
            ("share: 60 %", "share: 80 %"),
            ("share: 40 %", "share: 20 %"),
            ("repetitions: 1", "repetitions: 4"),
        ],
    );
    let judged = study.description("test").by_phase();
    let mut builder = SummaryBuilder::new(&judged);
    for run in &study.runs(&RunFilter::default()).unwrap() {
        let record = Simulator::default().run(&study, run).unwrap();
        builder.add(&record).unwrap();
    }
    let verdicts = verdict::judge(&judged, builder.observations()).policies;
    let outcomes = verdicts.iter();
    let outcomes = outcomes.map(|v| (v.policy.as_str(), v.isolation.outcome));
    assert_eq!(
        outcomes.collect::<Vec<_>>(),
        [
            ("shared/start", Outcome::Inconclusive),
            ("shared/more", Outcome::Broken)
        ]
    );
}
