//! Lines of a profile file to sections and their settings (`rte_cfgfile_load`).

use crate::error::{Report, Span, TextError, quoted};

/// Longest line, name and value that the application reads (`rte_cfgfile.h`), bytes without the end of the line.
const LINE_BYTES_MAX: usize = 322;
const NAME_BYTES_MAX: usize = 63;
const VALUE_BYTES_MAX: usize = 255;

/// A part of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word<'t> {
    pub(super) text: &'t str,
    pub(super) span: Span,
}

/// `KEY = VALUE`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'t> {
    pub(super) key: Word<'t>,
    pub(super) value: Word<'t>,
}

/// `[NAME]` and the settings below it.
#[derive(Debug, Clone)]
pub(super) struct Section<'t> {
    pub(super) name: Word<'t>,
    pub(super) entries: Vec<Entry<'t>>,
}

impl<'t> Word<'t> {
    /// The trimmed part of `line` from byte `start` to byte `end`.
    fn new(line: &'t str, number: usize, start: usize, end: usize) -> Self {
        let part = line.get(start..end).unwrap_or_default();
        let text = part.trim_start();
        let start = start + part.len() - text.len();
        let text = text.trim_end();
        let before = line.get(..start).unwrap_or_default();
        Self {
            text,
            span: Span {
                line: number,
                column: before.chars().count() + 1,
                length: text.chars().count().max(1),
            },
        }
    }

    pub(super) fn error(&self, problem: &str) -> TextError {
        TextError::at(self.span, format!("{} {problem}", quoted(self.text)))
    }

    /// Its parts between spaces.
    pub(super) fn parts(&self) -> Vec<Word<'t>> {
        let mut parts = Vec::new();
        let mut column = self.span.column;
        for part in self.text.split(char::is_whitespace) {
            let length = part.chars().count();
            if length > 0 {
                let span = Span {
                    column,
                    length,
                    ..self.span
                };
                parts.push(Word { text: part, span });
            }
            column += length + 1;
        }
        parts
    }

    /// Where something after it would be.
    pub(super) const fn end(&self) -> Span {
        Span {
            line: self.span.line,
            column: self.span.column + self.span.length,
            length: 1,
        }
    }
}

/// The sections of a text, in its order.
pub(super) fn sections<'t>(text: &'t str, report: &mut Report) -> Vec<Section<'t>> {
    let mut sections: Vec<Section<'t>> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let content = line.split(';').next().unwrap_or_default();
        let whole = Word::new(line, number, 0, content.len());
        if line.len() > LINE_BYTES_MAX {
            let message = format!("the line has more than {LINE_BYTES_MAX} bytes");
            report.add(|| TextError::at(whole.span, message).expected("a line that DPDK reads"));
        } else if content.trim_start().starts_with('[') {
            sections.push(section(line, content, number, report));
        } else if !whole.text.is_empty() {
            match (entry(line, content, number), sections.last_mut()) {
                (Ok(entry), Some(section)) => section.entries.push(entry),
                (Ok(entry), None) => report.add(|| {
                    let error = entry.key.error("is in no section");
                    error.expected("a section before it, such as `[port]`")
                }),
                (Err(error), _) => report.add(|| error),
            }
        }
    }
    sections
}

/// A section, even where its line is wrong: what is below it belongs to it.
fn section<'t>(line: &'t str, content: &'t str, number: usize, report: &mut Report) -> Section<'t> {
    let whole = Word::new(line, number, 0, content.len());
    let open = content.find('[').map_or(0, |at| at + 1);
    let close = content.find(']');
    match close {
        Some(close) => {
            let after = Word::new(line, number, close + 1, content.len());
            if !after.text.is_empty() {
                let error = || after.error("follows the name of a section");
                report.add(|| error().expected("the end of the line"));
            }
        }
        None => {
            report.add(|| whole.error("has no closing bracket").expected("`[NAME]`"));
        }
    }
    Section {
        name: Word::new(line, number, open, close.unwrap_or(content.len())),
        entries: Vec::new(),
    }
}

/// Where a line ends as on old Macintosh computers, which makes one line of several.
pub(super) fn lone_return(text: &str) -> Option<TextError> {
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(at) = line.find('\r') {
            let span = Word::new(line, number, 0, at).end();
            let error = TextError::at(span, "lines end with CR alone");
            return Some(error.expected("a text that is saved with LF, or CR and LF"));
        }
    }
    None
}

fn entry<'t>(line: &'t str, content: &'t str, number: usize) -> Result<Entry<'t>, TextError> {
    let whole = Word::new(line, number, 0, content.len());
    let Some(equals) = content.find('=') else {
        let error = whole.error("is neither a section nor a setting");
        return Err(error.expected("`[NAME]` or `KEY = VALUE`"));
    };
    let key = Word::new(line, number, 0, equals);
    let value = Word::new(line, number, equals + 1, content.len());
    if key.text.is_empty() {
        return Err(TextError::at(whole.span, "the key is missing").expected("`KEY = VALUE`"));
    }
    if value.text.is_empty() {
        return Err(TextError::at(whole.end(), "the value is missing").expected("`KEY = VALUE`"));
    }
    for (word, most) in [(key, NAME_BYTES_MAX), (value, VALUE_BYTES_MAX)] {
        if word.text.len() > most {
            let problem = format!("has more than {most} bytes, and DPDK cuts it");
            return Err(word.error(&problem));
        }
    }
    Ok(Entry { key, value })
}
