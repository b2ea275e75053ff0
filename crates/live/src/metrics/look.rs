//! A look at what the classes of an engine have counted, a few at a time, so that forwarding goes on in between.

use super::{ClassSnapshot, DirectionSnapshot, TOP_CLASSES};
use crate::engine::Engine;
use crate::histogram::Histogram;
use slicewise_dataplane::ClassCounters;
use slicewise_units::{BothWays, Way};

/// Both directions. If classes get other numbers, begin anew.
#[derive(Debug, Default)]
pub struct Look {
    directions: BothWays<Seen>,
}

/// Classes that have been looked at.
#[derive(Debug, Default)]
struct Seen {
    /// The number of the next.
    next: u32,
    /// Those with the most offered bytes, most first; of equal ones those with lower numbers. Never more than [`TOP_CLASSES`].
    top: Vec<(u32, Box<ClassSnapshot>)>,
    /// All others together.
    others: Option<ClassCounters>,
    backlog: u64,
}

impl Look {
    /// Look at so many more classes; `None` until that were all. Work: O(`most`).
    pub fn advance(&mut self, engine: &Engine, mut most: u32) -> Option<[DirectionSnapshot; 2]> {
        for (way, seen) in self.directions.iter_mut() {
            most -= seen.advance(engine, way, most);
            if engine.class(way, seen.next).is_some() {
                return None;
            }
        }
        let BothWays { forward, backward } = std::mem::take(self).directions;
        Some([
            forward.finish(engine, Way::Forward),
            backward.finish(engine, Way::Backward),
        ])
    }
}

impl Seen {
    /// Look at the next classes, at most so many; returns how many.
    fn advance(&mut self, engine: &Engine, way: Way, most: u32) -> u32 {
        let first = self.next;
        while self.next - first < most
            && let Some((counters, delay)) = engine.class(way, self.next)
        {
            // Places of slices that are gone have no name.
            if !counters.class.is_empty() {
                self.add(self.next, counters, delay);
            }
            self.next += 1;
        }
        self.next - first
    }

    fn add(&mut self, class: u32, counters: &ClassCounters, delay: &Histogram) {
        self.backlog += counters.queued_frames;
        let is_full = self.top.len() == TOP_CLASSES;
        let has_more = |(_, other): &(u32, Box<ClassSnapshot>)| {
            other.counters.offered_bytes >= counters.offered_bytes
        };
        if is_full && self.top.last().is_some_and(has_more) {
            return self.add_to_others(counters);
        }
        let place = self.top.partition_point(has_more);
        let (counters, delay) = (counters.clone(), delay.clone());
        let seen = ClassSnapshot { counters, delay };
        let least = if is_full { self.top.pop() } else { None };
        let seen = match least {
            Some((_, mut least)) => {
                self.add_to_others(&least.counters);
                *least = seen;
                least
            }
            None => Box::new(seen),
        };
        self.top.insert(place, (class, seen));
    }

    fn add_to_others(&mut self, counters: &ClassCounters) {
        let others = self.others.get_or_insert_with(|| ClassCounters {
            class: "(other)".to_owned(),
            ..ClassCounters::default()
        });
        others.absorb(counters);
    }

    fn finish(mut self, engine: &Engine, way: Way) -> DirectionSnapshot {
        if self.others.is_none() {
            // All are there, in their own order.
            self.top.sort_by_key(|(class, _)| *class);
        }
        DirectionSnapshot {
            counters: engine.counters(way).clone(),
            backlog: self.backlog,
            classes: self.top.into_iter().map(|(_, class)| *class).collect(),
            others: self.others,
            elephants: engine
                .elephants(way)
                .take(TOP_CLASSES)
                .map(|(class, flows)| (class.to_owned(), flows))
                .collect(),
            delay: engine.delay(way).clone(),
            lateness: engine.lateness(way).clone(),
        }
    }
}
