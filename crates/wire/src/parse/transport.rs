//! UDP (RFC 768), TCP (RFC 9293) and SCTP (RFC 9260).

use super::{Fragment, Layer, ParseEnd, ParsedFrame, bytes_at};

/// IP protocol number of TCP.
pub const PROTOCOL_TCP: u8 = 6;
/// IP protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;
/// IP protocol number of SCTP.
pub const PROTOCOL_SCTP: u8 = 132;
/// IP protocol number of ICMP.
pub const PROTOCOL_ICMP: u8 = 1;
/// IP protocol number of `ICMPv6`.
pub const PROTOCOL_ICMPV6: u8 = 58;

/// The part of a TCP header that must have been captured: to the end of the window. Checksum and
/// urgent pointer may be cut off.
const TCP_NEEDED_BYTES: usize = 16;

/// The flags of a TCP segment: the low byte of the flags field (RFC 9293, section 3.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Self = Self(0x10);

    /// Returns true if all of `flags` are set.
    #[must_use]
    #[inline]
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }
}

/// A TCP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpHeader {
    /// Sequence number of the first byte (of SYN itself, where set).
    pub sequence: u32,
    /// Acknowledgement number; valid if ACK is set.
    pub acknowledgement: u32,
    /// Flags.
    pub flags: TcpFlags,
    /// Window as on the wire, not scaled.
    pub window: u16,
    /// Bytes of the header with its options.
    pub header_bytes: u8,
    /// Bytes of data on the wire, captured or not.
    pub payload_bytes: u32,
}

#[inline]
pub(super) fn parse(frame: &mut ParsedFrame, captured: &[u8]) -> Result<(), ParseEnd> {
    let header_bytes = match frame.headers.protocol {
        PROTOCOL_UDP => 8,
        PROTOCOL_TCP => 20,
        PROTOCOL_SCTP => 12,
        PROTOCOL_ICMP | PROTOCOL_ICMPV6 => return icmp(frame, captured),
        _ => return Ok(()),
    };
    if frame.fragment == Fragment::Later {
        return Ok(());
    }
    let start = frame.transport_offset;
    let ports: &[u8; 4] = bytes_at(captured, start).ok_or(TRUNCATED)?;
    let packet_ends = frame.ip_offset as u64 + u64::from(frame.ip_bytes);
    if start as u64 + header_bytes as u64 > packet_ends {
        return Err(MALFORMED);
    }
    frame.headers.has_ports = true;
    frame.headers.source_port = u16::from_be_bytes([ports[0], ports[1]]);
    frame.headers.destination_port = u16::from_be_bytes([ports[2], ports[3]]);
    frame.payload_offset = start + header_bytes;
    if frame.headers.protocol == PROTOCOL_TCP {
        let fixed: &[u8; TCP_NEEDED_BYTES] = bytes_at(captured, start).ok_or(TRUNCATED)?;
        let stated = usize::from(fixed[12] >> 4) * 4;
        if stated < header_bytes || (start + stated) as u64 > packet_ends {
            return Err(MALFORMED);
        }
        frame.payload_offset = start + stated;
    } else if captured.len() < start + 8 {
        return Err(TRUNCATED);
    }
    Ok(())
}

/// The type of a message, if the packet holds it.
fn icmp(frame: &mut ParsedFrame, captured: &[u8]) -> Result<(), ParseEnd> {
    if frame.fragment != Fragment::Later && frame.ip_payload_bytes() > 0 {
        let kind = captured.get(frame.transport_offset).ok_or(TRUNCATED)?;
        frame.headers.icmp_type = Some(*kind);
    }
    Ok(())
}

#[inline]
pub(super) fn tcp(frame: &ParsedFrame, captured: &[u8]) -> Option<TcpHeader> {
    if frame.headers.protocol != PROTOCOL_TCP
        || frame.fragment == Fragment::Later
        || frame.end != ParseEnd::Complete
    {
        return None;
    }
    let b: &[u8; TCP_NEEDED_BYTES] = bytes_at(captured, frame.transport_offset)?;
    Some(TcpHeader {
        sequence: u32::from_be_bytes([b[4], b[5], b[6], b[7]]),
        acknowledgement: u32::from_be_bytes([b[8], b[9], b[10], b[11]]),
        flags: TcpFlags(b[13]),
        window: u16::from_be_bytes([b[14], b[15]]),
        header_bytes: (b[12] >> 4) * 4,
        payload_bytes: frame.payload_bytes(),
    })
}

const TRUNCATED: ParseEnd = ParseEnd::Truncated(Layer::Transport);
const MALFORMED: ParseEnd = ParseEnd::Malformed(Layer::Transport);
