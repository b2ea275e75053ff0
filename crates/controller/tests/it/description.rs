//! The description of the API (OpenAPI 3.1).

use serde_json::Value;
use slicewise_controller::description;

#[test]
fn every_route_is_described() {
    let description: Value = serde_json::from_str(&description()).unwrap();
    assert_eq!(
        description["openapi"].as_str().map(|version| &version[..3]),
        Some("3.1")
    );
    let mut routes = Vec::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            assert!(
                operation["responses"]["default"].is_object(),
                "{method} {path}"
            );
            routes.push(format!("{method} {path}"));
        }
    }
    routes.sort();
    insta::assert_snapshot!(routes.join("\n"));
}

#[test]
fn every_reference_leads_somewhere() {
    let text = description();
    let description: Value = serde_json::from_str(&text).unwrap();
    for part in text.split("\"#/").skip(1) {
        let pointer = format!("/{}", part.split('"').next().unwrap());
        assert!(description.pointer(&pointer).is_some(), "{pointer}");
    }
}
