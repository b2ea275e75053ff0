//! TCP fields of a segment at a measuring point, in addition to its sighting.

use slicewise_wire::TcpFlags;

/// One TCP segment (RFC 9293, section 3.1), for tracking connections: in the order of the point's
/// sightings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSegment {
    /// Nanoseconds since the epoch, by the clock of this point.
    pub time_ns: u64,
    /// Index of its flow among those of this point.
    pub flow: u32,
    /// Sequence number of its first byte.
    pub sequence: u32,
    /// Acknowledgement number; valid if ACK is set.
    pub acknowledgement: u32,
    /// Bytes of payload according to the IP header, captured or not.
    pub payload_bytes: u32,
    /// Flags.
    pub flags: TcpFlags,
}

impl TcpSegment {
    /// Sequence numbers it consumes: SYN and FIN one each (RFC 9293, section 3.4).
    #[must_use]
    pub fn sequence_length(&self) -> u32 {
        let syn = u32::from(self.flags.contains(TcpFlags::SYN));
        let fin = u32::from(self.flags.contains(TcpFlags::FIN));
        self.payload_bytes.saturating_add(syn).saturating_add(fin)
    }
}
