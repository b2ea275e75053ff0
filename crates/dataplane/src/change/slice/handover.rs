//! Handovers of frames from one class to another.
//!
//! When a slice comes or goes, or gets another class map, arriving frames change classes while older ones of their flows wait in
//! the queue of the class that they had. They are kept beside the queue of the class that they get, and
//! [join](crate::scheduler::Tree::join) it when the older ones have left. Meanwhile they have a class number of
//! their own, so finding them costs no more than finding any class, and frames of other classes pay nothing.

mod arrival;

pub(crate) use arrival::{Arrived, Arriving};

use super::{Changing, SliceChangeError, SliceChanged};
use crate::build::{self, ClassState};
use crate::change::handover::{Handover, Removed};
use crate::change::terms::Slice;
use crate::classifier::{Part, Parts, Split};
use crate::guaranteed::DequeueMark;
use crate::queue::{FrameList, QueuedFrame};
use crate::scheduler::QueueId;
use slicewise_model::{ClassMap, Reservation};
use std::collections::BTreeSet;

impl Changing<'_> {
    /// A slice that was added gets the frames of its class map, now or when those of class-default have left; returns how many these are.
    pub(super) fn take_from_default(&mut self, class: u32, order: u32, matches: &ClassMap) -> u32 {
        let default = self.ledger.default;
        if self.frames_of(default) == 0 {
            self.path.classifier.insert_at(order, class, matches);
            return 0;
        }
        let number = self.take_place();
        let classifier = &mut self.path.classifier;
        classifier.insert_at(order, number, matches);
        let part = classifier.part_of(number, matches);
        let handover = self.handover(part, default, class);
        self.start(number, handover)
    }

    /// Another class map for a slice.
    pub(super) fn matches(
        &mut self,
        name: String,
        matches: ClassMap,
    ) -> Result<SliceChanged, SliceChangeError> {
        let (class, split) = self.check_matches(&name, &matches)?;
        if let Some((number, joining)) = self.stop_joining(class) {
            self.free(number);
            self.path.classifier.leave(&joining.part, number);
        }
        let joining = self.take_place();
        let leaving = self.take_place();
        let classifier = &mut self.path.classifier;
        classifier.replace(class, &split, (joining, leaving));
        self.ledger.slice_mut(class).matches = Some(matches);
        let default = self.ledger.default;
        let mut leaves = split.leaving;
        // Frames of both that leave now and left before have to wait for the newer mark.
        let held = self.absorb_leaving(class, leaving, &mut leaves, Part::overlaps);
        let handover = self.handover(leaves, class, default);
        let mut waiting = self.start(leaving, Handover { held, ..handover });
        let handover = self.handover(split.joining, default, class);
        let kept = split.kept;
        waiting += self.start(joining, Handover { kept, ..handover });
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
        let split = self.path.classifier.split(&own, matches);
        let split = split.ok_or_else(|| SliceChangeError::NotInPlace {
            name: name.to_owned(),
        })?;
        // What is tested anew comes after all that is on its way.
        self.check_still(name, &split.joining)?;
        self.check_still(name, &split.added)?;
        self.check_number(name)?;
        Ok((class, split))
    }

    /// Refuse another class if there are too many numbers of such.
    pub(super) fn check_number(&self, name: &String) -> Result<(), SliceChangeError> {
        let most = u32::try_from(self.path.built.classes.len()).unwrap_or(u32::MAX);
        let numbered = self.path.classifier.check(0, most.saturating_add(1));
        numbered.map_err(|error| (name, error).into())
    }

    /// Refuse frames that are leaving a slice.
    pub(super) fn check_still(&mut self, name: &str, part: &Part) -> Result<(), SliceChangeError> {
        while let Some(number) = self.ledger.parts.overlapping(part) {
            if self.try_finish(number) {
                continue;
            }
            let Some(handover) = self.ledger.handovers.get(&number) else {
                break;
            };
            let of_slice = handover.removed().map(|slice| slice.name.to_string());
            let named = || {
                let class = self.path.built.classes.get(handover.from as usize);
                class.map(|class| class.counters.class.clone())
            };
            return Err(SliceChangeError::Moving {
                name: name.to_owned(),
                of: of_slice.or_else(named).unwrap_or_default(),
                frames: self.frames_of(handover.from) + handover.held.packets(),
            });
        }
        Ok(())
    }

    /// Returns what the classifier has of a slice.
    fn own_part(&self, class: u32) -> Part {
        let joining = self.ledger.joining.get(&class);
        if let Some(joining) = joining.and_then(|number| self.ledger.handovers.get(number)) {
            return joining.kept.clone();
        }
        let slice = self.ledger.slice(class);
        let map = slice.and_then(|slice| slice.matches.as_ref());
        map.map_or_else(Part::default, |map| {
            self.path.classifier.part_of(class, map)
        })
    }

    /// A class number, with a place among the classes.
    pub(super) fn take_place(&mut self) -> u32 {
        let class = self.ledger.allocate_class_id(self.path.built.classes.len());
        while self.path.built.classes.len() <= class as usize {
            self.path.built.classes.push(ClassState::unused());
        }
        class
    }

    /// Returns the mark behind the last frame of a class.
    fn end_of(&mut self, class: u32) -> DequeueMark {
        let slice = self.queue_of(class).slice();
        self.scheduler().0.end_of(slice)
    }

    pub(super) fn queue_of(&self, class: u32) -> QueueId {
        let class = self.path.built.classes.get(class as usize);
        class.map_or(QueueId::NONE, |class| class.queue)
    }

    /// Frames that wait in the queue of a class.
    fn frames_of(&self, class: u32) -> u32 {
        self.path.built.tree.packets(self.queue_of(class))
    }

    /// A handover of frames from one class to another when those that wait now have left.
    fn handover(&mut self, part: Part, from: u32, into: u32) -> Handover {
        self.ledger.next_serial += 1;
        Handover {
            part,
            from,
            until: self.end_of(from),
            serial: self.ledger.next_serial,
            into,
            held: FrameList::new(),
            kept: Part::default(),
            removed: None,
            room: 0,
        }
    }

    /// Begin a handover of frames with this class number; returns how many frames have to leave first.
    fn start(&mut self, number: u32, mut handover: Handover) -> u32 {
        let (from, into) = (handover.from, handover.into);
        let is_empty = handover.part.is_empty() && handover.removed.is_none();
        handover.room = self.make_room(into, &handover.held);
        let ledger = &mut *self.ledger;
        ledger.behind.insert((from, handover.serial), number);
        if into == ledger.default {
            ledger.parts.insert(&handover.part, number);
        } else {
            ledger.joining.insert(into, number);
        }
        ledger.handovers.insert(number, handover);
        let ahead = self.frames_of(from);
        if is_empty {
            self.finish(number);
            return 0;
        }
        if self.try_finish(number) { 0 } else { ahead }
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
            self.path.change_room(0, to_default.room);
        }
        self.path.change_room(0, room);
        room
    }

    /// The queue of a class takes other numbers of frames; so does what waits beside it.
    pub(super) fn change_room_beside(&mut self, class: u32, room: u64) {
        let ledger = &mut *self.ledger;
        if class == ledger.default {
            if ledger.to_default.classes > 0 {
                let before = std::mem::replace(&mut ledger.to_default.room, room);
                self.path.change_room(before, room);
            }
            return;
        }
        if let Some(joining) = ledger.joining.get(&class)
            && let Some(handover) = ledger.handovers.get_mut(joining)
        {
            let before = std::mem::replace(&mut handover.room, room);
            self.path.change_room(before, room);
        }
    }

    fn release_room(&mut self, handover: &Handover) {
        let mut room = handover.room;
        if handover.into == self.ledger.default {
            let to_default = &mut self.ledger.to_default;
            to_default.packets -= handover.held.packets();
            to_default.bytes -= handover.held.bytes();
            to_default.classes -= 1;
            if to_default.classes == 0 {
                room = std::mem::take(&mut to_default.room);
            }
        }
        self.path.change_room(room, 0);
    }

    /// Take a handover out of the ledger; its frames join a queue now.
    fn end(&mut self, number: u32, queue_of: u32) -> Option<Handover> {
        let ledger = &mut *self.ledger;
        let handover = ledger.handovers.remove(&number)?;
        ledger.behind.remove(&(handover.from, handover.serial));
        if handover.into == ledger.default {
            ledger.parts.remove(&handover.part, number);
        } else {
            ledger.joining.remove(&handover.into);
        }
        self.release_room(&handover);
        let held = handover.held.clone();
        if held.packets() > 0 {
            let queue = self.queue_of(queue_of);
            let path = &mut *self.path;
            path.aside -= held.packets();
            let (tree, pool) = (&mut path.built.tree, &mut path.pool);
            tree.join(queue, held, pool, self.now);
        }
        Some(handover)
    }

    /// A class number is free. A frame that was classified before is classified again.
    pub(super) fn free(&mut self, class: u32) -> ClassState {
        self.ledger.free.push(class);
        let unused = ClassState::unused();
        match self.path.built.classes.get_mut(class as usize) {
            Some(place) => std::mem::replace(place, unused),
            None => unused,
        }
    }

    /// The older frames have left.
    fn finish(&mut self, number: u32) {
        let into = self.ledger.handovers.get(&number).map(|it| it.into);
        let Some(handover) = into.and_then(|into| self.end(number, into)) else {
            return;
        };
        let state = self.free(number);
        let classifier = &mut self.path.classifier;
        classifier.leave(&handover.part, number);
        if handover.into != self.ledger.default {
            classifier.leave(&handover.kept, handover.into);
            // At one position again.
            if let Some(slice) = self.ledger.slice(handover.into)
                && let Some(map) = &slice.matches
            {
                classifier.insert_at(slice.order, handover.into, map);
            }
        }
        if let Some(removed) = handover.removed {
            self.own.removed.push_back(state.counters);
            self.ledger.remove_name(&removed.slice.name, number);
            if let Some(reserved) = removed.reserved {
                let drained_in = self.scheduler().0.drained_in();
                self.ledger.reserved.end(reserved, Some(drained_in));
            }
        }
        // No slice in force has changed, so changes prepared before are not stale.
        self.on_queues_changed();
    }

    /// Finish a handover, if the older frames have left.
    pub(super) fn try_finish(&mut self, number: u32) -> bool {
        let Some(handover) = self.ledger.handovers.get(&number) else {
            return false;
        };
        let is_over = if handover.removed.is_some() {
            self.waiting_of(number) == 0
        } else {
            let (slice, until) = (self.queue_of(handover.from).slice(), handover.until);
            self.scheduler().0.is_past(slice, until)
        };
        if is_over {
            self.finish(number);
        }
        is_over
    }

    /// A slice does without frames that are on their way to it: as they are newer than those of class-default, they follow these there.
    /// Returns their class number, and what the handover was.
    fn stop_joining(&mut self, class: u32) -> Option<(u32, Handover)> {
        let number = self.ledger.joining.get(&class).copied()?;
        let handover = self.end(number, self.ledger.default)?;
        Some((number, handover))
    }

    /// Returns what the classifier has of a slice that is being removed, with what is on its way to it or is leaving it, and the frames
    /// that wait of the latter.
    pub(super) fn take_parts(&mut self, class: u32) -> (Part, FrameList) {
        let mut part = self.own_part(class);
        if let Some((number, joining)) = self.stop_joining(class) {
            self.free(number);
            self.path.classifier.join(&joining.part, number, class);
            part.extend(joining.part);
        }
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
            let Some(handover) = self.ledger.handovers.get_mut(&leaving) else {
                continue;
            };
            if !is_absorbed(&handover.part, part) {
                continue;
            }
            let frames = std::mem::take(&mut handover.held);
            self.ledger.to_default.packets -= frames.packets();
            self.ledger.to_default.bytes -= frames.bytes();
            held.splice(&mut self.path.pool, frames);
            if let Some(handover) = self.end(leaving, class) {
                self.free(leaving);
                self.path.classifier.join(&handover.part, leaving, to);
                part.extend(handover.part);
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
        let handover = Handover {
            held,
            removed: Some(Box::new(Removed { slice, reserved })),
            ..self.handover(part, class, self.ledger.default)
        };
        self.start(class, handover);
    }

    /// A frame of a class has left.
    pub(super) fn on_departure(&mut self, class: u32) {
        for class in [class, self.ledger.default] {
            // In the order of their marks.
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
        let numbers: Vec<u32> = self.ledger.handovers.keys().copied().collect();
        for number in numbers {
            self.try_finish(number);
        }
        let (mut frames, mut ahead) = (Vec::new(), BTreeSet::new());
        self.ledger.parts = Parts::default();
        for mut handover in std::mem::take(&mut self.ledger.handovers).into_values() {
            ahead.insert(self.queue_of(handover.from));
            if handover.removed.is_some() {
                // What once was on its way to it.
                ahead.insert(self.queue_of(self.ledger.default));
            }
            let pool = &mut self.path.pool;
            frames.extend(std::iter::from_fn(|| handover.held.pop(pool)));
        }
        (frames, ahead)
    }
}
