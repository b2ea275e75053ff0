//! A look at the beginning of a file: when its first packet was captured, and how much of packets.

use super::key::MOST_KEY_BYTES;
use crate::error::CaptureError;
use crate::file::{BUFFER_BYTES, CaptureFile, FileFacts, Progress, Record, is_stdin};
use slicewise_wire::{ParseEnd, ParsedFrame, parse_frame};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Read of a file that is only looked into.
const PEEK_BUFFER_BYTES: usize = 32 << 10;
/// Packets looked into.
const MOST_PACKETS: usize = 256;

pub(super) struct Peeked {
    pub path: PathBuf,
    pub first_ns: Option<u64>,
    /// Of the packets looked into: the fewest bytes captured from the IP header on, as far as
    /// the packet had more, and [`MOST_KEY_BYTES`] is more.
    pub fewest_ip_bytes: u32,
    pub facts: FileFacts,
    /// The file and its first packet, where it cannot be read twice.
    pub kept: Option<(CaptureFile, Record)>,
}

pub(super) fn peek(path: &Path, progress: &Arc<Progress>) -> Result<Peeked, CaptureError> {
    if !is_file(path) {
        return keep(path, progress);
    }
    if let Ok(facts) = std::fs::metadata(path) {
        progress.add_total(facts.len());
    }
    let mut file = CaptureFile::open_with(path, &Arc::default(), PEEK_BUFFER_BYTES)?;
    let mut peeked = Peeked {
        path: path.into(),
        first_ns: None,
        fewest_ip_bytes: MOST_KEY_BYTES,
        facts: file.facts().clone(),
        kept: None,
    };
    for _ in 0..MOST_PACKETS {
        let Some(record) = file.advance() else {
            break;
        };
        peeked.first_ns.get_or_insert(record.time_ns);
        peeked.on_packet(&record, file.bytes(&record));
    }
    peeked.facts = file.into_facts();
    Ok(peeked)
}

/// Standard input and pipes are read once.
fn keep(path: &Path, progress: &Arc<Progress>) -> Result<Peeked, CaptureError> {
    let mut file = CaptureFile::open_with(path, progress, BUFFER_BYTES)?;
    let first = file.advance();
    let mut peeked = Peeked {
        path: path.into(),
        first_ns: first.map(|record| record.time_ns),
        fewest_ip_bytes: MOST_KEY_BYTES,
        facts: file.facts().clone(),
        kept: None,
    };
    if let Some(record) = first {
        peeked.on_packet(&record, file.bytes(&record));
        peeked.kept = Some((file, record));
    }
    Ok(peeked)
}

fn is_file(path: &Path) -> bool {
    !is_stdin(path) && std::fs::metadata(path).is_ok_and(|facts| facts.is_file())
}

impl Peeked {
    fn on_packet(&mut self, record: &Record, bytes: &[u8]) {
        let frame: ParsedFrame = parse_frame(record.link, bytes, record.wire_bytes);
        if frame.end != ParseEnd::Complete {
            return;
        }
        let held = bytes.len().saturating_sub(frame.ip_offset);
        let held = u32::try_from(held).unwrap_or(u32::MAX);
        if held < frame.ip_bytes {
            self.fewest_ip_bytes = self.fewest_ip_bytes.min(held);
        }
    }
}
