//! The JSON Schemas of the files there are, for editors.

use crate::kind::FileKind;
use crate::spec::{GatewayFileSpec, MeasuredStudySpec, PlanFileSpec, StudySpec};
use schemars::Schema;
use serde_json::{Map, Value, json};

/// The JSON Schema (draft 2020-12) of a kind of file: names, units, and which keys exist, shown
/// while writing. What needs the whole file, such as sums of rates, only a check tells.
#[must_use]
pub fn json_schema(kind: FileKind) -> Value {
    let schema = match kind {
        FileKind::Study => schemars::schema_for!(StudySpec),
        FileKind::Plan => schemars::schema_for!(PlanFileSpec),
        FileKind::Measured => schemars::schema_for!(MeasuredStudySpec),
        FileKind::Gateway => schemars::schema_for!(GatewayFileSpec),
    };
    let mut schema = schema.to_value();
    tidy(&mut schema);
    schema
}

/// What a configuration must have.
pub(crate) fn require_of_gateway(schema: &mut Schema) {
    require(schema, &["interfaces", "link", "policy"]);
}

/// What a plan must have.
pub(crate) fn require_of_plan(schema: &mut Schema) {
    require(schema, &["link", "slices"]);
}

/// What a measured study must have: with slices alone it says how to tell them.
pub(crate) fn require_of_measured(schema: &mut Schema) {
    require(schema, &["slices"]);
}

fn require(schema: &mut Schema, keys: &[&str]) {
    schema.insert("required".to_owned(), json!(keys));
}

/// A study is complete, unless it extends another.
pub(crate) fn require_unless_extending(schema: &mut Schema) {
    let needed = |network: &[&str]| {
        let rest = ["slices", "policies", "scenarios", "repetitions", "duration"];
        let all = [&["name", "link"], network, &rest[..]].concat();
        json!({ "required": all })
    };
    let alternatives =
        json!([{ "required": ["extends"] }, needed(&["dut"]), needed(&["path", "devices"])]);
    schema.insert("anyOf".to_owned(), alternatives);
}

/// A setting may be left out, but not left empty: take the null out of optional settings. And
/// descriptions are one paragraph, whatever the width of this source.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.values_mut().for_each(tidy);
            simplify_alternatives(object);
            simplify_type(object);
            if let Some(Value::String(description)) = object.get_mut("description") {
                *description = description.replace('\n', " ");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

fn simplify_alternatives(object: &mut Map<String, Value>) {
    let Some(Value::Array(alternatives)) = object.get_mut("anyOf") else {
        return;
    };
    alternatives.retain(|alternative| *alternative != json!({ "type": "null" }));
    if let [Value::Object(only)] = alternatives.as_slice() {
        let only = only.clone();
        object.remove("anyOf");
        for (key, value) in only {
            // The description of the setting says more than that of its type.
            object.entry(key).or_insert(value);
        }
    }
}

fn simplify_type(object: &mut Map<String, Value>) {
    let Some(kind) = object.get_mut("type") else {
        return;
    };
    let Value::Array(kinds) = kind else { return };
    kinds.retain(|kind| kind != "null");
    if let [only] = kinds.as_slice() {
        *kind = only.clone();
    }
}
