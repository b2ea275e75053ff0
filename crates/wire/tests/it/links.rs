//! Link layers other than Ethernet, and their names.

use slicewise_wire::{Ecn, IpVersion, Layer, LinkType, ParseEnd, parse_frame};

/// UDP from port 40000 to 5201 in IPv4, and in IPv6, with 4 bytes of payload.
const V4: [u8; 32] = [
    0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, //
    0x9c, 0x40, 0x14, 0x51, 0, 12, 0, 0, 7, 7, 7, 7,
];
const V6: [u8; 52] = [
    0x60, 0, 0, 0, 0, 12, 17, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, //
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, //
    0x9c, 0x40, 0x14, 0x51, 0, 12, 0, 0, 7, 7, 7, 7,
];

/// A Linux cooked header, version 1, of a packet sent by the host.
fn cooked(ethertype: u16) -> Vec<u8> {
    let [high, low] = ethertype.to_be_bytes();
    vec![0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, high, low]
}

/// The same, version 2.
fn cooked_2(ethertype: u16) -> Vec<u8> {
    let [high, low] = ethertype.to_be_bytes();
    let rest = [0, 0, 0, 0, 0, 3, 0, 1, 4, 6, 2, 0, 0, 0, 0, 1, 0, 0];
    [[high, low].as_slice(), &rest].concat()
}

/// Bytes before IP of version 4 and 6, by link type.
fn links() -> Vec<(LinkType, [Vec<u8>; 2])> {
    let family = |bytes: [u8; 4]| bytes.to_vec();
    let none = || [Vec::new(), Vec::new()];
    let session = |bytes, protocol| vec![0x11, 0, 0, 9, 0, bytes, 0, protocol];
    vec![
        (
            LinkType::PPP,
            [vec![0xff, 3, 0, 0x21], vec![0xff, 3, 0, 0x57]],
        ),
        (LinkType::PPP, [vec![0, 0x21], vec![0x57]]),
        (
            LinkType::PPP_HDLC,
            [vec![0xff, 3, 0x21], vec![0x8f, 0, 0x86, 0xdd]],
        ),
        (LinkType::PPP_ETHER, [session(34, 0x21), session(54, 0x57)]),
        (
            LinkType::C_HDLC,
            [vec![0x0f, 0, 8, 0], vec![0x8f, 0, 0x86, 0xdd]],
        ),
        (
            LinkType::NULL,
            [family([2, 0, 0, 0]), family([30, 0, 0, 0])],
        ),
        (
            LinkType::LOOP,
            [family([0, 0, 0, 2]), family([0, 0, 0, 24])],
        ),
        (LinkType::LINUX_SLL, [cooked(0x0800), cooked(0x86dd)]),
        (LinkType::LINUX_SLL2, [cooked_2(0x0800), cooked_2(0x86dd)]),
        (LinkType::RAW, none()),
        (LinkType::RAW_BSD, none()),
        (LinkType::RAW_OPENBSD, none()),
        (LinkType::IPV4, none()),
        (LinkType::IPV6, none()),
    ]
}

#[test]
fn finds_ip_behind_every_link_layer() {
    for (link, before) in links() {
        assert!(link.is_known(), "{link}");
        let packets = [(IpVersion::V4, &V4[..]), (IpVersion::V6, &V6[..])];
        for (before, (version, packet)) in before.iter().zip(packets) {
            let bytes = [before, packet].concat();
            let frame = parse_frame(link, &bytes, u32::try_from(bytes.len()).unwrap());
            assert_eq!(frame.end, ParseEnd::Complete, "{link}");
            assert_eq!(frame.headers.ip_version, version, "{link}");
            assert_eq!(frame.headers.destination_port, 5201, "{link}");
            assert_eq!(frame.ip_offset, before.len(), "{link}");
            // As if on Ethernet.
            let session = if link == LinkType::PPP_ETHER { 8 } else { 0 };
            assert_eq!(
                frame.l2_bytes as usize,
                14 + session + packet.len(),
                "{link}"
            );
        }
    }
}

#[test]
fn a_link_header_that_was_cut_off_is_no_packet() {
    for (link, [before, _]) in links() {
        let bytes = [before.as_slice(), &V4].concat();
        let wire_bytes = u32::try_from(bytes.len()).unwrap();
        // Without a type field, the first byte of IP decides.
        let has_type = matches!(
            link,
            LinkType::LINUX_SLL
                | LinkType::LINUX_SLL2
                | LinkType::PPP
                | LinkType::PPP_HDLC
                | LinkType::PPP_ETHER
                | LinkType::C_HDLC
        );
        let needed = before.len() + usize::from(!has_type);
        for captured in 0..=needed {
            let layer = if captured < needed {
                Layer::Link
            } else {
                Layer::Network
            };
            let end = parse_frame(link, &bytes[..captured], wire_bytes).end;
            assert_eq!(end, ParseEnd::Truncated(layer), "{link}, {captured} bytes");
        }
    }
}

#[test]
fn a_cooked_header_gives_the_direction_of_the_packet() {
    assert_eq!(
        LinkType::LINUX_SLL.cooked_packet_type(&cooked(0x0800)),
        Some(4)
    );
    assert_eq!(
        LinkType::LINUX_SLL2.cooked_packet_type(&cooked_2(0x0800)),
        Some(4)
    );
    assert_eq!(LinkType::ETHERNET.cooked_packet_type(&cooked(0x0800)), None);
    assert_eq!(LinkType::LINUX_SLL.cooked_packet_type(&[0]), None);
    assert_eq!(LinkType::LINUX_SLL2.cooked_packet_type(&[0; 10]), None);
}

#[test]
fn a_link_type_has_a_name_or_a_number() {
    let known = links().into_iter().map(|(link, _)| link);
    let all = [LinkType::ETHERNET, LinkType(147), LinkType(127)]
        .into_iter()
        .chain(known);
    let names: Vec<String> = all.map(|link| format!("{} {link}", link.0)).collect();
    let expected = [
        "1 Ethernet",
        "147 link type 147",
        "127 link type 127 (IEEE 802.11 with radiotap header)",
        "9 PPP",
        "9 PPP",
        "50 PPP",
        "51 PPPoE session",
        "104 Cisco HDLC",
        "0 BSD loopback",
        "108 OpenBSD loopback",
        "113 Linux cooked v1",
        "276 Linux cooked v2",
        "101 raw IP",
        "12 raw IP",
        "14 raw IP",
        "228 raw IPv4",
        "229 raw IPv6",
    ];
    assert_eq!(names, expected);
    assert!(LinkType::ETHERNET.is_known() && !LinkType(147).is_known());
}

#[test]
fn a_tagged_frame_that_is_not_ip_is_not_mistaken_for_ip() {
    let macs = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    let experimental = [&macs[..], &[0x81, 0, 0, 5, 0x88, 0xb5], &V4, &[0; 30]].concat();
    let frame = parse_frame(LinkType::ETHERNET, &experimental, 80);
    assert_eq!((frame.end, frame.ethertype), (ParseEnd::NotIp, 0x88b5));
}

#[test]
fn two_bits_give_the_four_ecn_codepoints() {
    let codes = [
        (0, Ecn::NotEct, false),
        (1, Ecn::Ect1, true),
        (2, Ecn::Ect0, true),
        (3, Ecn::Ce, true),
    ];
    for (bits, ecn, can_be_marked) in codes {
        assert_eq!(Ecn::from_bits(0xb8 | bits), ecn);
        assert_eq!((ecn.bits(), ecn.is_capable()), (bits, can_be_marked));
    }
}
