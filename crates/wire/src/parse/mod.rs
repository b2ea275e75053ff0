//! Parses the headers of a frame, whole or cut off by a snap length.
//!
//! Nothing here allocates, keeps state or panics, whatever the bytes; every loop over headers has a
//! limit. Fields beyond the captured bytes are zero, and [`ParsedFrame::end`] says where parsing stopped
//! and why.

mod encapsulation;
mod gtp_u;
mod ip;
mod link;
mod plain;
mod shim;
mod transport;

use crate::Headers;
pub use encapsulation::parse_innermost;
pub use gtp_u::{GTP_U_PORT, Tunnel};
pub use ip::Fragment;
pub use link::{ETHERTYPE_ARP, ETHERTYPE_IPV4, ETHERTYPE_IPV6, LinkType};
pub use shim::{ETHERTYPE_MPLS, ETHERTYPE_MPLS_UPSTREAM, ETHERTYPE_PPPOE_SESSION};
pub use transport::{
    PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_SCTP, PROTOCOL_TCP, PROTOCOL_UDP, TcpFlags, TcpHeader,
};

/// The headers of one frame. In a GTP-U tunnel (and in others for [`parse_innermost`]), everything from the IP header on is that of the inner
/// packet; VLAN tags and `l2_bytes` are those of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsedFrame {
    /// The fields a classifier matches on.
    pub headers: Headers,
    /// Bytes of the frame as if on Ethernet: from the destination address to the end of the IP
    /// packet, with VLAN tags, PPPoE header and MPLS labels, without padding and FCS. Of a frame that is not IP, to its end.
    pub l2_bytes: u32,
    /// Bytes of the IP packet on the wire, its header included; 0 if there is none. If the header states
    /// none or too many (segmentation offload leaves 0), the bytes the frame holds.
    pub ip_bytes: u32,
    /// Offset of the IP header in the captured bytes.
    pub ip_offset: usize,
    /// Offset of the first header that is neither IP nor an IPv6 extension in the captured bytes.
    pub transport_offset: usize,
    /// Offset of the transport payload; may be beyond the captured bytes.
    pub payload_offset: usize,
    /// IPv4 identification (RFC 791); 0 in IPv6.
    pub identification: u16,
    /// `EtherType` after all VLAN tags.
    pub ethertype: u16,
    /// IPv4 time to live or IPv6 hop limit.
    pub ttl: u8,
    /// Kind of the packet: whole, or which fragment.
    pub fragment: Fragment,
    /// The GTP-U tunnel the packet is in.
    pub tunnel: Option<Tunnel>,
    /// Where parsing stopped, and why.
    pub end: ParseEnd,
}

/// Where parsing stopped, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseEnd {
    /// Every header was parsed (of a later fragment: every header it has).
    Complete,
    /// The frame is not IP, or has a link type without IP.
    NotIp,
    /// The captured bytes end within this layer; earlier ones were parsed.
    Truncated(Layer),
    /// This layer is inconsistent; earlier ones were parsed.
    Malformed(Layer),
}

/// A layer of headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// Link-layer header, VLAN tags, PPPoE header and MPLS labels.
    Link,
    /// IP header and IPv6 extension headers.
    Network,
    /// UDP, TCP or SCTP.
    Transport,
    /// The header of a tunnel or the inner packet; the headers reported are those of the outer packet.
    Tunnel,
}

/// Parses the headers of one frame. `captured` begins with the link header; `wire_bytes` is the length
/// of the frame on the wire, in bytes from there.
///
/// 96 captured bytes reach all headers of an IPv4 or IPv6 packet with up to two VLAN tags, UDP or
/// TCP, and 16 bytes of IPv6 extensions; and those of an IPv4 packet in GTP-U over IPv4.
#[must_use]
#[inline]
pub fn parse_frame(link: LinkType, captured: &[u8], wire_bytes: u32) -> ParsedFrame {
    if link == LinkType::ETHERNET
        && let Some(frame) = plain::parse(captured, wire_bytes)
    {
        return frame;
    }
    parse_layers(link, captured, wire_bytes)
}

#[inline(never)]
fn parse_layers(link: LinkType, captured: &[u8], wire_bytes: u32) -> ParsedFrame {
    let mut frame = ParsedFrame::EMPTY;
    if let Err(end) = parse(&mut frame, link, captured, wire_bytes) {
        frame.end = end;
    }
    frame
}

fn parse(
    frame: &mut ParsedFrame,
    link: LinkType,
    captured: &[u8],
    wire_bytes: u32,
) -> Result<(), ParseEnd> {
    let link_bytes = link::parse(frame, link, captured)?;
    let on_wire = wire_bytes.saturating_sub(u32::try_from(link_bytes).unwrap_or(u32::MAX));
    frame.l2_bytes = on_wire.saturating_add(u32::from(frame.headers.l3_offset));
    ip::parse(frame, captured, link_bytes, on_wire)?;
    frame.l2_bytes = frame
        .ip_bytes
        .saturating_add(u32::from(frame.headers.l3_offset));
    transport::parse(frame, captured)?;
    if frame.headers.protocol == PROTOCOL_UDP && frame.headers.destination_port == GTP_U_PORT {
        return gtp_u::parse(frame, captured);
    }
    Ok(())
}

impl ParsedFrame {
    const EMPTY: Self = Self {
        headers: Headers::EMPTY,
        l2_bytes: 0,
        ip_bytes: 0,
        ip_offset: 0,
        transport_offset: 0,
        payload_offset: 0,
        identification: 0,
        ethertype: 0,
        ttl: 0,
        fragment: Fragment::None,
        tunnel: None,
        end: ParseEnd::Complete,
    };

    /// The TCP header, if this is TCP, not a later fragment, and its fixed part was captured.
    /// `captured` must be the bytes this frame was parsed from.
    #[must_use]
    #[inline]
    pub fn tcp(&self, captured: &[u8]) -> Option<TcpHeader> {
        transport::tcp(self, captured)
    }

    /// Bytes of the IP packet after its header and extension headers, on the wire.
    #[must_use]
    #[inline]
    pub fn ip_payload_bytes(&self) -> u32 {
        let headers = self.transport_offset.saturating_sub(self.ip_offset);
        self.ip_bytes
            .saturating_sub(u32::try_from(headers).unwrap_or(u32::MAX))
    }

    /// Bytes after the transport header, on the wire: what the application sent.
    #[must_use]
    #[inline]
    pub fn payload_bytes(&self) -> u32 {
        let headers = self.payload_offset.saturating_sub(self.ip_offset);
        self.ip_bytes
            .saturating_sub(u32::try_from(headers).unwrap_or(u32::MAX))
    }
}

/// The `N` bytes at `offset`, if all were captured.
#[inline]
fn bytes_at<const N: usize>(captured: &[u8], offset: usize) -> Option<&[u8; N]> {
    captured.get(offset..)?.first_chunk()
}
