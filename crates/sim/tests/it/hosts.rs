//! Several sending hosts, each on a link of its own.

use crate::support::changed;
use slicewise_sim::Simulator;
use slicewise_stats::record::RunRecord;
use slicewise_study::{Backend, RunFilter, Study};

/// Two sources that each fill three quarters of a link of 100 Mbit/s.
const UDP: &str = "\
name: two-hosts
link: {rate: 100 Mbit/s, propagation: 10 us}
dut: {model: port, port_rate: 100 Mbit/s}
slices:
  gold: {match: {vlan: 10}, share: 60 %, headers: {vlan: 10}}
  rest: {match: {vlan: 20}, share: 40 %, headers: {vlan: 20}}
sources:
  one: {slice: gold, pattern: cbr, rate: 75 Mbit/s, counts: L1, payload: 1000 B, host: a}
scenarios:
  both: {reference: true, sources: {two: {slice: rest, pattern: poisson, rate: 75 Mbit/s, counts: L1, payload: 1000 B, host: b}}}
policies:
  fifo: {none: true}
repetitions: 1
duration: 1 s
";

fn run(study: &Study, scenario: usize) -> RunRecord {
    let runs = study.runs(&RunFilter::default()).unwrap();
    let run = runs.iter().find(|run| run.scenario == scenario).unwrap();
    Simulator::default().run(study, run).unwrap()
}

fn udp(changes: &[(&str, &str)]) -> RunRecord {
    run(&changed(UDP, changes), 0)
}

fn mbit(record: &RunRecord) -> f64 {
    record.aggregate.throughput_bits_per_second / 1e6
}

#[test]
fn two_hosts_overload_a_port_that_one_of_their_links_would_fill() {
    let record = udp(&[]);
    let [gold, rest] = [0, 1].map(|slice| record.slices[slice].whole);
    // A third of what both send, 150 Mbit/s, does not fit; the queue is 50 ms long.
    let lost = gold.lost_frames + rest.lost_frames;
    let sent = gold.sent_frames + rest.sent_frames;
    let lost_part = lost as f64 / sent as f64;
    assert!((0.27..0.34).contains(&lost_part), "{lost_part}");
    let dropped: u64 = record.drops.iter().map(|drop| drop.frames).sum();
    assert_eq!(dropped, lost);
    // 1046 of the 1070 B that a frame occupies on the wire.
    assert!((95.0..98.0).contains(&mbit(&record)), "{}", mbit(&record));
}

#[test]
fn which_host_it_is_changes_nothing_where_there_is_one() {
    let slower = [
        ("rate: 75 Mbit/s", "rate: 20 Mbit/s"),
        (", rate: 75 Mbit/s", ", rate: 20 Mbit/s"),
    ];
    let at = |one: &str, two: &str| {
        let hosts = [(", host: a", one), (", host: b", two)];
        let mut record = udp(&[&slower[..], &hosts[..]].concat());
        record.key.inputs.clear();
        record
    };
    assert_eq!(at("", ""), at(", host: x", ", host: x"));
    // On two links no frame of one waits for one of the other before the device.
    let (together, apart) = (at("", ""), at("", ", host: x"));
    assert_eq!(
        together.slices[0].whole.sent_frames,
        apart.slices[0].whole.sent_frames
    );
    assert_ne!(together.slices[0].delay_cdf, apart.slices[0].delay_cdf);
}

#[test]
fn each_sending_link_is_impaired() {
    let impaired = (
        "propagation: 10 us}",
        "propagation: 10 us, impairments: {ingress: {loss: 10 %}}}",
    );
    let slower = (
        "pattern: poisson, rate: 75 Mbit/s",
        "pattern: poisson, rate: 20 Mbit/s",
    );
    let apart = udp(&[impaired, slower]);
    let together = udp(&[impaired, slower, (", host: a", ""), (", host: b", "")]);
    let lost: Vec<u64> = apart.link_losses.iter().map(|loss| loss.frames).collect();
    assert_eq!(apart.link_losses.len(), 2, "{:?}", apart.link_losses);
    for (slice, lost) in apart.slices.iter().zip(&lost) {
        let part = *lost as f64 / slice.whole.sent_frames as f64;
        assert!((0.08..0.12).contains(&part), "{part}");
    }
    // Each flow has its own channel, whatever link it is on.
    assert_eq!(apart.link_losses, together.link_losses);
}

#[test]
fn hosts_send_along_a_path_of_several_devices() {
    let record = udp(&[(
        "dut: {model: port, port_rate: 100 Mbit/s}",
        "path: [near, far]\ndevices:\n  near: {model: port, port_rate: 100 Mbit/s}\n  far: {model: port, port_rate: 50 Mbit/s}",
    )]);
    assert!((47.0..49.5).contains(&mbit(&record)), "{}", mbit(&record));
}

#[test]
fn acknowledgements_go_back_to_the_host_that_sent() {
    let tcp = |host: &str| {
        let text = UDP
            .replace("headers: {vlan: 10}", "headers: {vlan: 10, protocol: tcp}")
            .replace(
                "pattern: cbr, rate: 75 Mbit/s, counts: L1, payload: 1000 B, host: a",
                &format!("application: {{kind: bulk, flows: 2}}{host}"),
            )
            .replace("pattern: poisson, rate: 75", "pattern: poisson, rate: 5")
            .replace("duration: 1 s", "duration: 3 s")
            .replace("port_rate: 100", "port_rate: 50");
        run(&changed(&text, &[]), 0)
    };
    for host in ["", ", host: a", ", host: b"] {
        let record = tcp(host);
        let transport = &record.applications[0].transport;
        let goodput = transport.goodput_bits_per_second / 1e6;
        // What the other source leaves of 50 Mbit/s, without headers.
        assert!((38.0..45.0).contains(&goodput), "{host}: {goodput}");
        assert!(transport.rtt_samples > 100);
    }
}

#[test]
fn a_host_at_a_greater_distance_has_longer_round_trips() {
    let at = |propagation: &str| {
        let text = UDP
            .replace("headers: {vlan: 10}", "headers: {vlan: 10, protocol: tcp}")
            .replace(
                "pattern: cbr, rate: 75 Mbit/s, counts: L1, payload: 1000 B",
                "application: bulk",
            )
            .replace("pattern: poisson, rate: 75", "pattern: poisson, rate: 1");
        let text = format!("{text}hosts: {{propagation: {{{propagation}}}}}\n");
        let record = run(&changed(&text, &[]), 0);
        let transport = &record.applications[0].transport;
        assert!(transport.rtt_samples > 20);
        let ways = [0, 1].map(|slice| record.slices[slice].whole.delay.min_ns);
        (ways, transport.rtt_min_ns)
    };
    let ([near, other], near_rtt) = at("b: 10 us");
    let ([far, other_still], far_rtt) = at("a: 5010 us");
    assert!(other.abs_diff(other_still) < 100_000);
    // One way more, and there and back.
    assert!((far - near).abs_diff(5_000_000) < 100_000, "{near} {far}");
    assert!(
        (far_rtt - near_rtt).abs_diff(10_000_000) < 200_000,
        "{near_rtt} {far_rtt}"
    );
}
