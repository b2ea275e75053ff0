//! pcapng: blocks in sections, each with its own byte order (draft-ietf-opsawg-pcapng). Packets are read
//! from enhanced packet blocks and the obsolete packet blocks; simple packet blocks have no timestamp
//! and are only counted.

use super::buffer::{Buffer, MOST_NEEDED_BYTES};
use super::options::{self, Field};
use super::{FileFacts, Interface, MOST_CAPTURED_BYTES, Record};
use crate::Direction;
use crate::error::Damage;
use slicewise_wire::LinkType;

pub(super) const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Type and length in front, length again at the end.
const FRAME_BYTES: usize = 12;
/// Before the captured bytes of a packet block.
const PACKET_HEADER_BYTES: usize = 28;
/// Interfaces of one file.
const MOST_INTERFACES: usize = 1 << 16;
/// Comments of sections that are kept.
const MOST_COMMENTS: usize = 64;
const MOST_COMMENT_BYTES: usize = 16 << 10;
const MOST_NAME_BYTES: usize = 256;

#[derive(Default)]
pub(super) struct Pcapng {
    big_endian: bool,
    /// Over all sections of the file.
    clocks: Vec<Clock>,
    /// The first interface of this section.
    section_begins: usize,
}

/// Timestamp format of an interface.
struct Clock {
    link: LinkType,
    /// Nanoseconds per unit of time, where that is an integer that fits; else 0.
    unit_ns: u32,
    /// The resolution as the file states it: the exponent, its top bit set for powers of two.
    resolution: u8,
    offset_ns: i64,
}

impl Clock {
    #[inline]
    fn time_ns(&self, units: u64) -> u64 {
        let time_ns = match units.checked_mul(self.unit_ns.into()) {
            Some(time_ns) if self.unit_ns != 0 => time_ns,
            _ => self.scaled(units),
        };
        time_ns.saturating_add_signed(self.offset_ns)
    }

    #[cold]
    fn scaled(&self, units: u64) -> u64 {
        let exponent = u32::from(self.resolution & 0x7f);
        let nanoseconds = u128::from(units) * 1_000_000_000;
        let time_ns = if self.resolution & 0x80 != 0 {
            nanoseconds >> exponent
        } else {
            10u128
                .checked_pow(exponent)
                .map_or(0, |unit| nanoseconds / unit)
        };
        u64::try_from(time_ns).unwrap_or(u64::MAX)
    }
}

/// Field positions that differ between the two kinds of packet block.
struct PacketBlock {
    interface: usize,
    bytes: usize,
}

impl Pcapng {
    /// Reads the first section's header.
    pub fn open(buffer: &mut Buffer, facts: &mut FileFacts) -> Result<Self, Damage> {
        let mut file = Self::default();
        file.section(buffer, facts)?;
        Ok(file)
    }

    #[inline]
    pub fn next_record(
        &mut self,
        buffer: &mut Buffer,
        facts: &mut FileFacts,
        record: &mut Record,
    ) -> Result<bool, Damage> {
        loop {
            if !buffer.has(FRAME_BYTES) {
                if buffer.ahead().is_empty() {
                    return buffer.end().map(|()| false);
                }
                return Err(buffer.ends_within("a block", FRAME_BYTES as u64));
            }
            let Some(&[a, b, c, d, e, f, g, h]) = buffer.ahead().first_chunk() else {
                return Ok(false);
            };
            let kind = self.number([a, b, c, d]);
            let bytes = self.number([e, f, g, h]);
            if kind == ENHANCED_PACKET {
                *record = self.enhanced(buffer, bytes)?;
                return Ok(true);
            }
            if let Some(obsolete) = self.other(buffer, facts, kind, bytes)? {
                *record = obsolete;
                return Ok(true);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn other(
        &mut self,
        buffer: &mut Buffer,
        facts: &mut FileFacts,
        kind: u32,
        bytes: u32,
    ) -> Result<Option<Record>, Damage> {
        match kind {
            SECTION => self.section(buffer, facts)?,
            INTERFACE => self.interface(buffer, facts, bytes)?,
            STATISTICS => self.statistics(buffer, facts, bytes)?,
            OBSOLETE_PACKET => return self.obsolete(buffer, bytes).map(Some),
            _ => {
                let offset = buffer.offset();
                check_length(offset, bytes)?;
                if !buffer.skip(bytes.into()) {
                    let why = format!("the file ends within a block of {bytes} bytes");
                    return Err(buffer.end().err().unwrap_or(Damage::new(offset, why)));
                }
                facts.without_time += u64::from(kind == SIMPLE_PACKET);
            }
        }
        Ok(None)
    }

    #[inline]
    fn enhanced(&self, buffer: &mut Buffer, bytes: u32) -> Result<Record, Damage> {
        let bytes = whole_block(buffer, bytes, PACKET_HEADER_BYTES + 4, "a packet block")?;
        let Some(b) = buffer.ahead().first_chunk::<PACKET_HEADER_BYTES>() else {
            return Err(buffer.ends_within("a packet block", bytes as u64));
        };
        let interface = self.number([b[8], b[9], b[10], b[11]]) as usize;
        self.packet(buffer, &PacketBlock { interface, bytes })
    }

    fn obsolete(&self, buffer: &mut Buffer, bytes: u32) -> Result<Record, Damage> {
        let bytes = whole_block(buffer, bytes, PACKET_HEADER_BYTES + 4, "a packet block")?;
        let Some(b) = buffer.ahead().first_chunk::<PACKET_HEADER_BYTES>() else {
            return Err(buffer.ends_within("a packet block", bytes as u64));
        };
        let interface = self.short([b[8], b[9]]).into();
        self.packet(buffer, &PacketBlock { interface, bytes })
    }

    /// A block in the window, up to its trailing length.
    #[inline]
    fn packet(&self, buffer: &mut Buffer, block: &PacketBlock) -> Result<Record, Damage> {
        let offset = buffer.offset();
        let ahead = buffer.ahead();
        let Some(b) = ahead.first_chunk::<PACKET_HEADER_BYTES>() else {
            return Err(buffer.ends_within("a packet block", block.bytes as u64));
        };
        let high = self.number([b[12], b[13], b[14], b[15]]);
        let low = self.number([b[16], b[17], b[18], b[19]]);
        let captured_bytes = self.number([b[20], b[21], b[22], b[23]]);
        let wire_bytes = self.number([b[24], b[25], b[26], b[27]]);
        let captured = captured_bytes as usize;
        let body_ends = block.bytes - 4;
        if captured > MOST_CAPTURED_BYTES || PACKET_HEADER_BYTES + captured > body_ends {
            return Err(too_many_captured(offset, captured_bytes, block.bytes));
        }
        let Some(clock) = self.clocks.get(self.section_begins + block.interface) else {
            return Err(self.no_interface(offset, block.interface));
        };
        let options_at = PACKET_HEADER_BYTES + captured.next_multiple_of(4);
        let direction = if options_at + 4 <= body_ends {
            self.direction(ahead.get(options_at..body_ends).unwrap_or_default())
        } else {
            Direction::Unknown
        };
        let start = buffer.pass(block.bytes) + PACKET_HEADER_BYTES;
        Ok(Record {
            time_ns: clock.time_ns(u64::from(high) << 32 | u64::from(low)),
            start,
            captured_bytes,
            wire_bytes: wire_bytes.max(captured_bytes),
            link: clock.link,
            direction,
            interface: u32::try_from(self.section_begins + block.interface).unwrap_or(u32::MAX),
        })
    }

    #[cold]
    fn no_interface(&self, offset: u64, interface: usize) -> Damage {
        let described = self.clocks.len() - self.section_begins;
        let why = format!(
            "a packet refers to interface {interface}, but only {described} interfaces were \
             described before it: its link type and time unit are unknown"
        );
        Damage::new(offset, why)
    }

    /// The lowest two bits of a packet's flags.
    fn direction(&self, bytes: &[u8]) -> Direction {
        let mut direction = Direction::Unknown;
        options::each(bytes, self.big_endian, |field| {
            if let Field { code: 2, value } = field
                && let Ok(flags) = <[u8; 4]>::try_from(value)
            {
                direction = match self.number(flags) & 3 {
                    1 => Direction::Inbound,
                    2 => Direction::Outbound,
                    _ => Direction::Unknown,
                };
            }
        });
        direction
    }

    fn section(&mut self, buffer: &mut Buffer, facts: &mut FileFacts) -> Result<(), Damage> {
        let offset = buffer.offset();
        if !buffer.has(28) {
            return Err(buffer.ends_within("a section header block", 28));
        }
        let Some(b) = buffer.ahead().first_chunk::<28>() else {
            return Err(buffer.ends_within("a section header block", 28));
        };
        let order = [b[8], b[9], b[10], b[11]];
        self.big_endian = match (u32::from_le_bytes(order), u32::from_be_bytes(order)) {
            (BYTE_ORDER, _) => false,
            (_, BYTE_ORDER) => true,
            _ => {
                let why = "a pcapng section without the byte-order mark 1a2b3c4d: not pcapng, or \
                           damaged";
                return Err(Damage::new(offset + 8, why));
            }
        };
        let (major, minor) = (self.short([b[12], b[13]]), self.short([b[14], b[15]]));
        if major != 1 {
            let why = format!("unsupported pcapng version {major}.{minor} (expected 1.0)");
            return Err(Damage::new(offset + 12, why));
        }
        let bytes = self.number([b[4], b[5], b[6], b[7]]);
        let bytes = whole_block(buffer, bytes, 28, "a section header block")?;
        let fields = buffer.ahead().get(24..bytes - 4).unwrap_or_default();
        options::each(fields, self.big_endian, |Field { code, value }| {
            if code == 1 && facts.comments.len() < MOST_COMMENTS {
                facts.comments.push(text(value, MOST_COMMENT_BYTES));
            }
        });
        self.section_begins = self.clocks.len();
        buffer.pass(bytes);
        Ok(())
    }

    fn interface(
        &mut self,
        buffer: &mut Buffer,
        facts: &mut FileFacts,
        bytes: u32,
    ) -> Result<(), Damage> {
        let offset = buffer.offset();
        let bytes = whole_block(buffer, bytes, 20, "an interface block")?;
        let Some(b) = buffer.ahead().first_chunk::<16>() else {
            return Err(buffer.ends_within("an interface block", bytes as u64));
        };
        if self.clocks.len() >= MOST_INTERFACES {
            let why = format!("more than {MOST_INTERFACES} interfaces");
            return Err(Damage::new(offset, why));
        }
        let link = LinkType(self.short([b[8], b[9]]));
        let snap_bytes = self.number([b[12], b[13], b[14], b[15]]);
        let (mut name, mut resolution, mut offset_s) = (None, 6, 0);
        let fields = buffer.ahead().get(16..bytes - 4).unwrap_or_default();
        options::each(
            fields,
            self.big_endian,
            |Field { code, value }| match code {
                2 => name = Some(text(value, MOST_NAME_BYTES)),
                9 => resolution = value.first().copied().unwrap_or(resolution),
                14 => {
                    if let Ok(bytes) = <[u8; 8]>::try_from(value) {
                        offset_s = if self.big_endian {
                            i64::from_be_bytes(bytes)
                        } else {
                            i64::from_le_bytes(bytes)
                        };
                    }
                }
                _ => {}
            },
        );
        let clock = Clock {
            link,
            unit_ns: 9u32
                .checked_sub(resolution.into())
                .and_then(|exponent| 10u32.checked_pow(exponent))
                .unwrap_or(0),
            resolution,
            offset_ns: offset_s.saturating_mul(1_000_000_000),
        };
        facts.interfaces.push(Interface {
            name,
            link,
            snap_bytes,
            resolution_ns: clock.scaled(1).max(1),
            dropped: None,
        });
        self.clocks.push(clock);
        buffer.pass(bytes);
        Ok(())
    }

    /// Drop counts cover the whole capture so far: the last ones are final.
    fn statistics(
        &mut self,
        buffer: &mut Buffer,
        facts: &mut FileFacts,
        bytes: u32,
    ) -> Result<(), Damage> {
        let bytes = whole_block(buffer, bytes, 24, "an interface statistics block")?;
        let Some(b) = buffer.ahead().first_chunk::<20>() else {
            return Err(buffer.ends_within("an interface statistics block", bytes as u64));
        };
        let interface = self.number([b[8], b[9], b[10], b[11]]) as usize;
        let mut dropped = None;
        let fields = buffer.ahead().get(20..bytes - 4).unwrap_or_default();
        options::each(fields, self.big_endian, |Field { code, value }| {
            // Dropped by the interface, and by the operating system.
            if matches!(code, 5 | 7)
                && let Ok(bytes) = <[u8; 8]>::try_from(value)
            {
                let count = if self.big_endian {
                    u64::from_be_bytes(bytes)
                } else {
                    u64::from_le_bytes(bytes)
                };
                dropped = Some(count.saturating_add(dropped.unwrap_or(0)));
            }
        });
        let interface = facts.interfaces.get_mut(self.section_begins + interface);
        if let (Some(interface), Some(_)) = (interface, dropped) {
            interface.dropped = dropped;
        }
        buffer.pass(bytes);
        Ok(())
    }

    #[inline]
    fn number(&self, bytes: [u8; 4]) -> u32 {
        let number = u32::from_le_bytes(bytes);
        if self.big_endian {
            number.swap_bytes()
        } else {
            number
        }
    }

    #[inline]
    fn short(&self, bytes: [u8; 2]) -> u16 {
        let number = u16::from_le_bytes(bytes);
        if self.big_endian {
            number.swap_bytes()
        } else {
            number
        }
    }
}

/// At most `most` bytes of UTF-8.
fn text(value: &[u8], most: usize) -> String {
    String::from_utf8_lossy(value.get(..most).unwrap_or(value)).into_owned()
}

/// Checks that `bytes` can be the length of a block that begins at `offset`.
#[inline]
fn check_length(offset: u64, bytes: u32) -> Result<(), Damage> {
    if bytes.is_multiple_of(4) && bytes as usize >= FRAME_BYTES {
        return Ok(());
    }
    let why = format!(
        "a block states a length of {bytes} bytes (expected a multiple of 4, at least \
         {FRAME_BYTES}): the file is damaged from here on"
    );
    Err(Damage::new(offset + 4, why))
}

#[cold]
fn bad_length(offset: u64, bytes: u32, what: &str, least: usize) -> Damage {
    let why = format!(
        "{what} states a length of {bytes} bytes (expected a multiple of 4 from {least} to \
         {MOST_NEEDED_BYTES}): the file is damaged from here on"
    );
    Damage::new(offset + 4, why)
}

#[cold]
fn too_many_captured(offset: u64, captured_bytes: u32, block_bytes: usize) -> Damage {
    let why = format!(
        "a packet block of {block_bytes} bytes states {captured_bytes} captured bytes (at most \
         {MOST_CAPTURED_BYTES} are possible, and all must lie within the block): the file is \
         damaged from here on"
    );
    Damage::new(offset + 20, why)
}

/// Reads a whole block into the window and checks its trailing length.
#[inline]
fn whole_block(buffer: &mut Buffer, bytes: u32, least: usize, what: &str) -> Result<usize, Damage> {
    let stated = bytes;
    let bytes = stated as usize;
    if !bytes.is_multiple_of(4) || bytes < least || bytes > MOST_NEEDED_BYTES {
        return Err(bad_length(buffer.offset(), stated, what, least));
    }
    if !buffer.has(bytes) {
        return Err(buffer.ends_within(what, bytes as u64));
    }
    let ahead = buffer.ahead();
    if ahead.get(4..8) != ahead.get(bytes - 4..bytes) {
        return Err(length_differs(buffer.offset(), bytes, what));
    }
    Ok(bytes)
}

#[cold]
fn length_differs(offset: u64, bytes: usize, what: &str) -> Damage {
    let why = format!(
        "{what} states a length of {bytes} bytes in front and a different one at its end: the \
         file is damaged here"
    );
    Damage::new(offset, why)
}
