//! What does not depend on how much there is.

use crate::support::{
    Server, announcement, batch, each_with_link, for_each_store, said, slice, try_put,
};
use slicewise_api::{Acknowledgement, Change, Client, CounterReport, Match, Slice, SliceState};

/// More than a batch may have.
const MANY: usize = 1_100;

fn put(client: &Client, indexes: std::ops::Range<usize>, rate_bps: u64) -> u64 {
    let indexes: Vec<usize> = indexes.collect();
    let mut generation = 0;
    for part in indexes.chunks(1_000) {
        let put = |&index: &usize| Change::Put(numbered(index, rate_bps));
        let changes = batch(part.iter().map(put).collect());
        generation = client.batch(&changes, None).unwrap().generation;
    }
    generation
}

fn numbered(index: usize, rate_bps: u64) -> Slice {
    let mut slice = slice(&format!("s{index:04}"), 0, 1);
    slice.matches = vec![Match {
        destination: Some(format!("10.0.{}.{}", index / 256, index % 256)),
        ..Match::default()
    }];
    let guarantee = slice.forward.as_mut().unwrap().guarantee.as_mut().unwrap();
    guarantee.rate_bps = rate_bps;
    guarantee.burst_bytes = 1_522;
    slice
}

fn rates(client: &Client, indexes: [usize; 3]) -> [u64; 3] {
    indexes.map(|index| {
        let record = client.slice(&format!("s{index:04}")).unwrap();
        record.slice.forward.unwrap().guarantee.unwrap().rate_bps
    })
}

#[test]
fn a_restore_changes_any_number_of_slices_or_none() {
    for_each_store(|store| {
        let server = Server::start(store);
        let client = server.client();
        let mut wide = announcement(&["uplink"]);
        wide.links[0].forward.rate_bps = 1_000_000_000;
        client.announce("gw", &wide).unwrap();
        let small = put(&client, 0..MANY, 10_000);
        put(&client, 0..MANY, 20_000);
        let large = put(&client, MANY..MANY + 1, 30_000);
        let restored = client.restore(small, None).unwrap();
        assert_eq!(restored.changed, 1_101);
        assert_eq!(
            (restored.slices.len(), restored.generation),
            (1_000, large + 1)
        );
        assert_eq!(rates(&client, [0, 999, 1_099]), [10_000; 3]);
        let added = client.slice("s1100").unwrap();
        assert_eq!(added.state, SliceState::Draining);
        // A gateway gets all of it.
        let desired = client
            .desired("gw", large, std::time::Duration::ZERO)
            .unwrap();
        assert_eq!(desired.changes.len(), 1_101);
        let said = Acknowledgement {
            gone: vec!["s1100".to_owned()],
            ..said(desired.generation)
        };
        client.acknowledge("gw", &said).unwrap();
        assert_eq!(client.slice("s1099").unwrap().state, SliceState::Installed);
        assert_eq!(client.slice("s1100").unwrap_err().status(), Some(404));
        // What is left is too little for one of them, so nothing is restored.
        let mut rest = numbered(2_000, 980_000_000);
        rest.name = "rest".to_owned();
        try_put(&client, &rest).unwrap();
        let refused = client.restore(large, None).unwrap_err();
        assert_eq!(refused.status(), Some(409), "{refused}");
        assert_eq!(rates(&client, [0, 999, 1_099]), [10_000; 3]);
        assert_eq!(client.slice("rest").unwrap().state, SliceState::Admitted);
        assert_eq!(client.restore(0, None).unwrap().changed, 1_101);
        let left = client.slices(&slicewise_api::SliceQuery {
            state: Some(SliceState::Installed),
            ..Default::default()
        });
        assert_eq!(left.unwrap().items, []);
    });
}

#[test]
fn flows_that_were_asked_for_at_this_controller_are_wanted_by_the_next_report() {
    each_with_link(|_, _server, client| {
        try_put(&client, &slice("gold", 1, 10)).unwrap();
        let report = || {
            let report = CounterReport::default();
            client.report_counters("gw", &report).unwrap().flows_wanted
        };
        assert_eq!(report().len(), 0);
        client.slice_counters("gold", false).unwrap();
        assert_eq!(report().len(), 0);
        client.slice_counters("gold", true).unwrap();
        assert_eq!(report(), ["gold"]);
    });
}
