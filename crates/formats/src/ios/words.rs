//! Reading the words of a line one after another, with an error for every disappointment.

use super::lexer::{Line, Word};
use crate::error::Span;
use crate::error::{TextError, one_of, quoted, suggestion};
use std::ops::RangeInclusive;

/// Longest name of a class map, policy map or access list, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// The words of a line not read yet.
pub(super) struct Words<'l, 'a> {
    line: &'l Line<'a>,
    next: usize,
}

impl<'l, 'a> Words<'l, 'a> {
    pub fn new(line: &'l Line<'a>) -> Self {
        Self { line, next: 0 }
    }

    pub fn peek(&self) -> Option<Word<'a>> {
        self.line.words.get(self.next).copied()
    }

    /// The words not read yet, one space apart.
    pub fn rest(&self) -> String {
        self.text_from(self.next)
    }

    /// All words of the line, one space apart.
    pub fn whole(&self) -> String {
        self.text_from(0)
    }

    fn text_from(&self, index: usize) -> String {
        let words = self.line.words.iter().skip(index);
        let words: Vec<&str> = words.map(|word| word.text).collect();
        words.join(" ")
    }

    /// The word `index` places after the next.
    pub fn at(&self, index: usize) -> Option<Word<'a>> {
        self.line.words.get(self.next + index).copied()
    }

    pub fn take(&mut self) -> Option<Word<'a>> {
        let word = self.peek()?;
        self.next += 1;
        Some(word)
    }

    /// The next word if it is `keyword`.
    pub fn take_if(&mut self, keyword: &str) -> Option<Word<'a>> {
        self.peek().filter(|word| word.is(keyword))?;
        self.take()
    }

    /// Returns true if the word at `index` begins `type queuing`, `type queueing` or `type qos`, which NX-OS and some
    /// releases of IOS write where others write nothing.
    pub fn is_queueing_type(&self, index: usize) -> bool {
        const TYPES: [&str; 3] = ["queuing", "queueing", "qos"];
        let [first, kind] = [index, index + 1].map(|index| self.at(index));
        first.is_some_and(|word| word.is("type"))
            && kind.is_some_and(|word| TYPES.iter().any(|kind| word.is(kind)))
    }

    /// Read over `type queuing`.
    pub fn take_queueing_type(&mut self) {
        if self.is_queueing_type(0) {
            self.take();
            self.take();
        }
    }

    /// The next word if it begins with a digit, as every number does.
    pub fn peek_number(&self) -> Option<Word<'a>> {
        self.peek()
            .filter(|word| word.text.starts_with(|c: char| c.is_ascii_digit()))
    }

    /// Where the next word stands, or should.
    pub fn span(&self) -> Span {
        self.peek().map_or(self.line.end, |word| word.span)
    }

    /// Where the last word taken stands.
    pub fn last_span(&self) -> Span {
        self.line
            .words
            .get(self.next.saturating_sub(1))
            .map_or(self.line.end, |word| word.span)
    }

    /// The error that `expected` should have come here.
    pub fn missing(&self, expected: impl Into<String>) -> TextError {
        let Some(word) = self.peek() else {
            return TextError::at(self.line.end, "the line ends too early").expected(expected);
        };
        let error = TextError::at(word.span, format!("unexpected {}", quoted(word.text)));
        let error = error.expected(expected);
        // A keyword like none that is known is one of a device or a version that is not modelled.
        match word.text.starts_with(|c: char| c.is_ascii_alphabetic()) {
            true => error.unmodelled(),
            false => error,
        }
    }

    pub fn require(&mut self, expected: &str) -> Result<Word<'a>, TextError> {
        self.take().ok_or_else(|| self.missing(expected))
    }

    /// The name of something: one word of printable ASCII.
    pub fn name(&mut self, expected: &str) -> Result<Word<'a>, TextError> {
        let word = self.require(expected)?;
        match valid_name("definition", word.text) {
            Ok(()) => Ok(word),
            Err(problem) => Err(TextError::at(word.span, problem).expected(expected)),
        }
    }

    /// A whole number of `what` within `range`.
    pub fn number(&mut self, what: &str, range: RangeInclusive<u64>) -> Result<u64, TextError> {
        let expected = || format!("{what}, {} to {}", range.start(), range.end());
        let word = self.take().ok_or_else(|| self.missing(expected()))?;
        let digits = word.text.bytes().all(|b| b.is_ascii_digit());
        let problem = match word.text.parse::<u64>() {
            Ok(number) if digits && range.contains(&number) => return Ok(number),
            _ if digits => "is out of range",
            _ => "is not a whole number",
        };
        let message = format!("{} {problem}", quoted(word.text));
        Err(TextError::at(word.span, message).expected(expected()))
    }

    /// As [`number`](Self::number), for a narrower type.
    pub fn small<T: Copy + TryFrom<u64> + Into<u64>>(
        &mut self,
        what: &str,
        range: RangeInclusive<T>,
    ) -> Result<T, TextError> {
        let number = self.number(what, (*range.start()).into()..=(*range.end()).into())?;
        // The range keeps the number within T.
        Ok(T::try_from(number).unwrap_or(*range.end()))
    }

    /// One of `options`, by keyword.
    pub fn choose<T: Copy>(&mut self, options: &[(&str, T)]) -> Result<T, TextError> {
        let keywords: Vec<&str> = options.iter().map(|&(keyword, _)| keyword).collect();
        let Some(word) = self.peek() else {
            return Err(self.missing(one_of(&keywords)));
        };
        if let Some(&(_, value)) = options.iter().find(|(keyword, _)| word.is(keyword)) {
            self.next += 1;
            return Ok(value);
        }
        let help = suggestion(word.text, keywords.iter().copied());
        Err(self.missing(one_of(&keywords)).maybe_help(help))
    }

    /// Nothing more may follow.
    pub fn end(&self) -> Result<(), TextError> {
        match self.peek() {
            None => Ok(()),
            Some(word) if word.text.starts_with('!') => Err(self
                .missing("the end of the line")
                .help("IOS reads a comment only on a line of its own")),
            Some(_) => Err(self.missing("the end of the line")),
        }
    }

    /// Ignore the rest: free text.
    pub fn take_text(&mut self) {
        self.next = self.line.words.len();
    }
}

/// Checks that `name` can be a name in IOS; otherwise says why not.
pub(super) fn valid_name(kind: &str, name: &str) -> Result<(), String> {
    let printable = name.bytes().all(|b| b.is_ascii_graphic());
    if name.is_empty() || !printable {
        return Err(format!(
            "{} is not one word of printable ASCII",
            quoted(name)
        ));
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(format!(
            "{} has more than {NAME_BYTES_MAX} characters",
            quoted(name)
        ));
    }
    if name.eq_ignore_ascii_case("type") {
        return Err(format!(
            "{} is a keyword, not the name of a {kind}",
            quoted(name)
        ));
    }
    Ok(())
}
