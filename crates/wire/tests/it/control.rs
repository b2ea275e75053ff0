//! Frames of protocols that keep a link alive: what they are told apart by.

use slicewise_wire::{IpVersion, LinkType, ParseEnd, ParsedFrame, parse_frame};

fn parse(types_and_tags: &[u8], payload: &[u8]) -> ParsedFrame {
    let frame = [&[2; 12], types_and_tags, payload].concat();
    let bytes = u32::try_from(frame.len()).unwrap();
    parse_frame(LinkType::ETHERNET, &frame, bytes)
}

/// ICMP and `ICMPv6` alike: eight bytes, of which the first is the type.
fn icmp(protocol: u8, pieces: u16) -> ParsedFrame {
    let [high, low] = pieces.to_be_bytes();
    let header = [0x45, 0, 0, 28, 0, 0, high, low, 64, protocol, 0, 0];
    let packet = [&header[..], &[10; 8], &[135, 0, 0, 0, 0, 0, 0, 0]].concat();
    parse(&[8, 0], &packet)
}

#[test]
fn a_frame_that_is_not_ip_has_its_ethertype_behind_all_tags() {
    for tags in [
        &[][..],
        &[0x81, 0, 0, 10],
        &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 10],
    ] {
        let parsed = parse(&[tags, &[8, 6]].concat(), &[0; 28]);
        assert_eq!(parsed.end, ParseEnd::NotIp);
        assert_eq!(parsed.headers.ethertype, 0x0806);
        assert_eq!(usize::from(parsed.headers.vlan_tags), tags.len() / 4);
    }
}

#[test]
fn a_frame_with_a_length_has_the_service_access_point_of_its_llc_header() {
    let bridge = parse(&[0, 38], &[0x42, 0x42, 3, 0, 0, 0]);
    assert_eq!(bridge.headers.ethertype, 0x42);
    // Cut off behind the length, and the smallest type.
    assert_eq!(parse(&[0, 38], &[]).headers.ethertype, 0);
    assert_eq!(parse(&[6, 0], &[0x42]).headers.ethertype, 0x0600);
    assert_eq!(parse(&[5, 0xff], &[0x42]).headers.ethertype, 0x42);
}

#[test]
fn a_frame_of_ip_has_no_other_ethertype() {
    let parsed = icmp(17, 0);
    assert_eq!(parsed.headers.ip_version, IpVersion::V4);
    assert_eq!(parsed.headers.ethertype, 0);
}

#[test]
fn the_type_of_an_icmp_message_is_read_unless_it_is_in_an_earlier_fragment() {
    assert_eq!(icmp(1, 0).headers.icmp_type, Some(135));
    assert_eq!(icmp(58, 0x2000).headers.icmp_type, Some(135));
    assert_eq!(icmp(58, 1).headers.icmp_type, None);
    assert_eq!(icmp(17, 0).headers.icmp_type, None);
    // An extension header may come before: hop-by-hop options.
    let mut packet = vec![0x60, 0, 0, 0, 0, 16, 0, 255];
    packet.extend([0; 32]);
    packet.extend([58, 0, 0, 0, 0, 0, 0, 0, 136, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(parse(&[0x86, 0xdd], &packet).headers.icmp_type, Some(136));
    // The packet ends before its message, though the frame does not.
    packet[5] = 8;
    assert_eq!(parse(&[0x86, 0xdd], &packet).headers.icmp_type, None);
}
