//! What a datagram says of itself, at the beginning of its payload.

use std::array;

/// Bytes of a whole stamp.
pub const STAMP_BYTES: usize = 20;

/// How a payload of ours is known.
const MAGIC: [u8; 4] = *b"SlcW";

/// Number and time of a datagram. No two datagrams of a run have the same.
///
/// All in network byte order:
///
/// | bytes | |
/// |---|---|
/// | 0–3 | sequence number |
/// | 4–7 | flow |
/// | 8–15 | when it was handed to the kernel, ns since 1970 |
/// | 16–19 | `SlcW` |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Which packet of its source it is: 0 for the first that was due. One that the system refused leaves
    /// a gap. It begins anew after 2³² packets.
    pub sequence: u32,
    /// The place of its flow among those of its sender.
    pub flow: u32,
    /// When it was handed to the kernel, ns since 1970 by the clock that captures have.
    pub sent_ns: u64,
}

impl Stamp {
    /// Write it over the beginning of `payload`. Of a shorter payload it is as much as fits, the sequence
    /// number first; of the sequence number, if not even that fits, the low bytes, which differ between
    /// neighbours.
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

    /// The stamp of a payload; `None` where it has none, or not a whole one.
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

/// A payload before it is stamped: each byte tells its place, modulo 256.
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
    fn a_stamp_is_read_back_and_the_rest_tells_its_place() {
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
    fn a_payload_of_others_has_no_stamp() {
        assert_eq!(Stamp::read(&pattern(100)), None);
        assert_eq!(Stamp::read(b""), None);
    }
}
