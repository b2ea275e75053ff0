//! What each kind of token may do: one table of every route.

use crate::support::{Server, TestStore, announce, put, slice, token, with_link};
use serde_json::Value;
use slicewise_api::Tenant;
use std::fmt::Write as _;

/// Who asks, and the scope of their token.
const ASKERS: [(&str, Option<&str>); 8] = [
    ("admin", Some("admin")),
    ("operator", Some("operator")),
    ("viewer", Some("viewer")),
    ("tenant", Some("tenant:red")),
    ("other", Some("tenant:blue")),
    ("gateway", Some("gateway:gw")),
    ("gateway2", Some("gateway:far")),
    ("stranger", None),
];

/// Every method and path of the description, with names that exist.
fn routes(server: &Server) -> Vec<(String, String)> {
    let description = server.ask("GET", "/openapi.json", &[], None).json;
    let paths = description["paths"].as_object().unwrap();
    let mut routes = Vec::new();
    for (path, methods) in paths {
        for method in methods.as_object().unwrap().keys() {
            let name = match path.split('/').nth(2) {
                Some("tenants") => "red",
                Some("gateways") => "gw",
                Some("links") => "uplink",
                Some("tokens" | "rules") => "nothing",
                _ => "gold",
            };
            let path = path.replace("{name}", name).replace("{generation}", "1");
            routes.push((method.to_uppercase(), path));
        }
    }
    routes.sort_by(|a, b| (&a.1, &a.0).cmp(&(&b.1, &b.0)));
    routes
}

/// The status, where what is allowed is answered with 400, because the body is no JSON.
fn status(server: &Server, method: &str, path: &str, token: Option<&str>) -> u16 {
    let bearer = format!("Bearer {}", token.unwrap_or_default());
    let headers: Vec<(&str, &str)> = token
        .map(|_| ("authorization", bearer.as_str()))
        .into_iter()
        .collect();
    // A change that needs no body says so by a condition that does not hold.
    let mut with_condition = headers.clone();
    with_condition.push(("if-match", "\"999\""));
    let is_bodiless = method == "DELETE" || path.ends_with("/restore") || path.ends_with("/purge");
    match method {
        "GET" => server.ask(method, path, &headers, None).status,
        _ if is_bodiless => server.ask(method, path, &with_condition, None).status,
        _ => {
            let body = Value::String("no object".to_owned());
            server.ask(method, path, &headers, Some(&body)).status
        }
    }
}

#[test]
fn every_route_is_refused_to_those_who_may_not_use_it_before_its_body_is_read() {
    let store = TestStore::sqlite();
    let (server, open) = with_link(&store);
    for tenant in ["red", "blue"] {
        open.put_tenant(tenant, &Tenant::default()).unwrap();
    }
    announce(&open, "far", "second");
    let mut gold = slice("gold", 1, 1);
    gold.tenant = "red".to_owned();
    gold.path = vec!["uplink".to_owned()];
    put(&open, &gold);
    let askers: Vec<(&str, Option<String>)> = ASKERS
        .iter()
        .map(|(name, scope)| (*name, scope.map(|scope| token(&store, name, scope))))
        .collect();
    let mut table = format!("{:48}", "");
    for (name, _) in &askers {
        write!(table, "{name:>9}").unwrap();
    }
    for (method, path) in routes(&server) {
        write!(table, "\n{:48}", format!("{method} {path}")).unwrap();
        for (_, token) in &askers {
            let status = status(&server, &method, &path, token.as_deref());
            write!(table, "{status:>9}").unwrap();
        }
    }
    insta::assert_snapshot!(table);
}
