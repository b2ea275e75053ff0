//! Classic pcap: a header of 24 bytes, then records of 16 bytes and the captured bytes
//! (draft-ietf-opsawg-pcap).

use super::buffer::Buffer;
use super::{MOST_CAPTURED_BYTES, Record};
use crate::Direction;
use crate::error::Damage;
use slicewise_wire::LinkType;

const HEADER_BYTES: usize = 24;
const RECORD_BYTES: usize = 16;
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const MODIFIED: u32 = 0xa1b2_cd34;

pub(super) struct Pcap {
    big_endian: bool,
    /// Nanoseconds per unit of the fractional part of a timestamp.
    pub unit_ns: u32,
    pub link: LinkType,
    pub snap_bytes: u32,
}

/// Byte order of a classic pcap file, if `magic`, its first four bytes, is one.
fn variant(magic: [u8; 4]) -> Option<(u32, bool)> {
    [false, true].into_iter().find_map(|big_endian| {
        let number = number(magic, big_endian);
        matches!(number, MICROSECONDS | NANOSECONDS | MODIFIED).then_some((number, big_endian))
    })
}

impl Pcap {
    pub fn is_magic(magic: [u8; 4]) -> bool {
        variant(magic).is_some()
    }

    /// Reads the header of the file.
    pub fn open(buffer: &mut Buffer) -> Result<Self, Damage> {
        if !buffer.has(HEADER_BYTES) {
            return Err(buffer.ends_within("the pcap header", HEADER_BYTES as u64));
        }
        let Some(b) = buffer.ahead().first_chunk::<HEADER_BYTES>() else {
            return Err(buffer.ends_within("the pcap header", HEADER_BYTES as u64));
        };
        let (magic, big_endian) =
            variant([b[0], b[1], b[2], b[3]]).unwrap_or((MICROSECONDS, false));
        if magic == MODIFIED {
            let why = "a pcap file of the modified kind (magic a1b2cd34), whose records are longer; \
                       convert it with `editcap -F pcap IN OUT`";
            return Err(Damage::new(0, why));
        }
        let short = |at: usize| {
            let bytes = [b[at], b[at + 1]];
            if big_endian {
                u16::from_be_bytes(bytes)
            } else {
                u16::from_le_bytes(bytes)
            }
        };
        let (major, minor) = (short(4), short(6));
        if (major, minor) != (2, 4) {
            let why = format!(
                "unsupported pcap version {major}.{minor} (expected 2.4); convert it with \
                 `editcap -F pcap IN OUT`"
            );
            return Err(Damage::new(4, why));
        }
        let snap_bytes = number([b[16], b[17], b[18], b[19]], big_endian);
        // The upper half of the field describes frame check sequences.
        let link = number([b[20], b[21], b[22], b[23]], big_endian) & 0xffff;
        buffer.pass(HEADER_BYTES);
        Ok(Self {
            big_endian,
            unit_ns: if magic == NANOSECONDS { 1 } else { 1_000 },
            link: LinkType(u16::try_from(link).unwrap_or(u16::MAX)),
            snap_bytes,
        })
    }

    #[inline]
    pub fn next_record(
        &mut self,
        buffer: &mut Buffer,
        record: &mut Record,
    ) -> Result<bool, Damage> {
        let Some((header, behind)) = buffer.ahead().split_first_chunk() else {
            return self.next_beyond_window(buffer, record);
        };
        let [seconds, fraction, captured_bytes, wire_bytes] = self.words(header);
        let captured = captured_bytes as usize;
        if captured > behind.len().min(MOST_CAPTURED_BYTES) || wire_bytes == 0 {
            return self.next_beyond_window(buffer, record);
        }
        let start = buffer.pass(RECORD_BYTES + captured) + RECORD_BYTES;
        *record = Record {
            time_ns: u64::from(seconds) * 1_000_000_000
                + u64::from(fraction) * u64::from(self.unit_ns),
            start,
            captured_bytes,
            wire_bytes: wire_bytes.max(captured_bytes),
            link: self.link,
            direction: Direction::Unknown,
            interface: 0,
        };
        Ok(true)
    }

    /// The next record is not completely in the window, or is damaged.
    #[cold]
    #[inline(never)]
    fn next_beyond_window(
        &mut self,
        buffer: &mut Buffer,
        record: &mut Record,
    ) -> Result<bool, Damage> {
        buffer.has(RECORD_BYTES);
        let Some(header) = buffer.ahead().first_chunk() else {
            if buffer.ahead().is_empty() {
                return buffer.end().map(|()| false);
            }
            return Err(buffer.ends_within("a packet header", RECORD_BYTES as u64));
        };
        let [_, _, captured_bytes, wire_bytes] = self.words(header);
        let captured = captured_bytes as usize;
        if captured > MOST_CAPTURED_BYTES || wire_bytes == 0 {
            return Err(self.damaged(buffer.offset(), captured_bytes));
        }
        if !buffer.has(RECORD_BYTES + captured) {
            return Err(buffer.ends_within("a packet", RECORD_BYTES as u64 + captured as u64));
        }
        self.next_record(buffer, record)
    }

    /// The four words before a packet.
    #[inline]
    fn words(&self, bytes: &[u8; RECORD_BYTES]) -> [u32; 4] {
        let words = bytes.as_chunks().0;
        let mut numbers = [0; 4];
        if self.big_endian {
            for (number, word) in numbers.iter_mut().zip(words) {
                *number = u32::from_be_bytes(*word);
            }
        } else {
            for (number, word) in numbers.iter_mut().zip(words) {
                *number = u32::from_le_bytes(*word);
            }
        }
        numbers
    }

    #[cold]
    fn damaged(&self, offset: u64, captured_bytes: u32) -> Damage {
        if captured_bytes as usize > MOST_CAPTURED_BYTES {
            let why = format!(
                "a packet header states {captured_bytes} captured bytes (at most \
                 {MOST_CAPTURED_BYTES} are possible): the file is damaged from here on"
            );
            return Damage::new(offset + 8, why);
        }
        let why = "a packet header states 0 bytes on the wire: the file is damaged from here on, \
                   or writing it was never finished";
        Damage::new(offset + 12, why)
    }
}

#[inline]
fn number(bytes: [u8; 4], big_endian: bool) -> u32 {
    let number = u32::from_le_bytes(bytes);
    if big_endian {
        number.swap_bytes()
    } else {
        number
    }
}
