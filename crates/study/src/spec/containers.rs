//! Tables of named things, lists, and values that have a short form.

use super::scalar::{NAME_PATTERN, Scalar};
use crate::file::{Decode, Entry, Problems, Schemas, Span, Value};
use serde_json::{Value as Json, json};

/// A value and where it stands.
#[derive(Debug, Clone, Default)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

impl<T: Decode> Decode for At<T> {
    fn decode(entry: Entry<'_>, problems: &mut Problems) -> Option<Self> {
        let span = entry.span();
        T::decode(entry, problems).map(|value| Self { value, span })
    }

    fn schema(schemas: &mut Schemas) -> Json {
        T::schema(schemas)
    }
}

impl<T: Scalar> Decode for T {
    fn decode(entry: Entry<'_>, problems: &mut Problems) -> Option<Self> {
        let read = T::from_text(entry.text(problems)?);
        read.map_err(|message| problems.add(entry.span(), message))
            .ok()
    }

    fn schema(schemas: &mut Schemas) -> Json {
        schemas.reference(T::NAME, |_| T::accepted())
    }
}

impl<T: Decode> Decode for Option<T> {
    fn decode(entry: Entry<'_>, problems: &mut Problems) -> Option<Self> {
        T::decode(entry, problems).map(Some)
    }

    fn schema(schemas: &mut Schemas) -> Json {
        T::schema(schemas)
    }
}

/// A table: names, and what each is. Keeps the order; an entry that cannot be read is left out,
/// and reported.
#[derive(Debug, Clone)]
pub(crate) struct Named<T>(
    pub(crate) Vec<(At<String>, T)>,
    /// Positions in the order of names.
    Vec<usize>,
);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(Vec::new(), Vec::new())
    }
}

impl<T> Named<T> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&At<String>, &T)> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.iter().map(|(name, _)| name.value.as_str()).collect()
    }

    /// Returns the value with this name, and where the name is written.
    pub(crate) fn entry(&self, name: &str) -> Option<(&At<String>, &T)> {
        let name_at = |place: &usize| self.0[*place].0.value.as_str();
        let found = self.1.binary_search_by(|place| name_at(place).cmp(name));
        let (at, it) = &self.0[self.1[found.ok()?]];
        Some((at, it))
    }

    /// Returns the value with this name.
    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        self.entry(name).map(|(_, it)| it)
    }
}

impl<T: Decode> Decode for Named<T> {
    fn decode(entry: Entry<'_>, problems: &mut Problems) -> Option<Self> {
        let mut named = Vec::new();
        for (key, node) in entry.table(problems)? {
            let name = At {
                value: key.text.clone(),
                span: key.span,
            };
            let key = Some(key.span);
            if let Some(value) = T::decode(Entry { node, key }, problems) {
                named.push((name, value));
            }
        }
        let mut by_name: Vec<usize> = (0..named.len()).collect();
        by_name.sort_by(|one, other| named[*one].0.value.cmp(&named[*other].0.value));
        Some(Self(named, by_name))
    }

    fn schema(schemas: &mut Schemas) -> Json {
        json!({
            "type": "object",
            // A key is always text to JSON.
            "propertyNames": { "type": "string", "pattern": NAME_PATTERN },
            "additionalProperties": T::schema(schemas),
        })
    }
}

/// A list, all of which must be readable.
impl<T: Decode> Decode for Vec<T> {
    fn decode(entry: Entry<'_>, problems: &mut Problems) -> Option<Self> {
        let items: Vec<Option<T>> = entry
            .items(problems)?
            .map(|item| T::decode(item, problems))
            .collect();
        items.into_iter().collect()
    }

    fn schema(schemas: &mut Schemas) -> Json {
        json!({ "type": "array", "items": T::schema(schemas) })
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

impl<T: Decode> Decode for List<T> {
    fn decode(entry: Entry<'_>, problems: &mut Problems) -> Option<Self> {
        let items = entry.items(problems)?;
        Some(Self(
            items.filter_map(|item| T::decode(item, problems)).collect(),
        ))
    }

    fn schema(schemas: &mut Schemas) -> Json {
        Vec::<T>::schema(schemas)
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

impl<T: Decode> Decode for OneOrMany<T> {
    fn decode(entry: Entry<'_>, problems: &mut Problems) -> Option<Self> {
        match &entry.node.value {
            Value::List(_) => Vec::decode(entry, problems).map(Self),
            _ => T::decode(entry, problems).map(|one| Self(vec![one])),
        }
    }

    fn schema(schemas: &mut Schemas) -> Json {
        let one = T::schema(schemas);
        json!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
    }
}

/// A value with a short form: one value instead of settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Short<S, L> {
    pub(crate) value: L,
    short: std::marker::PhantomData<fn() -> S>,
}

impl<S: Decode, L: Decode + From<S>> Decode for Short<S, L> {
    fn decode(entry: Entry<'_>, problems: &mut Problems) -> Option<Self> {
        let value = match &entry.node.value {
            Value::Null | Value::Scalar(_) => S::decode(entry, problems)?.into(),
            Value::List(_) | Value::Mapping(_) => L::decode(entry, problems)?,
        };
        let short = std::marker::PhantomData;
        Some(Self { value, short })
    }

    fn schema(schemas: &mut Schemas) -> Json {
        json!({ "anyOf": [S::schema(schemas), L::schema(schemas)] })
    }
}
