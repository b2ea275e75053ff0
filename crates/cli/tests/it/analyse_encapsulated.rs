//! `slicewise analyse`: packets in other headers at one end, and frames that are not looked into.

use crate::support::{
    MS, PAIR, Packet, START_NS, Sandbox, analysed, frame, frames, later, packets, pcap, with,
};
use slicewise_capture::write::PcapWriter;

const IP_BYTES: usize = 128;

/// A capture of these packets, whose frames are changed by `change` and kept whole.
fn changed(packets: &[Packet], change: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut writer = PcapWriter::new(Vec::new(), 262_144).unwrap();
    for packet in packets {
        let frame = change(&frame(packet));
        let length = u32::try_from(frame.len()).unwrap();
        let at = START_NS + packet.at_ns;
        writer.write_packet(at, &frame, length).unwrap();
    }
    writer.finish().unwrap()
}

/// Addresses, then `headers` with the `EtherType`, then the IP packet.
fn behind(headers: &[u8]) -> impl Fn(&[u8]) -> Vec<u8> {
    let headers = headers.to_vec();
    move |frame| [&frame[..12], &headers, &frame[14..]].concat()
}

/// An IPv4 header from one router to another with `inside` behind it.
fn between_routers(protocol: u8, inside: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(20 + inside.len()).unwrap().to_be_bytes();
    let header = [0x45, 0, high, low, 0, 0, 0x40, 0, 64, protocol, 0, 0];
    let addresses = [192, 0, 2, 1, 192, 0, 2, 2];
    [&header[..], &addresses, inside].concat()
}

fn tunnelled(protocol: u8, header: &[u8], from: usize) -> impl Fn(&[u8]) -> Vec<u8> {
    let header = header.to_vec();
    move |frame| {
        let inside = [&header, &frame[from..]].concat();
        [&frame[..14], &between_routers(protocol, &inside)].concat()
    }
}

/// Ten of 100 packets are lost, the others arrive 2 ms later in other frames.
fn wrapped(change: impl Fn(&[u8]) -> Vec<u8>) -> Sandbox {
    let sandbox = Sandbox::new();
    let sent = packets(100);
    sandbox.write("tx.pcap", pcap(&sent));
    sandbox.write("rx.pcap", changed(&later(&sent[..90], 2 * MS), change));
    sandbox
}

#[test]
fn packets_that_arrive_in_a_pppoe_session_or_behind_labels_are_matched() {
    let [high, low] = u16::try_from(IP_BYTES + 2).unwrap().to_be_bytes();
    let session = [0x88, 0x64, 0x11, 0, 0, 9, high, low, 0, 0x21];
    let tag = [0x81, 0, 0, 10];
    for headers in [
        session.to_vec(),
        [&tag[..], &session].concat(),
        vec![0x88, 0x47, 0, 1, 0x41, 64],
        [&tag[..], &[0x88, 0x48, 0, 1, 0x40, 64, 0, 1, 0x41, 64]].concat(),
    ] {
        let sandbox = wrapped(behind(&headers));
        let (stderr, record) = analysed(&sandbox, &[]);
        assert_eq!(stderr, "");
        assert_eq!(frames(&record, 0), [100, 90, 10], "{headers:?}");
        assert_eq!(record["flows"][0]["delay"]["p50_ns"], 2 * MS);
    }
}

#[test]
fn packets_in_tunnels_are_matched_by_the_outer_packet_unless_the_inner_one_is_asked_for() {
    let vxlan = {
        let length = u8::try_from(8 + 8 + 14 + IP_BYTES).unwrap();
        let udp = [0xc0, 0, 0x12, 0xb5, 0, length, 0, 0];
        [udp, [8, 0, 0, 0, 0, 0, 7, 0]].concat()
    };
    let gre = [0, 0, 8, 0];
    let gre_with_key = [0x20, 0, 8, 0, 0, 0, 0, 7];
    for (protocol, header, from) in [
        (4, &[][..], 14),
        (47, &gre, 14),
        (47, &gre_with_key, 14),
        (17, &vxlan, 0),
    ] {
        let sandbox = wrapped(tunnelled(protocol, header, from));
        let stderr = sandbox.refused(2, &PAIR);
        let advice = "loss is unknown. `--inner` matches the packets inside";
        assert!(stderr.contains(advice), "{stderr}");
        let (stderr, record) = analysed(&sandbox, &["--inner"]);
        assert_eq!(stderr, "");
        assert_eq!(frames(&record, 0), [100, 90, 10]);
        assert_eq!(record["flows"][0]["flow"]["destination"], "10.0.0.2");
        assert_eq!(record["flows"][0]["delay"]["p50_ns"], 2 * MS);
    }
}

#[test]
fn a_few_packets_that_all_are_in_tunnels_are_refused_with_the_way_to_the_inner_ones() {
    let sandbox = Sandbox::new();
    let sent = packets(20);
    sandbox.write("tx.pcap", pcap(&sent));
    let gre = tunnelled(47, &[0, 0, 8, 0], 14);
    sandbox.write("rx.pcap", changed(&later(&sent, 2 * MS), gre));
    let stderr = sandbox.refused(2, &PAIR);
    let advice = "20 are packets of IP in IP, GRE or VXLAN: `--inner` matches those inside.";
    assert!(stderr.contains(advice), "{stderr}");
}

/// Half of the packets arrive as they were sent, half of them in a tunnel.
#[test]
fn where_only_some_packets_are_in_a_tunnel_a_note_says_so() {
    let sandbox = wrapped(|frame| frame.to_vec());
    let gre = tunnelled(47, &[0, 0, 8, 0], 14);
    let is_even = |frame: &[u8]| frame[19].is_multiple_of(2);
    let received = changed(&later(&packets(90), 2 * MS), |frame| {
        if is_even(frame) {
            gre(frame)
        } else {
            frame.to_vec()
        }
    });
    sandbox.write("rx.pcap", received);
    let (stderr, _) = analysed(&sandbox, &[]);
    let note = "note: 45 packets were in tunnels of IP in IP, GRE or VXLAN, and not at every point: they were matched by the outer packet. `--inner` matches the packets inside.";
    assert!(stderr.contains(note), "{stderr}");
    let (stderr, record) = analysed(&sandbox, &["--inner", "--replace"]);
    assert_eq!((stderr.as_str(), frames(&record, 0)), ("", [100, 90, 10]));
}

#[test]
fn frames_that_are_not_looked_into_are_named_where_something_is_lost() {
    let sandbox = wrapped(|frame| frame.to_vec());
    let received = changed(&later(&packets(100), 2 * MS), |frame| {
        match frame[19] {
            // A pseudowire, MACsec, ARP.
            number @ 0..5 => behind(&[0x88, 0x47, 0, 1, 0x41, 64, 0, 0, 0, number])(frame),
            5..8 => behind(&[0x88, 0xe5])(frame),
            8 => behind(&[0x08, 0x06])(frame),
            _ => frame.to_vec(),
        }
    });
    sandbox.write("rx.pcap", received);
    let (stderr, record) = analysed(&sandbox, &[]);
    insta::assert_snapshot!(stderr, @"note: At received, 8 frames were not looked into: 5 × EtherType 0x8847 (MPLS), 3 × EtherType 0x88e5 (MACsec). Packets in them may be among those that count as lost.");
    assert_eq!(frames(&record, 0), [100, 91, 9]);
    let page = sandbox.read("out/report.html");
    for kind in [
        "EtherType 0x8847 (MPLS)",
        "EtherType 0x88e5 (MACsec)",
        "EtherType 0x0806 (ARP)",
    ] {
        assert!(page.contains(kind), "{kind}");
    }

    // Without loss they cost nothing.
    sandbox.write("tx.pcap", pcap(&packets(100)[9..]));
    let (stderr, _) = analysed(&sandbox, &["--replace"]);
    assert_eq!(stderr, "");
}

/// A capture of 5 packets in which some bytes of each frame were replaced.
fn spoilt(link: u8, change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut capture = changed(&packets(5), |frame| {
        let mut frame = frame.to_vec();
        change(&mut frame);
        frame
    });
    capture[20] = link;
    capture
}

#[test]
fn captures_of_which_nothing_is_read_are_refused_by_what_is_in_them() {
    let sandbox = Sandbox::new();
    let refused = |capture: Vec<u8>| {
        sandbox.write("tx.pcap", &capture);
        sandbox.write("rx.pcap", &capture);
        sandbox.refused(2, &PAIR)
    };
    insta::assert_snapshot!(refused(spoilt(105, |_| ())), @"error: none of the 5 packets of the sent side can be matched: 5 are link type 105 (IEEE 802.11), which is not read: expected Ethernet, Linux cooked, raw IP, PPP, PPPoE, Cisco HDLC or BSD loopback");
    insta::assert_snapshot!(refused(spoilt(1, |frame| frame[14] = 0x42)), @"error: none of the 5 packets of the sent side can be matched: 5 have malformed headers (their lengths or versions contradict each other)");
    insta::assert_snapshot!(refused(spoilt(1, |frame| frame[12] = 0x88)), @"error: none of the 5 packets of the sent side can be matched: 5 are EtherType 0x8800");
    let in_part = spoilt(1, |frame| match frame[19] {
        0 => frame[12..14].copy_from_slice(&[8, 6]),
        1 => frame[30] = 224,
        2 => frame[20] = 0x20,
        _ => frame[14] = 0x42,
    });
    insta::assert_snapshot!(refused(in_part), @"error: none of the 5 packets of the sent side can be matched: 1 are EtherType 0x0806 (ARP), 1 are link-local, 1 are fragments, 2 have malformed headers (their lengths or versions contradict each other)");
}

#[test]
fn packets_of_ppp_are_read() {
    let sandbox = wrapped(|frame| frame.to_vec());
    let mut ppp = changed(&later(&packets(90), 2 * MS), |frame| {
        [&[0xff, 3, 0, 0x21], &frame[14..]].concat()
    });
    ppp[20] = 9;
    sandbox.write("rx.pcap", ppp);
    let (stderr, record) = analysed(&sandbox, &[]);
    assert_eq!((stderr.as_str(), frames(&record, 0)), ("", [100, 90, 10]));
}

/// Simple packet blocks in little-endian pcapng.
fn without_times(packets: &[Packet]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let length = u32::try_from(12 + body.len()).unwrap().to_le_bytes();
        [&kind.to_le_bytes()[..], &length, body, &length].concat()
    };
    let section = [
        &0x1a2b_3c4d_u32.to_le_bytes()[..],
        &[1, 0, 0, 0],
        &[0xff; 8],
    ]
    .concat();
    let mut bytes = block(0x0a0d_0d0a, &section);
    bytes.extend(block(1, &[1, 0, 0, 0, 0, 0, 0, 0]));
    for packet in packets {
        let mut body = frame(packet);
        let length = u32::try_from(body.len()).unwrap();
        body.resize(body.len().next_multiple_of(4), 0);
        bytes.extend(block(3, &[&length.to_le_bytes()[..], &body].concat()));
    }
    bytes
}

#[test]
fn packets_without_a_time_are_counted() {
    let sandbox = wrapped(|frame| frame.to_vec());
    sandbox.write("rx.pcap", without_times(&packets(5)));
    insta::assert_snapshot!(sandbox.refused(2, &PAIR), @"error: the received side holds no packets with a time: 5 are in simple packet blocks of pcapng, which have none. Capture with `tcpdump -w FILE`");
    // Beside others: a file of its own.
    sandbox.write("more.pcapng", without_times(&packets(2)));
    sandbox.write("rx.pcap", pcap(&later(&packets(100), 2 * MS)));
    let (_, stderr) = sandbox.succeeded(&with(&PAIR, &["more.pcapng", "--out", "out"]));
    insta::assert_snapshot!(stderr, @"note: At received, 2 packets were without a time (simple packet blocks of pcapng): they are not matched. Capture with `tcpdump -w FILE`.");
}

#[test]
fn a_download_is_no_exchange_of_captures() {
    let sandbox = Sandbox::new();
    // The first host asks once in ten packets; the second one answers.
    let all: Vec<Packet> = packets(100)
        .into_iter()
        .map(|packet| Packet {
            goes_back: packet.number % 10 != 0,
            ..packet
        })
        .collect();
    let seen = |at_first: bool| {
        let mut seen: Vec<Packet> = all.clone();
        for packet in &mut seen {
            if packet.goes_back == at_first {
                packet.at_ns += 2 * MS;
            }
        }
        seen.sort_by_key(|packet| packet.at_ns);
        pcap(&seen)
    };
    sandbox.write("tx.pcap", seen(true));
    sandbox.write("rx.pcap", seen(false));
    let (stderr, record) = analysed(&sandbox, &[]);
    insta::assert_snapshot!(stderr, @"note: More bytes went from the receiving end to the sending one than the other way, as in a download: they are in no figure of a slice. To measure them, give the files the other way round, `--sent` the capture of the end that sends the data.");
    assert_eq!(frames(&record, 0), [10, 10, 0]);
}

#[test]
fn a_pause_of_a_day_is_measured_without_a_series_of_all_its_intervals() {
    let sandbox = Sandbox::new();
    let day = 86_400_000 * MS;
    let mut sent = packets(40);
    sent[20..].iter_mut().for_each(|packet| packet.at_ns += day);
    sandbox.write("tx.pcap", pcap(&sent));
    sandbox.write("rx.pcap", pcap(&later(&sent, 2 * MS)));
    let (_, record) = analysed(&sandbox, &[]);
    assert_eq!(frames(&record, 0), [40, 40, 0]);
    let series = sandbox.read("out/data/series.csv");
    assert!(series.len() < 4_000_000, "{} bytes", series.len());
}
