//! What gateways announce, wait for and report.

use crate::support::{
    Server, TestStore, announce, announcement, each_with_link, put, said, slice, try_put, with_link,
};
use serde_json::json;
use slicewise_api::{
    Acknowledgement, CounterReport, Desired, EventKind, GatewayChange, LinkDirectionRecord,
    RefusedSlice, SliceState, Tenant,
};
use std::io::{BufRead, BufReader};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);

#[test]
fn a_gateway_that_waits_learns_of_a_change_also_of_another_controller() {
    each_with_link(|store, _server, client| {
        let other = Server::start(store);
        let others = other.client();
        put(&others, &slice("first", 1, 1));
        for (index, writer) in [client.clone(), others.clone()].into_iter().enumerate() {
            let after = client.desired("gw", 0, Duration::ZERO).unwrap().generation;
            let (waiting, done) = (client.clone(), std::sync::mpsc::channel());
            let sender = done.0;
            let thread = std::thread::spawn(move || {
                sender
                    .send(waiting.desired("gw", after, LONG).unwrap())
                    .unwrap()
            });
            assert!(
                done.1.recv_timeout(Duration::from_millis(200)).is_err(),
                "nothing changed"
            );
            let name = format!("s{index}");
            put(
                &writer,
                &slice(&name, 10 + u16::try_from(index).unwrap(), 1),
            );
            let found: Desired = done.1.recv_timeout(LONG).unwrap();
            assert!(
                matches!(&found.changes[..], [GatewayChange::Put(slice)] if slice.name == name)
            );
            thread.join().unwrap();
        }
        // What does not concern it moves it forward nevertheless, at the end of its wait.
        announce(&others, "far", "downlink");
        let mut elsewhere = slice("elsewhere", 1, 1);
        elsewhere.path = vec!["downlink".to_owned()];
        put(&others, &elsewhere);
        let found = client.desired("gw", 3, Duration::from_millis(50)).unwrap();
        assert_eq!((found.generation, found.changes.len()), (4, 0));
    });
}

#[test]
fn an_announcement_that_no_longer_holds_what_is_promised_is_refused_with_the_reason() {
    each_with_link(|_, _server, client| {
        put(&client, &slice("gold", 1, 60));
        let mut smaller = announcement(&["uplink"]);
        smaller.links[0].forward.rate_bps = 50_000_000;
        let refused = client.announce("gw", &smaller).unwrap_err();
        insta::assert_snapshot!(refused, @"link `uplink` as announced no longer holds what is promised: slice `gold`: guarantees 60 Mbit/s (L2), but only 50 Mbit/s (L2) of the link is free; announce it as before, or change slices first");
        let left_out = client.announce("gw", &announcement(&[])).unwrap_err();
        insta::assert_snapshot!(left_out, @"link `uplink` is left out, but slice `gold` passes it: remove its slices first");
        let taken = client
            .announce("other", &announcement(&["uplink"]))
            .unwrap_err();
        insta::assert_snapshot!(taken, @"link `uplink` is of gateway `gw`: choose another name");
        // A delay that was asked for stays what it is.
        let before = client.slice("gold").unwrap().bound_ns.forward.unwrap();
        let mut other = announcement(&["uplink"]);
        other.links[0].forward.shortest_delay_ns = 17_000;
        other.links[0].forward.rate_bps = 80_000_000;
        client.announce("gw", &other).unwrap();
        let after = client.slice("gold").unwrap().bound_ns.forward.unwrap();
        assert_eq!(before, after);
        let link = client.link("uplink").unwrap().forward;
        assert_eq!((link.promised.slices, link.left.rate_bps), (1, 20_000_000));
        assert_eq!(link.delay_classes.len(), 1);
    });
}

#[test]
fn what_a_gateway_reserves_for_its_own_classes_is_not_promised() {
    each_with_link(|store, _server, client| {
        // Without a reserve; then with one, of the same delay.
        put(&client, &slice("gold", 1, 60));
        let mut reserving = announcement(&["uplink"]);
        let own = slice("own", 1, 10).forward.unwrap();
        reserving.links[0].forward.reserved = vec![own.guarantee.unwrap()];
        client.announce("gw", &reserving).unwrap();
        let forward = || client.link("uplink").unwrap().forward;
        let sums = |link: &LinkDirectionRecord| {
            (
                link.promised.slices,
                link.promised.rate_bps,
                link.reserved_bps,
                link.left.rate_bps,
            )
        };
        assert_eq!(sums(&forward()), (1, 60_000_000, 10_000_000, 30_000_000));
        let refused = try_put(&client, &slice("large", 2, 31));
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("only 30 Mbit/s"), "{refused}");
        put(&client, &slice("silver", 2, 30));
        assert_eq!(sums(&forward()), (2, 90_000_000, 10_000_000, 0));
        let findings = slicewise_controller::run_check(&store.location).unwrap();
        assert_eq!(findings, Vec::<String>::new());
        // A reserve that does not fit beside what is promised is refused, and so is one that fits nowhere.
        reserving.links[0].forward.reserved[0].rate_bps = 11_000_000;
        let refused = client.announce("gw", &reserving).unwrap_err().to_string();
        assert!(
            refused.contains("no longer holds what is promised"),
            "{refused}"
        );
        reserving.links[0].forward.reserved[0].rate_bps = 101_000_000;
        let refused = client.announce("gw", &reserving).unwrap_err().to_string();
        assert!(refused.contains("/links/0/forward/reserved/0"), "{refused}");
        announce(&client, "gw", "uplink");
        assert_eq!(sums(&forward()), (2, 90_000_000, 0, 10_000_000));
    });
}

#[test]
fn a_slice_that_a_gateway_refuses_is_not_installed_until_it_recovers() {
    each_with_link(|_, _server, client| {
        put(&client, &slice("gold", 1, 10));
        let say = |said: Acknowledgement| client.acknowledge("gw", &said).unwrap();
        let refused = vec![RefusedSlice {
            waits_for: None,
            slice: "gold".to_owned(),
            reason: "no memory".to_owned(),
        }];
        say(Acknowledgement { refused, ..said(1) });
        let read = client.slice("gold").unwrap();
        assert_eq!(
            (read.state, read.problems[0].reason.as_str()),
            (SliceState::Admitted, "no memory")
        );
        say(said(1));
        assert_eq!(client.slice("gold").unwrap().state, SliceState::Admitted);
        say(Acknowledgement {
            recovered: vec!["gold".into()],
            ..said(1)
        });
        let read = client.slice("gold").unwrap();
        assert_eq!(
            (read.state, read.problems.len()),
            (SliceState::Installed, 0)
        );
    });
}

#[test]
fn counters_are_read_at_every_controller_and_flows_come_when_asked_for() {
    each_with_link(|store, _server, client| {
        let other = Server::start(store).client();
        let _other = Server::start(store);
        let others = _other.client();
        drop(other);
        put(&client, &slice("gold", 1, 10));
        let direction = json!({"sent_frames": 5, "sent_bytes": 500, "dropped": {"queue_full": 2}, "delay_ns": {"p50": 1, "p99": 2, "largest": 3}});
        let report: CounterReport = serde_json::from_value(json!({
            "interval_ns": 1_000_000_000,
            "links": [{"name": "uplink", "forward": direction, "backward": {"sent_frames": 0, "sent_bytes": 0}}],
            "slices": [{"name": "gold", "forward": direction}],
            "flows": [{"slice": "gold", "flows": [{"direction": "forward", "source": "a", "destination": "b", "protocol": 17,
                "source_port": 1, "destination_port": 2, "frames": 5, "bytes": 500}]}],
            "events": [{"slice": "gold", "reason": "lent 5 Mbit/s to `silver`: unused for 10 s"}],
        }))
        .unwrap();
        assert_eq!(
            client
                .report_counters("gw", &report)
                .unwrap()
                .flows_wanted
                .len(),
            0
        );
        for client in [&client, &others] {
            let read = client.slice_counters("gold", false).unwrap();
            assert_eq!(read.hops[0].forward, report.slices[0].forward);
            assert_eq!(read.hops[0].flows.len(), 0);
            let link = client.link_counters("uplink").unwrap();
            assert_eq!((link.forward.sent_frames, link.slices.len()), (5, 1));
        }
        assert_eq!(
            others.slice_counters("gold", true).unwrap().hops[0]
                .flows
                .len(),
            1
        );
        assert_eq!(
            client.report_counters("gw", &report).unwrap().flows_wanted,
            ["gold"]
        );
        let events = client.events(0, None).unwrap().items;
        let decision = events
            .iter()
            .find(|event| event.kind == EventKind::Decision)
            .unwrap();
        assert_eq!(
            decision.reason.as_deref(),
            Some("lent 5 Mbit/s to `silver`: unused for 10 s")
        );
    });
}

#[test]
fn events_are_streamed_and_continued() {
    let store = TestStore::sqlite();
    let (server, client) = with_link(&store);
    put(&client, &slice("a", 1, 1));
    let stream = |last: &str| {
        let request =
            ureq::get(format!("{}/v1/events", server.url)).header("accept", "text/event-stream");
        let response = request.header("last-event-id", last).call().unwrap();
        BufReader::new(response.into_body().into_reader())
    };
    let mut lines = stream("1")
        .lines()
        .map(Result::unwrap)
        .filter(|line| line.starts_with("id:"));
    assert_eq!(lines.next().unwrap(), "id: 2");
    put(&client, &slice("b", 2, 1));
    assert_eq!(lines.next().unwrap(), "id: 3");
}

#[test]
fn another_weight_of_a_tenant_reaches_its_gateways_at_once_and_no_others() {
    each_with_link(|_, _server, client| {
        announce(&client, "far", "downlink");
        let weighed = |weight| Tenant {
            weight,
            ..Tenant::default()
        };
        client.put_tenant("red", &weighed(2)).unwrap();
        let mut own = slice("own", 1, 1);
        own.tenant = "red".to_owned();
        own.path = vec!["uplink".to_owned()];
        let mut other = slice("other", 2, 1);
        other.path = vec!["uplink".to_owned()];
        for slice in [&own, &other] {
            put(&client, slice);
        }
        let version = client.slice("own").unwrap().version;
        // As it was: no generation.
        client.put_tenant("red", &weighed(2)).unwrap();
        let before = client.desired("gw", 0, Duration::ZERO).unwrap().generation;
        assert_eq!(before, 2);
        client.put_tenant("red", &weighed(7)).unwrap();
        let found = client.desired("gw", before, Duration::ZERO).unwrap();
        assert_eq!(found.generation, before + 1);
        let [GatewayChange::Put(put)] = &found.changes[..] else {
            panic!("{:?}", found.changes);
        };
        assert_eq!((put.name.as_str(), put.tenant_weight), ("own", 7));
        let elsewhere = client.desired("far", before, Duration::ZERO).unwrap();
        assert_eq!(elsewhere.changes, []);
        // Whoever asks for everything gets the same.
        let all = client.desired("gw", 0, Duration::ZERO).unwrap();
        assert!(all.snapshot.unwrap().contains(put));
        assert_eq!(client.slice("own").unwrap().version, version);
        let newest = &client.generations(None, None).unwrap().items[0];
        assert_eq!(newest.reason.as_deref(), Some("tenant `red`: weight 2 → 7"));
        let events = client.events(0, None).unwrap().items;
        let last = events.last().unwrap();
        assert_eq!(last.kind, EventKind::Decision);
        assert_eq!(last.generation, Some(before + 1));
        // Without slices there is nothing to tell.
        client.put_tenant("blue", &weighed(3)).unwrap();
        client.put_tenant("blue", &weighed(4)).unwrap();
        let after = client.desired("gw", 0, Duration::ZERO).unwrap().generation;
        assert_eq!(after, before + 1);
    });
}
