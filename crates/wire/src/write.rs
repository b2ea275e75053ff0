//! Headers of packets as bytes, for captures of simulated runs and senders of tunnels.

use crate::{
    Headers, IpVersion, PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_TCP, PROTOCOL_UDP, TrafficClass,
};
use std::num::NonZeroU32;

/// Appends the IP header of a packet of `ip_bytes` with it. Without an IP version nothing is appended.
pub fn put_ip(frame: &mut Vec<u8>, headers: &Headers, ttl: u8, identification: u16, ip_bytes: u32) {
    let traffic_class = TrafficClass::new(headers.dscp, headers.ecn).octet();
    match headers.ip_version {
        IpVersion::V4 => {
            let start = frame.len();
            frame.extend_from_slice(&[0x45, traffic_class]);
            put_length(frame, ip_bytes);
            // May be fragmented, so the identification means something (RFC 6864).
            put_u16(frame, identification);
            put_u16(frame, 0);
            frame.extend_from_slice(&[ttl, headers.protocol, 0, 0]);
            for address in [headers.source, headers.destination] {
                let [.., a, b, c, d] = address.to_be_bytes();
                frame.extend_from_slice(&[a, b, c, d]);
            }
            let header = frame.get(start..).unwrap_or_default();
            let checksum = !folded(sum(header));
            put_at(frame, start + 10, checksum);
        }
        IpVersion::V6 => {
            let first = 6 << 28 | u32::from(traffic_class) << 20;
            frame.extend_from_slice(&first.to_be_bytes());
            put_length(frame, ip_bytes.saturating_sub(40));
            frame.extend_from_slice(&[headers.protocol, ttl]);
            frame.extend_from_slice(&headers.source.to_be_bytes());
            frame.extend_from_slice(&headers.destination.to_be_bytes());
        }
        IpVersion::None => {}
    }
}

/// Appends the header of a datagram of `bytes` with it, without a checksum: see [`put_checksum`].
pub fn put_udp(frame: &mut Vec<u8>, headers: &Headers, bytes: u32) {
    put_u16(frame, headers.source_port);
    put_u16(frame, headers.destination_port);
    put_length(frame, bytes);
    put_u16(frame, 0);
}

/// Appends the header of GTP-U, without optional fields, of a packet of `ip_bytes` behind it (3GPP TS 29.281, section 5.1).
pub fn put_gtp_u(frame: &mut Vec<u8>, teid: NonZeroU32, ip_bytes: u32) {
    // Version 1, GTP; a user packet.
    frame.extend_from_slice(&[0x30, 255]);
    put_length(frame, ip_bytes);
    frame.extend_from_slice(&teid.get().to_be_bytes());
}

/// Writes the checksum of what follows an IP header: `bytes` from `transport_at` on, zero beyond the end of `frame`.
pub fn put_checksum(frame: &mut [u8], headers: &Headers, transport_at: usize, bytes: u32) {
    let place = match headers.protocol {
        PROTOCOL_UDP => 6,
        PROTOCOL_TCP => 16,
        PROTOCOL_ICMP | PROTOCOL_ICMPV6 => 2,
        _ => return,
    };
    let mut total = sum(frame.get(transport_at..).unwrap_or_default());
    if headers.protocol != PROTOCOL_ICMP {
        // The pseudo header (RFC 768, RFC 9293, RFC 8200 section 8.1).
        total += sum(&headers.source.to_be_bytes()) + sum(&headers.destination.to_be_bytes());
        total += u64::from(bytes) + u64::from(headers.protocol);
    }
    let checksum = match !folded(total) {
        // Zero would say that there is none.
        0 if headers.protocol == PROTOCOL_UDP => u16::MAX,
        checksum => checksum,
    };
    put_at(frame, transport_at + place, checksum);
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

fn put_length(frame: &mut Vec<u8>, bytes: u32) {
    put_u16(frame, u16::try_from(bytes).unwrap_or(u16::MAX));
}

fn put_at(frame: &mut [u8], place: usize, value: u16) {
    if let Some(bytes) = frame.get_mut(place..place + 2) {
        bytes.copy_from_slice(&value.to_be_bytes());
    }
}
