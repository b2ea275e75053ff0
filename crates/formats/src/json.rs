//! JSON (RFC 8259) to values with their places.
//!
//! `serde_json` says whether a text is JSON, and `jsonc-parser` where its values are: it takes more than JSON.

use crate::error::{Span, TextError};
use jsonc_parser::ast;
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

/// A value and where it begins.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum Value {
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
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) span: Span,
}

impl Value {
    /// Names the kind of value, for messages.
    pub(crate) fn kind(&self) -> &'static str {
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
pub(crate) fn parse(text: &str) -> Result<Node, TextError> {
    let places = Places::of(text.strip_prefix('\u{feff}').unwrap_or(text));
    serde_json::from_str::<serde_json::Value>(places.text)
        .map_err(|error| places.not_json(&error))?;
    let root = parse_to_ast(
        places.text,
        &CollectOptions::default(),
        &ParseOptions::default(),
    );
    let root =
        root.map_err(|error| TextError::at(places.span(error.range()), error.kind().to_string()))?;
    match root.value {
        Some(value) => Ok(places.node(value)),
        None => Err(TextError::at(
            places.span(Range::new(0, 0)),
            "the text has no value",
        )),
    }
}

/// Turns offsets in bytes into lines and columns.
struct Places<'a> {
    text: &'a str,
    /// Where each line begins.
    lines: Vec<usize>,
}

impl<'a> Places<'a> {
    fn of(text: &'a str) -> Self {
        let next = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            text,
            lines: [0].into_iter().chain(next).collect(),
        }
    }

    /// The stretch of `range` on its first line.
    fn span(&self, range: Range) -> Span {
        let line = self.lines.partition_point(|begin| *begin <= range.start);
        let begin = self.lines.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let chars = |from: usize, to: usize| {
            let part = self.text.get(from..to).unwrap_or_default();
            part.lines().next().unwrap_or_default().chars().count()
        };
        Span {
            line,
            column: chars(begin, range.start) + 1,
            length: chars(range.start, range.end).max(1),
        }
    }

    fn not_json(&self, error: &serde_json::Error) -> TextError {
        // It counts lines from 1, and the bytes up to the end of what it did not expect.
        let line = self.lines.get(error.line().saturating_sub(1));
        let at = line.copied().unwrap_or(0) + error.column().saturating_sub(1);
        let at = self.text.floor_char_boundary(at);
        let span = self.span(Range::new(at, at));
        if error.is_eof() {
            return TextError::at(span, "the text ends too early");
        }
        let message = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let message = message.strip_suffix(&place).unwrap_or(&message);
        TextError::at(span, format!("this is not JSON: {message}"))
            .help("text, and numbers with a unit, are written in double quotes: \"7 Gbit/s\"")
    }

    fn node(&self, value: ast::Value<'_>) -> Node {
        let range = value.range();
        let begin = Range::new(range.start, (range.start + 1).min(range.end));
        let (value, range) = match value {
            ast::Value::NullKeyword(_) => (Value::Null, range),
            ast::Value::BooleanLit(_) => (Value::Bool, range),
            ast::Value::NumberLit(number) => (Value::Number(number.value.to_owned()), range),
            ast::Value::StringLit(text) => (Value::Text(text.value.into_owned()), range),
            ast::Value::Array(list) => {
                let items = list.elements.into_iter().map(|item| self.node(item));
                (Value::List(items.collect()), begin)
            }
            ast::Value::Object(object) => {
                let members = object.properties.into_iter().map(|member| {
                    let span = self.span(member.name.range());
                    let text = member.name.into_string();
                    (Key { text, span }, self.node(member.value))
                });
                (Value::Object(members.collect()), begin)
            }
        };
        Node {
            value,
            span: self.span(range),
        }
    }
}

/// `text` as JSON.
pub(crate) fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::{Value, parse, quote};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quoted_text_reads_the_same(text in any::<String>()) {
            match parse(&quote(&text)).unwrap().value {
                Value::Text(read) => prop_assert_eq!(read, text),
                other => panic!("{other:?}"),
            }
        }

        #[test]
        fn what_is_json_has_places_in_the_text(text in "[\\[\\]{}\",:0-9a-c \n\u{e4}\\\\u]{0,40}") {
            let lines: Vec<usize> = text.split('\n').map(|line| line.chars().count()).collect();
            let span = match parse(&text) {
                Ok(node) => node.span,
                Err(error) => error.span(),
            };
            prop_assert!(span.line >= 1 && span.line <= lines.len(), "{:?}", span);
            prop_assert!(span.column <= lines[span.line - 1] + 1, "{:?}", span);
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
            assert!(matches!(parse(text).unwrap().value, Value::Number(read) if read == text));
        }
        for text in [
            "", "01", "1.", ".5", "+1", "1e", "0x1", "--1", "NaN", "1 // one", "[1,]", "[1 2]",
            "{a: 1}", "'a'",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
