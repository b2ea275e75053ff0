//! Replay: the gaps of a recorded capture, and the lengths of its packets.
//!
//! Nothing else is taken from the capture, which may be of any kind that `slicewise-capture` reads.

use slicewise_capture::{CaptureError, CaptureFile, Incomplete};
use slicewise_units::{Duration, Instant};
use slicewise_wire::parse_frame;
use std::io::Read;
use std::sync::Arc;

/// Why the times of a capture cannot be used. Which file it is, the caller knows.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// Nothing of it can be read.
    #[error("{}{why}", at(*offset))]
    Unreadable {
        /// Bytes into the file (where compressed: into what it holds), where that is known.
        offset: Option<u64>,
        /// Description of the problem, of what was expected, and of the remedy.
        why: String,
    },
    /// It is damaged: the load would end too early, and nobody would notice.
    #[error(
        "{}{why}; it must be whole to be replayed: capture again, or keep the packets before with \
         `editcap IN OUT`",
        at(Some(*offset))
    )]
    Incomplete {
        /// Bytes into the file (where compressed: into what it holds).
        offset: u64,
        /// Description of the problem, and of what was expected.
        why: String,
    },
    /// Some of its packets have no time: they would be missing from the load.
    #[error(
        "holds {0} packets without a time (simple packet blocks): capture again with `tcpdump -w FILE`"
    )]
    WithoutTime(u64),
    /// It holds fewer than two packets.
    #[error("holds {0} packets: at least two are needed to have a gap")]
    TooShort(usize),
    /// A packet is longer than the link carries.
    #[error(
        "holds an IP packet of {longest} B, above the link's MTU of {mtu} B: it was captured before it was \
         segmented or after packets were merged; capture with offloads off (`ethtool -K INTERFACE gro off gso off \
         tso off`), raise `link.mtu`, or give the source a `payload`"
    )]
    AboveMtu {
        /// Its bytes from the IP header on.
        longest: u32,
        /// MTU of the link, bytes.
        mtu: u32,
    },
    /// It holds more packets than are kept.
    #[error(
        "holds more than {MAX_PACKETS} packets: cut it with `editcap -r IN OUT 1-{MAX_PACKETS}`"
    )]
    TooLong,
}

fn at(offset: Option<u64>) -> String {
    offset.map_or_else(String::new, |offset| format!("byte {offset}: "))
}

impl From<CaptureError> for ReplayError {
    fn from(CaptureError { offset, why, .. }: CaptureError) -> Self {
        Self::Unreadable { offset, why }
    }
}

impl From<&Incomplete> for ReplayError {
    fn from(Incomplete { offset, why, .. }: &Incomplete) -> Self {
        Self::Incomplete {
            offset: *offset,
            why: why.clone(),
        }
    }
}

/// Most packets a timeline keeps: a gigabyte.
pub const MAX_PACKETS: usize = 1 << 26;

/// When packets were captured, from the first one or the start of a source on, and how long they were;
/// shared by all runs that replay it.
#[derive(Debug, Clone)]
pub struct Timeline(Arc<[Recorded]>);

/// A packet of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Recorded {
    /// When it was captured.
    pub at: Duration,
    /// Bytes of its IP packet; where it is none, of the frame behind the link header.
    pub ip_bytes: u32,
}

impl Timeline {
    /// The packets of a capture: pcap or pcapng, plain or compressed. They are put in order of time.
    ///
    /// # Errors
    /// Where `input` fails, is no capture, is damaged, or holds too few or too many packets.
    pub fn read(input: impl Read + Send + 'static) -> Result<Self, ReplayError> {
        let mut file = CaptureFile::from_reader("", Box::new(input))?;
        let mut packets = Vec::new();
        while let Some(packet) = file.next_packet() {
            if packets.len() == MAX_PACKETS {
                return Err(ReplayError::TooLong);
            }
            let frame = parse_frame(packet.link, packet.bytes, packet.wire_bytes);
            let ip_bytes = (frame.l2_bytes).saturating_sub(u32::from(frame.headers.l3_offset));
            packets.push((packet.time_ns, ip_bytes));
        }
        let facts = file.facts();
        if let Some(incomplete) = &facts.incomplete {
            return Err(incomplete.into());
        }
        if facts.without_time > 0 {
            return Err(ReplayError::WithoutTime(facts.without_time));
        }
        Self::from_packets(packets)
    }

    /// Packets at the times given, ns from any origin, and their bytes from the IP header on. They are put
    /// in order of time.
    ///
    /// # Errors
    /// [`ReplayError::TooShort`] for fewer than two.
    pub fn from_packets(mut packets: Vec<(u64, u32)>) -> Result<Self, ReplayError> {
        // Of one moment they stay in the order of the file.
        packets.sort_by_key(|packet| packet.0);
        match packets.first().copied() {
            Some((first, _)) if packets.len() > 1 => {
                let recorded = packets.into_iter().map(|(at, ip_bytes)| Recorded {
                    at: Duration::from_nanos(at - first),
                    ip_bytes,
                });
                Ok(Self(recorded.collect()))
            }
            _ => Err(ReplayError::TooShort(packets.len())),
        }
    }

    /// The packets given, from the start of a source on, put in order of time.
    #[must_use]
    pub fn since_start(mut packets: Vec<Recorded>) -> Self {
        packets.sort_by_key(|packet| packet.at);
        Self(packets.into())
    }

    /// Bytes from the IP header on of the longest packet; 0 where there is none.
    #[must_use]
    pub fn longest(&self) -> u32 {
        self.0
            .iter()
            .map(|packet| packet.ip_bytes)
            .max()
            .unwrap_or(0)
    }

    /// Number of packets.
    #[must_use]
    pub fn packets(&self) -> usize {
        self.0.len()
    }

    /// Up to the last packet.
    #[must_use]
    pub fn span(&self) -> Duration {
        self.0.last().map_or(Duration::ZERO, |packet| packet.at)
    }
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

    pub(crate) fn begin(&mut self, at: Instant) {
        self.next = 0;
        self.start = at;
    }

    #[inline]
    pub(crate) fn next_departure(&mut self) -> Option<Instant> {
        let offset = self.timeline.0.get(self.next)?.at;
        self.next += 1;
        Some(self.start.saturating_add(offset))
    }

    /// Bytes of the packet that left last.
    pub(crate) fn recorded_bytes(&self) -> u32 {
        let last = self.next.checked_sub(1);
        let last = last.and_then(|last| self.timeline.0.get(last));
        last.map_or(0, |packet| packet.ip_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Pattern;
    use crate::source::tests::departures;
    use slicewise_capture::write::{PcapngParams, PcapngWriter};
    use std::io::Cursor;
    use std::path::Path;

    /// pcap with packets of three captured bytes.
    fn pcap(magic: u32, little_endian: bool, times: &[(u32, u32)]) -> Vec<u8> {
        let number = |n: u32| {
            if little_endian {
                n.to_le_bytes()
            } else {
                n.to_be_bytes()
            }
        };
        let version = if little_endian {
            [2, 0, 4, 0]
        } else {
            [0, 2, 0, 4]
        };
        let mut bytes = number(magic).to_vec();
        bytes.extend(version);
        for field in [0, 0, 96, 1] {
            bytes.extend(number(field));
        }
        for (second, fraction) in times {
            for field in [*second, *fraction, 3, 1494] {
                bytes.extend(number(field));
            }
            bytes.extend([1, 2, 3]);
        }
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Timeline, ReplayError> {
        Timeline::read(Cursor::new(bytes.to_vec()))
    }

    #[test]
    fn reads_both_byte_orders_and_both_resolutions() {
        for little_endian in [true, false] {
            let micro = pcap(
                0xa1b2_c3d4,
                little_endian,
                &[(9, 999_999), (10, 1), (10, 0)],
            );
            let times = departures(
                Pattern::Replay(Replay::new(read(&micro).unwrap())),
                Duration::from_secs(1),
                0,
            );
            assert_eq!(times, [0, 1_000, 2_000]);
            let nano = pcap(0xa1b2_3c4d, little_endian, &[(9, 999_999_999), (10, 1)]);
            let timeline = read(&nano).unwrap();
            assert_eq!((timeline.packets(), timeline.span().nanos()), (2, 2));
        }
    }

    #[test]
    fn the_same_packets_have_the_same_times_in_every_format() {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../capture/tests/golden");
        let timeline = |name: &str| {
            let file = std::fs::File::open(golden.join(name)).unwrap();
            Timeline::read(file).unwrap().0
        };
        let expected = timeline("ethernet.pcap");
        assert!(expected.len() > 2);
        for name in [
            "ethernet.pcapng",
            "ethernet.pcap.gz",
            "ethernet.pcap.zst",
            "big-endian.pcap",
            "snap-40.pcap",
        ] {
            assert_eq!(timeline(name), expected, "{name}");
        }
    }

    #[test]
    fn says_what_is_wrong_with_a_file_and_what_to_do() {
        let refused = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
        let mut whole = pcap(0xa1b2_c3d4, true, &[(1, 0), (2, 0)]);
        insta::assert_snapshot!(refused(&whole[..whole.len() - 1]), @"byte 43: the file ends after 18 of the 19 bytes of a packet; it must be whole to be replayed: capture again, or keep the packets before with `editcap IN OUT`");
        insta::assert_snapshot!(refused(&whole[..24 + 19 + 4]), @"byte 43: the file ends after 4 of the 16 bytes of a packet header; it must be whole to be replayed: capture again, or keep the packets before with `editcap IN OUT`");
        insta::assert_snapshot!(refused(&whole[..24 + 19]), @"holds 1 packets: at least two are needed to have a gap");
        whole[24 + 11] = 0xff;
        insta::assert_snapshot!(refused(&whole), @"byte 32: a packet header states 4278190083 captured bytes (at most 262144 are possible): the file is damaged from here on; it must be whole to be replayed: capture again, or keep the packets before with `editcap IN OUT`");
        insta::assert_snapshot!(refused(b"GIF89a\0\0"), @"byte 0: neither pcap nor pcapng: a capture begins with d4c3b2a1, a1b2c3d4, 4d3cb2a1, a1b23c4d or 0a0d0d0a, this file with 47494638");
        insta::assert_snapshot!(refused(b""), @"byte 0: the file is empty; leave it out, or capture again");
    }

    #[test]
    fn a_capture_of_which_some_packets_have_no_time_is_refused() {
        let params = PcapngParams {
            comment: "",
            application: "",
            interface: "",
            snap_bytes: 96,
        };
        let mut writer = PcapngWriter::new(Vec::new(), &params).unwrap();
        writer.write_packet(1, &[0; 20], 20).unwrap();
        writer.write_packet(2, &[0; 20], 20).unwrap();
        let mut bytes = writer.finish().unwrap();
        assert_eq!(read(&bytes).unwrap().packets(), 2);
        // A simple packet block: its type, its length, the packet's, the packet, its length.
        for field in [3u32, 20, 4, 0, 20] {
            bytes.extend(field.to_le_bytes());
        }
        assert!(matches!(read(&bytes), Err(ReplayError::WithoutTime(1))));
    }
}
