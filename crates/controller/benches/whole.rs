//! Changes of slices through API, controller (SQLite), agent and data plane, with numbered frames passing all the time: how many per second,
//! how long after its answer each is in force, and whether a frame is lost or reordered. Beside them the store has 100,000 slices of another
//! gateway.
//!
//! `cargo bench -p slicewise-controller --bench whole [changes]`

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

#[path = "../../agent/tests/it/support/mod.rs"]
mod support;

mod in_process;

use in_process::{announce, batch, of_address, show, start, terms};
use slicewise_api::{Change, Client, Match, Precondition, Slice, SliceQuery, SliceState};
use slicewise_controller::Location;
use slicewise_live::gateway::Answer;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::gateway::{Gateway, VLANS};

/// Changes in batches, unless another number is given.
const CHANGES: u64 = 20_000;
/// Changes of one batch.
const BATCH: u64 = 1_000;
/// Those who send batches, each about slices of its own. So the changes of a slice are carried out one by one.
const BATCH_SENDERS: u64 = 2;
/// Slices of another gateway.
const OTHERS: u32 = 100_000;
/// Single changes: per second, how many, and by how many senders.
const RATE: u64 = 200;
const SINGLE: u64 = 6_000;
const SINGLE_SENDERS: u64 = 16;
/// The first VLAN of slices that single changes are about.
const SINGLE_VLAN: u16 = 3_000;
/// Only a benchmark that fails waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The data plane's answers: how many changes were carried out and refused, and who wants to know of which class.
#[derive(Default)]
struct Seen {
    carried_out: AtomicU64,
    refused: AtomicU64,
    /// Classes of the changes, while they are made known.
    added: Mutex<Option<Sender<u32>>>,
    waiting: Mutex<HashMap<u32, Sender<Instant>>>,
}

impl Seen {
    fn on_answer(&self, answer: &Answer) {
        let now = Instant::now();
        match answer {
            Answer::Changed(Ok(directions)) => {
                self.carried_out.fetch_add(1, Ordering::Relaxed);
                let Some(class) = directions.forward.map(|changed| changed.class) else {
                    return;
                };
                if let Some(added) = &*self.added.lock().unwrap() {
                    added.send(class).unwrap();
                }
                if let Some(waiting) = self.waiting.lock().unwrap().get(&class) {
                    // A change may be carried out in several steps; nobody waits for those after the last one timed.
                    let _ = waiting.send(now);
                }
            }
            Answer::Changed(Err(_)) => drop(self.refused.fetch_add(1, Ordering::Relaxed)),
            _ => {}
        }
    }
}

fn main() {
    let given = std::env::args()
        .filter_map(|argument| argument.parse().ok())
        .next();
    let folder = tempfile::tempdir().unwrap();
    let (url, client) = start(&Location::Sqlite(folder.path().join("store.sqlite")));
    fill(&client);
    let seen = Arc::new(Seen::default());
    let answers = Arc::clone(&seen);
    let state = folder.path().join("state");
    let gateway = Gateway::start_with(&url, &state, move |answer| answers.on_answer(answer));
    let gateway = gateway.unwrap();
    wait_for("the gateway's link", || client.link("uplink").is_ok());
    one_by_one(&client, &seen);
    many(&client, given.unwrap_or(CHANGES));
    let refused = seen.refused.load(Ordering::Relaxed);
    let carried_out = seen.carried_out.load(Ordering::Relaxed);
    let frames = gateway.stop();
    let (arrived, left): (u64, u64) = (frames.arrived.values().sum(), frames.left.values().sum());
    println!(
        "in the data plane: {carried_out} changes, {refused} refused; {arrived} frames, {} lost, {} reordered",
        arrived - left,
        frames.reordered
    );
    assert_eq!((arrived, frames.reordered, refused), (left, 0, 0));
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn of_vlan(name: String, vlan: u16, kbit: u64) -> Slice {
    Slice {
        matches: vec![Match {
            vlan: Some(vlan),
            ..Match::default()
        }],
        backward: Some(terms(kbit * 1_000)),
        ..of_address(name, "uplink", 0, kbit * 1_000)
    }
}

/// Slices of another gateway, which never comes.
fn fill(client: &Client) {
    announce(client, "far", "far");
    let indexes: Vec<u32> = (0..OTHERS).collect();
    for part in indexes.chunks(1000) {
        let put = |&index: &u32| {
            let name = format!("far-{index:06}");
            Change::Put(Slice {
                backward: Some(terms(100_000)),
                ..of_address(name, "far", index, 100_000)
            })
        };
        batch(client, part.iter().map(put).collect());
    }
}

/// 200 changes per second, each by its own request, whatever the answers take.
fn one_by_one(client: &Client, seen: &Seen) {
    let (added, classes) = channel();
    *seen.added.lock().unwrap() = Some(added);
    let mut senders: Vec<(Slice, Receiver<Instant>)> = Vec::new();
    for vlan in (SINGLE_VLAN..).take(SINGLE_SENDERS.try_into().unwrap()) {
        let slice = of_vlan(format!("single-{vlan}"), vlan, 100);
        client.put_slice(&slice, Precondition::None, None).unwrap();
        let class = classes.recv_timeout(PATIENCE).unwrap();
        let (sender, in_force) = channel();
        seen.waiting.lock().unwrap().insert(class, sender);
        senders.push((slice, in_force));
    }
    *seen.added.lock().unwrap() = None;
    let times = Mutex::new([Vec::new(), Vec::new(), Vec::new()]);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for (sender, (mut slice, in_force)) in (0u64..).zip(senders) {
            let (client, times) = (client.clone(), &times);
            scope.spawn(move || {
                for index in (sender..SINGLE).step_by(SINGLE_SENDERS.try_into().unwrap()) {
                    let due = start + Duration::from_nanos(index * 1_000_000_000 / RATE);
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    for terms in [&mut slice.forward, &mut slice.backward] {
                        let guarantee = terms.as_mut().unwrap().guarantee.as_mut().unwrap();
                        guarantee.rate_bps = 100_000 + 1_000 * (index % 97) + 1;
                    }
                    // What is left of the change before.
                    while in_force.try_recv().is_ok() {}
                    client.put_slice(&slice, Precondition::None, None).unwrap();
                    let answered = Instant::now();
                    let in_force = in_force.recv_timeout(PATIENCE).unwrap();
                    let mut times = times.lock().unwrap();
                    // From when it was due: a queue counts.
                    times[0].push(answered - due);
                    times[1].push(in_force.saturating_duration_since(answered));
                    times[2].push(in_force - due);
                }
            });
        }
    });
    seen.waiting.lock().unwrap().clear();
    let per_second = SINGLE as f64 / start.elapsed().as_secs_f64();
    println!("{SINGLE} changes one by one, {per_second:.0} per second, beside {OTHERS} slices:");
    let what = ["due to answer", "answer to in force", "due to in force"];
    for (what, times) in what.into_iter().zip(times.into_inner().unwrap()) {
        show(what, times);
    }
}

/// Batches; each sender waits until the gateway has carried out its last one.
fn many(client: &Client, changes: u64) {
    let before = Instant::now();
    let rounds = changes / BATCH / BATCH_SENDERS;
    std::thread::scope(|scope| {
        for sender in 0..BATCH_SENDERS {
            let client = client.clone();
            scope.spawn(move || {
                for round in 0..rounds {
                    many_of(&client, sender, round);
                }
            });
        }
    });
    let (took, done) = (
        before.elapsed().as_secs_f64(),
        rounds * BATCH * BATCH_SENDERS,
    );
    println!(
        "{done} changes in batches of {BATCH}: {took:.1} s, {:.0} per second",
        done as f64 / took
    );
}

/// Slices with traffic change; the others come, change and go.
fn many_of(client: &Client, sender: u64, round: u64) {
    let own = |number: u64| number + sender * BATCH;
    let busy = u64::from(VLANS) / BATCH_SENDERS;
    let change = |number: u64| {
        if number < busy {
            let vlan = u16::try_from(number + sender * busy).unwrap();
            return Change::Put(of_vlan(format!("busy-{vlan}"), vlan, 300 + round % 100));
        }
        let name = format!("other-{sender}-{number}");
        match round % 3 {
            2 => Change::Remove(name),
            part => {
                let vlan = u16::try_from(100 + own(number)).unwrap();
                Change::Put(of_vlan(name, vlan, 1 + part + number % 5))
            }
        }
    };
    let generation = batch(client, (0..BATCH).map(change).collect());
    wait_for("the batch is in force", || {
        let gateways = client.gateways().unwrap();
        let edge = gateways.iter().find(|gateway| gateway.name == "edge");
        edge.is_some_and(|edge| edge.acknowledged >= generation)
    });
    if round % 3 == 2 {
        let query = SliceQuery {
            limit: Some(1),
            state: Some(SliceState::Draining),
            name_contains: Some(format!("other-{sender}-")),
            ..SliceQuery::default()
        };
        wait_for("they are gone", || {
            client.slices(&query).unwrap().items.is_empty()
        });
    }
}
