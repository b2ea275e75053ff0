//! The JSON Schemas of what files may hold, for editors.

use crate::file::{Need, Settings};
use serde_json::{Map, Value, json};

/// Definitions of types that a schema refers to.
#[derive(Debug, Default)]
pub(crate) struct Schemas(Map<String, Value>);

impl Schemas {
    /// A reference to the type `name`, which is defined where it is not yet.
    pub(crate) fn reference(
        &mut self,
        name: &str,
        define: impl FnOnce(&mut Self) -> Value,
    ) -> Value {
        if !self.0.contains_key(name) {
            // A type may hold itself.
            self.0.insert(name.to_owned(), Value::Null);
            let definition = define(self);
            self.0.insert(name.to_owned(), definition);
        }
        json!({ "$ref": format!("#/$defs/{name}") })
    }
}

/// The schema of a mapping of settings.
pub(crate) fn object<S: Settings>(schemas: &mut Schemas) -> Value {
    let mut properties = Map::new();
    for field in S::FIELDS {
        let mut schema = (field.schema)(schemas);
        if let Value::Object(schema) = &mut schema {
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
pub(crate) fn document<S: Settings>(title: &str, condition: (&str, Value)) -> Value {
    let mut schemas = Schemas::default();
    let mut schema = object::<S>(&mut schemas);
    if let Value::Object(schema) = &mut schema {
        let draft = "https://json-schema.org/draft/2020-12/schema";
        schema.insert("$schema".to_owned(), draft.into());
        schema.insert("title".to_owned(), title.into());
        schema.insert("$defs".to_owned(), schemas.0.into());
        schema.insert(condition.0.to_owned(), condition.1);
    }
    schema
}

/// Lines of a comment as one paragraph.
fn paragraph(lines: &[&str]) -> Value {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    lines.join(" ").into()
}
