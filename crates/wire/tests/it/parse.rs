//! What is parsed of frames, and what is reported where they cannot be parsed.

use proptest::prelude::*;
use slicewise_wire::{
    Ecn, Fragment, IpVersion, Layer, LinkType, ParseEnd, ParsedFrame, TcpFlags, Tunnel, parse_frame,
};
use std::num::NonZeroU32;

const MACS: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

fn ethernet(types_and_tags: &[u8], packet: &[u8]) -> Vec<u8> {
    [&MACS, types_and_tags, packet].concat()
}

fn ipv4(protocol: u8, pieces: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(20 + payload.len()).unwrap().to_be_bytes();
    let [high, low] = pieces.to_be_bytes();
    let header = [
        0x45, 0xb9, length[0], length[1], 0xab, 0xcd, high, low, 63, protocol, 0, 0, //
        10, 0, 0, 1, 10, 0, 0, 2,
    ];
    [&header, payload].concat()
}

fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(payload.len()).unwrap().to_be_bytes();
    let mut header = vec![0x6b, 0x81, 0, 0, high, low, next, 62];
    header.extend(1u128.to_be_bytes());
    header.extend(2u128.to_be_bytes());
    [header, payload.to_vec()].concat()
}

fn udp(destination: u16, payload: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(8 + payload.len()).unwrap().to_be_bytes();
    let to = destination.to_be_bytes();
    [&[0x9c, 0x40, to[0], to[1], high, low, 0, 0], payload].concat()
}

/// With 12 bytes of options and 100 of data.
fn tcp() -> Vec<u8> {
    let header = [
        0x9c, 0x40, 0x14, 0x51, 0, 0, 3, 0xe8, 0, 0, 7, 0xd0, 0x80, 0x18, 1, 0xf6, 0, 0, 0, 0,
    ];
    [header.as_slice(), &[1; 12], &[7; 100]].concat()
}

fn parse(frame: &[u8]) -> ParsedFrame {
    parse_frame(
        LinkType::ETHERNET,
        frame,
        u32::try_from(frame.len()).unwrap(),
    )
}

const IPV4: [u8; 2] = [8, 0];
const IPV6: [u8; 2] = [0x86, 0xdd];

#[test]
fn parses_headers_and_lengths_of_udp_over_ipv4() {
    let mut bytes = ethernet(&IPV4, &ipv4(17, 0x4000, &udp(5201, &[7; 4])));
    bytes.resize(60, 0);
    let frame = parse(&bytes);
    let h = frame.headers;
    assert_eq!(frame.end, ParseEnd::Complete);
    assert_eq!(
        (h.ip_version, h.protocol, h.dscp, h.ecn),
        (IpVersion::V4, 17, 46, Ecn::Ect1)
    );
    assert_eq!((h.source, h.destination), (0x0a00_0001, 0x0a00_0002));
    assert_eq!(
        (h.has_ports, h.source_port, h.destination_port),
        (true, 40000, 5201)
    );
    assert_eq!((frame.identification, frame.ttl), (0xabcd, 63));
    assert_eq!(
        (
            frame.ip_offset,
            frame.transport_offset,
            frame.payload_offset
        ),
        (14, 34, 42)
    );
    // Padding is ignored, so that both ends of a path agree.
    assert_eq!(
        (frame.l2_bytes, frame.ip_bytes, frame.payload_bytes()),
        (46, 32, 4)
    );
}

#[test]
fn parses_a_tcp_header() {
    let bytes = ethernet(&IPV4, &ipv4(6, 0, &tcp()));
    let frame = parse(&bytes);
    let header = frame.tcp(&bytes).unwrap();
    assert_eq!(
        (header.sequence, header.acknowledgement, header.window),
        (1000, 2000, 502)
    );
    assert_eq!((header.header_bytes, header.payload_bytes), (32, 100));
    assert!(header.flags.contains(TcpFlags::ACK) && !header.flags.contains(TcpFlags::SYN));
    assert_eq!(
        parse(&ethernet(&IPV4, &ipv4(17, 0, &tcp()))).tcp(&bytes),
        None
    );
}

#[test]
fn counts_two_tags_and_skips_further_ones() {
    let packet = ipv4(17, 0, &udp(5201, &[7; 30]));
    let tags = [0x88, 0xa8, 0xe0, 10, 0x81, 0, 0, 20, 0x91, 0, 0, 30];
    for (tagged, expected) in [
        (0, (0, 0, 0)),
        (1, (1, 10, 0)),
        (2, (2, 10, 20)),
        (3, (2, 10, 20)),
    ] {
        let bytes = ethernet(&[&tags[..4 * tagged], &IPV4].concat(), &packet);
        let frame = parse(&bytes);
        let h = frame.headers;
        assert_eq!((h.vlan_tags, h.outer_vlan, h.inner_vlan), expected);
        assert_eq!(usize::from(h.l3_offset), 14 + 4 * tagged);
        assert_eq!(frame.l2_bytes as usize, bytes.len());
        assert_eq!(h.destination_port, 5201);
    }
    let endless = ethernet(&[0x81, 0, 0, 1].repeat(20), &packet);
    assert_eq!(parse(&endless).end, ParseEnd::Malformed(Layer::Link));
}

#[test]
fn skips_ipv6_extension_headers() {
    let hop_by_hop = [43, 0, 5, 2, 0, 0, 1, 0];
    let routing = [51, 0, 4, 0, 0, 0, 0, 0];
    let authentication = [44, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1];
    let whole_in_one_piece = [60, 0, 0, 0, 0, 0, 0, 9];
    let options = [17, 1, 1, 4, 0, 0, 0, 0, 1, 4, 0, 0, 0, 0, 1, 0];
    let extensions = [
        hop_by_hop.as_slice(),
        &routing,
        &authentication,
        &whole_in_one_piece,
        &options,
        &udp(5201, &[7; 30]),
    ]
    .concat();
    let bytes = ethernet(&IPV6, &ipv6(0, &extensions));
    let frame = parse(&bytes);
    assert_eq!(
        (frame.end, frame.fragment),
        (ParseEnd::Complete, Fragment::None)
    );
    let h = frame.headers;
    assert_eq!(
        (h.ip_version, h.protocol, h.destination_port),
        (IpVersion::V6, 17, 5201)
    );
    assert_eq!(
        (h.source, h.destination, h.dscp, h.ecn),
        (1, 2, 46, Ecn::NotEct)
    );
    assert_eq!(
        (frame.transport_offset, frame.ttl, frame.payload_bytes()),
        (14 + 40 + 52, 62, 30)
    );
    let endless = [60, 0, 0, 0, 0, 0, 0, 0].repeat(20);
    let endless = parse(&ethernet(&IPV6, &ipv6(60, &endless)));
    assert_eq!(endless.end, ParseEnd::Malformed(Layer::Network));
}

#[test]
fn distinguishes_fragments() {
    let payload = udp(5201, &[7; 30]);
    for (pieces, fragment, has_ports) in [
        (0x4000, Fragment::None, true),
        (0x2000, Fragment::First, true),
        (0x2005, Fragment::Later, false),
        (0x0005, Fragment::Later, false),
    ] {
        let frame = parse(&ethernet(&IPV4, &ipv4(17, pieces, &payload)));
        assert_eq!(
            (frame.fragment, frame.headers.has_ports),
            (fragment, has_ports)
        );
        assert_eq!(frame.end, ParseEnd::Complete);
        let bytes = ethernet(&IPV4, &ipv4(6, pieces, &tcp()));
        assert_eq!(parse(&bytes).tcp(&bytes).is_some(), has_ports);
    }
    for (piece, fragment) in [([0, 1], Fragment::First), ([0, 9], Fragment::Later)] {
        // The second byte is reserved, and no length.
        let header = [17, 5, piece[0], piece[1], 0, 0, 0, 1];
        let frame = parse(&ethernet(
            &IPV6,
            &ipv6(44, &[header.as_slice(), &payload].concat()),
        ));
        assert_eq!((frame.fragment, frame.headers.protocol), (fragment, 17));
        assert_eq!(frame.transport_offset, 14 + 40 + 8);
    }
}

#[test]
fn takes_the_length_of_the_frame_where_the_header_states_none_or_more() {
    // Segmentation offload leaves 0; the frame is longer than any length field could say.
    for stated in [0u16, u16::MAX] {
        let mut packet = ipv4(6, 0, &tcp());
        packet[2..4].copy_from_slice(&stated.to_be_bytes());
        let bytes = ethernet(&IPV4, &packet);
        let wire_bytes = if stated == 0 { 80_000 } else { 60_014 };
        let frame = parse_frame(LinkType::ETHERNET, &bytes[..96], wire_bytes);
        assert_eq!(
            (frame.l2_bytes, frame.ip_bytes),
            (wire_bytes, wire_bytes - 14)
        );
        let tcp = frame.tcp(&bytes[..96]).unwrap();
        assert_eq!(tcp.payload_bytes, wire_bytes - 14 - 20 - 32);
    }
}

fn gtp_u(flags: u8, options: &[u8], packet: &[u8]) -> Vec<u8> {
    let length = u16::try_from(options.len() + packet.len()).unwrap();
    let [high, low] = length.to_be_bytes();
    let header = [flags, 255, high, low, 0, 0, 0x12, 0x34];
    ipv4(17, 0, &udp(2152, &[&header, options, packet].concat()))
}

#[test]
fn parses_the_packet_inside_a_tunnel() {
    let within = ipv6(17, &udp(53, &[7; 30]));
    let container = [0, 0, 0, 0x85, 1, 0x10, 0x49, 0x20, 2, 0, 0, 0, 0, 0, 0, 0];
    for (flags, options, qfi) in [
        (0x30, [].as_slice(), None),
        (0x32, &[0, 1, 0, 0x85], None),
        (0x34, &container, Some(9)),
    ] {
        let bytes = ethernet(
            &[&[0x81, 0, 0, 5], &IPV4[..]].concat(),
            &gtp_u(flags, options, &within),
        );
        let frame = parse(&bytes);
        assert_eq!(frame.end, ParseEnd::Complete);
        assert_eq!(frame.tunnel, Some(Tunnel { teid: 0x1234, qfi }));
        let h = frame.headers;
        assert_eq!(h.teid, NonZeroU32::new(0x1234));
        assert_eq!(
            (h.ip_version, h.destination_port, h.outer_vlan),
            (IpVersion::V6, 53, 5)
        );
        assert_eq!((frame.ip_bytes, frame.payload_bytes()), (78, 30));
        assert_eq!(
            frame.l2_bytes as usize,
            bytes.len(),
            "of the frame on the wire"
        );
        assert_eq!(frame.ip_offset, 18 + 36 + options.len());
    }
}

#[test]
fn a_packet_in_a_tunnel_has_the_tags_of_the_frame_and_the_length_the_tunnel_holds() {
    let tags = [0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0];
    let mut within = ipv4(17, 0, &udp(53, &[7; 30]));
    // Stated, none stated, and more stated than there is.
    for stated in [58u16, 0, 400] {
        within[2..4].copy_from_slice(&stated.to_be_bytes());
        let frame = parse(&ethernet(&tags, &gtp_u(0x30, &[], &within)));
        assert_eq!((frame.end, frame.ip_bytes), (ParseEnd::Complete, 58));
        let h = frame.headers;
        assert_eq!((h.ip_version, h.destination_port), (IpVersion::V4, 53));
        assert_eq!((h.vlan_tags, h.outer_vlan, h.inner_vlan), (2, 5, 6));
        assert_eq!((h.l3_offset, frame.ip_offset), (22, 22 + 36));
    }
}

#[test]
fn reports_where_a_tunnel_is_truncated_or_inconsistent() {
    let within = ipv4(17, 0, &udp(53, &[7; 30]));
    let whole = ethernet(&IPV4, &gtp_u(0x30, &[], &within));
    let wire_bytes = u32::try_from(whole.len()).unwrap();
    // The header of the tunnel begins at byte 42, the packet within at 50, its payload at 78.
    for captured in 42..whole.len() {
        let frame = parse_frame(LinkType::ETHERNET, &whole[..captured], wire_bytes);
        let expected = match captured {
            0..78 => ParseEnd::Truncated(Layer::Tunnel),
            _ => ParseEnd::Complete,
        };
        assert_eq!(frame.end, expected, "{captured} bytes");
        let teid = NonZeroU32::new(0x1234).filter(|_| captured >= 50);
        assert_eq!(frame.headers.teid, teid, "{captured} bytes");
        let port = if captured < 78 { 2152 } else { 53 };
        assert_eq!(frame.headers.destination_port, port, "{captured} bytes");
    }
    // As long as a tunnel header, and cut off: it is undecidable whether it is one.
    let tiny = ethernet(&IPV4, &ipv4(17, 0, &udp(2152, &[0x30; 8])));
    let cut = parse_frame(LinkType::ETHERNET, &tiny[..46], 50);
    assert_eq!(cut.end, ParseEnd::Truncated(Layer::Tunnel));
    let bad = ipv4(17, 0, &udp(53, &[]))[..24].to_vec();
    let frame = parse(&ethernet(&IPV4, &gtp_u(0x30, &[], &bad)));
    assert_eq!(frame.end, ParseEnd::Malformed(Layer::Tunnel));
}

#[test]
fn skips_up_to_eight_extension_headers_of_a_tunnel() {
    let within = ipv4(17, 0, &udp(53, &[7; 30]));
    for (count, end) in [
        (8, ParseEnd::Complete),
        (9, ParseEnd::Malformed(Layer::Tunnel)),
    ] {
        let mut options = vec![0, 0, 0, 0xc0];
        options.extend([1, 0, 0, 0xc0].repeat(count - 1));
        options.extend([1, 0, 0, 0]);
        let frame = parse(&ethernet(&IPV4, &gtp_u(0x34, &options, &within)));
        assert_eq!(frame.end, end, "{count} extension headers");
    }
}

#[test]
fn the_length_of_ipv6_is_what_its_header_states_or_what_the_frame_holds() {
    // Padding is ignored; a stated 0 means a jumbogram or an offloaded segment.
    for (stated, ip_bytes) in [(38, 78), (0, 90), (51, 90)] {
        let mut packet = ipv6(17, &udp(5201, &[7; 30]));
        packet[5] = stated;
        packet.resize(90, 0);
        let frame = parse(&ethernet(&IPV6, &packet));
        assert_eq!(frame.end, ParseEnd::Complete);
        assert_eq!((frame.ip_bytes, frame.l2_bytes), (ip_bytes, ip_bytes + 14));
    }
    // Options fill the packet to its end, or would reach beyond it.
    for (stated, end) in [
        (8, ParseEnd::Complete),
        (7, ParseEnd::Malformed(Layer::Network)),
    ] {
        let mut packet = ipv6(60, &[59, 0, 1, 4, 0, 0, 0, 0]);
        packet[5] = stated;
        assert_eq!(parse(&ethernet(&IPV6, &packet)).end, end);
    }
}

#[test]
fn ignores_what_only_looks_like_a_tunnel() {
    let within = ipv4(17, 0, &udp(53, &[7; 30]));
    let mut echo = gtp_u(0x32, &[0, 1, 0, 0], &[]);
    echo[29] = 1;
    let mut wrong_length = gtp_u(0x30, &[], &within);
    wrong_length[31] ^= 1;
    let charging = gtp_u(0x20, &[], &within);
    let iperf = ipv4(17, 0, &udp(2152, &[7; 100]));
    let tiny = ipv4(17, 0, &udp(2152, &[0x30]));
    for packet in [echo, wrong_length, charging, iperf, tiny] {
        let frame = parse(&ethernet(&IPV4, &packet));
        assert_eq!((frame.end, frame.tunnel), (ParseEnd::Complete, None));
        assert_eq!(frame.headers.destination_port, 2152);
    }
    let endless = gtp_u(0x34, &[[0, 0, 0, 0x85], [0, 0, 0, 0]].concat(), &within);
    let frame = parse(&ethernet(&IPV4, &endless));
    assert_eq!(frame.end, ParseEnd::Malformed(Layer::Tunnel));
}

#[test]
fn reports_the_layer_in_which_the_captured_bytes_end() {
    let whole = ethernet(&[&[0x81, 0, 0, 5], &IPV4[..]].concat(), &ipv4(6, 0, &tcp()));
    let wire_bytes = u32::try_from(whole.len()).unwrap();
    for captured in 0..whole.len() {
        let frame = parse_frame(LinkType::ETHERNET, &whole[..captured], wire_bytes);
        let expected = match captured {
            0..18 => ParseEnd::Truncated(Layer::Link),
            18..38 => ParseEnd::Truncated(Layer::Network),
            38..54 => ParseEnd::Truncated(Layer::Transport),
            _ => ParseEnd::Complete,
        };
        assert_eq!(frame.end, expected, "{captured} bytes");
        // Earlier layers are parsed all the same.
        assert_eq!(frame.headers.destination != 0, captured >= 38);
        assert_eq!(frame.headers.has_ports, captured >= 42);
    }
}

#[test]
fn ports_are_parsed_from_a_truncated_transport_header() {
    let whole = ethernet(&IPV4, &ipv4(17, 0, &udp(5201, &[7; 30])));
    for captured in 38..whole.len() {
        let frame = parse_frame(LinkType::ETHERNET, &whole[..captured], 72);
        let is_cut = captured < 42;
        let truncated = ParseEnd::Truncated(Layer::Transport);
        assert_eq!(frame.end == truncated, is_cut, "{captured} bytes");
        assert_eq!(frame.headers.destination_port, 5201);
    }
    let sctp = [[0x9c, 0x40, 0x14, 0x51].as_slice(), &[0; 8], &[7; 30]].concat();
    let frame = parse(&ethernet(&IPV4, &ipv4(132, 0, &sctp)));
    assert_eq!(
        (frame.headers.destination_port, frame.payload_bytes()),
        (5201, 30)
    );
}

#[test]
fn parses_every_promised_stack_from_96_captured_bytes() {
    let options = [17, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let tagged = |ethertype: [u8; 2]| [&[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2], &ethertype[..]].concat();
    let extended = [[6].as_slice(), &options[1..], &tcp()].concat();
    for frame in [
        ethernet(&tagged(IPV6), &ipv6(60, &extended)),
        ethernet(
            &tagged(IPV4),
            &gtp_u(
                0x34,
                &[0, 0, 0, 0x85, 1, 0, 9, 0],
                &ipv4(17, 0, &udp(53, &[7; 60])),
            ),
        ),
    ] {
        let wire_bytes = u32::try_from(frame.len()).unwrap();
        let cut = parse_frame(LinkType::ETHERNET, &frame[..96], wire_bytes);
        assert_eq!(cut, parse(&frame));
        assert_eq!(cut.end, ParseEnd::Complete);
    }
}

#[test]
fn reports_frames_without_ip() {
    let arp = parse(&ethernet(&[8, 6], &[0; 46]));
    assert_eq!(
        (arp.end, arp.ethertype, arp.l2_bytes),
        (ParseEnd::NotIp, 0x0806, 60)
    );
    let udp_packet = ethernet(&IPV4, &ipv4(17, 0, &udp(5201, &[7; 18])));
    assert_eq!(
        parse_frame(LinkType(147), &udp_packet, 60).end,
        ParseEnd::NotIp
    );
    assert_eq!(
        parse_frame(LinkType::RAW, &[0; 60], 60).end,
        ParseEnd::NotIp
    );
    assert!(!LinkType(147).is_known() && LinkType::LINUX_SLL2.is_known());
}

#[test]
fn rejects_inconsistent_headers() {
    let network = ParseEnd::Malformed(Layer::Network);
    let transport = ParseEnd::Malformed(Layer::Transport);
    let udp_packet = ipv4(17, 0, &udp(5201, &[7; 30]));
    let patched = |at: usize, byte: u8| {
        let mut packet = udp_packet.clone();
        packet[at] = byte;
        parse(&ethernet(&IPV4, &packet)).end
    };
    assert_eq!(patched(0, 0x65), network, "version");
    assert_eq!(patched(0, 0x44), network, "header length");
    assert_eq!(patched(3, 19), network, "total length");
    assert_eq!(patched(3, 24), transport, "ends within the UDP header");
    let mut short = ipv4(6, 0, &tcp());
    short[32] = 0x40;
    assert_eq!(
        parse(&ethernet(&IPV4, &short)).end,
        transport,
        "data offset"
    );
    let without_data = |header_bytes: usize| ipv4(6, 0, &tcp()[..header_bytes]);
    let end = |header_bytes| parse(&ethernet(&IPV4, &without_data(header_bytes))).end;
    assert_eq!(end(32), ParseEnd::Complete, "options to the end");
    assert_eq!(end(31), transport, "options beyond the end");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn never_panics_and_never_reports_more_than_the_wire_length(
        link in prop::sample::select(vec![0u16, 1, 101, 108, 113, 229, 276]),
        start in prop::collection::vec(any::<u8>(), 0..130),
        wire_bytes in any::<u32>(),
    ) {
        let frame = parse_frame(LinkType(link), &start, wire_bytes);
        prop_assert!(frame.ip_bytes <= wire_bytes);
        prop_assert!(frame.payload_bytes() <= frame.ip_payload_bytes());
        prop_assert_eq!(frame.end == ParseEnd::Complete || frame.tcp(&start).is_none(), true);
    }

    /// Options, extension headers and the packet within do not change which tunnel it is.
    #[test]
    fn the_teid_of_a_user_packet_is_known_from_its_first_eight_bytes(
        teid in any::<u32>(),
        flags in 0x30u8..0x38,
        behind in prop::collection::vec(any::<u8>(), 0..60),
        captured in 0usize..160,
    ) {
        let mut bytes = ethernet(&IPV4, &gtp_u(flags, &[], &behind));
        bytes[46..50].copy_from_slice(&teid.to_be_bytes());
        let wire_bytes = u32::try_from(bytes.len()).unwrap();
        let captured = captured.min(bytes.len());
        let frame = parse_frame(LinkType::ETHERNET, &bytes[..captured], wire_bytes);
        let expected = NonZeroU32::new(teid).filter(|_| captured >= 50);
        prop_assert_eq!(frame.headers.teid, expected);
    }

    #[test]
    fn whatever_lies_behind_good_headers_does_not_matter(
        tail in prop::collection::vec(any::<u8>(), 0..80),
        protocol in any::<u8>(),
    ) {
        let bytes = ethernet(&IPV4, &ipv4(protocol, 0, &tail));
        let frame = parse(&bytes);
        prop_assert_eq!(frame.headers.source, 0x0a00_0001);
        prop_assert_eq!(frame.l2_bytes as usize, bytes.len());
    }
}
