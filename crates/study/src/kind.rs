//! Which kind of file one is.

use crate::diagnostics::Diagnostics;
use crate::file::{self, Node, Problems, Value};
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
        let has = |key: &str| root.entry(key).is_some();
        let has_any = |keys: &[&str]| keys.iter().any(|key| has(key));
        let dut = root.entry("dut").map(|(_, dut)| &dut.value);
        if has("interfaces") {
            Self::Gateway
        } else if has("captures") || matches!(dut, Some(Value::Scalar(_))) {
            Self::Measured
        } else if has_any(&["dut", "policies", "scenarios", "sources", "populations"]) {
            Self::Study
        } else if has_any(&["buffer", "largest_frame", "counts", "delays", "tenants"]) {
            Self::Plan
        } else {
            Self::of_slices(root)
        }
    }

    /// Slices alone are told by what is said of them.
    fn of_slices(root: &Node) -> Self {
        let Some((_, slices)) = root.entry("slices") else {
            return Self::Study;
        };
        let Value::Mapping(slices) = &slices.value else {
            return Self::Study;
        };
        let has_matches = slices
            .iter()
            .any(|(_, slice)| slice.entry("match").is_some());
        match (has_matches, root.entry("link").is_some()) {
            (true, _) => Self::Measured,
            (false, true) => Self::Plan,
            (false, false) => Self::Study,
        }
    }
}
