//! `slicewise analyse`: what captures leave open is counted and said, and never guessed.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::fs;
use support::{MS, PAIR, Packet, Sandbox, analysed, frames, later, packets, pair, pcap, with};

/// Packets that cannot be told apart.
fn alike(count: u32) -> Vec<Packet> {
    let same = |packet: Packet| Packet {
        number: 7,
        ..packet
    };
    packets(count).into_iter().map(same).collect()
}

#[test]
fn packets_that_are_all_alike_still_tell_throughput_and_how_many_were_lost() {
    let sandbox = Sandbox::new();
    // One packet that differs from the others, so that the captures share one.
    let mut sent = alike(100);
    sent.push(Packet {
        at_ns: 100 * MS,
        ..packets(1)[0]
    });
    let mut received = later(&sent, 2 * MS);
    received.drain(40..50);
    sandbox.write("tx.pcap", pcap(&sent));
    sandbox.write("rx.pcap", pcap(&received));
    let (told, record) = analysed(&sandbox, &[]);
    assert_eq!(frames(&record, 0), [101, 91, 10]);
    assert_eq!(record["slices"][0]["whole"]["delay"]["samples"], 1);
    assert!(told.contains("cannot be told apart"), "{told}");
}

#[test]
fn captures_of_packets_that_are_all_alike_are_refused_by_what_is_the_matter() {
    let sandbox = Sandbox::new();
    sandbox.write("tx.pcap", pcap(&alike(100)));
    sandbox.write("rx.pcap", pcap(&later(&alike(100), 2 * MS)));
    insta::assert_snapshot!(sandbox.refused(2, &PAIR), @"error: no packet can be told from all others: 100 sent and 100 received have the same headers and payload as another one. Have the sender number its packets, as iperf3 does, or choose a shorter `--loss-timeout`");
}

#[test]
fn a_delay_beyond_the_time_out_is_loss_and_no_difference_of_clocks() {
    let sandbox = Sandbox::new();
    let sent = packets(200);
    // Half of them 60 ms late, half of them 150 ms.
    let (near, far) = sent.split_at(100);
    let received = [later(near, 60 * MS), later(far, 150 * MS)].concat();
    sandbox.write("tx.pcap", pcap(&sent));
    sandbox.write("rx.pcap", pcap(&received));
    let (_, record) = analysed(&sandbox, &["--loss-timeout", "100ms"]);
    assert_eq!(frames(&record, 0), [200, 100, 100]);
    assert_eq!(record["flows"][0]["delay"]["p50_ns"], 60 * MS);
}

#[test]
fn a_stretch_whose_clocks_disagree_has_loss_and_no_delay() {
    let sandbox = pair();
    let between: Vec<Packet> = packets(100)
        .into_iter()
        .skip(10)
        .map(|packet| Packet {
            at_ns: packet.at_ns - 3 * MS,
            ..packet
        })
        .collect();
    sandbox.write("between.pcap", pcap(&between));
    let (_, record) = analysed(&sandbox, &["--via", "between.pcap"]);
    let hop = &record["hops"][0];
    let of = |field: &str| hop[field].as_u64().unwrap();
    assert_eq!(
        ["in_frames", "out_frames", "lost_frames"].map(of),
        [100, 90, 10]
    );
    assert_eq!(hop["clocks_disagree"], true);
    assert_eq!(hop["delay"]["samples"], 0);
    assert_eq!(record["flows"][0]["delay"]["p50_ns"], 2 * MS);
}

#[test]
fn a_repetition_under_two_names_is_refused() {
    let sandbox = pair();
    sandbox.write("slices.yaml", "slices: {all: {match: {}}}");
    for name in ["rep-1", "rep-001"] {
        for side in ["tx.pcap", "rx.pcap"] {
            let capture = fs::read(sandbox.path(side)).unwrap();
            sandbox.write(&format!("runs/p/s/{name}/{side}"), capture);
        }
    }
    let told = sandbox.refused(2, &["analyse", "--runs", "runs", "--slices", "slices.yaml"]);
    insta::assert_snapshot!(told, @"error: runs: repetition 1 of policy p, scenario s is there twice, under two names");
}

#[test]
fn what_comes_by_standard_input_is_never_taken_for_what_came_before() {
    let sandbox = pair();
    sandbox.write("slices.yaml", "slices: {all: {match: {}}}");
    let arguments = [
        "analyse",
        "--sent",
        "-",
        "--received",
        "rx.pcap",
        "--slices",
        "slices.yaml",
        "--out",
        "out",
    ];
    let call = |arguments: &[&str], capture: &str| {
        let input = fs::File::open(sandbox.path(capture)).unwrap();
        sandbox.command(arguments).stdin(input).output().unwrap()
    };
    assert!(call(&arguments, "tx.pcap").status.success());
    sandbox.write("other.pcap", pcap(&packets(95)));
    assert_eq!(call(&arguments, "other.pcap").status.code(), Some(2));
    assert!(
        call(&with(&arguments, &["--replace"]), "other.pcap")
            .status
            .success()
    );
    let record: Value = sandbox.record("out");
    assert_eq!(frames(&record, 0), [95, 90, 5]);
}

#[test]
fn a_receiving_capture_that_stops_early_is_told() {
    let sandbox = Sandbox::new();
    let sent = packets(5_000);
    sandbox.write("tx.pcap", pcap(&sent));
    sandbox.write("rx.pcap", pcap(&later(&sent[..3_000], 2 * MS)));
    let (told, record) = analysed(&sandbox, &[]);
    assert_eq!(frames(&record, 0), [5_000, 3_000, 2_000]);
    assert!(told.contains("Was that capture stopped earlier?"), "{told}");
}
