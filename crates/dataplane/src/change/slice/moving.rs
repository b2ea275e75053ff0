//! Frames on their way from one class to another.
//!
//! When a slice is removed, or its class map is replaced, arriving frames change classes while older ones of their flows
//! wait in the queue of the class that they had. They are kept beside the queue of the class that they get, and
//! [join](crate::scheduler::Tree::join) it when the older ones have left. Meanwhile they have a class number of
//! their own, so finding them costs no more than finding any class, and frames of other classes pay nothing.

mod arrival;

pub(crate) use arrival::{Arrived, Arriving};

use super::{Changing, SliceChangeError, SliceChanged};
use crate::build::{self, ClassState};
use crate::change::ledger::Slice;
use crate::classifier::{Part, Parts, Split};
use crate::guaranteed::Place;
use crate::pipeline::Pipeline;
use crate::queue::{FrameList, QueuedFrame};
use crate::scheduler::QueueId;
use slicewise_model::{ClassMap, Reservation};
use std::collections::BTreeSet;

/// Frames that have a class number of their own until older ones have left.
#[derive(Debug)]
pub(crate) struct Moving {
    part: Part,
    /// The class that they belong to.
    into: u32,
    /// Those that wait.
    held: FrameList,
    way: Way,
    /// Frames that the frame memory has room for because of it.
    room: u64,
}

#[derive(Debug)]
enum Way {
    /// From class-default to a slice, when class-default's frames before a place have left.
    Joining {
        serial: u64,
        place: Place,
        /// What the slice has without them.
        kept: Part,
    },
    /// From a slice, by its class, to class-default, when the slice's frames before a place have left.
    Leaving {
        from: u32,
        serial: u64,
        place: Place,
    },
    /// From a slice that was removed to class-default, when no frame of it waits.
    Removed {
        slice: Box<Slice>,
        /// What stays reserved until then.
        reserved: Option<Reservation>,
    },
}

impl Moving {
    /// The slice that was removed.
    pub(crate) fn removed(&self) -> Option<&Slice> {
        match &self.way {
            Way::Removed { slice, .. } => Some(slice),
            _ => None,
        }
    }
}

impl Changing<'_> {
    /// Another class map for a slice.
    pub(super) fn matches(
        &mut self,
        name: String,
        matches: ClassMap,
    ) -> Result<SliceChanged, SliceChangeError> {
        let (class, split) = self.check_matches(&name, &matches)?;
        self.stop_joining(class);
        let joining = self.take_place();
        let leaving = self.take_place();
        let classifier = &mut self.pipeline.classifier;
        classifier.replace(class, &split, (joining, leaving));
        self.ledger.set_matches(class, matches);
        let default = self.ledger.default;
        let Split {
            joining: joins,
            leaving: mut leaves,
            kept,
            ..
        } = split;
        // Frames of both that leave now and left before have to wait for the newer place.
        let held = self.absorb_leaving(class, leaving, &mut leaves, Part::overlaps);
        let (serial, place) = (self.next_serial(), self.end_of(class));
        let way = Way::Leaving {
            from: class,
            serial,
            place,
        };
        let mut waiting = self.start(leaving, (leaves, held), default, way);
        let (serial, place) = (self.next_serial(), self.end_of(default));
        let way = Way::Joining {
            serial,
            place,
            kept,
        };
        waiting += self.start(joining, (joins, FrameList::new()), class, way);
        self.on_changed();
        Ok(SliceChanged { class, waiting })
    }

    /// The class of a slice, and what becomes of it with another class map, which it can get now.
    pub(super) fn check_matches(
        &mut self,
        name: &String,
        matches: &ClassMap,
    ) -> Result<(u32, Split), SliceChangeError> {
        let (class, _) = self.check_remove(name)?;
        let own = self.own_part(class);
        let split = self.pipeline.classifier.split(&own, matches);
        let split = split.ok_or_else(|| SliceChangeError::NotInPlace {
            name: name.to_owned(),
        })?;
        let joining = self.ledger.joining.get(&class).copied();
        // What is tested anew comes after all that is on its way.
        self.check_still(name, &split.joining, joining)?;
        self.check_still(name, &split.added, joining)?;
        let most = u32::try_from(self.pipeline.classes.len()).unwrap_or(u32::MAX);
        let numbered = self.pipeline.classifier.check(0, most.saturating_add(1));
        numbered.map_err(|error| SliceChangeError::from((name, error)))?;
        Ok((class, split))
    }

    /// Refuse frames that are on their way, but for those of class `own`.
    pub(super) fn check_still(
        &mut self,
        name: &str,
        part: &Part,
        own: Option<u32>,
    ) -> Result<(), SliceChangeError> {
        while let Some(class) = self.ledger.parts.overlapping(part, own) {
            if self.try_finish(class) {
                continue;
            }
            let Some(moving) = self.ledger.moving.get(&class) else {
                break;
            };
            let of = match &moving.way {
                Way::Joining { .. } => moving.into,
                Way::Leaving { from, .. } => *from,
                Way::Removed { .. } => class,
            };
            let of_slice = moving.removed().map(|slice| slice.name.to_string());
            let named = || {
                let class = self.pipeline.classes.get(of as usize);
                class.map(|class| class.counters.class.clone())
            };
            return Err(SliceChangeError::Moving {
                name: name.to_owned(),
                of: of_slice.or_else(named).unwrap_or_default(),
                frames: self.ahead_of(class) + moving.held.packets(),
            });
        }
        Ok(())
    }

    /// What the classifier has of a slice.
    fn own_part(&self, class: u32) -> Part {
        let joining = self.ledger.joining.get(&class);
        if let Some(Way::Joining { kept, .. }) = joining
            .and_then(|joining| self.ledger.moving.get(joining))
            .map(|moving| &moving.way)
        {
            return kept.clone();
        }
        let map = self.ledger.matches(class);
        map.map_or_else(Part::default, |map| {
            self.pipeline.classifier.part_of(class, map)
        })
    }

    /// A class number, with a place among the classes.
    pub(super) fn take_place(&mut self) -> u32 {
        let class = self.ledger.take_number(self.pipeline.classes.len());
        while self.pipeline.classes.len() <= class as usize {
            self.pipeline.classes.push(ClassState::unused());
        }
        class
    }

    fn next_serial(&mut self) -> u64 {
        self.ledger.next_serial += 1;
        self.ledger.next_serial
    }

    /// The place behind the last frame of a class.
    pub(super) fn end_of(&mut self, class: u32) -> Place {
        let slice = self.queue_of(class).slice();
        let scheduler = self.scheduler("");
        scheduler.map_or_else(
            |_| Place::default(),
            |(scheduler, _)| scheduler.end_of(slice),
        )
    }

    pub(super) fn queue_of(&self, class: u32) -> QueueId {
        let class = self.pipeline.classes.get(class as usize);
        class.map_or(QueueId::NONE, |class| class.queue)
    }

    /// Frames that a class is behind, or more.
    fn ahead_of(&self, class: u32) -> u32 {
        let behind = match self.ledger.moving.get(&class).map(|moving| &moving.way) {
            Some(Way::Joining { .. }) => self.ledger.default,
            Some(Way::Leaving { from, .. }) => *from,
            Some(Way::Removed { .. }) => class,
            None => return 0,
        };
        self.pipeline.tree.packets(self.queue_of(behind))
    }

    /// Frames are on their way; returns how many are before them.
    fn start(&mut self, class: u32, (part, held): (Part, FrameList), into: u32, way: Way) -> u32 {
        let is_empty = part.is_empty() && !matches!(way, Way::Removed { .. });
        match &way {
            Way::Joining { serial, .. } => {
                self.ledger
                    .behind
                    .insert((self.ledger.default, *serial), class);
                self.ledger.joining.insert(into, class);
            }
            Way::Leaving { from, serial, .. } => {
                self.ledger.behind.insert((*from, *serial), class);
            }
            Way::Removed { .. } => {}
        }
        let room = self.make_room(into, &held);
        let moving = Moving {
            part,
            into,
            held,
            way,
            room,
        };
        self.ledger.parts.insert(&moving.part, class);
        self.ledger.moving.insert(class, moving);
        let ahead = self.ahead_of(class);
        if is_empty {
            self.finish(class);
            return 0;
        }
        if self.try_finish(class) { 0 } else { ahead }
    }

    /// Have the frame memory hold frames that wait beside the queue of a class; returns how many, but for class-default.
    fn make_room(&mut self, into: u32, held: &FrameList) -> u64 {
        let limit = self.ledger.params(into).map(|params| params.queue_limit);
        let mut room = limit.map_or(0, build::room);
        if into == self.ledger.default {
            let to_default = &mut self.ledger.to_default;
            to_default.classes += 1;
            to_default.packets += held.packets();
            to_default.bytes += held.bytes();
            if to_default.classes > 1 {
                return 0;
            }
            to_default.room = std::mem::take(&mut room);
            self.pipeline.change_room(0, to_default.room);
        }
        self.pipeline.change_room(0, room);
        room
    }

    /// The queue of a class takes other numbers of frames; so does what waits beside it.
    pub(super) fn change_room_beside(&mut self, class: u32, room: u64) {
        let ledger = &mut *self.ledger;
        if class == ledger.default {
            if ledger.to_default.classes > 0 {
                let before = std::mem::replace(&mut ledger.to_default.room, room);
                self.pipeline.change_room(before, room);
            }
            return;
        }
        if let Some(joining) = ledger.joining.get(&class)
            && let Some(moving) = ledger.moving.get_mut(joining)
        {
            let before = std::mem::replace(&mut moving.room, room);
            self.pipeline.change_room(before, room);
        }
    }

    fn release_room(&mut self, moving: &Moving) {
        let mut room = moving.room;
        if moving.into == self.ledger.default {
            let to_default = &mut self.ledger.to_default;
            to_default.packets -= moving.held.packets();
            to_default.bytes -= moving.held.bytes();
            to_default.classes -= 1;
            if to_default.classes == 0 {
                room = std::mem::take(&mut to_default.room);
            }
        }
        self.pipeline.change_room(room, 0);
    }

    /// Take what is on its way out of the ledger; its frames join a queue now.
    fn end(&mut self, class: u32, queue_of: u32) -> Option<Moving> {
        let moving = self.ledger.moving.remove(&class)?;
        self.ledger.parts.remove(&moving.part, class);
        self.release_room(&moving);
        match &moving.way {
            Way::Joining { serial, .. } => {
                self.ledger.behind.remove(&(self.ledger.default, *serial));
                self.ledger.joining.remove(&moving.into);
            }
            Way::Leaving { from, serial, .. } => {
                self.ledger.behind.remove(&(*from, *serial));
            }
            Way::Removed { .. } => {}
        }
        let held = moving.held.clone();
        if held.packets() > 0 {
            let queue = self.queue_of(queue_of);
            let Pipeline {
                tree, pool, aside, ..
            } = &mut *self.pipeline;
            *aside -= held.packets();
            tree.join(queue, held, pool, self.now);
        }
        Some(moving)
    }

    /// A class number is free. A frame that was classified before is classified again.
    pub(super) fn free(&mut self, class: u32) -> ClassState {
        self.ledger.free.push(class);
        let unused = ClassState::unused();
        match self.pipeline.classes.get_mut(class as usize) {
            Some(place) => std::mem::replace(place, unused),
            None => unused,
        }
    }

    /// The older frames have left.
    fn finish(&mut self, class: u32) {
        let into = self.ledger.moving.get(&class).map(|moving| moving.into);
        let Some(moving) = into.and_then(|into| self.end(class, into)) else {
            return;
        };
        let state = self.free(class);
        let classifier = &mut self.pipeline.classifier;
        match moving.way {
            Way::Joining { kept, .. } => {
                classifier.leave(&moving.part, class);
                classifier.leave(&kept, moving.into);
                // At one position again.
                if let Some((order, map)) = self.ledger.placed(moving.into) {
                    classifier.insert_at(order, moving.into, map);
                }
            }
            Way::Leaving { .. } => {
                classifier.leave(&moving.part, class);
            }
            Way::Removed { slice, reserved } => {
                classifier.leave(&moving.part, class);
                self.pipeline.removed.push_back(state.counters);
                self.ledger.remove_name(&slice.name, class);
                if let Some(reserved) = reserved {
                    let scheduler = self.scheduler("").ok();
                    let drained_in = scheduler.map(|(scheduler, _)| scheduler.drained_in());
                    self.ledger.reserved.end(reserved, drained_in);
                }
            }
        }
        // No slice in force has changed, so changes prepared before are not stale.
        self.on_queues_changed();
    }

    /// Finish what is on its way, if the older frames have left.
    pub(super) fn try_finish(&mut self, class: u32) -> bool {
        let Some(moving) = self.ledger.moving.get(&class) else {
            return false;
        };
        let default = self.ledger.default;
        let is_over = match moving.way {
            Way::Removed { .. } => {
                let class = self.pipeline.classes.get(class as usize);
                class.is_some_and(|class| class.counters.queued_frames == 0)
            }
            Way::Joining { place, .. } => self.is_past(default, place),
            Way::Leaving { from, place, .. } => self.is_past(from, place),
        };
        if is_over {
            self.finish(class);
        }
        is_over
    }

    pub(super) fn is_past(&mut self, class: u32, place: Place) -> bool {
        let slice = self.queue_of(class).slice();
        let scheduler = self.scheduler("");
        scheduler.is_ok_and(|(scheduler, _)| scheduler.is_past(slice, place))
    }

    /// A slice does without frames that are on their way to it: as they are newer than those of class-default, they may
    /// follow these there. What is left counts as its own.
    fn stop_joining(&mut self, class: u32) {
        let joining = self.ledger.joining.get(&class).copied();
        if let Some(joining) = joining
            && let Some(moving) = self.end(joining, self.ledger.default)
        {
            self.free(joining);
            self.pipeline.classifier.leave(&moving.part, joining);
        }
    }

    /// What the classifier has of a slice that is being removed, with what is leaving it, and the frames of that that wait.
    pub(super) fn take_parts(&mut self, class: u32) -> (Part, FrameList) {
        let mut part = self.own_part(class);
        self.stop_joining(class);
        let held = self.absorb_leaving(class, class, &mut part, |_, _| true);
        (part, held)
    }

    /// Some of what is leaving a slice becomes a part of class `to`; returns the frames that wait.
    fn absorb_leaving(
        &mut self,
        class: u32,
        to: u32,
        part: &mut Part,
        is_absorbed: impl Fn(&Part, &Part) -> bool,
    ) -> FrameList {
        let behind = self.ledger.behind.range((class, 0)..=(class, u64::MAX));
        let leaving: Vec<u32> = behind.map(|(_, &leaving)| leaving).collect();
        let mut held = FrameList::new();
        for leaving in leaving {
            let Some(moving) = self.ledger.moving.get_mut(&leaving) else {
                continue;
            };
            if !is_absorbed(&moving.part, part) {
                continue;
            }
            let frames = std::mem::take(&mut moving.held);
            self.ledger.to_default.packets -= frames.packets();
            self.ledger.to_default.bytes -= frames.bytes();
            held.splice(&mut self.pipeline.pool, frames);
            if let Some(moving) = self.end(leaving, class) {
                self.free(leaving);
                self.pipeline.classifier.join(&moving.part, leaving, to);
                part.extend(moving.part);
            }
        }
        held
    }

    /// The frames of a slice that was removed are on their way to class-default.
    pub(super) fn start_leaving(
        &mut self,
        class: u32,
        (part, held): (Part, FrameList),
        slice: Slice,
        reserved: Option<Reservation>,
    ) {
        let slice = Box::new(slice);
        let way = Way::Removed { slice, reserved };
        self.start(class, (part, held), self.ledger.default, way);
    }

    /// A frame of a class has left.
    pub(super) fn on_departure(&mut self, class: u32) {
        if self.ledger.moving.contains_key(&class) {
            self.try_finish(class);
        }
        for class in [class, self.ledger.default] {
            // In the order of their places.
            while let Some((_, &first)) = self
                .ledger
                .behind
                .range((class, 0)..=(class, u64::MAX))
                .next()
                && self.try_finish(first)
            {}
        }
    }

    /// Finish what can be finished; of the rest, the frames that wait, and the queues whose frames are before them.
    pub(super) fn end_all(&mut self) -> (Vec<QueuedFrame>, BTreeSet<QueueId>) {
        let classes: Vec<u32> = self.ledger.moving.keys().copied().collect();
        for class in classes {
            self.try_finish(class);
        }
        let (mut frames, mut ahead) = (Vec::new(), BTreeSet::new());
        self.ledger.parts = Parts::default();
        for (class, mut moving) in std::mem::take(&mut self.ledger.moving) {
            let before = match moving.way {
                Way::Joining { .. } => self.ledger.default,
                Way::Leaving { from, .. } => from,
                Way::Removed { .. } => class,
            };
            ahead.insert(self.queue_of(before));
            if moving.removed().is_some() {
                // What once was on its way to it.
                ahead.insert(self.queue_of(self.ledger.default));
            }
            let pool = &mut self.pipeline.pool;
            frames.extend(std::iter::from_fn(|| moving.held.pop(pool)));
        }
        (frames, ahead)
    }
}
