//! Common part of every definition in a text: its lines, and the mistakes in them.

use crate::error::{Report, Span, TextError};

/// Where a definition stands, and its errors. They count only where a policy needs the definition:
/// a whole configuration has many that have nothing to do with the policy.
#[derive(Debug, Clone, Default)]
pub(super) struct Source {
    /// Numbers of its lines, from 1.
    pub lines: Vec<usize>,
    /// Of single lines.
    pub wrong: Report,
    /// Lines that are no mistake and not modelled: a lenient reader leaves them out.
    pub unmodelled: Vec<UnmodelledLine>,
    /// Of names that stand for other definitions, and of commands that exclude each other. They are
    /// of interest where every line could be read.
    pub unlinked: Report,
}

/// A line that is not modelled.
#[derive(Debug, Clone)]
pub(super) struct UnmodelledLine {
    /// The line, without indentation.
    pub command: String,
    /// Part of the line that is not modelled, and why.
    pub error: TextError,
}

/// A line, or a part of one, that changes no result.
#[derive(Debug, Clone)]
pub(super) struct WithoutEffect {
    /// Its first words.
    pub command: String,
    pub why: &'static str,
    pub span: Span,
}

impl Source {
    /// Adds the mistake in the line `command`, if there is one.
    pub fn add_failure(&mut self, result: Result<(), TextError>, command: impl FnOnce() -> String) {
        match result {
            Err(error) if error.is_unmodelled => {
                let command = command();
                self.unmodelled.push(UnmodelledLine { command, error });
            }
            result => self.wrong.add_failure(result),
        }
    }
}
