//! One capture file: pcap or pcapng, compressed or not, read once from its beginning.

mod buffer;
mod facts;
mod input;
mod options;
mod pcap;
mod pcapng;
mod zstd;

use crate::Direction;
use crate::error::{CaptureError, Damage, Incomplete};
use buffer::Buffer;
pub use facts::{Backwards, FileFacts, Interface, TimeFacts, WrongStamp};
use input::Input;
pub use input::Progress;
pub(crate) use input::is_stdin;
use pcap::Pcap;
use pcapng::Pcapng;
use slicewise_wire::LinkType;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// The most bytes per packet: tcpdump's largest snap length. A record that states more is damaged.
pub const MOST_CAPTURED_BYTES: usize = 256 << 10;

/// Bytes per read: large enough to make the cost of a system call negligible, small enough for the
/// second-level cache.
pub(crate) const BUFFER_BYTES: usize = 512 << 10;

/// One packet as it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedPacket<'a> {
    /// Nanoseconds since the epoch, by the clock of the capturing host.
    pub time_ns: u64,
    /// Link type of `bytes`.
    pub link: LinkType,
    /// Bytes of the frame on the wire, counted from the start of `bytes`.
    pub wire_bytes: u32,
    /// The captured bytes: the first of the frame, or all.
    pub bytes: &'a [u8],
    /// Index among [`FileFacts::interfaces`].
    pub interface: u32,
    /// Direction, where the capture states it.
    pub direction: Direction,
}

/// A packet whose bytes are still in the window of its file.
#[derive(Clone, Copy)]
pub(crate) struct Record {
    pub time_ns: u64,
    start: usize,
    captured_bytes: u32,
    pub wire_bytes: u32,
    pub link: LinkType,
    pub direction: Direction,
    pub interface: u32,
}

impl Record {
    const NONE: Self = Self {
        time_ns: 0,
        start: 0,
        captured_bytes: 0,
        wire_bytes: 0,
        link: LinkType::ETHERNET,
        direction: Direction::Unknown,
        interface: 0,
    };
}

enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

/// A capture file that is being read.
pub struct CaptureFile {
    buffer: Buffer,
    format: Format,
    facts: FileFacts,
    /// The last packet reported.
    record: Record,
    last_time_ns: u64,
    last_link: Option<LinkType>,
    is_at_end: bool,
}

impl CaptureFile {
    /// Opens a file, or standard input for `-`.
    ///
    /// # Errors
    /// If it cannot be opened, is a directory, is empty, or is neither pcap nor pcapng.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        Self::open_with(path, &Arc::default(), BUFFER_BYTES)
    }

    pub(crate) fn open_with(
        path: &Path,
        progress: &Arc<Progress>,
        buffer_bytes: usize,
    ) -> Result<Self, CaptureError> {
        Self::begin(Input::open(path, progress)?, buffer_bytes)
    }

    /// Reads a capture from any reader. `name` is its name in messages.
    ///
    /// # Errors
    /// As [`CaptureFile::open`].
    pub fn from_reader(name: &str, source: Box<dyn Read + Send>) -> Result<Self, CaptureError> {
        let input = Input::from_reader(name.into(), source, &Arc::default());
        let input = input.map_err(|error| CaptureError {
            file: name.into(),
            offset: None,
            why: format!("cannot be read: {error}"),
        })?;
        Self::begin(input, BUFFER_BYTES)
    }

    fn begin(input: Input, buffer_bytes: usize) -> Result<Self, CaptureError> {
        let mut buffer = Buffer::new(input.source, buffer_bytes);
        let mut facts = FileFacts::new(input.name);
        match open_format(&mut buffer, &mut facts) {
            Ok(format) => Ok(Self {
                buffer,
                format,
                facts,
                record: Record::NONE,
                last_time_ns: 0,
                last_link: None,
                is_at_end: false,
            }),
            Err(Damage { offset, why }) => Err(CaptureError {
                file: facts.name,
                offset: Some(offset),
                why,
            }),
        }
    }

    /// The next packet, or `None` at the end of the file or at damage, which [`FileFacts::incomplete`]
    /// then reports. Bounded: reads as far as the next packet.
    pub fn next_packet(&mut self) -> Option<CapturedPacket<'_>> {
        if !self.advance() {
            return None;
        }
        let record = &self.record;
        Some(CapturedPacket {
            time_ns: record.time_ns,
            link: record.link,
            wire_bytes: record.wire_bytes,
            bytes: self.bytes(),
            interface: record.interface,
            direction: record.direction,
        })
    }

    /// Returns the facts about the part that was read so far.
    #[must_use]
    pub fn facts(&self) -> &FileFacts {
        &self.facts
    }

    pub(crate) fn into_facts(self) -> FileFacts {
        self.facts
    }

    /// Advances to the next packet: [`CaptureFile::record`], [`CaptureFile::bytes`]. False at the end.
    #[inline]
    pub(crate) fn advance(&mut self) -> bool {
        if self.is_at_end {
            return false;
        }
        let offset = self.buffer.offset();
        let Self { buffer, record, .. } = self;
        let next = match &mut self.format {
            Format::Pcap(pcap) => pcap.next_record(buffer, record),
            Format::Pcapng(pcapng) => pcapng.next_record(buffer, &mut self.facts, record),
        };
        if let Ok(true) = next {
            self.count(offset);
            return true;
        }
        self.finish(next.err());
        false
    }

    /// The packet [`CaptureFile::advance`] went to.
    #[inline]
    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    /// Its bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        let Record {
            start,
            captured_bytes,
            ..
        } = self.record;
        self.buffer.at(start, captured_bytes as usize)
    }

    #[inline]
    fn count(&mut self, offset: u64) {
        let facts = &mut self.facts;
        let record = &self.record;
        facts.packets += 1;
        facts.captured_bytes += u64::from(record.captured_bytes);
        facts.wire_bytes += u64::from(record.wire_bytes);
        if record.time_ns < self.last_time_ns {
            facts
                .backwards
                .on_step(self.last_time_ns - record.time_ns, offset);
        }
        self.last_time_ns = record.time_ns;
        if self.last_link != Some(record.link) {
            self.last_link = Some(record.link);
            facts.on_link(record.link);
        }
        if matches!(record.link, LinkType::LINUX_SLL | LinkType::LINUX_SLL2)
            && record.direction == Direction::Unknown
        {
            self.record.direction = cooked_direction(self.record.link, self.bytes());
        }
    }

    #[cold]
    fn finish(&mut self, damage: Option<Damage>) {
        self.is_at_end = true;
        self.facts.incomplete = damage.map(|Damage { offset, why }| Incomplete {
            file: self.facts.name.clone(),
            offset,
            why,
        });
    }
}

fn cooked_direction(link: LinkType, bytes: &[u8]) -> Direction {
    match link.cooked_packet_type(bytes) {
        Some(4) => Direction::Outbound,
        Some(0..=3) => Direction::Inbound,
        _ => Direction::Unknown,
    }
}

fn open_format(buffer: &mut Buffer, facts: &mut FileFacts) -> Result<Format, Damage> {
    buffer.has(LONGEST_MAGIC_BYTES);
    let ahead = buffer.ahead();
    if ahead.is_empty() {
        buffer.end()?;
        return Err(Damage::new(
            0,
            "the file is empty; leave it out, or capture again",
        ));
    }
    let Some(&magic) = ahead.first_chunk::<4>() else {
        return Err(Damage::new(0, not_a_capture(ahead)));
    };
    if Pcap::is_magic(magic) {
        let pcap = Pcap::open(buffer)?;
        facts.interfaces.push(Interface {
            name: None,
            link: pcap.link,
            snap_bytes: pcap.snap_bytes,
            resolution_ns: pcap.unit_ns.into(),
            dropped: None,
        });
        return Ok(Format::Pcap(pcap));
    }
    if u32::from_be_bytes(magic) == pcapng::SECTION {
        return Pcapng::open(buffer, facts).map(Format::Pcapng);
    }
    Err(Damage::new(0, not_a_capture(ahead)))
}

const LONGEST_MAGIC_BYTES: usize = 64;

/// Identifies a file that is neither pcap nor pcapng by its first bytes.
fn not_a_capture(ahead: &[u8]) -> String {
    let known: [(&[u8], &str); 7] = [
        (
            b"\xfd7zXZ",
            "compressed by xz; decompress it first with `unxz`",
        ),
        (
            b"BZh",
            "compressed by bzip2; decompress it first with `bunzip2`",
        ),
        (
            b"\x04\x22\x4d\x18",
            "compressed by lz4; decompress it first with `unlz4`",
        ),
        (b"PK\x03\x04", "a zip archive; extract the captures from it"),
        (
            b"snoop\0",
            "a snoop capture; convert it with `editcap -F pcapng IN OUT`",
        ),
        (
            b"GMBU",
            "a Microsoft Network Monitor capture; convert it with `editcap -F pcapng IN OUT`",
        ),
        (
            b"RTSS",
            "a Microsoft Network Monitor capture; convert it with `editcap -F pcapng IN OUT`",
        ),
    ];
    let named = known.iter().find(|(magic, _)| ahead.starts_with(magic));
    if let Some((_, what)) = named {
        return format!("neither pcap nor pcapng, but {what}");
    }
    let is_text = ahead
        .iter()
        .all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace());
    if is_text {
        return "neither pcap nor pcapng, but text; capture with `tcpdump -w FILE`, which writes \
                pcap"
            .into();
    }
    let magic: Vec<String> = ahead.iter().take(4).map(|b| format!("{b:02x}")).collect();
    format!(
        "neither pcap nor pcapng: a capture begins with d4c3b2a1, a1b2c3d4, 4d3cb2a1, a1b23c4d or \
         0a0d0d0a, this file with {}",
        magic.concat()
    )
}
