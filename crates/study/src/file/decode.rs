//! From the tree to the structs of [`crate::spec`], through their derived `Deserialize`.
//!
//! The derive gives one error and stops. Here unknown keys are reported as they are met and passed
//! over, and a list or a table of named things goes on after an entry that failed.

use super::merge::unknown_key;
use super::sources::{Problems, Span};
use super::tree::{Key, Node, Value};
use crate::diagnostics::{closest, suggestion};
use serde::Deserialize;
use serde::de::value::{StrDeserializer, U32Deserializer};
use serde::de::{self, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;

/// Marks a value wrapped in its place; no struct of a study has this name.
const AT: &str = "$slicewise::At";
/// Marks a value that comes with what kind of node it was.
const KINDED: &str = "$slicewise::Kinded";

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeKind {
    Scalar,
    List,
    Mapping,
}

/// A value that may be written in more than one form.
pub(crate) trait Kinded<'de>: Sized {
    /// Read the form for a node of `kind`.
    fn deserialize_kind<D: de::Deserializer<'de>>(
        kind: NodeKind,
        deserializer: D,
    ) -> Result<Self, D::Error>;
}

/// [`Deserialize::deserialize`] for a type that depends on the kind of its node.
pub(crate) fn deserialize_kinded<'de, T: Kinded<'de>, D: de::Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_newtype_struct(KINDED, KindedVisitor(PhantomData))
}

/// Read a `T` from `root`. What is wrong goes among `problems`; `None` where nothing is left.
pub(crate) fn decode<'de, T: Deserialize<'de>>(
    root: &'de Node,
    problems: &mut Problems,
) -> Option<T> {
    let sink = RefCell::new(std::mem::take(problems));
    let result = T::deserialize(NodeDeserializer {
        node: root,
        key: None,
        sink: &sink,
    });
    let value = result.map_err(|error| error.report(root.span, &sink)).ok();
    *problems = sink.into_inner();
    value
}

/// An error on its way to the sink.
#[derive(Debug)]
pub(crate) struct DecodeError {
    message: String,
    /// It is in the sink already, and only stops what was being read.
    is_reported: bool,
}

impl DecodeError {
    fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_reported: false,
        }
    }

    fn report(self, span: Span, sink: &RefCell<Problems>) -> Self {
        if !self.is_reported {
            sink.borrow_mut().add(span, self.message.as_str());
        }
        Self {
            is_reported: true,
            ..self
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for DecodeError {}

impl de::Error for DecodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("`{field}` is missing"))
    }
}

struct NodeDeserializer<'de, 's> {
    node: &'de Node,
    key: Option<Span>,
    sink: &'s RefCell<Problems>,
}

impl<'de> NodeDeserializer<'de, '_> {
    fn anchor(&self) -> Span {
        self.node.anchor(self.key)
    }

    fn text(&self) -> Result<&'de str, DecodeError> {
        match &self.node.value {
            Value::Scalar(text) => Ok(text),
            Value::Null => Err(DecodeError::new("there is no value here")),
            Value::List(_) => Err(DecodeError::new("one value is expected here, not a list")),
            Value::Mapping(_) => Err(DecodeError::new(
                "one value is expected here, not keys with values",
            )),
        }
    }

    /// Report at this node what went wrong in reading it.
    fn located<T>(
        result: Result<T, DecodeError>,
        span: Span,
        sink: &RefCell<Problems>,
    ) -> Result<T, DecodeError> {
        result.map_err(|error| error.report(span, sink))
    }
}

impl<'de> de::Deserializer<'de> for NodeDeserializer<'de, '_> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match &self.node.value {
            Value::Null => visitor.visit_unit(),
            Value::Scalar(text) => visitor.visit_borrowed_str(text),
            Value::List(_) => self.deserialize_seq(visitor),
            Value::Mapping(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let span = self.anchor();
        Self::located(
            self.text().and_then(|t| visitor.visit_borrowed_str(t)),
            span,
            self.sink,
        )
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match name {
            AT => {
                let span = self.anchor();
                visitor.visit_seq(Wrapped {
                    first: vec![span.file.0, span.start, span.end].into_iter(),
                    inner: Some(self),
                })
            }
            KINDED => {
                let kind = match &self.node.value {
                    Value::Null | Value::Scalar(_) => 0,
                    Value::List(_) => 1,
                    Value::Mapping(_) => 2,
                };
                visitor.visit_seq(Wrapped {
                    first: vec![kind].into_iter(),
                    inner: Some(self),
                })
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let span = self.anchor();
        let result = match &self.node.value {
            Value::List(items) => visitor.visit_seq(Items {
                items: items.iter(),
                sink: self.sink,
            }),
            _ => Err(DecodeError::new(
                "a list is expected here, for example `[first, second]`",
            )),
        };
        Self::located(result, span, self.sink)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.mapping(None, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.mapping(Some(fields), visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf
        unit unit_struct tuple tuple_struct enum identifier ignored_any
    }
}

impl<'de> NodeDeserializer<'de, '_> {
    fn mapping<V: Visitor<'de>>(
        self,
        fields: Option<&'static [&'static str]>,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let span = self.anchor();
        let result = match &self.node.value {
            Value::Mapping(entries) => visitor.visit_map(Entries {
                all: entries,
                entries: entries.iter(),
                fields,
                meant: Vec::new(),
                current: None,
                sink: self.sink,
            }),
            _ => Err(DecodeError::new(match fields.and_then(|f| f.first()) {
                Some(first) => format!("settings are expected here, for example `{first}: …`"),
                None => "keys with values are expected here".to_owned(),
            })),
        };
        Self::located(result, span, self.sink)
    }
}

/// A few numbers, then the node itself: how [`At`] and [`Kinded`] are handed over.
struct Wrapped<'de, 's> {
    first: std::vec::IntoIter<u32>,
    inner: Option<NodeDeserializer<'de, 's>>,
}

impl<'de> SeqAccess<'de> for Wrapped<'de, '_> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeError> {
        if let Some(number) = self.first.next() {
            let number: U32Deserializer<DecodeError> = number.into_deserializer();
            return seed.deserialize(number).map(Some);
        }
        self.inner
            .take()
            .map(|inner| seed.deserialize(inner))
            .transpose()
    }
}

struct Items<'de, 's> {
    items: std::slice::Iter<'de, Node>,
    sink: &'s RefCell<Problems>,
}

impl<'de> SeqAccess<'de> for Items<'de, '_> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeError> {
        let Some(node) = self.items.next() else {
            return Ok(None);
        };
        let result = seed.deserialize(NodeDeserializer {
            node,
            key: None,
            sink: self.sink,
        });
        NodeDeserializer::located(result, node.span, self.sink).map(Some)
    }
}

struct Entries<'de, 's> {
    all: &'de [(Key, Node)],
    entries: std::slice::Iter<'de, (Key, Node)>,
    /// The keys there may be; `None` for a table whose keys are names.
    fields: Option<&'static [&'static str]>,
    /// Keys that misspelt ones were read as.
    meant: Vec<&'static str>,
    current: Option<&'de (Key, Node)>,
    sink: &'s RefCell<Problems>,
}

impl Entries<'_, '_> {
    /// The key that a misspelt one is read as, so that it is not reported as missing, too; `None` where it
    /// resembles none, or that one is there.
    fn meant(&mut self, written: &str, fields: &[&'static str]) -> Option<&'static str> {
        let meant = closest(written, fields.iter().copied())?;
        let is_there = self.all.iter().any(|(key, _)| key.text == meant);
        if is_there || self.meant.contains(&meant) {
            return None;
        }
        self.meant.push(meant);
        Some(meant)
    }
}

impl<'de> MapAccess<'de> for Entries<'de, '_> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, DecodeError> {
        while let Some(entry) = self.entries.next() {
            let key = &entry.0;
            if let Some(fields) = self.fields
                && !fields.contains(&key.text.as_str())
            {
                let are_many = self.sink.borrow().are_many();
                let help = if are_many {
                    None
                } else {
                    suggestion(&key.text, fields)
                };
                self.sink
                    .borrow_mut()
                    .add_with_help(key.span, unknown_key(&key.text), help);
                if are_many {
                    continue;
                }
                let Some(meant) = self.meant(&key.text, fields) else {
                    continue;
                };
                self.current = Some(entry);
                let key: StrDeserializer<'_, DecodeError> = meant.into_deserializer();
                return seed.deserialize(key).map(Some);
            }
            self.current = Some(entry);
            return seed.deserialize(KeyDeserializer(key)).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, DecodeError> {
        let Some((key, node)) = self.current.take() else {
            return Err(DecodeError::new("a key has no value"));
        };
        let key = Some(key.span);
        let result = seed.deserialize(NodeDeserializer {
            node,
            key,
            sink: self.sink,
        });
        NodeDeserializer::located(result, node.anchor(key), self.sink)
    }
}

struct KeyDeserializer<'de>(&'de Key);

impl<'de> de::Deserializer<'de> for KeyDeserializer<'de> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_borrowed_str(&self.0.text)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_seq(WrappedKey {
            key: self.0,
            position: 0,
        })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        option unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct WrappedKey<'de> {
    key: &'de Key,
    position: u8,
}

impl<'de> SeqAccess<'de> for WrappedKey<'de> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeError> {
        let span = self.key.span;
        let number = match self.position {
            0 => span.file.0,
            1 => span.start,
            2 => span.end,
            _ => {
                let text: StrDeserializer<'_, DecodeError> =
                    self.key.text.as_str().into_deserializer();
                return seed.deserialize(text).map(Some);
            }
        };
        self.position += 1;
        let number: U32Deserializer<DecodeError> = number.into_deserializer();
        seed.deserialize(number).map(Some)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(AT, AtVisitor(PhantomData))
    }
}

struct AtVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for AtVisitor<T> {
    type Value = At<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value with its place")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<At<T>, A::Error> {
        let mut number = || {
            parts
                .next_element::<u32>()?
                .ok_or_else(|| de::Error::custom("a place is missing"))
        };
        let file = super::FileId(number()?);
        let span = Span {
            file,
            start: number()?,
            end: number()?,
        };
        let value = parts.next_element()?;
        let value = value.ok_or_else(|| de::Error::custom("there is no value here"))?;
        Ok(At { value, span })
    }
}

struct KindedVisitor<T>(PhantomData<T>);

impl<'de, T: Kinded<'de>> Visitor<'de> for KindedVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value in one of its forms")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<T, A::Error> {
        let kind = match parts.next_element::<u32>()? {
            Some(1) => NodeKind::List,
            Some(2) => NodeKind::Mapping,
            _ => NodeKind::Scalar,
        };
        let value = parts.next_element_seed(KindSeed::<T>(kind, PhantomData))?;
        value.ok_or_else(|| de::Error::custom("there is no value here"))
    }
}

struct KindSeed<T>(NodeKind, PhantomData<T>);

impl<'de, T: Kinded<'de>> DeserializeSeed<'de> for KindSeed<T> {
    type Value = T;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        T::deserialize_kind(self.0, deserializer)
    }
}
