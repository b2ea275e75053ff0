//! Packets of the simulator as the bytes of real frames.

use crate::packet::Packet;
use slicewise_traffic::TunnelParams;
use slicewise_wire::{
    ETHERTYPE_IPV4, ETHERTYPE_IPV6, Headers, IpVersion, PROTOCOL_ICMP as ICMP,
    PROTOCOL_ICMPV6 as ICMPV6, PROTOCOL_SCTP as SCTP, PROTOCOL_TCP as TCP, PROTOCOL_UDP as UDP,
    put_checksum, put_gtp_u, put_ip, put_udp,
};

/// Time to live of a packet in a tunnel, which devices do not change.
const INNER_TTL: u8 = 64;

/// Where a frame is seen: what routers change on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Vantage {
    pub source_mac: [u8; 6],
    pub destination_mac: [u8; 6],
    /// IPv4 time to live, or IPv6 hop limit.
    pub ttl: u8,
}

/// Write the first bytes of `packet` as seen from `vantage`: all headers, followed by zeros up to
/// the end of the frame or `snap_bytes`, whichever comes first. In a tunnel `outer` has the headers of the packet around it.
///
/// The payload begins as iperf3's datagrams do (`iperf_udp_send`, without
/// `--udp-counters-64bit`): seconds and microseconds when it was sent, then its number, counted
/// from 1, each 32 bits in network order. `epoch_ns` is when the run starts.
pub(super) fn write_frame(
    frame: &mut Vec<u8>,
    (headers, outer): (&Headers, Option<&Headers>),
    packet: &Packet,
    vantage: &Vantage,
    epoch_ns: u64,
    snap_bytes: u32,
) {
    frame.clear();
    // What devices wrote is in the outermost header.
    let seen = Headers {
        dscp: packet.traffic_class.dscp(),
        ecn: packet.traffic_class.ecn(),
        ..*outer.unwrap_or(headers)
    };
    write_ethernet(frame, &seen, vantage);
    let mut ip_bytes = packet.l2_bytes.saturating_sub(headers.l3_offset.into());
    let identification = low_half(number(packet));
    put_ip(frame, &seen, vantage.ttl, identification, ip_bytes);
    if let Some(teid) = headers.teid.filter(|_| outer.is_some()) {
        put_udp(frame, &seen, ip_bytes.saturating_sub(20));
        ip_bytes = ip_bytes.saturating_sub(TunnelParams::BYTES);
        put_gtp_u(frame, teid, ip_bytes);
        put_ip(frame, headers, INNER_TTL, identification, ip_bytes);
    }
    let behind_ip = ip_bytes.saturating_sub(match headers.ip_version {
        IpVersion::V6 => 40,
        _ => 20,
    });
    let transport_at = frame.len();
    write_transport(frame, headers, packet, behind_ip);
    let payload_bytes = behind_ip.saturating_sub(transport_bytes(headers.protocol));
    let numbered = payload_start(packet, epoch_ns);
    let payload = usize::try_from(payload_bytes).unwrap_or(usize::MAX);
    frame.extend_from_slice(numbered.get(..payload).unwrap_or(&numbered));
    put_checksum(frame, headers, transport_at, behind_ip);
    frame.resize(packet.l2_bytes.min(snap_bytes) as usize, 0);
}

/// Bytes of the transport header, as a study counts them.
const fn transport_bytes(protocol: u8) -> u32 {
    match protocol {
        TCP => 20,
        SCTP => 12,
        ICMP | ICMPV6 | UDP => 8,
        _ => 0,
    }
}

fn write_ethernet(frame: &mut Vec<u8>, headers: &Headers, vantage: &Vantage) {
    frame.extend_from_slice(&vantage.destination_mac);
    frame.extend_from_slice(&vantage.source_mac);
    if headers.vlan_tags >= 2 {
        put_u16(frame, TAG_OUTER);
        put_u16(frame, headers.outer_vlan);
    }
    if headers.vlan_tags >= 1 {
        put_u16(frame, TAG);
        let inner = headers.vlan_tags >= 2;
        put_u16(
            frame,
            if inner {
                headers.inner_vlan
            } else {
                headers.outer_vlan
            },
        );
    }
    let is_v6 = headers.ip_version == IpVersion::V6;
    put_u16(
        frame,
        if is_v6 {
            ETHERTYPE_IPV6
        } else {
            ETHERTYPE_IPV4
        },
    );
}

fn write_transport(frame: &mut Vec<u8>, headers: &Headers, packet: &Packet, behind_ip: u32) {
    if headers.has_ports && headers.protocol != UDP {
        put_u16(frame, headers.source_port);
        put_u16(frame, headers.destination_port);
    }
    match headers.protocol {
        UDP => put_udp(frame, headers, behind_ip),
        TCP => {
            let payload = behind_ip.saturating_sub(transport_bytes(TCP));
            let (sequence, _) = split(packet.sequence.wrapping_mul(payload.into()));
            put_u32(frame, sequence);
            put_u32(frame, 1);
            // Five words of header, flags ACK and PSH, the largest window.
            frame.extend_from_slice(&[0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
        }
        // Verification tag and checksum, which a capture cut off could not hold for.
        SCTP => frame.extend_from_slice(&[0; 8]),
        ICMP | ICMPV6 => {
            let echo_request = if headers.protocol == ICMP { 8 } else { 128 };
            frame.extend_from_slice(&[echo_request, 0, 0, 0, 0, 1]);
            put_u16(frame, low_half(number(packet)));
        }
        _ => {}
    }
}

/// Returns the first bytes of the payload, which distinguish the packets of a flow.
fn payload_start(packet: &Packet, epoch_ns: u64) -> [u8; 12] {
    let sent_ns = epoch_ns.saturating_add(packet.sent_at.nanos());
    let (seconds, _) = split(sent_ns / 1_000_000_000);
    let (micros, _) = split(sent_ns % 1_000_000_000 / 1_000);
    let mut bytes = [0; 12];
    for (place, value) in bytes
        .chunks_exact_mut(4)
        .zip([seconds, micros, number(packet)])
    {
        place.copy_from_slice(&value.to_be_bytes());
    }
    bytes
}

/// The packet's number in its flow, from 1.
fn number(packet: &Packet) -> u32 {
    split(packet.sequence.wrapping_add(1)).0
}

/// Low and high half: numbers that wrap, as they do in headers.
#[expect(clippy::cast_possible_truncation, reason = "halves are meant")]
const fn split(value: u64) -> (u32, u32) {
    (value as u32, (value >> 32) as u32)
}

const fn low_half(value: u32) -> u16 {
    let [.., high, low] = value.to_be_bytes();
    u16::from_be_bytes([high, low])
}

fn put_u16(frame: &mut Vec<u8>, value: u16) {
    frame.extend_from_slice(&value.to_be_bytes());
}

fn put_u32(frame: &mut Vec<u8>, value: u32) {
    frame.extend_from_slice(&value.to_be_bytes());
}

/// 802.1Q, and 802.1ad for the outer one of two.
const TAG: u16 = 0x8100;
const TAG_OUTER: u16 = 0x88a8;

#[cfg(test)]
mod tests {
    use super::*;
    use slicewise_units::Instant;
    use slicewise_wire::{LinkType, ParseEnd, TrafficClass, parse_frame};
    use std::num::NonZeroU32;

    const VANTAGE: Vantage = Vantage {
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        ttl: 64,
    };

    fn frame(headers: &Headers, l2_bytes: u32, snap_bytes: u32) -> Vec<u8> {
        frame_within(headers, None, l2_bytes, snap_bytes)
    }

    fn frame_within(
        headers: &Headers,
        outer: Option<&Headers>,
        l2_bytes: u32,
        snap_bytes: u32,
    ) -> Vec<u8> {
        let packet = Packet {
            sent_at: Instant::from_nanos(3_000_007_999),
            queued_at: Instant::from_nanos(3_000_007_999),
            sequence: 0x1_0001,
            l2_bytes,
            flow: 0,
            l3_offset: headers.l3_offset,
            traffic_class: TrafficClass::new(46, headers.ecn),
        };
        let mut frame = vec![9; 5];
        write_frame(
            &mut frame,
            (headers, outer),
            &packet,
            &VANTAGE,
            1_000_000_000,
            snap_bytes,
        );
        frame
    }

    fn udp() -> Headers {
        Headers {
            source: 0x0a00_0001,
            destination: 0x0a00_0102,
            ip_version: IpVersion::V4,
            protocol: UDP,
            has_ports: true,
            source_port: 5201,
            destination_port: 5202,
            l3_offset: 14,
            ..Headers::default()
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn a_datagram_is_an_iperf3_datagram() {
        let frame = frame(&udp(), 60, 96);
        assert_eq!(frame.len(), 60);
        insta::assert_snapshot!(hex(&frame[14..34]), @"45b8002e00020000401165030a0000010a000102");
        assert_eq!(hex(&frame[34..40]), "14511452001a");
        assert_eq!(
            hex(&frame[42..]),
            "0000000400000007000100020000".to_owned() + "00000000"
        );
    }

    #[test]
    fn a_frame_with_room_for_half_a_number_holds_half_of_it() {
        let frame = frame(&udp(), 14 + 20 + 8 + 6, 96);
        assert_eq!(frame.len(), 48);
        assert_eq!(hex(&frame[42..]), "000000040000");
    }

    #[test]
    fn a_frame_is_cut_at_the_snap_length_and_its_checksum_is_that_of_the_whole() {
        let (cut, whole) = (frame(&udp(), 1500, 64), frame(&udp(), 1500, 9000));
        assert_eq!((cut.len(), whole.len()), (64, 1500));
        assert_eq!(cut, whole[..64]);
    }

    #[test]
    fn two_tags_are_an_outer_one_of_802_1ad_and_an_inner_one_of_802_1q() {
        let headers = Headers {
            vlan_tags: 2,
            outer_vlan: 100,
            inner_vlan: 7,
            l3_offset: 22,
            ..udp()
        };
        let frame = frame(&headers, 64, 96);
        assert_eq!(
            hex(&frame[..24]),
            "02000000000202000000000188a8006481000007080045b8"
        );
    }

    #[test]
    fn a_packet_in_a_tunnel_is_read_back_with_its_teid_and_only_the_outer_one_is_remarked() {
        let inner = Headers {
            dscp: 10,
            teid: NonZeroU32::new(0x0102_0304),
            ..udp()
        };
        let outer = Headers {
            source: 0xc000_0201,
            destination: 0xc000_0202,
            source_port: 2152,
            destination_port: 2152,
            teid: None,
            ..udp()
        };
        let frame = frame_within(&inner, Some(&outer), 1000, 2000);
        insta::assert_snapshot!(hex(&frame[14..50]), @"45b803da000200004011f255c0000201c00002020868086803c6000030ff03b601020304");
        let parsed = parse_frame(LinkType::ETHERNET, &frame, 1000);
        assert_eq!((parsed.headers, parsed.end), (inner, ParseEnd::Complete));
        assert_eq!(hex(&frame[78..90]), "000000040000000700010002");
    }

    #[test]
    fn every_protocol_and_version_has_the_length_that_a_study_counts() {
        for protocol in [ICMP, TCP, UDP, ICMPV6, SCTP, 47] {
            for (ip_version, ip_bytes) in [(IpVersion::V4, 20), (IpVersion::V6, 40)] {
                let headers = Headers {
                    ip_version,
                    protocol,
                    has_ports: matches!(protocol, TCP | UDP | SCTP),
                    ..udp()
                };
                let smallest = 14 + ip_bytes + transport_bytes(protocol);
                let bytes = frame(&headers, smallest, 96);
                assert_eq!(bytes.len(), smallest as usize);
                let bytes = frame(&headers, smallest + 12, 200);
                assert_eq!(hex(&bytes[smallest as usize..]), "000000040000000700010002");
            }
        }
    }
}
