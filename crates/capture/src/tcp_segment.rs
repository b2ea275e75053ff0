//! What one measuring point saw of one TCP segment, beyond its sighting.

use slicewise_wire::TcpFlags;

/// One TCP segment (RFC 9293), for following connections: in the order of the point's sightings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSegment {
    /// When, in nanoseconds since the epoch, by the clock of this point.
    pub time_ns: u64,
    /// Index of its flow among those of this point.
    pub flow: u32,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number; counts where ACK is set.
    pub acknowledgement: u32,
    /// Bytes of data on the wire, captured or not.
    pub payload_bytes: u32,
    /// Flags.
    pub flags: TcpFlags,
}
