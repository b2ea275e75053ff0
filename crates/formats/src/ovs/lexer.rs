//! A script of a shell to the words of its commands, each character with its place.

use crate::error::{Report, Span, TextError, quoted};

/// A character of a word, after quotes are removed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Char {
    c: char,
    line: usize,
    column: usize,
}

/// A word of a command, or a part of one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word<'a> {
    chars: &'a [Char],
    /// Where an empty word would be.
    at: Span,
}

/// The words of one command.
#[derive(Debug, Default)]
pub(super) struct Command {
    words: Vec<(Vec<Char>, Span)>,
}

impl Command {
    pub(super) fn words(&self) -> Vec<Word<'_>> {
        let words = self.words.iter();
        words.map(|(chars, at)| Word { chars, at: *at }).collect()
    }

    /// All words as one, with a space between each two.
    pub(super) fn joined(&self) -> Self {
        let mut chars: Vec<Char> = Vec::new();
        for (word, at) in &self.words {
            if !chars.is_empty() {
                chars.push(Char {
                    c: ' ',
                    line: at.line,
                    column: at.column,
                });
            }
            chars.extend(word);
        }
        let first = self.words.first().map(|(_, at)| (chars, *at));
        Self {
            words: first.into_iter().collect(),
        }
    }
}

impl<'a> Word<'a> {
    pub(super) fn text(&self) -> String {
        self.chars.iter().map(|character| character.c).collect()
    }

    pub(super) fn is(&self, text: &str) -> bool {
        self.chars
            .iter()
            .map(|character| character.c)
            .eq(text.chars())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chars.is_empty()
    }

    pub(super) fn span(&self) -> Span {
        let (Some(first), Some(last)) = (self.chars.first(), self.chars.last()) else {
            return self.at;
        };
        let length = match first.line == last.line {
            true => (last.column + 1).saturating_sub(first.column).max(1),
            false => 1,
        };
        Span {
            line: first.line,
            column: first.column,
            length,
        }
    }

    /// Just past its last character.
    fn end(&self) -> Span {
        let Some(last) = self.chars.last() else {
            return self.at;
        };
        Span {
            line: last.line,
            column: last.column + 1,
            length: 1,
        }
    }

    /// Splits at the first character that `is` holds for.
    pub(super) fn split_once(&self, is: impl Fn(char) -> bool) -> Option<(Self, Self)> {
        let at = self.chars.iter().position(|character| is(character.c))?;
        let rest = self.from(at + 1);
        Some((self.to(at), rest))
    }

    /// The parts between characters that `is` holds for, without empty ones.
    pub(super) fn split(&self, is: impl Fn(char) -> bool) -> Vec<Self> {
        let mut parts = Vec::new();
        let mut rest = *self;
        while let Some((part, behind)) = rest.split_once(&is) {
            parts.push(part);
            rest = behind;
        }
        parts.push(rest);
        parts.retain(|part| !part.is_empty());
        parts
    }

    /// Returns the rest after `prefix`.
    pub(super) fn strip_prefix(&self, prefix: &str) -> Option<Self> {
        let length = prefix.chars().count();
        self.to(length).is(prefix).then(|| self.from(length))
    }

    pub(super) fn strip_suffix(&self, suffix: &str) -> Option<Self> {
        let length = self.chars.len().checked_sub(suffix.chars().count())?;
        self.from(length).is(suffix).then(|| self.to(length))
    }

    /// The first `end` characters.
    pub(super) fn to(&self, end: usize) -> Self {
        let end = end.min(self.chars.len());
        Self {
            chars: self.chars.get(..end).unwrap_or_default(),
            at: self.span(),
        }
    }

    /// All but the first `start` characters.
    pub(super) fn from(&self, start: usize) -> Self {
        Self {
            chars: self.chars.get(start..).unwrap_or_default(),
            at: self.end(),
        }
    }

    pub(super) fn error(&self, problem: &str) -> TextError {
        TextError::at(self.span(), format!("{} {problem}", quoted(&self.text())))
    }
}

/// The commands of `text`, one a line; `\` at the end of a line continues it, `#` before a word begins a comment.
pub(super) fn commands(text: &str, report: &mut Report) -> Vec<Command> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut commands = Vec::new();
    let mut command = Command::default();
    let mut is_continued = false;
    for (index, line) in text.lines().enumerate() {
        let mut lexer = Lexer {
            line: index + 1,
            characters: line.chars().zip(1..).collect(),
            next: 0,
        };
        is_continued = match lexer.words(&mut command) {
            Ok(is_continued) => is_continued,
            Err(error) => {
                report.add(|| error);
                command.words.clear();
                false
            }
        };
        if !is_continued && !command.words.is_empty() {
            commands.push(std::mem::take(&mut command));
        }
    }
    if is_continued && !command.words.is_empty() {
        commands.push(command);
    }
    commands
}

/// One line.
struct Lexer {
    line: usize,
    characters: Vec<(char, usize)>,
    next: usize,
}

impl Lexer {
    fn take(&mut self) -> Option<Char> {
        let &(c, column) = self.characters.get(self.next)?;
        self.next += 1;
        let line = self.line;
        Some(Char { c, line, column })
    }

    fn span(&self, character: Char) -> Span {
        Span {
            line: self.line,
            column: character.column,
            length: 1,
        }
    }

    /// Add the words of the line to `command`; whether the next line continues it.
    fn words(&mut self, command: &mut Command) -> Result<bool, TextError> {
        let mut word: Option<(Vec<Char>, Span)> = None;
        while let Some(character) = self.take() {
            let at = self.span(character);
            if character.c.is_whitespace() {
                command.words.extend(word.take());
                continue;
            }
            if character.c == '#' && word.is_none() {
                break;
            }
            if character.c == '\\' && self.next == self.characters.len() {
                command.words.extend(word.take());
                return Ok(true);
            }
            let (chars, _) = word.get_or_insert_with(|| (Vec::new(), at));
            match character.c {
                '\\' => chars.extend(self.take()),
                '\'' | '"' => self.quoted(character, chars)?,
                ';' | '&' | '|' | '$' | '`' | '<' | '>' => {
                    let c = character.c;
                    let message = format!("`{c}` of the shell is not read");
                    return Err(TextError::at(at, message)
                        .expected("one command a line, with all its values written out"));
                }
                _ => chars.push(character),
            }
        }
        command.words.extend(word);
        Ok(false)
    }

    /// Reads the text between quotes, of which the first was taken.
    fn quoted(&mut self, quote: Char, chars: &mut Vec<Char>) -> Result<(), TextError> {
        while let Some(character) = self.take() {
            if character.c == quote.c {
                return Ok(());
            }
            match (quote.c, character.c) {
                ('"', '$' | '`') => {
                    let message = "variables of the shell are not read";
                    return Err(
                        TextError::at(self.span(character), message).expected("the value itself")
                    );
                }
                ('"', '\\') => chars.extend(self.take()),
                _ => chars.push(character),
            }
        }
        let message = "the quote is not closed on its line";
        Err(TextError::at(self.span(quote), message).expected(format!("a closing {}", quote.c)))
    }
}
