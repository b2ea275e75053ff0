//! PPPoE sessions and MPLS: the IP packet is found, and what may be none is left alone.

use proptest::prelude::*;
use slicewise_wire::{EtherType, IpVersion, Layer, LinkType, ParseEnd, ParsedFrame, parse_frame};

const PPPOE: u16 = 0x8864;
const MPLS: u16 = 0x8847;
const UPSTREAM: u16 = 0x8848;

/// UDP from 10.0.0.1:40000 to 10.0.0.2:5201 with DSCP 46 and `payload` bytes.
fn v4(payload: u16) -> Vec<u8> {
    let [high, low] = (28 + payload).to_be_bytes();
    let mut packet = vec![0x45, 0xb8, high, low, 0, 7, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1];
    packet.extend([10, 0, 0, 2, 0x9c, 0x40, 0x14, 0x51]);
    packet.extend((8 + payload).to_be_bytes());
    packet.extend([0, 0]);
    packet.resize(usize::from(28 + payload), 7);
    packet
}

/// The same from ::1 to ::2.
fn v6(payload: u16) -> Vec<u8> {
    let [high, low] = (8 + payload).to_be_bytes();
    let mut packet = vec![0x6b, 0x80, 0, 0, high, low, 17, 64];
    packet.extend(1u128.to_be_bytes());
    packet.extend(2u128.to_be_bytes());
    packet.extend([0x9c, 0x40, 0x14, 0x51, high, low, 0, 0]);
    packet.resize(usize::from(48 + payload), 7);
    packet
}

/// Headers of a session whose packet has `bytes` bytes.
fn session(protocol: u16, bytes: usize) -> Vec<u8> {
    let [high, low] = u16::try_from(bytes + 2).unwrap().to_be_bytes();
    let [first, second] = protocol.to_be_bytes();
    vec![0x11, 0, 0, 9, high, low, first, second]
}

/// A stack of so many labels.
fn labels(depth: usize) -> Vec<u8> {
    (1..=depth)
        .flat_map(|label| [0, 0x01, 0x40 | u8::from(label == depth), 64])
        .collect()
}

fn frame(tags: usize, ethertype: u16, behind: &[&[u8]]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    for tag in 0..tags {
        frame.extend([0x81, 0, 0, 10 + u8::try_from(tag).unwrap()]);
    }
    frame.extend(ethertype.to_be_bytes());
    behind.iter().for_each(|bytes| frame.extend(*bytes));
    frame
}

fn parse(frame: &[u8]) -> ParsedFrame {
    parse_frame(
        LinkType::ETHERNET,
        frame,
        u32::try_from(frame.len()).unwrap(),
    )
}

#[test]
fn finds_ip_in_a_pppoe_session_and_behind_labels_under_any_number_of_tags() {
    for tags in 0..3 {
        for (version, packet, protocol) in
            [(IpVersion::V4, v4(30), 0x21), (IpVersion::V6, v6(30), 0x57)]
        {
            let kinds = [
                (PPPOE, session(protocol, packet.len())),
                (MPLS, labels(1)),
                (MPLS, labels(3)),
                (UPSTREAM, labels(16)),
            ];
            for (ethertype, headers) in kinds {
                let bytes = frame(tags, ethertype, &[&headers, &packet]);
                let parsed = parse(&bytes);
                let at = 14 + 4 * tags + headers.len();
                assert_eq!(parsed.end, ParseEnd::Complete, "{bytes:?}");
                let h = parsed.headers;
                assert_eq!(
                    (h.ip_version, h.dscp, h.destination_port),
                    (version, 46, 5201)
                );
                assert_eq!((usize::from(h.l3_offset), parsed.ip_offset), (at, at));
                assert_eq!((usize::from(h.vlan_tags), h.ethertype), (tags, ethertype));
                assert_eq!(
                    (parsed.l2_bytes as usize, parsed.ip_bytes as usize),
                    (bytes.len(), packet.len())
                );
                assert_eq!(parsed.payload_bytes(), 30);
            }
        }
    }
}

#[test]
fn padding_and_a_fcs_belong_to_no_packet() {
    for (ethertype, headers) in [(PPPOE, session(0x21, 30)), (MPLS, labels(1))] {
        let mut bytes = frame(0, ethertype, &[&headers, &v4(2)]);
        let length = bytes.len();
        bytes.resize(64, 0xaa);
        let parsed = parse(&bytes);
        assert_eq!(parsed.end, ParseEnd::Complete);
        assert_eq!((parsed.l2_bytes as usize, parsed.ip_bytes), (length, 30));
    }
    // A packet that states more than its session carries ends with it.
    let cut = parse(&frame(0, PPPOE, &[&session(0x21, 40), &v4(100)]));
    assert_eq!((cut.ip_bytes, cut.end), (40, ParseEnd::Complete));
}

#[test]
fn what_is_not_certainly_ip_is_left_alone() {
    let packet = v4(30);
    let control_word = [&[0, 0, 0, 0][..], &[2; 60]].concat();
    // A pseudowire without control word, to an address that begins as an IPv4 header does.
    let ethernet = [&[0x45, 0, 0x12, 0x34, 0x56, 0x78][..], &[2; 60]].concat();
    let bottomless = [0, 1, 0x40, 64].repeat(10);
    let of_another_version = [&[0x21, 0][..], &session(0x21, packet.len())[2..]].concat();
    let of_another_code = [&[0x11, 9][..], &session(0x21, packet.len())[2..]].concat();
    for (ethertype, headers, behind) in [
        (PPPOE, session(0xc021, 30), packet.clone()),
        (PPPOE, of_another_version, packet.clone()),
        (PPPOE, of_another_code, packet.clone()),
        (PPPOE, vec![0x11, 0, 0, 9], vec![]),
        (MPLS, labels(2), control_word),
        (MPLS, labels(1), ethernet),
        (MPLS, labels(17), packet.clone()),
        (MPLS, labels(1), vec![0x45, 0, 0]),
        (MPLS, bottomless, vec![]),
        (MPLS, labels(1), packet[..40].to_vec()),
    ] {
        let bytes = frame(1, ethertype, &[&headers, &behind]);
        let parsed = parse(&bytes);
        assert_eq!(parsed.end, ParseEnd::NotIp, "{bytes:?}");
        let h = parsed.headers;
        assert_eq!((h.ethertype, h.ip_version), (ethertype, IpVersion::None));
        assert_eq!((h.l3_offset, parsed.l2_bytes as usize), (18, bytes.len()));
    }
}

#[test]
fn a_snap_length_that_ends_within_the_headers_is_told() {
    for (ethertype, headers) in [(PPPOE, session(0x21, 58)), (MPLS, labels(2))] {
        let bytes = frame(0, ethertype, &[&headers, &v4(30)]);
        let wire_bytes = u32::try_from(bytes.len()).unwrap();
        // To tell IP behind labels from other payloads, six bytes of it are needed.
        let needed = 22 + if ethertype == MPLS { 6 } else { 0 };
        for captured in 14..42 {
            let layer = if captured < needed {
                Layer::Link
            } else {
                Layer::Network
            };
            let parsed = parse_frame(LinkType::ETHERNET, &bytes[..captured], wire_bytes);
            assert_eq!(parsed.end, ParseEnd::Truncated(layer), "{captured}");
        }
    }
}

#[test]
fn a_contradiction_within_a_session_is_malformed() {
    let other_version = parse(&frame(0, PPPOE, &[&session(0x57, 58), &v4(30)]));
    assert_eq!(other_version.end, ParseEnd::Malformed(Layer::Network));
    let too_short = parse(&frame(0, PPPOE, &[&session(0x21, 19), &v4(30)]));
    assert_eq!(too_short.end, ParseEnd::Malformed(Layer::Network));
}

#[test]
fn a_tunnel_within_a_session_keeps_the_type_of_the_frame() {
    let inner = v4(10);
    let mut outer = v4(8 + u16::try_from(inner.len()).unwrap());
    outer[22..24].copy_from_slice(&2152u16.to_be_bytes());
    outer[28..36].copy_from_slice(&[0x30, 255, 0, 38, 0, 0, 0, 5]);
    outer[36..].copy_from_slice(&inner);
    let parsed = parse(&frame(0, PPPOE, &[&session(0x21, outer.len()), &outer]));
    assert_eq!(parsed.tunnel.map(|tunnel| tunnel.teid), Some(5));
    assert_eq!(
        (parsed.headers.ethertype, parsed.headers.l3_offset),
        (PPPOE, 22)
    );
    assert_eq!(parsed.ip_bytes as usize, inner.len());
}

#[test]
fn a_protocol_has_a_number_a_name_and_says_whether_ip_may_be_inside() {
    for (number, text, may_hold_ip) in [
        (0x8847, "EtherType 0x8847 (MPLS)", true),
        (0x0806, "EtherType 0x0806 (ARP)", false),
        (0x88b5, "EtherType 0x88b5", true),
        (0x42, "LLC service access point 0x42 (spanning tree)", false),
    ] {
        let ethertype = EtherType(number);
        assert_eq!(ethertype.to_string(), text);
        assert_eq!(ethertype.may_hold_ip(), may_hold_ip);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Whatever the bytes: an IP header is found within them, or the frame is as without these headers.
    #[test]
    fn any_bytes_behind_these_types_are_parsed_or_left_alone(
        ethertype in prop::sample::select(vec![PPPOE, MPLS, UPSTREAM]),
        head in prop::collection::vec(any::<u8>(), 0..24),
        is_session in any::<bool>(),
        behind in prop::collection::vec(any::<u8>(), 0..80),
        captured in 14usize..120,
    ) {
        let start = if is_session { session(0x21, 60) } else { labels(2) };
        let bytes = frame(1, ethertype, &[&start, &head, &behind]);
        let wire_bytes = u32::try_from(bytes.len()).unwrap();
        let parsed = parse_frame(LinkType::ETHERNET, &bytes[..captured.min(bytes.len())], wire_bytes);
        let h = parsed.headers;
        if parsed.end == ParseEnd::NotIp {
            prop_assert_eq!((parsed.l2_bytes, h.ip_version), (wire_bytes, IpVersion::None));
        } else if h.ip_version != IpVersion::None {
            prop_assert!(h.l3_offset > 18 && usize::from(h.l3_offset) < bytes.len());
            prop_assert_eq!(bytes[usize::from(h.l3_offset)] >> 4, if h.ip_version == IpVersion::V4 { 4 } else { 6 });
            prop_assert!(parsed.l2_bytes <= wire_bytes);
        }
    }
}
