//! Writes capture files: pcapng and classic pcap, Ethernet frames with timestamps in nanoseconds.
//!
//! Writers buffer their output themselves.

mod pcap;
mod pcapng;

pub use pcap::PcapWriter;
pub use pcapng::{PcapngParams, PcapngWriter};

use std::io::{self, Write};

/// Output is flushed in pieces of this size.
const PIECE_BYTES: usize = 1 << 16;

/// Buffered output.
#[derive(Debug)]
struct Gathered<W> {
    output: W,
    bytes: Vec<u8>,
}

impl<W: Write> Gathered<W> {
    fn new(output: W) -> Self {
        Self {
            output,
            bytes: Vec::with_capacity(PIECE_BYTES + 4096),
        }
    }

    #[inline]
    fn put_u16(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    #[inline]
    fn put_u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Bytes, padded with zeros to a multiple of four.
    #[inline]
    fn put_padded(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let padding = bytes.len().next_multiple_of(4) - bytes.len();
        self.bytes.extend_from_slice(&[0; 3][..padding]);
    }

    /// Between two packets: flush if long enough.
    #[inline]
    fn hand_on(&mut self) -> io::Result<()> {
        if self.bytes.len() < PIECE_BYTES {
            return Ok(());
        }
        self.hand_on_all()
    }

    #[cold]
    fn hand_on_all(&mut self) -> io::Result<()> {
        let result = self.output.write_all(&self.bytes);
        self.bytes.clear();
        result
    }

    fn finish(mut self) -> io::Result<W> {
        self.hand_on_all()?;
        self.output.flush()?;
        Ok(self.output)
    }
}

/// At most `snap_bytes` bytes of a frame, and their number.
#[inline]
fn snapped(frame: &[u8], snap_bytes: u32) -> (&[u8], u32) {
    let length = u32::try_from(frame.len())
        .unwrap_or(u32::MAX)
        .min(snap_bytes);
    (frame.get(..length as usize).unwrap_or(frame), length)
}

/// Number of Ethernet in both file formats.
const LINKTYPE_ETHERNET: u16 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails once it has taken `room` bytes.
    struct Full {
        room: usize,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.len() > self.room {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room -= bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_reported_by_finish_at_the_latest() {
        let mut writer = PcapWriter::new(Full { room: 100 }, 96).unwrap();
        for _ in 0..10 {
            writer.write_packet(0, &[0; 60], 60).unwrap();
        }
        assert_eq!(
            writer.finish().err().unwrap().kind(),
            io::ErrorKind::StorageFull
        );
        let mut writer = PcapWriter::new(Full { room: 100 }, 96).unwrap();
        let failed = (0..10_000).any(|_| writer.write_packet(0, &[0; 60], 60).is_err());
        assert!(failed, "and as soon as a piece is flushed");
    }
}
