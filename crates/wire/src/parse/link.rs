//! Link layers: Ethernet with IEEE 802.1Q and 802.1ad tags, Linux cooked captures, raw IP, PPP (RFC 1662), and
//! the loopback of BSD. Numbers: <https://www.tcpdump.org/linktypes.html>; Ethernet and its types:
//! IEEE 802.3, RFC 9542.

use super::shim::{ETHERTYPE_PPPOE_SESSION, TRUNCATED, ppp_version};
use super::{Layer, ParseEnd, ParsedFrame, bytes_at};
use crate::IpVersion;

/// `EtherType` of ARP (RFC 826).
pub const ETHERTYPE_ARP: u16 = 0x0806;
/// `EtherType` of IPv4.
pub const ETHERTYPE_IPV4: u16 = 0x0800;
/// `EtherType` of IPv6.
pub const ETHERTYPE_IPV6: u16 = 0x86dd;

/// 802.1Q, 802.1ad, and what QinQ used before 802.1ad.
const TAG_TYPES: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// Tags beyond the first two are skipped, up to this many in total.
const MOST_TAGS: u8 = 8;
const ETHERNET_BYTES: u8 = 14;
const TAG_BYTES: u8 = 4;

/// Link type of a capture, by the number in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: an address family in the byte order of the host.
    pub const NULL: Self = Self(0);
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// PPP, with or without address and control field.
    pub const PPP: Self = Self(9);
    /// Raw IP, as numbered by some systems.
    pub const RAW_BSD: Self = Self(12);
    /// Raw IP, as numbered by `OpenBSD`.
    pub const RAW_OPENBSD: Self = Self(14);
    /// PPP in HDLC-like framing, or Cisco's HDLC.
    pub const PPP_HDLC: Self = Self(50);
    /// PPPoE session without Ethernet header.
    pub const PPP_ETHER: Self = Self(51);
    /// Raw IP, version 4 or 6.
    pub const RAW: Self = Self(101);
    /// Cisco's HDLC: address, control and an `EtherType`.
    pub const C_HDLC: Self = Self(104);
    /// `OpenBSD` loopback: an address family in network byte order.
    pub const LOOP: Self = Self(108);
    /// Linux cooked capture, version 1 (`tcpdump -i any` before libpcap 1.10).
    pub const LINUX_SLL: Self = Self(113);
    /// Raw IPv4.
    pub const IPV4: Self = Self(228);
    /// Raw IPv6.
    pub const IPV6: Self = Self(229);
    /// Linux cooked capture, version 2.
    pub const LINUX_SLL2: Self = Self(276);

    /// Those that [`super::parse_frame`] can parse, for people.
    pub const EXPECTED: &str =
        "Ethernet, Linux cooked, raw IP, PPP, PPPoE, Cisco HDLC or BSD loopback";

    /// Returns true if [`super::parse_frame`] can parse it.
    #[must_use]
    pub fn is_known(self) -> bool {
        matches!(
            self,
            Self::NULL
                | Self::ETHERNET
                | Self::PPP
                | Self::RAW_BSD
                | Self::RAW_OPENBSD
                | Self::PPP_HDLC
                | Self::PPP_ETHER
                | Self::RAW
                | Self::C_HDLC
                | Self::LOOP
                | Self::LINUX_SLL
                | Self::IPV4
                | Self::IPV6
                | Self::LINUX_SLL2
        )
    }

    /// The packet type of a Linux cooked header: 0–2 came to the capturing host (to it, broadcast,
    /// multicast), 3 passed from another host to another, 4 was sent by it. None for other links.
    #[must_use]
    #[inline]
    pub fn cooked_packet_type(self, captured: &[u8]) -> Option<u16> {
        match self {
            Self::LINUX_SLL => bytes_at(captured, 0).map(|b| u16::from_be_bytes(*b)),
            Self::LINUX_SLL2 => captured.get(10).map(|b| u16::from(*b)),
            _ => None,
        }
    }
}

impl std::fmt::Display for LinkType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match *self {
            Self::NULL => "BSD loopback",
            Self::ETHERNET => "Ethernet",
            Self::RAW | Self::RAW_BSD | Self::RAW_OPENBSD => "raw IP",
            Self::LOOP => "OpenBSD loopback",
            Self::LINUX_SLL => "Linux cooked v1",
            Self::IPV4 => "raw IPv4",
            Self::IPV6 => "raw IPv6",
            Self::LINUX_SLL2 => "Linux cooked v2",
            Self::PPP | Self::PPP_HDLC => "PPP",
            Self::PPP_ETHER => "PPPoE session",
            Self::C_HDLC => "Cisco HDLC",
            Self(number) => {
                let name = OTHERS.iter().find(|(other, _)| *other == number);
                return match name {
                    Some((_, name)) => write!(f, "link type {number} ({name})"),
                    None => write!(f, "link type {number}"),
                };
            }
        };
        f.write_str(name)
    }
}

/// Link types that are not parsed.
const OTHERS: [(u16, &str); 14] = [
    (6, "Token Ring"),
    (10, "FDDI"),
    (105, "IEEE 802.11"),
    (107, "Frame Relay"),
    (119, "IEEE 802.11 with Prism header"),
    (127, "IEEE 802.11 with radiotap header"),
    (163, "IEEE 802.11 with AVS header"),
    (187, "Bluetooth HCI"),
    (189, "USB"),
    (192, "PPI"),
    (195, "IEEE 802.15.4"),
    (219, "MPLS without link header"),
    (220, "USB"),
    (239, "NFLOG"),
];

/// Parses VLAN tags and `EtherType`; returns the bytes before the network layer.
#[inline]
pub(super) fn parse(
    frame: &mut ParsedFrame,
    link: LinkType,
    captured: &[u8],
) -> Result<usize, ParseEnd> {
    frame.headers.l3_offset = ETHERNET_BYTES;
    let offset = if link == LinkType::ETHERNET {
        let header: &[u8; 14] = captured.first_chunk().ok_or(TRUNCATED)?;
        frame.ethertype = u16::from_be_bytes([header[12], header[13]]);
        14
    } else {
        other(frame, link, captured)?
    };
    if frame.ethertype == ETHERTYPE_IPV4 {
        return Ok(offset);
    }
    tags(frame, captured, offset)
}

#[cold]
#[inline(never)]
fn other(frame: &mut ParsedFrame, link: LinkType, captured: &[u8]) -> Result<usize, ParseEnd> {
    let (type_at, offset) = match link {
        LinkType::LINUX_SLL => (14, 16),
        LinkType::LINUX_SLL2 => (0, 20),
        LinkType::C_HDLC => (2, 4),
        LinkType::NULL | LinkType::LOOP => return by_version(frame, captured, 4),
        LinkType::PPP | LinkType::PPP_HDLC => return ppp(frame, captured),
        LinkType::PPP_ETHER => {
            frame.ethertype = ETHERTYPE_PPPOE_SESSION;
            return Ok(0);
        }
        LinkType::RAW
        | LinkType::RAW_BSD
        | LinkType::RAW_OPENBSD
        | LinkType::IPV4
        | LinkType::IPV6 => return by_version(frame, captured, 0),
        _ => return Err(ParseEnd::NotIp),
    };
    if captured.len() < offset {
        return Err(TRUNCATED);
    }
    let number: &[u8; 2] = bytes_at(captured, type_at).ok_or(TRUNCATED)?;
    frame.ethertype = u16::from_be_bytes(*number);
    Ok(offset)
}

/// Without an `EtherType`, the version nibble of IP decides. The address family of BSD loopback differs
/// between systems and byte orders and adds nothing.
fn by_version(frame: &mut ParsedFrame, captured: &[u8], offset: usize) -> Result<usize, ParseEnd> {
    frame.ethertype = match captured.get(offset).ok_or(TRUNCATED)? >> 4 {
        4 => ETHERTYPE_IPV4,
        6 => ETHERTYPE_IPV6,
        _ => return Err(ParseEnd::NotIp),
    };
    Ok(offset)
}

/// PPP with or without its address and control field. A protocol field of one byte is odd (RFC 1661, section 2).
/// Cisco's HDLC is told apart by its address.
fn ppp(frame: &mut ParsedFrame, captured: &[u8]) -> Result<usize, ParseEnd> {
    if let [0x0f | 0x8f, _, high, low, ..] = captured {
        frame.ethertype = u16::from_be_bytes([*high, *low]);
        return Ok(4);
    }
    let skipped = if captured.starts_with(&[0xff, 3]) {
        2
    } else {
        0
    };
    let (protocol, protocol_bytes) = match captured.get(skipped..) {
        Some([low, ..]) if low & 1 == 1 && *low != 0xff => (u16::from(*low), 1),
        Some([high, low, ..]) => (u16::from_be_bytes([*high, *low]), 2),
        _ => return Err(TRUNCATED),
    };
    frame.ethertype = match ppp_version(protocol) {
        Some(IpVersion::V4) => ETHERTYPE_IPV4,
        Some(IpVersion::V6) => ETHERTYPE_IPV6,
        _ => return Err(ParseEnd::NotIp),
    };
    Ok(skipped + protocol_bytes)
}

#[inline]
fn tags(frame: &mut ParsedFrame, captured: &[u8], mut offset: usize) -> Result<usize, ParseEnd> {
    let headers = &mut frame.headers;
    for tag in 0..MOST_TAGS {
        if !TAG_TYPES.contains(&frame.ethertype) {
            return Ok(offset);
        }
        let bytes: &[u8; 4] = bytes_at(captured, offset).ok_or(TRUNCATED)?;
        let vlan = u16::from_be_bytes([bytes[0], bytes[1]]) & 0x0fff;
        match tag {
            0 => headers.outer_vlan = vlan,
            1 => headers.inner_vlan = vlan,
            _ => {}
        }
        headers.vlan_tags = (tag + 1).min(2);
        headers.l3_offset += TAG_BYTES;
        frame.ethertype = u16::from_be_bytes([bytes[2], bytes[3]]);
        offset += usize::from(TAG_BYTES);
    }
    if TAG_TYPES.contains(&frame.ethertype) {
        return Err(ParseEnd::Malformed(Layer::Link));
    }
    Ok(offset)
}
