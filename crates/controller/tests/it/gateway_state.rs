//! What a gateway has lost, is refused, or leaves behind.

use crate::support::{
    Server, TestStore, acknowledge, announce, announcement, each_with_link, for_each_store, put,
    remove, said, slice, try_put, with_link,
};
use slicewise_api::{
    Change, Client, Desired, EventKind, GatewayAnnouncement, Slice, SliceState, Tenant,
};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(30);
/// Longer than anything here takes: only a test that fails waits so long.
const PATIENCE: Duration = Duration::from_secs(90);

fn everything(client: &Client, gateway: &str) -> Desired {
    client.desired(gateway, 0, Duration::ZERO).unwrap()
}

/// Wait until gateways are not connected any more.
fn wait_until_gone(client: &Client, gateways: &[&str]) {
    let start = Instant::now();
    let went = |name: &str| {
        let events = client.events(0, None).unwrap().items;
        let mut newest = events.iter().rev();
        let own = newest.find(|event| event.gateway.as_deref() == Some(name));
        own.is_some_and(|event| event.kind == EventKind::GatewayWent)
    };
    while !gateways.iter().all(|name| went(name)) {
        assert!(start.elapsed() < PATIENCE, "{gateways:?} are never gone");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_gateway_is_forgotten_only_when_it_is_gone_and_then_told_everything_if_it_comes_back() {
    each_with_link(|_, server, client| {
        announce(&client, "far", "downlink");
        for (name, vlan, path) in [
            ("kept", 1, vec!["downlink"]),
            ("gold", 2, vec!["uplink"]),
            ("both", 3, vec!["uplink", "downlink"]),
        ] {
            let mut slice = slice(name, vlan, 60);
            slice.forward = Some(crate::support::guarantee(20, Some(50)));
            slice.path = path.into_iter().map(str::to_owned).collect();
            put(&client, &slice);
        }
        acknowledge(&client, "gw", 3, &[]);
        remove(&client, "gold");
        remove(&client, "both");
        let forget =
            |gateway: &str| server.ask("DELETE", &format!("/v1/gateways/{gateway}"), &[], None);
        let refused = forget("gw");
        assert_eq!(refused.status, 409);
        insta::assert_snapshot!(refused.json["detail"].as_str().unwrap(), @"gateway `gw` is connected, so frames of slices may wait in it: stop it, and forget it when it was not heard of for 10 s");
        assert_eq!(client.slice("gold").unwrap().state, SliceState::Draining);
        wait_until_gone(&client, &["gw", "far"]);
        assert_eq!(forget("far").status, 409, "`kept` passes it");
        assert_eq!(forget("gw").status, 204);
        assert_eq!(client.slice("gold").unwrap_err().status(), Some(404));
        // It still drains in the other one, and has nothing of the link that is gone.
        assert_eq!(client.slice("both").unwrap().state, SliceState::Draining);
        announce(&client, "gw", "uplink");
        put(
            &client,
            &Slice {
                path: vec!["uplink".to_owned()],
                ..slice("new", 3, 90)
            },
        );
        remove(&client, "kept");
        assert_eq!(forget("far").status, 204);
        for name in ["both", "kept"] {
            assert_eq!(client.slice(name).unwrap_err().status(), Some(404));
        }
        let promised = client.link("uplink").unwrap().forward.promised;
        assert_eq!((promised.slices, promised.rate_bps), (1, 90_000_000));
        // It has generation 3, with `gold` and `both`: what changed since then is not known for it.
        let told = client.desired("gw", 3, Duration::ZERO).unwrap();
        let names = told.snapshot.unwrap().into_iter().map(|slice| slice.name);
        assert_eq!(names.collect::<Vec<_>>(), ["new"]);
        let told = client
            .desired("gw", told.generation, Duration::ZERO)
            .unwrap();
        assert_eq!((told.snapshot, told.changes), (None, vec![]));
    });
}

#[test]
fn nothing_more_is_promised_of_a_link_that_is_announced_with_less() {
    each_with_link(|_, _server, client| {
        put(&client, &slice("gold", 1, 50));
        put(&client, &slice("other", 2, 10));
        let mut smaller = announcement(&["uplink"]);
        smaller.links[0].forward.rate_bps = 40_000_000;
        for _ in 0..2 {
            assert_eq!(
                client.announce("gw", &smaller).unwrap_err().status(),
                Some(409)
            );
        }
        let events = client.events(0, None).unwrap().items;
        let is_refusal = |kind| kind == EventKind::AnnouncementRefused;
        let noted = events.iter().filter(|event| is_refusal(event.kind));
        let noted: Vec<_> = noted.map(|event| event.reason.clone()).collect();
        assert_eq!(noted, [client.gateways().unwrap()[0].problem.clone()]);
        assert!(noted[0].is_some() && client.link("uplink").unwrap().disputed);
        // Less and best effort are accepted, more is not.
        let refused = try_put(&client, &slice("new", 3, 1));
        insta::assert_snapshot!(refused.unwrap_err(), @"link `uplink`: gateway `gw` announces it otherwise than before, and so that what is promised does not fit: nothing more is promised of it until slices are removed or it is announced as before");
        assert!(!client.offer(&slice("new", 3, 1)).unwrap().accepted);
        put(&client, &slice("other", 2, 9));
        let more = try_put(&client, &slice("other", 2, 10));
        assert_eq!(more.unwrap_err().status(), Some(409));
        let mut best_effort = slice("free", 4, 1);
        best_effort.forward = Some(slicewise_api::Terms::default());
        put(&client, &best_effort);
        // Announced once more when there is room, it counts.
        remove(&client, "gold");
        let generation = everything(&client, "gw").generation;
        acknowledge(&client, "gw", generation, &["gold"]);
        client.announce("gw", &smaller).unwrap();
        let link = client.link("uplink").unwrap();
        assert_eq!((link.forward.rate_bps, link.disputed), (40_000_000, false));
        assert_eq!(client.gateways().unwrap()[0].problem, None);
        put(&client, &slice("new", 3, 31));
        let refused = try_put(&client, &slice("newer", 5, 1));
        assert!(refused.is_err(), "40 Mbit/s are promised");
    });
}

#[test]
fn a_gateway_waits_also_before_the_first_generation() {
    each_with_link(|_, _server, client| {
        let (done, answered) = channel();
        let waiting = client.clone();
        std::thread::spawn(move || {
            done.send(waiting.desired("gw", 0, LONG).unwrap()).unwrap();
        });
        let early = answered.recv_timeout(Duration::from_millis(300));
        assert!(early.is_err(), "there is nothing to say: {early:?}");
        put(&client, &slice("first", 1, 1));
        let told = answered.recv_timeout(PATIENCE).unwrap();
        assert_eq!((told.generation, told.snapshot.unwrap().len()), (1, 1));
    });
    let store = TestStore::sqlite();
    let (_server, client) = with_link(&store);
    let told = client.desired("gw", 0, Duration::from_millis(1)).unwrap();
    assert_eq!(told.snapshot, Some(vec![]), "whatever it has must go");
}

#[test]
fn a_second_gateway_of_a_name_is_refused_while_the_first_is_connected() {
    each_with_link(|_, _server, client| {
        let first = client.clone().with_instance("a1");
        let second = client.clone().with_instance("b2");
        let links = announcement(&["uplink"]);
        first.announce("gw", &links).unwrap();
        put(&client, &slice("gold", 1, 1));
        for _ in 0..2 {
            let refused = second.announce("gw", &links).unwrap_err();
            assert_eq!(refused.status(), Some(409));
            insta::assert_snapshot!(refused, @"another gateway of the name `gw` is connected: give each gateway a name of its own; one that has lost its state file, or replaces the other, is taken 10 s after the other was heard of last");
        }
        let events = client.events(0, None).unwrap().items;
        let refused = events
            .iter()
            .filter(|event| event.kind == EventKind::AnnouncementRefused);
        assert_eq!(refused.count(), 1);
        assert!(!client.link("uplink").unwrap().disputed);
        // What it asks and says does not count either.
        let said = said(1);
        let refused = [
            second.desired("gw", 0, LONG).err(),
            second.acknowledge("gw", &said).err(),
            second.report_counters("gw", &Default::default()).err(),
        ];
        for refused in refused {
            assert_eq!(refused.unwrap().status(), Some(409));
        }
        assert_eq!(client.slice("gold").unwrap().state, SliceState::Admitted);
        first.announce("gw", &links).unwrap();
        wait_until_gone(&client, &["gw"]);
        second.announce("gw", &links).unwrap();
        assert_eq!(
            first.acknowledge("gw", &said).unwrap_err().status(),
            Some(409)
        );
        second.acknowledge("gw", &said).unwrap();
        assert_eq!(client.slice("gold").unwrap().state, SliceState::Installed);
    });
}

#[test]
fn what_a_gateway_has_lost_is_not_installed_and_a_late_acknowledgement_lowers_nothing() {
    each_with_link(|_, _server, client| {
        for (name, vlan) in [("a", 1), ("b", 2), ("c", 3)] {
            put(&client, &slice(name, vlan, 1));
        }
        let states = || ["a", "b", "c"].map(|name| client.slice(name).unwrap().state);
        let (admitted, installed) = (SliceState::Admitted, SliceState::Installed);
        acknowledge(&client, "gw", 3, &[]);
        acknowledge(&client, "gw", 2, &[]);
        let acknowledged = || client.gateways().unwrap()[0].acknowledged;
        assert_eq!(acknowledged(), 3);
        let reached = |reached| GatewayAnnouncement {
            reached,
            ..announcement(&["uplink"])
        };
        for (lost, then) in [
            (None, [installed; 3]),
            (Some(3), [installed; 3]),
            (Some(2), [installed, installed, admitted]),
            (Some(0), [admitted; 3]),
            // Of another history.
            (Some(9), [admitted; 3]),
        ] {
            client.announce("gw", &reached(lost)).unwrap();
            assert_eq!(states(), then, "{lost:?}");
            if then != [installed; 3] {
                assert_eq!(acknowledged(), lost.filter(|&lost| lost < 3).unwrap_or(0));
            }
            acknowledge(&client, "gw", 3, &[]);
            assert_eq!(states(), [installed; 3]);
        }
    });
}

#[test]
fn names_of_classes_of_a_gateway_are_not_promised_to_slices() {
    for_each_store(|store| {
        let server = Server::start(store);
        let client = server.client();
        let mut links = announcement(&["uplink"]);
        links.links[0].classes = vec!["voice".to_owned()];
        client.announce("gw", &links).unwrap();
        let voice = slice("voice", 1, 1);
        let refused = try_put(&client, &voice);
        insta::assert_snapshot!(refused.unwrap_err(), @"gateway `gw` has a class `voice` of its own: choose another name");
        assert!(!client.offer(&voice).unwrap().accepted);
        let default = slice("class-default", 1, 1);
        let refused = try_put(&client, &default);
        insta::assert_snapshot!(refused.unwrap_err(), @"/name: `class-default` is what packets of no slice belong to: choose another name");
        put(&client, &slice("video", 1, 1));
        links.links[0].classes = vec!["video".to_owned()];
        let refused = client.announce("gw", &links);
        insta::assert_snapshot!(refused.unwrap_err(), @"the policy of link `uplink` has a class `video`, and there is a slice of that name: rename the class");
    });
}

#[test]
fn a_generation_of_more_changes_than_an_answer_has_comes_whole_and_at_once() {
    each_with_link(|_, _server, client| {
        announce(&client, "far", "downlink");
        let weighed = |weight| Tenant {
            weight,
            ..Tenant::default()
        };
        client.put_tenant("red", &weighed(2)).unwrap();
        let of_red = |vlan: u16, link: &str| Slice {
            tenant: "red".to_owned(),
            path: vec![link.to_owned()],
            forward: Some(slicewise_api::Terms::default()),
            ..slice(&format!("s{vlan}"), vlan, 1)
        };
        for first in [0, 600] {
            let changes = (first..first + 600).map(|vlan| Change::Put(of_red(vlan, "uplink")));
            client
                .batch(&crate::support::batch(changes.collect()), None)
                .unwrap();
        }
        let after = everything(&client, "gw").generation;
        // One that does not concern the gateway, and then one that concerns all of its slices.
        put(&client, &of_red(2_000, "downlink"));
        client.put_tenant("red", &weighed(7)).unwrap();
        put(&client, &of_red(3_000, "uplink"));
        let told = client.desired("gw", after, LONG).unwrap();
        assert_eq!((told.generation, told.changes.len()), (after + 2, 1_200));
        let told = client.desired("gw", told.generation, LONG).unwrap();
        assert_eq!((told.generation, told.changes.len()), (after + 3, 1));
    });
}
