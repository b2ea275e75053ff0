//! The event queue: what happens next, in a total order.
//!
//! Everything that acts in a network — a source, a link, a device — has at most one event
//! pending, so the queue is a table of times with a place for each of them, and above it a tree of
//! minima, eight children per node, with up to four roots. Connections and applications have a tree of their own: there
//! may be thousands, and their timers seldom change, so they must not make the tree of the links
//! and ports deeper. Scheduling writes a time and updates the minima above it; the
//! next event is found by descending the tree to the minimum. A small network is one group: then
//! scheduling is one store, and taking an event finds the next one by eight comparisons, without a branch.
//! Scheduling again replaces the pending event, so a rescheduled timer leaves no stale entry.
//! `benches/event_queue.rs` compares this with a binary heap.
//!
//! Events of one nanosecond happen in the order in which the queue was given its actors: sources,
//! ends of links, ports, flow control, room for connections, their timers, applications. So a frame that arrives in the nanosecond in which a port may send is
//! considered.

use slicewise_units::Instant;
use std::hint::select_unpredictable;

/// Kind of event. The number is the index of the affected object in the network's table of that kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A source sends its next frame.
    Departure(u32),
    /// A frame reaches the end of the link that this port sends on.
    Arrival(u32),
    /// The packet of a chain of sources reaches the end of its link.
    Chain(u32),
    /// The timer of a node for one of its ports: the port may send.
    Timer(u32),
    /// A link's flow control: a pause frame has arrived, or is sent again.
    FlowControl(u32),
    /// Data of an end of a connection has left its adapter, and the end may send more.
    Room(u32),
    /// The timer of an end of a connection.
    Connection(u32),
    /// An application, or its server, does what is due.
    Application(u32),
}

/// Where an actor has its pending event: its position in the list the queue was made of.
pub type Place = u32;

/// Most actors of a network.
pub const MAX_ACTORS: u32 = 1 << 24;
/// Children of a node: their times fill one cache line, and the least of them is found by
/// comparing all, which needs no branch.
const WIDTH: usize = 8;
/// Low bits of a time that hold its place among its neighbours, so that the minimum is found
/// together with its place, and the first of equal times is the minimum.
const LANE_BITS: u32 = WIDTH.trailing_zeros();
const LANE_MASK: u64 = WIDTH as u64 - 1;
/// The time of an actor with no pending event. Events scheduled for later, more than 73 years from
/// the origin, never happen either.
const NEVER: u64 = u64::MAX >> LANE_BITS;

/// The times of [`WIDTH`] neighbours, with their lanes.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Group([u64; WIDTH]);

impl Group {
    const IDLE: Self = {
        let mut entries = [NEVER << LANE_BITS; WIDTH];
        let mut lane = 0;
        while lane < WIDTH {
            entries[lane] |= lane as u64;
            lane += 1;
        }
        Self(entries)
    };

    #[inline]
    fn set(&mut self, lane: usize, at: u64) {
        self.0[lane % WIDTH] = (at << LANE_BITS) | (lane % WIDTH) as u64;
    }

    #[inline]
    fn time(&self, lane: usize) -> u64 {
        self.0[lane % WIDTH] >> LANE_BITS
    }

    /// The least time, with the first lane that holds it.
    #[inline]
    fn first(&self) -> u64 {
        let [a, b, c, d, e, f, g, h] = self.0;
        a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h)))
    }

    /// The least time, and the first lane that holds it.
    #[inline]
    fn least(&self) -> (u64, usize) {
        parts(self.first())
    }
}

/// A time and its lane.
#[inline]
const fn parts(entry: u64) -> (u64, usize) {
    (entry >> LANE_BITS, (entry & LANE_MASK) as usize)
}

/// Most groups of the last level.
const ROOTS: usize = 4;
/// No place.
const NOWHERE: usize = usize::MAX;
/// Levels of the largest tree: 4·8⁸ actors, of which [`MAX_ACTORS`] are allowed.
const MAX_LEVELS: usize = 8;
const _: () = assert!(ROOTS << (LANE_BITS as usize * MAX_LEVELS) >= MAX_ACTORS as usize);

/// The times of some actors, and the least of them.
#[derive(Debug, Clone)]
struct Tree {
    /// Level after level. Level 0 holds the time of every actor, each level above it the least
    /// time of every group below; the last level is at most [`ROOTS`] groups.
    groups: Vec<Group>,
    /// Where each level starts in `groups`, and the last of them.
    starts: [usize; MAX_LEVELS],
    roots: usize,
    levels: usize,
    /// Of a tree that is one group: no entry is less; mostly it is the least. Otherwise 0.
    bound: u64,
}

impl Tree {
    fn new(actors: usize) -> Option<Self> {
        let mut width = actors.div_ceil(WIDTH).max(1);
        let (mut starts, mut levels, mut total) = ([0; MAX_LEVELS], 1, width);
        while width > ROOTS {
            *starts.get_mut(levels)? = total;
            width = width.div_ceil(WIDTH);
            total += width;
            levels += 1;
        }
        Some(Self {
            groups: vec![Group::IDLE; total],
            roots: starts[levels - 1],
            starts,
            levels,
            bound: 0,
        })
    }

    /// The least time, and its place on the last level.
    #[inline(always)]
    fn least(&self) -> (u64, usize) {
        let mut least = self.groups[self.roots].least();
        for (root, group) in (1..).zip(&self.groups[self.roots + 1..]) {
            let (time, lane) = group.least();
            let other = (time, root * WIDTH + lane);
            least = select_unpredictable(time < least.0, other, least);
        }
        least
    }

    /// The actor that has the least time, which is at `place` on the last level.
    #[inline]
    fn descend(&self, mut place: usize) -> usize {
        for level in (1..self.levels).rev() {
            let (_, lane) = self.groups[self.starts[level - 1] + place].least();
            place = place * WIDTH + lane;
        }
        place
    }

    /// The least time, and the actor that has it.
    #[inline(always)]
    fn earliest(&mut self) -> (u64, usize) {
        // As small networks have it.
        if let [only] = &*self.groups {
            let (_, lane) = parts(self.bound);
            if only.0[lane] != self.bound {
                self.bound = only.first();
            }
            return parts(self.bound);
        }
        let (time, place) = self.least();
        (time, self.descend(place))
    }

    /// In a tree of one group, remove the time of an actor, and find the least of the others.
    #[inline(always)]
    fn try_take(&mut self, place: usize) -> bool {
        let [only] = &mut *self.groups else {
            return false;
        };
        only.set(place, NEVER);
        self.bound = only.first();
        true
    }

    /// Set a time on level 0, and what follows from it above.
    #[inline]
    fn set(&mut self, place: usize, at: u64) {
        if let [only] = &mut *self.groups {
            only.set(place, at);
            self.bound = self.bound.min(only.0[place % WIDTH]);
            return;
        }
        self.groups[place / WIDTH].set(place, at);
        if self.levels > 1 {
            self.update_minima(place / WIDTH);
        }
    }

    /// A time of `group` on level 0 has changed: update the minima above it, up to the first that
    /// does not change.
    #[inline(never)]
    fn update_minima(&mut self, mut group: usize) {
        for level in 1..self.levels {
            let (least, _) = self.groups[self.starts[level - 1] + group].least();
            let above = self.starts[level] + group / WIDTH;
            if self.groups[above].time(group) == least {
                return;
            }
            self.groups[above].set(group, least);
            group /= WIDTH;
        }
    }
}

/// The pending events of a network.
#[derive(Debug, Clone)]
pub struct EventQueue {
    /// The times of sources, links and ports: few, and one of them changes with every event.
    first: Tree,
    /// The times of connections and applications: many, and they change seldom.
    second: Tree,
    /// The least of `second`, and its place on the last level: most events change nothing there.
    second_least: (u64, usize),
    /// How many actors are in `first`; the others follow them.
    split: usize,
    /// The place of the event taken last, [`NOWHERE`] once that is vacated: what an event does
    /// usually schedules its own successor, which saves vacating the place before.
    spent: usize,
    /// Event at each place.
    events: Vec<Event>,
    /// Events taken, and those that happened without.
    pub(crate) handled: u64,
}

impl EventQueue {
    /// A queue of actors of which each can have one event pending, none of them has, in this order
    /// of precedence; `None` for more than [`MAX_ACTORS`].
    #[must_use]
    pub fn new(events: Vec<Event>) -> Option<Self> {
        if events.len() > MAX_ACTORS as usize {
            return None;
        }
        let is_second = |event: &Event| {
            matches!(
                event,
                Event::Room(_) | Event::Connection(_) | Event::Application(_)
            )
        };
        let split = events.iter().position(is_second).unwrap_or(events.len());
        let second = Tree::new(events.len() - split)?;
        Some(Self {
            first: Tree::new(split)?,
            second_least: second.least(),
            second,
            split,
            spent: NOWHERE,
            events,
            handled: 0,
        })
    }

    /// Schedule the event of `place` for `at`; this replaces an earlier schedule. At
    /// [`Instant::MAX`] it never happens.
    #[inline]
    pub fn schedule(&mut self, at: Instant, place: Place) {
        let place = place as usize;
        if place == self.spent {
            self.spent = NOWHERE;
        }
        self.set(place, at.nanos().min(NEVER));
    }

    /// Take the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Instant, Event)> {
        self.pop_until(Instant::MAX)
    }

    /// Take the earliest event, if it is no later than `end`.
    #[inline(always)]
    pub fn pop_until(&mut self, end: Instant) -> Option<(Instant, Event)> {
        if self.spent != NOWHERE {
            self.vacate();
        }
        let (mut least, mut place) = self.first.earliest();
        if self.second_least.0 < least {
            (least, place) = (self.second_least.0, self.first_of_second());
        }
        if least > end.nanos().min(NEVER - 1) {
            return None;
        }
        if !(place < self.split && self.first.try_take(place)) {
            self.spent = place;
        }
        self.handled += 1;
        Some((Instant::from_nanos(least), self.events[place]))
    }

    /// Returns true if an event at `at` would be the next, unless the event taken last is pending again. May return
    /// false where it would.
    #[inline]
    pub fn is_next(&self, at: Instant) -> bool {
        let (least, _) = parts(self.first.bound);
        at.nanos() < least.min(self.second_least.0)
    }

    /// The place of the earliest event of the second tree.
    #[inline(never)]
    fn first_of_second(&self) -> usize {
        self.split + self.second.descend(self.second_least.1)
    }

    /// No event is pending at the place of the event taken last.
    #[inline(never)]
    fn vacate(&mut self) {
        self.set(self.spent, NEVER);
        self.spent = NOWHERE;
    }

    #[inline]
    fn set(&mut self, place: usize, at: u64) {
        if place < self.split {
            self.first.set(place, at);
        } else {
            self.set_second(place - self.split, at);
        }
    }

    /// Not inlined, as it happens seldom.
    #[inline(never)]
    fn set_second(&mut self, place: usize, at: u64) {
        self.second.set(place, at);
        self.second_least = self.second.least();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    fn queue(departures: u32) -> EventQueue {
        EventQueue::new((0..departures).map(Event::Departure).collect()).unwrap()
    }

    fn drain(queue: &mut EventQueue) -> Vec<Event> {
        std::iter::from_fn(|| queue.pop())
            .map(|popped| popped.1)
            .collect()
    }

    #[test]
    fn events_of_one_nanosecond_happen_in_the_order_of_the_actors_whatever_that_of_scheduling() {
        let actors: Vec<Event> = (0..30)
            .map(Event::Departure)
            .chain((0..20).map(Event::Arrival))
            .chain((0..50).map(Event::Timer))
            .chain((0..30).map(Event::Connection))
            .chain((0..5).map(Event::Application))
            .collect();
        let mut queue = EventQueue::new(actors.clone()).unwrap();
        for place in (0..135).rev() {
            queue.schedule(at(7), place);
        }
        assert_eq!(drain(&mut queue), actors);
    }

    #[test]
    fn nobody_and_too_many_are_no_accident() {
        assert_eq!(queue(0).pop(), None);
        let actors = vec![Event::Departure(0); MAX_ACTORS as usize + 1];
        assert!(EventQueue::new(actors).is_none());
    }

    #[test]
    fn an_event_after_the_end_stays_pending() {
        let mut queue = queue(2);
        queue.schedule(at(5), 0);
        queue.schedule(at(9), 1);
        assert_eq!(queue.pop_until(at(4)), None);
        assert_eq!(queue.pop_until(at(5)), Some((at(5), Event::Departure(0))));
        assert_eq!(queue.pop_until(at(8)), None);
        assert_eq!(queue.pop(), Some((at(9), Event::Departure(1))));
    }

    #[test]
    fn scheduling_again_replaces_and_never_cancels() {
        let mut queue = queue(2);
        queue.schedule(at(5), 0);
        queue.schedule(at(9), 0);
        queue.schedule(at(7), 1);
        assert_eq!(queue.pop(), Some((at(7), Event::Departure(1))));
        queue.schedule(Instant::MAX, 0);
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn in_a_small_network_it_is_known_what_comes_before_all_that_is_pending() {
        let mut queue = queue(3);
        queue.schedule(at(5), 0);
        queue.schedule(at(9), 2);
        assert_eq!(queue.pop(), Some((at(5), Event::Departure(0))));
        let is_next = |queue: &EventQueue| [8, 9, 10].map(|nanos| queue.is_next(at(nanos)));
        assert_eq!(is_next(&queue), [true, false, false]);
        queue.schedule(at(8), 1);
        assert_eq!(is_next(&queue), [false; 3]);
        assert_eq!(queue.pop(), Some((at(8), Event::Departure(1))));
        assert_eq!(queue.pop(), Some((at(9), Event::Departure(2))));
        assert_eq!(is_next(&queue), [true; 3]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Compare with the obvious model: a list of pending events, searched for the minimum.
        #[test]
        fn agrees_with_a_list(
            first in prop_oneof![0u32..100, 0u32..10],
            second in prop_oneof![0u32..600, 0u32..4],
            steps in prop::collection::vec(prop::option::of((0u32..600, 0u64..30)), 1..300),
        ) {
            let actors = (first + second).max(1);
            let event = |actor| if actor < first.max(1) {
                Event::Arrival(actor)
            } else {
                Event::Connection(actor)
            };
            let mut queue = EventQueue::new((0..actors).map(event).collect()).unwrap();
            let mut pending: Vec<Option<u64>> = vec![None; actors as usize];
            for step in steps {
                if let Some((actor, nanos)) = step {
                    let actor = actor % actors;
                    queue.schedule(at(nanos), actor);
                    pending[actor as usize] = Some(nanos);
                } else {
                    let least = (0..actors)
                        .filter_map(|actor| pending[actor as usize].map(|nanos| (nanos, actor)))
                        .min();
                    let expected = least.map(|(nanos, actor)| {
                        pending[actor as usize] = None;
                        (at(nanos), event(actor))
                    });
                    prop_assert_eq!(queue.pop(), expected);
                }
                let earliest = pending.iter().flatten().min();
                for nanos in 0..31 {
                    let would_be = earliest.is_none_or(|&earliest| nanos < earliest);
                    prop_assert!(would_be || !queue.is_next(at(nanos)), "{nanos}");
                }
            }
        }
    }
}
