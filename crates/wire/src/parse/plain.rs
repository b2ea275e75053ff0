//! Fast path for the most common frames, parsed at fixed offsets: Ethernet with at most one 802.1Q tag,
//! IPv4 without options, UDP or TCP, unfragmented. Everything else is left to the parsers of the layers,
//! which give the same result for these frames: a test compares them.

use super::link::ETHERTYPE_IPV4;
use super::{Fragment, GTP_U_PORT, PROTOCOL_TCP, PROTOCOL_UDP, ParseEnd, ParsedFrame};
use crate::{Ecn, Headers, IpVersion};

/// Tagged link header, IPv4 header, and the part of TCP that must have been captured.
const ETHERNET_BYTES: usize = 14;
const TAGGED_BYTES: usize = 18;
const IP_AND_TRANSPORT_BYTES: usize = 36;

#[inline]
pub(super) fn parse(captured: &[u8], wire_bytes: u32) -> Option<ParsedFrame> {
    let link: &[u8; TAGGED_BYTES] = captured.first_chunk()?;
    let (ip_offset, vlan_tags, outer_vlan) = match [link[12], link[13]] {
        [0x08, 0x00] => (ETHERNET_BYTES, 0, 0),
        [0x81, 0x00] if [link[16], link[17]] == [0x08, 0x00] => {
            let vlan = u16::from_be_bytes([link[14], link[15]]) & 0x0fff;
            (TAGGED_BYTES, 1, vlan)
        }
        _ => return None,
    };
    let b: &[u8; IP_AND_TRANSPORT_BYTES] = captured.get(ip_offset..)?.first_chunk()?;
    let total = u16::from_be_bytes([b[2], b[3]]);
    let ports_to = u16::from_be_bytes([b[22], b[23]]);
    let transport_bytes = match b[9] {
        PROTOCOL_UDP if ports_to != GTP_U_PORT => 8,
        PROTOCOL_TCP if b[32] >= 0x50 => usize::from(b[32] >> 4) * 4,
        _ => return None,
    };
    let l3_offset = if vlan_tags == 0 { 14u8 } else { 18 };
    let l2_bytes = u32::from(total) + u32::from(l3_offset);
    let is_plain = b[0] == 0x45
        && [b[6] & 0x3f, b[7]] == [0, 0]
        && l2_bytes <= wire_bytes
        && usize::from(total) >= 20 + transport_bytes;
    if !is_plain {
        return None;
    }
    Some(ParsedFrame {
        headers: Headers {
            source: u32::from_be_bytes([b[12], b[13], b[14], b[15]]).into(),
            destination: u32::from_be_bytes([b[16], b[17], b[18], b[19]]).into(),
            vlan_tags,
            ip_version: IpVersion::V4,
            protocol: b[9],
            dscp: b[1] >> 2,
            ecn: Ecn::from_bits(b[1]),
            outer_vlan,
            inner_vlan: 0,
            has_ports: true,
            source_port: u16::from_be_bytes([b[20], b[21]]),
            destination_port: ports_to,
            l3_offset,
            ethertype: 0,
            icmp_type: None,
            teid: None,
        },
        l2_bytes,
        ip_bytes: total.into(),
        ip_offset,
        transport_offset: ip_offset + 20,
        payload_offset: ip_offset + 20 + transport_bytes,
        identification: u16::from_be_bytes([b[4], b[5]]),
        ethertype: ETHERTYPE_IPV4,
        ttl: b[8],
        fragment: Fragment::None,
        tunnel: None,
        end: ParseEnd::Complete,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkType;
    use crate::parse::parse_layers;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]

        #[test]
        fn agrees_with_the_layer_parsers(
            mut bytes in prop::collection::vec(any::<u8>(), 54..110),
            is_tagged in any::<bool>(),
            protocol in prop::sample::select(vec![6, 17, 17, 1]),
            first in prop::sample::select(vec![0x45, 0x45, 0x45, 0x46, 0x44, 0x65]),
            pieces in prop::sample::select(vec![0, 0x40, 0x40, 0x20, 0x01]),
            total in 0u16..200,
            port in prop::sample::select(vec![53u16, 53, 2152]),
            wire_bytes in 0u32..250,
        ) {
            let ip = if is_tagged { 18 } else { 14 };
            bytes[12..14].copy_from_slice(&[0x81, 0x00]);
            bytes[ip - 2..ip].copy_from_slice(&[0x08, 0x00]);
            bytes[ip] = first;
            bytes[ip + 2..ip + 4].copy_from_slice(&total.to_be_bytes());
            bytes[ip + 6..ip + 8].copy_from_slice(&[pieces, 0]);
            bytes[ip + 9] = protocol;
            bytes[ip + 22..ip + 24].copy_from_slice(&port.to_be_bytes());
            let plain = parse(&bytes, wire_bytes);
            if let Some(plain) = plain {
                prop_assert_eq!(plain, parse_layers(LinkType::ETHERNET, &bytes, wire_bytes));
            }
            let transport = match (protocol, port) {
                (17, 53) => 8,
                (6, _) if bytes[ip + 32] >> 4 >= 5 => u16::from(bytes[ip + 32] >> 4) * 4,
                _ => u16::MAX,
            };
            let is_usual = first == 0x45 && pieces != 0x20 && pieces != 1
                && total >= transport.saturating_add(20) && u32::from(total) + 18 <= wire_bytes
                && bytes.len() >= ip + IP_AND_TRANSPORT_BYTES;
            prop_assert!(plain.is_some() || !is_usual);
        }
    }
}
