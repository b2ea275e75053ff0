//! Stores have an identity that gateways follow, and gateways one that stores know.

use crate::support::{
    Server, TestStore, announce, announcement, for_each_store, said, slice, try_put, with_link,
};
use slicewise_api::{
    Acknowledgement, Client, CounterReport, EventKind, GatewayAnnouncement, GatewayRecord,
    OTHER_STORE,
};
use slicewise_controller::{ControllerError, run_adopt, run_backup, run_restore};
use std::time::Duration;

fn reached(generation: u64) -> GatewayAnnouncement {
    GatewayAnnouncement {
        reached: Some(generation),
        ..announcement(&["uplink"])
    }
}

fn put(client: &Client, name: &str, vlan: u16) -> u64 {
    let put = try_put(client, &slice(name, vlan, 1));
    put.unwrap().value.generation
}

fn gateway(client: &Client) -> GatewayRecord {
    client.gateways().unwrap().swap_remove(0)
}

/// Asserts that whatever a gateway asks and says is refused because of its store.
fn is_refused(client: &Client, after: u64) -> String {
    let announced = client.announce("gw", &reached(after)).unwrap_err();
    let asked = client.desired("gw", after, Duration::ZERO).unwrap_err();
    for error in [&announced, &asked] {
        let slicewise_api::ClientError::Refused(problem) = error else {
            panic!("{error}");
        };
        let is_known = problem.status == 409 && problem.kind.ends_with(OTHER_STORE);
        // A store that never heard of the gateway has nothing for it.
        assert!(is_known || problem.status == 404, "{problem:?}");
    }
    announced.to_string()
}

#[test]
fn a_gateway_that_follows_another_store_is_refused_loudly_until_an_operator_adopts_it() {
    for (first, second) in TestStore::each().into_iter().zip(TestStore::each()) {
        let (_one, client) = with_link(&first);
        put(&client, "gold", 1);
        let followed = client.announce("gw", &reached(0)).unwrap();
        let store = followed.store.unwrap();
        assert_eq!((store.len(), followed.adopted), (32, false));
        let following = client.clone().with_store(&store);
        following.announce("gw", &reached(1)).unwrap();
        let desired = following.desired("gw", 0, Duration::ZERO).unwrap();
        assert_eq!(desired.store.as_deref(), Some(store.as_str()));
        // An empty store, as of another folder.
        let other_server = Server::start(&second);
        let other = other_server.client();
        let lost = other.clone().with_store(&store);
        let refused = is_refused(&lost, 1);
        assert!(refused.contains(&store), "{refused}");
        is_refused(&lost, 1);
        let shown = gateway(&other);
        assert_eq!(
            (shown.problem.as_ref(), shown.connected),
            (Some(&refused), false)
        );
        assert_eq!(shown.links.len(), 0);
        let events = other.events(0, None).unwrap().items;
        let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [EventKind::AnnouncementRefused], "noted once");
        let metrics = other_server.ask("GET", "/metrics", &[], None).text;
        let line = "slicewise_controller_gateway_refused{gateway=\"gw\"} 1\n";
        assert!(metrics.contains(line), "{metrics}");
        let said = Acknowledgement::default();
        let acknowledged = lost.acknowledge("gw", &said).unwrap_err();
        let counted = lost.report_counters("gw", &CounterReport::default());
        assert_eq!(
            (acknowledged.status(), counted.unwrap_err().status()),
            (Some(409), Some(409))
        );
        // The operator's word.
        let unknown = run_adopt(&second.location, vec!["gw".to_owned(), "x".to_owned()]);
        let ControllerError::Refused(unknown) = unknown.unwrap_err() else {
            panic!("refused");
        };
        insta::allow_duplicates! {
            insta::assert_snapshot!(unknown, @"there is no gateway `x` in this store: expected the name of one that announced itself here, even if it was refused");
        }
        is_refused(&lost, 1);
        run_adopt(&second.location, vec!["gw".to_owned()]).unwrap();
        // As often as it needs, until it has acknowledged.
        for _ in 0..2 {
            let adopted = lost.announce("gw", &reached(1)).unwrap();
            assert!(adopted.adopted && adopted.store.is_some_and(|other| other != store));
        }
        let new_store = lost.announce("gw", &reached(1)).unwrap().store.unwrap();
        let moved = other.clone().with_store(&new_store);
        let snapshot = moved.desired("gw", 0, Duration::ZERO).unwrap().snapshot;
        assert_eq!(snapshot, Some(Vec::new()));
        moved.acknowledge("gw", &said).unwrap();
        assert_eq!(gateway(&other).problem, None);
        is_refused(&lost, 1);
    }
}

#[test]
fn a_restored_backup_is_followed_by_gateways_that_have_seen_nothing_later() {
    for (from, to) in TestStore::each().into_iter().zip(TestStore::each()) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("backup");
        let (server, client) = with_link(&from);
        announce(&client, "far", "downlink");
        let store = client.announce("gw", &reached(0)).unwrap().store.unwrap();
        let mut own = slice("gold", 1, 1);
        own.path = vec!["uplink".to_owned()];
        try_put(&client, &own).unwrap();
        run_backup(&from.location, &file).unwrap();
        own.name = "later".to_owned();
        own.matches[0].vlan = Some(2);
        try_put(&client, &own).unwrap();
        drop(server);
        run_restore(&to.location, &file).unwrap();
        let server = Server::start(&to);
        let client = server.client().with_store(&store);
        let refused = is_refused(&client, 2);
        insta::allow_duplicates! {
            insta::assert_snapshot!(refused, @"gateway `gw` has seen generation 2, which this store does not have: it is an older copy, or a restored backup. Start the controller with the newer store; only if what came after is to be undone, `slicewise controller adopt gw`");
        }
        let far = GatewayAnnouncement {
            reached: Some(1),
            ..announcement(&["downlink"])
        };
        let answer = client.announce("far", &far).unwrap();
        assert_eq!(answer.store.as_deref(), Some(store.as_str()));
        let told = client.desired("far", 1, Duration::ZERO).unwrap();
        assert!(told.generation > 1 << 32 && told.snapshot.is_some());
        run_adopt(&to.location, vec!["gw".to_owned()]).unwrap();
        let adopted = client.announce("gw", &reached(2)).unwrap();
        assert!(adopted.adopted);
        let told = client.desired("gw", 0, Duration::ZERO).unwrap();
        assert_eq!(told.snapshot.unwrap().len(), 1);
        let said = said(told.generation);
        client.acknowledge("gw", &said).unwrap();
        assert!(
            !client
                .announce("gw", &reached(told.generation))
                .unwrap()
                .adopted
        );
    }
}

#[test]
fn a_gateway_that_states_no_store_is_followed_as_before() {
    let store = TestStore::sqlite();
    let (_server, client) = with_link(&store);
    put(&client, "gold", 1);
    client.announce("gw", &reached(7)).unwrap();
    let told = client.desired("gw", 7, Duration::ZERO).unwrap();
    assert_eq!(told.snapshot.unwrap().len(), 1);
}

#[test]
fn nobody_speaks_for_a_connected_gateway_without_its_identifier() {
    for_each_store(|store| {
        let server = Server::start(store);
        let (own, unnamed) = (server.client().with_instance("own"), server.client());
        announce(&own, "gw", "uplink");
        put(&unnamed, "gold", 1);
        let mut larger = announcement(&["uplink"]);
        larger.links[0].forward.rate_bps = 1_000_000_000_000;
        for _ in 0..2 {
            let refused = unnamed.announce("gw", &larger).unwrap_err();
            assert_eq!(refused.status(), Some(409), "{refused}");
        }
        let lost = GatewayAnnouncement {
            reached: Some(0),
            ..announcement(&["uplink"])
        };
        let said = said(1);
        let refused = [
            unnamed.announce("gw", &lost).map(drop),
            unnamed.desired("gw", 0, Duration::ZERO).map(drop),
            unnamed.acknowledge("gw", &said),
            unnamed
                .report_counters("gw", &CounterReport::default())
                .map(drop),
        ];
        for refused in refused {
            assert_eq!(refused.unwrap_err().status(), Some(409));
        }
        let link = unnamed.link("uplink").unwrap();
        assert_eq!((link.forward.rate_bps, link.disputed), (100_000_000, false));
        assert_eq!(gateway(&unnamed).acknowledged, 0);
        own.acknowledge("gw", &said).unwrap();
        let events = unnamed.events(0, None).unwrap().items;
        let is_refusal =
            |event: &&slicewise_api::Event| event.kind == EventKind::AnnouncementRefused;
        assert_eq!(events.iter().filter(is_refusal).count(), 1);
    });
}
