//! Requests that wait for the writer, of which each party gets its share of the writer's time: start-time fair queueing (Goyal, Vin and Cheng, 1996)
//! with time as the size of a request. A party that waits is served after at most one request of each other one.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Requests that wait, of one party and in all.
const WAITING: [usize; 2] = [1_024, 4_096];

/// Requests that wait, by party.
#[derive(Debug)]
pub(super) struct FairQueue<J> {
    inner: Mutex<Inner<J>>,
    pushed: Notify,
}

#[derive(Debug)]
struct Inner<J> {
    parties: HashMap<String, Party<J>>,
    waiting: usize,
    pushed: u64,
    /// Start tag of the request that was served last.
    virtual_time: Duration,
    is_closed: bool,
}

#[derive(Debug)]
struct Party<J> {
    /// With the number of its arrival.
    jobs: VecDeque<(u64, J)>,
    /// Start tag of its next request.
    start: Duration,
    /// Duration of its last request.
    last: Duration,
}

impl<J> Default for FairQueue<J> {
    fn default() -> Self {
        let inner = Inner {
            parties: HashMap::new(),
            waiting: 0,
            pushed: 0,
            virtual_time: Duration::ZERO,
            is_closed: false,
        };
        Self {
            inner: Mutex::new(inner),
            pushed: Notify::new(),
        }
    }
}

impl<J> FairQueue<J> {
    fn lock(&self) -> MutexGuard<'_, Inner<J>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request of `party`; returns whether there was room.
    pub(super) fn push(&self, party: &str, job: J) -> bool {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let start = inner.virtual_time;
        let own = inner.parties.get(party).map_or(0, |own| own.jobs.len());
        if inner.is_closed || own >= WAITING[0] || inner.waiting >= WAITING[1] {
            return false;
        }
        let own = inner
            .parties
            .entry(party.to_owned())
            .or_insert_with(|| Party {
                jobs: VecDeque::new(),
                start,
                last: Duration::ZERO,
            });
        if own.jobs.is_empty() {
            own.start = own.start.max(start);
        }
        own.jobs.push_back((inner.pushed, job));
        inner.pushed += 1;
        inner.waiting += 1;
        self.pushed.notify_one();
        true
    }

    /// Waits until something waits.
    pub(super) async fn wait(&self) {
        while self.lock().waiting == 0 {
            self.pushed.notified().await;
        }
    }

    /// The next request: of the party that had least, and among equals of the one that came first. `None` also where that party's last request took longer than `within`: those
    /// that are answered together with it would wait.
    pub(super) fn pop(&self, within: Duration) -> Option<J> {
        let mut inner = self.lock();
        let next = inner.parties.iter().filter_map(|(name, party)| {
            let (number, _) = party.jobs.front()?;
            Some((party.start, *number, name))
        });
        let (start, _, name) = next.min()?;
        let name = name.clone();
        let party = inner.parties.get_mut(&name)?;
        if party.last > within {
            return None;
        }
        let (_, job) = party.jobs.pop_front()?;
        inner.waiting -= 1;
        inner.virtual_time = inner.virtual_time.max(start);
        Some(job)
    }

    /// Counts the time that a request of `party` took.
    pub(super) fn charge(&self, party: &str, took: Duration) {
        let mut inner = self.lock();
        if let Some(party) = inner.parties.get_mut(party) {
            party.start += took;
            party.last = took;
        }
        let now = inner.virtual_time;
        inner
            .parties
            .retain(|_, party| !party.jobs.is_empty() || party.start > now);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Takes nothing more, and drops what waits.
    pub(super) fn close(&self) {
        let mut inner = self.lock();
        inner.is_closed = true;
        inner.parties.clear();
        inner.waiting = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves `count` requests, each of which takes as long as its number says, in milliseconds.
    fn serve(queue: &FairQueue<(&'static str, u64)>, count: usize) -> Vec<String> {
        let served = (0..count).map_while(|_| {
            let (party, millis) = queue.pop(Duration::MAX)?;
            queue.charge(party, Duration::from_millis(millis));
            Some(format!("{party}{millis}"))
        });
        served.collect()
    }

    fn push(queue: &FairQueue<(&'static str, u64)>, party: &'static str, millis: u64) -> bool {
        queue.push(party, (party, millis))
    }

    #[test]
    fn a_party_with_long_requests_does_not_delay_another_by_more_than_one() {
        let queue = FairQueue::default();
        for _ in 0..5 {
            assert!(push(&queue, "red", 500));
        }
        assert_eq!(serve(&queue, 1), ["red500"]);
        for _ in 0..3 {
            push(&queue, "blue", 1);
        }
        assert_eq!(serve(&queue, 4), ["blue1", "blue1", "blue1", "red500"]);
        push(&queue, "green", 1);
        assert_eq!(serve(&queue, 9), ["green1", "red500", "red500", "red500"]);
        assert!(queue.lock().parties.len() <= 1, "who is gone is forgotten");
    }

    #[test]
    fn a_party_whose_requests_are_long_has_a_transaction_of_its_own() {
        let queue = FairQueue::default();
        for _ in 0..2 {
            push(&queue, "red", 500);
        }
        serve(&queue, 1);
        let soon = Duration::from_millis(50);
        assert!(queue.pop(soon).is_none());
        push(&queue, "blue", 1);
        assert_eq!(queue.pop(soon), Some(("blue", 1)));
        assert!(queue.pop(soon).is_none());
        assert!(queue.pop(Duration::MAX).is_some());
    }

    #[test]
    fn time_that_was_not_used_is_not_saved() {
        let queue = FairQueue::default();
        push(&queue, "red", 100);
        push(&queue, "blue", 1);
        serve(&queue, 2);
        for _ in 0..100 {
            push(&queue, "red", 1);
        }
        serve(&queue, 100);
        for _ in 0..3 {
            push(&queue, "blue", 1);
            push(&queue, "red", 1);
        }
        let served = serve(&queue, 6);
        let blue = served.iter().filter(|one| one.starts_with("blue")).count();
        assert_eq!(blue, 3);
        let first_half = served.iter().take(4);
        assert!(
            first_half.filter(|one| one.starts_with("red")).count() >= 1,
            "{served:?}"
        );
    }

    #[test]
    fn the_queue_of_one_party_leaves_room_for_others() {
        let queue = FairQueue::default();
        let pushed = (0..5_000).filter(|_| push(&queue, "red", 1)).count();
        assert_eq!(pushed, WAITING[0]);
        assert!(push(&queue, "blue", 1));
    }
}
