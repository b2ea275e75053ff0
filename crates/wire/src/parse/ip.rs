//! IPv4 (RFC 791), IPv6 (RFC 8200) with its extension headers (RFC 4302 for AH, RFC 6946 for
//! atomic fragments), DSCP (RFC 2474) and ECN (RFC 3168).

use super::link::{ETHERTYPE_IPV4, ETHERTYPE_IPV6};
use super::{Layer, ParseEnd, ParsedFrame, bytes_at, shim};
use crate::{Ecn, IpVersion};

/// Kind of an IP packet: whole, or which fragment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Fragment {
    /// A whole packet.
    #[default]
    None,
    /// The first fragment, with the transport header.
    First,
    /// A later fragment, without it.
    Later,
}

/// Smaller values are lengths (IEEE 802.3, clause 3.2.6).
const FIRST_ETHERTYPE: u16 = 0x0600;
/// Most extension headers parsed per packet.
const MOST_EXTENSIONS: usize = 8;

const TRUNCATED: ParseEnd = ParseEnd::Truncated(Layer::Network);
const MALFORMED: ParseEnd = ParseEnd::Malformed(Layer::Network);

/// The IP header at `offset`, or behind the headers there; `on_wire` bytes of the frame follow from there.
#[inline]
pub(super) fn parse(
    frame: &mut ParsedFrame,
    captured: &[u8],
    offset: usize,
    on_wire: u32,
) -> Result<(), ParseEnd> {
    match frame.ethertype {
        ETHERTYPE_IPV4 => v4(frame, captured, offset, on_wire),
        ETHERTYPE_IPV6 => v6(frame, captured, offset, on_wire),
        _ => {
            frame.headers.ethertype = other(frame.ethertype, captured, offset);
            let packet = shim::parse(frame, captured, offset, on_wire)?;
            let offset = offset + packet.header_bytes as usize;
            if packet.version == IpVersion::V4 {
                v4(frame, captured, offset, packet.on_wire)
            } else {
                v6(frame, captured, offset, packet.on_wire)
            }
        }
    }
}

/// Protocol of a frame without an IP header behind its tags: its `EtherType`, or, where that is a length, the destination service access point of the LLC
/// header behind it (IEEE 802.2; 0 if it was not captured).
fn other(ethertype: u16, captured: &[u8], offset: usize) -> u16 {
    if ethertype >= FIRST_ETHERTYPE {
        return ethertype;
    }
    captured.get(offset).map_or(0, |&point| point.into())
}

#[inline]
pub(super) fn v4(
    frame: &mut ParsedFrame,
    captured: &[u8],
    offset: usize,
    on_wire: u32,
) -> Result<(), ParseEnd> {
    let b: &[u8; 20] = bytes_at(captured, offset).ok_or(TRUNCATED)?;
    let header_bytes = usize::from(b[0] & 0x0f) * 4;
    let total = u32::from(u16::from_be_bytes([b[2], b[3]]));
    let total = stated_or_held(total, on_wire);
    if b[0] >> 4 != 4 || header_bytes < 20 || (header_bytes as u64) > u64::from(total) {
        return Err(MALFORMED);
    }
    let pieces = u16::from_be_bytes([b[6], b[7]]);
    frame.fragment = fragment(pieces & 0x1fff != 0, pieces & 0x2000 != 0);
    frame.identification = u16::from_be_bytes([b[4], b[5]]);
    frame.ttl = b[8];
    frame.ip_bytes = total;
    frame.ip_offset = offset;
    frame.transport_offset = offset + header_bytes;
    frame.payload_offset = frame.transport_offset;
    let headers = &mut frame.headers;
    headers.ip_version = IpVersion::V4;
    headers.dscp = b[1] >> 2;
    headers.ecn = Ecn::from_bits(b[1]);
    headers.protocol = b[9];
    headers.source = u32::from_be_bytes([b[12], b[13], b[14], b[15]]).into();
    headers.destination = u32::from_be_bytes([b[16], b[17], b[18], b[19]]).into();
    Ok(())
}

#[inline]
pub(super) fn v6(
    frame: &mut ParsedFrame,
    captured: &[u8],
    offset: usize,
    on_wire: u32,
) -> Result<(), ParseEnd> {
    let b: &[u8; 40] = bytes_at(captured, offset).ok_or(TRUNCATED)?;
    if b[0] >> 4 != 6 {
        return Err(MALFORMED);
    }
    let class = b[0] << 4 | b[1] >> 4;
    let payload = u32::from(u16::from_be_bytes([b[4], b[5]]));
    // A payload of 0 bytes means a jumbogram (RFC 2675) or an offloaded segment.
    let total = if payload == 0 { 0 } else { payload + 40 };
    frame.ip_bytes = stated_or_held(total, on_wire);
    frame.ttl = b[7];
    frame.ip_offset = offset;
    frame.transport_offset = offset + 40;
    frame.payload_offset = frame.transport_offset;
    let headers = &mut frame.headers;
    headers.ip_version = IpVersion::V6;
    headers.dscp = class >> 2;
    headers.ecn = Ecn::from_bits(class);
    headers.protocol = b[6];
    let (source, destination) = (b[8..].first_chunk(), b[24..].first_chunk());
    headers.source = u128::from_be_bytes(*source.ok_or(TRUNCATED)?);
    headers.destination = u128::from_be_bytes(*destination.ok_or(TRUNCATED)?);
    if is_extension(headers.protocol) {
        extensions(frame, captured)?;
    }
    if (frame.transport_offset - offset) as u64 > u64::from(frame.ip_bytes) {
        return Err(MALFORMED);
    }
    Ok(())
}

/// Skips extension headers.
#[cold]
#[inline(never)]
fn extensions(frame: &mut ParsedFrame, captured: &[u8]) -> Result<(), ParseEnd> {
    for _ in 0..MOST_EXTENSIONS {
        let protocol = frame.headers.protocol;
        if !is_extension(protocol) {
            return Ok(());
        }
        let b: &[u8; 8] = bytes_at(captured, frame.transport_offset).ok_or(TRUNCATED)?;
        let units = usize::from(b[1]);
        frame.headers.protocol = b[0];
        frame.transport_offset += match protocol {
            FRAGMENT => 8,
            AUTHENTICATION => (units + 2) * 4,
            _ => (units + 1) * 8,
        };
        frame.payload_offset = frame.transport_offset;
        if protocol == FRAGMENT {
            let piece = u16::from_be_bytes([b[2], b[3]]);
            frame.fragment = fragment(piece >> 3 != 0, piece & 1 != 0);
            if frame.fragment == Fragment::Later {
                return Ok(());
            }
        }
    }
    if is_extension(frame.headers.protocol) {
        return Err(MALFORMED);
    }
    Ok(())
}

const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;

/// Hop-by-hop options, routing, fragment, authentication, destination options, mobility, HIP, shim6.
fn is_extension(protocol: u8) -> bool {
    matches!(
        protocol,
        0 | 43 | FRAGMENT | AUTHENTICATION | 60 | 135 | 139 | 140
    )
}

#[inline]
fn fragment(has_offset: bool, more_follow: bool) -> Fragment {
    match (has_offset, more_follow) {
        (false, false) => Fragment::None,
        (false, true) => Fragment::First,
        (true, _) => Fragment::Later,
    }
}

/// The stated length of an IP packet, or the length available in the frame if it states none or more.
#[inline]
fn stated_or_held(stated: u32, on_wire: u32) -> u32 {
    if stated == 0 || stated > on_wire {
        on_wire
    } else {
        stated
    }
}
