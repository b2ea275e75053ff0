//! Headers between Ethernet and IP other than VLAN tags: PPPoE sessions (RFC 2516) with their PPP protocol
//! field (RFC 1661), and MPLS label stacks (RFC 3032).
//!
//! Frames of these types that hold no IP packet, or may not, are left alone: they are not IP, and never malformed
//! or truncated while they are complete.

use super::{Layer, ParseEnd, ParsedFrame, bytes_at};
use crate::IpVersion;

/// `EtherType` of a PPPoE session (RFC 2516, section 4).
pub const ETHERTYPE_PPPOE_SESSION: u16 = 0x8864;
/// `EtherType` of MPLS (RFC 3032, section 5; RFC 5332, section 3).
pub const ETHERTYPE_MPLS: u16 = 0x8847;
/// `EtherType` of MPLS with an upstream-assigned label (RFC 5332, section 3).
pub const ETHERTYPE_MPLS_UPSTREAM: u16 = 0x8848;

pub(super) const TRUNCATED: ParseEnd = ParseEnd::Truncated(Layer::Link);

/// A PPPoE header and the protocol field of PPP.
const PPPOE_BYTES: u32 = 8;
const PPP_PROTOCOL_BYTES: u32 = 2;
const LABEL_BYTES: u32 = 4;
/// Most labels parsed per packet.
const MAX_LABELS: u32 = 16;
/// Most bytes behind the IP packet in a frame: padding to the shortest frame, and a FCS (IEEE 802.3).
const MAX_TRAILER: u32 = 46 + 4;

/// An IP packet in a frame.
pub(super) struct Packet {
    pub(super) version: IpVersion,
    /// Bytes of the headers before it.
    pub(super) header_bytes: u32,
    /// Bytes of the frame that can be the packet's.
    pub(super) on_wire: u32,
}

/// Parses the headers at `offset` by the `EtherType` of the frame. Returns the IP packet behind them; `on_wire` bytes of the
/// frame follow from `offset`.
#[cold]
#[inline(never)]
pub(super) fn parse(
    frame: &mut ParsedFrame,
    captured: &[u8],
    offset: usize,
    on_wire: u32,
) -> Result<Packet, ParseEnd> {
    let packet = match frame.ethertype {
        ETHERTYPE_PPPOE_SESSION => pppoe(captured, offset, on_wire)?,
        ETHERTYPE_MPLS | ETHERTYPE_MPLS_UPSTREAM => mpls(captured, offset, on_wire)?,
        _ => None,
    };
    let Some(packet) = packet else {
        return Err(ParseEnd::NotIp);
    };
    let header_bytes = u8::try_from(packet.header_bytes).unwrap_or(u8::MAX);
    let l3_offset = &mut frame.headers.l3_offset;
    *l3_offset = l3_offset.saturating_add(header_bytes);
    Ok(packet)
}

fn pppoe(captured: &[u8], offset: usize, on_wire: u32) -> Result<Option<Packet>, ParseEnd> {
    let Some(b) = header::<8>(captured, offset, 0, on_wire)? else {
        return Ok(None);
    };
    // Version 1, type 1, and the code of session data.
    let is_data = [b[0], b[1]] == [0x11, 0];
    let version = ppp_version(u16::from_be_bytes([b[6], b[7]])).filter(|_| is_data);
    // What follows the stated length is padding.
    let stated = u32::from(u16::from_be_bytes([b[4], b[5]])).saturating_sub(PPP_PROTOCOL_BYTES);
    Ok(version.map(|version| Packet {
        version,
        header_bytes: PPPOE_BYTES,
        on_wire: stated.min(on_wire.saturating_sub(PPPOE_BYTES)),
    }))
}

/// The IP version of a PPP protocol number (RFC 1332, RFC 5072).
pub(super) const fn ppp_version(protocol: u16) -> Option<IpVersion> {
    match protocol {
        0x0021 => Some(IpVersion::V4),
        0x0057 => Some(IpVersion::V6),
        _ => None,
    }
}

/// Labels up to the bottom of the stack. What follows has no type: it is taken as IP if its first nibble is a version
/// of it and its length is that of the packet. A pseudowire begins with 0 (RFC 4385), or, without a control word, with
/// any bytes of an address, which the length tells apart (RFC 8469).
fn mpls(captured: &[u8], offset: usize, on_wire: u32) -> Result<Option<Packet>, ParseEnd> {
    for label in 0..MAX_LABELS {
        let at = label * LABEL_BYTES;
        let Some(entry) = header::<4>(captured, offset, at, on_wire)? else {
            return Ok(None);
        };
        if entry[2] & 1 == 0 {
            continue;
        }
        let header_bytes = at + LABEL_BYTES;
        let Some(b) = header::<6>(captured, offset, header_bytes, on_wire)? else {
            return Ok(None);
        };
        let length = u32::from(u16::from_be_bytes([b[2], b[3]]));
        let (version, stated) = match b[0] >> 4 {
            4 if b[0] & 0xf >= 5 && length >= 20 => (IpVersion::V4, length),
            6 => (
                IpVersion::V6,
                u32::from(u16::from_be_bytes([b[4], b[5]])) + 40,
            ),
            _ => return Ok(None),
        };
        let on_wire = on_wire.saturating_sub(header_bytes);
        let behind = on_wire.checked_sub(stated);
        let is_packet = behind.is_some_and(|bytes| bytes <= MAX_TRAILER);
        return Ok(is_packet.then_some(Packet {
            version,
            header_bytes,
            on_wire,
        }));
    }
    Ok(None)
}

/// `N` bytes of headers, `at` bytes behind `offset`; `None` where the frame ends before.
fn header<const N: usize>(
    captured: &[u8],
    offset: usize,
    at: u32,
    on_wire: u32,
) -> Result<Option<&[u8; N]>, ParseEnd> {
    let at = at as usize;
    if (on_wire as usize) < at + N {
        return Ok(None);
    }
    let bytes = bytes_at(captured, offset + at);
    bytes.ok_or(TRUNCATED).map(Some)
}
