//! Class maps: which frames belong to a class.

use slicewise_wire::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, Headers, IpVersion};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// The largest VLAN id of a frame (IEEE 802.1Q; 4095 is reserved).
const VLAN_MAX: u16 = 4094;
/// The largest code point (RFC 2474).
pub(crate) const MAX_DSCP: u8 = 63;

/// Mode of a class map: one of its conditions is enough, or all are needed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum MatchMode {
    /// One matching condition is enough.
    Any,
    /// Every condition must match. A map without conditions matches nothing.
    #[default]
    All,
}

/// A named set of match conditions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClassMap {
    /// The name a policy refers to.
    pub name: String,
    /// How conditions combine.
    pub mode: MatchMode,
    /// The conditions, in the order written.
    pub conditions: Vec<Condition>,
}

impl ClassMap {
    /// Returns true if a frame with these headers belongs to it.
    #[must_use]
    pub fn matches(&self, headers: &Headers) -> bool {
        let mut conditions = self.conditions.iter();
        match self.mode {
            MatchMode::Any => conditions.any(|c| c.matches(headers)),
            MatchMode::All => !self.conditions.is_empty() && conditions.all(|c| c.matches(headers)),
        }
    }

    /// An error if a condition could never match as written.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.conditions.iter().try_for_each(Condition::check)
    }
}

/// One condition on a frame's headers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Condition {
    /// Every frame.
    Everything,
    /// VLAN id of the outermost tag.
    OuterVlan(RangeInclusive<u16>),
    /// VLAN id of the second tag.
    InnerVlan(RangeInclusive<u16>),
    /// Source address within a prefix.
    Source(IpPrefix),
    /// Destination address within a prefix.
    Destination(IpPrefix),
    /// `EtherType` after all VLAN tags; those of IP hold for any packet of that version, in a PPPoE session and behind
    /// MPLS labels, too. Where a frame has its length there, the destination service access point of LLC: see
    /// [`Headers::ethertype`].
    Ethertype(u16),
    /// IP protocol number.
    Protocol(u8),
    /// Type of an ICMP or `ICMPv6` message.
    IcmpType(u8),
    /// Source port of UDP, TCP or SCTP.
    SourcePort(RangeInclusive<u16>),
    /// Destination port of UDP, TCP or SCTP.
    DestinationPort(RangeInclusive<u16>),
    /// DSCP among a set: bit `n` stands for code point `n`.
    Dscp(u64),
    /// Tunnel endpoint identifier of the GTP-U tunnel around the packet (3GPP TS 29.281).
    GtpTeid(RangeInclusive<u32>),
    /// Permitted by an access list.
    AccessList(AccessList),
    /// Negation of a condition.
    Not(Box<Condition>),
}

impl Condition {
    /// The condition on IP precedence: the three upper bits of the DSCP.
    #[must_use]
    pub fn precedence(precedence: u8) -> Self {
        Self::Dscp(0xffu64 << (u32::from(precedence & 7) * 8))
    }

    /// Returns true if it holds for a frame with these headers. A condition on a field that the frame does not have
    /// does not hold.
    #[must_use]
    pub fn matches(&self, h: &Headers) -> bool {
        let is_ip = h.ip_version != IpVersion::None;
        match self {
            Self::Everything => true,
            Self::OuterVlan(range) => h.vlan_tags >= 1 && range.contains(&h.outer_vlan),
            Self::InnerVlan(range) => h.vlan_tags >= 2 && range.contains(&h.inner_vlan),
            Self::Source(prefix) => prefix.contains(h.ip_version, h.source),
            Self::Destination(prefix) => prefix.contains(h.ip_version, h.destination),
            Self::Ethertype(ETHERTYPE_IPV4) => h.ip_version == IpVersion::V4,
            Self::Ethertype(ETHERTYPE_IPV6) => h.ip_version == IpVersion::V6,
            // An IP packet right behind the tags has 0 there.
            Self::Ethertype(number) => h.ethertype == *number && (*number != 0 || !is_ip),
            Self::Protocol(protocol) => is_ip && h.protocol == *protocol,
            Self::IcmpType(number) => h.icmp_type == Some(*number),
            Self::SourcePort(range) => h.has_ports && range.contains(&h.source_port),
            Self::DestinationPort(range) => h.has_ports && range.contains(&h.destination_port),
            Self::Dscp(set) => is_ip && set >> (h.dscp & 63) & 1 == 1,
            Self::GtpTeid(range) => h.teid.is_some_and(|teid| range.contains(&teid.get())),
            Self::AccessList(list) => list
                .entries
                .iter()
                .find(|entry| entry.conditions.iter().all(|c| c.matches(h)))
                .is_some_and(|entry| entry.permit),
            Self::Not(inner) => !inner.matches(h),
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Self::OuterVlan(range) | Self::InnerVlan(range) => {
                if *range.end().max(range.start()) > VLAN_MAX {
                    let end = range.end().max(range.start());
                    return Err(format!("VLAN {end} is above {VLAN_MAX}, the largest id"));
                }
                ordered("VLAN", range)
            }
            Self::SourcePort(range) | Self::DestinationPort(range) => ordered("port", range),
            Self::GtpTeid(range) if *range.start().min(range.end()) == 0 => {
                Err("TEID 0 is not used by user packets: the smallest is 1".to_owned())
            }
            Self::GtpTeid(range) => ordered("TEID", range),
            Self::Dscp(0) => Err("lists no code point, so it can never match".to_owned()),
            Self::AccessList(list) => list
                .entries
                .iter()
                .flat_map(|entry| &entry.conditions)
                .try_for_each(Self::check),
            Self::Not(condition) => condition.check(),
            Self::Everything
            | Self::Source(_)
            | Self::Destination(_)
            | Self::Ethertype(_)
            | Self::Protocol(_)
            | Self::IcmpType(_)
            | Self::Dscp(_) => Ok(()),
        }
    }
}

fn ordered<T: PartialOrd + std::fmt::Display>(
    what: &str,
    range: &RangeInclusive<T>,
) -> Result<(), String> {
    if range.is_empty() {
        return Err(format!(
            "{what} {} to {} is an empty range: write the smaller number first",
            range.start(),
            range.end()
        ));
    }
    Ok(())
}

/// A list of permit and deny entries: the first match decides; no match denies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AccessList {
    /// Name or number.
    pub name: String,
    /// Entries in order.
    pub entries: Vec<AccessEntry>,
}

/// One entry of an access list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AccessEntry {
    /// Permit, or deny.
    pub permit: bool,
    /// All must match.
    pub conditions: Vec<Condition>,
}

/// An address prefix of either IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IpPrefix {
    address: IpAddr,
    length: u8,
}

impl IpPrefix {
    /// Every IPv4 address: as a source prefix it matches all IPv4 packets and nothing else.
    pub const ALL_IPV4: Self = Self {
        address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        length: 0,
    };
    /// Every IPv6 address: as a source prefix it matches all IPv6 packets and nothing else.
    pub const ALL_IPV6: Self = Self {
        address: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        length: 0,
    };

    /// The prefix of `length` bits around `address`; host bits are cleared. `None` where
    /// `length` exceeds the address.
    #[must_use]
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let address = match address {
            IpAddr::V4(a) if length <= 32 => {
                let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
                IpAddr::V4((u32::from(a) & mask).into())
            }
            IpAddr::V6(a) if length <= 128 => {
                let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
                IpAddr::V6((u128::from(a) & mask).into())
            }
            _ => return None,
        };
        Some(Self { address, length })
    }

    /// Returns true if an address of this IP version lies within; IPv4 in the low 32 bits, as in [`Headers`].
    #[must_use]
    pub fn contains(self, version: IpVersion, address: u128) -> bool {
        let (own_version, own, bits) = match self.address {
            IpAddr::V4(own) => (IpVersion::V4, u128::from(u32::from(own)), 32),
            IpAddr::V6(own) => (IpVersion::V6, u128::from(own), 128),
        };
        let differing = (own ^ address) << (128 - bits);
        version == own_version && differing.leading_zeros() >= u32::from(self.length)
    }

    /// The address, host bits zero.
    #[must_use]
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// Prefix length in bits.
    #[must_use]
    pub const fn length(self) -> u8 {
        self.length
    }
}

impl std::fmt::Display for IpPrefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl std::str::FromStr for IpPrefix {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "`{s}` is not an address prefix: write for example `10.0.10.0/24` or `2001:db8::/32`"
            )
        };
        let (address, length) = match s.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (s, None),
        };
        let address: IpAddr = address.parse().map_err(|_| expected())?;
        let length = match length {
            Some(text) if text.bytes().all(|b| b.is_ascii_digit()) => {
                text.parse().map_err(|_| expected())?
            }
            Some(_) => return Err(expected()),
            None if address.is_ipv4() => 32,
            None => 128,
        };
        Self::new(address, length).ok_or_else(expected)
    }
}
