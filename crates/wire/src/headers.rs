//! The header fields a classifier can match on.

use std::num::NonZeroU32;

/// Which IP version a frame carries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum IpVersion {
    /// The frame is not IP.
    #[default]
    None,
    /// IPv4 (RFC 791).
    V4,
    /// IPv6 (RFC 8200).
    V6,
}

/// Explicit congestion notification: the two bits next to the DSCP (RFC 3168, section 5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not understand marks, or the frame is not IP.
    #[default]
    NotEct = 0,
    /// The transport understands marks: ECT(1), which RFC 9331 gives to L4S.
    Ect1 = 1,
    /// The transport understands marks: ECT(0).
    Ect0 = 2,
    /// Congestion was experienced.
    Ce = 3,
}

impl Ecn {
    /// From the two low bits of a traffic-class (IPv4: type-of-service) byte; others are ignored.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// The two bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// Returns true if a mark signals congestion to the transport instead of a drop.
    #[must_use]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// Code point and congestion notification as they lie in the IP header: the octet of RFC 2474 and RFC 3168.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TrafficClass(u8);

impl TrafficClass {
    /// Code point 0, and a transport that does not understand marks.
    pub const DEFAULT: Self = Self(0);

    /// From a code point, 0–63, and congestion notification.
    #[inline]
    #[must_use]
    pub const fn new(dscp: u8, ecn: Ecn) -> Self {
        Self(dscp << 2 | ecn.bits())
    }

    /// The octet.
    #[inline]
    #[must_use]
    pub const fn from_octet(octet: u8) -> Self {
        Self(octet)
    }

    /// The octet.
    #[inline]
    #[must_use]
    pub const fn octet(self) -> u8 {
        self.0
    }

    /// Code point (RFC 2474), 0–63.
    #[inline]
    #[must_use]
    pub const fn dscp(self) -> u8 {
        self.0 >> 2
    }

    /// Congestion notification (RFC 3168).
    #[inline]
    #[must_use]
    pub const fn ecn(self) -> Ecn {
        Ecn::from_bits(self.0)
    }

    /// The same congestion notification beside another code point.
    #[inline]
    #[must_use]
    pub const fn with_dscp(self, dscp: u8) -> Self {
        Self::new(dscp, self.ecn())
    }
}

/// The fields of one frame's headers. Absent fields are zero; `vlan_tags`, `ip_version` and `has_ports`
/// state which are present.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Headers {
    /// Source address; IPv4 in the low 32 bits.
    pub source: u128,
    /// Destination address; IPv4 in the low 32 bits.
    pub destination: u128,
    /// Number of VLAN tags: 0, 1 (802.1Q) or 2 (802.1ad QinQ).
    pub vlan_tags: u8,
    /// IP version, or none.
    pub ip_version: IpVersion,
    /// IP protocol (IPv6: the first header that is not an extension).
    pub protocol: u8,
    /// Differentiated-services code point (RFC 2474), 0–63.
    pub dscp: u8,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: Ecn,
    /// VLAN id of the outermost tag.
    pub outer_vlan: u16,
    /// VLAN id of the second tag.
    pub inner_vlan: u16,
    /// True where `source_port` and `destination_port` were present (UDP, TCP, SCTP; not in
    /// later fragments).
    pub has_ports: bool,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Bytes before the IP header: 14, plus 4 per VLAN tag, 8 in a PPPoE session, and 4 per MPLS label.
    pub l3_offset: u8,
    /// `EtherType` after all VLAN tags; 0 where an IP header follows at once, so that of an IP packet in a PPPoE session or
    /// behind MPLS labels is kept. Where a frame has its length there (IEEE 802.3), the destination service access point
    /// of its LLC header: 0x42 is a bridge protocol data unit.
    pub ethertype: u16,
    /// Type of an ICMP or `ICMPv6` message; not in later fragments.
    pub icmp_type: Option<u8>,
    /// Tunnel endpoint identifier of the GTP-U tunnel the packet is in. User packets never carry 0
    /// (3GPP TS 29.281, section 5.1).
    pub teid: Option<NonZeroU32>,
}

impl Headers {
    /// Headers of a frame about which nothing is known.
    pub const EMPTY: Self = Self {
        source: 0,
        destination: 0,
        vlan_tags: 0,
        ip_version: IpVersion::None,
        protocol: 0,
        dscp: 0,
        ecn: Ecn::NotEct,
        outer_vlan: 0,
        inner_vlan: 0,
        has_ports: false,
        source_port: 0,
        destination_port: 0,
        l3_offset: 0,
        ethertype: 0,
        icmp_type: None,
        teid: None,
    };
}

// Headers are copied along the packet path: one cache line.
const _: () = assert!(size_of::<Headers>() == 64);
