//! Inspection of a frame before it is offered to the pipeline.

use crate::port::ETHERNET_BYTES;
use slicewise_wire::{Headers, IpVersion, Layer, LinkType, ParseEnd, TrafficClass, parse_frame};

/// Why a frame is not forwarded, other than by decision of the pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Discard {
    /// Shorter than an Ethernet header.
    Runt,
    /// Longer than the other interface sends.
    Giant,
    /// VLAN tags or IP header are inconsistent or truncated.
    Malformed,
    /// Its source address is that of one of the gateway's own interfaces: it came back.
    Looped,
    /// The interface it should leave on is down or gone.
    InterfaceDown,
    /// It still waited when the gateway stopped.
    Stopped,
    /// The interface accepted it but did not send it: its MTU shrank meanwhile, or it went down.
    Refused,
}

impl Discard {
    /// All reasons, in the order of their counters.
    pub const ALL: [Self; 7] = [
        Self::Runt,
        Self::Giant,
        Self::Malformed,
        Self::Looped,
        Self::InterfaceDown,
        Self::Stopped,
        Self::Refused,
    ];

    /// The name used in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runt => "runt",
            Self::Giant => "giant",
            Self::Malformed => "malformed",
            Self::Looped => "looped",
            Self::InterfaceDown => "interface_down",
            Self::Stopped => "stopped",
            Self::Refused => "refused",
        }
    }
}

/// Fields of a frame that the pipeline needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inspected {
    /// The fields that classes match; for a packet in a GTP-U tunnel, those of the inner packet.
    pub headers: Headers,
    /// Of the outermost IP header, which is the one that would be rewritten.
    pub traffic_class: TrafficClass,
    /// Bytes before the outermost IP header.
    pub l3_offset: u8,
}

/// Read the headers of a frame of `length` bytes; `head` holds its first bytes.
///
/// Frames that are not IP pass: no class that matches IP applies to them, so they belong to class-default unless
/// a class matches their VLAN. Errors above IP are left to the receiver.
///
/// # Errors
/// The reason to discard it.
#[inline]
pub fn inspect(head: &[u8], length: u32, own: &[[u8; 6]; 2]) -> Result<Inspected, Discard> {
    if length < ETHERNET_BYTES || head.len() < ETHERNET_BYTES as usize {
        return Err(Discard::Runt);
    }
    if head
        .get(6..12)
        .is_some_and(|source| own.iter().any(|address| address == source))
    {
        return Err(Discard::Looped);
    }
    let parsed = parse_frame(LinkType::ETHERNET, head, length);
    match parsed.end {
        ParseEnd::Truncated(Layer::Link | Layer::Network)
        | ParseEnd::Malformed(Layer::Link | Layer::Network) => return Err(Discard::Malformed),
        _ => {}
    }
    let headers = parsed.headers;
    if headers.ip_version != IpVersion::None
        && stated_bytes(head, headers.l3_offset) > length - u32::from(headers.l3_offset)
    {
        return Err(Discard::Malformed);
    }
    let octet = traffic_class(head, headers.l3_offset, headers.ip_version);
    Ok(Inspected {
        headers,
        traffic_class: TrafficClass::from_octet(octet),
        l3_offset: headers.l3_offset,
    })
}

/// Length that the IP header at `l3_offset` states, bytes; 0 where it states none, as that of a jumbogram.
#[inline]
fn stated_bytes(head: &[u8], l3_offset: u8) -> u32 {
    let header: Option<&[u8; 6]> = head
        .get(usize::from(l3_offset)..)
        .and_then(|header| header.first_chunk());
    match header {
        Some(&[first, _, high, low, ..]) if first >> 4 == 4 => {
            u16::from_be_bytes([high, low]).into()
        }
        Some(&[.., high, low]) => match u16::from_be_bytes([high, low]) {
            0 => 0,
            payload => 40 + u32::from(payload),
        },
        None => 0,
    }
}

/// The byte with DSCP and ECN of the IP header at `l3_offset`; zero if there is no IP header.
#[inline]
pub(super) fn traffic_class(head: &[u8], l3_offset: u8, version: IpVersion) -> u8 {
    let at = usize::from(l3_offset);
    let (Some(&first), Some(&second)) = (head.get(at), head.get(at + 1)) else {
        return 0;
    };
    match (version, first >> 4) {
        (IpVersion::None, _) => 0,
        (_, 4) => second,
        (_, 6) => first << 4 | second >> 4,
        _ => 0,
    }
}
