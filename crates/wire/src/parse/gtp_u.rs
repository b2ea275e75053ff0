//! GTP-U: IP packets of a mobile network in UDP (3GPP TS 29.281, sections 4.4.2, 5.1 and 5.2), with the PDU
//! session container (3GPP TS 38.415, section 5.5).

use super::link::{ETHERTYPE_IPV4, ETHERTYPE_IPV6};
use super::{Fragment, Layer, ParseEnd, ParsedFrame, bytes_at, ip, transport};
use crate::Headers;
use std::num::NonZeroU32;

/// UDP destination port of user packets in a tunnel.
pub const GTP_U_PORT: u16 = 2152;

/// The tunnel a packet is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tunnel {
    /// Tunnel endpoint identifier.
    pub teid: u32,
    /// `QoS` flow identifier, 0–63, where a PDU session container states one.
    pub qfi: Option<u8>,
}

/// Message type of a user packet.
const G_PDU: u8 = 255;
/// Extension header type of the PDU session container.
const PDU_SESSION: u8 = 0x85;
/// Most extension headers parsed per packet.
const MOST_EXTENSIONS: usize = 8;

const TRUNCATED: ParseEnd = ParseEnd::Truncated(Layer::Tunnel);
const MALFORMED: ParseEnd = ParseEnd::Malformed(Layer::Tunnel);

/// Replaces the fields of the outer packet by those of the inner one if the payload is a user packet;
/// the TEID is set as soon as the eight bytes that contain it were captured.
/// Other messages, and payloads that are not GTP-U despite their port, stay unchanged.
#[cold]
#[inline(never)]
pub(super) fn parse(frame: &mut ParsedFrame, captured: &[u8]) -> Result<(), ParseEnd> {
    if frame.fragment != Fragment::None {
        return Ok(());
    }
    let start = frame.payload_offset;
    let payload_bytes = frame.payload_bytes();
    let b: &[u8; 8] = match bytes_at(captured, start) {
        Some(bytes) => bytes,
        None if payload_bytes < 8 => return Ok(()),
        None => return Err(TRUNCATED),
    };
    let stated = u32::from(u16::from_be_bytes([b[2], b[3]])) + 8;
    // Version 1, not GTP' for charging (the protocol-type bit).
    if b[0] & 0xf0 != 0x30 || b[1] != G_PDU || stated != payload_bytes {
        return Ok(());
    }
    let mut tunnel = Tunnel {
        teid: u32::from_be_bytes([b[4], b[5], b[6], b[7]]),
        qfi: None,
    };
    // Known from here on, even if what follows was not captured.
    frame.headers.teid = NonZeroU32::new(tunnel.teid);
    frame.tunnel = Some(tunnel);
    let inner_at = if b[0] & 0x07 == 0 {
        start + 8
    } else {
        options(&mut tunnel, captured, start, b[0] & 0x04 != 0)?
    };
    frame.tunnel = Some(tunnel);
    let packet_ends = start as u64 + u64::from(payload_bytes);
    let inner_bytes = u32::try_from(packet_ends.saturating_sub(inner_at as u64)).unwrap_or(0);
    let mut inner = ParsedFrame {
        headers: Headers {
            vlan_tags: frame.headers.vlan_tags,
            outer_vlan: frame.headers.outer_vlan,
            inner_vlan: frame.headers.inner_vlan,
            l3_offset: frame.headers.l3_offset,
            ethertype: frame.headers.ethertype,
            teid: frame.headers.teid,
            ..Headers::EMPTY
        },
        l2_bytes: frame.l2_bytes,
        tunnel: Some(tunnel),
        ..ParsedFrame::EMPTY
    };
    inner.ethertype = match captured.get(inner_at).ok_or(TRUNCATED)? >> 4 {
        4 => ETHERTYPE_IPV4,
        6 => ETHERTYPE_IPV6,
        // An Ethernet or unstructured PDU session: only the outer packet can be reported.
        _ => return Ok(()),
    };
    let within = ip::parse(&mut inner, captured, inner_at, inner_bytes)
        .and_then(|()| transport::parse(&mut inner, captured));
    match within {
        Ok(()) => *frame = inner,
        Err(ParseEnd::Truncated(_)) => return Err(TRUNCATED),
        Err(_) => return Err(MALFORMED),
    }
    Ok(())
}

/// The optional four bytes and the extension headers; returns where the inner packet begins.
fn options(
    tunnel: &mut Tunnel,
    captured: &[u8],
    start: usize,
    has_extensions: bool,
) -> Result<usize, ParseEnd> {
    let mut offset = start + 12;
    let optional: &[u8; 4] = bytes_at(captured, start + 8).ok_or(TRUNCATED)?;
    let mut next = if has_extensions { optional[3] } else { 0 };
    for _ in 0..MOST_EXTENSIONS {
        if next == 0 {
            return Ok(offset);
        }
        let b: &[u8; 3] = bytes_at(captured, offset).ok_or(TRUNCATED)?;
        let bytes = usize::from(b[0]) * 4;
        if bytes == 0 {
            return Err(MALFORMED);
        }
        if next == PDU_SESSION {
            tunnel.qfi = Some(b[2] & 0x3f);
        }
        next = *captured.get(offset + bytes - 1).ok_or(TRUNCATED)?;
        offset += bytes;
    }
    if next == 0 {
        Ok(offset)
    } else {
        Err(MALFORMED)
    }
}
