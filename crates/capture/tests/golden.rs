//! The same packets read from every format, byte order, unit of time and link layer.
#![allow(clippy::unwrap_used)]

use slicewise_capture::{CaptureFile, Point, PointFacts, Sighting};
use slicewise_wire::{Headers, IpVersion};
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

struct Seen {
    sightings: Vec<Sighting>,
    flows: Vec<Headers>,
    facts: PointFacts,
}

fn see(names: &[&str], key_bytes: u32) -> Seen {
    let paths: Vec<PathBuf> = names.iter().map(|name| golden(name)).collect();
    let mut point = Point::open(&paths).unwrap();
    point.set_key_bytes(key_bytes);
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

/// One line a sighting; the key as the number of the first sighting that has it.
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
fn tells_every_packet_of_an_ethernet_capture() {
    let seen = see(&["ethernet.pcap"], 68);
    insta::assert_snapshot!(listing(&seen), @"");
    insta::assert_debug_snapshot!(seen.facts.counts, @"");
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
fn knows_a_packet_by_the_same_key_behind_every_link_layer() {
    let ethernet = see(&["ethernet.pcap"], 68);
    for name in ["raw.pcap", "null.pcap", "cooked-v1.pcap"] {
        let seen = see(&[name], 68);
        assert_eq!(seen.sightings.len(), 7, "{name}");
        for (other, expected) in seen.sightings.iter().zip(&ethernet.sightings) {
            assert_eq!(other.key, expected.key, "{name}");
            assert_eq!(other.l2_bytes, expected.l2_bytes, "{name}: as if on Ethernet");
        }
    }
}

#[test]
fn knows_a_packet_by_the_same_key_with_96_bytes_captured_but_not_within_a_tunnel() {
    let whole = see(&["ethernet.pcap"], 68);
    let keys: Vec<u64> = whole.sightings.iter().map(|s| s.key).collect();
    for (name, sightings) in [("snap-96.pcap", 9), ("cooked-v2.pcap", 6)] {
        let seen = see(&[name], 68);
        assert_eq!(seen.sightings.len(), sightings, "{name}");
        assert!(seen.sightings.iter().all(|s| keys.contains(&s.key)), "{name}");
        assert_eq!(seen.facts.counts.cut_short, 1, "{name}: the packet in the tunnel");
    }
}

#[test]
fn knows_a_packet_in_a_tunnel_once_both_points_agree_on_fewer_bytes() {
    let cut = Point::open(&[golden("snap-96.pcap")]).unwrap();
    let whole = Point::open(&[golden("ethernet.pcap")]).unwrap();
    // Ethernet, IPv4, UDP, GTP-U with a container: 58 of the 96 bytes.
    assert_eq!((cut.key_bytes_available(), whole.key_bytes_available()), (38, 68));
    let seen = see(&["snap-96.pcap"], 38);
    let tunnelled = seen.sightings.iter().find(|s| s.ttl == 61).unwrap();
    let plain = see(&["ethernet.pcap"], 38).sightings[0];
    assert_eq!(tunnelled.key, plain.key);
    assert_eq!(seen.facts.counts.cut_short, 0);
}

#[test]
fn counts_what_40_bytes_do_not_tell() {
    let seen = see(&["snap-40.pcap"], 68);
    assert_eq!(seen.sightings, []);
    // ARP, one frame of another protocol, three pieces; everything else is cut short.
    let counts = seen.facts.counts;
    assert_eq!((counts.arp, counts.not_ip, counts.fragments, counts.cut_short), (1, 1, 2, 11));
}

#[test]
fn reads_sections_of_either_order_several_interfaces_and_what_was_dropped() {
    let seen = see(&["mixed.pcapng"], 68);
    insta::assert_snapshot!(listing(&seen), @"");
    insta::assert_debug_snapshot!(seen.facts.files, @"");
    assert_eq!(seen.facts.dropped(), Some(6));
    assert_eq!(seen.facts.links().len(), 2);
}

#[test]
fn merges_files_that_overlap_and_reads_pieces_one_after_the_other() {
    let one = see(&["ethernet.pcap"], 68);
    let twice = see(&["raw.pcap", "ethernet.pcap"], 68);
    assert_eq!(twice.sightings.len(), one.sightings.len() + 7);
    assert!(twice.sightings.is_sorted_by_key(|s| s.time_ns));
    assert_eq!(twice.facts.files.len(), 2);
    // Files that begin together: the packets of the first one named are told first.
    let named_first = see(&["raw.pcap"], 68);
    assert_eq!(twice.sightings[0].key, named_first.sightings[0].key);
}

#[test]
fn tells_segments_of_tcp_beside_their_sightings() {
    let mut point = Point::open(&[golden("ethernet.pcap")]).unwrap();
    let (mut sightings, mut segments) = (Vec::new(), Vec::new());
    assert!(!point.read_with_tcp(&mut sightings, &mut segments, 1000).unwrap());
    insta::assert_debug_snapshot!(segments, @"");
}

#[test]
fn says_how_far_it_is() {
    let path = golden("ethernet.pcap.gz");
    let mut point = Point::open(std::slice::from_ref(&path)).unwrap();
    let progress = point.progress();
    let total = std::fs::metadata(&path).unwrap().len();
    assert_eq!((progress.read_bytes(), progress.total_bytes()), (0, total));
    while point.read(&mut Vec::new(), 1).unwrap() {}
    assert_eq!(progress.read_bytes(), total);
}

#[test]
fn tells_comments_of_a_file_before_its_packets() {
    let file = CaptureFile::open(&golden("mixed.pcapng")).unwrap();
    assert_eq!(file.facts().comments, ["slicewise start_ns=1700000000000000000"]);
}
