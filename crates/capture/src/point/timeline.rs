//! Sorts the packets of one file by time and finds impossible timestamps.
//!
//! Captures of several receive queues, and carelessly merged files, contain records out of order with
//! correct timestamps. They are sorted within [`SORT_WINDOW_NS`]. A timestamp far from those before and
//! after it is wrong: the record gets the time of the one before it and is marked.

use crate::Sighting;
use crate::file::{TimeFacts, WrongStamp};
use slicewise_wire::TcpHeader;
use std::collections::VecDeque;

/// Records of one file that are out of order by at most this are sorted, ns. Smaller clock steps look
/// the same.
pub const SORT_WINDOW_NS: u64 = 100_000_000;

/// A timestamp farther than this from those before and after it is wrong, ns.
pub(super) const FAR_NS: u64 = 2_500_000_000;

/// A record at the beginning or end of a file with a time this far from the others has a wrong
/// timestamp, ns; elsewhere a pause of any length is possible.
const DAY_NS: u64 = 86_400_000_000_000;

/// The same for a few records with times close to each other.
const MONTH_NS: u64 = 30 * DAY_NS;

/// Most consecutive records with wrong timestamps. More mean a clock step.
pub const MOST_WRONG_STAMPS: usize = 16;

/// Most records held (8 MB per file); beyond that, the window is shorter.
const MOST_HELD: usize = 1 << 17;

/// Wrong timestamps listed; further ones are only counted.
const MOST_NAMED: usize = 16;

/// A packet with a sighting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub sighting: Sighting,
    pub tcp: Option<TcpHeader>,
    /// Its number in its file, from 1.
    pub record: u64,
    /// The times of the file jump here.
    pub jumps: bool,
}

impl Seen {
    #[inline]
    const fn time_ns(&self) -> u64 {
        self.sighting.time_ns
    }
}

/// Sorts the packets of one file.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// In time order; can be released.
    ready: VecDeque<Seen>,
    /// Earlier ones may still come.
    held: Vec<Seen>,
    /// True if those held are out of order.
    is_unsorted: bool,
    /// The latest time since the last jump.
    newest_ns: Option<u64>,
    /// The earliest time of those held.
    oldest_held_ns: u64,
    /// Time of the last one released since the last jump.
    floor_ns: u64,
    /// Consecutive packets far from `newest_ns`.
    far: VecDeque<Far>,
    /// Packets of the first stretch of time; empty after a jump.
    first_stretch: usize,
    has_jumped: bool,
    facts: TimeFacts,
}

#[derive(Debug, Clone, Copy)]
struct Far {
    seen: Seen,
    /// Known to be isolated.
    is_settled: bool,
}

impl Timeline {
    pub fn facts(&self) -> &TimeFacts {
        &self.facts
    }

    /// The next packet to release.
    #[inline]
    pub fn head(&self) -> Option<&Seen> {
        self.ready.front()
    }

    #[inline]
    pub fn pop(&mut self) -> Option<Seen> {
        self.ready.pop_front()
    }

    /// The next packet of the file.
    #[inline]
    pub fn push(&mut self, seen: Seen) {
        if self.far.is_empty() && self.is_near(seen.time_ns()) {
            self.join(seen);
        } else {
            self.on_far(seen);
        }
    }

    /// The file has ended.
    pub fn finish(&mut self) {
        if self.newest_ns.is_none() {
            self.start();
        }
        while let Some(Far { seen, is_settled }) = self.far.pop_front() {
            let time_ns = seen.time_ns();
            let newest = self.newest_ns.unwrap_or(time_ns);
            let next = self.far.front().map(|far| far.seen.time_ns());
            let pause_ns = longest_pause(next.is_some_and(|ns| ns.abs_diff(time_ns) <= FAR_NS));
            let is_wrong = time_ns > newest.saturating_add(pause_ns)
                || newest > time_ns.saturating_add(FAR_NS);
            if is_settled {
                self.join(seen);
            } else if is_wrong {
                self.restore_and_join(seen, newest);
            } else if time_ns > newest.saturating_add(FAR_NS) {
                self.begin(seen);
            } else {
                self.join(seen);
            }
        }
        self.release_all();
    }

    #[inline]
    fn is_near(&self, time_ns: u64) -> bool {
        self.newest_ns.is_some_and(|newest| {
            time_ns.saturating_add(SORT_WINDOW_NS) >= newest
                && time_ns <= newest.saturating_add(FAR_NS)
        })
    }

    #[cold]
    fn on_far(&mut self, seen: Seen) {
        if self.newest_ns.is_some() {
            self.settle_before(seen.time_ns());
        }
        self.far.push_back(Far {
            seen,
            is_settled: false,
        });
        if self.newest_ns.is_none() && self.far.len() > MOST_WRONG_STAMPS {
            self.start();
        }
        self.join_near();
        if self.far.len() > MOST_WRONG_STAMPS {
            if let Some(Far { seen, .. }) = self.far.pop_front() {
                self.begin(seen);
            }
            self.join_near();
        }
    }

    /// The file begins with the first packet that most of the following ones are close to.
    fn start(&mut self) {
        let first: Vec<Seen> = self.far.drain(..).map(|far| far.seen).collect();
        let is_start = |at: &usize| {
            let behind = first.get(at + 1..).unwrap_or_default();
            let begin_ns = first.get(*at).map_or(0, Seen::time_ns);
            let follows = |seen: &&Seen| seen.time_ns().saturating_add(SORT_WINDOW_NS) >= begin_ns;
            behind.iter().filter(follows).count() * 2 >= behind.len()
        };
        let at = (0..first.len()).find(is_start).unwrap_or_default();
        let Some(begin_ns) = first.get(at).map(Seen::time_ns) else {
            return;
        };
        self.newest_ns = Some(begin_ns);
        self.oldest_held_ns = begin_ns;
        for (number, seen) in first.into_iter().enumerate() {
            if number < at {
                self.restore_and_join(seen, begin_ns);
            } else {
                self.push(seen);
            }
        }
    }

    /// Settles the last far packets that are isolated, because a packet of `time_ns` continues what was
    /// before them.
    fn settle_before(&mut self, time_ns: u64) {
        let mut before = self.newest_ns;
        for from in 0..self.far.len() {
            let follows = before.is_none_or(|ns| time_ns.saturating_add(SORT_WINDOW_NS) >= ns);
            let is_alone = |far: &Far| {
                let at_ns = far.seen.time_ns();
                far.is_settled
                    || at_ns > time_ns.saturating_add(FAR_NS)
                    || before.is_some_and(|ns| ns > at_ns.saturating_add(SORT_WINDOW_NS))
            };
            if follows && self.far.range(from..).all(is_alone) {
                self.settle_from(from, before.unwrap_or(time_ns));
                return;
            }
            before = self.far.get(from).map(|far| far.seen.time_ns());
        }
    }

    fn settle_from(&mut self, from: usize, place_ns: u64) {
        let mut alone = self.far.split_off(from);
        for far in &mut alone {
            if !far.is_settled && far.seen.time_ns().abs_diff(place_ns) > FAR_NS {
                self.restore(&mut far.seen, place_ns);
            }
            far.is_settled = true;
        }
        self.far.append(&mut alone);
    }

    /// Accept far packets that are no longer far.
    fn join_near(&mut self) {
        while let Some(&Far { seen, is_settled }) = self.far.front()
            && self.newest_ns.is_some()
            && (is_settled || self.is_near(seen.time_ns()))
        {
            self.far.pop_front();
            self.join(seen);
        }
    }

    /// Times continue from here.
    fn begin(&mut self, mut seen: Seen) {
        let time_ns = seen.time_ns();
        let newest = self.newest_ns.unwrap_or(time_ns);
        let is_head = !self.has_jumped && self.first_stretch <= MOST_WRONG_STAMPS;
        let pause_ns = longest_pause(self.first_stretch > 1);
        if is_head && self.ready.is_empty() && newest.saturating_add(pause_ns) < time_ns {
            self.restore_head(time_ns);
        } else {
            self.release_all();
            seen.jumps = true;
            self.has_jumped = true;
        }
        self.newest_ns = Some(time_ns);
        self.oldest_held_ns = time_ns;
        self.floor_ns = 0;
        self.join(seen);
    }

    fn restore_head(&mut self, time_ns: u64) {
        let mut head = std::mem::take(&mut self.held);
        for seen in &mut head {
            self.restore(seen, time_ns);
        }
        self.held = head;
    }

    fn restore_and_join(&mut self, mut seen: Seen, time_ns: u64) {
        self.restore(&mut seen, time_ns);
        self.join(seen);
    }

    fn restore(&mut self, seen: &mut Seen, time_ns: u64) {
        let taken_for_ns = time_ns;
        let stamped_ns = std::mem::replace(&mut seen.sighting.time_ns, taken_for_ns);
        if std::mem::replace(&mut seen.sighting.time_is_restored, true) {
            return;
        }
        self.facts.wrong_stamps += 1;
        if self.facts.named_wrong_stamps.len() < MOST_NAMED {
            self.facts.named_wrong_stamps.push(WrongStamp {
                record: seen.record,
                stamped_ns,
                taken_for_ns,
            });
        }
    }

    #[inline]
    fn join(&mut self, seen: Seen) {
        let time_ns = seen.time_ns();
        let newest = self.newest_ns.map_or(time_ns, |ns| ns.max(time_ns));
        if time_ns < newest {
            self.on_late(time_ns, newest);
        }
        self.newest_ns = Some(newest);
        self.first_stretch = self.first_stretch.saturating_add(1);
        self.held.push(seen);
        // Twice the window, so that one sort releases half of it.
        let span_ns = newest.saturating_sub(self.oldest_held_ns);
        if span_ns >= 2 * SORT_WINDOW_NS || self.held.len() >= MOST_HELD {
            self.release(newest.saturating_sub(SORT_WINDOW_NS));
        }
    }

    #[cold]
    fn on_late(&mut self, time_ns: u64, newest_ns: u64) {
        self.facts.out_of_order += 1;
        self.facts.most_out_of_order_ns = self.facts.most_out_of_order_ns.max(newest_ns - time_ns);
        self.facts.beyond_window += u64::from(time_ns < self.floor_ns);
        self.is_unsorted = true;
        self.oldest_held_ns = self.oldest_held_ns.min(time_ns);
    }

    /// Release the packets up to `until_ns`; if many are held, at least half of them.
    fn release(&mut self, until_ns: u64) {
        self.sort();
        let due = self.held.partition_point(|seen| seen.time_ns() <= until_ns);
        let least = if self.held.len() >= MOST_HELD {
            MOST_HELD / 2
        } else {
            0
        };
        let due = due.max(least);
        if let Some(last) = self.held.get(..due).and_then(<[Seen]>::last) {
            self.floor_ns = last.time_ns();
        }
        self.ready.extend(self.held.drain(..due));
        let first = self.held.first().map(Seen::time_ns);
        self.oldest_held_ns = first.or(self.newest_ns).unwrap_or(0);
    }

    fn release_all(&mut self) {
        self.sort();
        self.ready.append(&mut self.held.drain(..).collect());
    }

    fn sort(&mut self) {
        if std::mem::take(&mut self.is_unsorted) {
            // Stable: packets with equal times keep the order of the file.
            self.held.sort_by_key(Seen::time_ns);
        }
    }
}

/// Longest pause before or behind a few records at the end or the beginning of a file.
const fn longest_pause(are_several: bool) -> u64 {
    if are_several { MONTH_NS } else { DAY_NS }
}

#[cfg(test)]
mod tests;
