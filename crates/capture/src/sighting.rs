//! What one measuring point saw of one packet.

/// What one measuring point saw of one packet: all that matching needs, in half a cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// When, in nanoseconds since the epoch, by the clock of this point.
    pub time_ns: u64,
    /// Names the packet at every point it passes: a hash of what routers leave alone.
    pub key: u64,
    /// Index of its flow among those of this point.
    pub flow: u32,
    /// Bytes from the destination address to the end of the payload, without FCS, with the VLAN tags
    /// it had here; where the capture holds no Ethernet header, as if it had one.
    pub l2_bytes: u32,
    /// IPv4 time to live, or IPv6 hop limit.
    pub ttl: u8,
    /// Differentiated-services code point.
    pub dscp: u8,
    /// Which way it went, where the capture says so.
    pub direction: Direction,
    /// The time stamp could not be right: `time_ns` is that of a neighbour, and no delay can be taken
    /// from it.
    pub time_is_restored: bool,
}

/// Which way a packet went at a measuring point, as the capture tells (Linux cooked captures and
/// pcapng packet flags do).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The capture does not say.
    #[default]
    Unknown,
    /// Received by the host that captured.
    Inbound,
    /// Sent by the host that captured.
    Outbound,
}

const _: () = assert!(size_of::<Sighting>() == 32, "two to a cache line");
