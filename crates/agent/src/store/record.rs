//! Lines of a state file: a checksum, a space, and a record as JSON.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use slicewise_api::GatewaySlice;

/// Hexadecimal digits of a checksum.
const DIGITS: usize = 16;

/// Identity of a state file; its first record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// The version of the format.
    pub(crate) version: u32,
    /// The gateway's name.
    pub(crate) gateway: String,
    /// Its link.
    pub(crate) link: String,
    /// Which gateway of that name: the controller tells two of them apart by it. Files of earlier versions have none.
    #[serde(default)]
    pub(crate) instance: String,
    /// Identity of the controller's store that the slices are of; empty while none is followed, or none has stated its identity.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) store: String,
}

/// A change of what is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Record {
    /// The first.
    Header(Header),
    /// A slice is to be in force.
    Put(Box<GatewaySlice>),
    /// A slice is to be removed.
    Remove(String),
    /// The controller knows that no frame of these slices, which were removed, waits any more.
    Gone(Vec<String>),
    /// These slices, and no others, could not be put in force.
    Refused(Vec<String>),
    /// All changes up to this generation are above.
    Generation(u64),
}

impl Record {
    /// Append the line of the record.
    pub(crate) fn write(&self, lines: &mut Vec<u8>) {
        // A record has neither maps with keys that are no text, nor numbers that JSON cannot hold.
        let json = serde_json::to_vec(self).unwrap_or_default();
        lines.extend_from_slice(&checksum(&json));
        lines.push(b' ');
        lines.extend_from_slice(&json);
        lines.push(b'\n');
    }

    /// The record of a line, without its end. `None` if it is damaged.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        let json = json_of(line)?;
        serde_json::from_slice(json).ok()
    }
}

/// The version that a first line states, also of a format that this program does not know.
pub(crate) fn version_of(line: &[u8]) -> Option<u32> {
    let value: serde_json::Value = serde_json::from_slice(json_of(line)?).ok()?;
    let version = value.get("header")?.get("version")?.as_u64()?;
    u32::try_from(version).ok()
}

fn json_of(line: &[u8]) -> Option<&[u8]> {
    let (stated, rest) = line.split_at_checked(DIGITS)?;
    let json = rest.strip_prefix(b" ")?;
    (checksum(json) == stated).then_some(json)
}

/// The first half of the first half of SHA-256, in hexadecimal digits.
fn checksum(bytes: &[u8]) -> [u8; DIGITS] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let digest = Sha256::digest(bytes);
    let mut text = [0; DIGITS];
    for (pair, byte) in text.chunks_mut(2).zip(digest) {
        for (digit, nibble) in pair.iter_mut().zip([byte >> 4, byte & 15]) {
            *digit = HEX.get(usize::from(nibble)).copied().unwrap_or(b'?');
        }
    }
    text
}
