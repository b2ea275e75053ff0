//! Stores that earlier versions of the schema have written go forward on their own, with everything that is in them.

use crate::support::{Server, TestStore, acknowledge, ask, client, execute, for_each_store, put};
use serde_json::Value;
use slicewise_api::SliceState;
use slicewise_controller::{Location, run_backup};

const FIRST: &str = include_str!("../../migrations/0001_first.sql");
const ROWS: &str = include_str!("golden/store-v1.sql");
const ANSWERS: &str = include_str!("golden/store-v1.json");

/// A store as version 1 has left it.
fn populate(store: &TestStore) {
    let text = match &store.location {
        Location::Sqlite(_) => "TEXT",
        Location::Postgres(_) => "TEXT COLLATE \"C\"",
    };
    let sql = [
        "CREATE TABLE schema_version (version BIGINT NOT NULL);",
        &FIRST.replace("TEXT_C", text),
        "DELETE FROM state; DELETE FROM tenants;",
        ROWS,
    ];
    execute(store, sql.join("\n")).unwrap();
}

/// Whether `found` has everything that `expected` has; it may have more.
fn has(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => expected
            .iter()
            .all(|(key, value)| found.get(key).is_some_and(|found| has(found, value))),
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len()
                && found
                    .iter()
                    .zip(expected)
                    .all(|(found, value)| has(found, value))
        }
        _ => found == expected,
    }
}

#[test]
fn a_store_of_version_1_goes_forward_with_all_slices_and_promises() {
    let golden: Value = serde_json::from_str(ANSWERS).unwrap();
    let token = golden["token"].as_str().unwrap();
    let bearer = format!("Bearer {token}");
    for_each_store(|store| {
        populate(store);
        let server = Server::start(store);
        let answers = golden["answers"].as_object().unwrap();
        assert!(answers.len() > 10);
        for (path, expected) in answers {
            let reply = server.ask("GET", path, &[("authorization", &bearer)], None);
            assert_eq!(reply.status, 200, "{path}: {}", reply.text);
            assert!(
                has(&reply.json, expected),
                "{path}: {:#} instead of {expected:#}",
                reply.json
            );
        }
        let client = client(&server.url, Some(token));
        crate::promises::check_promises(&client);
        // The answer to a request that was sent shortly before is still there.
        let headers = [
            ("authorization", bearer.as_str()),
            (
                "idempotency-key",
                golden["idempotency_key"].as_str().unwrap(),
            ),
        ];
        let request = golden["request"].as_str();
        let repeated = ask(&server.url, "PUT", "/v1/slices/gold", &headers, request);
        assert_eq!((repeated.status, repeated.header("etag")), (201, "\"1\""));
        // It goes on from there.
        let made = crate::support::slice("new", 77, 1);
        let mut made = made;
        made.path = vec!["uplink".to_owned()];
        let made = put(&client, &made);
        assert_eq!(made.value.generation, 8);
        acknowledge(&client, "gw", 8, &["old"]);
        assert_eq!(client.slice("new").unwrap().state, SliceState::Installed);
        assert_eq!(client.slice("old").unwrap_err().status(), Some(404));
        crate::promises::check_promises(&client);
        // What later versions have added works, too.
        assert_eq!(
            server
                .ask("GET", "/v1/rules", &[("authorization", &bearer)], None)
                .status,
            200
        );
        assert!(execute(store, "DELETE FROM audit".to_owned()).is_err());
        let folder = tempfile::tempdir().unwrap();
        run_backup(&store.location, &folder.path().join("backup")).unwrap();
    });
}
