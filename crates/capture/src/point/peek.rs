//! Examines the beginning of a file: time of the first packet and captured length.

use super::Parse;
use super::key::{KeyBytes, MOST_KEY_BYTES, option_bytes};
use super::timeline::FAR_NS;
use crate::error::CaptureError;
use crate::file::{BUFFER_BYTES, CaptureFile, FileFacts, Progress, is_stdin};
use slicewise_wire::ParseEnd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes read from a file that is only examined.
const PEEK_BUFFER_BYTES: usize = 32 << 10;
/// Packets examined.
const MOST_PACKETS: u64 = 256;

pub(super) struct Peeked {
    pub path: PathBuf,
    /// Time of the first packet, if any; of the second if that is much earlier.
    pub first_ns: u64,
    /// Bytes that keys can cover, judged by the packets that were cut off and by the snap length the file states.
    pub key_bytes: KeyBytes,
    /// Most bytes seen before the payload of an IP packet without its fixed header: link header, tags,
    /// tunnels and options.
    link_bytes: u32,
    pub facts: FileFacts,
    /// The file at its first packet, if it cannot be read twice.
    pub kept: Option<CaptureFile>,
}

pub(super) fn peek(
    path: &Path,
    progress: &Arc<Progress>,
    parse: Parse,
) -> Result<Peeked, CaptureError> {
    if !is_file(path) {
        return keep(path, progress, parse);
    }
    if let Ok(facts) = std::fs::metadata(path) {
        progress.add_total(facts.len());
    }
    let mut file = CaptureFile::open_with(path, &Arc::default(), PEEK_BUFFER_BYTES)?;
    let mut peeked = Peeked::new(path);
    while file.facts().packets < MOST_PACKETS && file.advance() {
        peeked.on_packet(&file, parse);
    }
    peeked.on_end(file.into_facts());
    Ok(peeked)
}

/// Standard input and pipes are read once.
fn keep(path: &Path, progress: &Arc<Progress>, parse: Parse) -> Result<Peeked, CaptureError> {
    let mut file = CaptureFile::open_with(path, progress, BUFFER_BYTES)?;
    let mut peeked = Peeked::new(path);
    let has_packet = file.advance();
    if has_packet {
        peeked.on_packet(&file, parse);
    }
    peeked.on_end(file.facts().clone());
    if has_packet {
        peeked.kept = Some(file);
    }
    Ok(peeked)
}

fn is_file(path: &Path) -> bool {
    !is_stdin(path) && std::fs::metadata(path).is_ok_and(|facts| facts.is_file())
}

impl Peeked {
    fn new(path: &Path) -> Self {
        Self {
            path: path.into(),
            first_ns: 0,
            key_bytes: KeyBytes::MOST,
            link_bytes: 0,
            facts: FileFacts::default(),
            kept: None,
        }
    }

    fn on_end(&mut self, facts: FileFacts) {
        // 0 is no limit.
        let limits = facts.interfaces.iter().map(|one| one.snap_bytes);
        if let Some(snap_bytes) = limits.filter(|&bytes| bytes > 0).min() {
            let whole = snap_bytes.saturating_sub(self.link_bytes);
            self.key_bytes.whole = self.key_bytes.whole.min(whole);
        }
        self.facts = facts;
    }

    fn on_packet(&mut self, file: &CaptureFile, parse: Parse) {
        let (record, bytes) = (file.record(), file.bytes());
        if file.facts().packets == 1 {
            self.first_ns = record.time_ns;
        } else if file.facts().packets == 2 && record.time_ns.saturating_add(FAR_NS) < self.first_ns
        {
            // If one of the two is wrong, opening the file too early is safer.
            self.first_ns = record.time_ns;
        }
        let frame = parse.frame(record.link, bytes, record.wire_bytes);
        if frame.end != ParseEnd::Complete {
            return;
        }
        let count = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        let link_bytes = count(frame.ip_offset).saturating_add(option_bytes(&frame));
        self.link_bytes = self.link_bytes.max(link_bytes);
        let held = count(bytes.len()).saturating_sub(count(frame.ip_offset));
        if held < frame.ip_bytes {
            let held = held.saturating_sub(option_bytes(&frame));
            self.key_bytes = self.key_bytes.common(KeyBytes {
                first: held.min(MOST_KEY_BYTES),
                whole: held,
            });
        }
    }
}
