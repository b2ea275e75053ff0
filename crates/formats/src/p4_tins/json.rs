//! JSON (RFC 8259) to values with their places.

use crate::error::{Span, TextError, quoted};
use std::str::Chars;

/// Lists and objects within each other.
const DEPTH_MAX: usize = 16;

/// A value and where it begins.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) span: Span,
}

#[derive(Debug)]
pub(super) enum Value {
    Null,
    Bool,
    /// As written.
    Number(String),
    Text(String),
    List(Vec<Node>),
    /// Names, with their places, and values in the order written.
    Object(Vec<(Key, Node)>),
}

#[derive(Debug)]
pub(super) struct Key {
    pub(super) text: String,
    pub(super) span: Span,
}

impl Value {
    /// What it is, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a truth value",
            Self::Number(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

/// The value that `text` consists of.
pub(super) fn parse(text: &str) -> Result<Node, TextError> {
    let mut parser = Parser {
        rest: text.strip_prefix('\u{feff}').unwrap_or(text).chars(),
        line: 1,
        column: 1,
        last: Span {
            line: 1,
            column: 1,
            length: 1,
        },
    };
    let node = parser.value(0)?;
    parser.spaces();
    match parser.peek() {
        None => Ok(node),
        Some(_) => Err(parser.unexpected("the end of the text")),
    }
}

struct Parser<'a> {
    rest: Chars<'a>,
    line: usize,
    column: usize,
    /// The last character that is not white space: where something is missing at the end.
    last: Span,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    fn here(&self) -> Span {
        Span {
            line: self.line,
            column: self.column,
            length: 1,
        }
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        if !c.is_whitespace() {
            self.last = self.here();
        }
        if c == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(c)
    }

    fn take_if(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(wanted);
        if is_there {
            self.take();
        }
        is_there
    }

    fn spaces(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\r' | '\n')) {
            self.take();
        }
    }

    fn unexpected(&self, expected: &str) -> TextError {
        match self.peek() {
            Some(c) => TextError::at(
                self.here(),
                format!("unexpected {}", quoted(c.encode_utf8(&mut [0; 4]))),
            ),
            None => TextError::at(self.last, "the text ends too early"),
        }
        .expected(expected)
    }

    /// The stretch of this line from `start` to here.
    fn since(&self, start: Span) -> Span {
        Span {
            length: self.column.saturating_sub(start.column).max(1),
            ..start
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, TextError> {
        self.spaces();
        let start = self.here();
        if depth > DEPTH_MAX {
            let message = format!("nested deeper than {DEPTH_MAX} levels");
            return Err(TextError::at(start, message));
        }
        let value = match self.peek() {
            Some('{') => return self.object(depth, start),
            Some('[') => return self.list(depth, start),
            Some('"') => Value::Text(self.text()?),
            Some(c) if c == '-' || c.is_ascii_digit() => self.number()?,
            Some(c) if c.is_ascii_alphabetic() => self.word(start)?,
            _ => return Err(self.unexpected("a value")),
        };
        let span = self.since(start);
        Ok(Node { value, span })
    }

    fn word(&mut self, start: Span) -> Result<Value, TextError> {
        let mut word = String::new();
        while let Some(c) = self.peek().filter(char::is_ascii_alphanumeric) {
            word.push(c);
            self.take();
        }
        match word.as_str() {
            "null" => Ok(Value::Null),
            "true" | "false" => Ok(Value::Bool),
            other => Err(TextError::at(
                self.since(start),
                format!("{} is not a value of JSON", quoted(other)),
            )
            .help("text is written in double quotes")),
        }
    }

    fn number(&mut self) -> Result<Value, TextError> {
        let start = self.here();
        let mut text = String::new();
        while let Some(c) = self
            .peek()
            .filter(|c| c.is_ascii_alphanumeric() || "+-.".contains(*c))
        {
            text.push(c);
            self.take();
        }
        if is_number(&text) {
            return Ok(Value::Number(text));
        }
        let message = format!("{} is not a number", quoted(&text));
        Err(TextError::at(self.since(start), message)
            .help("a number with a unit is written in double quotes: \"7 Gbit/s\""))
    }

    /// Text in quotes, which the next character begins.
    fn text(&mut self) -> Result<String, TextError> {
        let start = self.here();
        self.take();
        let mut text = String::new();
        loop {
            let escape = self.here();
            match self.take() {
                Some('"') => return Ok(text),
                Some('\\') => {
                    let character = self.escaped().ok_or_else(|| {
                        TextError::at(self.since(escape), "this is no escape of JSON")
                            .expected("one of `\\\"`, `\\\\`, `\\/`, `\\b`, `\\f`, `\\n`, `\\r`, `\\t` and `\\uXXXX`")
                    })?;
                    text.push(character);
                }
                Some(c) if c >= ' ' => text.push(c),
                _ => {
                    let message = "the text is not closed on its line";
                    return Err(TextError::at(start, message).expected("a closing `\"`"));
                }
            }
        }
    }

    /// What an escape stands for, after its backslash.
    fn escaped(&mut self) -> Option<char> {
        Some(match self.take()? {
            c @ ('"' | '\\' | '/') => c,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let first = self.hex()?;
                let is_pair = (0xd800..0xdc00).contains(&first);
                if !is_pair {
                    return char::from_u32(first);
                }
                if self.take()? != '\\' || self.take()? != 'u' {
                    return None;
                }
                let second = self.hex()?;
                let second = (0xdc00..0xe000).contains(&second).then_some(second)?;
                return char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00));
            }
            _ => return None,
        })
    }

    fn hex(&mut self) -> Option<u32> {
        let mut value = 0;
        for _ in 0..4 {
            value = value << 4 | self.peek()?.to_digit(16)?;
            self.take();
        }
        Some(value)
    }

    fn list(&mut self, depth: usize, span: Span) -> Result<Node, TextError> {
        self.take();
        let mut items = Vec::new();
        self.spaces();
        if !self.take_if(']') {
            loop {
                items.push(self.value(depth + 1)?);
                if self.is_over(']', "`,` or `]`")? {
                    break;
                }
            }
        }
        let value = Value::List(items);
        Ok(Node { value, span })
    }

    fn object(&mut self, depth: usize, span: Span) -> Result<Node, TextError> {
        self.take();
        let mut entries = Vec::new();
        self.spaces();
        if !self.take_if('}') {
            loop {
                self.spaces();
                if self.peek() != Some('"') {
                    return Err(self.unexpected("a name in double quotes"));
                }
                let start = self.here();
                let text = self.text()?;
                let span = self.since(start);
                self.spaces();
                if !self.take_if(':') {
                    return Err(self.unexpected("`:` after a name"));
                }
                entries.push((Key { text, span }, self.value(depth + 1)?));
                if self.is_over('}', "`,` or `}`")? {
                    break;
                }
            }
        }
        let value = Value::Object(entries);
        Ok(Node { value, span })
    }

    /// After an item: whether `end` follows rather than a comma.
    fn is_over(&mut self, end: char, expected: &str) -> Result<bool, TextError> {
        self.spaces();
        if self.take_if(end) {
            return Ok(true);
        }
        match self.take_if(',') {
            true => Ok(false),
            false => Err(self.unexpected(expected)),
        }
    }
}

/// RFC 8259, section 6.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_exponent = |text: &str| digits(text.strip_prefix(['+', '-']).unwrap_or(text));
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(is_exponent)
}

/// `text` as JSON.
pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::{Value, is_number, parse, quote};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quoted_text_reads_the_same(text in any::<String>()) {
            match parse(&quote(&text)).unwrap().value {
                Value::Text(read) => prop_assert_eq!(read, text),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn escapes_are_read() {
        let text = r#" "\u00e4\ud83d\ude00\/\n" "#;
        match parse(text).unwrap().value {
            Value::Text(read) => assert_eq!(read, "\u{e4}\u{1f600}/\n"),
            other => panic!("{other:?}"),
        }
        for text in [
            r#""\ud83d""#,
            r#""\udc00""#,
            r#""\x""#,
            r#""\u12"#,
            "\"a\nb\"",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_are_those_of_json() {
        for text in ["0", "-1", "10.5", "1e9", "1E-3"] {
            assert!(is_number(text), "{text}");
        }
        for text in ["", "01", "1.", ".5", "+1", "1e", "0x1", "--1"] {
            assert!(!is_number(text), "{text}");
        }
    }
}
