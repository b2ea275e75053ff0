//! Packets of the simulator as the bytes of real frames.

use crate::packet::Packet;
use slicewise_wire::{Headers, IpVersion};

/// Where a frame is seen: what routers change on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Vantage {
    pub source_mac: [u8; 6],
    pub destination_mac: [u8; 6],
    /// IPv4 time to live, or IPv6 hop limit.
    pub ttl: u8,
}

/// Write the first bytes of `packet` as seen from `vantage`: all headers, followed by zeros up to
/// the end of the frame or `snap_bytes`, whichever comes first.
///
/// The payload begins as iperf3's datagrams do (`iperf_udp_send`, without
/// `--udp-counters-64bit`): seconds and microseconds when it was sent, then its number, counted
/// from 1, each 32 bits in network order. `epoch_ns` is when the run starts.
pub(super) fn write_frame(
    frame: &mut Vec<u8>,
    headers: &Headers,
    packet: &Packet,
    vantage: &Vantage,
    epoch_ns: u64,
    snap_bytes: u32,
) {
    frame.clear();
    write_ethernet(frame, headers, vantage);
    let transport = transport_bytes(headers.protocol);
    let ip = match headers.ip_version {
        IpVersion::V6 => 40,
        _ => 20,
    };
    let l3_bytes = packet.l2_bytes.saturating_sub(headers.l3_offset.into());
    let behind_ip = l3_bytes.saturating_sub(ip);
    let traffic_class = packet.traffic_class.octet();
    match headers.ip_version {
        IpVersion::V4 => write_ipv4(frame, headers, packet, l3_bytes, traffic_class, vantage.ttl),
        IpVersion::V6 => write_ipv6(frame, headers, behind_ip, traffic_class, vantage.ttl),
        // No source of a study sends such frames.
        IpVersion::None => {}
    }
    let transport_at = frame.len();
    write_transport(frame, headers, packet, behind_ip);
    let payload_bytes = behind_ip.saturating_sub(transport);
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

fn write_ipv4(
    frame: &mut Vec<u8>,
    headers: &Headers,
    packet: &Packet,
    l3_bytes: u32,
    traffic_class: u8,
    ttl: u8,
) {
    let start = frame.len();
    frame.extend_from_slice(&[0x45, traffic_class]);
    put_u16(frame, u16::try_from(l3_bytes).unwrap_or(u16::MAX));
    // May be fragmented, so the identification means something (RFC 6864).
    put_u16(frame, low_half(number(packet)));
    put_u16(frame, 0);
    frame.extend_from_slice(&[ttl, headers.protocol, 0, 0]);
    frame.extend_from_slice(&ipv4_address(headers.source));
    frame.extend_from_slice(&ipv4_address(headers.destination));
    let header = frame.get(start..).unwrap_or_default();
    let checksum = !folded(sum(header));
    put_at(frame, start + 10, checksum);
}

fn write_ipv6(
    frame: &mut Vec<u8>,
    headers: &Headers,
    behind_ip: u32,
    traffic_class: u8,
    hop_limit: u8,
) {
    put_u32(frame, 6 << 28 | u32::from(traffic_class) << 20);
    put_u16(frame, u16::try_from(behind_ip).unwrap_or(u16::MAX));
    frame.extend_from_slice(&[headers.protocol, hop_limit]);
    frame.extend_from_slice(&headers.source.to_be_bytes());
    frame.extend_from_slice(&headers.destination.to_be_bytes());
}

fn write_transport(frame: &mut Vec<u8>, headers: &Headers, packet: &Packet, behind_ip: u32) {
    if headers.has_ports {
        put_u16(frame, headers.source_port);
        put_u16(frame, headers.destination_port);
    }
    match headers.protocol {
        UDP => {
            put_u16(frame, u16::try_from(behind_ip).unwrap_or(u16::MAX));
            put_u16(frame, 0);
        }
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

/// The checksum of what follows the IP header; everything after the bytes in `frame` is zero.
fn put_checksum(frame: &mut [u8], headers: &Headers, transport_at: usize, behind_ip: u32) {
    let place = match headers.protocol {
        UDP => 6,
        TCP => 16,
        ICMP | ICMPV6 => 2,
        _ => return,
    };
    let mut total = sum(frame.get(transport_at..).unwrap_or_default());
    if headers.protocol != ICMP {
        // The pseudo header (RFC 768, RFC 9293, RFC 8200 section 8.1).
        total += sum(&headers.source.to_be_bytes()) + sum(&headers.destination.to_be_bytes());
        total += u64::from(behind_ip) + u64::from(headers.protocol);
    }
    let checksum = match !folded(total) {
        // Zero would say that there is none.
        0 if headers.protocol == UDP => u16::MAX,
        checksum => checksum,
    };
    put_at(frame, transport_at + place, checksum);
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

/// IPv4 addresses lie in the low 32 bits.
fn ipv4_address(address: u128) -> [u8; 4] {
    let [.., a, b, c, d] = address.to_be_bytes();
    [a, b, c, d]
}

/// Sum of 16-bit words, the last one filled up with zero (RFC 1071).
fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(2).map(|pair| match *pair {
        [high, low] => u64::from(u16::from_be_bytes([high, low])),
        [high] => u64::from(high) << 8,
        _ => 0,
    });
    words.sum()
}

fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(sum).unwrap_or(u16::MAX)
}

fn put_u16(frame: &mut Vec<u8>, value: u16) {
    frame.extend_from_slice(&value.to_be_bytes());
}

fn put_u32(frame: &mut Vec<u8>, value: u32) {
    frame.extend_from_slice(&value.to_be_bytes());
}

fn put_at(frame: &mut [u8], place: usize, value: u16) {
    if let Some(bytes) = frame.get_mut(place..place + 2) {
        bytes.copy_from_slice(&value.to_be_bytes());
    }
}

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
const SCTP: u8 = 132;
/// 802.1Q, and 802.1ad for the outer one of two.
const TAG: u16 = 0x8100;
const TAG_OUTER: u16 = 0x88a8;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;

#[cfg(test)]
mod tests {
    use super::*;
    use slicewise_units::Instant;
    use slicewise_wire::TrafficClass;

    const VANTAGE: Vantage = Vantage {
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        ttl: 64,
    };

    fn frame(headers: &Headers, l2_bytes: u32, snap_bytes: u32) -> Vec<u8> {
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
            headers,
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
        assert_eq!(folded(sum(&frame[14..34])), 0xffff);
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
