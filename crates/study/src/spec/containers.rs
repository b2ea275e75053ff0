//! Tables of named things, lists, and values that have a short form.

use super::scalar::{Name, Scalar, Text, name_schema};
use crate::file::{At, Kinded, NodeKind, deserialize_kinded};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// A table: names, and what each is. Keeps the order; an entry that cannot be read is left out,
/// and reported.
#[derive(Debug, Clone)]
pub(crate) struct Named<T>(pub(crate) Vec<(Text<Name>, T)>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Named<T> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Text<Name>, &T)> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(NamedVisitor(PhantomData))
    }
}

struct NamedVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for NamedVisitor<T> {
    type Value = Named<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("names, and what each of them is")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named<T>, A::Error> {
        let mut entries = Vec::new();
        while let Some(name) = map.next_key()? {
            // What failed is reported already: the others are read all the same.
            if let Ok(value) = map.next_value() {
                entries.push((name, value));
            }
        }
        Ok(Named(entries))
    }
}

impl<T: JsonSchema> JsonSchema for Named<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Named{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut names = name_schema();
        // A key is always text to JSON.
        names.insert("type".to_owned(), "string".into());
        json_schema!({
            "type": "object",
            "propertyNames": names,
            "additionalProperties": generator.subschema_for::<T>(),
        })
    }
}

/// A list; an item that cannot be read is left out, and reported.
#[derive(Debug, Clone)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T>(PhantomData<T>);

/// An item, or that it failed.
struct Attempt<T>(Option<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(Attempt(item)) = list.next_element()? {
            items.extend(item);
        }
        Ok(List(items))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Attempt<T> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // What failed is reported already.
        Ok(Self(T::deserialize(deserializer).ok()))
    }
}

impl<T: JsonSchema> JsonSchema for List<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("List{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": generator.subschema_for::<T>() })
    }
}

impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// One of something, or a list.
#[derive(Debug, Clone)]
pub(crate) struct OneOrMany<T>(pub(crate) Vec<T>);

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Kinded<'de> for OneOrMany<T> {
    fn deserialize_kind<D: de::Deserializer<'de>>(
        kind: NodeKind,
        deserializer: D,
    ) -> Result<Self, D::Error> {
        match kind {
            NodeKind::List => List::deserialize(deserializer).map(|list| Self(list.0)),
            NodeKind::Scalar | NodeKind::Mapping => {
                T::deserialize(deserializer).map(|one| Self(vec![one]))
            }
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_kinded(deserializer)
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("OneOrMany{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
    }
}

/// A value with a short form: one value instead of settings.
#[derive(Debug, Clone)]
pub(crate) enum Short<S, L> {
    /// The value alone.
    Value(Text<S>),
    /// All settings.
    Settings(Box<L>),
}

impl<'de, S: Scalar, L: Deserialize<'de>> Kinded<'de> for Short<S, L> {
    fn deserialize_kind<D: de::Deserializer<'de>>(
        kind: NodeKind,
        deserializer: D,
    ) -> Result<Self, D::Error> {
        match kind {
            NodeKind::Scalar => Text::deserialize(deserializer).map(Self::Value),
            NodeKind::List | NodeKind::Mapping => {
                L::deserialize(deserializer).map(|l| Self::Settings(Box::new(l)))
            }
        }
    }
}

impl<'de, S: Scalar, L: Deserialize<'de>> Deserialize<'de> for Short<S, L> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_kinded(deserializer)
    }
}

impl<S: Scalar, L: JsonSchema> JsonSchema for Short<S, L> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("{}Or{}", S::NAME, L::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<Text<S>>();
        let settings = generator.subschema_for::<L>();
        json_schema!({ "anyOf": [value, settings] })
    }
}
