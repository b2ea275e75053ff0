//! Settings at the top of a file that are misspelt.

use super::tree::{Key, Node, Value};
use crate::diagnostics::{MAX_DIAGNOSTICS, closest};

/// A setting at the top of a file, or the misspelt one that was probably meant to be it: the file is still what it
/// was meant to be, and what is wrong with it is one mistake.
pub(crate) fn entry_as_meant<'a>(root: &'a Node, setting: &str) -> Option<(&'a Key, &'a Node)> {
    let Value::Mapping(entries) = &root.value else {
        return None;
    };
    let is_meant = |(key, _): &&(Key, Node)| {
        closest(&key.text, SETTINGS).is_some_and(|meant| meant == setting)
    };
    root.entry(setting).or_else(|| {
        entries
            .iter()
            .filter(|(key, _)| !SETTINGS.contains(&key.text.as_str()))
            .take(MAX_DIAGNOSTICS)
            .find(is_meant)
            .map(|(key, node)| (key, node))
    })
}

/// Settings at the top of any kind of file.
pub(crate) const SETTINGS: [&str; 33] = [
    "assumptions",
    "backward",
    "buffer",
    "captures",
    "counts",
    "delays",
    "description",
    "duration",
    "dut",
    "extends",
    "hosts",
    "interfaces",
    "largest_frame",
    "link",
    "margins",
    "measure",
    "memory",
    "metrics_port",
    "name",
    "packet_io",
    "policies",
    "policy",
    "populations",
    "published",
    "quick",
    "repetitions",
    "scenarios",
    "seed",
    "slices",
    "source",
    "sources",
    "tenants",
    "title",
];
