//! Brings what is in force in line with what is wanted, one change after the other, without a clock or I/O.
//!
//! Slices are looked at in the order in which their changes came. What the data plane refuses for now (frames of a slice
//! that was removed still wait, or capacity is not released yet) is tried again after a while; meanwhile
//! changes of other slices go on. A generation is reached when every change up to it is in force, refused for good, or a
//! removal whose frames leave.

mod controller;
mod metered;
mod slice;
mod strategy;

pub(crate) use metered::Metered;
pub(crate) use strategy::Reconcile;

/// Why a slice is refused, without the name of another slice, and that one.
type Reason = (String, Option<String>);

/// The controller shows the reason to the tenant of the slice, and the other slice to who may know it.
fn reason(refusal: &NotChanged) -> Reason {
    match &refusal.error {
        SliceChangeError::Moving { of, .. } => {
            let reason = "packets that it is to have still wait in another slice";
            (reason.to_owned(), Some(of.clone()))
        }
        _ => (refusal.to_string(), None),
    }
}

#[cfg(test)]
mod tests;

use crate::store::Kept;
use slice::{Effect, Next, SliceState};
use slicewise_api::{GatewaySlice, RefusedSlice};
use slicewise_dataplane::{SliceChangeError, SliceChanged};
use slicewise_live::DirectionParams;
use slicewise_live::engine::{DirectedChange, NotChanged};
use slicewise_units::{BothWays, Duration, Instant, Way};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Changes that are asked for and not answered.
const MOST_ASKED: usize = 128;
/// When to try again what is refused for now.
const RETRY: Duration = Duration::from_millis(5);
/// Something that is refused only for now is refused for good after so long.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most times that a refusal is tried again while other changes are under way.
const MOST_TRIES: u32 = 20;
/// When slices that were refused for good are tried again, if nothing else happens.
const REFUSED_AGAIN: Duration = Duration::from_secs(10);

/// State of what is wanted, what is in force, and what lies between.
#[derive(Debug)]
pub(crate) struct Reconciler {
    link: String,
    directions: [DirectionParams; 2],
    slices: BTreeMap<String, SliceState>,
    /// Slices to be looked at, in the order of their changes.
    queue: VecDeque<String>,
    /// Slices to be looked at later.
    later: BTreeMap<(Instant, u64), String>,
    next_number: u64,
    /// Changes that are asked for, in order.
    asked: VecDeque<Asked>,
    /// Generations with changes that are not finished: how many, and the generation reached before.
    open: BTreeMap<u64, Open>,
    /// The newest generation that was taken.
    reached: u64,
    /// Slices with packets that they are not to have any more, and the generation since which. What takes packets waits for
    /// them: these may be the same. It does not wait for those of later generations, so nothing waits forever.
    giving: BTreeSet<(u64, String)>,
    /// Slices that wait for that, and the generation that wants it.
    taking: BTreeSet<(u64, String)>,
    refused: BTreeMap<String, RefusedSlice>,
    /// Slices that were refused, by this process or one before it, and are not known to be in force.
    was_refused: BTreeSet<String>,
    /// Slices that were refused and are in force now.
    recovered: BTreeSet<String>,
    refused_again: Option<Instant>,
    /// Slices of which no frame waits, and the generation that removed each: the controller knows a removal only once that
    /// generation is acknowledged.
    gone: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct Open {
    changes: usize,
    before: u64,
}

#[derive(Debug)]
struct Asked {
    name: String,
    effects: BothWays<Option<Effect>>,
    tenant: (String, u32),
}

impl Reconciler {
    /// Nothing is in force; `kept` is wanted.
    pub(crate) fn new(link: &str, directions: [DirectionParams; 2], kept: Kept) -> Self {
        let mut new = Self {
            link: link.to_owned(),
            directions,
            slices: BTreeMap::new(),
            queue: VecDeque::new(),
            later: BTreeMap::new(),
            next_number: 0,
            asked: VecDeque::new(),
            open: BTreeMap::new(),
            reached: 0,
            giving: BTreeSet::new(),
            taking: BTreeSet::new(),
            refused: BTreeMap::new(),
            was_refused: kept.refused,
            recovered: BTreeSet::new(),
            refused_again: None,
            // No frame of them can wait: the gateway has just started.
            gone: kept
                .removed
                .into_iter()
                .map(|name| (name, kept.generation))
                .collect(),
        };
        new.open(kept.generation);
        for (name, slice) in kept.slices {
            new.want(&name, Some(slice), kept.generation);
        }
        new.close(kept.generation);
        new
    }

    fn want(&mut self, name: &str, wanted: Option<GatewaySlice>, generation: u64) {
        let state = self.slices.entry(name.to_owned()).or_default();
        self.taking.remove(&(state.wanted_in, name.to_owned()));
        state.wanted = wanted;
        state.to_purge = None;
        state.wanted_in = generation;
        state.tries = 0;
        state.since = None;
        if state.open.is_none() {
            state.open = Some(generation);
            if let Some(open) = self.open.get_mut(&generation) {
                open.changes += 1;
            }
        }
        self.note_giving(name);
        self.look_at(name);
    }

    /// Notes that what a slice has, or is to have, has changed.
    fn note_giving(&mut self, name: &str) {
        let Some(state) = self.slices.get_mut(name) else {
            return;
        };
        if state.gives() {
            let since = *state.gives_since.get_or_insert(state.wanted_in);
            self.giving.insert((since, name.to_owned()));
        } else {
            self.has_given(name);
        }
    }

    /// A slice has no packets any more that it is not to have; or it stays as it is.
    fn has_given(&mut self, name: &str) {
        let state = self.slices.get_mut(name);
        let Some(since) = state.and_then(|state| state.gives_since.take()) else {
            return;
        };
        self.giving.remove(&(since, name.to_owned()));
        let oldest = self.giving.first().cloned();
        let (since, giver) = oldest.unwrap_or((u64::MAX, String::new()));
        let still = self.taking.split_off(&(since, String::new()));
        for (_, name) in std::mem::replace(&mut self.taking, still) {
            self.look_at(&name);
        }
        // It does not wait for itself.
        self.look_at(&giver);
    }

    /// Generations are counted anew: all that is under way is of this one.
    fn renumber(&mut self, generation: u64) {
        for state in self.slices.values_mut() {
            state.wanted_in = generation;
            state.gives_since = state.gives_since.and(Some(generation));
        }
        for set in [&mut self.giving, &mut self.taking] {
            let names = std::mem::take(set).into_iter();
            *set = names.map(|(_, name)| (generation, name)).collect();
        }
    }

    /// Returns whether others have packets that a slice may be to have.
    fn blocked_by_release(&self, name: &str, wanted_in: u64) -> bool {
        let earlier = self.giving.iter().take(2);
        let mut earlier = earlier.take_while(|(since, _)| *since <= wanted_in);
        earlier.any(|(_, giver)| giver != name)
    }

    /// A generation is being taken.
    fn open(&mut self, generation: u64) {
        let before = self.reached;
        let entry = self.open.entry(generation);
        // It cannot be reached before all of it is taken.
        entry.or_insert(Open { changes: 0, before }).changes += 1;
    }

    /// All of a generation was taken.
    fn close(&mut self, generation: u64) {
        self.reached = generation;
        self.finish_one(generation);
    }

    fn finish_one(&mut self, generation: u64) {
        if let Some(open) = self.open.get_mut(&generation) {
            open.changes -= 1;
            if open.changes == 0 {
                self.open.remove(&generation);
            }
        }
    }

    fn look_at(&mut self, name: &str) {
        if let Some(state) = self.slices.get_mut(name)
            && !state.is_asked
            && !state.is_queued
        {
            state.is_queued = true;
            self.queue.push_back(name.to_owned());
        }
    }

    fn look_later(&mut self, name: &str, at: Instant) {
        self.next_number += 1;
        self.later.insert((at, self.next_number), name.to_owned());
    }

    /// The next change to ask for; it has to be [answered](Self::on_changed).
    pub(crate) fn poll_change(&mut self, now: Instant) -> Option<DirectedChange> {
        while let Some(entry) = self
            .later
            .first_entry()
            .filter(|entry| entry.key().0 <= now)
        {
            let name = entry.remove();
            self.look_at(&name);
        }
        if self.refused_again.is_some_and(|at| at <= now) {
            self.retry_refused();
            self.refused_again =
                (!self.refused.is_empty()).then(|| now.saturating_add(REFUSED_AGAIN));
        }
        while self.asked.len() < MOST_ASKED {
            let name = self.queue.pop_front()?;
            let Some(wanted_in) = self.slices.get(&name).map(|state| state.wanted_in) else {
                continue;
            };
            let blocked_by_release = self.blocked_by_release(&name, wanted_in);
            let Some(state) = self.slices.get_mut(&name) else {
                continue;
            };
            state.is_queued = false;
            // Others may wait for what it gives while it waits for what it takes.
            let gives_first = blocked_by_release || state.tries > 0 && state.gives();
            let give = gives_first && state.takes();
            if give && !state.gives() {
                self.taking.insert((wanted_in, name));
                continue;
            }
            match state.next(&name, &self.link, &self.directions, give) {
                Next::Ask(change, effects) => {
                    state.is_asked = true;
                    let tenant = state.tenant_wanted();
                    self.asked.push_back(Asked {
                        name,
                        effects,
                        tenant,
                    });
                    return Some(*change);
                }
                Next::Nothing if give => drop(self.taking.insert((wanted_in, name))),
                Next::Nothing => self.finish(&name),
                // It is looked at again when the frames have left.
                Next::Wait => {}
                Next::Refuse(reason) => self.refuse(&name, (reason, None), now),
            }
        }
        None
    }

    /// Notes that what is wanted of a slice is in force.
    fn finish(&mut self, name: &str) {
        self.refused.remove(name);
        let was_refused = self.was_refused.remove(name);
        let Some(state) = self.slices.get_mut(name) else {
            return;
        };
        if was_refused && state.wanted.is_some() {
            self.recovered.insert(name.to_owned());
        }
        state.tries = 0;
        state.since = None;
        let open = state.open.take();
        if state.is_gone() {
            self.gone.insert(name.to_owned(), state.removed);
            self.slices.remove(name);
        }
        if let Some(generation) = open {
            self.finish_one(generation);
        }
    }

    /// Notes that what is wanted of a slice cannot be put in force.
    fn refuse(&mut self, name: &str, (reason, waits_for): Reason, now: Instant) {
        if let Some(state) = self.slices.get_mut(name) {
            state.tries = 0;
            state.since = None;
            if let Some(generation) = state.open.take() {
                self.finish_one(generation);
            }
        }
        let refused = RefusedSlice {
            slice: name.to_owned(),
            reason,
            waits_for,
        };
        self.refused.insert(name.to_owned(), refused);
        self.was_refused.insert(name.to_owned());
        self.recovered.remove(name);
        self.has_given(name);
        let again = now.saturating_add(REFUSED_AGAIN);
        self.refused_again.get_or_insert(again);
    }

    /// Something was released, or has changed: what was refused may fit now.
    fn retry_refused(&mut self) {
        let names: Vec<String> = self.refused.keys().cloned().collect();
        names.iter().for_each(|name| self.look_at(name));
    }

    /// The data plane has answered the oldest change that was asked for.
    pub(crate) fn on_changed(
        &mut self,
        outcome: Result<BothWays<Option<SliceChanged>>, NotChanged>,
        now: Instant,
    ) {
        let Some(Asked {
            name,
            effects,
            tenant,
        }) = self.asked.pop_front()
        else {
            return;
        };
        let Some(state) = self.slices.get_mut(&name) else {
            return;
        };
        state.is_asked = false;
        match outcome {
            Ok(_) => {
                state.on_done(effects, tenant);
                self.note_giving(&name);
                self.look_at(&name);
            }
            Err(refusal) => self.on_refused(&name, &refusal, now),
        }
    }

    fn on_refused(&mut self, name: &str, refusal: &NotChanged, now: Instant) {
        let NotChanged { direction, error } = refusal;
        let is_alone = self.is_alone(name);
        let Some(state) = self.slices.get_mut(name) else {
            return;
        };
        let since = *state.since.get_or_insert(now);
        let is_patient = now.saturating_since(since) < PATIENCE;
        state.tries = state.tries.saturating_add(1);
        let again = match error {
            SliceChangeError::Draining { .. }
            | SliceChangeError::Committed { .. }
            | SliceChangeError::Moving { .. }
            | SliceChangeError::NotByFlow { .. }
            | SliceChangeError::InTransition { .. }
            | SliceChangeError::Refused {
                still_reserved: true,
                ..
            } if is_patient => Some(RETRY),
            // Changes before it may make room.
            SliceChangeError::Refused { .. } if !is_alone && state.tries < MOST_TRIES => {
                Some(RETRY)
            }
            SliceChangeError::NotInPlace { .. } => {
                state.not_in_place[*direction] = true;
                Some(Duration::ZERO)
            }
            SliceChangeError::Unknown { .. } | SliceChangeError::InForce { .. } => {
                state.on_unknown(*direction);
                Some(Duration::ZERO)
            }
            _ => None,
        };
        let tries = state.tries;
        self.note_giving(name);
        match again {
            Some(Duration::ZERO) if tries < MOST_TRIES => self.look_at(name),
            Some(Duration::ZERO) => self.look_later(name, now.saturating_add(RETRY)),
            Some(time) => self.look_later(name, now.saturating_add(time)),
            None => self.refuse(name, reason(refusal), now),
        }
    }

    /// Returns whether no other slice changes or leaves.
    fn is_alone(&self, name: &str) -> bool {
        let others = self.later.values().filter(|other| *other != name);
        let is_quiet = self.asked.is_empty() && self.queue.is_empty() && self.taking.is_empty();
        is_quiet && others.count() == 0
    }

    /// The last frame of a slice has left in a direction.
    pub(crate) fn on_gone(&mut self, way: Way, name: &str) {
        if let Some(state) = self.slices.get_mut(name) {
            state.draining[way] = false;
            self.look_at(name);
        }
        self.retry_refused();
    }

    /// Returns whether nothing is left to do.
    #[cfg(test)]
    pub(crate) fn is_settled(&self) -> bool {
        self.queue.is_empty() && self.later.is_empty() && self.asked.is_empty()
    }
}
