//! Time, for people and for waiting.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where a store gets the time from.
pub trait Clock: Debug + Send + Sync {
    /// The time of day. It can jump: forward and back, by any amount.
    fn now(&self) -> SystemTime;

    /// Time since some moment. It only grows, and never jumps.
    fn elapsed(&self) -> Duration;
}

/// The clocks of this machine.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        let start = Instant::now();
        Self { start }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

/// The age of the store at a moment of this process.
#[derive(Debug, Clone, Copy)]
struct Known {
    age: Duration,
    at: Duration,
}

/// The time in a store: of day, and its age.
///
/// The age is the time for which controllers have used the store. What is kept for a while is kept by the age, because no clock
/// that jumps, and no two controllers with different clocks, make it wrong. It is at least what the store says, and what this
/// process has seen pass since it last knew it.
#[derive(Debug, Clone)]
pub(crate) struct StoreClock {
    clock: Arc<dyn Clock>,
    known: Arc<Mutex<Option<Known>>>,
}

impl StoreClock {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let known = Arc::default();
        Self { clock, known }
    }

    /// Milliseconds since 1970-01-01 UTC.
    pub(crate) fn now_ms(&self) -> u64 {
        millis(self.clock.now().duration_since(UNIX_EPOCH).ok())
    }

    /// Time that only grows.
    pub(crate) fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// The age now of a store that has `stored` as its age, milliseconds.
    pub(crate) fn age_ms(&self, stored: u64) -> u64 {
        let (at, stored) = (self.clock.elapsed(), Duration::from_millis(stored));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = known.map(|known| known.age + at.saturating_sub(known.at));
        let age = match seen {
            Some(seen) if seen >= stored => seen,
            _ => {
                *known = Some(Known { age: stored, at });
                stored
            }
        };
        millis(Some(age))
    }
}

fn millis(time: Option<Duration>) -> u64 {
    let millis = time.map_or(0, |time| time.as_millis());
    u64::try_from(millis).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Steady(Mutex<Duration>);

    impl Clock for Steady {
        fn now(&self) -> SystemTime {
            UNIX_EPOCH
        }

        fn elapsed(&self) -> Duration {
            *self.0.lock().unwrap()
        }
    }

    #[test]
    fn the_age_is_the_same_however_many_controllers_count_it_and_however_often() {
        let clock = Arc::new(Steady::default());
        let (one, other) = (
            StoreClock::new(Arc::clone(&clock) as Arc<dyn Clock>),
            StoreClock::new(Arc::clone(&clock) as Arc<dyn Clock>),
        );
        let mut stored = 5_000;
        for step in 0..10_000 {
            *clock.0.lock().unwrap() += Duration::from_micros(300);
            let turn = if step % 3 == 0 { &one } else { &other };
            stored = turn.age_ms(stored);
        }
        // The first look of each begins with what is stored.
        assert_eq!(stored, 5_000 + 3_000 - 1);
        // A controller that starts anew goes on from there; none goes back.
        let third = StoreClock::new(clock);
        assert_eq!(third.age_ms(stored), stored);
        assert_eq!(third.age_ms(0), stored);
    }
}
