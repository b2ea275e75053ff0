//! Changes of single slices: each is checked and carried out at once, in a time that does not depend
//! on how many slices there are.
//!
//! There is nothing to prepare: the test of a guarantee takes less than a microsecond. So a change is
//! never stale, and a refused one leaves everything as it was.

mod conditioning;
mod error;
mod flows;
mod handover;
mod tenant;

use super::Reconfigurator;
use super::ledger::Ledger;
use super::reserved::NotReserved;
use super::terms::{Conditioning, NewSlice};
use crate::build::{self, ClassState, Special};
use crate::classifier::Part;
use crate::datapath::DataPath;
use crate::frame::Frame;
use crate::guaranteed::{Guaranteed, Removal, SliceId};
use crate::queue::{FramePool, QueuedFrame};
use crate::scheduler::{Leaf, QueueId};
use crate::slice_flows::SliceFlows;
pub use error::SliceChangeError;
pub(crate) use handover::{Arrived, Arriving};
use slicewise_model::{ClassMap, SliceParams, TenantParams};
use slicewise_units::Instant;
use std::collections::BTreeSet;

/// Changes that are not complete that are looked at per change.
const LOOKED_AT_PER_CHANGE: usize = 8;

/// A change of one slice of a guaranteed policy. Slices are known by the names of their classes, which
/// are also those of their [counters](crate::Pipeline::counters).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SliceChange {
    /// A slice more. Its class map is tested after those of all others, so its frames are ones that
    /// were of class-default before. Those that wait there leave first: the slice accepts frames at
    /// once, but sends none, and its guarantee does not hold, until then.
    Add(Box<NewSlice>),
    /// Other parameters. Frames, tokens and debt stay, also if the slice goes to another tenant. A shorter delay may hold later:
    /// while a frame waits that is eligible now, those behind it are due no earlier than that.
    Change {
        /// The name of the slice.
        name: String,
        /// From now on.
        params: SliceParams,
    },
    /// Another mark or policer, for frames that arrive from now on.
    Conditioning {
        /// The name of the slice.
        name: String,
        /// From now on. A policer keeps the credit or debt of the one before, if the algorithm is the same.
        conditioning: Box<Conditioning>,
    },
    /// Other terms for its flows. If they get queues of their own, or lose them, frames that wait move there, each flow in
    /// its order: O(frames).
    Flows {
        /// The name of the slice.
        name: String,
        /// From now on.
        flows: Box<SliceFlows>,
    },
    /// Another class map. Frames that both match are of the slice throughout. Those that only the new one matches, and those that
    /// only the old one matches, wait until frames of theirs have left that wait elsewhere: so none is lost, and none overtakes.
    /// No class map of another slice may match any of them.
    Matches {
        /// The name of the slice.
        name: String,
        /// From now on.
        matches: Box<ClassMap>,
    },
    /// A slice less. Frames of it that wait leave under its guarantee and without its maximum; until the last has left, arriving
    /// ones wait, so that none overtakes, if they are of class-default after that. Where another class map matches them they are
    /// dropped ([`SliceRemoved`](crate::DropReason::SliceRemoved)).
    Remove {
        /// The name of the slice.
        name: String,
    },
    /// The end of a slice that was removed and of which frames wait: these are dropped
    /// ([`SliceRemoved`](crate::DropReason::SliceRemoved)), and what waits for them goes on as if the last had left. Those of its
    /// frames that wait elsewhere, in class-default's queue or from a policy before, are not dropped. O(frames).
    Purge {
        /// The name that the slice had.
        name: String,
    },
}

/// A change of a slice that was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SliceChanged {
    /// Its position among [`counters`](crate::Pipeline::counters).
    pub class: u32,
    /// Frames that have to leave before it is complete: those of class-default ahead of a slice that was
    /// added, those of a slice that was removed, or those of both where some change between them.
    pub waiting: u32,
}

impl Reconfigurator {
    /// Carries out a change.
    pub(crate) fn change_slice(
        &mut self,
        path: &mut DataPath,
        change: SliceChange,
        now: Instant,
    ) -> Result<SliceChanged, SliceChangeError> {
        self.on_slices(path, now, |changing| {
            changing.settle();
            match change {
                SliceChange::Add(slice) => changing.add(*slice),
                SliceChange::Change { name, params } => changing.change(name, &params),
                SliceChange::Conditioning { name, conditioning } => {
                    changing.change_conditioning(&name, *conditioning)
                }
                SliceChange::Flows { name, flows } => changing.flows(&name, &flows),
                SliceChange::Matches { name, matches } => changing.matches(name, *matches),
                SliceChange::Remove { name } => changing.remove(name),
                SliceChange::Purge { name } => changing.purge(name),
            }
        })
    }

    /// Returns whether a change would be carried out now.
    pub(crate) fn check_slice_change(
        &mut self,
        path: &mut DataPath,
        change: &SliceChange,
        now: Instant,
    ) -> Result<(), SliceChangeError> {
        self.on_slices(path, now, |changing| {
            changing.settle();
            match change {
                SliceChange::Add(slice) => changing.check_add(slice),
                SliceChange::Change { name, params } => changing.check_change(name, params),
                SliceChange::Conditioning { name, .. } => changing.find(name).map(drop),
                SliceChange::Flows { name, flows } => changing.prepare_flows(name, flows).map(drop),
                SliceChange::Matches { name, matches } => {
                    changing.check_matches(name, matches).map(drop)
                }
                SliceChange::Remove { name } => changing.check_remove(name).map(drop),
                SliceChange::Purge { name } => changing.check_purge(name).map(drop),
            }
        })
    }

    /// Returns the number of a tenant, which is added if there is none of its name, and has this weight from now on.
    pub(crate) fn tenant(
        &mut self,
        path: &mut DataPath,
        tenant: &TenantParams,
        now: Instant,
    ) -> Result<u32, SliceChangeError> {
        self.on_slices(path, now, |changing| changing.tenant(tenant))
    }

    /// Acts on a policy that has slices.
    fn on_slices<T>(
        &mut self,
        path: &mut DataPath,
        now: Instant,
        act: impl FnOnce(&mut Changing<'_>) -> Result<T, SliceChangeError>,
    ) -> Result<T, SliceChangeError> {
        self.with_ledger(path, now, act).unwrap_or_else(|| {
            let policy = self.params.policy.name.clone();
            Err(SliceChangeError::NotGuaranteed { policy })
        })
    }

    /// A frame has arrived with the class number of a handover.
    pub(crate) fn on_arrival(
        &mut self,
        path: &mut DataPath,
        arrival: Arriving<'_>,
        now: Instant,
        has_memory: &mut dyn FnMut(&Frame, u32) -> bool,
    ) -> Arrived {
        let arrived = self.with_ledger(path, now, |changing| {
            changing.on_arrival(arrival, has_memory)
        });
        arrived.unwrap_or(Arrived::Removed)
    }

    /// A frame of a class has left, and others wait for such.
    pub(crate) fn on_departure(&mut self, path: &mut DataPath, class: u32, now: Instant) {
        self.with_ledger(path, now, |changing| changing.on_departure(class));
    }

    /// The policy is being replaced: handovers that can end do. Returns the frames of others, and the queues whose frames
    /// are before them. O(handovers + frames).
    pub(super) fn end_all(
        &mut self,
        path: &mut DataPath,
        now: Instant,
    ) -> (Vec<QueuedFrame>, BTreeSet<QueueId>) {
        let ended = self.with_ledger(path, now, |changing| changing.end_all());
        ended.unwrap_or_default()
    }

    /// Looks whether a few of the changes that were not complete are.
    pub(crate) fn finish_some(&mut self, path: &mut DataPath, now: Instant) {
        self.with_ledger(path, now, |changing| changing.finish_some());
    }

    fn with_ledger<T>(
        &mut self,
        path: &mut DataPath,
        now: Instant,
        act: impl FnOnce(&mut Changing<'_>) -> T,
    ) -> Option<T> {
        let mut ledger = self.ledger.take()?;
        let done = act(&mut Changing {
            path,
            own: self,
            ledger: &mut ledger,
            now,
        });
        self.ledger = Some(ledger);
        Some(done)
    }
}

/// A data path whose policy is guaranteed, with its ledger.
struct Changing<'a> {
    path: &'a mut DataPath,
    own: &'a mut Reconfigurator,
    ledger: &'a mut Ledger,
    now: Instant,
}

impl Changing<'_> {
    fn add(&mut self, new: NewSlice) -> Result<SliceChanged, SliceChangeError> {
        self.check_new(&new)?;
        let (name, params, now) = (&new.name, &new.params, self.now);
        if let Some(guarantee) = &params.guarantee {
            let reserved = self.ledger.reserved.try_add(guarantee);
            reserved.map_err(|why| self.not_reserved(name, why))?;
        }
        let (scheduler, _) = self.scheduler();
        let added = match &new.flow_queue {
            Some(flow_queue) => scheduler.add_flow_queued_slice(params, flow_queue, now),
            None => scheduler.add_slice(params, now),
        };
        let slice = added.map_err(|error| {
            let guarantee = params.guarantee.iter();
            guarantee.for_each(|guarantee| self.ledger.reserved.undo_add(guarantee));
            SliceChangeError::from((name, error))
        })?;
        // Frames of one of this name may still wait that the policy before had.
        let retired = self.own.retired.get(name).copied();
        let class =
            retired.unwrap_or_else(|| self.ledger.allocate_class_id(self.path.built.classes.len()));
        self.put_class(class, slice, &new);
        self.path.change_room(0, build::room(params.queue_limit));
        let (order, matches) = (self.path.classifier.next_order(), new.matches.clone());
        self.ledger.insert(class, new, order);
        let waiting = self.take_from_default(class, order, &matches);
        self.on_changed();
        Ok(SliceChanged { class, waiting })
    }

    fn check_add(&mut self, new: &NewSlice) -> Result<(), SliceChangeError> {
        self.check_new(new)?;
        let (name, params) = (&new.name, &new.params);
        if let Some(guarantee) = &params.guarantee {
            let reserved = self.ledger.reserved.check_add(guarantee);
            reserved.map_err(|why| self.not_reserved(name, why))?;
        }
        let added = self.scheduler().0.check_slice(params);
        added.map_err(|error| (name, error).into())
    }

    fn check_new(&mut self, new: &NewSlice) -> Result<(), SliceChangeError> {
        self.check_name(&new.name)?;
        self.check_still(&new.name, &Part::whole(&new.matches))?;
        self.check_number(&new.name)
    }

    fn check_change(
        &mut self,
        name: &String,
        params: &SliceParams,
    ) -> Result<(), SliceChangeError> {
        let (class, _) = self.find_for(name, params)?;
        let old = self.ledger.params(class);
        let guarantee = old.and_then(|old| old.guarantee);
        let busy_period = self.busy_period();
        let reserved = &mut self.ledger.reserved;
        let reserved = reserved.check_change(class, guarantee, params.guarantee, busy_period);
        reserved.map_err(|why| self.not_reserved(name, why))
    }

    fn check_remove(&self, name: &str) -> Result<(u32, SliceId), SliceChangeError> {
        let (class, id) = self.find(name)?;
        if class == self.ledger.default {
            return Err(SliceChangeError::Default);
        }
        Ok((class, id))
    }

    fn put_class(&mut self, class: u32, slice: SliceId, new: &NewSlice) {
        let special = Special {
            ingress: self.ingress(class, &new.name, &new.conditioning),
            by_flow: new.flow_queue.is_some(),
            ..Special::default()
        };
        let queue = QueueId::of_slice(self.ledger.leaf, slice);
        let mut state = ClassState::new(new.name.clone(), queue, special);
        let classes = &mut self.path.built.classes;
        if self.own.retired.remove(&new.name).is_some()
            && let Some(retired) = classes.get(class as usize)
        {
            state.counters.absorb(&retired.counters);
        }
        debug_assert!(
            class as usize <= classes.len(),
            "numbers are free or the next"
        );
        match classes.get_mut(class as usize) {
            Some(place) => *place = state,
            None => classes.push(state),
        }
    }

    fn change(
        &mut self,
        name: String,
        params: &SliceParams,
    ) -> Result<SliceChanged, SliceChangeError> {
        let now = self.now;
        let (class, id) = self.find_for(&name, params)?;
        let old = self.ledger.params(class);
        let busy_period = self.busy_period();
        let reserved = &mut self.ledger.reserved;
        let guarantee = old.and_then(|old| old.guarantee);
        let reserved = reserved.try_change(class, guarantee, params.guarantee, busy_period);
        reserved.map_err(|why| self.not_reserved(&name, why))?;
        let (scheduler, pool) = self.scheduler();
        let changed = scheduler.change_slice(id, params, pool, now);
        debug_assert!(changed.is_ok(), "it is there, and so is its tenant");
        let old_room = old.map_or(0, |old| build::room(old.queue_limit));
        let new_room = build::room(params.queue_limit);
        self.path.change_room(old_room, new_room);
        self.change_room_beside(class, new_room);
        self.ledger.slice_mut(class).params = *params;
        self.weigh(class, params.weight);
        self.on_changed();
        Ok(SliceChanged { class, waiting: 0 })
    }

    fn remove(&mut self, name: String) -> Result<SliceChanged, SliceChangeError> {
        let (class, id) = self.check_remove(&name)?;
        let parts = self.take_parts(class);
        let busy_period = self.busy_period();
        let now = self.now;
        let removal = self.scheduler().0.remove_slice(id, now);
        let removal = removal.map_err(|error| SliceChangeError::from((&name, error)))?;
        let waiting = match removal {
            Removal::Gone => 0,
            Removal::Draining { packets } => packets,
        };
        let slice = self.ledger.take(class);
        let room = build::room(slice.params.queue_limit);
        self.path.change_room(room, 0);
        let reserved = &mut self.ledger.reserved;
        let mut reserved = reserved.remove(class, slice.params.guarantee);
        if waiting == 0
            && let Some(reserved) = reserved.take()
        {
            self.ledger.reserved.end(reserved, busy_period);
        }
        self.free_policer(class);
        self.path.built.classes[class as usize].special = Special::removed();
        self.start_leaving(class, parts, slice, reserved);
        self.on_changed();
        Ok(SliceChanged { class, waiting })
    }

    fn check_purge(&self, name: &str) -> Result<u32, SliceChangeError> {
        match self.ledger.class_of(name) {
            Some(class) if self.ledger.handovers.contains_key(&class) => Ok(class),
            found => {
                let name = name.to_owned();
                Err(match found {
                    Some(_) => SliceChangeError::InForce { name },
                    None => SliceChangeError::Unknown { name },
                })
            }
        }
    }

    fn purge(&mut self, name: String) -> Result<SliceChanged, SliceChangeError> {
        let class = self.check_purge(&name)?;
        let (slice, now) = (self.queue_of(class).slice(), self.now);
        let (scheduler, pool) = self.scheduler();
        scheduler.purge_slice(slice, class, pool, now);
        self.on_queues_changed();
        let waiting = match self.try_finish(class) {
            true => 0,
            false => self.waiting_of(class),
        };
        let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
        Ok(SliceChanged { class, waiting })
    }

    /// Frames that wait and are counted under a class.
    fn waiting_of(&self, class: u32) -> u64 {
        let class = self.path.built.classes.get(class as usize);
        class.map_or(0, |class| class.counters.queued_frames)
    }

    /// Release what is no longer reserved.
    fn settle(&mut self) {
        self.finish_some();
        let drain = self.own.drain;
        let is_draining = drain.is_some_and(|drain| self.path.built.tree.packets(drain) > 0);
        if is_draining {
            return;
        }
        let busy_period = self.busy_period();
        self.ledger.reserved.settle(busy_period);
    }

    /// See [`Guaranteed::busy_period`].
    fn busy_period(&mut self) -> Option<u64> {
        let now = self.now;
        self.scheduler().0.busy_period(now)
    }

    /// Look at a few of the changes that are not complete, in turn.
    fn finish_some(&mut self) {
        for _ in 0..LOOKED_AT_PER_CHANGE.min(self.ledger.handovers.len()) {
            let handovers = &self.ledger.handovers;
            let mut next = handovers.range(self.ledger.looked_at..).chain(handovers);
            let Some((&class, _)) = next.next() else {
                return;
            };
            self.ledger.looked_at = class + 1;
            self.try_finish(class);
        }
    }

    /// Refuse a name that is in use.
    fn check_name(&mut self, name: &str) -> Result<(), SliceChangeError> {
        let found = self.ledger.class_of(name);
        match found {
            Some(class) if self.ledger.handovers.contains_key(&class) => {
                if self.try_finish(class) {
                    return Ok(());
                }
                Err(SliceChangeError::Draining {
                    name: name.to_owned(),
                    frames: self.waiting_of(class),
                })
            }
            None if self.ledger.is_free(name) => Ok(()),
            _ => Err(SliceChangeError::NameTaken {
                name: name.to_owned(),
            }),
        }
    }

    /// The class with this name, and its slice.
    fn find(&self, name: &str) -> Result<(u32, SliceId), SliceChangeError> {
        let found = self.ledger.class_of(name);
        let found = found.filter(|class| !self.ledger.handovers.contains_key(class));
        let class = found.ok_or_else(|| SliceChangeError::Unknown {
            name: name.to_owned(),
        })?;
        Ok((class, self.queue_of(class).slice()))
    }

    /// The same, if it may have these parameters.
    fn find_for(
        &mut self,
        name: &String,
        params: &SliceParams,
    ) -> Result<(u32, SliceId), SliceChangeError> {
        let found = self.find(name)?;
        let tenant = self.scheduler().0.check_params(params);
        tenant.map_err(|error| (name, error))?;
        Ok(found)
    }

    fn scheduler(&mut self) -> (&mut Guaranteed, &mut FramePool) {
        match self.path.built.tree.leaf_mut(self.ledger.leaf) {
            Some(Leaf::Guaranteed(scheduler)) => (scheduler, &mut self.path.pool),
            _ => unreachable!("slices have a guaranteed scheduler"),
        }
    }

    fn not_reserved(&self, name: &str, why: NotReserved) -> SliceChangeError {
        let name = name.to_owned();
        match why {
            NotReserved::Refused(refusal) => {
                let still_reserved = self.ledger.reserved.has_ended();
                SliceChangeError::Refused {
                    name,
                    refusal: Box::new(refusal),
                    still_reserved,
                }
            }
            NotReserved::InTransition(refusal) => SliceChangeError::InTransition {
                name,
                refusal: Box::new(refusal),
            },
            NotReserved::Incomplete => SliceChangeError::Committed { name },
        }
    }

    /// Changes prepared before are stale, and another frame may be the first now.
    fn on_changed(&mut self) {
        self.own.version += 1;
        self.on_queues_changed();
    }

    /// Another frame may be the first now.
    fn on_queues_changed(&mut self) {
        let path = &mut *self.path;
        path.built.tree.settle_effects(self.ledger.leaf);
        path.count_dropped();
        path.built.tree.forget_offer(self.ledger.leaf);
        if path.built.tree.backlog() > 0 {
            path.next_poll = path.next_poll.min(self.now);
        }
    }
}
