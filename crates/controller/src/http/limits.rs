//! Limits on the rate of requests, on how many are served at a time, and on what their bodies take.

use crate::refusal::Refusal;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Requests served at a time, of one party and in all, without those that wait for something to happen.
const SERVED: [usize; 2] = [128, 512];
/// Streams of events.
const STREAMS: [usize; 2] = [128, 4_096];
/// Long polls of one gateway and of all. They are apart from streams: whoever watches keeps no change from a gateway.
const POLLS: [usize; 2] = [16, 4_096];
/// Bytes of bodies that are being read or carried out.
const BODY_BYTES: [usize; 2] = [64 << 20, 256 << 20];
/// Bytes of answers that clients have not taken yet.
const ANSWER_BYTES: [usize; 2] = [64 << 20, 256 << 20];
/// Refusals that clients have not taken yet.
const REFUSALS: [usize; 2] = [1_024, 8_192];
/// Who is remembered; beyond that, those who have not asked for a second are forgotten.
const REMEMBERED: usize = 10_000;

#[derive(Debug)]
pub(crate) struct Limits {
    per_second: f64,
    buckets: Mutex<HashMap<String, Bucket>>,
    pub(super) served: Arc<Places>,
    pub(super) streams: Arc<Places>,
    /// Of gateways that wait.
    pub(super) polls: Arc<Places>,
    /// Room for bodies, which grows as they come.
    pub(super) body_bytes: Arc<Places>,
    answer_bytes: Arc<Places>,
    pub(super) refusals: Arc<Places>,
}

/// A token bucket that holds the requests of a second.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

impl Limits {
    pub(crate) fn new(per_second: u32) -> Self {
        Self {
            per_second: f64::from(per_second.max(1)),
            buckets: Mutex::default(),
            served: Places::new("requests at a time", SERVED),
            streams: Places::new("streams of events", STREAMS),
            polls: Places::new("long polls", POLLS),
            body_bytes: Places::new("bytes of bodies at a time", BODY_BYTES),
            answer_bytes: Places::new("bytes of answers that it has not taken", ANSWER_BYTES),
            refusals: Places::new("refusals that it has not taken", REFUSALS),
        }
    }

    /// One more request of `who`.
    pub(super) fn try_ask(&self, who: &str) -> Result<(), Refusal> {
        self.try_take(who, 1.0, Instant::now())
    }

    /// One more request of `who` that was not allowed: these are limited to a few per second.
    pub(super) fn try_guess(&self, who: &str) -> Result<(), Refusal> {
        let few = (self.per_second / 20.0).max(1.0);
        self.try_take(who, few, Instant::now())
    }

    fn try_take(&self, who: &str, tokens: f64, now: Instant) -> Result<(), Refusal> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= REMEMBERED {
            buckets.retain(|_, bucket| now.saturating_duration_since(bucket.at).as_secs() < 1);
        }
        let full = Bucket {
            tokens: self.per_second,
            at: now,
        };
        let bucket = buckets.entry(who.to_owned()).or_insert(full);
        let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.tokens = (bucket.tokens + passed * self.per_second).min(self.per_second);
        bucket.at = now;
        if bucket.tokens < tokens {
            let detail = format!(
                "more than {} requests per second: try again in a second",
                self.per_second
            );
            return Err(Refusal::new(429, "too-many", "Too many requests", detail));
        }
        bucket.tokens -= tokens;
        Ok(())
    }

    /// Room for an answer of `bytes` to `who`. The first one of a party has it however long it is, as has one that `may_be_refused` no more.
    pub(super) fn try_answer(
        &self,
        who: &str,
        bytes: usize,
        may_be_refused: bool,
    ) -> Result<Place, Refusal> {
        match may_be_refused && !self.answer_bytes.has_none(who) {
            true => self.answer_bytes.try_take(who, bytes),
            false => Ok(self.answer_bytes.take(who, bytes)),
        }
    }
}

/// Places for everybody, of which each party can take a part only.
#[derive(Debug)]
pub(super) struct Places {
    what: &'static str,
    each: usize,
    all: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    of: HashMap<String, usize>,
}

/// Places of a party, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    who: String,
    count: usize,
}

impl Places {
    pub(super) fn new(what: &'static str, [each, all]: [usize; 2]) -> Arc<Self> {
        Arc::new(Self {
            what,
            each,
            all,
            taken: Mutex::default(),
        })
    }

    pub(super) fn try_take(self: &Arc<Self>, who: &str, count: usize) -> Result<Place, Refusal> {
        let mut place = self.none(who);
        place.try_grow(count)?;
        Ok(place)
    }

    fn none(self: &Arc<Self>, who: &str) -> Place {
        Place {
            places: Arc::clone(self),
            who: who.to_owned(),
            count: 0,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Self::try_take`], beyond every limit.
    fn take(self: &Arc<Self>, who: &str, count: usize) -> Place {
        let mut place = self.none(who);
        self.lock().add(&mut place.count, who, count);
        place
    }

    fn has_none(&self, who: &str) -> bool {
        !self.lock().of.contains_key(who)
    }
}

impl Taken {
    fn add(&mut self, place: &mut usize, who: &str, count: usize) {
        self.all += count;
        *self.of.entry(who.to_owned()).or_insert(0) += count;
        *place += count;
    }
}

impl Place {
    /// Take `count` more.
    pub(super) fn try_grow(&mut self, count: usize) -> Result<(), Refusal> {
        let Places {
            what, each, all, ..
        } = *self.places;
        let mut taken = self.places.lock();
        if taken.all + count > all {
            return Err(Refusal::overloaded());
        }
        let own = taken.of.get(&self.who).copied().unwrap_or(0);
        if own + count > each {
            let detail = format!(
                "`{}` has {own} {what}: at most {each} are its own",
                self.who
            );
            return Err(Refusal::new(429, "too-many", "Too many requests", detail));
        }
        taken.add(&mut self.count, &self.who, count);
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.all = taken.all.saturating_sub(self.count);
        if let Some(own) = taken.of.get_mut(&self.who) {
            *own = own.saturating_sub(self.count);
            if *own == 0 {
                taken.of.remove(&self.who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_party_that_takes_all_of_its_places_leaves_those_of_others() {
        let places = Places::new("streams", [2, 5]);
        let take = |who: &str| places.try_take(who, 1);
        let (first, second) = (take("a").unwrap(), take("a").unwrap());
        insta::assert_snapshot!(take("a").unwrap_err().problem, @"`a` has 2 streams: at most 2 are its own");
        let others = [take("b").unwrap(), take("b").unwrap(), take("c").unwrap()];
        assert_eq!(take("d").unwrap_err().problem.status, 503, "all are taken");
        drop((first, second));
        assert!(take("a").is_ok(), "they are given back");
        drop(others);
        let mut whole = places.try_take("a", 2).unwrap();
        assert_eq!(whole.try_grow(1).unwrap_err().problem.status, 429);
        drop(whole);
        assert_eq!(places.taken.lock().unwrap().of.len(), 0);
    }

    #[test]
    fn who_asks_too_often_waits_and_others_do_not() {
        let limits = Limits::new(2);
        let start = Instant::now();
        let ask = |who: &str, millis| {
            let now = start + Duration::from_millis(millis);
            limits.try_take(who, 1.0, now).is_ok()
        };
        assert_eq!([ask("a", 0), ask("a", 0), ask("a", 0)], [true, true, false]);
        assert!(ask("b", 0));
        assert_eq!(
            [ask("a", 499), ask("a", 501), ask("a", 502)],
            [false, true, false]
        );
    }
}
