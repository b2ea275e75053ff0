//! Runs of studies: what the records of the simulator hold to.

use crate::support::changed;
use slicewise_sim::Simulator;
use slicewise_stats::record::RunRecord;
use slicewise_study::{Backend, RunError, RunFilter, RunSpec, Study};
use std::path::Path;

const ROUTER_STUDY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../studies/router-mechanisms.yaml"
);

/// Two slices on a port of 10 Mbit/s that is overloaded while the second is on.
const SMALL: &str = "\
name: small
link: {rate: 1 Gbit/s}
dut: {model: port, port_rate: 10 Mbit/s}
slices:
  gold: {match: {vlan: 10}, share: 60 %, guaranteed: true, headers: {vlan: 10}}
  rest: {match: {vlan: 20}, share: 40 %, headers: {vlan: 20}}
sources:
  steady: {slice: gold, pattern: iperf3, rate: 50 %, payload: 1000 B}
scenarios:
  calm:
    reference: true
    sources: {other: {slice: rest, pattern: poisson, rate: 2 Mbit/s, payload: 500 B}}
  storm:
    sources:
      other:
        slice: rest
        pattern: poisson
        rate: 20 Mbit/s
        payload: 500 B
        on_off: {on_for: 300 ms, off_for: 200 ms}
policies:
  nothing: {none: true}
  weighted:
    classes:
      - {name: gold, slice: gold, minimum: 60 %}
      - {name: rest, slice: rest, queue_limit: 20 packets}
  policed:
    classes:
      - {name: rest, slice: rest, police: 4 Mbit/s}
repetitions: 2
duration: 2 s
";

fn small(changes: &[(&str, &str)]) -> Study {
    changed(SMALL, changes)
}

fn all(study: &Study) -> Vec<RunSpec> {
    study.runs(&RunFilter::default()).unwrap()
}

fn records(study: &Study) -> Vec<RunRecord> {
    let simulator = Simulator::default();
    all(study)
        .iter()
        .map(|run| simulator.run(study, run).unwrap())
        .collect()
}

/// One run of the router study.
fn router(policy: &str, scenario: &str) -> RunRecord {
    let study = Study::load(Path::new(ROUTER_STUDY))
        .map_err(|e| e.to_string())
        .unwrap();
    let filter = RunFilter {
        policies: vec![policy.to_owned()],
        scenarios: vec![scenario.to_owned()],
        repetitions: Some(1),
    };
    Simulator::default()
        .run(&study, &study.runs(&filter).unwrap()[0])
        .unwrap()
}

#[test]
fn the_same_run_gives_the_same_bytes_and_another_repetition_others() {
    let study = small(&[]);
    let written = |run| {
        let record = Simulator::default().run(&study, run).unwrap();
        serde_json::to_string(&record).unwrap()
    };
    for pair in all(&study).chunks(2) {
        assert_eq!(written(&pair[0]), written(&pair[0]));
        let series = |run| {
            Simulator::default().run(&study, run).unwrap().slices[1]
                .series
                .clone()
        };
        assert_ne!(series(&pair[0]), series(&pair[1]));
    }
}

#[test]
fn a_source_sends_the_same_packets_in_every_scenario() {
    let study = small(&[]);
    let (mut sent, mut delays) = (std::collections::BTreeMap::new(), Vec::new());
    for run in all(&study) {
        let record = Simulator::default().run(&study, &run).unwrap();
        let slice = &record.slices[0];
        let gaps = slice.iat_sent.clone();
        let first = sent.entry(run.repetition).or_insert_with(|| gaps.clone());
        assert_eq!(gaps, *first, "{run:?}");
        delays.push(slice.series.delay_mean_ns.clone());
    }
    // Another repetition starts at another phase of the others.
    assert_ne!(delays[0], delays[1]);
}

/// Standard deviation of the critical slice's mean delay between runs of the router study that nobody
/// overloads, ns.
fn scatter(clock_drift_ppb: u32) -> f64 {
    let mut study = Study::load(Path::new(ROUTER_STUDY))
        .map_err(|e| e.to_string())
        .unwrap();
    study.hosts.clock_drift_ppb = clock_drift_ppb;
    let filter = RunFilter {
        policies: vec!["priority".to_owned()],
        scenarios: vec!["0".to_owned()],
        repetitions: Some(8),
    };
    let runs = study.runs(&filter).unwrap();
    let means = runs.iter().map(|run| {
        let record = Simulator::default().run(&study, run).unwrap();
        record.slices[0].steady.delay.mean_ns
    });
    let means: Vec<f64> = means.collect();
    let mean = means.iter().sum::<f64>() / 8.0;
    (means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / 7.0).sqrt()
}

#[test]
fn the_mean_delay_of_a_run_depends_little_on_its_seed_where_clocks_drift() {
    let (drifting, in_step) = (scatter(100_000), scatter(0));
    assert!(in_step > 25_000.0, "{in_step}");
    assert!(drifting * 10.0 < in_step, "{drifting} of {in_step}");
}

#[test]
fn every_packet_sent_is_received_or_lost_and_every_loss_has_a_reason() {
    let records = records(&small(&[]));
    for record in &records {
        let mut lost = 0;
        for slice in &record.slices {
            let whole = &slice.whole;
            assert!(whole.sent_frames > 400);
            assert_eq!(whole.sent_frames, whole.delay.samples + whole.lost_frames);
            lost += whole.lost_frames;
        }
        assert_eq!(
            lost,
            record.drops.iter().map(|drop| drop.frames).sum::<u64>()
        );
    }
    let reasons = |policy: &str| -> Vec<String> {
        let of_policy = records.iter().filter(|record| record.key.policy == policy);
        let mut reasons: Vec<String> = of_policy
            .flat_map(|record| &record.drops)
            .map(|drop| drop.reason.clone())
            .collect();
        reasons.sort_unstable();
        reasons.dedup();
        reasons
    };
    assert_eq!(reasons("weighted"), ["queue_full"]);
    assert_eq!(reasons("policed"), ["policed", "queue_full"]);
}

#[test]
fn every_policy_meets_the_very_same_packets() {
    let records = records(&small(&[]));
    let (first, others) = records.split_at(4);
    for other in others.chunks(4) {
        for (ours, theirs) in first.iter().zip(other) {
            for (ours, theirs) in ours.slices.iter().zip(&theirs.slices) {
                assert_eq!(ours.series.sent_frames, theirs.series.sent_frames);
                assert_eq!(ours.iat_sent, theirs.iat_sent);
            }
        }
    }
}

#[test]
fn packets_received_of_the_first_source_have_an_interval_each_but_the_first() {
    for record in records(&small(&[])) {
        for slice in &record.slices {
            let received = slice.iat_received.as_ref().unwrap();
            assert_eq!(received.samples + 1, slice.whole.delay.samples);
            let changed_ns = received.mean_ns * received.samples as f64
                - slice.iat_sent.mean_ns * slice.iat_sent.samples as f64;
            // What is lost in between changes nothing, what delays the first and the last packet does.
            let longest_ns = slice.whole.delay.max_ns as f64 + 20e6;
            assert!(changed_ns.abs() < longest_ns, "{changed_ns}");
        }
    }
}

#[test]
fn a_constant_bit_rate_through_an_empty_link_arrives_as_it_was_sent() {
    let study = small(&[
        (
            "pattern: iperf3, rate: 50 %, payload: 1000 B",
            "pattern: cbr, rate: 4 Mbit/s, payload: 954 B",
        ),
        ("rate: 2 Mbit/s", "rate: 1 kbit/s"),
        (
            "link: {rate: 1 Gbit/s}",
            "link: {rate: 1 Gbit/s}\nhosts: {clock_drift: 0 ppm}",
        ),
    ]);
    let of = |policy: usize, scenario: usize| {
        let mut runs = all(&study).into_iter();
        let run = runs
            .find(|run| (run.policy, run.scenario) == (policy, scenario))
            .unwrap();
        Simulator::default().run(&study, &run).unwrap().slices[0].clone()
    };
    let calm = of(0, 0);
    assert_eq!(calm.iat_sent.variance_ns2, 0.0);
    let received = calm.iat_received.unwrap();
    assert_eq!(
        (received.mean_ns, received.variance_ns2),
        (calm.iat_sent.mean_ns, 0.0)
    );
    // Among the frames of another slice they wait, and some are lost.
    let storm = of(0, 1);
    assert_eq!(storm.iat_sent, calm.iat_sent);
    let received = storm.iat_received.unwrap();
    assert!(received.variance_ns2 > 1e9, "{}", received.variance_ns2);
}

#[test]
fn a_guaranteed_minimum_isolates_where_a_shared_queue_does_not() {
    let study = small(&[]);
    let worst_loss = |policy: &str| {
        let records = records(&study);
        let of_policy = records
            .into_iter()
            .filter(|record| record.key.policy == policy);
        of_policy
            .map(|record| record.slices[0].whole.lost_frames)
            .max()
            .unwrap()
    };
    assert!(worst_loss("nothing") > 50);
    assert_eq!(worst_loss("weighted"), 0);
}

/// The licence: 35 Mbit/s of IP packets of 1476 B in frames of 1494 B, and a second of credit.
#[test]
fn the_licence_lets_through_its_credit_and_its_rate_and_no_more() {
    for policy in ["no-policy", "priority", "bandwidth"] {
        let record = router(policy, "6");
        let mut received_bits = 0.0;
        for bin in 0..800 {
            let bytes: u64 = record
                .slices
                .iter()
                .map(|s| s.series.received_bytes[bin])
                .sum();
            #[expect(clippy::cast_precision_loss, reason = "a comparison")]
            let (l3_bits, seconds) = (
                bytes as f64 * 8.0 * 1476.0 / 1494.0,
                (bin + 1) as f64 / 20.0,
            );
            received_bits += l3_bits;
            // A frame more may be on its way to the capture, or a priority frame in debt.
            let allowed = 35e6 * (1.0 + seconds) + 4.0 * 1476.0 * 8.0;
            assert!(
                received_bits <= allowed,
                "{policy}, {seconds} s: {received_bits}"
            );
            if bin >= 200 {
                assert!(
                    received_bits >= allowed - 1e5,
                    "{policy} idles at {seconds} s"
                );
            }
        }
    }
}

#[test]
fn the_licence_delays_the_class_with_a_minimum_but_not_the_one_with_priority() {
    let delay = |policy, scenario| router(policy, scenario).slices[0].steady.delay;
    let [calm, priority, bandwidth] = [
        delay("bandwidth", "0"),
        delay("priority", "6"),
        delay("bandwidth", "6"),
    ];
    assert!(priority.max_ns < 66_000 + 250_000 + 24_288, "{priority:?}");
    assert!(
        bandwidth.mean_ns > calm.mean_ns + 100_000.0,
        "{bandwidth:?} {calm:?}"
    );
    // Two packets of a tick wait for the licence, one frame time each.
    assert!(
        bandwidth.max_ns < 66_000 + 2 * 337_372 + 24_288,
        "{bandwidth:?}"
    );
}

#[test]
fn replays_the_times_of_a_capture() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("times.pcap");
    let mut pcap = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    pcap.extend([0; 12]);
    pcap.extend([1, 0, 0, 0]);
    for micros in [0u32, 700, 1_000, 250_000] {
        for field in [1_700_000_000, micros, 0, 60] {
            pcap.extend(field.to_le_bytes());
        }
    }
    std::fs::write(&path, pcap).unwrap();
    let capture = format!("pattern: replay, pcap: {}, payload: 1000 B", path.display());
    let text = SMALL.replace("pattern: iperf3, rate: 50 %, payload: 1000 B", &capture);
    std::fs::write(folder.path().join("study.yaml"), &text).unwrap();
    let study = Study::load(&folder.path().join("study.yaml"))
        .map_err(|e| e.to_string())
        .unwrap();
    let simulator = Simulator::default();
    let record = simulator.run(&study, &all(&study)[0]).unwrap();
    assert_eq!(record.slices[0].whole.sent_frames, 4);
    assert_eq!(record.slices[0].iat_sent.samples, 3);
    assert!((record.slices[0].iat_sent.mean_ns * 3.0 - 250e6).abs() < 1.0);
    // The capture is read once; a simulator that has not read it yet says what is missing.
    std::fs::remove_file(&path).unwrap();
    assert!(simulator.run(&study, &all(&study)[0]).is_ok());
    let error = Simulator::default()
        .run(&study, &all(&study)[0])
        .unwrap_err();
    assert!(
        matches!(&error, RunError::Input { path: named, .. } if *named == path.display().to_string())
    );
}

#[test]
fn refuses_what_it_cannot_run_and_says_so() {
    let study = small(&[]);
    let simulator = Simulator::default();
    let elsewhere = RunSpec {
        policy: 99,
        ..all(&study)[0]
    };
    assert_eq!(
        simulator.run(&study, &elsewhere),
        Err(RunError::UnknownRun(elsewhere))
    );
    let stuck = small(&[("police: 4 Mbit/s", "shape: {rate: 8 bit/s, burst: 1522 B}")]);
    let runs = all(&stuck);
    let error = simulator.run(&stuck, &runs[runs.len() - 1]).unwrap_err();
    insta::assert_snapshot!(error, @"57 packets were still queued 3600 s after the hosts had stopped: a class is shaped to almost nothing");
}

/// A policer drops much of what several connections send, and their data is far from sent when the run ends.
#[test]
fn connections_send_nothing_after_the_end_of_a_run() {
    let text = "\
name: over
link: {rate: 100 Mbit/s, propagation: 2 ms}
dut: {model: port, port_rate: 100 Mbit/s}
slices:
  web: {match: {protocol: tcp}, share: 30 %}
sources:
  bulk: {slice: web, application: {kind: bulk, flows: 4, bitrate: 80 Mbit/s}}
  short: {slice: web, application: {kind: short_flows, response: 10 kB}}
scenarios:
  all: {reference: true, sources: {}}
policies:
  policed:
    classes:
      - {name: class-default, police: {rate: 10 Mbit/s, burst: 20 kB, exceed: drop}}
repetitions: 1
duration: 2 s
";
    let study = changed(text, &[]);
    let simulator = Simulator::default();
    let record = simulator.run(&study, &all(&study)[0]).unwrap();
    let web = record.slices[0].whole;
    let dropped: u64 = record.drops.iter().map(|drop| drop.frames).sum();
    assert!(dropped > 100, "{dropped}");
    assert_eq!(dropped, web.lost_frames);
    // Those that arrive after the end, too, have a delay.
    assert_eq!(web.sent_frames, web.delay.samples + web.lost_frames);
}
