//! Class maps of several slices that are exchanged at once for others.
//!
//! Where class maps meet, the first that matches a frame decides. So those that change change together, and from then on every frame
//! is of the class that the new ones say. Until the older frames of the slices that lose some have left, the class of a frame that any
//! of them matches, old or new, is found by testing both in their order: if it differs, the frame
//! [waits](super::moving) beside the queue of its new class. Frames that none of them matches are found as ever.

use super::{Changing, SliceChangeError, on_slices};
use crate::classifier::{Entry, Part};
use crate::guaranteed::Place;
use crate::pipeline::Pipeline;
use crate::scheduler::QueueId;
use slicewise_model::ClassMap;
use slicewise_units::Instant;
use slicewise_wire::Headers;
use std::collections::{BTreeMap, BTreeSet};

/// Other class maps for slices, all at once: [`Pipeline::exchange_class_maps`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassMaps {
    /// Slices, each with its class map from then on, and the position of that in the order.
    pub(crate) placed: Vec<(String, ClassMap, u32)>,
    /// Other slices that may lose frames.
    pub(crate) from: Vec<String>,
}

impl ClassMaps {
    /// With those of another one.
    pub(crate) fn append(&mut self, other: &mut Self) {
        self.placed.append(&mut other.placed);
        self.from.append(&mut other.from);
    }
}

/// Class maps that were exchanged, until the frames have left that the slices had.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// Frames that any of the class maps matches have this class number.
    class: u32,
    /// The class maps before and since then. Where they lead is in the order in which they are tested.
    maps: [Vec<(Entry, ClassMap)>; 2],
    /// All of them.
    part: Part,
    /// The classes that may lose frames, and what has to leave first.
    places: BTreeMap<u32, Before>,
    /// The class numbers of frames that wait, by the class that they are of and that they were of.
    ways: BTreeMap<(u32, u32), u32>,
}

/// Frames of a class before a place.
#[derive(Debug, Clone, Copy)]
struct Before {
    class: u32,
    place: Place,
}

impl Exchange {
    /// The class numbers of frames that wait beside the queue of a class.
    pub(super) fn ways_into(&self, class: u32) -> impl Iterator<Item = u32> {
        let ways = self.ways.range((class, 0)..=(class, u32::MAX));
        ways.map(|(_, way)| *way)
    }

    /// No frames wait with this class number any more.
    pub(super) fn end_way(&mut self, way: u32) {
        self.ways.retain(|_, own| *own != way);
    }
}

/// Carry out an exchange.
pub(crate) fn exchange(
    pipeline: &mut Pipeline,
    maps: &ClassMaps,
    now: Instant,
) -> Result<(), SliceChangeError> {
    on_slices(pipeline, now, |changing| {
        changing.settle();
        changing.exchange(maps)
    })
}

impl Changing<'_> {
    fn exchange(&mut self, change: &ClassMaps) -> Result<(), SliceChangeError> {
        let (mut part, mut old, mut new) = (Part::default(), Vec::new(), Vec::new());
        for (name, map, order) in &change.placed {
            if self.ledger.exchange.is_some() {
                return Err(self.being_exchanged(name));
            }
            let (class, _) = self.check_remove(name)?;
            if let Some((order, map)) = self.ledger.placed(class) {
                old.push((Entry::new(order, class), map.clone()));
                part.extend(Part::whole(map));
            }
            new.push((Entry::new(*order, class), map.clone()));
            part.extend(Part::whole(map));
        }
        let Some((name, ..)) = change.placed.first() else {
            return Ok(());
        };
        self.check_still(name, &part, None)?;
        let most = u32::try_from(self.pipeline.classes.len()).unwrap_or(u32::MAX);
        let numbered = self.pipeline.classifier.check(0, most.saturating_add(1));
        numbered.map_err(|error| SliceChangeError::from((name, error)))?;
        let from = change.from.iter().map(|name| self.find(name));
        let from: Vec<_> = from.collect::<Result<_, _>>()?;
        let mut from: Vec<u32> = from.into_iter().map(|(class, _)| class).collect();
        from.push(self.ledger.default);
        from.extend(old.iter().map(|(entry, _)| entry.target()));
        self.check_in_order(name, &from)?;
        let places = from.into_iter().map(|class| (class, self.before(class)));
        let places = places.collect();
        let class = self.take_place();
        let classifier = &mut self.pipeline.classifier;
        for (entry, map) in &old {
            classifier.remove_all(entry.target(), [map]);
        }
        // Whatever is tested before the first of them stays before all of them.
        let first = old.iter().chain(&new).map(|(entry, _)| entry.order()).min();
        for (_, map) in old.iter().chain(&new) {
            classifier.insert_at(first.unwrap_or(0), class, map);
        }
        for (entry, map) in &new {
            let (class, order) = (entry.target(), entry.order());
            self.ledger.place(class, map.clone(), order);
        }
        self.ledger.exchange = Some(Box::new(Exchange {
            class,
            maps: [old, new],
            part,
            places,
            ways: BTreeMap::new(),
        }));
        self.finish_exchange();
        self.on_changed();
        Ok(())
    }

    /// Refuse it while frames wait in a queue for each flow of a class that may lose frames. They do not leave in the order in which they
    /// came, so none may wait before frames of such a class can go elsewhere, and others may come all the time.
    fn check_in_order(&self, name: &str, from: &[u32]) -> Result<(), SliceChangeError> {
        let is_mixed = |class: &&u32| {
            let frames = self.pipeline.tree.packets(self.queue_of(**class));
            frames > 0 && self.ledger.flow_queue(**class).is_some()
        };
        match from.iter().find(is_mixed) {
            Some(&class) => Err(self.moving_from(name, class)),
            None => Ok(()),
        }
    }

    /// What has to leave before frames of a class, as it is now, can go elsewhere. Where the class has none, but still waits for frames of
    /// class-default, some of its flows may be among these.
    fn before(&mut self, class: u32) -> Before {
        let slice = self.queue_of(class).slice();
        let scheduler = self.scheduler("");
        let is_held = scheduler.is_ok_and(|(scheduler, _)| scheduler.is_held_empty(slice));
        let class = if is_held { self.ledger.default } else { class };
        Before {
            class,
            place: self.end_of(class),
        }
    }

    /// Complete the exchange if the frames have left that the slices had.
    pub(super) fn finish_exchange(&mut self) {
        while let Some(exchange) = &self.ledger.exchange
            && let Some((&from, &before)) = exchange.places.first_key_value()
        {
            if !self.is_past(before.class, before.place) {
                return;
            }
            self.end_ways_from(from);
        }
        let Some(exchange) = self.ledger.exchange.take() else {
            return;
        };
        let Exchange { class, maps, .. } = *exchange;
        self.free(class);
        let classifier = &mut self.pipeline.classifier;
        classifier.remove_all(class, maps.iter().flatten().map(|(_, map)| map));
        let [_, new] = maps;
        for (entry, map) in new {
            classifier.insert_at(entry.order(), entry.target(), &map);
        }
    }

    /// The frames of a class that had to leave have left: those that wait for them go on.
    fn end_ways_from(&mut self, from: u32) {
        let Some(exchange) = &mut self.ledger.exchange else {
            return;
        };
        exchange.places.remove(&from);
        let ways = exchange.ways.iter();
        let ways = ways.filter_map(|((_, of), way)| (*of == from).then_some(*way));
        for way in ways.collect::<Vec<u32>>() {
            self.try_finish(way);
        }
    }

    /// The class of a frame that class maps match which are exchanged, or the class number with which it waits; `None` where `class` is
    /// not theirs.
    pub(super) fn exchanged(&mut self, class: u32, headers: &Headers) -> Option<u32> {
        let exchange = self.ledger.exchange.as_ref()?;
        if exchange.class != class {
            return None;
        }
        let other = self.pipeline.classifier.entry_but(headers, class);
        let [from, into] = exchange.maps.each_ref().map(|maps| {
            let matching = maps.iter().filter(|(_, map)| map.matches(headers));
            let first = matching.map(|(entry, _)| *entry).chain([other]).min();
            first.unwrap_or(other).target()
        });
        let before = exchange.places.get(&from).copied();
        let Some(before) = before.filter(|_| from != into) else {
            return Some(into);
        };
        if self.is_past(before.class, before.place) {
            self.end_ways_from(from);
            return Some(into);
        }
        let way = self.ledger.exchange.as_ref()?.ways.get(&(into, from));
        let way = way.copied().unwrap_or_else(|| {
            let way = self.start_way(before.class, into, before.place);
            if let Some(exchange) = &mut self.ledger.exchange {
                exchange.ways.insert((into, from), way);
            }
            way
        });
        Some(way)
    }

    /// Refuse to take away a slice that may get or lose frames with the class maps that are exchanged.
    pub(super) fn check_not_exchanged(
        &self,
        name: &str,
        class: u32,
    ) -> Result<(), SliceChangeError> {
        let Some(exchange) = &self.ledger.exchange else {
            return Ok(());
        };
        if exchange.places.contains_key(&class) {
            return Err(self.being_exchanged(name));
        }
        let map = self.ledger.matches(class);
        let part = map.map(Part::whole).unwrap_or_default();
        self.check_apart(name, &part)
    }

    /// Refuse frames that class maps match which are exchanged.
    pub(super) fn check_apart(&self, name: &str, part: &Part) -> Result<(), SliceChangeError> {
        match &self.ledger.exchange {
            Some(exchange) if exchange.part.overlaps(part) => Err(self.being_exchanged(name)),
            _ => Ok(()),
        }
    }

    fn being_exchanged(&self, name: &str) -> SliceChangeError {
        let exchange = self.ledger.exchange.as_ref();
        let of = exchange.and_then(|exchange| exchange.places.keys().next().copied());
        self.moving_from(name, of.unwrap_or(self.ledger.default))
    }

    fn moving_from(&self, name: &str, of: u32) -> SliceChangeError {
        let class = self.pipeline.classes.get(of as usize);
        SliceChangeError::Moving {
            name: name.to_owned(),
            of: class.map_or_else(String::new, |class| class.counters.class.clone()),
            frames: self.pipeline.tree.packets(self.queue_of(of)),
        }
    }

    /// The policy is being replaced: the queues whose frames are before those that get another class.
    pub(super) fn ahead_of_exchange(&mut self) -> BTreeSet<QueueId> {
        let exchange = self.ledger.exchange.take();
        let places = exchange.map(|exchange| exchange.places).unwrap_or_default();
        let classes = places.into_keys();
        classes.map(|class| self.queue_of(class)).collect()
    }
}
