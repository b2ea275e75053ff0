//! The same packets read from every format, byte order, time unit and link layer.

use slicewise_capture::{CaptureFile, Direction, KeyBytes, Point, PointFacts, Sighting};
use slicewise_wire::{Headers, IpVersion};
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

struct Seen {
    sightings: Vec<Sighting>,
    flows: Vec<Headers>,
    facts: PointFacts,
}

fn see(names: &[&str], key_bytes: u32) -> Seen {
    let paths: Vec<PathBuf> = names.iter().map(|name| golden(name)).collect();
    let mut point = Point::open(&paths).unwrap();
    point.set_key_bytes(KeyBytes {
        first: key_bytes,
        whole: 0,
    });
    let (mut sightings, mut batch) = (Vec::new(), Vec::new());
    loop {
        let more = point.read(&mut batch, 3).unwrap();
        assert!(batch.len() <= 3);
        sightings.append(&mut batch);
        if !more {
            break;
        }
    }
    Seen {
        sightings,
        flows: point.flows().iter().copied().collect(),
        facts: point.facts(),
    }
}

fn address(h: &Headers, address: u128) -> String {
    match h.ip_version {
        IpVersion::V4 => Ipv4Addr::from(u32::try_from(address).unwrap()).to_string(),
        _ => Ipv6Addr::from(address).to_string(),
    }
}

/// One line per sighting; a key is shown as the number of the first sighting that has it.
fn listing(seen: &Seen) -> String {
    let mut out = String::new();
    for s in &seen.sightings {
        let h = &seen.flows[s.flow as usize];
        let same = seen.sightings.iter().position(|other| other.key == s.key);
        let tags = match h.vlan_tags {
            0 => String::new(),
            1 => format!(" vlan {}", h.outer_vlan),
            _ => format!(" vlan {}/{}", h.outer_vlan, h.inner_vlan),
        };
        writeln!(
            out,
            "{} +{} µs key {} flow {} {}:{} > {}:{} protocol {} dscp {} ttl {} {} B{tags} {:?}",
            s.time_ns / 1_000_000_000,
            s.time_ns % 1_000_000_000 / 1000,
            same.unwrap(),
            s.flow,
            address(h, h.source),
            h.source_port,
            address(h, h.destination),
            h.destination_port,
            h.protocol,
            s.dscp,
            s.ttl,
            s.l2_bytes,
            s.direction,
        )
        .unwrap();
    }
    out
}

#[test]
fn reads_every_packet_of_an_ethernet_capture() {
    let seen = see(&["ethernet.pcap"], 68);
    insta::assert_snapshot!(listing(&seen), @r"
    1700000000 +7 µs key 0 flow 0 10.0.0.1:40000 > 10.1.0.2:5201 protocol 17 dscp 46 ttl 64 142 B Unknown
    1700000000 +1007 µs key 1 flow 1 10.0.0.1:43000 > 10.1.0.2:5201 protocol 6 dscp 0 ttl 64 194 B Unknown
    1700000000 +2007 µs key 2 flow 2 2001:db8::1:40001 > 2001:db8:1::2:5201 protocol 17 dscp 10 ttl 63 138 B Unknown
    1700000000 +4007 µs key 3 flow 3 10.0.0.1:40002 > 10.1.0.2:5201 protocol 17 dscp 46 ttl 64 196 B Unknown
    1700000000 +6007 µs key 4 flow 4 10.0.0.1:0 > 10.1.0.2:0 protocol 1 dscp 46 ttl 64 42 B Unknown
    1700000000 +7007 µs key 5 flow 5 10.0.0.1:40004 > 10.1.0.2:53 protocol 17 dscp 46 ttl 64 43 B Unknown
    1700000000 +8007 µs key 6 flow 6 10.0.0.1:36412 > 10.1.0.2:36412 protocol 132 dscp 46 ttl 64 50 B Unknown
    1700000000 +9007 µs key 0 flow 7 10.0.0.1:40000 > 10.1.0.2:5201 protocol 17 dscp 46 ttl 61 186 B Unknown
    1700000000 +10007 µs key 0 flow 8 10.0.0.1:40000 > 10.1.0.2:5201 protocol 17 dscp 46 ttl 64 146 B vlan 100 Unknown
    1700000000 +11007 µs key 0 flow 9 10.0.0.1:40000 > 10.1.0.2:5201 protocol 17 dscp 46 ttl 64 150 B vlan 10/20 Unknown
    1700000000 +12007 µs key 0 flow 9 10.0.0.1:40000 > 10.1.0.2:5201 protocol 17 dscp 46 ttl 64 154 B vlan 10/20 Unknown
    ");
    insta::assert_debug_snapshot!(seen.facts.counts, @r"
    PacketCounts {
        sightings: 11,
        copies: 0,
        arp: 1,
        link_scope: 0,
        not_ip: 1,
        unknown_link: 0,
        fragments: 1,
        reassembled: 1,
        joined: 2,
        cut_short: 0,
        malformed: 0,
        tcp: 1,
        tunnelled: 1,
        encapsulating: 0,
        beyond_flows: 0,
        largest_l2_bytes: 194,
        first_ns: Some(
            1700000000000007000,
        ),
        last_ns: Some(
            1700000000012007000,
        ),
    }
    ");
}

#[test]
fn reads_every_format_and_byte_order_the_same() {
    let expected = see(&["ethernet.pcap"], 68);
    for name in [
        "big-endian.pcap",
        "nanoseconds.pcap",
        "ethernet.pcapng",
        "ethernet.pcap.gz",
        "ethernet.pcap.zst",
    ] {
        let seen = see(&[name], 68);
        assert_eq!(seen.sightings, expected.sightings, "{name}");
        assert_eq!(seen.flows, expected.flows, "{name}");
        assert_eq!(seen.facts.counts, expected.facts.counts, "{name}");
    }
}

#[test]
fn a_packet_has_the_same_key_behind_every_link_layer() {
    let ethernet = see(&["ethernet.pcap"], 68);
    for name in ["raw.pcap", "null.pcap", "cooked-v1.pcap"] {
        let seen = see(&[name], 68);
        assert_eq!(seen.sightings.len(), 8, "{name}");
        for (other, expected) in seen.sightings.iter().zip(&ethernet.sightings) {
            assert_eq!(other.key, expected.key, "{name}");
            assert_eq!(
                other.l2_bytes, expected.l2_bytes,
                "{name}: as if on Ethernet"
            );
        }
    }
}

#[test]
fn a_packet_cut_at_96_bytes_keeps_its_key_except_behind_a_tunnel_or_extension_headers() {
    let whole = see(&["ethernet.pcap"], 68);
    let keys: Vec<u64> = whole.sightings.iter().map(|s| s.key).collect();
    for (name, sightings, cut_short) in [("snap-96.pcap", 9, 2), ("cooked-v2.pcap", 6, 2)] {
        let seen = see(&[name], 68);
        assert_eq!(seen.sightings.len(), sightings, "{name}");
        assert!(
            seen.sightings.iter().all(|s| keys.contains(&s.key)),
            "{name}"
        );
        assert_eq!(seen.facts.counts.cut_short, cut_short, "{name}");
    }
}

#[test]
fn a_tunnelled_packet_has_one_key_once_both_points_use_fewer_bytes() {
    let cut = Point::open(&[golden("snap-96.pcap")]).unwrap();
    let whole = Point::open(&[golden("ethernet.pcap")]).unwrap();
    // Ethernet, IPv4, UDP, GTP-U with a container: 58 of the 96 bytes.
    assert_eq!(
        (
            cut.key_bytes_available().first,
            whole.key_bytes_available().first
        ),
        (38, 68)
    );
    let seen = see(&["snap-96.pcap"], 38);
    let tunnelled = seen.sightings.iter().find(|s| s.ttl == 61).unwrap();
    let plain = see(&["ethernet.pcap"], 38).sightings[0];
    assert_eq!(tunnelled.key, plain.key);
    assert_eq!(seen.facts.counts.cut_short, 0);
}

#[test]
fn counts_what_40_captured_bytes_cannot_show() {
    let seen = see(&["snap-40.pcap"], 68);
    assert_eq!(seen.sightings, []);
    // The third piece is one of IPv6, whose fragment header was cut off, too.
    let counts = seen.facts.counts;
    assert_eq!(
        (
            counts.arp,
            counts.not_ip,
            counts.fragments,
            counts.cut_short
        ),
        (1, 1, 2, 11)
    );
}

#[test]
fn reads_sections_of_either_order_several_interfaces_and_what_was_dropped() {
    let seen = see(&["mixed.pcapng"], 68);
    insta::assert_snapshot!(listing(&seen), @r"
    1700000000 +0 µs key 0 flow 0 10.0.0.1:40000 > 10.1.0.2:5201 protocol 17 dscp 46 ttl 64 142 B Inbound
    1700000000 +500000 µs key 1 flow 1 10.0.0.1:43000 > 10.1.0.2:5201 protocol 6 dscp 0 ttl 64 194 B Outbound
    1700000001 +0 µs key 0 flow 0 10.0.0.1:40000 > 10.1.0.2:5201 protocol 17 dscp 46 ttl 64 142 B Unknown
    1700000000 +0 µs key 3 flow 2 10.0.0.1:0 > 10.1.0.2:0 protocol 1 dscp 46 ttl 64 42 B Unknown
    1700000002 +0 µs key 3 flow 2 10.0.0.1:0 > 10.1.0.2:0 protocol 1 dscp 46 ttl 64 42 B Unknown
    ");
    let mut files = seen.facts.files.clone();
    files[0].name = "mixed.pcapng".into();
    insta::assert_debug_snapshot!(files, @r#"
    [
        FileFacts {
            name: "mixed.pcapng",
            packets: 5,
            captured_bytes: 584,
            wire_bytes: 584,
            without_time: 1,
            links: [
                LinkType(
                    1,
                ),
                LinkType(
                    101,
                ),
            ],
            interfaces: [
                Interface {
                    name: Some(
                        "eth0",
                    ),
                    link: LinkType(
                        1,
                    ),
                    snap_bytes: 0,
                    resolution_ns: 1,
                    dropped: Some(
                        6,
                    ),
                },
                Interface {
                    name: Some(
                        "tun0",
                    ),
                    link: LinkType(
                        101,
                    ),
                    snap_bytes: 0,
                    resolution_ns: 953,
                    dropped: None,
                },
                Interface {
                    name: Some(
                        "eth1",
                    ),
                    link: LinkType(
                        1,
                    ),
                    snap_bytes: 0,
                    resolution_ns: 1000000,
                    dropped: None,
                },
            ],
            comments: [
                "slicewise start_ns=1700000000000000000",
            ],
            backwards: Backwards {
                steps: 1,
                largest_ns: 2000000000,
                first_offset: Some(
                    1212,
                ),
            },
            times: TimeFacts {
                out_of_order: 1,
                most_out_of_order_ns: 2000000000,
                beyond_window: 1,
                wrong_stamps: 0,
                named_wrong_stamps: [],
            },
            incomplete: None,
        },
    ]
    "#);
    assert_eq!(seen.facts.dropped(), Some(6));
    assert_eq!(seen.facts.links().len(), 2);
}

#[test]
fn merges_files_that_overlap_and_reads_pieces_one_after_the_other() {
    let one = see(&["ethernet.pcap"], 68);
    let twice = see(&["raw.pcap", "ethernet.pcap"], 68);
    assert_eq!(twice.sightings.len(), one.sightings.len() + 8);
    assert!(twice.sightings.is_sorted_by_key(|s| s.time_ns));
    assert_eq!(twice.facts.files.len(), 2);
    // Files that begin together: packets of the first one given come first.
    let named_first = see(&["raw.pcap"], 68);
    assert_eq!(twice.sightings[0].key, named_first.sightings[0].key);
}

#[test]
fn reports_tcp_segments_with_their_sightings() {
    let mut point = Point::open(&[golden("ethernet.pcap")]).unwrap();
    let (mut sightings, mut segments) = (Vec::new(), Vec::new());
    assert!(
        !point
            .read_with_tcp(&mut sightings, &mut segments, 1000)
            .unwrap()
    );
    insta::assert_debug_snapshot!(segments, @r"
    [
        TcpSegment {
            time_ns: 1700000000001007000,
            flow: 1,
            sequence: 1000,
            acknowledgement: 2000,
            payload_bytes: 128,
            flags: TcpFlags(
                24,
            ),
        },
    ]
    ");
}

#[test]
fn reports_progress() {
    let path = golden("ethernet.pcap.gz");
    let mut point = Point::open(std::slice::from_ref(&path)).unwrap();
    let progress = point.progress();
    let total = std::fs::metadata(&path).unwrap().len();
    assert_eq!((progress.read_bytes(), progress.total_bytes()), (0, total));
    while point.read(&mut Vec::new(), 1).unwrap() {}
    assert_eq!(progress.read_bytes(), total);
}

#[test]
fn reports_comments_of_a_file_before_its_packets() {
    let file = CaptureFile::open(&golden("mixed.pcapng")).unwrap();
    assert_eq!(
        file.facts().comments,
        ["slicewise start_ns=1700000000000000000"]
    );
}

#[test]
fn reports_the_direction_of_packets_in_cooked_captures() {
    for name in ["cooked-v1.pcap", "cooked-v2.pcap"] {
        let seen = see(&[name], 32);
        let directions: Vec<Direction> = seen.sightings.iter().map(|s| s.direction).collect();
        // Every second of the ten packets was sent; of the three fragments, the second completes a packet.
        let (inbound, outbound) = (Direction::Inbound, Direction::Outbound);
        let expected = [
            inbound, outbound, inbound, inbound, inbound, outbound, inbound, outbound,
        ];
        assert_eq!(directions, expected, "{name}");
    }
}

#[cfg(unix)]
#[test]
fn reads_a_pipe_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("skipped: mkfifo not found");
        return;
    }
    let writer = {
        let pipe = pipe.clone();
        std::thread::spawn(move || {
            std::fs::write(pipe, std::fs::read(golden("ethernet.pcap.gz")).unwrap()).unwrap();
        })
    };
    let mut point = Point::open(&[pipe, golden("ethernet.pcap")]).unwrap();
    let mut out = Vec::new();
    assert!(!point.read(&mut out, 1000).unwrap());
    writer.join().unwrap();
    assert_eq!(out.len(), 22);
    assert_eq!(point.facts().packets(), 30);
}
