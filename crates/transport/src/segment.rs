//! A segment as one end hands it to the other (RFC 9293, section 3.1): what its header says and how long it is, no bytes.
//!
//! Positions in the stream are 64 bits and start at 0, which is the SYN; the 32 bits of a wire's format are theirs
//! modulo 2³². So no position is ever ambiguous, and PAWS (RFC 7323, section 5) has nothing to do.

use slicewise_units::Instant;

/// Purpose of a segment: a set of flags.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// Opens a direction; takes one position.
    pub const SYN: Self = Self(1);
    /// Ends a direction; takes one position.
    pub const FIN: Self = Self(2);
    /// [`Segment::acknowledgement`] counts.
    pub const ACK: Self = Self(4);
    /// Congestion was experienced (RFC 3168); with [`Self::SYN`]: the sender can ECN.
    pub const ECE: Self = Self(8);
    /// The congestion window was reduced (RFC 3168).
    pub const CWR: Self = Self(16);
    /// With [`Self::SYN`]: the sender understands selective acknowledgements (RFC 2018).
    pub const SACK_PERMITTED: Self = Self(32);
    /// The IP packet is to carry ECT(0): queues may mark it (RFC 3168). No bit of the TCP header.
    pub const ECT: Self = Self(64);
    /// Ends what the application has written so far.
    pub const PSH: Self = Self(128);

    /// True if all of `other` are set.
    #[inline]
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These and `other`.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These, and `other` if `condition` holds.
    #[inline]
    #[must_use]
    pub const fn with_if(self, condition: bool, other: Self) -> Self {
        if condition { self.with(other) } else { self }
    }

    /// These without `other`.
    #[inline]
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// Blocks that the receiver holds beyond what it acknowledges (RFC 2018), the latest first; a first block at or below
/// the acknowledgement, or within the second block, says what arrived twice (D-SACK, RFC 2883).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [[u32; 2]; Self::MOST],
    count: u8,
}

impl SackBlocks {
    /// As many as fit beside the time stamps.
    pub const MOST: usize = 3;

    /// Add a block [start, end); more than [`Self::MOST`] are left out.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "modulo 2^32")]
    pub fn push(&mut self, start: u64, end: u64) {
        if let Some(block) = self.blocks.get_mut(usize::from(self.count)) {
            *block = [start as u32, end as u32];
            self.count += 1;
        }
    }

    /// No block.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The blocks, as positions within 2³¹ bytes of `near`.
    #[inline]
    pub fn iter(&self, near: u64) -> impl Iterator<Item = (u64, u64)> {
        let blocks = self.blocks.iter().take(usize::from(self.count));
        blocks.map(move |[start, end]| (unwrapped(*start, near), unwrapped(*end, near)))
    }
}

/// The position within 2³¹ bytes of `near` whose low 32 bits are `low`.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "modulo 2^32"
)]
const fn unwrapped(low: u32, near: u64) -> u64 {
    near.wrapping_add_signed(low.wrapping_sub(near as u32) as i32 as i64)
}

/// A segment: 64 bytes, one line of a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Segment {
    /// Position of its first byte, of its SYN, or of its FIN where it has no byte.
    pub sequence: u64,
    /// The position that its sender expects next.
    pub acknowledgement: u64,
    /// Bytes of data.
    pub bytes: u32,
    /// How many bytes beyond the acknowledgement its sender takes (RFC 7323, section 2: as its scale rounds them).
    pub window_bytes: u32,
    /// When it was sent, by its sender's clock (RFC 7323, TSval): see [`stamp`].
    pub stamp: u32,
    /// The stamp that it answers (TSecr).
    pub echo: u32,
    /// Selective acknowledgements.
    pub sack: SackBlocks,
    /// Its purpose.
    pub flags: Flags,
}

impl Segment {
    /// The position behind it.
    #[inline]
    #[must_use]
    pub fn end(&self) -> u64 {
        let phantom = u64::from(self.flags.has(Flags::SYN)) + u64::from(self.flags.has(Flags::FIN));
        self.sequence + u64::from(self.bytes) + phantom
    }

    /// Part `index` of a segment that an adapter cuts into frames of at most `mss_bytes` each (segmentation offload);
    /// `None` behind the last. CWR goes on the first, PSH and FIN on the last (RFC 3168 and RFC 9293 would else be broken).
    #[inline]
    #[must_use]
    pub fn part(&self, index: u32, mss_bytes: u32) -> Option<Self> {
        let offset = index.checked_mul(mss_bytes)?;
        if offset >= self.bytes {
            return (index == 0).then_some(*self);
        }
        let bytes = mss_bytes.min(self.bytes - offset);
        let is_last = offset + bytes == self.bytes;
        let mut flags = self.flags;
        if index > 0 {
            flags = flags.without(Flags::CWR);
        }
        if !is_last {
            flags = flags.without(Flags::FIN.with(Flags::PSH));
        }
        Some(Self {
            sequence: self.sequence + u64::from(offset),
            bytes,
            flags,
            ..*self
        })
    }

    /// Join `next` to this one, as receive offload does: data that follows without a gap, with the same flags but
    /// PSH and FIN, which end it, and acknowledgement, up to `most_bytes` together. False, and nothing is changed, where they do not fit.
    #[inline]
    #[must_use]
    pub fn absorb(&mut self, next: &Self, most_bytes: u32) -> bool {
        let fits = self.bytes > 0
            && next.bytes > 0
            && self.sequence + u64::from(self.bytes) == next.sequence
            && self.bytes + next.bytes <= most_bytes
            && self.acknowledgement == next.acknowledgement
            && self.flags == next.flags.without(Flags::FIN.with(Flags::PSH))
            && self.sack == next.sack;
        if fits {
            self.bytes += next.bytes;
            self.flags = next.flags;
            self.window_bytes = next.window_bytes;
        }
        fits
    }
}

/// The time stamp of `now`: microseconds modulo 2³², never 0, which stands for "none".
#[inline]
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "modulo 2^32")]
pub const fn stamp(now: Instant) -> u32 {
    let micros = (now.nanos() / 1_000) as u32;
    if micros == 0 { 1 } else { micros }
}

/// Returns true if time stamp `one` is before `other` (modulo 2³²).
#[inline]
#[expect(clippy::cast_possible_wrap, reason = "serial numbers, RFC 1982")]
pub(crate) const fn is_earlier(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_a_cache_line() {
        assert_eq!(size_of::<Segment>(), 64);
    }

    #[test]
    fn blocks_keep_their_positions_across_two_to_the_32() {
        let ack = (7u64 << 32) + 5;
        let mut sack = SackBlocks::default();
        let blocks = [
            (ack - 100, ack),
            (ack + 10, ack + 20),
            (ack - 6, ack + (1 << 31) - 1),
        ];
        for (start, end) in blocks {
            sack.push(start, end);
        }
        sack.push(0, 1);
        assert_eq!(sack.iter(ack).collect::<Vec<_>>(), blocks);
    }

    #[test]
    fn an_adapter_cuts_a_segment_and_joins_it_again() {
        let whole = Segment {
            sequence: 1_001,
            bytes: 2_500,
            flags: Flags::ACK.with(Flags::FIN).with(Flags::PSH),
            ..Segment::default()
        };
        let parts: Vec<Segment> = (0..).map_while(|n| whole.part(n, 1_000)).collect();
        let described: Vec<_> = parts
            .iter()
            .map(|part| {
                let has = |flag| part.flags.has(flag);
                let ends = [has(Flags::FIN), has(Flags::PSH)];
                (part.sequence, part.bytes, ends)
            })
            .collect();
        assert_eq!(
            described,
            [
                (1_001, 1_000, [false; 2]),
                (2_001, 1_000, [false; 2]),
                (3_001, 500, [true; 2])
            ]
        );
        let mut joined = parts[0];
        assert!(joined.absorb(&parts[1], 65_536));
        assert!(!joined.absorb(&parts[1], 65_536), "it does not follow");
        assert!(!joined.absorb(&parts[2], 2_400), "it is too long");
        assert!(joined.absorb(&parts[2], 65_536));
        assert_eq!(joined, whole);
        let ack = Segment {
            flags: Flags::ACK,
            ..Segment::default()
        };
        assert_eq!(ack.part(0, 1_000), Some(ack));
        assert_eq!(ack.part(1, 1_000), None);
    }

    #[test]
    fn nothing_is_joined_to_the_end_of_what_was_written() {
        let mut last = Segment {
            sequence: 1,
            bytes: 1_000,
            flags: Flags::ACK.with(Flags::PSH),
            ..Segment::default()
        };
        let next = Segment {
            sequence: 1_001,
            ..last
        };
        assert!(!last.absorb(&next, 65_536));
    }

    #[test]
    fn cwr_stays_on_the_first_frame_alone() {
        let whole = Segment {
            bytes: 2_000,
            flags: Flags::ACK.with(Flags::CWR),
            ..Segment::default()
        };
        let cwr = |n| whole.part(n, 1_000).map(|part| part.flags.has(Flags::CWR));
        assert_eq!([cwr(0), cwr(1), cwr(2)], [Some(true), Some(false), None]);
    }
}
