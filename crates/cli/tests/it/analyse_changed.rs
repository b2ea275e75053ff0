//! `slicewise analyse`: what routers, firewalls and generators do with packets is never taken for loss.

use crate::support::{MS, PAIR, START_NS, Sandbox, analysed, contains, frames, with};
use slicewise_capture::write::PcapWriter;

/// A packet of TCP or UDP from its IPv4 header on, as an end captures it.
#[derive(Debug, Clone)]
struct Ip {
    at_ns: u64,
    bytes: Vec<u8>,
}

/// A UDP datagram whose payload begins with a number.
fn datagram(number: u32, source_port: u16, payload_bytes: usize) -> Ip {
    let length = |bytes: usize| u16::try_from(bytes).unwrap().to_be_bytes();
    let mut bytes = vec![0x45, 0];
    bytes.extend(length(28 + payload_bytes));
    bytes.extend(length(number as usize & 0xffff));
    bytes.extend([0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2]);
    bytes.extend(source_port.to_be_bytes());
    bytes.extend(5201_u16.to_be_bytes());
    bytes.extend(length(8 + payload_bytes));
    bytes.extend([0, 0]);
    bytes.extend(number.to_be_bytes());
    bytes.resize(28 + payload_bytes, 0x78);
    let at_ns = u64::from(number) * MS;
    Ip { at_ns, bytes }
}

/// A TCP segment of 100 bytes; with SYN, it has options instead.
fn segment(number: u32, flags: u8) -> Ip {
    let mut ip = datagram(number, 40_000, 112);
    ip.bytes[9] = 6;
    let sequence = (number * 100).to_be_bytes();
    ip.bytes[24..28].copy_from_slice(&sequence);
    ip.bytes[28..32].copy_from_slice(&[0, 0, 0, 1]);
    ip.bytes[32..34].copy_from_slice(&[0x50, flags]);
    if flags & 2 != 0 {
        ip.bytes[32] = 0x60;
        ip.bytes.truncate(44);
        ip.bytes[2..4].copy_from_slice(&[0, 44]);
        ip.bytes[40..].copy_from_slice(&[2, 4, 5, 0xb4]);
    }
    ip
}

/// The same packets behind a router 2 ms away.
fn received(packets: &[Ip]) -> Vec<Ip> {
    let mut packets = packets.to_vec();
    for ip in &mut packets {
        ip.at_ns += 2 * MS;
        ip.bytes[8] -= 1;
    }
    packets
}

fn capture(packets: &[Ip], snap_bytes: u32) -> Vec<u8> {
    let mut packets = packets.to_vec();
    packets.sort_by_key(|ip| ip.at_ns);
    let mut writer = PcapWriter::new(Vec::new(), snap_bytes).unwrap();
    for ip in &packets {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        let is_v6 = ip.bytes[0] >> 4 == 6;
        frame.extend(if is_v6 { [0x86, 0xdd] } else { [8, 0] });
        frame.extend(&ip.bytes);
        let length = u32::try_from(frame.len()).unwrap();
        let at_ns = START_NS + ip.at_ns;
        writer.write_packet(at_ns, &frame, length).unwrap();
    }
    writer.finish().unwrap()
}

fn pair(sent: &[Ip], received: &[Ip], snap_bytes: u32) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("tx.pcap", capture(sent, snap_bytes));
    sandbox.write("rx.pcap", capture(received, snap_bytes));
    sandbox
}

/// Two flows of 100 datagrams each.
fn two_flows() -> Vec<Ip> {
    let flows = [5_000, 5_001].into_iter().flat_map(|port| {
        let datagrams = 0..100;
        datagrams.map(move |number| datagram(number, port, 60))
    });
    flows.collect()
}

#[test]
fn a_lowered_segment_size_in_a_syn_loses_no_packet() {
    let sent: Vec<Ip> = (0..100)
        .map(|number| segment(number, if number % 10 == 0 { 2 } else { 0x10 }))
        .collect();
    let mut there = received(&sent);
    for ip in &mut there {
        if ip.bytes[33] == 2 {
            ip.bytes[43] = 0x84;
        }
    }
    let (stderr, record) = analysed(&pair(&sent, &there, 96), &[]);
    assert_eq!(frames(&record, 0), [100, 100, 0]);
    assert_eq!(stderr, "");
}

/// Changes a packet of a number.
type Change = fn(&mut [u8], usize);

#[test]
fn translated_addresses_and_rewritten_fields_are_refused_and_not_lost() {
    let sent = two_flows();
    let changes: [(&str, Change); 5] = [
        ("NAT", |ip, _| {
            ip[12..16].copy_from_slice(&[203, 0, 113, 9]);
        }),
        ("NAT", |ip, _| {
            ip[12..16].copy_from_slice(&[203, 0, 113, 9]);
            ip[20..22].copy_from_slice(&61_000_u16.to_be_bytes());
        }),
        ("NAT", |ip, _| {
            ip[16..24].copy_from_slice(&[10, 0, 0, 7, 0x13, 0x89, 0x1f, 0x90]);
        }),
        ("rewrites IP identifications", |ip, number| {
            let identification = u16::try_from(number * 7_919 % 65_521).unwrap() | 1;
            ip[4..6].copy_from_slice(&identification.to_be_bytes());
        }),
        ("rewrites IP identifications", |ip, _| ip[28] ^= 0x55),
    ];
    for (said, change) in changes {
        let mut there = received(&sent);
        for (number, ip) in there.iter_mut().enumerate() {
            if ip.bytes[21] == 0x89 {
                change(&mut ip.bytes, number);
            }
        }
        // Some are lost, too.
        there.retain(|ip| ip.at_ns / MS % 20 != 7);
        let refused = pair(&sent, &there, 96).refused(2, &PAIR);
        contains(&refused, "loss is unknown");
        contains(&refused, said);
        contains(&refused, ":5001 >");
    }
}

#[test]
fn few_or_some_changed_packets_are_refused_if_numbers_and_lengths_are_equal() {
    let mut sent = two_flows();
    // Every third one.
    let mut there = received(&sent);
    for ip in there.iter_mut().step_by(3) {
        ip.bytes[4] ^= 0x80;
    }
    let refused = pair(&sent, &there, 96).refused(2, &PAIR);
    contains(&refused, "rewrites IP identifications");
    // Ten packets, whose time to live does not tell.
    there = received(&sent);
    sent.extend((0..10).map(|number| datagram(number, 6_000, 60)));
    there.extend((0..10).map(|number| datagram(number, 6_001, 60)));
    let refused = pair(&sent, &there, 96).refused(2, &PAIR);
    contains(&refused, ":6000 >");
    contains(&refused, "NAT");
}

#[test]
fn numbers_of_tcp_that_a_firewall_draws_anew_are_refused_and_not_lost() {
    let sent: Vec<Ip> = (0..200).map(|number| segment(number, 0x10)).collect();
    let mut there = received(&sent);
    for ip in &mut there {
        ip.bytes[24] ^= 0x5a;
    }
    let mut sent = sent;
    // Another flow that arrives.
    sent.extend(two_flows());
    there.extend(received(&two_flows()));
    let refused = pair(&sent, &there, 96).refused(2, &PAIR);
    insta::assert_snapshot!(refused, @"error: 200 packets of TCP 192.0.2.1:40000 > 198.51.100.2:5201 were seen only at the sender, and 200 of the same flow, of similar lengths and at the same time, only at the receiver. Probably something on the way rewrites IP identifications, TCP sequence numbers, options or payload, as firewalls and proxies do. Such packets cannot be matched, so loss is unknown. Capture both ends on one side of that; or leave these packets out of both captures");
}

#[test]
fn a_flow_in_a_tunnel_is_refused_and_not_lost() {
    let sent = two_flows();
    let mut there = received(&sent);
    for ip in &mut there {
        if ip.bytes[21] == 0x89 {
            // ESP of two gateways: 30 bytes more.
            ip.bytes[8] = 62;
            ip.bytes[9] = 50;
            ip.bytes[12..20].copy_from_slice(&[10, 9, 0, 1, 10, 9, 0, 2]);
            ip.bytes.extend([0; 30]);
            let length = u16::try_from(ip.bytes.len()).unwrap();
            ip.bytes[2..4].copy_from_slice(&length.to_be_bytes());
        }
    }
    let refused = pair(&sent, &there, 96).refused(2, &PAIR);
    contains(&refused, "a tunnel or encryption");
}

#[test]
fn payload_encrypted_on_the_way_is_refused_and_not_lost() {
    let sent = two_flows();
    for added in [10, 40] {
        let mut there = received(&sent);
        for ip in there.iter_mut().filter(|ip| ip.bytes[21] == 0x89) {
            for byte in &mut ip.bytes[28..] {
                *byte ^= 0x55;
            }
            ip.bytes.resize(ip.bytes.len() + added, 0x33);
            let length = u16::try_from(ip.bytes.len()).unwrap();
            ip.bytes[2..4].copy_from_slice(&length.to_be_bytes());
            ip.bytes[24..26].copy_from_slice(&(length - 20).to_be_bytes());
        }
        for (sent, received) in [(&sent, &there), (&there, &sent)] {
            let refused = pair(sent, received, 96).refused(2, &PAIR);
            contains(&refused, "loss is unknown");
        }
    }
}

#[test]
fn a_flow_that_is_lost_beside_other_traffic_is_lost() {
    let sent = two_flows();
    let arrived = |ip: &&Ip| ip.bytes[21] != 0x89;
    let mut there: Vec<Ip> = received(&sent).iter().filter(arrived).cloned().collect();
    // What the receiving host sends itself to the same service, and to others as often.
    for number in 0..8 {
        let mut query = datagram(number * 10, 5_003, 58);
        query.bytes[12..16].copy_from_slice(&[198, 51, 100, 9]);
        there.push(query);
    }
    for number in 0..100 {
        let mut other = datagram(number, 5_004, 900);
        other.bytes[16..20].copy_from_slice(&[198, 51, 100, 77]);
        there.push(other);
    }
    let (_, record) = analysed(&pair(&sent, &there, 96), &[]);
    let flows = record["flows"].as_array().unwrap();
    let lost: Vec<u64> = flows
        .iter()
        .map(|flow| flow["lost_frames"].as_u64().unwrap())
        .collect();
    assert_eq!(lost, [0, 100]);
}

#[test]
fn captures_that_cover_different_times_are_not_taken_for_changed_packets() {
    let sent: Vec<Ip> = (0..1_000)
        .map(|number| {
            let ip = datagram(number, 5_000, 60);
            let at_ns = ip.at_ns * 10;
            Ip { at_ns, ..ip }
        })
        .collect();
    let there = received(&sent);
    let (stderr, record) = analysed(&pair(&sent[..600], &there[400..], 96), &[]);
    assert_eq!(frames(&record, 0), [600, 200, 400]);
    contains(&stderr, "400 frames were seen at the receiving end only");
}

/// Fragments of a packet for this many bytes of IP each, 1 µs apart.
fn fragments(ip: &Ip, most: usize) -> Vec<Ip> {
    let (header, payload) = ip.bytes.split_at(20);
    let step = (most - 20) / 8 * 8;
    let pieces = payload.chunks(step).enumerate().map(|(number, piece)| {
        let mut bytes = header.to_vec();
        bytes.extend(piece);
        let length = u16::try_from(bytes.len()).unwrap();
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        let more = (number + 1) * step < payload.len();
        let field = u16::try_from(number * step / 8).unwrap() | u16::from(more) << 13;
        bytes[6..8].copy_from_slice(&field.to_be_bytes());
        let at_ns = ip.at_ns + number as u64 * 1_000;
        Ip { at_ns, bytes }
    });
    pieces.collect()
}

#[test]
fn packets_fragmented_on_the_way_arrive_when_all_their_fragments_have() {
    let sent: Vec<Ip> = (0..100)
        .map(|number| datagram(number, 5_000, 1_450))
        .collect();
    for snap_bytes in [96, 262_144] {
        let whole = received(&sent);
        let mut there: Vec<Ip> = whole.iter().flat_map(|ip| fragments(ip, 620)).collect();
        // One fragment is lost, one comes twice, those of one packet in another order.
        there.remove(1);
        let twice = there[10].clone();
        there.push(twice);
        let late = there[20].at_ns + 5_000;
        there[20].at_ns = late;
        let sandbox = pair(&sent, &there, snap_bytes);
        let (stderr, record) = analysed(&sandbox, &[]);
        assert_eq!(frames(&record, 0), [100, 99, 1]);
        let delay = &record["flows"][0]["delay"];
        assert_eq!(delay["min_ns"], 2 * MS + 2_000);
        assert_eq!(delay["max_ns"], 2 * MS + 5_000);
        contains(&stderr, "99 packets were put together from fragments");
        contains(&stderr, "3 IP fragments were seen of packets");
    }
}

/// The same datagram in IPv6, with extension headers of these protocols.
fn v6(ip: &Ip, extensions: &[(u8, [u8; 8])]) -> Ip {
    let mut bytes = vec![0x60, 0, 0, 0, 0, 0, 17, ip.bytes[8]];
    bytes.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    bytes.extend([0x20, 1, 0xd, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    let mut named_at = 6;
    for (protocol, header) in extensions {
        bytes[named_at] = *protocol;
        named_at = bytes.len();
        bytes.extend(header);
        bytes[named_at] = 17;
    }
    bytes.extend(&ip.bytes[20..]);
    let length = u16::try_from(bytes.len() - 40).unwrap();
    bytes[4..6].copy_from_slice(&length.to_be_bytes());
    Ip { bytes, ..*ip }
}

/// Hop-by-hop options and destination options that are padding.
const PADDING: [u8; 8] = [0, 0, 1, 4, 0, 0, 0, 0];

#[test]
fn extension_headers_added_or_removed_on_the_way_lose_no_packet() {
    let datagrams: Vec<Ip> = (0..100).map(|number| datagram(number, 5_000, 60)).collect();
    let with = |extensions: &[(u8, [u8; 8])]| -> Vec<Ip> {
        datagrams.iter().map(|ip| v6(ip, extensions)).collect()
    };
    let kinds = [with(&[]), with(&[(0, PADDING)]), with(&[(60, PADDING)])];
    for sent in &kinds {
        for there in &kinds {
            let (_, record) = analysed(&pair(sent, &received_v6(there), 96), &[]);
            assert_eq!(frames(&record, 0), [100, 100, 0]);
        }
    }
}

/// The same packets of IPv6 behind a router 2 ms away.
fn received_v6(packets: &[Ip]) -> Vec<Ip> {
    let mut packets = packets.to_vec();
    for ip in &mut packets {
        ip.at_ns += 2 * MS;
        ip.bytes[7] -= 1;
    }
    packets
}

#[test]
fn packets_of_ipv6_fragmented_between_the_points_match_those_that_are_whole() {
    let datagrams: Vec<Ip> = (0..100)
        .map(|number| datagram(number, 5_000, 800))
        .collect();
    let whole: Vec<Ip> = datagrams.iter().map(|ip| v6(ip, &[])).collect();
    let pieces = datagrams.iter().flat_map(|ip| {
        [(0, 400), (400, 808)].map(|(start, end)| {
            let mut piece = ip.clone();
            piece.bytes.truncate(20 + end);
            piece.bytes.drain(20..20 + start);
            piece.at_ns += start as u64;
            let field = u16::try_from(start).unwrap() | u16::from(end < 808);
            let [high, low] = field.to_be_bytes();
            let number = ip.bytes[28..32].last().copied().unwrap();
            let fragment = [0, 0, high, low, 7, 7, 7, number];
            v6(&piece, &[(0, PADDING), (44, fragment)])
        })
    });
    let pieces: Vec<Ip> = pieces.collect();
    for (sent, there) in [(&whole, &pieces), (&pieces, &whole)] {
        let (stderr, record) = analysed(&pair(sent, &received_v6(there), 262_144), &[]);
        assert_eq!(frames(&record, 0), [100, 100, 0]);
        contains(&stderr, "100 packets were put together from fragments");
    }
}

#[test]
fn a_snap_length_of_the_longest_frame_leaves_packets_whole() {
    let sent: Vec<Ip> = (0..100)
        .map(|number| {
            let mut ip = datagram(0, 5_000, 1_472);
            ip.at_ns = u64::from(number) * MS;
            let end = ip.bytes.len();
            ip.bytes[end - 12..end - 8].copy_from_slice(&u32::to_be_bytes(number));
            ip
        })
        .collect();
    let (_, record) = analysed(&pair(&sent, &received(&sent), 1_514), &[]);
    assert_eq!(frames(&record, 0), [100, 100, 0]);
}

#[test]
fn numbers_at_the_end_of_packets_captured_whole_tell_them_apart() {
    let sent: Vec<Ip> = (0..200)
        .map(|number| {
            let mut ip = datagram(0, 5_000, 400);
            ip.at_ns = u64::from(number) * MS;
            let end = ip.bytes.len();
            ip.bytes[end - 12..end - 8].copy_from_slice(&u32::to_be_bytes(number));
            ip
        })
        .collect();
    let mut there = received(&sent);
    there.retain(|ip| ip.at_ns / MS % 50 != 7);
    let sandbox = pair(&sent, &there, 262_144);
    let (_, record) = analysed(&sandbox, &[]);
    assert_eq!(frames(&record, 0), [200, 196, 4]);
    assert_eq!(record["flows"][0]["delay"]["max_ns"], 2 * MS);
    // Where only one end has them whole, nothing tells them apart.
    sandbox.write("rx.pcap", capture(&there, 96));
    let refused = sandbox.refused(2, &with(&PAIR, &["--replace"]));
    insta::assert_snapshot!(refused, @"error: no packet is unique: 200 sent and 196 received have the same headers and payload as another one. Have the sender number its packets, as iperf3 does; if it does so at their end, as TRex, Ixia and Spirent do, capture whole packets (`-s 0`). Otherwise, and only if every delay is shorter than the 1 ms after which they repeat, choose a `--loss-timeout` longer than every delay and shorter than that");
}

/// Packets that are all alike, every 1 ms.
fn alike(count: u32) -> Vec<Ip> {
    let packets = (0..count).map(|number| Ip {
        at_ns: u64::from(number) * MS,
        ..datagram(0, 5_000, 60)
    });
    packets.collect()
}

#[test]
fn packets_alike_are_not_matched_where_delays_are_longer_than_their_period() {
    let sent = alike(500);
    for delay_ns in [2_300_000, 1_200_000, 12_400_000] {
        let mut there = received(&sent);
        for ip in &mut there {
            ip.at_ns = ip.at_ns + delay_ns - 2 * MS;
        }
        there.retain(|ip| ip.at_ns / MS % 50 != 27);
        let sandbox = pair(&sent, &there, 96);
        let refused = sandbox.refused(2, &with(&PAIR, &["--loss-timeout", "500us"]));
        contains(&refused, "each packet would be taken for a later one");
    }
    // The time-out is longer than the delay, and shorter than the period.
    let mut there = received(&sent);
    for ip in &mut there {
        ip.at_ns -= 1_700_000;
    }
    there.retain(|ip| ip.at_ns / MS % 50 != 27);
    let sandbox = pair(&sent, &there, 96);
    let (stderr, record) = analysed(&sandbox, &["--loss-timeout", "500us"]);
    assert_eq!(frames(&record, 0), [500, 490, 10]);
    assert_eq!(record["flows"][0]["delay"]["max_ns"], 300_000);
    insta::assert_snapshot!(stderr, @"note: Frames of 1 flow come again with the same headers and payload, after 1 ms at the shortest: they are matched by time alone. That is right only if every delay is shorter than the loss time-out of 500 µs.");
}

#[test]
fn a_packet_overtaken_by_hundreds_has_its_true_extent() {
    let sent: Vec<Ip> = (0..1_500)
        .map(|number| datagram(number, 5_000, 60))
        .collect();
    let mut there = received(&sent);
    there[100].at_ns += 500 * MS - 1;
    let sandbox = pair(&sent, &there, 96);
    let (_, record) = analysed(&sandbox, &[]);
    let reordering = &record["flows"][0]["reordering"];
    let figure = |name: &str| reordering[name].as_u64().unwrap();
    assert_eq!(
        [
            "reordered_frames",
            "max_extent_frames",
            "max_n_reordering",
            "bounded_frames"
        ]
        .map(figure),
        [1, 499, 499, 0]
    );
    assert_eq!(figure("max_late_ns"), 499 * MS - 1);
}

/// The same capture as tcpdump writes it by default: in microseconds.
fn in_microseconds(mut capture: Vec<u8>) -> Vec<u8> {
    capture[..4].copy_from_slice(&0xa1b2_c3d4_u32.to_le_bytes());
    let mut at = 24;
    while at < capture.len() {
        let word = |at: usize| u32::from_le_bytes(capture[at..at + 4].try_into().unwrap());
        let (fraction, bytes) = (word(at + 4) / 1_000, word(at + 8));
        capture[at + 4..at + 8].copy_from_slice(&fraction.to_le_bytes());
        at += 16 + bytes as usize;
    }
    capture
}

#[test]
fn a_difference_below_the_resolution_of_a_file_is_no_difference_of_clocks() {
    let delayed = |by_ns: i64| {
        let sent: Vec<Ip> = (0..300_u32)
            .map(|number| {
                let ip = datagram(number, 5_000, 60);
                let at_ns = ip.at_ns + 10_000 + u64::from(number) * 37 % 1_000;
                Ip { at_ns, ..ip }
            })
            .collect();
        let mut there = received(&sent);
        for ip in &mut there {
            ip.at_ns = (ip.at_ns - 2 * MS).saturating_add_signed(by_ns);
        }
        let sandbox = pair(&sent, &there, 96);
        let coarse = in_microseconds(capture(&there, 96));
        sandbox.write("rx.pcap", coarse);
        sandbox
    };
    let (stderr, record) = analysed(&delayed(400), &[]);
    insta::assert_snapshot!(stderr, @"note: At received, times have a resolution of 1 µs: delays are known to that. `tcpdump --nano` captures nanoseconds.");
    assert_eq!(record["capture"]["clock"]["negative_delays"], 0);
    assert_eq!(record["flows"][0]["delay"]["samples"], 300);
    let sandbox = delayed(400);
    let (stdout, _) = sandbox.succeeded(&PAIR);
    contains(&stdout, "< 1 µs");
    assert!(!stdout.contains("0 ns"), "{stdout}");
    // Clocks that are more than that apart still disagree.
    let (stderr, _) = analysed(&delayed(-2_000), &[]);
    contains(&stderr, "The two clocks disagree");
}
