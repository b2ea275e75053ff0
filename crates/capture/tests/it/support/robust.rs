//! Invariants for arbitrary bytes: readers terminate, stay within their input and never panic. Shared
//! with the fuzz targets.

use slicewise_capture::CaptureFile;
use slicewise_wire::{LinkType, ParseEnd, ParsedFrame, parse_frame, parse_innermost};
use std::io::Cursor;
use std::num::NonZeroU32;

/// Reads `bytes` as a capture; returns the packets reported.
pub fn check_capture(bytes: &[u8]) -> u64 {
    let source = Box::new(Cursor::new(bytes.to_vec()));
    let Ok(mut file) = CaptureFile::from_reader("any", source) else {
        return 0;
    };
    let (mut packets, mut captured) = (0, 0);
    while let Some(packet) = file.next_packet() {
        packets += 1;
        captured += packet.bytes.len() as u64;
        assert!(packet.wire_bytes as usize >= packet.bytes.len());
        check_frame(packet.link, packet.bytes, packet.wire_bytes);
    }
    let facts = file.facts();
    assert_eq!(facts.packets, packets);
    assert_eq!(facts.captured_bytes, captured);
    if let Some(incomplete) = &facts.incomplete {
        assert!(!incomplete.why.is_empty());
    }
    assert!(file.next_packet().is_none(), "the end stays the end");
    packets
}

/// Parses `bytes` as a frame.
pub fn check_frame(link: LinkType, bytes: &[u8], wire_bytes: u32) {
    for parse in [parse_frame, parse_innermost] {
        let frame = parse(link, bytes, wire_bytes);
        check_truncated(&frame, bytes, wire_bytes);
        // Whatever is reported of a truncated frame is also reported of the whole one.
        let half = bytes.get(..bytes.len() / 2).unwrap_or(bytes);
        let cut = parse(link, half, wire_bytes);
        if cut.end == ParseEnd::Complete {
            assert_eq!(cut, frame);
        }
    }
}

fn check_truncated(frame: &ParsedFrame, bytes: &[u8], wire_bytes: u32) {
    assert!(frame.headers.vlan_tags <= 2 && frame.headers.dscp < 64);
    assert!(frame.ip_bytes <= wire_bytes);
    let teid = frame.tunnel.and_then(|tunnel| NonZeroU32::new(tunnel.teid));
    assert_eq!(frame.headers.teid, teid);
    let tcp = frame.tcp(bytes);
    if frame.end == ParseEnd::Complete {
        assert!(frame.ip_offset < bytes.len());
        assert!(frame.ip_offset <= frame.transport_offset);
        assert!(frame.transport_offset <= frame.payload_offset);
        assert!((frame.payload_offset - frame.ip_offset) as u64 <= u64::from(frame.ip_bytes));
    } else {
        assert!(tcp.is_none());
    }
    if let Some(tcp) = tcp {
        assert!((20..=60).contains(&tcp.header_bytes));
        assert!(tcp.payload_bytes <= frame.ip_bytes);
    }
}
