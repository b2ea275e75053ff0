//! A controller and requests for benchmarks.

use slicewise_api::{
    Batch, Change, Client, ClientParams, Counts, GatewayAnnouncement, Guarantee, LinkAnnouncement,
    LinkDirection, Match, Slice, Terms,
};
use slicewise_controller::{Location, ServeParams, Store, serve_on};
use std::net::TcpListener;
use std::time::Duration;

/// A controller in this process: its address, and a client of it.
pub fn start(location: &Location) -> (String, Client) {
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
            let never = std::future::pending();
            serve_on(store, &params, listener, never).await.unwrap();
        });
    });
    let url = format!("http://{listen}");
    let params = ClientParams {
        url: url.clone(),
        token: None,
        authorities: None,
    };
    (url, Client::new(&params).unwrap())
}

/// 100 Gbit/s, delays of 10 us to 100 ms: 54 classes.
pub fn link(name: &str) -> LinkAnnouncement {
    let direction = LinkDirection {
        admission: slicewise_api::AdmissionRule::default(),
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
        name: name.to_owned(),
        forward: direction.clone(),
        backward: direction,
        classes: Vec::new(),
    }
}

/// Announces a gateway with one [`link`].
pub fn announce(client: &Client, gateway: &str, name: &str) {
    let announcement = GatewayAnnouncement {
        links: vec![link(name)],
        reached: None,
    };
    client.announce(gateway, &announcement).unwrap();
}

/// A guarantee of a rate with the shortest burst.
pub fn terms(rate_bps: u64) -> Terms {
    Terms {
        guarantee: Some(Guarantee {
            rate_bps,
            burst_bytes: 1_522,
            delay_ns: Some(50_000_000),
            ..Guarantee::default()
        }),
        ..Terms::default()
    }
}

/// A slice of an address, forward.
pub fn of_address(name: String, link: &str, address: u32, rate_bps: u64) -> Slice {
    let address = std::net::Ipv4Addr::from(0x0a00_0000 + address);
    Slice {
        name,
        tenant: "default".to_owned(),
        path: vec![link.to_owned()],
        matches: vec![Match {
            destination: Some(address.to_string()),
            ..Match::default()
        }],
        forward: Some(terms(rate_bps)),
        backward: None,
    }
}

/// Carries out changes, and returns their generation.
pub fn batch(client: &Client, changes: Vec<Change>) -> u64 {
    let batch = Batch {
        changes,
        reason: None,
    };
    client.batch(&batch, None).unwrap().generation
}

pub fn show(what: &str, mut times: Vec<Duration>) {
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
