//! Classic pcap with timestamps in nanoseconds (draft-ietf-opsawg-pcap), little-endian.

use super::{Gathered, LINKTYPE_ETHERNET, snapped};
use std::io::{self, Write};

/// Writes Ethernet frames.
#[derive(Debug)]
pub struct PcapWriter<W> {
    gathered: Gathered<W>,
    snap_bytes: u32,
}

impl<W: Write> PcapWriter<W> {
    /// Begin a file that keeps no more than `snap_bytes` bytes of a frame.
    ///
    /// # Errors
    /// None now; write errors are reported by [`Self::write_packet`] and [`Self::finish`].
    pub fn new(output: W, snap_bytes: u32) -> io::Result<Self> {
        let mut gathered = Gathered::new(output);
        gathered.put_u32(NANOSECOND_MAGIC);
        // Version 2.4; time zone and accuracy are unused.
        gathered.put_u16(2);
        gathered.put_u16(4);
        gathered.put_u32(0);
        gathered.put_u32(0);
        gathered.put_u32(snap_bytes);
        gathered.put_u32(LINKTYPE_ETHERNET.into());
        Ok(Self {
            gathered,
            snap_bytes,
        })
    }

    /// Write a frame of `wire_bytes` bytes, of which `frame` holds the first; no more than the
    /// snap length are kept. `time_ns` is in nanoseconds since the epoch: 2106 is the last year.
    ///
    /// # Errors
    /// Where the output cannot be written.
    #[inline]
    pub fn write_packet(&mut self, time_ns: u64, frame: &[u8], wire_bytes: u32) -> io::Result<()> {
        let (kept, kept_bytes) = snapped(frame, self.snap_bytes);
        let seconds = u32::try_from(time_ns / NANOS_PER_SECOND).unwrap_or(u32::MAX);
        // Below 10⁹.
        let nanos = u32::try_from(time_ns % NANOS_PER_SECOND).unwrap_or(0);
        let gathered = &mut self.gathered;
        gathered.put_u32(seconds);
        gathered.put_u32(nanos);
        gathered.put_u32(kept_bytes);
        gathered.put_u32(wire_bytes);
        gathered.bytes.extend_from_slice(kept);
        gathered.hand_on()
    }

    /// Flush and return the output.
    ///
    /// # Errors
    /// Where the output cannot be written.
    pub fn finish(self) -> io::Result<W> {
        self.gathered.finish()
    }
}

const NANOSECOND_MAGIC: u32 = 0xa1b2_3c4d;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_the_draft_says_byte_by_byte() {
        let mut writer = PcapWriter::new(Vec::new(), 4).unwrap();
        writer.write_packet(3_000_000_005, &[0xaa; 6], 60).unwrap();
        let bytes = writer.finish().unwrap();
        let head = [
            0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0,
        ];
        assert_eq!(bytes[..24], head);
        let packet = [
            3, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0, 0, 60, 0, 0, 0, 0xaa, 0xaa, 0xaa, 0xaa,
        ];
        assert_eq!(bytes[24..], packet);
    }
}
