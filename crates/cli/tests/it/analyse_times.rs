//! `slicewise analyse`: captures whose time stamps are out of order, wrong, or of a clock that was set.

use crate::support::{MS, Packet, Sandbox, analysed, frames, later, packets, pcap};
use serde_json::Value;

const SECOND: u64 = 1_000 * MS;
const HOUR: u64 = 3_600 * SECOND;
const YEAR: u64 = 365 * 24 * HOUR;

/// The packets from this one on, stamped by a clock that is then set forward by so much.
fn set(packets: &[Packet], from: usize, by_ns: u64) -> Vec<Packet> {
    let mut packets = packets.to_vec();
    for packet in &mut packets[from..] {
        packet.at_ns = packet.at_ns.wrapping_add(by_ns);
    }
    packets
}

const fn back(by_ns: u64) -> u64 {
    by_ns.wrapping_neg()
}

fn sandbox(sent: &[Packet], received: &[Packet]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("tx.pcap", pcap(sent));
    sandbox.write("rx.pcap", pcap(received));
    sandbox
}

fn times(record: &Value, point: usize) -> &Value {
    &record["capture"]["points"][point]["times"]
}

fn delay_samples(record: &Value) -> u64 {
    record["slices"][0]["whole"]["delay"]["samples"]
        .as_u64()
        .unwrap()
}

fn duration_ns(record: &Value) -> u64 {
    record["duration_ns"].as_u64().unwrap()
}

fn reordered(record: &Value) -> u64 {
    let flow = &record["flows"][0]["reordering"];
    flow["reordered_frames"].as_u64().unwrap()
}

/// Bytes of all files below a folder.
fn size(folder: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap();
    let size_of = |path: std::path::PathBuf| match path.is_dir() {
        true => size(&path),
        false => path.metadata().unwrap().len(),
    };
    entries.map(|entry| size_of(entry.unwrap().path())).sum()
}

#[test]
fn a_clock_that_is_set_loses_no_packet_and_gives_no_delay() {
    let sent = packets(4_000);
    let received = later(&sent, 2 * MS);
    for by_ns in [
        HOUR,
        back(HOUR),
        10 * SECOND,
        back(10 * SECOND),
        back(300 * MS),
    ] {
        for side in [0, 1] {
            let mut ends = [sent.clone(), received.clone()];
            ends[side] = set(&ends[side], 2_000, by_ns);
            let sandbox = sandbox(&ends[0], &ends[1]);
            let (stderr, record) = analysed(&sandbox, &[]);
            let case = format!("{} ns at {side}: {stderr}", by_ns.cast_signed());
            assert_eq!(frames(&record, 0), [4_000, 4_000, 0], "{case}");
            assert_eq!(delay_samples(&record), 0, "{case}");
            assert!(duration_ns(&record) < 5 * SECOND, "{case}");
            assert_eq!(reordered(&record), 0, "{case}");
            let times = times(&record, side);
            assert_eq!(times["clock_steps"], 1, "{case}");
            let step = &times["named_clock_steps"][0];
            assert_eq!(step["packet"], 2_001, "{case}");
            let stated = step["by_ns"].as_i64().unwrap();
            assert!(stated.abs_diff(by_ns.cast_signed()) < MS, "{case}");
        }
    }
    let sandbox = sandbox(&sent, &set(&received, 2_000, HOUR));
    insta::assert_snapshot!(analysed(&sandbox, &[]).0, @"note: At received, the clock was set once during the capture: forward by 3600 s before packet 2001 of rx.pcap (after 1767225602.001000 s since 1970). Later times were moved by that, so that packets are matched; delays are not given.");
}

#[test]
fn two_records_stamped_an_hour_ahead_lose_no_packet() {
    let sent = packets(4_000);
    let received = later(&sent, 2 * MS);
    for side in [0, 1] {
        let mut ends = [sent.clone(), received.clone()];
        ends[side] = set(&set(&ends[side], 100, HOUR), 102, back(HOUR));
        let sandbox = sandbox(&ends[0], &ends[1]);
        let (stderr, record) = analysed(&sandbox, &[]);
        assert_eq!(frames(&record, 0), [4_000, 4_000, 0], "{stderr}");
        assert_eq!(times(&record, side)["wrong_stamps"], 2);
        assert_eq!(delay_samples(&record), 3_998);
        assert!(duration_ns(&record) < 5 * SECOND);
    }
}

#[test]
fn a_pause_of_both_ends_is_no_clock_that_is_set() {
    for pause_ns in [SECOND, HOUR] {
        let sent = set(&packets(4_000), 2_000, pause_ns);
        let sandbox = sandbox(&sent, &later(&sent, 2 * MS));
        let (stderr, record) = analysed(&sandbox, &["--interval", "1s"]);
        assert_eq!(stderr, "");
        assert_eq!(frames(&record, 0), [4_000, 4_000, 0]);
        assert_eq!(delay_samples(&record), 4_000);
        assert_eq!(times(&record, 1)["clock_steps"], 0);
        assert!(duration_ns(&record) > pause_ns);
    }
}

#[test]
fn an_outage_that_delays_packets_is_no_clock_that_is_set() {
    // For four seconds nothing arrives; what was sent meanwhile arrives ten times as fast.
    let sent = packets(8_000);
    let mut received = later(&sent, 2 * MS);
    for packet in &mut received[2_000..] {
        let number = u64::from(packet.number) - 2_000;
        packet.at_ns = packet.at_ns.max(6_000 * MS + number * MS / 10);
    }
    let sandbox = sandbox(&sent, &received);
    let (stderr, record) = analysed(&sandbox, &[]);
    assert_eq!(stderr, "");
    assert_eq!(frames(&record, 0), [8_000, 8_000, 0]);
    assert_eq!(delay_samples(&record), 8_000);
}

#[test]
fn one_clock_for_both_ends_that_is_set_back_loses_no_packet() {
    let sent = packets(4_000);
    let received = later(&sent, 2 * MS);
    // The second end is set at the same moment, two packets earlier in its file.
    let sandbox = sandbox(
        &set(&sent, 2_000, back(HOUR)),
        &set(&received, 1_998, back(HOUR)),
    );
    let (stderr, record) = analysed(&sandbox, &[]);
    assert_eq!(frames(&record, 0), [4_000, 4_000, 0], "{stderr}");
    assert_eq!(delay_samples(&record), 0);
    assert!(duration_ns(&record) < 5 * SECOND);
}

/// 4,000 packets forward, and an answer to every second one.
fn both_ways() -> (Vec<Packet>, Vec<Packet>) {
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    for packet in packets(4_000) {
        sent.push(packet);
        received.extend(later(&[packet], 2 * MS));
        if packet.number % 2 == 0 {
            let answer = Packet {
                goes_back: true,
                ..packet
            };
            received.extend(later(&[answer], 2 * MS + MS / 2));
            sent.extend(later(&[answer], 4 * MS + MS / 2));
        }
    }
    sent.sort_by_key(|packet| packet.at_ns);
    received.sort_by_key(|packet| packet.at_ns);
    (sent, received)
}

#[test]
fn a_clock_set_forward_by_less_than_a_delay_is_found_where_packets_go_both_ways() {
    let (sent, received) = both_ways();
    for by_ns in [200 * MS, SECOND] {
        let sandbox = sandbox(&sent, &set(&received, 3_000, by_ns));
        let (stderr, record) = analysed(&sandbox, &[]);
        assert_eq!(frames(&record, 0), [4_000, 4_000, 0], "{stderr}");
        assert_eq!(times(&record, 1)["clock_steps"], 1, "{stderr}");
        assert_eq!(delay_samples(&record), 0);
    }
    // The path forward becomes longer; the way back does not.
    let mut slower = received;
    for packet in &mut slower {
        if !packet.goes_back && packet.number >= 2_000 {
            packet.at_ns += 200 * MS;
        }
    }
    slower.sort_by_key(|packet| packet.at_ns);
    let (stderr, record) = analysed(&sandbox(&sent, &slower), &[]);
    assert_eq!(times(&record, 1)["clock_steps"], 0, "{stderr}");
    assert_eq!(delay_samples(&record), 4_000);
}

#[test]
fn records_out_of_order_with_right_stamps_are_no_reordering() {
    let sent = packets(5_400);
    let received = later(&sent, 2 * MS);
    let mut swapped = received.clone();
    for pair in 0..60 {
        swapped.swap(pair * 50, pair * 50 + 1);
    }
    // Queues that are written in blocks of 20 ms: of each 40 ms, the even packets, then the odd ones.
    let mut jumbled = received.clone();
    for block in jumbled.chunks_mut(40) {
        block.sort_by_key(|packet| packet.number % 2);
    }
    for (files, out_of_order) in [(swapped, 60), (jumbled, 135 * 19)] {
        let sandbox = sandbox(&sent, &files);
        let (stderr, record) = analysed(&sandbox, &[]);
        assert_eq!(frames(&record, 0), [5_400, 5_400, 0]);
        assert_eq!(reordered(&record), 0, "{stderr}");
        assert_eq!(times(&record, 1)["out_of_order"], out_of_order);
        assert_eq!(delay_samples(&record), 5_400);
        assert!(stderr.contains("packets were sorted by time"), "{stderr}");
    }
}

#[test]
fn packets_that_overtake_each_other_are_reordered() {
    let sent = packets(1_000);
    let mut received = later(&sent, 2 * MS);
    for pair in 0..60 {
        received[pair * 10].at_ns += 3 * MS;
    }
    received.sort_by_key(|packet| packet.at_ns);
    let (stderr, record) = analysed(&sandbox(&sent, &received), &[]);
    assert_eq!(stderr, "");
    assert_eq!(reordered(&record), 60);
}

#[test]
fn a_stamp_years_off_does_not_stretch_the_run() {
    let sent = packets(120);
    let received = later(&sent, 2 * MS);
    for at in [0, 1, 60, 119] {
        for by_ns in [YEAR, back(YEAR)] {
            for side in [0, 1] {
                let mut ends = [sent.clone(), received.clone()];
                ends[side] = set(&ends[side], at, by_ns);
                ends[side] = set(&ends[side], at + 1, back(by_ns));
                let sandbox = sandbox(&ends[0], &ends[1]);
                let (stderr, record) = analysed(&sandbox, &[]);
                let case = format!("{at}, {}, {side}: {stderr}", by_ns.cast_signed());
                assert_eq!(frames(&record, 0), [120, 120, 0], "{case}");
                assert_eq!(times(&record, side)["wrong_stamps"], 1, "{case}");
                let named = &times(&record, side)["named_wrong_stamps"][0];
                assert_eq!(named["packet"], at as u64 + 1, "{case}");
                assert_eq!(delay_samples(&record), 119, "{case}");
                assert!(duration_ns(&record) < SECOND, "{case}");
                assert!(size(&sandbox.path("out")) < 2_000_000, "{case}");
            }
        }
    }
    let sandbox = sandbox(&set(&sent, 119, YEAR), &received);
    insta::assert_snapshot!(analysed(&sandbox, &[]).0, @"note: At sent, 1 packet was stamped with an impossible time (tx.pcap, packet 120: 1798761600.119000 s since 1970): the time of a neighbour is used instead, and no delay.");
}

#[test]
fn a_last_stamp_hours_off_does_not_stretch_the_run() {
    let sent = packets(120);
    let received = later(&sent, 2 * MS);
    for at in [0, 119] {
        let mut wrong = received.clone();
        wrong[at].at_ns = wrong[at]
            .at_ns
            .wrapping_add(if at == 0 { back(HOUR) } else { HOUR });
        let (stderr, record) = analysed(&sandbox(&sent, &wrong), &[]);
        assert_eq!(frames(&record, 0), [120, 120, 0], "{stderr}");
        assert_eq!(times(&record, 1)["wrong_stamps"], 1, "{stderr}");
        assert_eq!(delay_samples(&record), 119, "{stderr}");
        assert!(duration_ns(&record) < SECOND, "{stderr}");
    }
}
