//! What one measuring point saw of one TCP segment, beyond its sighting.

use slicewise_wire::TcpFlags;

/// One TCP segment (RFC 9293, section 3.1), for following connections: in the order of the point's
/// sightings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSegment {
    /// When, in nanoseconds since the epoch, by the clock of this point.
    pub time_ns: u64,
    /// Index of its flow among those of this point.
    pub flow: u32,
    /// Sequence number of its first byte.
    pub sequence: u32,
    /// Acknowledgement number; counts where ACK is set.
    pub acknowledgement: u32,
    /// Bytes of payload, as the IP header tells, whatever was captured of them.
    pub payload_bytes: u32,
    /// Flags.
    pub flags: TcpFlags,
}

impl TcpSegment {
    /// Sequence numbers it takes: a SYN and a FIN take one each (RFC 9293, section 3.4).
    #[must_use]
    pub fn sequence_length(&self) -> u32 {
        let syn = u32::from(self.flags.contains(TcpFlags::SYN));
        let fin = u32::from(self.flags.contains(TcpFlags::FIN));
        self.payload_bytes.saturating_add(syn).saturating_add(fin)
    }
}
