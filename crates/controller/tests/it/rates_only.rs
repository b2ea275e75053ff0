//! Links whose gateway meters slices, as P4-TINS does: rates are admitted, and no delay is promised.

use crate::support::{
    Server, TestStore, acknowledge, for_each_store, link, put, remove, slice, try_put,
};
use slicewise_api::{
    AdmissionRule, Client, ClientError, Counts, GatewayAnnouncement, Guarantee, LinkAnnouncement,
    Maximum, Slice,
};
use std::time::Duration;

/// 100 Mbit/s of which the gateway's own classes have 1 Mbit/s.
fn metering(name: &str) -> LinkAnnouncement {
    let mut link = link(name);
    for direction in [&mut link.forward, &mut link.backward] {
        direction.admission = AdmissionRule::SumOfRates;
        (direction.counts, direction.slices_count) = (Counts::L1, Counts::L1);
        (direction.shortest_delay_ns, direction.longest_delay_ns) = (0, 0);
        direction.reserved = vec![Guarantee {
            rate_bps: 1_000_000,
            burst_bytes: 25_000,
            ..Guarantee::default()
        }];
    }
    link
}

fn announce(client: &Client, links: Vec<LinkAnnouncement>) -> Result<(), ClientError> {
    let announced = GatewayAnnouncement {
        links,
        reached: None,
    };
    client.announce("gw", &announced).map(drop)
}

/// S(c, p) in Mbit/s, with buckets of 100 ms.
fn metered(name: &str, vlan: u16, min: u64, max: u64) -> Slice {
    let mut slice = slice(name, vlan, min);
    let terms = slice.forward.as_mut().unwrap();
    terms.guarantee = Some(Guarantee {
        rate_bps: min * 1_000_000,
        burst_bytes: 1_250_000,
        ..Guarantee::default()
    });
    terms.maximum = Some(Maximum {
        rate_bps: max * 1_000_000,
        burst_bytes: 1_250_000,
    });
    slice
}

fn started(store: &TestStore) -> (Server, Client) {
    let server = Server::start(store);
    let client = server.client();
    announce(&client, vec![metering("uplink")]).unwrap();
    (server, client)
}

fn refusal<T: std::fmt::Debug>(outcome: Result<T, ClientError>) -> (u16, String) {
    match outcome {
        Err(ClientError::Refused(problem)) => (problem.status, problem.detail.clone()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rates_are_admitted_up_to_that_of_the_link_and_nothing_else_is_promised() {
    for_each_store(|store| {
        let (server, client) = started(store);
        let first = put(&client, &metered("s1", 1, 70, 80)).value;
        put(&client, &metered("s2", 2, 20, 100));
        let choice = first.delay_choice.unwrap_or_default();
        assert_eq!((first.bound_ns.forward, choice.forward), (None, None));
        let third = metered("s3", 3, 20, 100);
        let (status, why) = refusal(try_put(&client, &third));
        assert_eq!(status, 409);
        insta::assert_snapshot!(why, @"link `uplink`, forward: guarantees 20 Mbit/s (L1), but only 9 Mbit/s (L1) of the link is free: write a rate of at most 9 Mbit/s");
        let offer = client.offer(&third).unwrap();
        assert_eq!(
            (
                offer.accepted,
                offer.largest_rate_bps,
                offer.smallest_delay_ns
            ),
            (false, Some(9_000_000), None)
        );
        assert_eq!(offer.reason, Some(why));
        // As the gateway carries it out, nothing is said of a delay.
        let desired = client.desired("gw", 0, Duration::ZERO).unwrap();
        let slices = desired.snapshot.unwrap();
        let guarantee = slices[0].forward.as_ref().unwrap().guarantee.unwrap();
        assert_eq!(guarantee.delay_ns, None);
        // A change of both that fits only together.
        put(&client, &metered("s1", 1, 20, 100));
        put(&client, &metered("s2", 2, 50, 70));
        assert!(client.offer(&third).unwrap().accepted);
        let read = client.link("uplink").unwrap().forward;
        assert_eq!(
            (read.admission, read.promised.slices),
            (AdmissionRule::SumOfRates, 2)
        );
        assert_eq!(
            (read.left.rate_bps, read.left.smallest_delay_ns),
            (29_000_000, None)
        );
        assert_eq!(
            (read.reserved_bps, read.delay_classes),
            (1_000_000, Vec::new())
        );
        // Another process knows the same.
        drop(server);
        let server = Server::start(store);
        let client = server.client();
        assert_eq!(
            client.link("uplink").unwrap().forward.left.rate_bps,
            29_000_000
        );
        remove(&client, "s1");
        let generation = client.generations(None, None).unwrap().items[0].generation;
        acknowledge(&client, "gw", generation, &["s1"]);
        assert_eq!(
            client.link("uplink").unwrap().forward.left.rate_bps,
            49_000_000
        );
    });
}

#[test]
fn terms_that_a_meter_does_not_have_are_refused_with_what_to_do() {
    let store = TestStore::sqlite();
    let (_server, client) = started(&store);
    let changes: [fn(&mut slicewise_api::Terms); 4] = [
        |terms| terms.guarantee.as_mut().unwrap().delay_ns = Some(5_000_000),
        |terms| terms.guarantee = None,
        |terms| terms.weight = 2,
        |terms| terms.flows.flow_queueing = true,
    ];
    let refusals = changes.map(|change| {
        let mut slice = metered("s1", 1, 20, 100);
        change(slice.forward.as_mut().unwrap());
        let (status, why) = refusal(try_put(&client, &slice));
        format!("{status} {why}")
    });
    insta::assert_snapshot!(refusals.join("\n"), @"
    409 link `uplink`, forward: a delay of 5 ms is asked for, but the link promises rates only, because its gateway meters slices (P4-TINS): leave the delay out, or use a link whose gateway has `discipline: guaranteed`
    400 the gateway of link `uplink` meters slices (P4-TINS): state a guaranteed rate and its burst
    400 the gateway of link `uplink` meters slices (P4-TINS), and what exceeds guarantees is shared by queue: leave the weight out
    400 the gateway of link `uplink` meters slices (P4-TINS), and does not tell their flows apart: leave `flows` out
    ");
    let mut slice = metered("s1", 1, 20, 100);
    slice
        .forward
        .as_mut()
        .unwrap()
        .guarantee
        .as_mut()
        .unwrap()
        .delay_ns = Some(5_000_000);
    let offer = client.offer(&slice).unwrap();
    assert_eq!((offer.accepted, offer.largest_rate_bps), (false, None));
}

#[test]
fn a_link_with_slices_does_not_change_its_rule() {
    let store = TestStore::sqlite();
    let (_server, client) = started(&store);
    let mut wrong = metering("uplink");
    wrong.forward.longest_delay_ns = 1_000_000;
    let (status, why) = refusal(announce(&client, vec![wrong]));
    insta::assert_snapshot!(format!("{status} {why}"), @"400 a link with `admission: sum_of_rates` promises no delay: leave it out");
    put(&client, &metered("s1", 1, 20, 100));
    let (status, why) = refusal(announce(&client, vec![link("uplink")]));
    insta::assert_snapshot!(format!("{status} {why}"), @"409 link `uplink` is announced with another `admission`, but slice `s1` was admitted by the rule before: remove its slices first, or announce it as before");
    remove(&client, "s1");
    let generation = client.generations(None, None).unwrap().items[0].generation;
    acknowledge(&client, "gw", generation, &["s1"]);
    announce(&client, vec![link("uplink")]).unwrap();
    let mut bounded = slice("s1", 1, 20);
    bounded
        .forward
        .as_mut()
        .unwrap()
        .guarantee
        .as_mut()
        .unwrap()
        .delay_ns = None;
    assert!(put(&client, &bounded).value.bound_ns.forward.is_some());
    let (status, why) = refusal(announce(&client, vec![metering("uplink")]));
    insta::assert_snapshot!(format!("{status} {why}"), @"409 link `uplink` is announced with another `admission`, but slice `s1` was admitted by the rule before: remove its slices first, or announce it as before");
}
