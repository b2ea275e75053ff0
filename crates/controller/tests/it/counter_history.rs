//! Counters of the last hour: who reads what, what is no bin, and what another slice of the same name had.

use crate::clocks::TestClock;
use crate::support::{
    Server, TestStore, acknowledge, announce, put, remove, slice, token, with_link,
};
use slicewise_api::{
    Client, CounterReport, DirectionCounters, LinkCounters, SliceCounters, Tenant,
};
use std::sync::Arc;

/// A second in which each slice sent so many bytes forward in a frame of each 1000 B, and the link all of it and 500 B more.
fn report(slices: &[(&str, u64)]) -> CounterReport {
    let sent = |bytes: u64| DirectionCounters {
        sent_frames: bytes / 1000,
        sent_bytes: bytes,
        dropped: [("queue_full".to_owned(), 1)].into(),
        ..DirectionCounters::default()
    };
    let all: u64 = slices.iter().map(|one| one.1).sum();
    let slices = slices.iter().map(|(name, bytes)| SliceCounters {
        name: (*name).to_owned(),
        forward: Some(sent(*bytes)),
        backward: None,
    });
    CounterReport {
        interval_ns: 1_000_000_000,
        links: vec![LinkCounters {
            name: "uplink".to_owned(),
            forward: sent(all + 500),
            backward: DirectionCounters::default(),
        }],
        slices: slices.collect(),
        ..CounterReport::default()
    }
}

/// Bytes sent forward in each bin of a slice.
fn sent(client: &Client, name: &str) -> Vec<u64> {
    let history = client.slice_history(name).unwrap();
    let [hop] = &history.hops[..] else {
        panic!("{history:?}")
    };
    assert!(hop.backward.is_none());
    let sent = &hop.forward.as_ref().unwrap().sent_bytes;
    assert_eq!(sent.len(), hop.bins.counted_ns.len());
    sent.clone()
}

fn with_clock(store: &TestStore) -> (Server, Client, Arc<TestClock>) {
    let clock = TestClock::new();
    let server = Server::with_clock(store, Arc::<TestClock>::clone(&clock));
    let client = server.client();
    announce(&client, "gw", "uplink");
    (server, client, clock)
}

#[test]
fn a_tenant_reads_the_hour_of_its_slices_and_of_the_link_without_the_names_of_others() {
    let store = TestStore::sqlite();
    let (server, open, clock) = with_clock(&store);
    open.put_tenant("red", &Tenant::default()).unwrap();
    put(&open, &slice("blue", 1, 10));
    let mut own = slice("gold", 2, 20);
    own.tenant = "red".to_owned();
    put(&open, &own);
    for _ in 0..2 {
        clock.pass(10);
        let counted = report(&[("blue", 3000), ("gold", 2000), ("unknown", 9000)]);
        open.report_counters("gw", &counted).unwrap();
    }
    let [admin, red] = [("a", "admin"), ("r", "tenant:red")]
        .map(|(name, scope)| server.client_of(&token(&store, name, scope)));

    assert_eq!(sent(&red, "gold"), [2000, 2000]);
    assert_eq!(sent(&admin, "blue"), [3000, 3000]);
    assert_eq!(red.slice_history("blue").unwrap_err().status(), Some(404));
    let named = |client: &Client| {
        let link = client.link_history("uplink").unwrap();
        assert_eq!(link.forward.total.sent_bytes, [14_500, 14_500]);
        assert_eq!(link.forward.total.dropped_frames, [1, 1]);
        assert_eq!(link.forward.rate_bps, [Some(100_000_000); 2]);
        assert_eq!(link.forward.promised_bps, [Some(30_000_000); 2]);
        assert_eq!(link.backward.promised_bps, [Some(0); 2]);
        assert_eq!(link.backward.slices, []);
        let slices = link.forward.slices.into_iter();
        let slices = slices.map(|one| (one.name, one.counters.sent_bytes));
        slices.collect::<Vec<_>>()
    };
    let gold = ("gold".to_owned(), vec![2000, 2000]);
    assert_eq!(named(&red), std::slice::from_ref(&gold));
    assert_eq!(named(&admin), [("blue".to_owned(), vec![3000, 3000]), gold]);
    let several = |bearer: &str, query: &str| {
        let bearer = format!("Bearer {bearer}");
        let path = format!("/v1/counters/history?slices=gold,blue,nothing{query}");
        let answer = server.ask("GET", &path, &[("authorization", &bearer)], None);
        let names = answer.json.as_array().into_iter().flatten();
        let names: Vec<String> = names.map(|one| one["name"].to_string()).collect();
        (answer.status, names.join(" "))
    };
    let red = token(&store, "r2", "tenant:red");
    assert_eq!(several(&red, ""), (200, "\"gold\"".to_owned()));
    assert_eq!(several(&red, "&seconds=3601").0, 400);
}

#[test]
fn silence_is_no_bin_and_a_slice_does_not_have_what_another_of_its_name_had() {
    let store = TestStore::sqlite();
    let (_server, client, clock) = with_clock(&store);
    put(&client, &slice("gold", 1, 10));
    for pass in [10, 10, 60, 10] {
        clock.pass(pass);
        client
            .report_counters("gw", &report(&[("gold", 1000)]))
            .unwrap();
    }
    assert_eq!(sent(&client, "gold"), [1000; 4]);
    let bins = client.slice_history("gold").unwrap().hops[0].bins.clone();
    let gaps: Vec<u64> = bins
        .start_ms
        .windows(2)
        .map(|two| two[1] - two[0])
        .collect();
    assert_eq!(gaps, [10_000, 60_000, 10_000]);
    assert_eq!(bins.counted_ns, [1_000_000_000; 4]);
    // It sends nothing while its gateway reports: that is zero.
    clock.pass(10);
    client.report_counters("gw", &report(&[])).unwrap();
    assert_eq!(sent(&client, "gold"), [1000, 1000, 1000, 1000, 0]);

    remove(&client, "gold");
    acknowledge(&client, "gw", 2, &["gold"]);
    assert_eq!(
        client.slice_history("gold").unwrap_err().status(),
        Some(404)
    );
    put(&client, &slice("gold", 1, 10));
    assert_eq!(sent(&client, "gold"), [0; 0]);
    assert_eq!(client.link_history("uplink").unwrap().forward.slices, []);
    clock.pass(10);
    client
        .report_counters("gw", &report(&[("gold", 4000)]))
        .unwrap();
    assert_eq!(sent(&client, "gold"), [4000]);
    let link = client.link_history("uplink").unwrap().forward;
    assert_eq!(link.slices[0].counters.sent_bytes, [0, 0, 0, 0, 0, 4000]);
    // A controller that was started anew knows nothing of before.
    let (_other, client) = with_link(&store);
    assert_eq!(sent(&client, "gold"), [0; 0]);
}
