//! A gateway with a good token that speaks of what is not its own.

use crate::support::{TestStore, announce, announcement, each_with_link, remove, slice, try_put};
use serde_json::{Value, json};
use slicewise_api::{Acknowledgement, CounterReport, NewToken, RefusedSlice, Scope, SliceState};
use slicewise_controller::run_token_add;
use std::time::Duration;

fn token(store: &TestStore, name: &str, scope: &str) -> String {
    let (name, scope) = (name.to_owned(), scope.parse::<Scope>().unwrap());
    let made = run_token_add(&store.location, NewToken { name, scope });
    made.unwrap().token
}

#[test]
fn a_gateway_says_nothing_of_slices_and_links_that_are_not_its_own() {
    each_with_link(|store, server, client| {
        let put = |name: &str, vlan, rate| {
            let put = try_put(&client, &slice(name, vlan, rate));
            put.unwrap();
        };
        put("gold", 1, 10);
        put("old", 2, 10);
        put("borrower", 3, 1);
        remove(&client, "old");
        let rule = json!({"from": "gold", "to": "borrower", "direction": "forward", "unused_bps": 1, "for_ms": 0});
        assert_eq!(
            server.ask("PUT", "/v1/rules/r", &[], Some(&rule)).status,
            201
        );
        let before = (client.slice("gold").unwrap(), client.slice("old").unwrap());
        let rogue = server.client_of(&token(store, "rogue", "gateway:rogue"));
        let secret = token(store, "admin", "admin");
        let admin = server.client_of(&secret);
        let taken = rogue
            .announce("rogue", &announcement(&["uplink"]))
            .unwrap_err();
        assert_eq!(taken.status(), Some(409), "{taken}");
        announce(&rogue, "rogue", "own");
        let mut own = slice("own", 4, 1);
        own.path = vec!["own".to_owned()];
        crate::support::put(&admin, &own);
        let acknowledged = Acknowledgement {
            generation: 5,
            refused: vec![RefusedSlice {
                waits_for: None,
                slice: "gold".to_owned(),
                reason: "it is mine".to_owned(),
            }],
            recovered: vec!["gold".to_owned()],
            gone: vec!["old".to_owned(), "gold".to_owned()],
        };
        rogue.acknowledge("rogue", &acknowledged).unwrap();
        assert_eq!(admin.slice("own").unwrap().state, SliceState::Installed);
        let after = (admin.slice("gold").unwrap(), admin.slice("old").unwrap());
        assert_eq!(before, after);
        let most = json!({"sent_frames": i64::MAX, "sent_bytes": i64::MAX, "dropped": {"queue_full": i64::MAX},
            "delay_ns": {"p50": i64::MAX, "p99": i64::MAX, "largest": i64::MAX}, "lost_link_time_ns": i64::MAX});
        let none = json!({"sent_frames": 0, "sent_bytes": 0});
        let report = |gold: &Value| {
            let report = json!({
                "interval_ns": 1,
                "links": [{"name": "uplink", "forward": most, "backward": most}, {"name": "own", "forward": most, "backward": most}],
                "slices": [{"name": "gold", "forward": gold}, {"name": "own", "forward": most}, {"name": "own", "forward": none}],
                "flows": [{"slice": "gold", "flows": [{"direction": "forward", "source": "a", "destination": "b", "protocol": 17,
                    "source_port": 1, "destination_port": 2, "frames": i64::MAX, "bytes": i64::MAX}]}],
                "events": [{"slice": "gold", "reason": "it is mine"}],
            });
            serde_json::from_value::<CounterReport>(report).unwrap()
        };
        for gold in [&most, &none] {
            let answer = rogue.report_counters("rogue", &report(gold)).unwrap();
            assert_eq!(answer.flows_wanted.len(), 0);
        }
        let counted = admin.slice_counters("gold", true).unwrap();
        assert_eq!(counted.hops.len(), 0, "{counted:?}");
        let link = admin.link_counters("uplink").unwrap();
        assert_eq!((link.forward.sent_frames, link.slices.len()), (0, 0));
        let own = admin.link_counters("own").unwrap();
        assert_eq!(
            (own.forward.sent_frames, own.slices.len()),
            (i64::MAX as u64, 1)
        );
        let rule = server.ask(
            "GET",
            "/v1/rules/r",
            &[("authorization", &format!("Bearer {secret}"))],
            None,
        );
        assert_eq!(rule.json["lent"], false, "{}", rule.text);
        let said = admin.events(0, None).unwrap().items;
        let said = said
            .iter()
            .filter(|event| event.reason.as_deref() == Some("it is mine"));
        assert_eq!(said.count(), 0);
        // What `gw` asks and says is not its own either.
        let refused = [
            rogue.announce("gw", &announcement(&["uplink"])).map(drop),
            rogue.desired("gw", 0, Duration::ZERO).map(drop),
            rogue.acknowledge("gw", &acknowledged),
            rogue.report_counters("gw", &report(&none)).map(drop),
        ];
        for refused in refused {
            assert_eq!(refused.unwrap_err().status(), Some(403));
        }
        // A generation that does not exist.
        let beyond = Acknowledgement {
            generation: i64::MAX as u64,
            ..Acknowledgement::default()
        };
        assert_eq!(
            rogue.acknowledge("rogue", &beyond).unwrap_err().status(),
            Some(409)
        );
    });
}
