//! The JSON Schema of study files, for editors.

use crate::spec::StudySpec;
use schemars::Schema;
use serde_json::{Value, json};

/// The JSON Schema (draft 2020-12) of study files: what `slicewise check` would say of names,
/// units and unknown keys, while writing.
#[must_use]
pub fn json_schema() -> Value {
    schemars::schema_for!(StudySpec).to_value()
}

/// A study is complete, unless it extends another.
pub(crate) fn require_unless_extending(schema: &mut Schema) {
    let needed = [
        "name",
        "link",
        "dut",
        "slices",
        "policies",
        "scenarios",
        "repetitions",
        "duration",
    ];
    let alternatives = json!([{ "required": ["extends"] }, { "required": needed }]);
    schema.insert("anyOf".to_owned(), alternatives);
}
