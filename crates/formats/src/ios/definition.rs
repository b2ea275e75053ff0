//! What every definition of a text has: its lines, and what is wrong in them.

use crate::error::{Report, TextError};

/// Where a definition stands, and its errors. They count only where a policy needs the definition:
/// a whole configuration has many that have nothing to do with the policy.
#[derive(Debug, Clone, Default)]
pub(super) struct Source {
    /// Numbers of its lines, from 1.
    pub lines: Vec<usize>,
    /// Of single lines.
    pub wrong: Report,
    /// Of names that stand for other definitions, and of commands that exclude each other. They are
    /// of interest where every line could be read.
    pub unlinked: Report,
}

impl Source {
    pub fn add_failure(&mut self, result: Result<(), TextError>) {
        self.wrong.add_failure(result);
    }
}
