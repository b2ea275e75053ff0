//! What the API does, told by its client.

use crate::support::{
    TestStore, acknowledge, announce, batch, each_with_link, guarantee, put, remove, slice,
    slice_json, try_put, with_link,
};
use serde_json::json;
use slicewise_api::{
    Acknowledgement, Change, Client, Desired, ElephantTerms, EventKind, GatewayChange, Match,
    Maximum, Precondition, SliceQuery, SliceState,
};
use std::time::Duration;

fn desired(client: &Client, after: u64) -> Desired {
    client.desired("gw", after, Duration::ZERO).unwrap()
}

#[test]
fn a_slice_is_admitted_then_installed_then_draining_then_gone() {
    each_with_link(|_, _server, client| {
        let made = client
            .put_slice(&slice("gold", 1, 60), Precondition::Absent, None)
            .unwrap();
        assert!(made.created);
        let made = made.value;
        assert_eq!(
            (made.state, made.version, made.path.len()),
            (SliceState::Admitted, 1, 1)
        );
        assert_eq!(made.unacknowledged, ["gw"]);
        // 50 ms is rounded down to a class; the width of a bucket is added.
        let bound = made.bound_ns.forward.unwrap();
        assert!((40_000_000..=50_000_000).contains(&bound), "{bound}");
        let left = client.link("uplink").unwrap().forward;
        assert_eq!(
            (left.promised.rate_bps, left.left.rate_bps),
            (60_000_000, 40_000_000)
        );

        let found = desired(&client, 0);
        assert_eq!((found.generation, found.snapshot.unwrap().len()), (1, 1));
        acknowledge(&client, "gw", 1, &[]);
        let read = client.slice("gold").unwrap();
        assert_eq!(
            (read.state, read.unacknowledged.len()),
            (SliceState::Installed, 0)
        );

        let removed = client
            .remove_slice("gold", Precondition::Version(1), None)
            .unwrap();
        assert_eq!((removed.state, removed.version), (SliceState::Draining, 2));
        let promised = || client.link("uplink").unwrap().forward.promised.rate_bps;
        assert_eq!(promised(), 60_000_000, "it stays promised");
        let found = desired(&client, 1);
        assert_eq!(found.changes, [GatewayChange::Remove("gold".to_owned())]);
        assert_eq!(desired(&client, 0).draining, ["gold"]);
        // An acknowledgement alone does not say that its frames are gone, nor does one of before.
        for (generation, gone) in [(2, vec![]), (1, vec!["gold".to_owned()])] {
            let said = Acknowledgement {
                generation,
                gone,
                ..Acknowledgement::default()
            };
            client.acknowledge("gw", &said).unwrap();
            assert_eq!(client.slice("gold").unwrap().state, SliceState::Draining);
        }
        acknowledge(&client, "gw", 2, &["gold"]);
        assert_eq!(client.slice("gold").unwrap_err().status(), Some(404));
        assert_eq!(promised(), 0);
        let kinds: Vec<EventKind> = client
            .events(0, None)
            .unwrap()
            .items
            .iter()
            .map(|event| event.kind)
            .collect();
        assert_eq!(
            kinds,
            [
                EventKind::GatewayCame,
                EventKind::SliceAdmitted,
                EventKind::SliceInstalled,
                EventKind::SliceDraining,
                EventKind::SliceGone
            ]
        );
    });
}

#[test]
fn a_slice_on_a_path_of_two_gateways_is_admitted_on_both_or_on_none() {
    each_with_link(|_, _server, client| {
        announce(&client, "far", "downlink");
        put(&client, &with_path(slice("near", 1, 70), &["uplink"]));
        let both = with_path(slice("both", 2, 40), &["downlink", "uplink"]);
        let refused = try_put(&client, &both).unwrap_err();
        insta::assert_snapshot!(refused, @"link `uplink`, forward: guarantees 40 Mbit/s (L2), but only 30 Mbit/s (L2) of the link is free: write a rate of at most 30 Mbit/s");
        assert_eq!(client.link("downlink").unwrap().forward.promised.slices, 0);
        let both = with_path(slice("both", 2, 30), &["downlink", "uplink"]);
        let made = put(&client, &both).value;
        assert_eq!(made.unacknowledged, ["far", "gw"]);
        // Each link gets half of the objective of 50 ms; two halves, each rounded down, are no more than the whole.
        let bound = made.bound_ns.forward.unwrap();
        assert!((40_000_000..=50_000_000).contains(&bound), "{bound}");
        let found = client
            .desired("far", 0, Duration::ZERO)
            .unwrap()
            .snapshot
            .unwrap();
        let terms = found[0].forward.clone().unwrap();
        assert_eq!(terms.guarantee.unwrap().delay_ns, Some(25_000_000));
        for gateway in ["gw", "far"] {
            assert_eq!(client.slice("both").unwrap().state, SliceState::Admitted);
            acknowledge(&client, gateway, 2, &[]);
        }
        assert_eq!(client.slice("both").unwrap().state, SliceState::Installed);
    });
}

fn with_path(mut slice: slicewise_api::Slice, path: &[&str]) -> slicewise_api::Slice {
    slice.path = path.iter().map(|&link| link.to_owned()).collect();
    slice
}

#[test]
fn the_backward_direction_gets_the_mirror_image() {
    let store = TestStore::sqlite();
    let (_server, client) = with_link(&store);
    let mut both = slice("both", 1, 10);
    both.matches = vec![Match {
        source: Some("192.0.2.0/24".to_owned()),
        destination_port: Some("80".to_owned()),
        ..Match::default()
    }];
    both.backward = Some(guarantee(20, None));
    put(&client, &both);
    let link = client.link("uplink").unwrap();
    let promised = [
        link.forward.promised.rate_bps,
        link.backward.promised.rate_bps,
    ];
    assert_eq!(promised, [10_000_000, 20_000_000]);
    let found = desired(&client, 0).snapshot.unwrap().remove(0);
    let mirrored = &found.backward.unwrap().matches[0];
    assert_eq!(mirrored.destination.as_deref(), Some("192.0.2.0/24"));
    assert_eq!(mirrored.source_port.as_deref(), Some("80"));
    assert_eq!(found.forward.unwrap().matches, both.matches);
}

#[test]
fn a_batch_is_admitted_whole_or_not_at_all_and_its_order_does_not_matter() {
    each_with_link(|_, _server, client| {
        let put = |name: &str, vlan, rate| Change::Put(slice(name, vlan, rate));
        client
            .batch(&batch(vec![put("a", 1, 50), put("b", 2, 40)]), None)
            .unwrap();
        let too_much = client.batch(&batch(vec![put("a", 1, 10), put("c", 3, 70)]), None);
        assert_eq!(too_much.unwrap_err().status(), Some(409));
        assert_eq!(
            client.slice("a").unwrap().forward,
            slice("a", 1, 50).forward
        );
        // `b` is raised before `a` is lowered.
        let swap = client
            .batch(&batch(vec![put("b", 2, 60), put("a", 1, 40)]), None)
            .unwrap();
        assert_eq!(swap.generation, 2);
        // The gateway lowers first.
        let changes = desired(&client, 1).changes;
        let names: Vec<&str> = changes
            .iter()
            .map(|change| match change {
                GatewayChange::Put(slice) => slice.name.as_str(),
                GatewayChange::Remove(name) => name.as_str(),
            })
            .collect();
        assert_eq!(names, ["a", "b"]);
        // VLANs may be exchanged, too.
        client
            .batch(&batch(vec![put("b", 1, 60), put("a", 2, 40)]), None)
            .unwrap();
        let nothing = client.batch(&batch(vec![put("b", 1, 60)]), None).unwrap();
        assert_eq!(nothing.generation, 3, "nothing differs");
    });
}

#[test]
fn two_new_slices_of_one_batch_have_no_packet_in_common() {
    each_with_link(|_, _server, client| {
        let put = |name: &str, vlan| Change::Put(slice(name, vlan, 1));
        let refused = client.batch(&batch(vec![put("a", 7), put("b", 7)]), None);
        let refused = refused.unwrap_err();
        assert_eq!(refused.status(), Some(409));
        let refused = refused.to_string();
        assert!(refused.contains("belong to slice `a`"), "{refused}");
        let apart = batch(vec![put("a", 7), put("b", 8)]);
        client.batch(&apart, None).unwrap();
    });
}

#[test]
fn restoring_a_generation_brings_back_its_slices() {
    each_with_link(|_, _server, client| {
        let put = |name: &str, vlan, rate| {
            put(&client, &slice(name, vlan, rate));
        };
        put("a", 1, 10);
        put("b", 2, 20);
        put("a", 1, 30);
        remove(&client, "b");
        put("c", 3, 5);
        let draining = client.restore(2, None).unwrap_err();
        insta::assert_snapshot!(draining, @"slice `b` is being removed: its name is free as soon as its gateways have sent its last frames");
        acknowledge(&client, "gw", 5, &["b"]);
        let restored = client.restore(2, None).unwrap();
        assert_eq!(restored.generation, 6);
        let rate = |name: &str| {
            client
                .slice(name)
                .unwrap()
                .slice
                .forward
                .unwrap()
                .guarantee
                .unwrap()
                .rate_bps
        };
        assert_eq!([rate("a"), rate("b")], [10_000_000, 20_000_000]);
        assert_eq!(client.slice("c").unwrap().state, SliceState::Draining);
        let history = client.generations(None, Some(2)).unwrap();
        assert_eq!(
            history.items[0].reason.as_deref(),
            Some("restore of generation 2")
        );
        assert_eq!((history.items.len(), history.next), (2, Some(5)));
        assert_eq!(
            client.generation(3).unwrap().changes[0].before,
            Some(with_path(slice("a", 1, 10), &["uplink"]))
        );
        assert_eq!(client.restore(77, None).unwrap_err().status(), Some(404));
    });
}

#[test]
fn lists_are_filtered_and_come_in_parts() {
    each_with_link(|_, _server, client| {
        let put = |index: u16| Change::Put(slice(&format!("s-{index:02}_x"), index, 1));
        client
            .batch(&batch((1..=25).map(put).collect()), None)
            .unwrap();
        let mut query = SliceQuery {
            limit: Some(10),
            ..SliceQuery::default()
        };
        let mut names = Vec::new();
        loop {
            let page = client.slices(&query).unwrap();
            names.extend(page.items.into_iter().map(|record| record.slice.name));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        let expected: Vec<String> = (1..=25).map(|index| format!("s-{index:02}_x")).collect();
        assert_eq!(names, expected);
        let count = |query: SliceQuery| client.slices(&query).unwrap().items.len();
        let any = SliceQuery::default();
        let contains = |text: &str| SliceQuery {
            name_contains: Some(text.to_owned()),
            ..any.clone()
        };
        assert_eq!(
            [
                count(contains("-1")),
                count(contains("S-2")),
                count(contains("%")),
                count(contains("-_1"))
            ],
            [10, 6, 0, 0]
        );
        assert_eq!(
            count(SliceQuery {
                link: Some("uplink".into()),
                state: Some(SliceState::Admitted),
                ..any.clone()
            }),
            25
        );
        assert_eq!(
            count(SliceQuery {
                state: Some(SliceState::Installed),
                ..any.clone()
            }),
            0
        );
        assert_eq!(
            count(SliceQuery {
                tenant: Some("other".into()),
                ..any.clone()
            }),
            0
        );
    });
}

#[test]
fn a_change_that_expects_another_version_is_refused() {
    each_with_link(|_, server, client| {
        let put = |headers: &[(&str, &str)], rate| {
            server
                .ask(
                    "PUT",
                    "/v1/slices/gold",
                    headers,
                    Some(&slice_json("gold", 1, rate)),
                )
                .status
        };
        assert_eq!(put(&[("if-match", "*")], 10), 412);
        assert_eq!(put(&[("if-none-match", "*")], 10), 201);
        assert_eq!(put(&[("if-none-match", "*")], 10), 412);
        assert_eq!(put(&[("if-match", "\"7\"")], 20), 412);
        assert_eq!(put(&[("if-match", "W/\"1\"")], 20), 412);
        assert_eq!(put(&[("if-match", "\"7\", \"1\"")], 20), 200);
        assert_eq!(put(&[("if-match", "1")], 20), 400);
        let read = server.ask("GET", "/v1/slices/gold", &[], None);
        assert_eq!(read.header("etag"), "\"2\"");
        let stale = client
            .remove_slice("gold", Precondition::Version(1), None)
            .unwrap_err();
        assert_eq!(stale.status(), Some(412));
        assert_eq!(
            client
                .remove_slice("gold", Precondition::Version(2), None)
                .unwrap()
                .version,
            3
        );
    });
}

#[test]
fn a_request_that_is_repeated_with_its_key_is_carried_out_once() {
    each_with_link(|_, server, client| {
        let key = [("idempotency-key", "k-1")];
        let body = slice_json("gold", 1, 60);
        let put =
            |key: &[(&str, &str)], body| server.ask("PUT", "/v1/slices/gold", key, Some(body));
        let first = put(&key, &body);
        assert_eq!(first.status, 201);
        remove(&client, "gold");
        let second = put(&key, &body);
        assert_eq!((second.status, &second.text), (201, &first.text));
        assert_eq!(second.header("etag"), first.header("etag"));
        assert_eq!(client.slice("gold").unwrap().state, SliceState::Draining);
        assert_eq!(put(&key, &slice_json("gold", 1, 61)).status, 422);
        // Refusals, too.
        let key = [("idempotency-key", "k-2")];
        let body = slice_json("large", 2, 90);
        let large = || server.ask("PUT", "/v1/slices/large", &key, Some(&body));
        let refused = large();
        assert_eq!(refused.status, 409);
        acknowledge(&client, "gw", 2, &["gold"]);
        assert_eq!(large().json, refused.json);
        assert_eq!(
            client.slices(&SliceQuery::default()).unwrap().items.len(),
            0
        );
    });
}

#[test]
fn packets_of_two_slices_must_not_overlap() {
    let store = TestStore::sqlite();
    let (_server, client) = with_link(&store);
    let of = |name: &str, matches: serde_json::Value| {
        let mut slice = slice(name, 1, 1);
        slice.matches = serde_json::from_value(json!([matches])).unwrap();
        slice
    };
    let put = |name: &str, matches| try_put(&client, &of(name, matches)).map(drop);
    put(
        "web",
        json!({"destination": "10.1.0.0/16", "protocol": "tcp", "destination_port": "80-90"}),
    )
    .unwrap();
    put(
        "host",
        json!({"destination": "10.1.2.3", "protocol": "udp"}),
    )
    .unwrap();
    put("six", json!({"source": "2001:db8::/32"})).unwrap();
    put(
        "tunnel",
        json!({"teid": 7, "protocol": "icmp", "source": "10.9.0.0/16"}),
    )
    .unwrap();
    let mut refused = Vec::new();
    for (name, matches) in [
        (
            "within",
            json!({"destination": "10.1.2.0/24", "protocol": "tcp", "destination_port": "90"}),
        ),
        (
            "around",
            json!({"destination": "10.0.0.0/8", "source": "10.2.0.0/16"}),
        ),
        ("protocol", json!({"protocol": "udp"})),
        (
            "source",
            json!({"source": "2001:db8:1::/48", "destination_port": "5"}),
        ),
        ("teid", json!({"teid": 7})),
        ("all", json!({"vlan": 3})),
    ] {
        refused.push(put(name, matches).unwrap_err().to_string());
    }
    insta::assert_snapshot!(refused.join("\n"), @"
    some packets that match slice `within` belong to slice `web`: state header fields that tell them apart
    some packets that match slice `around` belong to slice `web`: state header fields that tell them apart
    some packets that match slice `protocol` belong to slice `six`: state header fields that tell them apart
    some packets that match slice `source` belong to slice `six`: state header fields that tell them apart
    some packets that match slice `teid` belong to slice `web`: state header fields that tell them apart
    some packets that match slice `all` belong to slice `web`: state header fields that tell them apart
    ");
    put(
        "apart",
        json!({"destination": "10.1.2.0/24", "protocol": "tcp", "destination_port": "91"}),
    )
    .unwrap();
    put(
        "other",
        json!({"destination": "10.1.2.4", "protocol": "udp", "vlan": 9}),
    )
    .unwrap();
    // The other direction is another pipeline.
    let mut back = of(
        "back",
        json!({"destination": "10.1.2.3", "protocol": "udp"}),
    );
    back.backward = back.forward.take();
    crate::support::put(&client, &back);
}

#[test]
fn requests_of_p4_tins_become_slices() {
    let store = TestStore::sqlite();
    let (server, client) = with_link(&store);
    let body = json!([
        {"name": "voice", "minRate": "10 Mbit/s", "maxRate": "20 Mbit/s", "allowBurst": "125 kB", "peakBurst": "125 kB",
         "flows": [{"ipv4Source": "10.0.1.2/32", "protocol": "udp"}, {"ipv4Source": "10.0.1.3/32", "protocol": "tcp", "sourcePort": "5-9"}, {"teid": 7}]},
    ]);
    let answer = server.ask("POST", "/v1/slice-requests", &[], Some(&body));
    assert_eq!(answer.status, 200, "{}", answer.text);
    let voice = client.slice("voice").unwrap();
    assert_eq!(voice.matches.len(), 3);
    assert_eq!(voice.matches[2].teid, Some(7));
    assert_eq!(voice.matches[1].source_port.as_deref(), Some("5-9"));
    let terms = voice.slice.forward.unwrap();
    assert_eq!(
        (
            terms.guarantee.unwrap().rate_bps,
            terms.maximum.unwrap().rate_bps
        ),
        (10_000_000, 20_000_000)
    );
    let wrong = server.ask(
        "POST",
        "/v1/slice-requests",
        &[],
        Some(&json!([{"minRate": 1}])),
    );
    assert_eq!(wrong.status, 400);
}

#[test]
fn a_slice_request_without_a_name_changes_no_slice() {
    each_with_link(|_, server, client| {
        let request = |port: u16, name: Option<&str>| {
            let mut request = json!({"minRate": "1 Mbit/s", "maxRate": "2 Mbit/s", "allowBurst": "3 kB", "peakBurst": "3 kB",
                "flows": [{"destinationPort": port.to_string(), "protocol": "udp"}]});
            if let Some(name) = name {
                request["name"] = json!(name);
            }
            request
        };
        let ask = |body: serde_json::Value| {
            let answer = server.ask("POST", "/v1/slice-requests", &[], Some(&body));
            let slices = answer.json["slices"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let names: Vec<String> = slices
                .iter()
                .map(|slice| slice["name"].as_str().unwrap().to_owned())
                .collect();
            format!("{} {}", answer.status, names.join(" "))
        };
        let mut answers = vec![ask(request(1, None)), ask(request(2, None))];
        // The same packets once more are another slice's by now.
        answers.push(ask(request(1, None)));
        answers.push(ask(json!([
            request(3, None),
            request(4, Some("slice-4")),
            request(5, None)
        ])));
        // A name that is stated is of the slice that is meant.
        answers.push(ask(request(6, Some("slice-1"))));
        remove(&client, "slice-2");
        // It still drains.
        answers.push(ask(request(7, None)));
        insta::assert_snapshot!(answers.join("\n"), @"
            200 slice-1
            200 slice-2
            409 
            200 slice-3 slice-4 slice-5
            200 slice-1
            200 slice-6
            ");
        let kept = client.slice("slice-3").unwrap();
        assert_eq!(kept.matches[0].destination_port.as_deref(), Some("3"));
    });
}

#[test]
fn what_a_gateway_would_refuse_for_its_link_is_refused_before_it_is_told() {
    each_with_link(|_, _server, client| {
        let refused = |change: &dyn Fn(&mut slicewise_api::Terms)| {
            let mut one = slice("gold", 1, 1);
            change(one.forward.as_mut().unwrap());
            let error = try_put(&client, &one).unwrap_err();
            format!("{} {error}", error.status().unwrap())
        };
        let texts = [
            refused(&|terms| {
                terms.guarantee = None;
                terms.maximum = Some(Maximum {
                    rate_bps: 1_000_000,
                    burst_bytes: 100,
                });
            }),
            refused(&|terms| {
                terms.flows.elephants = Some(ElephantTerms {
                    rate_bps: 5_000,
                    interval_ms: 3_600_000,
                    times: 1,
                });
            }),
        ];
        insta::assert_snapshot!(texts.join("\n"), @"
            400 /forward/maximum/burst_bytes: 100 B is less than the largest frame of link `uplink`: expected at least 1522 B
            400 /forward/flows/elephants/rate_bps: 20000 flows above 5 kbit/s fit on a link of 100 Mbit/s, and 16384 can be followed: a higher rate is needed
            ");
    });
}
