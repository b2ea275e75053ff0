//! As much of JSON Schema as the schema of studies uses. A keyword it does not know is an error,
//! so that nothing is taken for checked that is not.

use serde_json::Value;

/// What of `value` the schema does not allow.
pub fn violations(value: &Value, schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(value, schema, schema, "", &mut found);
    found
}

fn check(value: &Value, schema: &Value, root: &Value, path: &str, found: &mut Vec<String>) {
    let rules = schema.as_object().expect("a schema is an object");
    for (keyword, rule) in rules {
        let mut fail = |what: String| found.push(format!("{path}: {what}"));
        match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "examples" => {}
            "$ref" => {
                let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                check(value, &root["$defs"][name], root, path, found);
            }
            "type" => {
                let kinds = rule
                    .as_array()
                    .cloned()
                    .unwrap_or_else(|| vec![rule.clone()]);
                if !kinds
                    .iter()
                    .any(|kind| is_kind(value, kind.as_str().unwrap()))
                {
                    fail(format!("{value} is not of type {rule}"));
                }
            }
            "enum" => {
                if !rule.as_array().unwrap().contains(value) {
                    fail(format!("{value} is none of {rule}"));
                }
            }
            "pattern" => {
                let pattern = regex_lite::Regex::new(rule.as_str().unwrap()).unwrap();
                if value.as_str().is_some_and(|text| !pattern.is_match(text)) {
                    fail(format!("{value} is not like {rule}"));
                }
            }
            "minimum" => {
                if value.as_f64() < rule.as_f64() && value.is_number() {
                    fail(format!("{value} is below {rule}"));
                }
            }
            "maximum" => {
                if value.as_f64() > rule.as_f64() {
                    fail(format!("{value} is above {rule}"));
                }
            }
            "minItems" => {
                let length = value.as_array().map_or(usize::MAX, Vec::len);
                if (length as u64) < rule.as_u64().unwrap() {
                    fail("too few items".to_owned());
                }
            }
            "required" => {
                for key in rule.as_array().unwrap() {
                    if value
                        .as_object()
                        .is_some_and(|o| !o.contains_key(key.as_str().unwrap()))
                    {
                        fail(format!("{key} is missing"));
                    }
                }
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(item, rule, root, &format!("{path}/{index}"), found);
                }
            }
            "anyOf" => {
                let failures = |alternative: &Value| {
                    let mut found = Vec::new();
                    check(value, alternative, root, path, &mut found);
                    found
                };
                if !rule
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|one| failures(one).is_empty())
                {
                    fail(format!("{value} is none of the alternatives"));
                }
            }
            "properties" | "additionalProperties" | "propertyNames" => {}
            other => panic!("the keyword `{other}` is not checked here"),
        }
    }
    check_keys(value, schema, root, path, found);
}

fn check_keys(value: &Value, schema: &Value, root: &Value, path: &str, found: &mut Vec<String>) {
    for (key, item) in value.as_object().into_iter().flatten() {
        let path = format!("{path}/{key}");
        if let Some(names) = schema.get("propertyNames") {
            check(&Value::from(key.as_str()), names, root, &path, found);
        }
        let property = schema.get("properties").and_then(|p| p.get(key));
        match (property, schema.get("additionalProperties")) {
            (Some(property), _) => check(item, property, root, &path, found),
            (None, Some(Value::Bool(false))) => found.push(format!("{path}: unknown key")),
            (None, Some(rule @ Value::Object(_))) => check(item, rule, root, &path, found),
            _ => {}
        }
    }
}

fn is_kind(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the type `{other}` is not checked here"),
    }
}
