//! One packet at one measuring point.

/// One packet as seen at one measuring point: all that matching needs, in half a cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// Nanoseconds since the epoch, by the clock of this point.
    pub time_ns: u64,
    /// Identifies the packet at every point it passes: a hash of the fields routers do not change.
    pub key: u64,
    /// Index of its flow among those of this point.
    pub flow: u32,
    /// Bytes from the destination address to the end of the payload, without FCS, with the VLAN tags it
    /// had here; as if on Ethernet if the capture has no Ethernet header.
    pub l2_bytes: u32,
    /// IPv4 time to live, or IPv6 hop limit.
    pub ttl: u8,
    /// Differentiated-services code point.
    pub dscp: u8,
    /// Direction, if the capture states it.
    pub direction: Direction,
    /// The timestamp was impossible: `time_ns` is that of a neighbour and gives no delay.
    pub time_is_restored: bool,
}

/// Direction of a packet at a measuring point, as stated by the capture (Linux cooked captures and
/// pcapng packet flags state it).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Not stated.
    #[default]
    Unknown,
    /// Received by the capturing host.
    Inbound,
    /// Sent by the capturing host.
    Outbound,
}

const _: () = assert!(size_of::<Sighting>() == 32, "two to a cache line");
