//! Every refusal is a problem document (RFC 9457) that says what is wrong.

use crate::support::{Server, TestStore, ask, each_with_link, slice_json, with_link};
use serde_json::{Value, json};

/// Method, path, headers and body.
type Case<'c> = (&'c str, &'c str, &'c [(&'c str, &'c str)], Option<Value>);

fn shown(
    server: &Server,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> String {
    let reply = server.ask(method, path, headers, body);
    assert_eq!(
        reply.header("content-type"),
        "application/problem+json",
        "{method} {path}: {reply:?}"
    );
    assert_eq!(reply.json["status"], reply.status);
    let pointer = reply.json["pointer"]
        .as_str()
        .map(|at| format!(" at {at:?}"))
        .unwrap_or_default();
    let kind = reply.json["type"]
        .as_str()
        .unwrap()
        .trim_start_matches("urn:slicewise:problem:");
    format!(
        "{} {kind}{pointer}: {}",
        reply.status,
        reply.json["detail"].as_str().unwrap()
    )
}

#[test]
fn every_status_has_its_problem_document() {
    each_with_link(|_, server, client| {
        let gold = slice_json("gold", 1, 60);
        assert_eq!(
            server
                .ask("PUT", "/v1/slices/gold", &[], Some(&gold))
                .status,
            201
        );
        client
            .put_tenant(
                "small",
                &serde_json::from_value(json!({"most_slices": 1, "most_rate_bps": 5_000_000}))
                    .unwrap(),
            )
            .unwrap();
        let mut small = slice_json("small", 9, 10);
        small["tenant"] = json!("small");
        let mut unknown = slice_json("unknown", 9, 1);
        unknown["tenant"] = json!("nobody");
        let mut nowhere = slice_json("nowhere", 9, 1);
        nowhere["path"] = json!(["moon"]);
        let mut fast = slice_json("fast", 9, 1);
        fast["forward"]["guarantee"]["delay_ns"] = json!(9_999);
        let mut tiny = slice_json("tiny", 9, 1);
        tiny["forward"]["guarantee"]["burst_bytes"] = json!(100);
        let mut moved = gold.clone();
        moved["tenant"] = json!("small");
        let key = [("idempotency-key", "k")];
        assert_eq!(
            server
                .ask("PUT", "/v1/slices/gold", &key, Some(&gold))
                .status,
            200
        );
        let bare = |method, path| -> Case { (method, path, &[], None) };
        let put = |path, body| -> Case { ("PUT", path, &[], Some(body)) };
        let post = |path, body| -> Case { ("POST", path, &[], Some(body)) };
        let put_gold =
            |headers| -> Case { ("PUT", "/v1/slices/gold", headers, Some(gold.clone())) };
        let cases: Vec<Case> = vec![
            put("/v1/slices/gold", json!({"name": "gold"})),
            put("/v1/slices/gold", json!([])),
            put("/v1/slices/gold", slice_json("silver", 1, 1)),
            put("/v1/slices/Gold", slice_json("Gold", 1, 1)),
            bare("GET", "/v1/slices?limit=0"),
            bare("GET", "/v1/slices?limit=x"),
            bare("GET", "/v1/slices?state=gone"),
            bare("GET", "/v1/slices?colour=red"),
            bare("GET", "/v1/slices/%ff"),
            put_gold(&[("if-match", "x")]),
            put_gold(&[("if-none-match", "\"1\"")]),
            put_gold(&[("idempotency-key", "")]),
            post("/v1/batches", json!({"changes": []})),
            post(
                "/v1/batches",
                json!({"changes": [{"remove": "a"}, {"remove": "a"}]}),
            ),
            (
                "POST",
                "/v1/batches",
                &[],
                Some(json!({"changes": [{"put": slice_json("a", 5000, 1)}]})),
            ),
            bare("GET", "/v1/gateways/gw/desired?wait_ms=60001"),
            bare("GET", "/v1/slices/silver"),
            bare("DELETE", "/v1/slices/silver"),
            bare("GET", "/v1/links/moon"),
            bare("GET", "/v1/generations/99"),
            bare("GET", "/v1/gateways/moon/desired"),
            bare("DELETE", "/v1/tenants/nobody"),
            bare("DELETE", "/v1/tokens/nobody"),
            bare("GET", "/v1/moon"),
            bare("PATCH", "/v1/slices/gold"),
            put("/v1/slices/large", slice_json("large", 2, 50)),
            put("/v1/slices/fast", fast),
            put("/v1/slices/tiny", tiny),
            put("/v1/slices/same", slice_json("same", 1, 1)),
            put("/v1/slices/small", small),
            put("/v1/slices/unknown", unknown),
            put("/v1/slices/nowhere", nowhere),
            put("/v1/slices/gold", moved),
            bare("DELETE", "/v1/tenants/default"),
            bare("DELETE", "/v1/gateways/gw"),
            post(
                "/v1/gateways/gw/acknowledgements",
                json!({"generation": 99}),
            ),
            put_gold(&[("if-match", "\"9\"")]),
            (
                "PUT",
                "/v1/slices/gold",
                &key,
                Some(slice_json("gold", 1, 61)),
            ),
            put_gold(&[("content-type", "text/plain")]),
            ("GET", "/v1/links", &[("host", "example.org")], None),
            (
                "GET",
                "/v1/links",
                &[("authorization", "Bearer guessed")],
                None,
            ),
            (
                "DELETE",
                "/v1/slices/gold",
                &[("origin", "http://example.org")],
                None,
            ),
        ];
        let mut lines = Vec::new();
        for (method, path, headers, body) in cases {
            lines.push(format!(
                "{method} {path}: {}",
                shown(&server, method, path, headers, body.as_ref())
            ));
        }
        insta::assert_snapshot!("problems", lines.join("\n"));
    });
}

#[test]
fn a_refusal_by_admission_says_what_would_be_accepted() {
    let store = TestStore::sqlite();
    let (server, _client) = with_link(&store);
    server.ask(
        "PUT",
        "/v1/slices/gold",
        &[],
        Some(&slice_json("gold", 1, 60)),
    );
    let refused = server.ask(
        "PUT",
        "/v1/slices/large",
        &[],
        Some(&slice_json("large", 2, 50)),
    );
    insta::assert_snapshot!("refusal", format!("{:#}", refused.json));
}

#[test]
fn bodies_that_are_too_large_or_no_json_are_refused() {
    let store = TestStore::sqlite();
    let (server, _client) = with_link(&store);
    let large = format!("{{\"name\": \"{}\"}}", "x".repeat(17 << 20));
    let refused = ask(&server.url, "PUT", "/v1/slices/gold", &[], Some(&large));
    assert_eq!(
        (refused.status, refused.header("content-type")),
        (413, "application/problem+json")
    );
    let deep = "[".repeat(100_000);
    for body in [
        "",
        "{",
        "\u{0}",
        "{\"name\": \"a\", \"name\": \"b\"}",
        "\"\\ud800\"",
        deep.as_str(),
    ] {
        let refused = ask(&server.url, "PUT", "/v1/slices/gold", &[], Some(body));
        assert_eq!(refused.status, 400, "{body}");
    }
}

#[test]
fn who_asks_too_often_is_told_to_wait() {
    let store = TestStore::sqlite();
    let server = Server::with(&store, |params| slicewise_controller::ServeParams {
        requests_per_second: 3,
        ..params
    });
    let replies: Vec<u16> = (0..20)
        .map(|_| server.ask("GET", "/v1/links", &[], None).status)
        .collect();
    assert!(
        replies.contains(&200) && replies.contains(&429),
        "{replies:?}"
    );
    let mut refused = server.ask("GET", "/v1/links", &[], None);
    while refused.status != 429 {
        refused = server.ask("GET", "/v1/links", &[], None);
    }
    assert_eq!(
        (
            refused.header("retry-after"),
            refused.header("content-type")
        ),
        ("1", "application/problem+json")
    );
}

#[test]
fn integers_may_be_written_as_any_json_number_and_have_63_bits() {
    let store = TestStore::sqlite();
    let (server, _client) = with_link(&store);
    let put = |rate: &str| {
        let body = format!(
            r#"{{"name": "gold", "matches": [{{"vlan": 7.0}}],
                "forward": {{"guarantee": {{"rate_bps": {rate}, "burst_bytes": 3044}}}}}}"#
        );
        ask(&server.url, "PUT", "/v1/slices/gold", &[], Some(&body))
    };
    for rate in ["1e6", "1000000.0", "1000000", "10.0E5"] {
        let made = put(rate);
        assert!(made.status < 300, "{rate}: {}", made.text);
        let guarantee = &made.json["forward"]["guarantee"];
        assert_eq!(guarantee["rate_bps"].as_u64(), Some(1_000_000), "{rate}");
    }
    for rate in ["1.5", "1e-1", "1e300", "-1e6"] {
        let refused = put(rate);
        assert_eq!(refused.status, 400, "{rate}: {}", refused.text);
    }
    for (count, status) in [("9223372036854775807", 200), ("9223372036854775808", 400)] {
        let direction = format!(r#"{{"sent_frames": {count}, "sent_bytes": 0}}"#);
        let body = format!(
            r#"{{"interval_ns": 1, "slices": [{{"name": "gold", "forward": {direction}}}]}}"#
        );
        let path = "/v1/gateways/gw/counters";
        let reply = ask(&server.url, "POST", path, &[], Some(&body));
        assert_eq!(reply.status, status, "{}", reply.text);
    }
}
