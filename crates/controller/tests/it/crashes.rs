//! The controller is killed at random moments while changes are made: nothing that was acknowledged is lost, and nothing is promised twice.

use crate::promises::check_promises;
use crate::support::{
    TestStore, announce, client, for_each_store, said, slice, try_put, wait_for_sessions,
};
use slicewise_api::{Client, Slice, SliceState};
use slicewise_controller::{Location, ServeParams, run};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const STORE: &str = "SLICEWISE_TEST_STORE";
const LISTEN: &str = "SLICEWISE_TEST_LISTEN";
const WORKERS: u16 = 4;

/// The process that is killed: this test program again.
#[test]
fn serves_for_another_test() {
    let (Ok(store), Ok(listen)) = (std::env::var(STORE), std::env::var(LISTEN)) else {
        return;
    };
    let location: Location = store.parse().unwrap();
    let params = ServeParams {
        listen: listen.parse().unwrap(),
        tls: None,
        requests_per_second: 1_000_000,
    };
    run(&location, &params).unwrap();
}

fn url(location: &Location) -> String {
    match location {
        Location::Sqlite(path) => format!("sqlite:{}", path.display()),
        Location::Postgres(url) => url.clone(),
    }
}

fn start(store: &TestStore, listen: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crashes::serves_for_another_test", "--nocapture"])
        .env(STORE, url(&store.location))
        .env(LISTEN, listen)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The same numbers every time.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// What is known of the slice of a worker.
#[derive(Debug, Clone)]
struct Known {
    acknowledged: Option<Slice>,
    /// Asked for, and not answered: it may have been made or not.
    open: Option<Option<Slice>>,
}

/// Changes its own slice until `stop`; what was answered counts.
fn work(client: &Client, index: u16, known: &mut Known, stop: &AtomicBool) {
    let name = format!("w{index}");
    let mut random = Random(u64::from(index) + 77);
    while !stop.load(Ordering::Relaxed) {
        let rate = random.below(30) + 1;
        let asked = slice(&name, index + 1, rate);
        known.open = Some(Some(asked.clone()));
        match try_put(client, &asked) {
            Ok(made) => {
                known.acknowledged = Some(made.value.slice);
                known.open = None;
            }
            // Refused: nothing was changed.
            Err(error) if error.status() == Some(409) => known.open = None,
            Err(_) => return,
        }
    }
}

fn wait(client: &Client) {
    while client.links().is_err() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn killed_again_and_again(store: &TestStore, times: u32) {
    // Of no other test: it could take the port while the controller is away.
    let [high, low] = [8, 0].map(|shift| std::process::id() >> shift & 0xff);
    let listen = format!("127.{}.{low}.1:9650", 1 + high % 254);
    let client = client(&format!("http://{listen}"), None);
    let mut random = Random(42);
    let mut process = start(store, &listen);
    wait(&client);
    announce(&client, "gw", "uplink");
    let unknown = Known {
        acknowledged: None,
        open: None,
    };
    let mut known = vec![unknown; usize::from(WORKERS)];
    let (mut answered, mut generation) = (0, 0);
    for round in 0..times {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (index, known) in (0..WORKERS).zip(&mut known) {
                let (client, stop) = (&client, &stop);
                scope.spawn(move || work(client, index, known, stop));
            }
            std::thread::sleep(Duration::from_millis(20 + random.below(150)));
            // SIGKILL.
            process.kill().unwrap();
            process.wait().unwrap();
            stop.store(true, Ordering::Relaxed);
        });
        wait_for_sessions(store);
        process = start(store, &listen);
        wait(&client);
        for (index, known) in known.iter_mut().enumerate() {
            let found = client
                .slice(&format!("w{index}"))
                .ok()
                .map(|record| record.slice);
            let mut asked = known.open.take().flatten();
            if let Some(asked) = &mut asked {
                asked.path = vec!["uplink".to_owned()];
            }
            let is_made = asked.is_some() && found == asked;
            assert!(
                found == known.acknowledged || is_made,
                "round {round}: {found:?} instead of {known:?}"
            );
            answered += u32::from(found.is_some());
            known.acknowledged = found;
        }
        check_promises(&client);
        let now = client
            .generations(None, Some(1))
            .unwrap()
            .items
            .first()
            .map_or(0, |one| one.generation);
        assert!(now >= generation);
        generation = now;
        // What a gateway said counts, too.
        let desired = client.desired("gw", 0, Duration::ZERO).unwrap();
        let said = said(desired.generation);
        client.acknowledge("gw", &said).unwrap();
        for index in 0..WORKERS {
            if let Ok(record) = client.slice(&format!("w{index}")) {
                assert_eq!(record.state, SliceState::Installed);
            }
        }
    }
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(answered > 0, "no change was answered");
    println!("{times} times, generation {generation}");
}

/// How often the tests that take long kill.
pub fn kills() -> u32 {
    std::env::var("SLICEWISE_KILLS")
        .ok()
        .and_then(|times| times.parse().ok())
        .unwrap_or(500)
}

#[test]
fn nothing_acknowledged_is_lost_by_kill_9() {
    for_each_store(|store| {
        killed_again_and_again(store, 5);
    });
}

#[test]
#[ignore = "takes about ten minutes; SLICEWISE_KILLS says how often (default 500)"]
fn nothing_acknowledged_is_lost_by_kill_9_500_times() {
    for_each_store(|store| {
        killed_again_and_again(store, kills());
    });
}
