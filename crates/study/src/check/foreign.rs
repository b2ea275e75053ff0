//! Configurations in other languages, in a file of their own or as a block in the study file.

use super::Checker;
use crate::file::{FileId, Sources, Span};
use crate::spec::{At, Verbatim};
use slicewise_formats::{TextError, TextNote};

/// Advice on a line that is not modelled.
const WAY_ON: &str = "leave it out with `lenient: yes` beside `ios`: the report then says so";

/// Where the text of a configuration stands.
#[derive(Debug, Clone)]
pub(super) struct ForeignText {
    pub(super) text: String,
    placement: Placement,
}

#[derive(Debug, Clone, Copy)]
enum Placement {
    /// A file of its own.
    File(FileId),
    /// A block in the study file: line `n` of it is line `first_line + n` (from 0) of the file,
    /// without the first `indent` bytes.
    Block {
        at: Span,
        first_line: usize,
        indent: usize,
    },
}

impl Checker<'_> {
    /// The text of a configuration; a text of several lines is the configuration itself.
    pub(super) fn foreign_text(&mut self, text: &At<Verbatim>) -> Option<ForeignText> {
        if text.value.0.contains('\n') {
            Some(self.foreign_block(text))
        } else {
            self.foreign_file(text)
        }
    }

    /// Reports the mistakes in a configuration, each at its place.
    pub(super) fn report_foreign(&mut self, text: &ForeignText, errors: Vec<TextError>) {
        for error in errors {
            let span = text.span(self.sources, error.span());
            let message = match &error.expected {
                Some(expected) => format!("{}: expected {expected}", error.message),
                None => error.message,
            };
            let help = match (error.help, error.is_unmodelled) {
                (help, false) => help,
                (None, true) => Some(WAY_ON.to_owned()),
                (Some(help), true) => Some(format!("{help}; or {WAY_ON}")),
            };
            self.problems.add_suggesting(span, message, help);
        }
    }

    /// Warns of the notes on the configuration of `name`, and states them in the report.
    pub(super) fn note_foreign(
        &mut self,
        name: &At<String>,
        text: &ForeignText,
        notes: Vec<TextNote>,
    ) {
        self.state_foreign(name, text, &notes);
        for note in notes {
            let span = text.span(self.sources, note.span);
            self.problems.warn(span, note.message);
        }
    }

    /// State in the report what was made of the configuration of `name`.
    pub(super) fn state_foreign(
        &mut self,
        name: &At<String>,
        text: &ForeignText,
        notes: &[TextNote],
    ) {
        for note in notes {
            let span = text.span(self.sources, note.span);
            let place = self.sources.place(span);
            let statement = format!("`{}`, {place}: {}.", name.value, note.message);
            self.statements.push(statement);
        }
    }

    fn foreign_file(&mut self, text: &At<Verbatim>) -> Option<ForeignText> {
        let path = self.sources.beside(text.span.file, text.value.0.trim());
        let file = match self.sources.find(&path) {
            Some(file) => file,
            None => match self.files.read(&path) {
                Ok(content) => self.sources.add(&path, content),
                Err(error) => {
                    self.unreadable(text.span, &path, &error);
                    return None;
                }
            },
        };
        let text = self.sources.text(file).to_owned();
        Some(ForeignText {
            text,
            placement: Placement::File(file),
        })
    }

    fn foreign_block(&self, text: &At<Verbatim>) -> ForeignText {
        let at = text.span;
        let file = self.sources.text(at.file);
        let start = usize::try_from(at.start).unwrap_or(usize::MAX);
        let before = file.get(..start).unwrap_or_default();
        // The place of a block is its first line that is not blank; blank ones before it count.
        let blank = (text.value.0)
            .lines()
            .take_while(|line| line.trim().is_empty())
            .count();
        let first_line = before.matches('\n').count().saturating_sub(blank);
        let lines = file.lines().skip(first_line);
        let indented = lines
            .clone()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default();
        let indent = indented.len() - indented.trim_start_matches(' ').len();
        ForeignText {
            text: text.value.0.clone(),
            placement: Placement::Block {
                at,
                first_line,
                indent,
            },
        }
    }
}

impl ForeignText {
    /// The place in its file of a place in the text.
    pub(super) fn span(&self, sources: &Sources, place: slicewise_formats::Span) -> Span {
        let slicewise_formats::Span {
            line,
            column,
            length,
        } = place;
        let (file, line, indent) = match self.placement {
            Placement::File(file) => (file, line.saturating_sub(1), 0),
            Placement::Block {
                at,
                first_line,
                indent,
            } => {
                let in_file = first_line + line.saturating_sub(1);
                // A quoted text is not laid out line by line: it is pointed at as a whole.
                if !self.is_block_line(sources, at, in_file, line, indent) {
                    return at;
                }
                (at.file, in_file, indent)
            }
        };
        let text = sources.text(file);
        let mut start = 0;
        for _ in 0..line {
            let rest = text.get(start..).unwrap_or_default();
            let Some(newline) = rest.find('\n') else {
                break;
            };
            start += newline + 1;
        }
        let content = text.get(start..).unwrap_or_default();
        let content = content.split('\n').next().unwrap_or_default();
        let offset = |characters: usize| {
            let shown = content.get(indent.min(content.len())..).unwrap_or_default();
            let bytes: usize = shown.chars().take(characters).map(char::len_utf8).sum();
            u32::try_from(start + indent.min(content.len()) + bytes).unwrap_or(u32::MAX)
        };
        let first = column.saturating_sub(1);
        Span {
            file,
            start: offset(first),
            end: offset(first + length),
        }
    }

    fn is_block_line(
        &self,
        sources: &Sources,
        at: Span,
        in_file: usize,
        line: usize,
        indent: usize,
    ) -> bool {
        let own = self
            .text
            .lines()
            .nth(line.saturating_sub(1))
            .unwrap_or_default();
        let written = sources
            .text(at.file)
            .lines()
            .nth(in_file)
            .unwrap_or_default();
        written.get(indent..).unwrap_or_default().trim_end() == own.trim_end()
    }
}
