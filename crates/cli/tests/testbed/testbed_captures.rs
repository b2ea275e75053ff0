//! Two captures by tcpdump, with iperf3 between them: what is made of them agrees with what iperf3 and the
//! kernel counted themselves.
//!
//! They require root and network namespaces. Without them each test reports that it was skipped.

use crate::hosts::{Between, Testbed, count, flows_to};
use crate::support::{Sandbox, record};
use serde_json::Value;
use std::path::PathBuf;

/// A frame without tags before the payload of a UDP datagram.
const UDP_HEADER_BYTES: u64 = 14 + 20 + 8;
/// Before the first datagram of a test iperf3 sends one of four bytes, which it counts nowhere; the server
/// answers with one of its own.
const HELLO_DATAGRAMS: u64 = 1;
const HELLO_BYTES: u64 = 4;
/// What iperf3 writes first into each TCP connection, and counts nowhere.
const COOKIE_BYTES: u64 = 37;
/// How often a measurement is made again that the host was too busy for.
const ATTEMPTS: u32 = 5;

/// What iperf3 reported, and what was captured meanwhile.
struct Measured {
    testbed: Testbed,
    sandbox: Sandbox,
    iperf3: Value,
    /// Packets that tcpdump missed.
    missed: u64,
}

fn measure(settings: &str, between: Between) -> Result<Measured, String> {
    let testbed = Testbed::new(between)?;
    let sandbox = Sandbox::new();
    let (tx, rx) = (sandbox.path("tx.pcap"), sandbox.path("rx.pcap"));
    let sent = testbed.capture("gen", &tx);
    let received = testbed.capture("sink", &rx);
    let iperf3 = testbed.iperf3(settings);
    let missed = sent.stop(&tx) + received.stop(&rx);
    let pair = ["--sent", "tx.pcap", "--received", "rx.pcap", "--out", "out"];
    sandbox.succeeded(&[&["analyse"], &pair[..]].concat());
    Ok(Measured {
        testbed,
        sandbox,
        iperf3,
        missed,
    })
}

impl Measured {
    fn record(&self) -> PathBuf {
        self.sandbox.path("out/runs/as-captured/as-captured.jsonl")
    }

    /// The flow of that protocol that sent most.
    fn flow(&self, protocol: u8) -> Value {
        flows_to(&self.record(), protocol).swap_remove(0)
    }

    fn end(&self, direction: &str, field: &str) -> u64 {
        let value = &self.iperf3["end"][direction][field];
        value
            .as_u64()
            .unwrap_or_else(|| panic!("{direction}.{field}: {value}"))
    }

    /// Packets in the capture at the receiving host, as tcpdump counts them.
    fn arrived(&self, filter: &str) -> u64 {
        count(&self.sandbox.path("rx.pcap"), filter)
    }
}

/// Measure until neither tcpdump nor the server missed a packet that the kernel had for it: reported by the
/// kernel's counters, not by what is under test.
fn measure_udp(rate: &str, between: Between) -> Result<Measured, String> {
    for _ in 0..ATTEMPTS {
        let measured = measure(&format!("-u -b {rate} -t 2"), between)?;
        let read = measured.testbed.counter("sink", "Udp", "InDatagrams");
        if measured.missed == 0 && read == measured.arrived(TO_SERVER) {
            return Ok(measured);
        }
    }
    Err(format!(
        "the host was too busy: packets were captured and not read, or the reverse, {ATTEMPTS} times"
    ))
}

const TO_SERVER: &str = "udp and dst port 5201";

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn assert_agrees_with_iperf3(measured: &Measured) {
    let flow = measured.flow(17);
    let block = number(&measured.iperf3["start"]["test_start"]["blksize"]);
    let (sent, received) = (
        number(&flow["sent_frames"]),
        number(&flow["received_frames"]),
    );
    assert_eq!(sent - HELLO_DATAGRAMS, measured.end("sum_sent", "packets"));
    let payload = |bytes: u64, frames: u64| bytes - HELLO_BYTES - frames * UDP_HEADER_BYTES;
    let sent_bytes = payload(number(&flow["sent_bytes"]), sent);
    assert_eq!(sent_bytes, measured.end("sum_sent", "bytes"));
    let received_bytes = payload(number(&flow["received_bytes"]), received);
    assert_eq!(received_bytes, measured.end("sum_received", "bytes"));
    assert_eq!(received - HELLO_DATAGRAMS, received_bytes / block);
    assert_eq!(received, measured.arrived(TO_SERVER));

    // The server tells lost datagrams by gaps in their numbers: those behind the last that arrived it
    // cannot know of, and the bucket drops one in three here.
    let lost = number(&flow["lost_frames"]);
    assert_eq!(lost, sent - received);
    let by_gaps = measured.end("sum_received", "lost_packets");
    let behind_the_last = measured.end("sum_sent", "packets") - highest(measured);
    assert_eq!(lost, by_gaps + behind_the_last);

    let span = &flow["received"];
    let seconds = (number(&span["last_ns"]) - number(&span["first_ns"])) as f64 / 1e9;
    let rate = received_bytes as f64 * 8.0 / seconds;
    let stderr = measured.iperf3["end"]["sum_received"]["bits_per_second"]
        .as_f64()
        .unwrap();
    assert!(
        (rate / stderr - 1.0).abs() < 0.05,
        "{rate} and {stderr} bit/s"
    );

    let clock = &record(&measured.record())["capture"]["clock"];
    assert_eq!(clock["negative_delays"], 0, "one host has one clock");
}

/// The highest number of a datagram that arrived.
fn highest(measured: &Measured) -> u64 {
    measured.end("sum_received", "packets")
}

#[test]
fn udp_over_a_wire_agrees_with_iperf3_in_every_packet() {
    udp_without_loss(Between::Wire);
}

#[test]
fn udp_through_a_router_agrees_with_iperf3_in_every_packet() {
    udp_without_loss(Between::Router);
}

fn udp_without_loss(between: Between) {
    let measured = match measure_udp("20M", between) {
        Ok(measured) => measured,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    assert_agrees_with_iperf3(&measured);
    let flow = measured.flow(17);
    assert_eq!(flow["lost_frames"], 0);
    // Both ends have one clock, and whoever else speaks on a wire is not taken for a reason to doubt it.
    assert_eq!(flow["delay"]["samples"], flow["received_frames"]);
}

#[test]
fn udp_loss_agrees_with_iperf3_and_with_the_queue_that_dropped() {
    let measured = match measure_udp("15M", Between::Bottleneck) {
        Ok(measured) => measured,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    assert_agrees_with_iperf3(&measured);
    // Of iperf3's control connection a segment may have been dropped, too.
    let flows = [17, 6]
        .into_iter()
        .flat_map(|p| flows_to(&measured.record(), p));
    let lost: u64 = flows.map(|flow| number(&flow["lost_frames"])).sum();
    assert!(lost > 100);
    assert_eq!(lost, measured.testbed.dropped());
}

#[test]
fn tcp_bytes_and_retransmissions_agree_with_iperf3_and_with_the_kernel() {
    let measured = match measure("-t 2", Between::Bottleneck) {
        Ok(measured) if measured.missed > 0 => {
            return eprintln!("skipped: the host was too busy: tcpdump missed packets");
        }
        Ok(measured) => measured,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let flow = measured.flow(6);
    let tcp = &flow["tcp"];
    // The sender counts what it gave to its kernel, some of which is never sent once the server has
    // closed; the server what it had read by then.
    let bytes = number(&tcp["data_bytes"]);
    let least = COOKIE_BYTES + measured.end("sum_received", "bytes");
    let most = COOKIE_BYTES + measured.end("sum_sent", "bytes");
    assert!(
        (least..=most).contains(&bytes),
        "{least} ≤ {bytes} ≤ {most}"
    );

    let retransmitted = |flow: &Value| number(&flow["tcp"]["retransmitted_segments"]);
    let all: u64 = flows_to(&measured.record(), 6)
        .iter()
        .map(retransmitted)
        .sum();
    assert_eq!(all, measured.testbed.counter("gen", "Tcp", "RetransSegs"));
    let stderr = measured.end("sum_sent", "retransmits");
    assert!(stderr > 0, "the queue is short");
    println!(
        "retransmitted: {stderr} by iperf3, {} here",
        retransmitted(&flow)
    );
    assert_eq!(
        number(&flow["lost_frames"]),
        number(&flow["sent_frames"]) - number(&flow["received_frames"])
    );
}
