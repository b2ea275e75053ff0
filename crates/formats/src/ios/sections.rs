//! Sections of a configuration that are not about quality of service: skipped, and counted.

use super::lexer::Line;
use crate::error::Span;
use std::collections::BTreeMap;
use std::fmt;

/// Kinds of sections that a summary names.
const KEYWORDS_SHOWN: usize = 8;
/// Longest keyword shown, characters.
const KEYWORD_CHARS: usize = 30;
/// Words shown of the first line of a section: `interface range Gi0/1 - 4`.
const HEADER_WORDS: usize = 5;

/// The lines of a configuration that were skipped because they are not about quality of service.
///
/// Shows itself as "skipped 41 lines: interface, router, …", the sections with most lines first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skipped {
    lines: Vec<usize>,
    first: Option<Span>,
    /// First words, and how many lines begin with them or stand below such a line.
    by_keyword: BTreeMap<String, usize>,
}

impl Skipped {
    /// How many lines; blank ones and comments do not count.
    #[must_use]
    pub const fn lines(&self) -> usize {
        self.lines.len()
    }

    /// Their numbers, from 1, in order.
    #[must_use]
    pub fn numbers(&self) -> &[usize] {
        &self.lines
    }

    /// The first words of the sections, those with most lines first.
    pub fn keywords(&self) -> impl Iterator<Item = &str> {
        let mut sorted: Vec<(&String, &usize)> = self.by_keyword.iter().collect();
        sorted.sort_by_key(|(_, lines)| std::cmp::Reverse(**lines));
        sorted.into_iter().map(|(keyword, _)| keyword.as_str())
    }

    pub(super) const fn first(&self) -> Option<Span> {
        self.first
    }

    /// One more line of `section`.
    pub(super) fn add(&mut self, section: &str, line: &Line<'_>) {
        self.lines.push(line.number);
        if self.first.is_none() {
            self.first = line.words.first().map(|word| word.span);
        }
        match self.by_keyword.get_mut(section) {
            Some(lines) => *lines += 1,
            None => {
                self.by_keyword.insert(section.to_owned(), 1);
            }
        }
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = match self.lines() {
            1 => "1 line".to_owned(),
            lines => format!("{lines} lines"),
        };
        let shown: Vec<&str> = self.keywords().take(KEYWORDS_SHOWN).collect();
        write!(f, "skipped {lines}: {}", shown.join(", "))?;
        match self.by_keyword.len().saturating_sub(shown.len()) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// A part of the configuration that is not about quality of service.
#[derive(Debug, Default)]
pub(super) struct Section {
    /// Keyword under which its lines are counted.
    pub keyword: String,
    /// Its first line, for messages.
    pub header: String,
    /// Of its first line. Deeper lines belong to it.
    pub indent: usize,
}

impl Section {
    pub fn of(line: &Line<'_>) -> Self {
        let plain = |text: &str| -> String {
            let shown = text.chars().filter(|c| !c.is_control());
            shown.take(KEYWORD_CHARS).collect()
        };
        let mut words = line.words.iter().map(|word| word.text);
        let first = words.next().unwrap_or_default();
        // `no aaa new-model` is about `aaa`.
        let keyword = match words.next() {
            Some(second) if first.eq_ignore_ascii_case("no") => second,
            _ => first,
        };
        let header: Vec<String> = line
            .words
            .iter()
            .take(HEADER_WORDS)
            .map(|w| plain(w.text))
            .collect();
        Self {
            keyword: plain(keyword).to_ascii_lowercase(),
            header: header.join(" "),
            indent: line.indent,
        }
    }
}

/// How IOS writes the character that ends a text; the character itself is read, too.
const CONTROL_C: &str = "^C";
const BANNERS: [&str; 8] = [
    "config-save",
    "exec",
    "incoming",
    "login",
    "motd",
    "prompt-timeout",
    "slip-ppp",
    "text",
];

/// Returns the end mark of the free text that begins on `line`, and does not end on it: the text of a banner, a menu or
/// a login message.
pub(super) fn delimiter(line: &Line<'_>) -> Option<String> {
    let is = |index: usize, keyword: &str| line.words.get(index).is_some_and(|w| w.is(keyword));
    let marked = line
        .words
        .iter()
        .position(|word| word.text.starts_with(CONTROL_C) || word.text.starts_with('\u{3}'));
    let at = match marked {
        Some(at) => at,
        None if is(0, "banner") => {
            let is_kind = BANNERS.iter().any(|kind| is(1, kind));
            if is_kind { 2 } else { 1 }
        }
        None if is(0, "aaa")
            && is(1, "authentication")
            && (is(2, "banner") || is(2, "fail-message")) =>
        {
            3
        }
        None => return None,
    };
    let word = line.words.get(at)?;
    let delimiter = if word.text.starts_with(CONTROL_C) {
        CONTROL_C.to_owned()
    } else {
        word.text.chars().next()?.to_string()
    };
    let column = word.span.column - 1 + delimiter.chars().count();
    let after: String = line.text.chars().skip(column).collect();
    (!after.contains(&delimiter)).then_some(delimiter)
}
