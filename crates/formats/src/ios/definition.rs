//! Common part of every definition in a text: its lines, and the mistakes in them.

use super::lexer::Word;
use crate::error::{Report, Span, TextError, closest, quoted};
use std::collections::BTreeMap;

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

/// A name that stands for a definition elsewhere in the text.
#[derive(Debug, Clone)]
pub(super) struct Reference {
    pub name: String,
    pub span: Span,
    /// Index of the definition, once it is known.
    pub index: Option<usize>,
}

impl Reference {
    pub fn new(word: Word<'_>) -> Self {
        Self {
            name: word.text.to_owned(),
            span: word.span,
            index: None,
        }
    }
}

/// The definitions of one kind by name.
#[derive(Debug)]
pub(super) struct Definitions {
    kind: &'static str,
    /// Index among its kind, and line.
    by_name: BTreeMap<String, (usize, usize)>,
}

impl Definitions {
    pub const fn new(kind: &'static str) -> Self {
        Self {
            kind,
            by_name: BTreeMap::new(),
        }
    }

    pub fn index(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).map(|&(index, _)| index)
    }

    /// Enter a name, once.
    pub fn define(&mut self, name: &str, span: Span, index: usize) -> Result<(), TextError> {
        if let Some((_, line)) = self.by_name.get(name) {
            let message = format!("{} {} is defined twice", self.kind, quoted(name));
            return Err(TextError::at(span, message)
                .expected("another name")
                .help(format!("the first is on line {line}")));
        }
        self.by_name.insert(name.to_owned(), (index, span.line));
        Ok(())
    }

    pub fn resolve(&self, reference: &mut Reference, report: &mut Report) {
        reference.index = self.index(&reference.name);
        if reference.index.is_none() {
            report.add(|| self.undefined(&reference.name, reference.span));
        }
    }

    pub fn undefined(&self, name: &str, span: Span) -> TextError {
        let help = closest(name, self.by_name.keys().map(String::as_str))
            .map(|known| format!("did you mean {}?", quoted(known)));
        TextError::at(
            span,
            format!("{} {} is not defined", self.kind, quoted(name)),
        )
        .expected("the name of one defined in this text")
        .maybe_help(help)
    }
}
