//! How long admission, changes through the API and lists take.
//!
//! `cargo bench -p slicewise-controller --bench changes`; `-- sqlite:PATH` or `-- postgres://…` for another store than one of SQLite in a
//! temporary folder. The store must be new.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

mod in_process;

use in_process::{announce, batch, link, of_address, show, start};
use slicewise_api::{Change, Client, Precondition, Slice, SliceQuery, SliceState};
use slicewise_controller::Location;
use slicewise_model::{Admission, ClassReserved};
use slicewise_units::{BitRate, ByteCount};
use std::hint::black_box;
use std::sync::Mutex;
use std::time::{Duration, Instant};

const SLICES: u32 = 100_000;
const RATE: u64 = 200;
const SECONDS: u64 = 15;
const SENDERS: u64 = 16;

fn main() {
    let argument = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"));
    let folder = tempfile::tempdir().unwrap();
    let location = match argument {
        Some(text) => text.parse().unwrap(),
        None => Location::Sqlite(folder.path().join("store.sqlite")),
    };
    println!("store: {location}");
    admission();
    let (_, client) = start(&location);
    announce(&client, "gw", "uplink");
    changes(&client, "few slices");
    fill(&client);
    changes(&client, "100,000 slices");
    offers(&client);
    lists(&client);
}

fn slice(name: String, address: u32, rate_bps: u64) -> Slice {
    of_address(name, "uplink", address, rate_bps)
}

/// The test alone, with the sums of a link with slices in every class, as it is done for a request.
fn admission() {
    let params = link("uplink").forward.admission().unwrap();
    let request = slice("a".to_owned(), 1, 100_000)
        .forward
        .unwrap()
        .request(1)
        .unwrap();
    let times = (0..2_000).map(|_| {
        let started = Instant::now();
        let reserved = params.delays.steps().map(|delay| ClassReserved {
            delay,
            count: 1,
            rate: BitRate::new(1_000_000),
            burst: ByteCount::new(1_522),
            link_rate: BitRate::new(1_000_000),
            link_burst: ByteCount::new(1_522),
        });
        let mut admission = Admission::resume(params.clone(), reserved);
        let _ = black_box(admission.try_admit(black_box(&request)));
        started.elapsed()
    });
    show("admission alone", times.collect());
}

/// 200 changes per second, whatever the answers take.
fn changes(client: &Client, what: &str) {
    let times = Mutex::new(Vec::new());
    let start = Instant::now();
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let (client, times) = (client.clone(), &times);
            scope.spawn(move || {
                let mut own = Vec::new();
                for index in (sender..RATE * SECONDS).step_by(usize::try_from(SENDERS).unwrap()) {
                    let due = start + Duration::from_nanos(index * 1_000_000_000 / RATE);
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    let which = u32::try_from(index % 50).unwrap();
                    let slice = slice(format!("changed-{which}"), 1 << 20 | which, 100_000 + index);
                    // From when it was due: a queue counts.
                    client.put_slice(&slice, Precondition::None, None).unwrap();
                    own.push(due.elapsed());
                }
                times.lock().unwrap().extend(own);
            });
        }
    });
    let took = start.elapsed().as_secs_f64();
    let times = times.into_inner().unwrap();
    let per_second = times.len() as f64 / took;
    show(
        &format!("changes over HTTP, {what}, {per_second:.0}/s"),
        times,
    );
}

fn fill(client: &Client) {
    let started = Instant::now();
    let indexes: Vec<u32> = (0..SLICES).collect();
    for part in indexes.chunks(1000) {
        let put = |&index: &u32| Change::Put(slice(format!("slice-{index:06}"), index, 100_000));
        batch(client, part.iter().map(put).collect());
    }
    println!(
        "{SLICES} slices added in batches of 1000: {:.1} s",
        started.elapsed().as_secs_f64()
    );
}

fn offers(client: &Client) {
    let asked = slice("asked".to_owned(), 1 << 21, 1_000_000);
    let times = (0..500).map(|_| {
        let started = Instant::now();
        assert!(client.offer(&asked).unwrap().accepted);
        started.elapsed()
    });
    show("offers over HTTP", times.collect());
}

fn lists(client: &Client) {
    let any = SliceQuery {
        limit: Some(100),
        ..SliceQuery::default()
    };
    let of = |link: bool, state: Option<SliceState>, part: Option<&str>| SliceQuery {
        link: link.then(|| "uplink".to_owned()),
        tenant: state.map(|_| "default".to_owned()),
        state,
        name_contains: part.map(str::to_owned),
        ..any.clone()
    };
    let from = |name: &str, query: SliceQuery| SliceQuery {
        after: Some(name.to_owned()),
        ..query
    };
    let (admitted, draining) = (Some(SliceState::Admitted), Some(SliceState::Draining));
    let (middle, nothing) = ("slice-050000", Some("nothing"));
    let last = SliceQuery {
        limit: Some(1000),
        ..from("slice-098999", any.clone())
    };
    for (what, query) in [
        ("the first 100", any.clone()),
        ("100 in the middle", from(middle, any.clone())),
        (
            "100 of a link in the middle",
            from(middle, of(true, None, None)),
        ),
        (
            "100 of a tenant and a state",
            from(middle, of(false, admitted, None)),
        ),
        (
            "name contains (10 of all)",
            of(false, None, Some("e-09999")),
        ),
        ("name contains (none)", of(false, None, nothing)),
        (
            "of a link whose name contains (none)",
            of(true, None, nothing),
        ),
        (
            "of a tenant, a state and a link (none)",
            of(true, draining, None),
        ),
        (
            "of a tenant, a state and a link whose name contains (none)",
            of(true, admitted, nothing),
        ),
        ("all, the last 1000", last),
    ] {
        let times = (0..50).map(|_| {
            let started = Instant::now();
            black_box(client.slices(&query).unwrap());
            started.elapsed()
        });
        show(what, times.collect());
    }
}
