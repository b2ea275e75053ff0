//! Limits on the rate of requests and on how many are served at a time.

use crate::refusal::Refusal;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests served at a time, without those that wait for something to happen.
const AT_A_TIME: usize = 512;
/// Requests that wait for something to happen: long polls and streams of events.
const WAITING: usize = 4_096;
/// Who is remembered; beyond that, those who have not asked for a second are forgotten.
const REMEMBERED: usize = 10_000;

#[derive(Debug)]
pub(crate) struct Limits {
    per_second: f64,
    buckets: Mutex<HashMap<String, Bucket>>,
    serving: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
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
            serving: Arc::new(Semaphore::new(AT_A_TIME)),
            waiting: Arc::new(Semaphore::new(WAITING)),
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

    /// A place among those that are served.
    pub(super) fn try_serve(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        Arc::clone(&self.serving)
            .try_acquire_owned()
            .map_err(|_| Refusal::overloaded())
    }

    /// A place among those that wait.
    pub(super) fn try_wait(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        Arc::clone(&self.waiting)
            .try_acquire_owned()
            .map_err(|_| Refusal::overloaded())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

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
