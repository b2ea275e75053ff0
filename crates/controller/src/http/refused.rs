//! Refused requests for changes in the audit log, which only grows: repeats are counted, and strangers can make it grow only so much.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time after which repeats are counted anew.
const PERIOD: Duration = Duration::from_secs(3600);
/// Entries of one period: of all strangers together, who have no good token, and of each token.
const STRANGERS_ENTRIES: u32 = 60;
const TOKEN_ENTRIES: u32 = 1_000;
/// Kinds of refused requests that are counted apart: of each token, and of all strangers together.
const COUNTED_KINDS: u32 = 1_000;

/// One kind of refused request: repeats of it are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Refused {
    /// A token's name, or `from ADDRESS`.
    pub(super) who: String,
    /// `METHOD /path`.
    pub(super) line: String,
    /// HTTP status.
    pub(super) status: u16,
    /// A good token was shown.
    pub(super) has_token: bool,
}

/// Counts of the period.
#[derive(Debug, Default)]
pub(crate) struct RefusedRequests(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    since: Option<Instant>,
    kinds: HashMap<Refused, u64>,
    /// By token; those of strangers under the empty name.
    askers: HashMap<String, Asker>,
}

/// Kinds that are counted, and entries that were written.
#[derive(Debug, Default)]
struct Asker {
    kinds: u32,
    written: u32,
}

impl RefusedRequests {
    /// Counts one more. Returns how often it came in this period if that is to be written down: the 1st, 10th, 100th, … time.
    pub(super) fn count(&self, refused: Refused, now: Instant) -> Option<u64> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = &mut *counts;
        let is_over = |since: Instant| now.saturating_duration_since(since) >= PERIOD;
        if counts.since.is_none_or(is_over) {
            *counts = Counts {
                since: Some(now),
                ..Counts::default()
            };
        }
        let (asker, most) = match refused.has_token {
            true => (refused.who.clone(), TOKEN_ENTRIES),
            false => (String::new(), STRANGERS_ENTRIES),
        };
        let asker = counts.askers.entry(asker).or_default();
        if asker.written >= most {
            return None;
        }
        let times = match counts.kinds.entry(refused) {
            Entry::Vacant(_) if asker.kinds >= COUNTED_KINDS => return None,
            Entry::Vacant(entry) => {
                asker.kinds += 1;
                entry.insert(0)
            }
            Entry::Occupied(entry) => entry.into_mut(),
        };
        *times += 1;
        let times = *times;
        if 10_u64.pow(times.ilog10()) != times {
            return None;
        }
        asker.written += 1;
        Some(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(who: &str, line: &str, has_token: bool) -> Refused {
        Refused {
            who: who.to_owned(),
            line: line.to_owned(),
            status: 401,
            has_token,
        }
    }

    #[test]
    fn repeats_are_counted_and_written_at_powers_of_ten() {
        let (counts, now) = (RefusedRequests::default(), Instant::now());
        let line = "DELETE /v1/slices/{name}";
        let written: Vec<u64> = (0..12_345)
            .filter_map(|_| counts.count(refused("from a", line, false), now))
            .collect();
        assert_eq!(written, [1, 10, 100, 1_000, 10_000]);
        let other = refused("from b", line, false);
        assert_eq!(counts.count(other.clone(), now), Some(1));
        assert_eq!(counts.count(other, now + PERIOD), Some(1), "a new period");
    }

    #[test]
    fn strangers_have_few_entries_together_and_take_none_of_a_token() {
        let (counts, now) = (RefusedRequests::default(), Instant::now());
        let of = |has_token: bool| {
            (0..20_000)
                .filter(|index| {
                    let who = match has_token {
                        true => "red".to_owned(),
                        false => format!("from {index}"),
                    };
                    let refused = refused(&who, &format!("PUT /v1/slices/{index}"), has_token);
                    counts.count(refused, now).is_some()
                })
                .count()
        };
        assert_eq!(of(true), 1_000);
        assert_eq!(of(false), 60);
        let other = refused("blue", "PUT /v1/slices/a", true);
        assert_eq!(counts.count(other, now), Some(1), "nobody else is silenced");
    }
}
