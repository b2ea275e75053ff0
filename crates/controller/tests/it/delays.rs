//! Delays of slices that state none: chosen by the admission test, stored, and the same everywhere.

use crate::support::{
    Server, TestStore, announce, announcement, batch, each_with_link, link, slice, try_put,
    with_link,
};
use serde_json::json;
use slicewise_api::{
    Change, Client, Counts, DelayOrigin, GatewayAnnouncement, GatewaySlice, Guarantee, Slice,
    SliceRecord,
};
use std::time::Duration;

/// A slice without a delay.
fn unstated(name: &str, vlan: u16, rate_mbps: u64, burst_bytes: u64) -> Slice {
    let mut slice = slice(name, vlan, rate_mbps);
    let guarantee = slice.forward.as_mut().unwrap().guarantee.as_mut().unwrap();
    *guarantee = Guarantee {
        burst_bytes,
        delay_ns: None,
        ..*guarantee
    };
    slice
}

fn put(client: &Client, slice: &Slice) -> SliceRecord {
    let put = try_put(client, slice);
    put.unwrap().value
}

fn bound(record: &SliceRecord) -> u64 {
    record.bound_ns.forward.unwrap()
}

fn reason(record: &SliceRecord) -> DelayOrigin {
    record.delay_choice.clone().unwrap().forward.unwrap().reason
}

/// What the gateway is to carry out.
fn desired(client: &Client) -> Vec<GatewaySlice> {
    let desired = client.desired("gw", 0, Duration::ZERO).unwrap();
    desired.snapshot.unwrap()
}

fn delay_of(slices: &[GatewaySlice], name: &str) -> u64 {
    let mut named = slices.iter().filter(|slice| slice.name == name);
    let terms = named.next().unwrap().forward.as_ref().unwrap();
    terms.guarantee.unwrap().delay_ns.unwrap()
}

#[test]
fn a_slice_that_states_no_delay_is_granted_what_fits_and_told_which_and_why() {
    each_with_link(|_, _server, client| {
        let large = unstated("large", 1, 90, 3_044);
        let offer = client.offer(&large).unwrap();
        assert!(offer.accepted, "{:?}", offer.reason);
        let choice = offer.delay_choice.clone().unwrap().forward.unwrap();
        assert_eq!(
            (choice.reason, choice.default_ns),
            (DelayOrigin::Smallest, 269_088)
        );
        let record = put(&client, &large);
        assert_eq!(Some(record.bound_ns), offer.bound_ns);
        assert_eq!(record.delay_choice, offer.delay_choice);
        assert_eq!(record, client.slice("large").unwrap());
        assert_eq!(
            record.forward.as_ref().unwrap().guarantee.unwrap().delay_ns,
            None
        );
        assert_eq!(delay_of(&desired(&client), "large"), bound(&record));
        let small = put(&client, &unstated("small", 2, 5, 3_044));
        assert_eq!(reason(&small), DelayOrigin::Default);
        let refused = client.offer(&unstated("more", 3, 6, 3_044)).unwrap();
        insta::assert_snapshot!(refused.reason.unwrap(), @"link `uplink`, forward: guarantees 6 Mbit/s (L2), but only 5 Mbit/s (L2) of the link is free: write a rate of at most 5 Mbit/s");
    });
}

#[test]
fn the_published_request_is_granted_on_an_empty_link() {
    let store = TestStore::sqlite();
    let server = Server::start(&store);
    let client = server.client();
    let mut fast = link("uplink");
    for direction in [&mut fast.forward, &mut fast.backward] {
        direction.rate_bps = 10_000_000_000;
        (direction.counts, direction.slices_count) = (Counts::L1, Counts::L1);
    }
    let announced = GatewayAnnouncement {
        links: vec![fast],
        reached: None,
    };
    client.announce("gw", &announced).unwrap();
    let request = json!([{"name": "sliced", "minRate": "7 Gbit/s", "maxRate": "8 Gbit/s", "allowBurst": "125 MB", "peakBurst": "125 MB",
        "flows": [{"ipv4Source": "10.0.1.2/32", "protocol": "udp"}]}]);
    let answer = server.ask("POST", "/v1/slice-requests", &[], Some(&request));
    assert_eq!(answer.status, 200, "{}", answer.text);
    let record = client.slice("sliced").unwrap();
    assert_eq!(reason(&record), DelayOrigin::Smallest);
    // 125 MB and a frame at 10 Gbit/s, and δ.
    assert!(
        (100_000_000..100_004_000).contains(&bound(&record)),
        "{record:?}"
    );
    assert_eq!(delay_of(&desired(&client), "sliced"), bound(&record));
}

#[test]
fn a_change_keeps_the_chosen_delay_while_it_fits() {
    each_with_link(|_, _server, client| {
        let chosen = put(&client, &unstated("large", 1, 90, 3_044));
        let less = put(&client, &unstated("large", 1, 80, 3_044));
        assert_eq!(bound(&less), bound(&chosen));
        assert_eq!(delay_of(&desired(&client), "large"), bound(&chosen));
        let restored = client.restore(chosen.generation, None).unwrap();
        assert!(restored.generation > less.generation);
        let record = put(&client, &unstated("large", 1, 80, 3_044));
        assert_eq!(bound(&record), bound(&chosen));
        put(&client, &unstated("other", 2, 10, 3_044));
        let burst = put(&client, &unstated("large", 1, 80, 30_440));
        assert!(bound(&burst) > bound(&chosen));
        assert_eq!(reason(&burst), DelayOrigin::Smallest);
        assert_eq!(delay_of(&desired(&client), "large"), bound(&burst));
        // A delay that was stated, and is not any more, is not kept.
        put(&client, &slice("stated", 3, 1));
        let free = put(&client, &unstated("stated", 3, 1, 3_044));
        assert_eq!(reason(&free), DelayOrigin::Default);
        assert!(bound(&free) < 50_000_000);
    });
}

#[test]
fn a_batch_that_fits_is_admitted_in_any_order_with_the_same_delays() {
    let set = [unstated("a", 1, 90, 600_000), unstated("b", 2, 10, 840_000)];
    let delays = |order: [usize; 2]| {
        let store = TestStore::sqlite();
        let (_server, client) = with_link(&store);
        let changes = order.map(|index| Change::Put(set[index].clone()));
        client.batch(&batch(changes.to_vec()), None).unwrap();
        ["a", "b"].map(|name| bound(&client.slice(name).unwrap()))
    };
    assert_eq!(delays([0, 1]), delays([1, 0]));
    let store = TestStore::sqlite();
    let (_server, client) = with_link(&store);
    put(&client, &set[0]);
    let alone = try_put(&client, &set[1]);
    assert_eq!(
        alone.unwrap_err().status(),
        Some(409),
        "what is there stays"
    );
}

#[test]
fn a_link_that_is_announced_anew_keeps_the_delays_that_are_in_force() {
    let store = TestStore::sqlite();
    let (_server, client) = with_link(&store);
    let chosen = put(&client, &unstated("large", 1, 90, 3_044));
    let stated = put(&client, &slice("stated", 2, 1));
    let with = |rate_bps, longest_delay_ns| {
        let mut announced = announcement(&["uplink"]);
        let forward = &mut announced.links[0].forward;
        (forward.rate_bps, forward.longest_delay_ns) = (rate_bps, longest_delay_ns);
        announced
    };
    for (rate_bps, longest) in [(200_000_000, 100_000_000), (100_000_000, 40_000_000)] {
        client.announce("gw", &with(rate_bps, longest)).unwrap();
        let record = client.slice("large").unwrap();
        assert_eq!(bound(&record), bound(&chosen));
        assert_eq!(delay_of(&desired(&client), "large"), bound(&chosen));
    }
    // The latest deadline of 67 ms is later than the delay that was stated.
    assert_eq!(bound(&client.slice("stated").unwrap()), bound(&stated));
    let refused = client.announce("gw", &with(92_000_000, 100_000_000));
    insta::assert_snapshot!(refused.unwrap_err(), @"link `uplink` as announced no longer holds what is promised: slice `large`: up to 4.566 kB may be due within 366.4 µs, in which the link sends only 4.2 kB; announce it as before, or change slices first");
}

#[test]
fn each_link_of_a_path_has_its_own_choice() {
    let store = TestStore::sqlite();
    let (_server, client) = with_link(&store);
    announce(&client, "far", "downlink");
    let mut other = unstated("other", 1, 50, 3_044);
    other.path = vec!["downlink".to_owned()];
    put(&client, &other);
    let mut both = unstated("both", 2, 45, 3_044);
    both.path = vec!["uplink".to_owned(), "downlink".to_owned()];
    let record = put(&client, &both);
    assert_eq!(reason(&record), DelayOrigin::Smallest);
    let [near, far] = ["gw", "far"].map(|gateway| {
        let desired = client.desired(gateway, 0, Duration::ZERO).unwrap();
        delay_of(&desired.snapshot.unwrap(), "both")
    });
    assert!(near < far, "{near} and {far}");
    assert_eq!(bound(&record), near + far);
    assert_eq!(
        record.delay_choice.unwrap().forward.unwrap().default_ns,
        2 * near
    );
}
