//! Replay: the gaps of a recorded capture.
//!
//! Only times are taken from the capture. The reader knows the classic format that tcpdump
//! writes ("libpcap file format", draft-ietf-opsawg-pcap), of either byte order, with microseconds or
//! nanoseconds; a file in the pcapng format is refused by name.

use slicewise_units::{Duration, Instant};
use std::io::Read;
use std::sync::Arc;

/// Why the times of a capture cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// It is in the newer format.
    #[error(
        "is a pcapng file; convert it with `editcap -F pcap` or capture with `tcpdump -w`, which \
         writes the classic format"
    )]
    PcapNg,
    /// It is something else.
    #[error("is not a capture file: it starts with {0:#010x}")]
    NotACapture(u32),
    /// It ends within a packet, or a packet claims a length no capture has.
    #[error("is damaged at packet {packet}: {problem}")]
    Damaged {
        /// Number of the packet, from 1.
        packet: u64,
        /// What is wrong.
        problem: &'static str,
    },
    /// It holds fewer than two packets.
    #[error("holds {0} packets: at least two are needed to have a gap")]
    TooShort(usize),
    /// It holds more packets than this reader keeps.
    #[error("holds more than {MAX_PACKETS} packets")]
    TooLong,
}

/// Most packets a timeline keeps: half a gigabyte of times.
pub const MAX_PACKETS: usize = 1 << 26;
/// Longest captured packet believed (tcpdump's own limit, `MAXIMUM_SNAPLEN`).
const MAX_CAPTURED_BYTES: u32 = 262_144;

/// When packets were captured, from the first one on; shared by all runs that replay it.
#[derive(Debug, Clone)]
pub struct Timeline(Arc<[Duration]>);

impl Timeline {
    /// The times of a capture in the classic format. Packets are put in order of time.
    ///
    /// # Errors
    /// Where `input` fails, is not such a capture, is damaged, or holds too few or too many packets.
    pub fn read_pcap(mut input: impl Read) -> Result<Self, ReplayError> {
        let mut header = [0; 24];
        input.read_exact(&mut header)?;
        let [a, b, c, d, ..] = header;
        let (little_endian, nanos_a_unit) = match u32::from_be_bytes([a, b, c, d]) {
            0xd4c3_b2a1 => (true, 1_000),
            0x4d3c_b2a1 => (true, 1),
            0xa1b2_c3d4 => (false, 1_000),
            0xa1b2_3c4d => (false, 1),
            0x0a0d_0d0a => return Err(ReplayError::PcapNg),
            other => return Err(ReplayError::NotACapture(other)),
        };
        let number = |bytes: [u8; 4]| {
            if little_endian {
                u32::from_le_bytes(bytes)
            } else {
                u32::from_be_bytes(bytes)
            }
        };
        let mut times = Vec::new();
        let mut record = [0; 16];
        loop {
            let packet = times.len() as u64 + 1;
            let damaged = |problem| ReplayError::Damaged { packet, problem };
            match read_fully(&mut input, &mut record)? {
                0 => break,
                16 => {}
                _ => return Err(damaged("the file ends within its header")),
            }
            if times.len() == MAX_PACKETS {
                return Err(ReplayError::TooLong);
            }
            let [s0, s1, s2, s3, f0, f1, f2, f3, l0, l1, l2, l3, ..] = record;
            let captured = number([l0, l1, l2, l3]);
            if captured > MAX_CAPTURED_BYTES {
                return Err(damaged("its length is above 262144 bytes"));
            }
            let fraction = u64::from(number([f0, f1, f2, f3])) * nanos_a_unit;
            times.push(u64::from(number([s0, s1, s2, s3])) * 1_000_000_000 + fraction);
            let skipped = std::io::copy(
                &mut input.by_ref().take(u64::from(captured)),
                &mut std::io::sink(),
            )?;
            if skipped != u64::from(captured) {
                return Err(damaged("the file ends within it"));
            }
        }
        Self::from_times(times)
    }

    /// The times given, ns from any origin, put in order.
    ///
    /// # Errors
    /// [`ReplayError::TooShort`] for fewer than two.
    pub fn from_times(mut times: Vec<u64>) -> Result<Self, ReplayError> {
        times.sort_unstable();
        match times.first().copied() {
            Some(first) if times.len() > 1 => Ok(Self(
                times
                    .into_iter()
                    .map(|at| Duration::from_nanos(at - first))
                    .collect(),
            )),
            _ => Err(ReplayError::TooShort(times.len())),
        }
    }

    /// Number of packets.
    #[must_use]
    pub fn packets(&self) -> usize {
        self.0.len()
    }

    /// From the first packet to the last.
    #[must_use]
    pub fn span(&self) -> Duration {
        self.0.last().copied().unwrap_or(Duration::ZERO)
    }
}

/// Read until `buffer` is full or the input ends; returns how much was read.
fn read_fully(input: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match input.read(rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Sends when a recording did, once.
#[derive(Debug, Clone)]
pub struct Replay {
    timeline: Timeline,
    next: usize,
    start: Instant,
}

impl Replay {
    /// Replays `timeline`.
    #[must_use]
    pub const fn new(timeline: Timeline) -> Self {
        Self {
            timeline,
            next: 0,
            start: Instant::ZERO,
        }
    }

    pub(super) fn begin(&mut self, at: Instant) {
        self.next = 0;
        self.start = at;
    }

    #[inline]
    pub(super) fn next_departure(&mut self) -> Option<Instant> {
        let offset = *self.timeline.0.get(self.next)?;
        self.next += 1;
        Some(self.start.saturating_add(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Pattern;
    use crate::source::tests::departures;
    use proptest::prelude::*;

    fn capture(magic: u32, little_endian: bool, times: &[(u32, u32)]) -> Vec<u8> {
        let number = |n: u32| {
            if little_endian {
                n.to_le_bytes()
            } else {
                n.to_be_bytes()
            }
        };
        let mut bytes = number(magic).to_vec();
        bytes.extend([0; 20]);
        for (second, fraction) in times {
            for field in [*second, *fraction, 3, 1494] {
                bytes.extend(number(field));
            }
            bytes.extend([1, 2, 3]);
        }
        bytes
    }

    #[test]
    fn reads_both_byte_orders_and_both_resolutions() {
        for little_endian in [true, false] {
            let micro = capture(
                0xa1b2_c3d4,
                little_endian,
                &[(9, 999_999), (10, 1), (10, 0)],
            );
            let timeline = Timeline::read_pcap(micro.as_slice()).unwrap();
            let times = departures(
                Pattern::Replay(Replay::new(timeline)),
                Duration::from_secs(1),
                0,
            );
            assert_eq!(times, [0, 1_000, 2_000]);
            let nano = capture(0xa1b2_3c4d, little_endian, &[(9, 999_999_999), (10, 1)]);
            let timeline = Timeline::read_pcap(nano.as_slice()).unwrap();
            assert_eq!((timeline.packets(), timeline.span().nanos()), (2, 2));
        }
    }

    #[test]
    fn says_what_is_wrong_with_a_file() {
        let refused = |bytes: &[u8]| Timeline::read_pcap(bytes).unwrap_err().to_string();
        let mut whole = capture(0xa1b2_c3d4, true, &[(1, 0), (2, 0)]);
        let cut = whole.len() - 1;
        assert_eq!(
            refused(&whole[..cut]),
            "is damaged at packet 2: the file ends within it"
        );
        assert_eq!(
            refused(&whole[..24 + 19 + 4]),
            "is damaged at packet 2: the file ends within its header"
        );
        assert_eq!(
            refused(&whole[..24]),
            "holds 0 packets: at least two are needed to have a gap"
        );
        whole[24 + 11] = 0xff;
        assert_eq!(
            refused(&whole),
            "is damaged at packet 1: its length is above 262144 bytes"
        );
        assert!(refused(b"\x0a\x0d\x0d\x0a--------------------").contains("pcapng"));
        assert!(refused(b"GIF89a------------------").contains("not a capture file"));
        assert!(refused(b"").contains("cannot be read"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Timeline::read_pcap(bytes.as_slice());
            for (slot, byte) in bytes.iter_mut().zip(0xa1b2_c3d4u32.to_le_bytes()) {
                *slot = byte;
            }
            let _ = Timeline::read_pcap(bytes.as_slice());
        }
    }
}
