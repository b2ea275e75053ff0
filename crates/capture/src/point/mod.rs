//! A measuring point: the packets of its files as sightings, in time order.

mod copies;
mod facts;
mod flows;
mod fragments;
mod key;
mod merge;
mod peek;
mod timeline;

use crate::error::CaptureError;
use crate::file::{Progress, Record};
use crate::{Sighting, TcpSegment};
use copies::Copies;
pub use facts::{PacketCounts, PointFacts, UnreadFrames};
pub use flows::FlowTable;
use fragments::Fragments;
pub use key::{KeyBytes, LAST_KEY_BYTES, MOST_KEY_BYTES};
use merge::{Merge, Stream};
use slicewise_wire::{
    ETHERTYPE_ARP, Fragment, Headers, IpVersion, LinkType, ParseEnd, ParsedFrame, TcpHeader,
    parse_frame, parse_innermost,
};
use std::path::PathBuf;
use std::sync::Arc;
use timeline::Seen;
pub use timeline::{MOST_WRONG_STAMPS, SORT_WINDOW_NS};

/// A measuring point that is being read.
///
/// Its files may be the pieces of a rotated capture, captures of several interfaces, or both: they are
/// merged by packet time. Packets of a file that are out of order by at most [`SORT_WINDOW_NS`] are
/// sorted. Up to [`MOST_WRONG_STAMPS`] consecutive packets with a time far from those around them get
/// the time of a neighbour ([`Sighting::time_is_restored`]). Reading stops where the times jump:
/// [`Point::take_jump`].
pub struct Point {
    merge: Merge,
    eye: Eye,
    key_bytes_available: KeyBytes,
    /// The latest time since the last jump.
    newest_ns: Option<u64>,
    jump: Option<Jump>,
    copies: Copies,
}

/// A jump in the times of a point: after a pause, or because its clock was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jump {
    /// The file.
    pub file: String,
    /// Number of the first packet after it in that file, from 1.
    pub record: u64,
    /// The latest time before it, ns.
    pub before_ns: u64,
    /// The first time after it, ns.
    pub after_ns: u64,
}

/// The smallest gap between two packets of a point that counts as a [`Jump`], ns.
const JUMP_NS: u64 = 100_000_000;

/// Packet of a frame that is measured: the outer or the inner one of a tunnel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parse {
    /// The outer one, except in GTP-U.
    Outer,
    Innermost,
}

impl Parse {
    #[inline]
    fn frame(self, link: LinkType, bytes: &[u8], wire_bytes: u32) -> ParsedFrame {
        match self {
            Self::Outer => parse_frame(link, bytes, wire_bytes),
            Self::Innermost => parse_innermost(link, bytes, wire_bytes),
        }
    }
}

/// Turns packets into sightings.
struct Eye {
    parse: Parse,
    flows: FlowTable,
    fragments: Fragments,
    counts: PacketCounts,
    unread: Vec<UnreadFrames>,
    key_bytes: KeyBytes,
}

impl Point {
    /// Opens files; `-` is standard input. Examines each of them first, so that an unreadable file is
    /// reported before hours are spent on the rest.
    ///
    /// # Errors
    /// If one of them cannot be opened, is a directory, is empty, or is not a capture.
    pub fn open(paths: &[PathBuf]) -> Result<Self, CaptureError> {
        Self::open_as(paths, Parse::Outer)
    }

    /// As [`Point::open`]; of a packet in IP in IP, GRE or VXLAN, the innermost packet counts
    /// ([`slicewise_wire::parse_innermost`]).
    ///
    /// # Errors
    /// As [`Point::open`].
    pub fn open_innermost(paths: &[PathBuf]) -> Result<Self, CaptureError> {
        Self::open_as(paths, Parse::Innermost)
    }

    fn open_as(paths: &[PathBuf], parse: Parse) -> Result<Self, CaptureError> {
        let (merge, key_bytes_available) = Merge::open(paths, parse)?;
        Ok(Self {
            merge,
            eye: Eye {
                parse,
                flows: FlowTable::new(FlowTable::MOST_FLOWS),
                fragments: Fragments::default(),
                counts: PacketCounts::default(),
                unread: Vec::new(),
                key_bytes: key_bytes_available,
            },
            key_bytes_available,
            newest_ns: None,
            jump: None,
            copies: Copies::new(),
        })
    }

    /// Returns the bytes that keys can cover here, judged by the first packets of each file. All points compared must
    /// use the bytes that keys can cover at each of them ([`Point::set_key_bytes`]).
    #[must_use]
    pub const fn key_bytes_available(&self) -> KeyBytes {
        self.key_bytes_available
    }

    /// Sets what keys cover. Must be the same at all points, and set before anything is read.
    pub fn set_key_bytes(&mut self, bytes: KeyBytes) {
        self.eye.key_bytes = bytes.common(KeyBytes::MOST);
    }

    /// Replaces the contents of `out` by the next sightings, at most `max`. Returns false at the end.
    ///
    /// # Errors
    /// If a file can no longer be opened, or too many overlap in time. Damage within a file is not an
    /// error: the packets before it are reported, and [`PointFacts::incomplete`].
    pub fn read(&mut self, out: &mut Vec<Sighting>, max: usize) -> Result<bool, CaptureError> {
        self.fill(out, max, |_| {})
    }

    /// As [`Point::read`], and replaces the contents of `segments` by the TCP segments among the
    /// sightings.
    ///
    /// # Errors
    /// As [`Point::read`].
    pub fn read_with_tcp(
        &mut self,
        out: &mut Vec<Sighting>,
        segments: &mut Vec<TcpSegment>,
        max: usize,
    ) -> Result<bool, CaptureError> {
        segments.clear();
        self.fill(out, max, |segment| segments.push(segment))
    }

    /// The jump before the first of the sightings last read; there is none between them.
    pub fn take_jump(&mut self) -> Option<Jump> {
        self.jump.take()
    }

    /// Comments at the beginning of its files (pcapng), available before reading.
    pub fn comments(&self) -> impl Iterator<Item = &str> {
        self.merge.comments()
    }

    /// Coarsest resolution of timestamps among its files, ns; at least 1. Available before reading.
    #[must_use]
    pub fn resolution_ns(&self) -> u64 {
        self.merge.resolution_ns()
    }

    /// The flows seen so far.
    #[must_use]
    pub fn flows(&self) -> &FlowTable {
        &self.eye.flows
    }

    /// Returns the facts about the part that was read so far.
    #[must_use]
    pub fn facts(&self) -> PointFacts {
        PointFacts {
            files: self.merge.facts(),
            counts: self.eye.counts,
            unread: self.eye.unread.clone(),
            key_bytes: self.eye.key_bytes,
        }
    }

    /// Reading progress; may be queried from another thread.
    #[must_use]
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(self.merge.progress())
    }

    #[inline]
    fn fill(
        &mut self,
        out: &mut Vec<Sighting>,
        max: usize,
        mut emit: impl FnMut(TcpSegment),
    ) -> Result<bool, CaptureError> {
        out.clear();
        while let Some(turn) = self.merge.turn(&mut self.eye)? {
            let Some(stream) = self.merge.stream(&turn) else {
                break;
            };
            while let Some(&seen) = stream.head() {
                let sighting = seen.sighting;
                if out.len() >= max {
                    return Ok(true);
                }
                if let Some(jump) = jump_to(self.newest_ns, &seen, stream) {
                    if !out.is_empty() {
                        return Ok(true);
                    }
                    self.jump = Some(jump);
                    self.newest_ns = None;
                }
                self.newest_ns = self.newest_ns.max(Some(sighting.time_ns));
                if self.copies.is_copy(&sighting) {
                    self.eye.counts.sightings -= 1;
                    self.eye.counts.copies += 1;
                } else {
                    self.eye.counts.on_time(sighting.time_ns);
                    out.push(sighting);
                    if let Some(tcp) = seen.tcp {
                        emit(segment(&sighting, &tcp));
                    }
                }
                stream.next(&mut self.eye);
                let next = stream.head();
                if next.is_some_and(|next| next.sighting.time_ns >= turn.until_ns) {
                    break;
                }
            }
        }
        Ok(false)
    }
}

#[inline]
fn jump_to(newest_ns: Option<u64>, seen: &Seen, stream: &Stream) -> Option<Jump> {
    let (before_ns, after_ns) = (newest_ns?, seen.sighting.time_ns);
    let is_back = seen.jumps && after_ns < before_ns;
    if !is_back && after_ns <= before_ns.saturating_add(JUMP_NS) {
        return None;
    }
    Some(Jump {
        file: stream.name().to_owned(),
        record: seen.record,
        before_ns,
        after_ns,
    })
}

#[inline]
fn segment(sighting: &Sighting, tcp: &TcpHeader) -> TcpSegment {
    TcpSegment {
        time_ns: sighting.time_ns,
        flow: sighting.flow,
        sequence: tcp.sequence,
        acknowledgement: tcp.acknowledgement,
        payload_bytes: tcp.payload_bytes,
        flags: tcp.flags,
    }
}

/// Multicast of link-local scope (RFC 4291, section 2.7; RFC 5771, section 4), and limited broadcast.
#[inline]
fn is_link_scope(headers: &Headers) -> bool {
    let destination = headers.destination;
    match headers.ip_version {
        IpVersion::V4 => destination >> 8 == 0x00e0_0000 || destination == u128::from(u32::MAX),
        IpVersion::V6 => destination >> 112 == 0xff02,
        IpVersion::None => false,
    }
}

impl Eye {
    #[inline]
    fn see(&mut self, record: &Record, bytes: &[u8]) -> Option<(Sighting, Option<TcpHeader>)> {
        let frame = self.parse.frame(record.link, bytes, record.wire_bytes);
        if frame.end == ParseEnd::Complete && frame.fragment == Fragment::None {
            return self.see_packet(record, &frame, bytes);
        }
        if frame.fragment != Fragment::None {
            return self.see_fragment(record, &frame, bytes);
        }
        self.count_unseen(record, &frame);
        None
    }

    /// A packet is seen with the fragment that completes it.
    #[cold]
    fn see_fragment(
        &mut self,
        record: &Record,
        piece: &ParsedFrame,
        bytes: &[u8],
    ) -> Option<(Sighting, Option<TcpHeader>)> {
        self.counts.fragments += 1;
        let whole = self.fragments.join(piece, bytes, record.time_ns)?;
        let mut frame = self
            .parse
            .frame(LinkType::RAW, &whole.bytes, whole.ip_bytes);
        if frame.end != ParseEnd::Complete || frame.fragment != Fragment::None {
            return None;
        }
        frame.headers = Headers {
            vlan_tags: whole.headers.vlan_tags,
            outer_vlan: whole.headers.outer_vlan,
            inner_vlan: whole.headers.inner_vlan,
            l3_offset: whole.headers.l3_offset,
            teid: frame.headers.teid.or(whole.headers.teid),
            ..frame.headers
        };
        frame.l2_bytes = whole.l2_bytes;
        let counts = &mut self.counts;
        counts.fragments -= whole.pieces;
        counts.joined += whole.pieces;
        counts.reassembled += 1;
        // It is no frame.
        let largest_l2_bytes = counts.largest_l2_bytes;
        let seen = self.see_packet(record, &frame, &whole.bytes);
        self.counts.largest_l2_bytes = largest_l2_bytes;
        seen
    }

    #[inline]
    fn see_packet(
        &mut self,
        record: &Record,
        frame: &ParsedFrame,
        bytes: &[u8],
    ) -> Option<(Sighting, Option<TcpHeader>)> {
        if is_link_scope(&frame.headers) {
            self.counts.link_scope += 1;
            return None;
        }
        let tcp = frame.tcp(bytes);
        let Some(key) = key::packet_key(frame, bytes, self.key_bytes) else {
            self.counts.cut_short += 1;
            return None;
        };
        let flow = self.flows.flow_of(&frame.headers);
        let counts = &mut self.counts;
        counts.sightings += 1;
        counts.tcp += u64::from(tcp.is_some());
        counts.tunnelled += u64::from(frame.tunnel.is_some());
        counts.encapsulating += u64::from(frame.headers.is_encapsulating());
        counts.beyond_flows += u64::from(flow as usize >= FlowTable::MOST_FLOWS);
        counts.largest_l2_bytes = counts.largest_l2_bytes.max(frame.l2_bytes);
        let sighting = Sighting {
            time_ns: record.time_ns,
            key,
            flow,
            l2_bytes: frame.l2_bytes,
            ttl: frame.ttl,
            dscp: frame.headers.dscp,
            direction: record.direction,
            time_is_restored: false,
        };
        Some((sighting, tcp))
    }

    #[cold]
    fn count_unseen(&mut self, record: &Record, frame: &ParsedFrame) {
        let counts = &mut self.counts;
        let count = match frame.end {
            ParseEnd::NotIp if !record.link.is_known() => &mut counts.unknown_link,
            ParseEnd::NotIp if frame.ethertype == ETHERTYPE_ARP => &mut counts.arp,
            ParseEnd::NotIp => &mut counts.not_ip,
            ParseEnd::Malformed(_) => &mut counts.malformed,
            ParseEnd::Truncated(_) | ParseEnd::Complete => &mut counts.cut_short,
        };
        *count += 1;
        if frame.end == ParseEnd::NotIp {
            self.count_kind(record.link, frame.headers.ethertype);
        }
    }

    fn count_kind(&mut self, link: LinkType, ethertype: u16) {
        let is_same = |kind: &UnreadFrames| (kind.link, kind.ethertype) == (link, ethertype);
        if let Some(known) = self.unread.iter_mut().find(|kind| is_same(kind)) {
            known.frames += 1;
        } else if self.unread.len() < UnreadFrames::MAX_KINDS {
            self.unread.push(UnreadFrames {
                link,
                ethertype,
                frames: 1,
            });
        }
    }
}
