//! Which kind of file one is.

use crate::diagnostics::{Diagnostics, MAX_DIAGNOSTICS, closest};
use crate::file::{self, Key, Node, Problems, Value};
use crate::load::Opened;
use std::path::Path;

/// A kind of file that people write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A study that can be run.
    Study,
    /// Slices that ask for guarantees on one link.
    Plan,
    /// A study whose runs have been captured, or slices alone.
    Measured,
    /// A configuration of the gateway.
    Gateway,
}

impl FileKind {
    /// What the file at `path` is, by the settings it has. One that could be several, or that cannot be
    /// parsed, is taken for a study: reading it as one says what is wrong.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn of(path: &Path) -> Result<Self, Diagnostics> {
        let Opened {
            name,
            text,
            files,
            mut sources,
        } = Opened::at(path)?;
        let root = file::load(&name, text, &files, &mut sources, &mut Problems::default());
        Ok(root.map_or(Self::Study, |root| Self::of_root(&root)))
    }

    fn of_root(root: &Node) -> Self {
        let has = |key: &str| entry_as_meant(root, key).is_some();
        let has_any = |keys: &[&str]| keys.iter().any(|key| has(key));
        let dut = entry_as_meant(root, "dut").map(|(_, dut)| &dut.value);
        if has("interfaces") {
            Self::Gateway
        } else if has("captures") || matches!(dut, Some(Value::Scalar(_))) {
            Self::Measured
        } else if has_any(&[
            "dut",
            "path",
            "policies",
            "scenarios",
            "sources",
            "populations",
        ]) {
            Self::Study
        } else if has_any(&["buffer", "largest_frame", "counts", "delays", "tenants"]) {
            Self::Plan
        } else {
            Self::of_slices(root)
        }
    }

    /// Slices alone: by what is said of them.
    fn of_slices(root: &Node) -> Self {
        let Some((_, slices)) = entry_as_meant(root, "slices") else {
            return Self::Study;
        };
        let Value::Mapping(slices) = &slices.value else {
            return Self::Study;
        };
        let has_matches = slices
            .iter()
            .any(|(_, slice)| slice.entry("match").is_some());
        match (has_matches, entry_as_meant(root, "link").is_some()) {
            (true, _) => Self::Measured,
            (false, true) => Self::Plan,
            (false, false) => Self::Study,
        }
    }
}

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
const SETTINGS: [&str; 35] = [
    "assumptions",
    "backward",
    "buffer",
    "captures",
    "counts",
    "delays",
    "description",
    "devices",
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
    "path",
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

#[cfg(test)]
mod tests {
    use super::{FileKind, SETTINGS};
    use crate::json_schema;
    use std::collections::BTreeSet;

    #[test]
    fn the_settings_are_those_of_all_kinds() {
        let kinds = [
            FileKind::Study,
            FileKind::Plan,
            FileKind::Measured,
            FileKind::Gateway,
        ];
        let of_kind = |kind| {
            let schema = json_schema(kind);
            let settings = schema["properties"].as_object().unwrap().keys().cloned();
            settings.collect::<Vec<_>>()
        };
        let all: BTreeSet<String> = kinds.into_iter().flat_map(of_kind).collect();
        let known: BTreeSet<String> = SETTINGS.map(str::to_owned).into();
        assert_eq!(known, all);
    }
}
