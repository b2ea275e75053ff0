//! PostgreSQL is killed at random moments while changes are made: the controller goes on by itself, nothing that was answered is
//! lost, and a request that is repeated with its idempotency key is carried out once.

use crate::cluster::{Cluster, kill_9};
use crate::crashes::Random;
use crate::promises::check_promises;
use crate::support::{Server, TestStore, slice, slice_json, with_link};
use slicewise_api::{Client, Precondition, Slice};
use slicewise_controller::Location;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const WORKERS: u16 = 4;
/// Longer than anything here takes: only a test that fails waits so long.
const PATIENCE: Duration = Duration::from_secs(120);

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Who changes a slice, one request after the other.
struct Worker {
    index: u16,
    random: Random,
    asked: u32,
    /// What the last request that was carried out made.
    made: Option<Slice>,
    /// Requests that were carried out.
    done: u64,
    /// Requests that were repeated.
    repeated: u64,
}

impl Worker {
    fn new(index: u16) -> Self {
        Self {
            index,
            random: Random(u64::from(index) + 1),
            asked: 0,
            made: None,
            done: 0,
            repeated: 0,
        }
    }

    /// Change the slice until `stop`. Each request is repeated until it is answered.
    fn work(&mut self, client: &Client, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            self.asked += 1;
            let name = format!("w{}", self.index);
            let mut asked = slice(&name, self.index + 1, self.random.below(30) + 1);
            // No two requests ask for the same.
            if let Some(forward) = &mut asked.forward {
                forward.weight = self.asked % 1_000 + 1;
            }
            let key = format!("{}-{}", self.index, self.asked);
            loop {
                match client.put_slice(&asked, Precondition::None, Some(&key)) {
                    Ok(made) => {
                        self.made = Some(made.value.slice);
                        self.done += 1;
                        break;
                    }
                    Err(error) if error.status() == Some(409) => break,
                    Err(error) if error.status() == Some(503) => {}
                    Err(error) => panic!("{error:?}"),
                }
                self.repeated += 1;
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// While the store is away, nobody is told anything that is not so.
fn check_that_nothing_is_answered(server: &Server) {
    wait_until("it is not ready", || {
        server.ask("GET", "/readyz", &[], None).status == 503
    });
    let healthy = server.ask("GET", "/healthz", &[], None);
    assert_eq!(healthy.status, 200, "the process is there");
    let body = slice_json("other", 99, 1);
    let requests = [
        ("GET", "/v1/slices/w0", None),
        ("GET", "/v1/slices", None),
        ("PUT", "/v1/slices/other", Some(&body)),
        ("POST", "/v1/offers", Some(&body)),
        ("GET", "/v1/gateways/gw/desired?after=0", None),
    ];
    std::thread::scope(|scope| {
        for (method, path, body) in requests {
            scope.spawn(move || {
                let reply = server.ask(method, path, &[], body);
                assert_eq!(reply.status, 503, "{method} {path}: {}", reply.text);
                assert_eq!(
                    reply.json["type"],
                    "urn:slicewise:problem:store-unavailable"
                );
                assert_eq!(reply.header("retry-after"), "1");
            });
        }
    });
}

fn killed_again_and_again(times: u32) {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let store = TestStore::at(Location::Postgres(cluster.database()));
    let (server, client) = with_link(&store);
    let mut workers: Vec<Worker> = (0..WORKERS).map(Worker::new).collect();
    let mut random = Random(4_711);
    for round in 0..times {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for worker in &mut workers {
                let (client, stop) = (&client, &stop);
                scope.spawn(move || worker.work(client, stop));
            }
            std::thread::sleep(Duration::from_millis(20 + random.below(300)));
            let backends = cluster.backends();
            // PostgreSQL starts anew by itself where one backend is killed.
            if round % 3 == 1 && !backends.is_empty() {
                let one = random.below(backends.len() as u64);
                kill_9(backends[usize::try_from(one).unwrap()]);
            } else {
                kill_9(cluster.postmaster());
                if round % 100 == 0 {
                    check_that_nothing_is_answered(&server);
                }
                cluster.start_again();
            }
            stop.store(true, Ordering::Relaxed);
        });
        wait_until("it is ready again", || {
            server.ask("GET", "/readyz", &[], None).status == 200
        });
        for worker in &workers {
            let found = client.slice(&format!("w{}", worker.index));
            let found = found.ok().map(|record| record.slice);
            assert_eq!(found, worker.made, "round {round}, worker {}", worker.index);
        }
        check_promises(&client);
        // Each request that was carried out is one generation: none is lost, and none was carried out twice.
        let done: u64 = workers.iter().map(|worker| worker.done).sum();
        let newest = client.generations(None, Some(1)).unwrap().items;
        assert_eq!(newest.first().map_or(0, |one| one.generation), done);
    }
    let sum = |count: fn(&Worker) -> u64| workers.iter().map(count).sum::<u64>();
    let (done, repeated) = (sum(|worker| worker.done), sum(|worker| worker.repeated));
    assert!(done > 0);
    println!("{times} times: {done} changes, {repeated} requests repeated");
}

#[test]
fn nothing_acknowledged_is_lost_by_kill_9_of_postgresql() {
    killed_again_and_again(5);
}

#[test]
#[ignore = "takes about twenty minutes; SLICEWISE_KILLS says how often (default 500)"]
fn nothing_acknowledged_is_lost_by_kill_9_of_postgresql_500_times() {
    killed_again_and_again(crate::crashes::kills());
}

/// What becomes of the commit of the next transaction about `gold`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Commit {
    Answered,
    /// It is carried out, and the connection breaks before the answer arrives.
    Lost,
    /// From it on nothing arrives, on any connection, and nobody is told.
    Silent,
}

/// Passes on what a controller and PostgreSQL say to each other, over sockets in folders.
struct Proxy {
    commit: Arc<Mutex<Commit>>,
}

impl Proxy {
    fn start(from: &Path, to: &Path) -> Self {
        let socket = |folder: &Path| folder.join(".s.PGSQL.5432");
        let listener = UnixListener::bind(socket(from)).unwrap();
        let to = socket(to);
        let commit = Arc::new(Mutex::new(Commit::Answered));
        let passing = Arc::clone(&commit);
        std::thread::spawn(move || {
            let is_silent = Arc::new(AtomicBool::new(false));
            for client in listener.incoming().flatten() {
                let server = UnixStream::connect(&to).unwrap();
                pass_on(client, server, &passing, &is_silent);
            }
        });
        Self { commit }
    }

    fn set(&self, commit: Commit) {
        *self.commit.lock().unwrap() = commit;
    }

    fn is(&self, commit: Commit) -> bool {
        *self.commit.lock().unwrap() == commit
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

fn pass_on(
    client: UnixStream,
    server: UnixStream,
    next: &Arc<Mutex<Commit>>,
    is_silent: &Arc<AtomicBool>,
) {
    let is_lost = Arc::new(AtomicBool::new(false));
    let copy = |from: &UnixStream, to: &UnixStream| {
        let pair = (from.try_clone().unwrap(), to.try_clone().unwrap());
        (pair.0, pair.1, Arc::clone(&is_lost))
    };
    let (mut from, mut to, lost) = copy(&client, &server);
    let (next, silent) = (Arc::clone(next), Arc::clone(is_silent));
    std::thread::spawn(move || {
        let (mut bytes, mut transaction) = (vec![0; 65_536], Vec::new());
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            let part = &bytes[..count];
            if contains(part, "BEGIN") {
                transaction.clear();
            }
            transaction.extend_from_slice(part);
            if contains(part, "COMMIT") && contains(&transaction, "gold") {
                let mut next = next.lock().unwrap();
                lost.fetch_or(*next == Commit::Lost, Ordering::Relaxed);
                silent.fetch_or(*next == Commit::Silent, Ordering::Relaxed);
                if *next == Commit::Lost {
                    *next = Commit::Answered;
                }
            }
            while silent.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(10));
                let is_silent = *next.lock().unwrap() == Commit::Silent;
                silent.fetch_and(is_silent, Ordering::Relaxed);
            }
            if to.write_all(part).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
    let (mut from, mut to, lost) = copy(&server, &client);
    std::thread::spawn(move || {
        let mut bytes = vec![0; 65_536];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if lost.load(Ordering::Relaxed) || to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    });
}

/// A store of the cluster, with a proxy in the folder between.
fn behind_proxy(cluster: &Cluster, folder: &Path) -> (Proxy, TestStore) {
    let proxy = Proxy::start(folder, &cluster.folder);
    let encoded = |path: &Path| path.to_str().unwrap().replace('/', "%2F");
    let url = cluster.database();
    let url = url.replace(&encoded(&cluster.folder), &encoded(folder));
    (proxy, TestStore::at(Location::Postgres(url)))
}

#[test]
fn while_postgresql_says_nothing_requests_are_refused_and_afterwards_it_goes_on() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (proxy, store) = behind_proxy(&cluster, folder.path());
    let (server, client) = with_link(&store);
    proxy.set(Commit::Silent);
    let gold = slice("gold", 1, 10);
    let refused = client.put_slice(&gold, Precondition::Absent, Some("key"));
    assert_eq!(refused.unwrap_err().status(), Some(503));
    assert_eq!(client.links().unwrap_err().status(), Some(503));
    let ready = server.ask("GET", "/readyz", &[], None);
    assert_eq!(ready.status, 503);
    proxy.set(Commit::Answered);
    wait_until("it is ready again", || {
        server.ask("GET", "/readyz", &[], None).status == 200
    });
    let mut answered = Err(None);
    wait_until("it is answered", || {
        let made = client.put_slice(&gold, Precondition::Absent, Some("key"));
        answered = made.map_err(|error| error.status());
        answered != Err(Some(503))
    });
    assert!(answered.unwrap().created);
    assert_eq!(client.generations(None, None).unwrap().items.len(), 1);
}

#[test]
fn a_change_whose_commit_was_not_answered_is_repeated_with_its_key() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (proxy, store) = behind_proxy(&cluster, folder.path());
    let (_server, client) = with_link(&store);
    let gold = slice("gold", 1, 10);
    proxy.set(Commit::Lost);
    let unanswered = client
        .put_slice(&gold, Precondition::Absent, Some("key"))
        .unwrap_err();
    assert_eq!(unanswered.status(), Some(503));
    assert!(unanswered.to_string().contains("repeat it"), "{unanswered}");
    assert!(proxy.is(Commit::Answered));
    assert_eq!(
        client.slice("gold").unwrap().generation,
        1,
        "it was committed"
    );
    let answered = client
        .put_slice(&gold, Precondition::Absent, Some("key"))
        .unwrap();
    assert_eq!((answered.created, answered.value.generation), (true, 1));
    assert_eq!(client.generations(None, None).unwrap().items.len(), 1);
}
