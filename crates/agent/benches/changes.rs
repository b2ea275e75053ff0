//! Changes of slices through agent and data plane, under traffic over ports in memory: how many per second, and how long
//! each takes. The controller is a scripted one in the same process, so that its store is not measured.
//!
//! `cargo bench -p slicewise-agent --bench changes [changes]`

#[path = "../tests/it/support/mod.rs"]
mod support;

use slicewise_api::GatewayChange;
use slicewise_live::gateway::Answer;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::gateway::{Gateway, VLANS};
use support::server::Server;
use support::slice;

/// Changes in all, unless another number is given.
const CHANGES: u64 = 1_000_000;
/// Changes of one generation.
const BATCH: u64 = 1_000;
/// Slices beside those with traffic.
const OTHERS: u64 = 1_000;
/// Single changes, one by one, whose time is taken.
const TIMED: u64 = 2_000;
/// 200 per second.
const PAUSE: Duration = Duration::from_millis(5);

fn main() {
    let given = std::env::args()
        .filter_map(|argument| argument.parse().ok())
        .next();
    many(given.unwrap_or(CHANGES));
    one_by_one();
}

/// The change number `number`: of a slice with traffic, or of one that comes, changes and goes.
fn change(number: u64) -> GatewayChange {
    let vlans = u64::from(VLANS);
    if number % BATCH < vlans {
        let vlan = number % BATCH;
        let name = format!("busy{vlan}");
        let vlan = u16::try_from(vlan).expect("few");
        return GatewayChange::Put(Box::new(slice(&name, vlan, 300 + number / BATCH % 100)));
    }
    let (other, round) = (number % OTHERS, number / OTHERS);
    let name = format!("other{other}");
    if round % 3 == 2 {
        return GatewayChange::Remove(name);
    }
    let vlan = u16::try_from(100 + other).expect("few");
    GatewayChange::Put(Box::new(slice(&name, vlan, 1 + (number + round) % 5)))
}

fn many(changes: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start();
    let carried_out: Arc<AtomicU64> = Arc::default();
    let counted = Arc::clone(&carried_out);
    let gateway = Gateway::start_with(&server.url, &folder.path().join("state"), move |answer| {
        let is_done = matches!(answer, Answer::Changed(Ok(_)));
        counted.fetch_add(u64::from(is_done), Ordering::Relaxed);
    });
    let gateway = gateway.expect("it starts");
    let start = Instant::now();
    for batch in 0..changes / BATCH {
        let generation = server.change((batch * BATCH..(batch + 1) * BATCH).map(change).collect());
        // Of changes of a slice that come together only the last is carried out: each is to be.
        server.wait_for(generation);
    }
    let took = start.elapsed();
    let refused = server.with(|state| state.acknowledged.refused.len());
    let seen = gateway.stop();
    let (arrived, left): (u64, u64) = (seen.arrived.values().sum(), seen.left.values().sum());
    println!(
        "{changes} changes in {:.1} s: {:.0} per second, {} of them in the data plane; {refused} refused; {arrived} frames, {} lost, {} reordered",
        took.as_secs_f64(),
        changes as f64 / took.as_secs_f64(),
        carried_out.load(Ordering::Relaxed),
        arrived - left,
        seen.reordered
    );
    assert_eq!((arrived, seen.reordered, refused), (left, 0, 0));
}

fn one_by_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start();
    let in_force: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let noted = Arc::clone(&in_force);
    let gateway = Gateway::start_with(&server.url, &folder.path().join("state"), move |answer| {
        if matches!(answer, Answer::Changed(_)) {
            noted.lock().expect("nobody panics").push(Instant::now());
        }
    });
    let gateway = gateway.expect("it starts");
    let (mut committed, mut acknowledged) = (Vec::new(), Vec::new());
    for number in 0..TIMED {
        let vlan = u16::try_from(number).expect("few") % VLANS;
        let start = Instant::now();
        let generation = server.put(slice(&format!("busy{vlan}"), vlan, 300 + number));
        committed.push(start);
        acknowledged.push(server.wait_for(generation));
        std::thread::sleep(PAUSE.saturating_sub(start.elapsed()));
    }
    let in_force = in_force.lock().expect("nobody panics").clone();
    gateway.stop();
    assert_eq!(in_force.len(), committed.len());
    println!(
        "{TIMED} changes one by one, up to 200 per second, from the commit at the controller:"
    );
    for (what, ends) in [("in force", &in_force), ("acknowledged", &acknowledged)] {
        let mut times: Vec<Duration> = committed
            .iter()
            .zip(ends)
            .map(|(from, to)| *to - *from)
            .collect();
        times.sort();
        let at =
            |thousandths: usize| times[(times.len() * thousandths / 1000).min(times.len() - 1)];
        println!(
            "  {what}: median {:?}, 99 % {:?}, 99.9 % {:?}, longest {:?}",
            at(500),
            at(990),
            at(999),
            at(1000)
        );
    }
}
