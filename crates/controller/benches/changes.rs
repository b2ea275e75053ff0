//! How long admission, changes through the API and lists take.
//!
//! `cargo bench -p slicewise-controller --bench changes`; `-- sqlite:PATH` or `-- postgres://…` for another store than one of SQLite in a
//! temporary folder. The store must be new.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use slicewise_api::{
    Batch, Change, Client, ClientParams, Counts, GatewayAnnouncement, Guarantee, LinkAnnouncement,
    LinkDirection, Match, Precondition, Slice, SliceQuery, Terms,
};
use slicewise_controller::{Location, ServeParams, Store, serve_on};
use slicewise_model::{Admission, ClassReserved};
use slicewise_units::{BitRate, ByteCount};
use std::hint::black_box;
use std::net::TcpListener;
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
    let client = start(&location);
    client
        .announce(
            "gw",
            &GatewayAnnouncement {
                links: vec![link()],
                reached: None,
            },
        )
        .unwrap();
    changes(&client, "few slices");
    fill(&client);
    changes(&client, "100,000 slices");
    offers(&client);
    lists(&client);
}

fn start(location: &Location) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = listener.local_addr().unwrap();
    let params = ServeParams {
        listen,
        tls: None,
        requests_per_second: 1_000_000,
    };
    let location = location.clone();
    std::thread::spawn(move || {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let store = Store::open(&location).await.unwrap();
            serve_on(store, &params, listener, std::future::pending())
                .await
                .unwrap();
        });
    });
    Client::new(&ClientParams {
        url: format!("http://{listen}"),
        token: None,
        authorities: None,
    })
    .unwrap()
}

/// 100 Gbit/s, delays of 10 us to 100 ms: 54 classes.
fn link() -> LinkAnnouncement {
    let direction = LinkDirection {
        rate_bps: 100_000_000_000,
        counts: Counts::L1,
        slices_count: Counts::L2,
        largest_frame_bytes: 1_522,
        buffer_bytes: None,
        shortest_delay_ns: 10_000,
        longest_delay_ns: 100_000_000,
        reserved: Vec::new(),
    };
    LinkAnnouncement {
        name: "uplink".to_owned(),
        forward: direction.clone(),
        backward: direction,
        classes: Vec::new(),
    }
}

fn slice(name: String, address: u32, rate_bps: u64) -> Slice {
    let address = std::net::Ipv4Addr::from(0x0a00_0000 + address);
    Slice {
        name,
        tenant: "default".to_owned(),
        path: Vec::new(),
        matches: vec![Match {
            destination: Some(address.to_string()),
            ..Match::default()
        }],
        forward: Some(Terms {
            guarantee: Some(Guarantee {
                rate_bps,
                burst_bytes: 1_522,
                delay_ns: Some(50_000_000),
                ..Guarantee::default()
            }),
            ..Terms::default()
        }),
        backward: None,
    }
}

fn show(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |per_mille: usize| times[(times.len() - 1) * per_mille / 1000].as_secs_f64() * 1e3;
    println!(
        "{what}: {} times, ms: median {:.2}, 90 % {:.2}, 99 % {:.2}, 99.9 % {:.2}, most {:.2}",
        times.len(),
        at(500),
        at(900),
        at(990),
        at(999),
        at(1000)
    );
}

/// The test alone, with the sums of a link with slices in every class, as it is done for a request.
fn admission() {
    let params = link().forward.admission().unwrap();
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
        let changes = part.iter().map(put).collect();
        client
            .batch(
                &Batch {
                    changes,
                    reason: None,
                },
                None,
            )
            .unwrap();
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
    let after = |name: &str| SliceQuery {
        after: Some(name.to_owned()),
        ..any.clone()
    };
    for (what, query) in [
        ("the first 100", any.clone()),
        ("100 in the middle", after("slice-050000")),
        (
            "100 of a link in the middle",
            SliceQuery {
                link: Some("uplink".into()),
                ..after("slice-050000")
            },
        ),
        (
            "100 of a tenant and a state",
            SliceQuery {
                tenant: Some("default".into()),
                state: Some(slicewise_api::SliceState::Admitted),
                ..after("slice-050000")
            },
        ),
        (
            "name contains (10 of all)",
            SliceQuery {
                name_contains: Some("e-09999".into()),
                ..any.clone()
            },
        ),
        (
            "name contains (none)",
            SliceQuery {
                name_contains: Some("nothing".into()),
                ..any.clone()
            },
        ),
        (
            "of a link whose name contains (none)",
            SliceQuery {
                link: Some("uplink".into()),
                name_contains: Some("nothing".into()),
                ..any.clone()
            },
        ),
        (
            "of a tenant, a state and a link (none)",
            SliceQuery {
                tenant: Some("default".into()),
                state: Some(slicewise_api::SliceState::Draining),
                link: Some("uplink".into()),
                ..any.clone()
            },
        ),
        (
            "of a tenant, a state and a link whose name contains (none)",
            SliceQuery {
                tenant: Some("default".into()),
                state: Some(slicewise_api::SliceState::Admitted),
                link: Some("uplink".into()),
                name_contains: Some("nothing".into()),
                ..any.clone()
            },
        ),
        (
            "all, the last 1000",
            SliceQuery {
                limit: Some(1000),
                ..after("slice-098999")
            },
        ),
    ] {
        let times = (0..50).map(|_| {
            let started = Instant::now();
            black_box(client.slices(&query).unwrap());
            started.elapsed()
        });
        show(what, times.collect());
    }
}
