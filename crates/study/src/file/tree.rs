//! A YAML document as a tree: every value and key knows its place.
//!
//! The parser resolves aliases and merge keys, refuses duplicate keys, and keeps a budget, so that
//! neither a bomb of aliases nor endless nesting gets this far.

use super::sources::{FileId, Problems, Sources, Span, to_u32};
use crate::diagnostics::{MAX_DIAGNOSTICS, closest};
use serde::Deserialize;
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Location, MessageFormatter, Spanned, UserMessageFormatter};
use std::fmt;

/// A value and its place. A mapping's or list's own place is that of the key before it, if any.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) span: Span,
}

#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    /// The text as written: no number is read until it is known what it should be.
    Scalar(String),
    List(Vec<Node>),
    /// In the order written.
    Mapping(Vec<(Key, Node)>),
}

#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) span: Span,
}

impl Node {
    /// Where to point at: the value itself where it is short, else the key before it.
    pub(crate) fn anchor(&self, key: Option<Span>) -> Span {
        match self.value {
            Value::Scalar(_) => self.span,
            Value::Null | Value::List(_) | Value::Mapping(_) => key.unwrap_or(self.span),
        }
    }

    /// The text of a single value.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// How many values and keys it consists of.
    pub(crate) fn values(&self) -> usize {
        let below: usize = match &self.value {
            Value::Null | Value::Scalar(_) => 0,
            Value::List(items) => items.iter().map(Self::values).sum(),
            Value::Mapping(entries) => entries.iter().map(|(_, node)| 1 + node.values()).sum(),
        };
        1 + below
    }

    pub(crate) fn is_mapping(&self) -> bool {
        matches!(self.value, Value::Mapping(_))
    }

    /// The entries of a mapping; none of anything else.
    pub(crate) fn entries(&self) -> &[(Key, Self)] {
        match &self.value {
            Value::Mapping(entries) => entries,
            _ => &[],
        }
    }

    /// The same, to be changed.
    pub(crate) fn entries_mut(&mut self) -> Option<&mut Vec<(Key, Self)>> {
        match &mut self.value {
            Value::Mapping(entries) => Some(entries),
            _ => None,
        }
    }

    /// The items of a list; none of anything else.
    pub(crate) fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    pub(crate) fn entry(&self, key: &str) -> Option<(&Key, &Self)> {
        let mut entries = self.entries().iter();
        entries.find(|(k, _)| k.text == key).map(|(k, it)| (k, it))
    }

    pub(crate) fn entry_mut(&mut self, key: &str) -> Option<&mut Self> {
        let mut entries = self.entries_mut()?.iter_mut();
        entries.find(|(k, _)| k.text == key).map(|(_, it)| it)
    }

    /// Returns true if the values are equal, wherever they stand.
    pub(crate) fn says_the_same_as(&self, other: &Self) -> bool {
        match (&self.value, &other.value) {
            (Value::Null, Value::Null) => true,
            (Value::Scalar(one), Value::Scalar(other)) => one == other,
            (Value::List(one), Value::List(other)) => {
                one.len() == other.len()
                    && one
                        .iter()
                        .zip(other)
                        .all(|(one, other)| one.says_the_same_as(other))
            }
            (Value::Mapping(one), Value::Mapping(entries)) => {
                one.len() == entries.len()
                    && one.iter().all(|(key, node)| {
                        let same = other.entry(&key.text);
                        same.is_some_and(|(_, other)| node.says_the_same_as(other))
                    })
            }
            _ => false,
        }
    }

    /// The first entry whose key may be `key` misspelt.
    pub(crate) fn entry_resembling(&self, key: &str) -> Option<(&Key, &Self)> {
        let mut likely = self.entries().iter().take(MAX_DIAGNOSTICS);
        likely
            .find(|(written, _)| closest(&written.text, [key]).is_some())
            .map(|(key, node)| (key, node))
    }

    /// The bytes from the first to the last of everything below, as far as it is in one file.
    pub(crate) fn extent(&self) -> Span {
        let mut extent = self.span;
        let mut join = |span: Span| {
            if span.file == extent.file {
                extent.start = extent.start.min(span.start);
                extent.end = extent.end.max(span.end);
            }
        };
        match &self.value {
            Value::Null | Value::Scalar(_) => {}
            Value::List(items) => items.iter().for_each(|item| join(item.extent())),
            Value::Mapping(entries) => {
                for (key, node) in entries {
                    join(key.span);
                    join(node.extent());
                }
            }
        }
        extent
    }

    /// Returns true if everything below is written in this order from `start` on: nothing is an alias of what stands elsewhere.
    pub(crate) fn is_written_from(&self, start: Span) -> bool {
        let mut before = start;
        self.is_written_behind(&mut before)
    }

    fn is_written_behind(&self, before: &mut Span) -> bool {
        match &self.value {
            Value::Null => true,
            Value::Scalar(_) => follows(self.span, before),
            Value::List(items) => items.iter().all(|item| item.is_written_behind(before)),
            Value::Mapping(entries) => entries
                .iter()
                .all(|(key, node)| follows(key.span, before) && node.is_written_behind(before)),
        }
    }
}

fn follows(span: Span, before: &mut Span) -> bool {
    let follows = span.file == before.file && span.start >= before.start;
    *before = span;
    follows
}

/// In one line, for people to read.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = |index: usize| if index == 0 { "" } else { ", " };
        match &self.value {
            Value::Null => f.write_str("null"),
            Value::Scalar(text) => f.write_str(text),
            Value::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", separator(index))?;
                }
                f.write_str("]")
            }
            Value::Mapping(entries) => {
                f.write_str("{")?;
                for (index, (key, node)) in entries.iter().enumerate() {
                    write!(f, "{}{}: {node}", separator(index), key.text)?;
                }
                f.write_str("}")
            }
        }
    }
}

/// Value as the parser hands it over: a scalar's text is kept where it was a string; anything else is read again from
/// the file, so that `010`, `1_000` and `on` stay as they were written.
enum Raw {
    Null,
    Plain,
    Text(String),
    List(Vec<Spanned<Raw>>),
    Mapping(Vec<(Spanned<String>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

/// Values that are read again from the file.
macro_rules! plain {
    ($($visit:ident: $type:ty),* $(,)?) => {
        $(fn $visit<E>(self, _: $type) -> Result<Raw, E> {
            Ok(Raw::Plain)
        })*
    };
}

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_some<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        deserializer.deserialize_any(self)
    }

    plain! {
        visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_i128: i128, visit_u128: u128,
        visit_f64: f64,
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Mapping(entries))
    }
}

const TOO_COMPLEX: &str = "the document is too large or too complex: it has more than 4,000,000 \
                           values, aliases that stand for more than 200,000, or is nested too deeply";

const SECOND_DOCUMENT: &str = "a second document begins here, but a file must hold one";

/// Read the YAML of a file already among `sources`; `None` where that is not possible, and why
/// among `problems`.
pub(crate) fn parse(file: FileId, sources: &Sources, problems: &mut Problems) -> Option<Node> {
    let text = sources.text(file);
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            // A gateway's file with 100,000 slices has 1.5 million.
            max_nodes: 4_000_000,
            max_events: 8_000_000,
            max_depth: 40,
            // A second one is an error of its own.
            max_documents: 2,
            max_aliases: 20_000,
            max_anchors: 10_000,
            max_recorded_anchor_events: 200_000,
            alias_anchor_ratio_multiplier: 200,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 200_000,
            max_replay_stack_depth: 16,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    match serde_saphyr::from_str_with_options::<Spanned<Raw>>(text, options) {
        Ok(raw) => Some(node(raw, file, sources)),
        Err(error) => {
            let error = error.without_snippet();
            let span = match error.location() {
                Some(location) if location.span().byte_offset().is_some() => span(location, file),
                Some(location) => position(location, file, text),
                None => Span {
                    file,
                    start: 0,
                    end: 0,
                },
            };
            if matches!(error, serde_saphyr::Error::MultipleDocuments { .. }) {
                let help =
                    "remove the line `---` and what follows it, or move that to its own file";
                problems.add_with_help(span, SECOND_DOCUMENT, help);
                return None;
            }
            let message = UserMessageFormatter.format_message(error);
            // The parser names the counter that ran over, which says little to a reader.
            let message = if message.starts_with("YAML document too large or too complex") {
                TOO_COMPLEX.into()
            } else {
                message
            };
            problems.add(span, message);
            None
        }
    }
}

/// A place known by line and column only.
fn position(location: Location, file: FileId, text: &str) -> Span {
    let index = |number: u64| usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
    let lines = text.split_inclusive('\n');
    let line_start: usize = lines.take(index(location.line())).map(str::len).sum();
    let rest = text.get(line_start..).unwrap_or_default();
    let before: usize = rest
        .chars()
        .take(index(location.column()))
        .map(char::len_utf8)
        .sum();
    let start = to_u32(line_start.saturating_add(before));
    Span {
        file,
        start,
        end: start,
    }
}

fn span(location: Location, file: FileId) -> Span {
    let narrow = |offset: Option<u64>| offset.and_then(|o| u32::try_from(o).ok()).unwrap_or(0);
    let start = narrow(location.span().byte_offset());
    let length = narrow(location.span().byte_len());
    Span {
        file,
        start,
        end: start.saturating_add(length),
    }
}

fn node(raw: Spanned<Raw>, file: FileId, sources: &Sources) -> Node {
    let mut place = span(raw.defined, file);
    let value = match raw.value {
        Raw::Null => Value::Null,
        Raw::Plain => Value::Scalar(sources.slice(place).to_owned()),
        Raw::Text(text) => Value::Scalar(text),
        Raw::List(items) => {
            place.end = place.start;
            Value::List(
                items
                    .into_iter()
                    .map(|item| node(item, file, sources))
                    .collect(),
            )
        }
        Raw::Mapping(entries) => {
            place.end = place.start;
            let entries = entries.into_iter().map(|(key, value)| {
                let key = Key {
                    text: key.value,
                    span: span(key.defined, file),
                };
                (key, node(value, file, sources))
            });
            Value::Mapping(entries.collect())
        }
    };
    // A block scalar's span ends before the next token: trailing blanks do not belong to it.
    let written = sources.slice(place);
    let trimmed = written.trim_end().len();
    place.end = place.start.saturating_add(to_u32(trimmed));
    Node { value, span: place }
}
