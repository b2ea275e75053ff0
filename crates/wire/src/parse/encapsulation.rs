//! Packets in tunnels between routers: IP in IP (RFC 2003, RFC 4213), GRE (RFC 2784, RFC 2890) and VXLAN (RFC 7348).
//!
//! A classifier sees the outer packet, as the network does; whoever compares both sides of a tunnel's end asks for the
//! inner one.

use super::{
    Fragment, Layer, LinkType, PROTOCOL_UDP, ParseEnd, ParsedFrame, bytes_at, parse_frame,
    parse_layers,
};
use crate::{Headers, IpVersion};

const PROTOCOL_IPV4: u8 = 4;
const PROTOCOL_IPV6: u8 = 41;
const PROTOCOL_GRE: u8 = 47;
/// UDP destination port of VXLAN.
const VXLAN_PORT: u16 = 4789;
/// Protocol type of Ethernet frames in GRE (RFC 1701).
const ETHERTYPE_BRIDGING: u16 = 0x6558;
/// Most tunnels within each other that are entered.
const MAX_DEPTH: usize = 4;

impl Headers {
    /// Returns true if the packet is, by its protocol or port, one of IP in IP, GRE or VXLAN.
    #[must_use]
    #[inline]
    pub fn is_encapsulating(&self) -> bool {
        match self.protocol {
            PROTOCOL_IPV4 | PROTOCOL_IPV6 | PROTOCOL_GRE => true,
            PROTOCOL_UDP => self.destination_port == VXLAN_PORT,
            _ => false,
        }
    }
}

/// As [`parse_frame`]; of a packet in tunnels of IP in IP, GRE or VXLAN, everything from the IP header on is that of the
/// innermost packet that was found. VLAN tags, `l3_offset` and `l2_bytes` are those of the frame.
#[must_use]
pub fn parse_innermost(link: LinkType, captured: &[u8], wire_bytes: u32) -> ParsedFrame {
    let mut frame = parse_frame(link, captured, wire_bytes);
    for _ in 0..MAX_DEPTH {
        match inner(&frame, captured) {
            Ok(Some(inner)) => frame = inner,
            Ok(None) => break,
            Err(end) => {
                frame.end = end;
                break;
            }
        }
    }
    frame
}

/// The packet in a packet; `None` if it is no tunnel, or none with an IP packet.
fn inner(outer: &ParsedFrame, captured: &[u8]) -> Result<Option<ParsedFrame>, ParseEnd> {
    let is_whole = outer.end == ParseEnd::Complete && outer.fragment == Fragment::None;
    if !is_whole || outer.headers.ip_version == IpVersion::None || !outer.headers.is_encapsulating()
    {
        return Ok(None);
    }
    let (link, at) = match outer.headers.protocol {
        PROTOCOL_GRE => match gre(captured, outer.transport_offset)? {
            Some(found) => found,
            None => return Ok(None),
        },
        PROTOCOL_UDP => {
            let flags: &[u8; 8] = bytes_at(captured, outer.payload_offset).ok_or(TRUNCATED)?;
            if flags[0] != 0x08 {
                return Ok(None);
            }
            (LinkType::ETHERNET, outer.payload_offset + 8)
        }
        _ => (LinkType::RAW, outer.transport_offset),
    };
    let packet_ends = outer.ip_offset as u64 + u64::from(outer.ip_bytes);
    let on_wire = u32::try_from(packet_ends.saturating_sub(at as u64)).unwrap_or(0);
    let held = captured.get(at..).unwrap_or_default();
    // Bytes behind the packet are none of it.
    let held = held.get(..on_wire as usize).unwrap_or(held);
    let mut inner = parse_layers(link, held, on_wire);
    match inner.end {
        ParseEnd::Complete => {}
        ParseEnd::Truncated(_) => return Err(TRUNCATED),
        ParseEnd::NotIp | ParseEnd::Malformed(_) => return Ok(None),
    }
    for offset in [
        &mut inner.ip_offset,
        &mut inner.transport_offset,
        &mut inner.payload_offset,
    ] {
        *offset += at;
    }
    inner.l2_bytes = outer.l2_bytes;
    inner.ethertype = outer.ethertype;
    if inner.tunnel.is_none() {
        inner.tunnel = outer.tunnel;
        inner.headers.teid = outer.headers.teid;
    }
    let (inside, outside) = (&mut inner.headers, &outer.headers);
    inside.vlan_tags = outside.vlan_tags;
    inside.outer_vlan = outside.outer_vlan;
    inside.inner_vlan = outside.inner_vlan;
    inside.l3_offset = outside.l3_offset;
    inside.ethertype = outside.ethertype;
    Ok(Some(inner))
}

/// Returns the link type of the packet inside GRE, and where it begins.
fn gre(captured: &[u8], start: usize) -> Result<Option<(LinkType, usize)>, ParseEnd> {
    let b: &[u8; 4] = bytes_at(captured, start).ok_or(TRUNCATED)?;
    let link = match u16::from_be_bytes([b[2], b[3]]) {
        super::ETHERTYPE_IPV4 | super::ETHERTYPE_IPV6 => LinkType::RAW,
        ETHERTYPE_BRIDGING => LinkType::ETHERNET,
        _ => return Ok(None),
    };
    // Version 0, without source routes. Checksum, key and sequence number are optional.
    if b[0] & 0x4f != 0 || b[1] != 0 {
        return Ok(None);
    }
    let options = (b[0] & 0xb0).count_ones() as usize;
    Ok(Some((link, start + 4 + 4 * options)))
}

const TRUNCATED: ParseEnd = ParseEnd::Truncated(Layer::Tunnel);
