//! What programs other than this one make of a file: YAML 1.2 by another parser, and a JSON-Schema
//! validator.

use serde_json::{Number, Value};
use slicewise_study::{FileKind, json_schema};
use yaml_rust2::{Yaml, YamlLoader};

/// The one document of a text, as the core schema of YAML 1.2 reads it.
pub fn read(text: &str) -> Result<Value, String> {
    let documents = YamlLoader::load_from_str(text).map_err(|error| error.to_string())?;
    match &documents[..] {
        [document] => Ok(json(document)),
        other => Err(format!("{} documents", other.len())),
    }
}

fn json(yaml: &Yaml) -> Value {
    match yaml {
        Yaml::Integer(number) => Value::from(*number),
        Yaml::Real(_) => yaml
            .as_f64()
            .and_then(Number::from_f64)
            .map_or(Value::Null, Value::Number),
        Yaml::String(text) => Value::from(text.as_str()),
        Yaml::Boolean(yes) => Value::from(*yes),
        Yaml::Array(items) => items.iter().map(json).collect(),
        Yaml::Hash(entries) => entries
            .iter()
            .map(|(key, value)| (key_text(key), json(value)))
            .collect(),
        Yaml::Alias(_) | Yaml::Null | Yaml::BadValue => Value::Null,
    }
}

/// A key is text to JSON, whatever it is to YAML.
fn key_text(key: &Yaml) -> String {
    match key {
        Yaml::Integer(number) => number.to_string(),
        Yaml::Real(text) | Yaml::String(text) => text.clone(),
        Yaml::Boolean(yes) => yes.to_string(),
        other => panic!("no key: {other:?}"),
    }
}

/// What the schema of this kind of file does not allow in a text.
pub fn violations(text: &str, kind: FileKind) -> Vec<String> {
    let value = match read(text) {
        Ok(value) => value,
        Err(error) => return vec![error],
    };
    let validator = jsonschema::validator_for(&json_schema(kind)).expect("a schema");
    let errors = validator.iter_errors(&value);
    errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}
