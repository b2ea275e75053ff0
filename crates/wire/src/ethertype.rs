//! Names of protocols that are no IP, for people.

use std::fmt;

/// An `EtherType`, or the service access point of LLC of a frame that has its length there: see
/// [`Headers::ethertype`](crate::Headers::ethertype). Shown by number and name: `EtherType 0x88e5 (MACsec)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EtherType(pub u16);

/// Smaller values are lengths (IEEE 802.3, clause 3.2.6).
const FIRST: u16 = 0x0600;

/// Number and name, and whether an IP packet may be inside. IEEE 802 numbers as registered with IANA.
const NAMES: [(u16, &str, bool); 28] = [
    (0x0042, "spanning tree", false),
    (0x00aa, "SNAP", true),
    (0x00fe, "IS-IS", false),
    (0x0806, "ARP", false),
    (0x0842, "Wake-on-LAN", false),
    (0x22f3, "TRILL", true),
    (0x6558, "Ethernet bridging", true),
    (0x8035, "RARP", false),
    (0x8137, "IPX", false),
    (0x8808, "flow control", false),
    (0x8809, "slow protocols", false),
    (0x8847, "MPLS", true),
    (0x8848, "MPLS, upstream-assigned", true),
    (0x8863, "PPPoE discovery", false),
    (0x8864, "PPPoE session", true),
    (0x888e, "802.1X", false),
    (0x8892, "PROFINET", false),
    (0x88a4, "EtherCAT", false),
    (0x88b8, "GOOSE", false),
    (0x88be, "ERSPAN", true),
    (0x88cc, "LLDP", false),
    (0x88e5, "MACsec", true),
    (0x88e7, "provider backbone bridge", true),
    (0x88f7, "PTP", false),
    (0x8902, "CFM", false),
    (0x893f, "802.1BR", true),
    (0x894f, "NSH", true),
    (0x9000, "loopback test", false),
];

impl EtherType {
    fn known(self) -> Option<&'static (u16, &'static str, bool)> {
        NAMES.iter().find(|(number, ..)| *number == self.0)
    }

    /// Returns true if an IP packet may be inside: so of any protocol that is not known to have none.
    #[must_use]
    pub fn may_hold_ip(self) -> bool {
        self.known().is_none_or(|(_, _, may)| *may)
    }
}

impl fmt::Display for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            FIRST.. => write!(f, "EtherType {:#06x}", self.0)?,
            point => write!(f, "LLC service access point {point:#04x}")?,
        }
        match self.known() {
            Some((_, name, _)) => write!(f, " ({name})"),
            None => Ok(()),
        }
    }
}
