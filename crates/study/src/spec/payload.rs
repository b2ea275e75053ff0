//! The sizes of a source's packets as written.

use super::containers::Short;
use super::scalar::{NUMBER, SIZE_UNITS, Scalar, Text};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, MapAccess, Visitor};
use slicewise_units::ByteCount;
use std::borrow::Cow;
use std::fmt;

/// One size, several with the weight of each, or a name for sizes.
pub(crate) type PayloadSpec = Short<Payload, SizeWeights>;

/// A payload written as one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Payload {
    Size(ByteCount),
    /// Simple IMIX.
    Imix,
    /// The sizes of the capture that is replayed.
    Capture,
}

impl Scalar for Payload {
    const NAME: &'static str = "Payload";

    fn from_text(text: &str) -> Result<Self, String> {
        match text.trim() {
            "imix" | "IMIX" => Ok(Self::Imix),
            "capture" => Ok(Self::Capture),
            // Not the sentence of a size: a word was tried.
            word if word.starts_with(|c: char| c.is_ascii_alphabetic()) => Err(format!(
                "`{word}` is not a payload: write a size (`1448 B`), sizes with weights (`{{64 B: 7, 1448 B: 1}}`), \
                 `imix` or `capture`"
            )),
            size => ByteCount::from_text(size).map(Self::Size),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "anyOf": [ByteCount::schema(), { "enum": ["imix", "IMIX", "capture"] }] })
    }
}

/// Sizes, and how often each is drawn relative to the others.
#[derive(Debug, Clone)]
pub(crate) struct SizeWeights(pub(crate) Vec<(Text<ByteCount>, Text<u32>)>);

impl<'de> Deserialize<'de> for SizeWeights {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SizesVisitor)
    }
}

struct SizesVisitor;

impl<'de> Visitor<'de> for SizesVisitor {
    type Value = SizeWeights;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sizes, each with its weight")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SizeWeights, A::Error> {
        let mut sizes = Vec::new();
        while let Some(size) = map.next_key()? {
            // What failed is reported already: the others are read all the same.
            if let Ok(weight) = map.next_value() {
                sizes.push((size, weight));
            }
        }
        Ok(SizeWeights(sizes))
    }
}

impl JsonSchema for SizeWeights {
    fn schema_name() -> Cow<'static, str> {
        "SizeWeights".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "propertyNames": { "pattern": format!("^ *{NUMBER} *({SIZE_UNITS}) *$") },
            "additionalProperties": generator.subschema_for::<Text<u32>>(),
            "minProperties": 1,
        })
    }
}
