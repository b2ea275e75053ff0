//! Slices that drain and are ended by an operator.

use crate::support::{
    Server, TestStore, acknowledge, announcement, for_each_store, put, remove, slice, token,
    with_link,
};
use slicewise_api::SliceState;
use slicewise_api::{Client, Desired, EventKind, GatewayChange, Precondition};
use std::time::Duration;

fn desired(client: &Client, gateway: &str, after: u64) -> Desired {
    client.desired(gateway, after, Duration::ZERO).unwrap()
}

fn say_gone(client: &Client, gateway: &str, generation: u64) {
    acknowledge(client, gateway, generation, &["gold"]);
}

/// A slice that passes two gateways.
fn with_gold(store: &TestStore) -> (Server, Client) {
    let (server, client) = with_link(store);
    let far = announcement(&["downlink"]);
    client.announce("far", &far).unwrap();
    let mut gold = slice("gold", 1, 60);
    gold.path = vec!["uplink".to_owned(), "downlink".to_owned()];
    put(&client, &gold);
    (server, client)
}

#[test]
fn a_slice_that_drains_is_purged_at_the_gateways_that_still_have_it() {
    for_each_store(|store| {
        let (_server, client) = with_gold(store);
        let refused = client.purge_slice("gold", None).unwrap_err();
        assert_eq!(refused.status(), Some(409));
        insta::assert_snapshot!(refused, @"slice `gold` does not drain: remove it first, and purge it if its frames do not leave");
        assert_eq!(
            client.purge_slice("none", None).unwrap_err().status(),
            Some(404)
        );
        remove(&client, "gold");
        say_gone(&client, "far", 2);
        let purged = client.purge_slice("gold", None).unwrap();
        assert_eq!((purged.state, purged.generation), (SliceState::Draining, 3));
        assert_eq!(purged.unacknowledged, ["gw"]);
        // Whether the gateway has heard of the removal or not, and whether it is told of changes or of everything.
        let remove = GatewayChange::Remove("gold".to_owned());
        for (after, removals) in [(2, 1), (1, 2)] {
            let found = desired(&client, "gw", after);
            assert_eq!(found.changes, vec![remove.clone(); removals]);
            assert_eq!(
                (found.generation, found.purge),
                (3, vec!["gold".to_owned()])
            );
        }
        let found = desired(&client, "gw", 0);
        assert_eq!(found.draining, ["gold"]);
        assert_eq!(found.purge, ["gold"]);
        let elsewhere = desired(&client, "far", 2);
        assert_eq!((elsewhere.changes.len(), elsewhere.purge.len()), (0, 0));
        // Once is enough.
        assert_eq!(client.purge_slice("gold", None).unwrap().generation, 3);
        let promised = || client.link("uplink").unwrap().forward.promised.rate_bps;
        assert_eq!(promised(), 60_000_000);
        say_gone(&client, "gw", 3);
        assert_eq!(promised(), 0);
        client
            .put_slice(&slice_on_uplink(), Precondition::Absent, None)
            .unwrap();
        assert!(desired(&client, "gw", 3).purge.is_empty());
        let events = client.events(0, None).unwrap().items;
        let told = events
            .iter()
            .filter(|event| event.kind == EventKind::SliceDraining);
        let told: Vec<_> = told.map(|event| event.reason.clone()).collect();
        assert_eq!(
            told,
            [
                None,
                Some("purged: gateways drop its waiting frames".to_owned())
            ]
        );
        let history = client.generation(3).unwrap();
        assert_eq!(history.reason.as_deref(), Some("purge of slice gold"));
        assert_eq!(history.changes.len(), 1);
    });
}

fn slice_on_uplink() -> slicewise_api::Slice {
    let mut gold = slice("gold", 1, 60);
    gold.path = vec!["uplink".to_owned()];
    gold
}

/// A gateway that has just said that the slice is gone is not late: the removal counts, not the purge.
#[test]
fn a_gateway_that_has_not_heard_of_the_purge_says_that_the_slice_is_gone() {
    let store = TestStore::sqlite();
    let (_server, client) = with_gold(&store);
    remove(&client, "gold");
    client.purge_slice("gold", None).unwrap();
    say_gone(&client, "gw", 2);
    say_gone(&client, "far", 2);
    assert_eq!(client.slice("gold").unwrap_err().status(), Some(404));
}

#[test]
fn a_purge_is_no_change_that_a_restore_takes_back() {
    let store = TestStore::sqlite();
    let (_server, client) = with_gold(&store);
    remove(&client, "gold");
    client.purge_slice("gold", None).unwrap();
    assert_eq!(client.restore(2, None).unwrap().changed, 0);
    for gateway in ["gw", "far"] {
        say_gone(&client, gateway, 3);
    }
    assert_eq!(client.restore(2, None).unwrap().changed, 0);
    assert_eq!(client.restore(1, None).unwrap().changed, 1);
}

#[test]
fn only_an_operator_purges_and_it_is_in_the_audit_log() {
    let store = TestStore::sqlite();
    let (server, open) = with_gold(&store);
    remove(&open, "gold");
    let tokens = ["admin", "operator", "tenant:default"]
        .map(|scope| (scope, token(&store, &scope.replace(':', "-"), scope)));
    for (scope, token) in tokens.iter().rev() {
        let purged = server.client_of(token).purge_slice("gold", None);
        assert_eq!(
            purged.is_ok(),
            !scope.starts_with("tenant"),
            "{scope}: {purged:?}"
        );
    }
    let bearer = format!("Bearer {}", tokens[0].1);
    let audit = server.ask("GET", "/v1/audit", &[("authorization", &bearer)], None);
    assert!(
        audit.text.contains("POST /v1/slices/gold/purge"),
        "{}",
        audit.text
    );
}
