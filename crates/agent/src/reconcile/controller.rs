//! Messages of the controller, and reports of the agent to it.

use super::slice::SliceState;
use super::{Reconcile, Reconciler};
use crate::store::{Kept, Record};
use slicewise_api::{Acknowledgement, Desired, FlowTerms, GatewayChange, GatewaySlice, check_name};
use slicewise_live::DirectionParams;
use slicewise_live::engine::Engine;
use slicewise_live::gateway::{Answer, Request};
use slicewise_units::{Instant, Way};
use std::collections::{BTreeMap, BTreeSet};

impl Reconciler {
    fn put(&mut self, slice: GatewaySlice, generation: u64, records: &mut Vec<Record>) {
        self.gone.remove(&slice.name);
        let state = self.slices.get(&slice.name);
        if state.is_some_and(|state| state.wanted.as_ref() == Some(&slice)) {
            return;
        }
        records.push(Record::Put(Box::new(slice.clone())));
        let name = slice.name.clone();
        self.want(&name, Some(slice), generation);
    }

    fn remove(&mut self, name: &str, generation: u64, records: &mut Vec<Record>) {
        if let Some(removed) = self.gone.get_mut(name) {
            *removed = generation;
            return;
        }
        let is_leaving = self
            .slices
            .get(name)
            .is_some_and(|state| state.wanted.is_none());
        if !is_leaving {
            self.recovered.remove(name);
            records.push(Record::Remove(name.to_owned()));
            self.want(name, None, generation);
        }
        if let Some(state) = self.slices.get_mut(name) {
            state.removed = generation;
        }
    }

    /// Frames of these slices are not to wait any more, if they were removed.
    fn purge(&mut self, names: &[String]) {
        for name in names {
            let state = self.slices.get_mut(name);
            if let Some(state) = state.filter(|state| state.wanted.is_none()) {
                state.to_purge.get_or_insert([true; 2].into());
                self.look_at(name);
            }
        }
    }
}

impl Reconcile for Reconciler {
    fn take(&mut self, desired: Desired) -> Result<Vec<Record>, String> {
        check(&desired, self.reached)?;
        let Desired {
            generation,
            snapshot,
            draining,
            purge,
            changes,
            store: _,
        } = desired;
        let mut records = Vec::new();
        let Some(snapshot) = snapshot else {
            if generation == self.reached && changes.is_empty() {
                return Ok(records);
            }
            self.open(generation);
            for change in changes {
                match change {
                    GatewayChange::Put(slice) => self.put(*slice, generation, &mut records),
                    GatewayChange::Remove(name) => self.remove(&name, generation, &mut records),
                }
            }
            self.purge(&purge);
            self.close(generation);
            records.push(Record::Generation(generation));
            return Ok(records);
        };
        let is_new = generation != self.reached;
        if generation < self.reached {
            // The controller has an older store: what it says now counts.
            self.open.clear();
            self.slices.values_mut().for_each(|state| state.open = None);
            self.gone
                .values_mut()
                .for_each(|removed| *removed = generation);
            let states = self.slices.values_mut();
            states.for_each(|state| state.removed = state.removed.min(generation));
            self.renumber(generation);
            self.reached = 0;
        }
        self.open(generation);
        let names: BTreeSet<String> = snapshot.iter().map(|slice| slice.name.clone()).collect();
        let has = |state: &SliceState| state.wanted.is_some();
        let others = self.slices.iter().filter(|(_, state)| has(state));
        let others = others.map(|(name, _)| name.clone());
        let others: Vec<String> = others.filter(|name| !names.contains(name)).collect();
        for name in others.iter().chain(&draining) {
            self.remove(name, generation, &mut records);
        }
        for slice in snapshot {
            self.put(slice, generation, &mut records);
        }
        self.purge(&purge);
        self.close(generation);
        if is_new || !records.is_empty() {
            records.push(Record::Generation(generation));
        }
        Ok(records)
    }

    fn kept(&self) -> Kept {
        let wanted = self.slices.iter().filter_map(|(name, state)| {
            let wanted = state.wanted.as_ref()?;
            Some((name.clone(), wanted.clone()))
        });
        let leaving = self
            .slices
            .iter()
            .filter(|(_, state)| state.wanted.is_none());
        let leaving = leaving.map(|(name, _)| name.clone());
        Kept {
            generation: self.reached,
            slices: wanted.collect(),
            removed: leaving.chain(self.gone.keys().cloned()).collect(),
            refused: self.was_refused.clone(),
        }
    }

    fn acknowledgement(&self) -> Acknowledgement {
        let first_open = self.open.values().next();
        let generation = first_open.map_or(self.reached, |open| open.before);
        let is_known = |removed: u64| removed <= generation;
        let gone = self.gone.iter().filter(|&(_, &removed)| is_known(removed));
        Acknowledgement {
            generation,
            refused: self.refused.values().cloned().collect(),
            recovered: self.recovered.iter().cloned().collect(),
            gone: gone.map(|(name, _)| name.clone()).collect(),
        }
    }

    fn on_acknowledged(&mut self, acknowledgement: &Acknowledgement) -> Vec<Record> {
        for name in &acknowledgement.recovered {
            self.recovered.remove(name);
        }
        let known = known_as_gone(&mut self.gone, acknowledgement);
        if known.is_empty() {
            return Vec::new();
        }
        vec![Record::Gone(known)]
    }

    fn reached(&self) -> u64 {
        self.reached
    }

    fn refused(&self) -> &BTreeSet<String> {
        &self.was_refused
    }

    fn refused_now(&self) -> u64 {
        self.refused.len() as u64
    }

    fn is_in_force(&self, name: &str) -> bool {
        let state = self.slices.get(name);
        state.is_some_and(SliceState::is_here)
    }

    fn flows_in_force(&self, name: &str, way: Way) -> Option<&FlowTerms> {
        let here = self.slices.get(name)?.here[way].as_ref()?;
        Some(&here.flows)
    }

    fn on_reloaded(&mut self, directions: [DirectionParams; 2]) {
        self.directions = directions;
        // Queue limits follow the rate of the link.
        let names: Vec<String> = self.slices.keys().cloned().collect();
        for name in names {
            self.look_at(&name);
        }
    }

    fn restore(&mut self, engine: &mut Engine, now: Instant) {
        while let Some(change) = self.poll_change(now) {
            self.on_changed(engine.change_slice(change, now), now);
        }
    }

    fn poll_at(&self) -> Option<Instant> {
        let later = self.later.keys().next().map(|&(at, _)| at);
        later.into_iter().chain(self.refused_again).min()
    }

    fn poll_request(&mut self, _: bool, now: Instant) -> Option<Request> {
        let change = self.poll_change(now)?;
        Some(Request::Change(Box::new(change)))
    }

    fn on_answer(&mut self, answer: Answer, now: Instant) {
        match answer {
            Answer::Changed(outcome) => self.on_changed(outcome, now),
            Answer::Gone(gone) => self.on_gone(gone.direction, &gone.counters.class),
            _ => {}
        }
    }
}

/// Takes out of `removed`, by name the generation that removed each slice, what the controller knows as gone; returns these names.
pub(super) fn known_as_gone(
    removed: &mut BTreeMap<String, u64>,
    acknowledgement: &Acknowledgement,
) -> Vec<String> {
    let mut known = acknowledgement.gone.clone();
    // One that was removed once more meanwhile is still to be told.
    known.retain(|name| {
        let removed_in = removed.get(name);
        let is_known = removed_in.is_some_and(|&own| own <= acknowledgement.generation);
        is_known && removed.remove(name).is_some()
    });
    known
}

/// Checks an answer after generation `reached`. Names must be such as the controller gives.
pub(super) fn check(desired: &Desired, reached: u64) -> Result<(), String> {
    let generation = desired.generation;
    if i64::try_from(generation).is_err() {
        return Err(format!("{generation} is not a generation"));
    }
    let snapshot = desired.snapshot.iter().flatten();
    let changed = desired.changes.iter().map(|change| match change {
        GatewayChange::Put(slice) => slice.name.as_str(),
        GatewayChange::Remove(name) => name.as_str(),
    });
    let names = snapshot.map(|slice| slice.name.as_str());
    let others = [&desired.draining, &desired.purge];
    let names = names.chain(others.into_iter().flatten().map(String::as_str));
    for name in names.chain(changed) {
        check_name(name, "/name").map_err(|invalid| invalid.to_string())?;
    }
    if desired.snapshot.is_none() && generation < reached {
        return Err(format!(
            "it answers with generation {generation} after {reached} without saying what is in force"
        ));
    }
    Ok(())
}
