//! The clock of a controller jumps, forward and back.

use crate::support::{Server, announce, for_each_store, put, slice};
use slicewise_api::{EventKind, Precondition};
use slicewise_controller::Clock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

const HOUR_S: i64 = 3_600;

/// A clock that tests move.
#[derive(Debug)]
pub struct TestClock {
    start: SystemTime,
    /// The time of day is this much later, seconds.
    jumped_s: AtomicI64,
    /// Time that has passed, seconds.
    passed_s: AtomicU64,
}

impl TestClock {
    pub fn new() -> Arc<Self> {
        let start = SystemTime::now();
        Arc::new(Self {
            start,
            jumped_s: AtomicI64::new(0),
            passed_s: AtomicU64::new(0),
        })
    }

    pub fn jump(&self, seconds: i64) {
        self.jumped_s.fetch_add(seconds, Ordering::Relaxed);
    }

    pub fn pass(&self, seconds: i64) {
        let passed = u64::try_from(seconds).unwrap();
        self.passed_s.fetch_add(passed, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> SystemTime {
        let jumped = self.jumped_s.load(Ordering::Relaxed);
        let distance = Duration::from_secs(jumped.unsigned_abs());
        let passed = self.start + self.elapsed();
        match jumped < 0 {
            true => passed - distance,
            false => passed + distance,
        }
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs(self.passed_s.load(Ordering::Relaxed))
    }
}

#[test]
fn an_idempotency_key_counts_for_a_day_of_time_that_passes_and_not_of_time_that_jumps() {
    for_each_store(|store| {
        let clock = TestClock::new();
        let server = Server::with_clock(store, Arc::<TestClock>::clone(&clock));
        let client = server.client();
        announce(&client, "gw", "uplink");
        let gold = slice("gold", 1, 10);
        let made = client
            .put_slice(&gold, Precondition::Absent, Some("key"))
            .unwrap();
        assert!(made.created);
        let repeated = || client.put_slice(&gold, Precondition::Absent, Some("key"));
        for jump in [49, -98, 24 * 365 * 20, -24 * 365 * 20] {
            clock.jump(jump * HOUR_S);
            assert_eq!(repeated().unwrap(), made, "jumped by {jump} h");
        }
        clock.pass(23 * HOUR_S);
        assert_eq!(repeated().unwrap(), made, "23 h passed");
        // Another controller, whose clock is another one, counts on.
        let others = TestClock::new();
        let other = Server::with_clock(store, Arc::<TestClock>::clone(&others));
        let by_other = |key: Option<&str>| {
            other
                .client()
                .put_slice(&gold, Precondition::Absent, key)
                .map_err(|error| error.status())
        };
        others.jump(-700 * HOUR_S);
        assert_eq!(by_other(Some("key")).unwrap(), made);
        others.pass(2 * HOUR_S);
        assert_eq!(by_other(Some("key")), Err(Some(412)), "it exists");
    });
}

#[test]
fn history_and_events_keep_their_order_when_the_clock_jumps() {
    for_each_store(|store| {
        let clock = TestClock::new();
        let server = Server::with_clock(store, Arc::<TestClock>::clone(&clock));
        let client = server.client();
        announce(&client, "gw", "uplink");
        for (index, jump) in (1..).zip([5, -9, 24 * 700, -24 * 701]) {
            clock.jump(jump * HOUR_S);
            put(&client, &slice(&format!("s{index}"), index, 1));
        }
        let history = client.generations(None, None).unwrap().items;
        let numbers: Vec<u64> = history.iter().map(|one| one.generation).collect();
        assert_eq!(numbers, [4, 3, 2, 1]);
        assert!(
            history[0].at_ms < history[3].at_ms,
            "as the clock said: {history:?}"
        );
        let events = client.events(0, None).unwrap().items;
        assert!(
            events
                .windows(2)
                .all(|pair| pair[0].number < pair[1].number)
        );
        let restored = client.restore(2, None).unwrap();
        assert_eq!(restored.generation, 5);
        assert_eq!(
            client
                .slices(&Default::default())
                .unwrap()
                .items
                .iter()
                .filter(|slice| slice.state == slicewise_api::SliceState::Admitted)
                .map(|slice| slice.name.clone())
                .collect::<Vec<_>>(),
            ["s1", "s2"]
        );
    });
}

#[test]
fn a_gateway_that_waits_is_there_while_the_clock_jumps_and_gets_its_change() {
    for_each_store(|store| {
        let clock = TestClock::new();
        let server = Server::with_clock(store, Arc::<TestClock>::clone(&clock));
        let client = server.client();
        announce(&client, "gw", "uplink");
        put(&client, &slice("first", 1, 1));
        let found = Mutex::new(None);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let waited = server.client().desired("gw", 1, Duration::from_secs(30));
                *found.lock().unwrap() = Some(waited.unwrap());
            });
            // Long enough for the controller to look for gateways that are gone.
            for jump in [5, -11, 6] {
                clock.jump(jump * HOUR_S);
                std::thread::sleep(Duration::from_millis(2_200));
                assert!(client.gateways().unwrap()[0].connected, "{jump}");
            }
            put(&client, &slice("second", 2, 1));
        });
        assert_eq!(found.into_inner().unwrap().unwrap().changes.len(), 1);
        let events = client.events(0, None).unwrap().items;
        let went = |kind| events.iter().filter(|event| event.kind == kind).count();
        assert_eq!(went(EventKind::GatewayWent), 0);
    });
}
