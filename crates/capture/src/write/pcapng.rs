//! pcapng: one section, one Ethernet interface, enhanced packet blocks.
//!
//! The format is that of draft-ietf-opsawg-pcapng. Everything is written in little-endian order.

use super::{Gathered, LINKTYPE_ETHERNET, snapped};
use std::io::{self, Write};

/// File header fields.
#[derive(Debug, Clone, Copy)]
pub struct PcapngParams<'a> {
    /// Comment on the file as a whole (`opt_comment` of the section header); empty for none.
    pub comment: &'a str,
    /// Name of the writing program (`shb_userappl`); empty for none.
    pub application: &'a str,
    /// Name of the interface captured on (`if_name`); empty for none.
    pub interface: &'a str,
    /// Most bytes stored per frame.
    pub snap_bytes: u32,
}

/// Writes Ethernet frames of one interface.
#[derive(Debug)]
pub struct PcapngWriter<W> {
    gathered: Gathered<W>,
    snap_bytes: u32,
}

impl<W: Write> PcapngWriter<W> {
    /// Begin a file.
    ///
    /// # Errors
    /// None now; write errors are reported by [`Self::write_packet`] and [`Self::finish`].
    pub fn new(output: W, params: &PcapngParams<'_>) -> io::Result<Self> {
        let mut gathered = Gathered::new(output);
        block(&mut gathered, SECTION_HEADER, |head| {
            head.put_u32(BYTE_ORDER_MAGIC);
            // Version 1.0; a section of unknown length, two words of ones.
            head.put_u16(1);
            head.put_u16(0);
            head.put_u32(u32::MAX);
            head.put_u32(u32::MAX);
            option(head, OPT_COMMENT, params.comment.as_bytes());
            option(head, SHB_USERAPPL, params.application.as_bytes());
            end_of_options(head);
        });
        block(&mut gathered, INTERFACE_DESCRIPTION, |head| {
            head.put_u16(LINKTYPE_ETHERNET);
            head.put_u16(0);
            head.put_u32(params.snap_bytes);
            option(head, IF_NAME, params.interface.as_bytes());
            option(head, IF_TSRESOL, &[NANOSECONDS]);
            end_of_options(head);
        });
        gathered.hand_on()?;
        Ok(Self {
            gathered,
            snap_bytes: params.snap_bytes,
        })
    }

    /// Write a frame of `wire_bytes` bytes, of which `frame` holds the first; no more than the
    /// snap length are kept. `time_ns` is in nanoseconds since the epoch.
    ///
    /// # Errors
    /// Where the output cannot be written.
    #[inline]
    pub fn write_packet(&mut self, time_ns: u64, frame: &[u8], wire_bytes: u32) -> io::Result<()> {
        let (kept, kept_bytes) = snapped(frame, self.snap_bytes);
        let total_bytes = PACKET_OVERHEAD_BYTES + kept_bytes.next_multiple_of(4);
        let gathered = &mut self.gathered;
        gathered.put_u32(ENHANCED_PACKET);
        gathered.put_u32(total_bytes);
        gathered.put_u32(0);
        let [low, high] = halves(time_ns);
        gathered.put_u32(high);
        gathered.put_u32(low);
        gathered.put_u32(kept_bytes);
        gathered.put_u32(wire_bytes);
        gathered.put_padded(kept);
        gathered.put_u32(total_bytes);
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

/// A block: its type, and its length before and after what `body` writes.
fn block<W: Write>(to: &mut Gathered<W>, kind: u32, body: impl FnOnce(&mut Gathered<W>)) {
    let start = to.bytes.len();
    to.put_u32(kind);
    to.put_u32(0);
    body(to);
    // Options are limited to 64 KiB each.
    let length = u32::try_from(to.bytes.len() - start + 4).unwrap_or(u32::MAX);
    to.put_u32(length);
    if let Some(place) = to.bytes.get_mut(start + 4..start + 8) {
        place.copy_from_slice(&length.to_le_bytes());
    }
}

/// An option; omitted if empty. Text longer than an option can hold is truncated.
fn option<W: Write>(to: &mut Gathered<W>, code: u16, value: &[u8]) {
    if value.is_empty() {
        return;
    }
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
    to.put_u16(code);
    to.put_u16(length);
    to.put_padded(value.get(..usize::from(length)).unwrap_or(value));
}

fn end_of_options<W: Write>(to: &mut Gathered<W>) {
    to.put_u32(0);
}

/// Low and high half.
#[expect(clippy::cast_possible_truncation, reason = "halves are meant")]
const fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// An enhanced packet block without the frame.
const PACKET_OVERHEAD_BYTES: u32 = 32;
const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
/// Timestamps in units of 10⁻⁹ s.
const NANOSECONDS: u8 = 9;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    fn words(bytes: &[u8]) -> String {
        let mut text = String::new();
        for line in bytes.chunks(16) {
            for word in line.chunks(4) {
                for byte in word {
                    write!(text, "{byte:02x}").unwrap();
                }
                text.push(' ');
            }
            text = text.trim_end().to_owned() + "\n";
        }
        text
    }

    #[test]
    fn a_file_is_what_the_draft_says_byte_by_byte() {
        let params = PcapngParams {
            comment: "hello",
            application: "slicewise",
            interface: "tx0",
            snap_bytes: 8,
        };
        let mut writer = PcapngWriter::new(Vec::new(), &params).unwrap();
        let time_ns = 0x0102_0304_0506_0708;
        writer.write_packet(time_ns, &[0xaa; 6], 6).unwrap();
        writer.write_packet(time_ns + 1, &[0xbb; 10], 1500).unwrap();
        let bytes = writer.finish().unwrap();
        insta::assert_snapshot!(words(&bytes), @r"
        0a0d0d0a 3c000000 4d3c2b1a 01000000
        ffffffff ffffffff 01000500 68656c6c
        6f000000 04000900 736c6963 65776973
        65000000 00000000 3c000000 01000000
        28000000 01000000 08000000 02000300
        74783000 09000100 09000000 00000000
        28000000 06000000 28000000 00000000
        04030201 08070605 06000000 06000000
        aaaaaaaa aaaa0000 28000000 06000000
        28000000 00000000 04030201 09070605
        08000000 dc050000 bbbbbbbb bbbbbbbb
        28000000
        ");
    }

    #[test]
    fn empty_text_writes_no_option() {
        let params = PcapngParams {
            comment: "",
            application: "",
            interface: "",
            snap_bytes: 0,
        };
        let writer = PcapngWriter::new(Vec::new(), &params).unwrap();
        assert_eq!(writer.finish().unwrap().len(), 32 + 32);
    }
}
