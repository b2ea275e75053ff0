//! Definitions of the types that a JSON Schema refers to.

use serde_json::{Map, Value, json};

/// Definitions of types that a schema refers to.
#[derive(Debug, Default)]
pub(crate) struct Schemas(pub(super) Map<String, Value>);

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
