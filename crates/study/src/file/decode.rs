//! From the tree to what a file says, in one pass.
//!
//! A type reads itself from a node ([`Decode`]) and says in the same place what an editor should
//! accept. Whatever is wrong is reported where it stands, and what stands beside it is read all the
//! same. A mapping of settings is a list of [`Field`]s, declared by `settings!`:
//! what is read, which keys are unknown or missing, and the JSON Schema all follow from it.

use super::merge::unknown_key;
use super::schema::Schemas;
use super::sources::{Problems, Span, problem};
use super::tree::{Key, Node, Value};
use crate::diagnostics::{closest, suggestion};
use serde_json::{Map, Value as Json};

/// A node and the key before it, if any.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) node: &'a Node,
    pub(crate) key: Option<Span>,
}

/// A type that reads itself from a node.
pub(crate) trait Decode: Sized {
    /// Read it; `None` where that is not possible, and why among `problems`.
    fn decode(entry: Entry<'_>, problems: &mut Problems) -> Option<Self>;

    /// Returns the schema, for editors.
    fn schema(schemas: &mut Schemas) -> Json;
}

impl<'a> Entry<'a> {
    /// Where to point at.
    pub(crate) fn span(self) -> Span {
        self.node.anchor(self.key)
    }

    /// The text of a single value.
    pub(crate) fn text(self, problems: &mut Problems) -> Option<&'a str> {
        let message = match &self.node.value {
            Value::Scalar(text) => return Some(text),
            Value::Null => "there is no value here",
            Value::List(_) => "one value is expected here, not a list",
            Value::Mapping(_) => "one value is expected here, not keys with values",
        };
        problems.add(self.span(), message);
        None
    }

    /// The items of a list.
    pub(crate) fn items(
        self,
        problems: &mut Problems,
    ) -> Option<impl Iterator<Item = Self> + use<'a>> {
        let Value::List(items) = &self.node.value else {
            problem!(problems, self.span() => "a list is expected here, for example `[first, second]`");
            return None;
        };
        Some(items.iter().map(|node| Self { node, key: None }))
    }

    /// The entries of a table: each key is a name.
    pub(crate) fn table(self, problems: &mut Problems) -> Option<&'a [(Key, Node)]> {
        let Value::Mapping(entries) = &self.node.value else {
            problems.add(self.span(), "keys with values are expected here");
            return None;
        };
        Some(entries)
    }
}

/// Requirement that a setting is present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// It may be left out.
    Optional,
    /// A file that others build on may leave it out; in the end it is needed.
    Expected,
    /// It is needed wherever the settings are written.
    Required,
}

/// One setting of a mapping.
pub(crate) struct Field<S> {
    pub(crate) key: &'static str,
    /// Lines of its description.
    pub(crate) doc: &'static [&'static str],
    pub(crate) need: Need,
    /// Text for a missing setting, after "is missing".
    pub(crate) question: &'static str,
    /// Read it into the settings; false where that is not possible.
    pub(crate) read: fn(&mut S, Entry<'_>, &mut Problems) -> bool,
    pub(crate) schema: fn(&mut Schemas) -> Json,
}

/// A type that a mapping of settings is read as.
pub(crate) trait Settings: Sized + 'static {
    /// Name in the schema.
    const NAME: &'static str;
    /// Lines of its description.
    const DOC: &'static [&'static str];
    /// The settings, in the order in which they are read.
    const FIELDS: &'static [Field<Self>];
    /// True if the settings are of use even where some of them cannot be read.
    const IS_LENIENT: bool;

    /// Every setting as if left out.
    fn start() -> Self;

    /// Adds to the schema what the fields do not state.
    fn extend_schema(_: &mut Map<String, Json>) {}
}

/// Settings, and where each of those written stands.
#[derive(Debug, Clone, Default)]
pub(crate) struct Placed<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
    /// Every setting written could be read, and none is missing.
    pub(crate) is_whole: bool,
    places: Vec<(&'static str, Span)>,
}

impl<T> Placed<T> {
    /// Where the setting `key` is written, if it is.
    pub(crate) fn place(&self, key: &str) -> Option<Span> {
        let mut places = self.places.iter();
        places.find(|(name, _)| *name == key).map(|(_, span)| *span)
    }
}

impl<T: Settings> Decode for Placed<T> {
    fn decode(entry: Entry<'_>, problems: &mut Problems) -> Option<Self> {
        let Value::Mapping(entries) = &entry.node.value else {
            let example = T::FIELDS.first().map_or("", |field| field.key);
            problem!(problems, entry.span() => "settings are expected here, for example `{example}: …`");
            return None;
        };
        let written = assign(entries, T::FIELDS, problems);
        let mut settings = T::start();
        let mut places = Vec::new();
        let mut is_whole = true;
        for (field, written) in T::FIELDS.iter().zip(written) {
            if let Some((key, node)) = written {
                let key = Some(key.span);
                let entry = Entry { node, key };
                is_whole &= (field.read)(&mut settings, entry, problems);
                places.push((field.key, entry.span()));
            } else if field.need != Need::Optional {
                problem!(problems, entry.span() => "`{}` is missing{}", field.key, field.question);
                is_whole = false;
            }
        }
        (is_whole || T::IS_LENIENT).then_some(Self {
            value: settings,
            span: entry.span(),
            is_whole,
            places,
        })
    }

    fn schema(schemas: &mut Schemas) -> Json {
        schemas.reference(T::NAME, object::<T>)
    }
}

/// For each field the entry that is written of it. A key that is none is reported; it is read as the
/// one that it resembles, so that this one is not reported as missing, too.
fn assign<'a, S>(
    entries: &'a [(Key, Node)],
    fields: &[Field<S>],
    problems: &mut Problems,
) -> Vec<Option<&'a (Key, Node)>> {
    let position = |key: &str| fields.iter().position(|field| field.key == key);
    let mut written = vec![None; fields.len()];
    let mut unknown = Vec::new();
    for entry in entries {
        match position(&entry.0.text).and_then(|at| written.get_mut(at)) {
            Some(place) => *place = Some(entry),
            None => unknown.push(entry),
        }
    }
    let known: Vec<&str> = fields.iter().map(|field| field.key).collect();
    for entry in unknown {
        let text = entry.0.text.as_str();
        let are_many = problems.are_many();
        let elsewhere = misplaced(text, &known);
        let is_elsewhere = elsewhere.is_some();
        let help = || elsewhere.or_else(|| suggestion(text, &known));
        let help = (!are_many).then(help).flatten();
        problems.add_suggesting(entry.0.span, unknown_key(text), help);
        if are_many || is_elsewhere {
            continue;
        }
        let meant = closest(text, known.iter().copied()).and_then(position);
        if let Some(place @ None) = meant.and_then(|at| written.get_mut(at)) {
            *place = Some(entry);
        }
    }
    written
}

/// Settings that guarantees have in common: a plan has them at the top, a policy under `guaranteed`.
const OF_GUARANTEES: [&str; 5] = ["buffer", "counts", "delays", "largest_frame", "tenants"];

/// Settings of a class's queue.
const OF_CLASSES: [&str; 6] = [
    "queue_limit",
    "wred",
    "flow_queue",
    "pie",
    "codel",
    "dualpi2",
];

/// Where a setting belongs that is written among the settings `known`, of a gateway or of a policy.
fn misplaced(key: &str, known: &[&str]) -> Option<String> {
    let is_policy = known.contains(&"discipline") && known.contains(&"classes");
    if is_policy && OF_CLASSES.contains(&key) {
        return Some(format!(
            "it is a setting of a class; of one queue for all frames: `classes: [{{name: class-default, {key}: …}}]`"
        ));
    }
    if !OF_GUARANTEES.contains(&key) {
        return None;
    }
    let written = format!("guaranteed: {{{key}: …}}");
    if known.contains(&"interfaces") {
        Some(format!("write it in the policy: `policy: {{{written}}}`"))
    } else if is_policy {
        Some(format!("write it as `{written}`"))
    } else {
        None
    }
}

/// Read a setting into its place.
pub(crate) fn fill<T: Decode>(place: &mut T, entry: Entry<'_>, problems: &mut Problems) -> bool {
    T::decode(entry, problems)
        .map(|value| *place = value)
        .is_some()
}

/// The schema of the type that `_place` names.
pub(crate) fn schema_of<S, T: Decode>(_place: fn(&S) -> &T, schemas: &mut Schemas) -> Json {
    T::schema(schemas)
}

/// The schema of a mapping of settings.
pub(crate) fn object<S: Settings>(schemas: &mut Schemas) -> Json {
    let mut properties = Map::new();
    for field in S::FIELDS {
        let mut schema = (field.schema)(schemas);
        if let Json::Object(schema) = &mut schema {
            schema.insert("description".to_owned(), paragraph(field.doc));
        }
        properties.insert(field.key.to_owned(), schema);
    }
    let required = S::FIELDS.iter().filter(|f| f.need == Need::Required);
    let required: Vec<&str> = required.map(|field| field.key).collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("description".to_owned(), paragraph(S::DOC));
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("additionalProperties".to_owned(), false.into());
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    S::extend_schema(&mut schema);
    schema.into()
}

/// The schema of a file of these settings (draft 2020-12), of which `condition` must hold, too.
pub(crate) fn document<S: Settings>(title: &str, condition: (&str, Json)) -> Json {
    let mut schemas = Schemas::default();
    let mut schema = object::<S>(&mut schemas);
    if let Json::Object(schema) = &mut schema {
        let draft = "https://json-schema.org/draft/2020-12/schema";
        schema.insert("$schema".to_owned(), draft.into());
        schema.insert("title".to_owned(), title.into());
        schema.insert("$defs".to_owned(), schemas.0.into());
        schema.insert(condition.0.to_owned(), condition.1);
    }
    schema
}

/// Lines of a comment as one paragraph.
pub(crate) fn paragraph(lines: &[&str]) -> Json {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    lines.join(" ").into()
}

/// A name without the mark of a raw identifier.
pub(crate) const fn key(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// Settings of a mapping: their description and that of each, as the schema has them, and what each is.
///
/// `struct Name as "NameInSchema" { key: Type, … }` declares a type with a field for each setting;
/// what cannot be read leaves its field as it is. `impl Type as "NameInSchema", strict = start; { … }`
/// reads settings into a type that exists, beginning with `start`: `key` or `key => field.inner`
/// reads the field as what it is, `key: Read = |settings, value| …` reads a value to be converted.
/// Without `strict` nothing, with it everything fails if one setting does. `[expected]` and
/// `[required]` before a key, with what to ask where it is missing, are those of [`Need`].
macro_rules! settings {
    (
        $(#[doc = $doc:literal])*
        struct $name:ident as $shown:literal $(, $mode:ident)? {
            $($(#[doc = $about:literal])*
              $([$need:ident $($question:literal)?])? $key:ident: $type:ty),* $(,)?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Default)]
        pub(crate) struct $name {
            $($(#[doc = $about])* pub(crate) $key: $type),*
        }
        $crate::settings! {
            $(#[doc = $doc])*
            impl $name as $shown $(, $mode)? = Self::default(); {
                $($(#[doc = $about])* $([$need $($question)?])? $key),*
            }
        }
    };
    (
        $(#[doc = $doc:literal])*
        impl $name:ty as $shown:literal $(, $mode:ident)? = $start:expr; $(schema $extend:expr;)? {
            $($(#[doc = $about:literal])*
              $([$need:ident $($question:literal)?])?
              $key:ident $(=> $($place:ident).+)? $(: $type:ty = $set:expr)?),* $(,)?
        }
    ) => {
        impl $crate::file::Settings for $name {
            const NAME: &'static str = $shown;
            const DOC: &'static [&'static str] = &[$($doc),*];
            const FIELDS: &'static [$crate::file::Field<Self>] = &[$($crate::file::Field {
                key: $crate::file::key(stringify!($key)),
                doc: &[$($about),*],
                need: $crate::settings!(@need $($need)?),
                question: concat!("", $($($question)?)?),
                read: $crate::settings!(@read $key $(=> $($place).+)? $(: $type = $set)?),
                schema: $crate::settings!(@schema $name, $key $(=> $($place).+)? $(: $type)?),
            }),*];
            const IS_LENIENT: bool = $crate::settings!(@is_lenient $($mode)?);

            fn start() -> Self {
                $start
            }

            $(fn extend_schema(schema: &mut serde_json::Map<String, serde_json::Value>) {
                $extend(schema);
            })?
        }

        impl $crate::file::Decode for $name {
            fn decode(
                entry: $crate::file::Entry<'_>,
                problems: &mut $crate::file::Problems,
            ) -> Option<Self> {
                $crate::file::Placed::decode(entry, problems).map(|placed| placed.value)
            }

            fn schema(schemas: &mut $crate::file::Schemas) -> serde_json::Value {
                $crate::file::Placed::<Self>::schema(schemas)
            }
        }
    };
    (@need) => { $crate::file::Need::Optional };
    (@need expected) => { $crate::file::Need::Expected };
    (@need required) => { $crate::file::Need::Required };
    (@is_lenient) => { true };
    (@is_lenient strict) => { false };
    (@read $key:ident) => {
        |settings, entry, problems| $crate::file::fill(&mut settings.$key, entry, problems)
    };
    (@read $key:ident => $($place:ident).+) => {
        |settings, entry, problems| $crate::file::fill(&mut settings.$($place).+, entry, problems)
    };
    (@read $key:ident: $type:ty = $set:expr) => {
        |settings, entry, problems| {
            let set: fn(&mut Self, $type) = $set;
            let value = <$type as $crate::file::Decode>::decode(entry, problems);
            value.map(|value| set(settings, value)).is_some()
        }
    };
    (@schema $name:ty, $key:ident) => {
        |schemas| $crate::file::schema_of(|settings: &$name| &settings.$key, schemas)
    };
    (@schema $name:ty, $key:ident => $($place:ident).+) => {
        |schemas| $crate::file::schema_of(|settings: &$name| &settings.$($place).+, schemas)
    };
    (@schema $name:ty, $key:ident: $type:ty) => {
        <$type as $crate::file::Decode>::schema
    };
}
pub(crate) use settings;
