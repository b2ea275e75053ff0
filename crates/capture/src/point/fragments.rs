//! Puts the fragments of IP packets together (RFC 791, section 3.2; RFC 8200, section 4.5): where a packet
//! is fragmented between two points, they see the same packet all the same. It has arrived when all of
//! its fragments have (RFC 7680, section 2.5).

use slicewise_wire::{Headers, IpVersion, ParsedFrame};
use std::collections::HashMap;
use std::ops::Range;

/// Packets of which some fragments were seen.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    pending: HashMap<Id, Pending>,
}

/// Fields that the fragments of a packet have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Id {
    source: u128,
    destination: u128,
    protocol: u8,
    identification: u32,
}

#[derive(Debug)]
struct Pending {
    first_ns: u64,
    /// Headers of the first fragment.
    headers: Option<Headers>,
    /// IP header of the first fragment; in IPv6 with the extension headers before its fragment header.
    ip_header: Vec<u8>,
    /// Payload, as far as captured; zeros in gaps.
    payload: Vec<u8>,
    /// Parts of the payload seen, in order.
    parts: Vec<Range<usize>>,
    /// Where captured bytes end before the payload does.
    cut_at: usize,
    total_bytes: Option<usize>,
    l2_bytes: u32,
}

/// One fragment.
struct Piece<'a> {
    id: Id,
    ip_header: &'a [u8],
    /// In IPv6: offset of the field that names the fragment header, and the protocol behind that.
    names_next: Option<(usize, u8)>,
    part: Range<usize>,
    is_last: bool,
    /// Its payload, as far as captured.
    captured: &'a [u8],
}

/// A packet all of whose fragments were seen.
#[derive(Debug)]
pub(super) struct Whole {
    /// The packet from its IP header on, up to where a fragment was cut off.
    pub bytes: Vec<u8>,
    /// Its length.
    pub ip_bytes: u32,
    /// Layer-2 bytes of all of its fragments.
    pub l2_bytes: u32,
    /// Number of its fragments.
    pub pieces: u64,
    /// Headers of the first.
    pub headers: Headers,
}

impl Fragments {
    /// Takes a fragment; returns the packet that it completes.
    pub fn join(&mut self, frame: &ParsedFrame, captured: &[u8], now_ns: u64) -> Option<Whole> {
        let piece = Piece::new(frame, captured)?;
        let id = piece.id;
        let is_old = |one: &Pending| now_ns.abs_diff(one.first_ns) > LONGEST_WAIT_NS;
        if self.pending.get(&id).is_some_and(is_old) {
            self.pending.remove(&id);
        }
        if self.pending.len() >= MOST_PENDING && !self.pending.contains_key(&id) {
            self.make_room(now_ns);
        }
        let pending = self
            .pending
            .entry(id)
            .or_insert_with(|| Pending::new(now_ns));
        pending.add(&piece, frame);
        if !pending.is_complete() {
            return None;
        }
        self.pending.remove(&id)?.into_whole()
    }

    /// Forgets packets that will not become complete, or the oldest one.
    fn make_room(&mut self, now_ns: u64) {
        self.pending
            .retain(|_, one| now_ns.abs_diff(one.first_ns) <= LONGEST_WAIT_NS);
        if self.pending.len() >= MOST_PENDING
            && let Some((&id, _)) = self.pending.iter().min_by_key(|(_, one)| one.first_ns)
        {
            self.pending.remove(&id);
        }
    }
}

impl Pending {
    const fn new(first_ns: u64) -> Self {
        Self {
            first_ns,
            headers: None,
            ip_header: Vec::new(),
            payload: Vec::new(),
            parts: Vec::new(),
            cut_at: usize::MAX,
            total_bytes: None,
            l2_bytes: 0,
        }
    }

    /// A fragment seen before, or one that overlaps another (RFC 5722), is left out.
    fn add(&mut self, piece: &Piece<'_>, frame: &ParsedFrame) {
        let Range { start, end } = piece.part;
        let at = self.parts.partition_point(|part| part.start < start);
        let before = at.checked_sub(1).and_then(|before| self.parts.get(before));
        let overlaps = before.is_some_and(|part| part.end > start)
            || self.parts.get(at).is_some_and(|part| part.start < end);
        if overlaps || start >= end {
            return;
        }
        self.parts.insert(at, start..end);
        self.l2_bytes = self.l2_bytes.saturating_add(frame.l2_bytes);
        if piece.is_last {
            self.total_bytes = Some(end);
        }
        if start == 0 {
            self.headers = Some(frame.headers);
            self.ip_header = piece.ip_header.to_vec();
            if let Some((at, protocol)) = piece.names_next
                && let Some(field) = self.ip_header.get_mut(at)
            {
                *field = protocol;
            }
        }
        let captured_end = start + piece.captured.len();
        if captured_end < end {
            self.cut_at = self.cut_at.min(captured_end);
        }
        if self.payload.len() < captured_end {
            self.payload.resize(captured_end, 0);
        }
        if let Some(place) = self.payload.get_mut(start..captured_end) {
            place.copy_from_slice(piece.captured);
        }
    }

    fn is_complete(&self) -> bool {
        let seen: usize = self.parts.iter().map(Range::len).sum();
        let end = self.parts.last().map(|part| part.end);
        self.total_bytes == Some(seen) && end == Some(seen)
    }

    /// The packet as if it had never been fragmented.
    fn into_whole(mut self) -> Option<Whole> {
        let headers = self.headers?;
        let total = self.ip_header.len() + self.total_bytes?;
        if headers.ip_version == IpVersion::V6 {
            let length = u16::try_from(total.checked_sub(40)?).ok()?;
            self.ip_header
                .get_mut(4..6)?
                .copy_from_slice(&length.to_be_bytes());
        } else {
            let length = u16::try_from(total).ok()?;
            self.ip_header
                .get_mut(2..4)?
                .copy_from_slice(&length.to_be_bytes());
            self.ip_header.get_mut(6..8)?.fill(0);
        }
        self.payload.truncate(self.cut_at);
        let mut bytes = self.ip_header;
        bytes.append(&mut self.payload);
        Some(Whole {
            bytes,
            ip_bytes: u32::try_from(total).ok()?,
            l2_bytes: self.l2_bytes,
            pieces: self.parts.len() as u64,
            headers,
        })
    }
}

impl<'a> Piece<'a> {
    fn new(frame: &ParsedFrame, captured: &'a [u8]) -> Option<Self> {
        let ip = captured.get(frame.ip_offset..)?;
        let number = |at: usize| {
            let bytes: &[u8; 2] = ip.get(at..)?.first_chunk()?;
            Some(u16::from_be_bytes(*bytes))
        };
        let is_v6 = frame.headers.ip_version == IpVersion::V6;
        let (kept_bytes, header_bytes, names_next) = if is_v6 {
            let (named_at, at) = fragment_header(ip)?;
            (at, at + 8, Some((named_at, *ip.get(at)?)))
        } else {
            let bytes = frame.transport_offset.checked_sub(frame.ip_offset)?;
            (bytes, bytes, None)
        };
        let (start, is_last, identification) = if is_v6 {
            let field = number(kept_bytes + 2)?;
            let identification = [number(kept_bytes + 4)?, number(kept_bytes + 6)?];
            let identification = u32::from(identification[0]) << 16 | u32::from(identification[1]);
            (field & 0xfff8, field & 1 == 0, identification)
        } else {
            let field = number(6)?;
            let identification = frame.identification.into();
            ((field & 0x1fff) * 8, field & 0x2000 == 0, identification)
        };
        let bytes = (frame.ip_bytes as usize).checked_sub(header_bytes)?;
        let start = usize::from(start);
        let payload = ip.get(header_bytes..)?;
        Some(Self {
            id: Id {
                source: frame.headers.source,
                destination: frame.headers.destination,
                protocol: names_next.map_or(frame.headers.protocol, |(_, protocol)| protocol),
                identification,
            },
            ip_header: ip.get(..kept_bytes)?,
            names_next,
            part: start..start + bytes,
            is_last,
            captured: payload.get(..bytes).unwrap_or(payload),
        })
    }
}

/// Offsets of the field that names the fragment header of an IPv6 packet, and of that header, behind hop-by-hop
/// options, routing and destination options.
fn fragment_header(ip: &[u8]) -> Option<(usize, usize)> {
    let (mut named_at, mut at) = (6, 40);
    for _ in 0..MOST_EXTENSIONS {
        match *ip.get(named_at)? {
            44 => return Some((named_at, at)),
            0 | 43 | 60 => {
                named_at = at;
                at += (usize::from(*ip.get(at + 1)?) + 1) * 8;
            }
            _ => return None,
        }
    }
    None
}

/// Packets waiting for fragments, 64 KB each at most.
const MOST_PENDING: usize = 256;

/// Identifications of IPv4 are used again soon (RFC 4963), ns.
const LONGEST_WAIT_NS: u64 = 1_000_000_000;

/// Most extension headers before the fragment header.
const MOST_EXTENSIONS: usize = 8;
