//! `slicewise analyse`: what captures leave open is counted and said, and never guessed.

use crate::support::{
    MS, PAIR, Packet, START_NS, Sandbox, analysed, contains, frames, later, packets, pair, pcap,
    with, words,
};
use serde_json::Value;
use slicewise_capture::write::PcapWriter;
use std::fs;

/// Packets that cannot be distinguished.
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
    let (stderr, record) = analysed(&sandbox, &[]);
    assert_eq!(frames(&record, 0), [101, 91, 10]);
    assert_eq!(record["slices"][0]["whole"]["delay"]["samples"], 1);
    contains(&stderr, "cannot be distinguished");
}

#[test]
fn captures_of_packets_that_are_all_alike_are_refused_by_what_is_the_matter() {
    let sandbox = Sandbox::new();
    sandbox.write("tx.pcap", pcap(&alike(100)));
    sandbox.write("rx.pcap", pcap(&later(&alike(100), 2 * MS)));
    insta::assert_snapshot!(sandbox.refused(2, &PAIR), @"error: no packet is unique: 100 sent and 100 received have the same headers and payload as another one. Have the sender number its packets, as iperf3 does; if it does so at their end, as TRex, Ixia and Spirent do, capture whole packets (`-s 0`). Otherwise, and only if every delay is shorter than the 1 ms after which they repeat, choose a `--loss-timeout` longer than every delay and shorter than that");
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
    let (stderr, record) = analysed(&sandbox, &["--loss-timeout", "100ms"]);
    assert_eq!(frames(&record, 0), [200, 100, 100]);
    insta::assert_snapshot!(stderr, @"note: At least 100 frames were received after the loss time-out, up to 150 ms after being sent: they count as lost.");
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
    let stderr = sandbox.refused(2, &["analyse", "--runs", "runs", "--slices", "slices.yaml"]);
    insta::assert_snapshot!(stderr, @"error: runs: repetition 1 of policy p, scenario s exists twice, under two names");
}

#[test]
fn what_comes_by_standard_input_is_never_taken_for_what_came_before() {
    let sandbox = pair();
    sandbox.write("slices.yaml", "slices: {all: {match: {}}}");
    let arguments = words("analyse --sent - --received rx.pcap --slices slices.yaml --out out");
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
    let (stderr, record) = analysed(&sandbox, &[]);
    assert_eq!(frames(&record, 0), [5_000, 3_000, 2_000]);
    contains(&stderr, "Was that capture stopped earlier?");
}

/// Bytes of a stream, in a frame of TCP or UDP.
#[derive(Debug, Clone, Copy)]
struct Piece {
    at_ns: u64,
    protocol: u8,
    first: u32,
    bytes: u32,
}

/// Ethernet, IPv4, TCP or UDP; of the payload, what tells pieces apart.
fn piece_frame(piece: &Piece) -> Vec<u8> {
    let header_bytes: u32 = if piece.protocol == 6 { 20 } else { 8 };
    let length = u16::try_from(20 + header_bytes + piece.bytes).unwrap();
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    frame.extend(length.to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, piece.protocol, 0, 0]);
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0xc0, 0, 0x14, 0x51]);
    if piece.protocol == 6 {
        frame.extend(piece.first.to_be_bytes());
        frame.extend([0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    } else {
        frame.extend((length - 20).to_be_bytes());
        frame.extend([0, 0]);
    }
    frame.extend(piece.first.to_be_bytes());
    frame.resize(14 + usize::from(length), 0);
    frame
}

fn pieces_pcap(pieces: &[Piece]) -> Vec<u8> {
    let mut writer = PcapWriter::new(Vec::new(), 96).unwrap();
    for piece in pieces {
        let frame = piece_frame(piece);
        let length = u32::try_from(frame.len()).unwrap();
        let at_ns = START_NS + piece.at_ns;
        writer.write_packet(at_ns, &frame, length).unwrap();
    }
    writer.finish().unwrap()
}

const SEGMENT: u32 = 1_448;

/// A stream in pieces of one segment, and of so many segments each second time.
fn stream(protocol: u8, joined: u32) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut first = 0;
    for number in 0..1_000 {
        let bytes = SEGMENT * if number % 2 == 0 { 1 } else { joined };
        let at_ns = number * MS;
        pieces.push(Piece {
            at_ns,
            protocol,
            first,
            bytes,
        });
        first += bytes;
    }
    pieces
}

/// The same stream, one segment a piece, a little later.
fn split(stream: &[Piece]) -> Vec<Piece> {
    let segments = stream.iter().flat_map(|piece| {
        (0..piece.bytes / SEGMENT).map(|number| Piece {
            at_ns: piece.at_ns + 2 * MS + u64::from(number) * MS / 100,
            first: piece.first + number * SEGMENT,
            bytes: SEGMENT,
            ..*piece
        })
    });
    segments.collect()
}

#[test]
fn segments_that_one_end_captured_whole_and_the_other_in_pieces_are_refused_and_not_lost() {
    let sandbox = Sandbox::new();
    let mut stderr = Vec::new();
    for protocol in [6, 17] {
        for joined in [2, 5] {
            let sent = stream(protocol, joined);
            let mut received = split(&sent);
            // Some are lost, too.
            received.retain(|piece| piece.first / SEGMENT % 20 != 7);
            sandbox.write("tx.pcap", pieces_pcap(&sent));
            sandbox.write("rx.pcap", pieces_pcap(&received));
            stderr.push(sandbox.refused(2, &PAIR));
        }
    }
    let sent = split(&stream(6, 3));
    let joined: Vec<Piece> = stream(6, 3)
        .into_iter()
        .map(|piece| Piece {
            at_ns: piece.at_ns + 5 * MS,
            ..piece
        })
        .collect();
    sandbox.write("tx.pcap", pieces_pcap(&sent));
    sandbox.write("rx.pcap", pieces_pcap(&joined));
    stderr.push(sandbox.refused(2, &PAIR));
    for text in &stderr {
        contains(text, "tso off gso off gro off lro off");
    }
    insta::assert_snapshot!([stderr[0].as_str(), &stderr[4]].concat(), @"
    error: packets of TCP 10.0.0.1:49152 > 10.0.0.2:5201 have different lengths at the two ends: 525 of up to 2950 bytes were seen only at the sender, 950 of up to 1502 bytes only at the receiver. Probably the sending end captures segments before they are split (TSO, GSO). Such packets cannot be matched, so loss is unknown. Disable offloads at both ends with `ethtool -K IF tso off gso off gro off lro off`, and capture again; or leave this flow out of both captures
    error: packets of TCP 10.0.0.1:49152 > 10.0.0.2:5201 have different lengths at the two ends: 1500 of up to 1502 bytes were seen only at the sender, 500 of up to 4398 bytes only at the receiver. Probably the receiving end captures segments after they are merged (GRO, LRO). Such packets cannot be matched, so loss is unknown. Disable offloads at both ends with `ethtool -K IF tso off gso off gro off lro off`, and capture again; or leave this flow out of both captures
    ");
}

#[test]
fn loss_of_long_packets_is_loss_and_no_offload() {
    let sandbox = Sandbox::new();
    for protocol in [6, 17] {
        let mut sent = stream(protocol, 5);
        // A retransmission with another length.
        let again = Piece {
            at_ns: sent[500].at_ns,
            bytes: 100,
            ..sent[499]
        };
        sent.insert(501, again);
        let later = |piece: &Piece| Piece {
            at_ns: piece.at_ns + 2 * MS,
            ..*piece
        };
        let mut received: Vec<Piece> = sent.iter().map(later).collect();
        received.retain(|piece| piece.bytes <= SEGMENT || piece.at_ns / MS % 4 != 1);
        let lost = (sent.len() - received.len()) as u64;
        assert!(lost > 100);
        sandbox.write("tx.pcap", pieces_pcap(&sent));
        sandbox.write("rx.pcap", pieces_pcap(&received));
        let (_, record) = analysed(&sandbox, &["--replace"]);
        assert_eq!(frames(&record, 0), [1_001, 1_001 - lost, lost]);
    }
}

/// A packet forward every millisecond, and one back.
fn answered() -> (Vec<Packet>, Vec<Packet>) {
    let forward = packets(1_000);
    let back: Vec<Packet> = forward
        .iter()
        .map(|packet| Packet {
            goes_back: true,
            ..*packet
        })
        .collect();
    let mut near = [forward.clone(), later(&back, 5 * MS)].concat();
    let mut far = [later(&forward, 2 * MS), later(&back, 3 * MS)].concat();
    near.sort_by_key(|packet| packet.at_ns);
    far.sort_by_key(|packet| packet.at_ns);
    (near, far)
}

#[test]
fn what_is_lost_on_the_way_back_counts_as_that() {
    let (near, far) = answered();
    for (step, lost) in [(20, 50), (1, 1_000)] {
        let mut near = near.clone();
        near.retain(|packet| !packet.goes_back || packet.number % step != 7 % step);
        let sandbox = Sandbox::new();
        sandbox.write("tx.pcap", pcap(&near));
        sandbox.write("rx.pcap", pcap(&far));
        let (stderr, record) = analysed(&sandbox, &[]);
        assert_eq!(frames(&record, 0), [1_000, 1_000, 0]);
        assert_eq!(record["capture"]["reverse_lost_frames"], lost, "{stderr}");
        assert_eq!(record["capture"]["unsent_frames"], 0, "{stderr}");
        if lost == 50 {
            insta::assert_snapshot!(stderr, @"note: 50 frames were lost on the way back, from the receiving end to the sending one; 950 arrived. They are in no figure of a slice.");
        }
    }
}

#[test]
fn one_capture_given_for_both_ends_is_refused() {
    let sandbox = pair();
    sandbox.write("rx.pcap", fs::read(sandbox.path("tx.pcap")).unwrap());
    insta::assert_snapshot!(sandbox.refused(2, &PAIR), @"error: every packet has the same timestamp at both ends, to the nanosecond: tx.pcap and rx.pcap hold the same capture. Give the capture of each end");
}

#[test]
fn packets_captured_on_two_interfaces_of_a_host_count_once() {
    let sent = packets(100);
    // On the interface of the VLAN, and a microsecond later on the one below it.
    let twice: Vec<Packet> = sent
        .iter()
        .flat_map(|packet| {
            let tagged = Packet {
                vlan: Some(10),
                at_ns: packet.at_ns + 1_000,
                ..*packet
            };
            [*packet, tagged]
        })
        .collect();
    let received = later(&sent[..90], 2 * MS);
    for (tx, rx) in [(&twice, &received), (&sent, &later(&twice[..180], 2 * MS))] {
        let sandbox = Sandbox::new();
        sandbox.write("tx.pcap", pcap(tx));
        sandbox.write("rx.pcap", pcap(rx));
        let (stderr, record) = analysed(&sandbox, &[]);
        assert_eq!(frames(&record, 0), [100, 90, 10], "{stderr}");
        assert_eq!(record["slices"][0]["whole"]["delay"]["samples"], 90);
        contains(&stderr, "captured on two interfaces");
    }
}
