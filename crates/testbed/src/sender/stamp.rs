//! Sequence number and send time at the beginning of each payload.

use std::array;

/// Bytes of a whole stamp.
pub const STAMP_BYTES: usize = 20;

/// Identifies our payloads.
const MAGIC: [u8; 4] = *b"SlcW";

/// Sequence number and time of a datagram, unique within a run.
///
/// All in network byte order:
///
/// | bytes | |
/// |---|---|
/// | 0–3 | sequence number |
/// | 4–7 | flow |
/// | 8–15 | when it was passed to the kernel, ns since 1970 |
/// | 16–19 | `SlcW` |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Packet number within its source, from 0 in order of due time. A datagram refused by the system
    /// leaves a gap. Wraps after 2³² packets.
    pub sequence: u32,
    /// Index of its flow within the sender.
    pub flow: u32,
    /// When it was passed to the kernel, ns since 1970, on the clock of captures.
    pub sent_ns: u64,
}

impl Stamp {
    /// Write it over the beginning of `payload`. If the payload is too short, as much as fits, the
    /// sequence number first; if not even that fits, its low bytes, which differ between successive
    /// packets.
    pub fn write(self, payload: &mut [u8]) {
        let sequence = self.sequence.to_be_bytes();
        let whole = sequence
            .into_iter()
            .chain(self.flow.to_be_bytes())
            .chain(self.sent_ns.to_be_bytes())
            .chain(MAGIC);
        let hidden = sequence.len().saturating_sub(payload.len());
        for (byte, value) in payload.iter_mut().zip(whole.skip(hidden)) {
            *byte = value;
        }
    }

    /// The stamp of a payload; `None` if it has none or an incomplete one.
    #[must_use]
    pub fn read(payload: &[u8]) -> Option<Self> {
        let (sequence, rest) = payload.split_first_chunk()?;
        let (flow, rest) = rest.split_first_chunk()?;
        let (sent_ns, rest) = rest.split_first_chunk()?;
        rest.starts_with(&MAGIC).then_some(Self {
            sequence: u32::from_be_bytes(*sequence),
            flow: u32::from_be_bytes(*flow),
            sent_ns: u64::from_be_bytes(*sent_ns),
        })
    }
}

/// A payload before stamping: each byte is its position modulo 256.
pub(super) fn pattern(bytes: usize) -> Vec<u8> {
    let places: [u8; 256] = array::from_fn(|place| u8::try_from(place).unwrap_or(0));
    places.into_iter().cycle().take(bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp {
        sequence: 0x0102_0304,
        flow: 5,
        sent_ns: 0x1112_1314_1516_1718,
    };

    fn stamped(bytes: usize) -> Vec<u8> {
        let mut payload = pattern(bytes);
        STAMP.write(&mut payload);
        payload
    }

    #[test]
    fn a_stamp_is_read_back_and_the_rest_is_a_position_pattern() {
        let payload = stamped(600);
        assert_eq!(Stamp::read(&payload), Some(STAMP));
        assert_eq!(payload[..8], [1, 2, 3, 4, 0, 0, 0, 5]);
        assert_eq!(payload[STAMP_BYTES..22], [20, 21]);
        assert_eq!(payload[255..258], [255, 0, 1]);
        assert_eq!(Stamp::read(&stamped(STAMP_BYTES)), Some(STAMP));
    }

    #[test]
    fn a_short_payload_has_what_fits_with_the_sequence_number_first() {
        let whole = stamped(STAMP_BYTES);
        for bytes in 4..STAMP_BYTES {
            assert_eq!(stamped(bytes), whole[..bytes]);
            assert_eq!(Stamp::read(&whole[..bytes]), None);
        }
        assert_eq!(stamped(3), [2, 3, 4]);
        assert_eq!(stamped(1), [4]);
        assert_eq!(stamped(0), [0u8; 0]);
    }

    #[test]
    fn a_foreign_payload_has_no_stamp() {
        assert_eq!(Stamp::read(&pattern(100)), None);
        assert_eq!(Stamp::read(b""), None);
    }
}
