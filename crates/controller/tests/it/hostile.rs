//! Clients that ask for too much, or for what is not theirs.

use crate::support::{
    Server, TestStore, announce, ask, each_with_link, guarantee, put, said, slice, slice_json,
    token, try_put, with_link,
};
use serde_json::{Value, json};
use slicewise_api::{
    Acknowledgement, Client, CounterReport, GatewayEvent, Match, RefusedSlice, Slice, Tenant,
};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

fn of(tenant: &str, slice: Slice) -> Slice {
    Slice {
        tenant: tenant.to_owned(),
        ..slice
    }
}

#[test]
fn a_batch_is_compared_with_a_limited_number_of_matches() {
    let store = TestStore::sqlite();
    let (server, _client) = with_link(&store);
    let with_matches = |index: usize, count: usize| {
        let mut one = slice(&format!("s{index}"), 1, 1);
        let ports = (0..count).map(|port| Match {
            vlan: Some(u16::try_from(index + 1).unwrap()),
            protocol: Some(slicewise_api::Protocol::Number(17)),
            destination_port: Some(port.to_string()),
            ..Match::default()
        });
        one.matches = ports.collect();
        one.forward = Some(slicewise_api::Terms::default());
        json!({ "put": one })
    };
    let changes: Vec<Value> = (0..65).map(|index| with_matches(index, 64)).collect();
    let refused = server.ask(
        "POST",
        "/v1/batches",
        &[],
        Some(&json!({ "changes": changes })),
    );
    assert_eq!(refused.status, 400);
    insta::assert_snapshot!(refused.json["detail"].as_str().unwrap(), @"4160 matches on links: expected at most 4096, where a match counts once for each link of its slice; send smaller batches");
    let body = json!({ "changes": changes[..64] });
    assert_eq!(
        server.ask("POST", "/v1/batches", &[], Some(&body)).status,
        200
    );
}

#[test]
fn what_is_no_name_is_refused_before_the_store_sees_it() {
    each_with_link(|_, server, _client| {
        let put = json!({"put": {"name": "a\u{0}", "matches": [{}], "forward": {}}});
        let mut answers = Vec::new();
        for changes in [
            json!([{ "remove": "a\u{0}" }]),
            json!([{ "remove": "a" }, { "remove": "A B" }]),
            json!([put, put]),
        ] {
            let body = json!({ "changes": changes });
            let answer = server.ask("POST", "/v1/batches", &[], Some(&body));
            let place = answer.json["pointer"].clone();
            answers.push(format!("{} {place}", answer.status));
        }
        insta::assert_snapshot!(answers.join("\n"), @r#"
            400 "/changes/0/remove"
            400 "/changes/1/remove"
            400 "/changes/0/put/name"
            "#);
    });
}

#[test]
fn events_of_a_tenant_do_not_tell_of_slices_of_others() {
    each_with_link(|store, server, open| {
        for tenant in ["red", "blue"] {
            open.put_tenant(tenant, &Tenant::default()).unwrap();
        }
        let admin = server.client_of(&token(store, "admin", "admin"));
        let red = server.client_of(&token(store, "red", "tenant:red"));
        let far = server.client_of(&token(store, "far", "gateway:far"));
        put(&admin, &of("blue", slice("secret", 1, 1)));
        let overlapping = of("red", slice("mine", 1, 1));
        let refused = try_put(&admin, &overlapping);
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("`secret`"),
            "the operator is told: {refused}"
        );
        put(&admin, &of("red", slice("red-1", 2, 1)));
        // Another gateway says nothing of a slice that does not pass it.
        announce(&far, "far", "far-link");
        let report = CounterReport {
            events: vec![GatewayEvent {
                slice: Some("red-1".to_owned()),
                reason: "spoofed".to_owned(),
            }],
            interval_ns: 1_000_000_000,
            ..CounterReport::default()
        };
        far.report_counters("far", &report).unwrap();
        let events = red.events(0, None).unwrap().items;
        let told: Vec<String> = events
            .iter()
            .map(|event| {
                format!(
                    "{:?} {}",
                    event.kind,
                    event.reason.clone().unwrap_or_default()
                )
            })
            .collect();
        insta::assert_snapshot!(told.join("\n"), @r"
            SliceRefused some packets that match slice `mine` belong to a slice of another tenant: state header fields that tell them apart
            SliceAdmitted
            ");
    });
}

#[test]
fn a_gateway_that_waits_for_another_tenants_slice_names_it_to_operators_only() {
    each_with_link(|store, server, open| {
        for tenant in ["red", "blue"] {
            open.put_tenant(tenant, &Tenant::default()).unwrap();
        }
        let admin = server.client_of(&token(store, "admin", "admin"));
        let red = server.client_of(&token(store, "red", "tenant:red"));
        for (name, vlan, tenant) in [
            ("secret", 1, "blue"),
            ("red-1", 2, "red"),
            ("red-2", 3, "red"),
        ] {
            let one = of(tenant, slice(name, vlan, 1));
            put(&admin, &one);
        }
        let refused = |slice: &str, other: &str| RefusedSlice {
            slice: slice.to_owned(),
            reason: "packets that it is to have still wait in another slice".to_owned(),
            waits_for: Some(other.to_owned()),
        };
        let said = Acknowledgement {
            refused: vec![refused("red-1", "secret"), refused("red-2", "red-1")],
            ..said(3)
        };
        admin.acknowledge("gw", &said).unwrap();
        let of_slice = |name: &str| red.slice(name).unwrap().problems.remove(0).reason;
        let told = |client: &Client| {
            let events = client.events(0, None).unwrap().items;
            let reasons = events.into_iter().filter_map(|event| event.reason);
            reasons.collect::<Vec<_>>().join("\n")
        };
        let shown = [
            of_slice("red-1"),
            of_slice("red-2"),
            told(&red),
            "operators:".to_owned(),
            told(&admin),
        ];
        insta::assert_snapshot!(shown.join("\n"), @"
            packets that it is to have still wait in another slice
            packets that it is to have still wait in another slice: slice `red-1`
            packets that it is to have still wait in another slice
            packets that it is to have still wait in another slice: slice `red-1`
            operators:
            packets that it is to have still wait in another slice
            packets that it is to have still wait in another slice: slice `secret`
            packets that it is to have still wait in another slice: slice `red-1`
            ");
    });
}

#[test]
fn refused_requests_for_changes_are_in_the_audit_log() {
    each_with_link(|store, server, _open| {
        let admin = token(store, "admin", "admin");
        let viewer = format!("Bearer {}", token(store, "screen", "viewer"));
        let body = slice_json("gold", 1, 1);
        let as_viewer = [("authorization", viewer.as_str())];
        for (method, path, headers, body) in [
            ("PUT", "/v1/slices/gold", &as_viewer[..], Some(&body)),
            ("DELETE", "/v1/tokens/admin", &as_viewer, None),
            ("DELETE", "/v1/slices/gold", &[], None),
            ("POST", "/v1/offers", &[], Some(&body)),
            ("GET", "/v1/audit", &as_viewer, None),
        ] {
            let status = server.ask(method, path, headers, body).status;
            assert!([401, 403].contains(&status), "{method} {path}: {status}");
        }
        let audit = server.client_of(&admin).audit(0).unwrap().items;
        let entries: Vec<String> = audit
            .iter()
            .filter(|entry| entry.status >= 400)
            .map(|entry| format!("{} {} {}", entry.by, entry.request, entry.status))
            .collect();
        insta::assert_snapshot!(entries.join("\n"), @r"
            screen PUT /v1/slices/gold 403
            screen DELETE /v1/tokens/admin 403
            from 127.0.0.1 DELETE /v1/slices/{name} 401
            ");
    });
}

#[test]
fn what_strangers_ask_for_does_not_fill_the_store() {
    each_with_link(|store, server, _open| {
        let admin = server.client_of(&token(store, "admin", "admin"));
        let long = "x".repeat(5_000);
        for index in 0..300 {
            for path in [
                format!("/v1/slices/{long}{index}"),
                format!("/v1/tokens/{index}"),
                format!("/v1/nothing/{index}"),
            ] {
                assert!([401, 404].contains(&server.ask("DELETE", &path, &[], None).status));
            }
        }
        let audit = admin.audit(0).unwrap().items;
        let entries: Vec<String> = audit
            .iter()
            .filter(|entry| entry.status == 401)
            .map(|entry| {
                let detail = entry.detail.clone().unwrap_or_default();
                let detail = detail.split(':').next().unwrap_or_default();
                format!("{} {} | {detail}", entry.by, entry.request)
            })
            .collect();
        insta::assert_snapshot!(entries.join("\n"), @"
            from 127.0.0.1 DELETE /v1/slices/{name} | send `Authorization
            from 127.0.0.1 DELETE /v1/tokens/{name} | send `Authorization
            from 127.0.0.1 DELETE /v1/slices/{name} | 10 times within the hour
            from 127.0.0.1 DELETE /v1/tokens/{name} | 10 times within the hour
            from 127.0.0.1 DELETE /v1/slices/{name} | 100 times within the hour
            from 127.0.0.1 DELETE /v1/tokens/{name} | 100 times within the hour
            ");
        // A token's own words are cut, and stay.
        let viewer = format!("Bearer {}", token(store, "screen", "viewer"));
        let path = format!("/v1/slices/{long}");
        let headers = [("authorization", viewer.as_str())];
        assert_eq!(server.ask("DELETE", &path, &headers, None).status, 403);
        let last = admin.audit(0).unwrap().items.pop().unwrap();
        assert_eq!(last.request.chars().count(), 1_001);
    });
}

#[test]
fn a_condition_that_is_not_tested_is_refused_and_a_restore_tests_it() {
    each_with_link(|_, server, client| {
        for (name, vlan) in [("one", 1), ("two", 2)] {
            put(&client, &slice(name, vlan, 1));
        }
        let tenant = json!({ "weight": 2 });
        let batch = json!({ "changes": [{ "remove": "one" }] });
        let restore = "/v1/generations/1/restore";
        let answers: Vec<u16> = [
            (
                "PUT",
                "/v1/tenants/default",
                ("if-match", "\"99999\""),
                Some(&tenant),
            ),
            ("POST", "/v1/batches", ("if-none-match", "*"), Some(&batch)),
            ("POST", restore, ("if-none-match", "*"), None),
            ("POST", restore, ("if-match", "\"1\""), None),
            ("POST", restore, ("if-match", "\"2\""), None),
        ]
        .into_iter()
        .map(|(method, path, header, body)| server.ask(method, path, &[header], body).status)
        .collect();
        assert_eq!(answers, [400, 400, 400, 412, 200]);
        assert_eq!(client.tenants().unwrap()[0].weight, 1);
    });
}

#[test]
fn an_idempotency_key_belongs_to_its_token_and_to_its_conditions() {
    each_with_link(|store, server, open| {
        for tenant in ["red", "blue"] {
            open.put_tenant(tenant, &Tenant::default()).unwrap();
        }
        let admin = server.client_of(&token(store, "admin", "admin"));
        let put = |token: &str, more: Option<(&'static str, &'static str)>| {
            let bearer = format!("Bearer {token}");
            let mut headers = vec![("authorization", bearer.as_str()), ("idempotency-key", "k")];
            headers.extend(more);
            let body = json!(of("red", slice("gold", 1, 1)));
            server
                .ask("PUT", "/v1/slices/gold", &headers, Some(&body))
                .status
        };
        let red = token(store, "portal", "tenant:red");
        assert_eq!([put(&red, None), put(&red, None)], [201, 201]);
        assert_eq!(put(&red, Some(("if-match", "\"77\""))), 422);
        admin.remove_token("portal").unwrap();
        assert_eq!(put(&token(store, "portal", "tenant:blue"), None), 422);
    });
}

#[test]
fn a_slice_keeps_its_path_where_none_is_stated() {
    each_with_link(|_, _server, client| {
        let put = |mbps| try_put(&client, &slice("gold", 1, mbps));
        put(1).unwrap();
        announce(&client, "far", "second");
        assert_eq!(put(2).unwrap().value.path, ["uplink"]);
        assert!(client.offer(&slice("gold", 1, 3)).unwrap().accepted);
        let other = try_put(&client, &slice("other", 2, 1));
        assert_eq!(other.unwrap_err().status(), Some(400));
    });
}

#[test]
fn an_offer_is_within_the_quota_and_says_nothing_that_would_be_refused() {
    each_with_link(|_, _server, client| {
        let tenant = Tenant {
            most_rate_bps: Some(5_000_000),
            ..Tenant::default()
        };
        client.put_tenant("default", &tenant).unwrap();
        put(&client, &slice("gold", 1, 2));
        let mut both = slice("new", 2, 1);
        both.backward = Some(guarantee(1, None));
        let shown: Vec<String> = [
            slice("new", 2, 1),
            slice("gold", 1, 1),
            slice("new", 2, 4),
            both,
            slice("new", 1, 1),
        ]
        .iter()
        .map(|slice| {
            let offer = client.offer(slice).unwrap();
            let reason = offer.reason.unwrap_or_default();
            let is_more = offer.largest_burst_bytes.is_some();
            format!(
                "{} {:?} {is_more} {reason}",
                offer.accepted, offer.largest_rate_bps
            )
            .trim_end()
            .to_owned()
        })
        .collect();
        insta::assert_snapshot!(shown.join("\n"), @r"
            true Some(3000000) true
            true Some(5000000) true
            false Some(3000000) false tenant `default` may be guaranteed 5 Mbit/s in all, and would be guaranteed 6 Mbit/s
            true Some(2000000) true
            false None false some packets that match slice `new` belong to slice `gold`: state header fields that tell them apart
            ");
    });
}

/// A stream of events: the connection, and the status of its answer.
fn stream(server: &Server, token: &str, after: u64) -> (BufReader<TcpStream>, String) {
    let address = server.url.strip_prefix("http://").unwrap();
    let mut connection = TcpStream::connect(address).unwrap();
    let long = Duration::from_secs(60);
    connection.set_read_timeout(Some(long)).unwrap();
    write!(
        connection,
        "GET /v1/events HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\nLast-Event-ID: {after}\r\nAuthorization: Bearer {token}\r\n\r\n"
    )
    .unwrap();
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_default().to_owned();
    (reader, status)
}

#[test]
fn streams_of_one_tenant_keep_no_place_from_others_and_a_gateway_still_polls() {
    let store = TestStore::sqlite();
    let (server, open) = with_link(&store);
    open.put_tenant("red", &Tenant::default()).unwrap();
    let (one, two) = (
        token(&store, "one", "tenant:red"),
        token(&store, "two", "tenant:red"),
    );
    let held: Vec<_> = (0..128).map(|_| stream(&server, &one, 0)).collect();
    assert!(held.iter().all(|(_, status)| status == "200"));
    assert_eq!(stream(&server, &two, 0).1, "429", "a tenant is one party");
    assert_eq!(stream(&server, &token(&store, "v", "viewer"), 0).1, "200");
    let gateway = server.client_of(&token(&store, "gw", "gateway:gw"));
    gateway.desired("gw", 0, Duration::ZERO).unwrap();
}

#[test]
fn a_stream_from_beyond_the_last_event_begins_at_the_last() {
    each_with_link(|store, server, open| {
        let token = token(store, "admin", "admin");
        let (reader, status) = stream(&server, &token, 1_000_000);
        assert_eq!(status, "200");
        let client = server.client_of(&token);
        put(&client, &slice("gold", 1, 1));
        let mut lines = reader.lines().map(Result::unwrap);
        assert!(lines.any(|line| line.contains("\"slice\":\"gold\"")));
        drop(open);
    });
}

#[test]
fn connections_that_say_nothing_are_closed() {
    let store = TestStore::sqlite();
    let server = Server::start(&store);
    let address = server.url.strip_prefix("http://").unwrap();
    let silent = ["", "PRI * HTTP/2.0\r\n", "GET / HTTP/1.1\r\nHost:"].map(|said| {
        let mut connection = TcpStream::connect(address).unwrap();
        connection.write_all(said.as_bytes()).unwrap();
        let long = Duration::from_secs(120);
        connection.set_read_timeout(Some(long)).unwrap();
        connection
    });
    for mut connection in silent {
        // Whatever is answered first, it ends: a time-out would be an error.
        let ended = connection.read_to_end(&mut Vec::new());
        let is_open = ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        assert!(!is_open);
    }
}

#[test]
fn a_body_of_one_slice_has_a_smaller_limit_than_one_of_many() {
    let store = TestStore::sqlite();
    let (server, _client) = with_link(&store);
    let body = format!("{{{}", " ".repeat(2 << 20));
    let ask = |method, path| ask(&server.url, method, path, &[], Some(&body)).status;
    assert_eq!(ask("PUT", "/v1/slices/gold"), 413);
    assert_eq!(
        ask("POST", "/v1/batches"),
        400,
        "it is read, and is no JSON"
    );
}
