//! Slices that are meters of a policy (P4-TINS): each change is a commit of all of them.
//!
//! The policy of each direction is built from all slices that are wanted, prepared here, and committed between two frames. Slices that stay keep
//! their tokens and counters. Frames of slices that are removed leave before all others, so with the commit a slice is gone.

use super::controller::{check, known_as_gone};
use super::strategy::Reconcile;
use crate::store::{Kept, Record};
use crate::terms;
use slicewise_api::{
    Acknowledgement, Desired, FlowTerms, GatewayChange, GatewaySlice, RefusedSlice,
};
use slicewise_live::engine::{AddedClasses, Engine, EngineBasis, PreparedDirections};
use slicewise_live::gateway::{Answer, Request};
use slicewise_live::{DirectionParams, log};
use slicewise_model::ClassParams;
use slicewise_units::{BitRate, BothWays, Instant, Way};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// State of metered slices.
#[derive(Debug)]
pub(crate) struct Metered {
    link: String,
    directions: [DirectionParams; 2],
    /// State that the controller wants.
    wanted: Kept,
    /// Generation that removed each slice that the controller does not know as gone.
    removed_in: BTreeMap<String, u64>,
    /// The generation that is in force.
    generation: u64,
    in_force: AddedClasses,
    /// Names of the slices in force, with their order.
    order: BTreeMap<String, usize>,
    refused: BTreeMap<String, RefusedSlice>,
    /// Slices that were refused and are in force now.
    recovered: BTreeSet<String>,
    /// True while the slices in force may differ from those wanted.
    is_due: bool,
    step: Step,
    /// Target of the step.
    target: Target,
}

/// Progress of a commit.
#[derive(Debug)]
enum Step {
    Idle,
    /// The base for preparing it is asked for.
    Asked,
    Prepared(Box<PreparedDirections>),
    Committing,
}

/// Slices that can be in force together.
#[derive(Debug, Default)]
struct Target {
    generation: u64,
    classes: AddedClasses,
    names: Vec<String>,
    refused: BTreeMap<String, RefusedSlice>,
}

impl Metered {
    /// Nothing is in force; `kept` is wanted.
    pub(crate) fn new(link: &str, directions: [DirectionParams; 2], kept: Kept) -> Self {
        let removed = kept.removed.iter().cloned();
        Self {
            link: link.to_owned(),
            directions,
            removed_in: removed.map(|name| (name, kept.generation)).collect(),
            wanted: kept,
            generation: 0,
            in_force: AddedClasses::default(),
            order: BTreeMap::new(),
            refused: BTreeMap::new(),
            recovered: BTreeSet::new(),
            is_due: true,
            step: Step::Idle,
            target: Target::default(),
        }
    }

    /// Finds the slices that fit. Those in force come first and in their order, so that their frames stay where they are.
    fn target(&self) -> Target {
        let mut slices: Vec<&GatewaySlice> = self.wanted.slices.values().collect();
        slices.sort_by_key(|slice| self.order.get(&slice.name).unwrap_or(&usize::MAX));
        let free = self.directions.each_ref().map(|params| {
            let free = params.policy.free_for_slices(params.link.rate);
            free.bits_per_second()
        });
        let mut free = BothWays::from(free);
        let mut classes = BothWays::<Vec<ClassParams>>::default();
        let mut target = Target {
            generation: self.wanted.generation,
            ..Target::default()
        };
        for slice in slices {
            let name = slice.name.clone();
            match self.classes_of(slice, free) {
                Ok((own, left)) => {
                    free = left;
                    for (way, class) in own {
                        classes[way].extend(class);
                    }
                    target.names.push(name);
                }
                Err(reason) => {
                    let refused = RefusedSlice {
                        slice: name.clone(),
                        reason,
                        waits_for: None,
                    };
                    target.refused.insert(name, refused);
                }
            }
        }
        target.classes = classes.map(Arc::new);
        target
    }

    /// The classes of a slice, and what is then left of the `free` rates.
    fn classes_of(
        &self,
        slice: &GatewaySlice,
        mut free: BothWays<u64>,
    ) -> Result<(BothWays<Option<ClassParams>>, BothWays<u64>), String> {
        if slice.link != self.link {
            let (own, other) = (&self.link, &slice.link);
            return Err(format!(
                "this gateway has link `{own}`, and no link `{other}`"
            ));
        }
        let mut classes = BothWays::default();
        for (way, terms) in slice.ways() {
            let Some(terms) = terms else { continue };
            let params = match way {
                Way::Forward => &self.directions[0],
                Way::Backward => &self.directions[1],
            };
            let mut own = params.policy.classes.iter();
            if own.any(|class| class.name == slice.name) {
                return Err("the policy of the gateway has a class of this name".to_owned());
            }
            let class = terms::metered_class(&slice.name, terms, params)?;
            let asked = terms.guarantee.map_or(0, |guarantee| guarantee.rate_bps);
            let left = free[way].checked_sub(asked).ok_or_else(|| {
                let (asked, free) = (BitRate::new(asked), BitRate::new(free[way]));
                format!("{way}: guarantees {asked}, but only {free} of the link is free")
            })?;
            (classes[way], free[way]) = (Some(class), left);
        }
        Ok((classes, free))
    }

    /// Prepares the commit of what is wanted now.
    fn prepare(&mut self, basis: &EngineBasis, now: Instant) {
        self.is_due = false;
        self.target = self.target();
        let classes = self.target.classes.clone();
        self.step = match basis.prepare_added(&self.directions, classes, now) {
            Ok(prepared) => Step::Prepared(Box::new(prepared)),
            Err(error) => {
                // Each slice was checked: this would be a defect. The next change tries again.
                log::warn("slices_not_changed", &[("reason", &error)]);
                Step::Idle
            }
        };
    }

    /// Notes that the target is in force.
    fn conclude(&mut self) {
        let target = std::mem::take(&mut self.target);
        self.step = Step::Idle;
        self.generation = target.generation;
        self.in_force = target.classes;
        self.order = target.names.into_iter().zip(0..).collect();
        self.refused = target.refused;
        let slices = &self.wanted.slices;
        let known = &mut self.wanted.refused;
        let recovered = known
            .iter()
            .filter(|name| self.order.contains_key(*name))
            .cloned();
        self.recovered.extend(recovered);
        known.retain(|name| slices.contains_key(name) && !self.order.contains_key(name));
        known.extend(self.refused.keys().cloned());
        let refused = &self.refused;
        self.recovered
            .retain(|name| slices.contains_key(name) && !refused.contains_key(name));
    }
}

impl Reconcile for Metered {
    fn take(&mut self, desired: Desired) -> Result<Vec<Record>, String> {
        let generation = desired.generation;
        check(&desired, self.wanted.generation)?;
        let changes = match desired.snapshot {
            None => desired.changes,
            Some(slices) => {
                let names: BTreeSet<&str> =
                    slices.iter().map(|slice| slice.name.as_str()).collect();
                let others = self.wanted.slices.keys();
                let others = others.filter(|name| !names.contains(name.as_str()));
                let removed = others.chain(&desired.draining).cloned();
                let removed: Vec<_> = removed.map(GatewayChange::Remove).collect();
                let put = slices.into_iter().map(Box::new).map(GatewayChange::Put);
                removed.into_iter().chain(put).collect()
            }
        };
        if generation < self.wanted.generation {
            // The controller has an older store: what it says now counts.
            (self.generation, self.target.generation) = (0, 0);
            let removed = self.removed_in.values_mut();
            removed.for_each(|removed| *removed = generation.min(*removed));
        }
        let mut records = Vec::new();
        for change in changes {
            match change {
                GatewayChange::Put(slice) => {
                    if self.wanted.slices.get(&slice.name) != Some(&*slice) {
                        records.push(Record::Put(slice));
                    }
                }
                GatewayChange::Remove(name) => {
                    self.removed_in.insert(name.clone(), generation);
                    if !self.wanted.removed.contains(&name) {
                        records.push(Record::Remove(name));
                    }
                }
            }
        }
        if generation != self.wanted.generation || !records.is_empty() {
            records.push(Record::Generation(generation));
        }
        self.is_due |= !records.is_empty();
        let applied = records.iter().cloned();
        applied.for_each(|record| self.wanted.apply(record));
        Ok(records)
    }

    fn kept(&self) -> Kept {
        self.wanted.clone()
    }

    fn acknowledgement(&self) -> Acknowledgement {
        let is_gone = |name: &&String| {
            let removed = self.removed_in.get(*name);
            removed.is_some_and(|removed| *removed <= self.generation)
        };
        let gone = self.wanted.removed.iter().filter(is_gone);
        Acknowledgement {
            generation: self.generation,
            refused: self.refused.values().cloned().collect(),
            recovered: self.recovered.iter().cloned().collect(),
            gone: gone.cloned().collect(),
        }
    }

    fn on_acknowledged(&mut self, acknowledgement: &Acknowledgement) -> Vec<Record> {
        for name in &acknowledgement.recovered {
            self.recovered.remove(name);
        }
        let known = known_as_gone(&mut self.removed_in, acknowledgement);
        if known.is_empty() {
            return Vec::new();
        }
        let record = Record::Gone(known);
        self.wanted.apply(record.clone());
        vec![record]
    }

    fn reached(&self) -> u64 {
        self.wanted.generation
    }

    fn refused(&self) -> &BTreeSet<String> {
        &self.wanted.refused
    }

    fn refused_now(&self) -> u64 {
        self.refused.len() as u64
    }

    fn is_in_force(&self, name: &str) -> bool {
        self.order.contains_key(name)
    }

    fn flows_in_force(&self, _: &str, _: Way) -> Option<&FlowTerms> {
        None
    }

    fn on_reloaded(&mut self, directions: [DirectionParams; 2]) {
        self.directions = directions;
        self.is_due = true;
    }

    fn restore(&mut self, engine: &mut Engine, now: Instant) {
        self.prepare(&engine.basis(), now);
        if let Step::Prepared(prepared) = std::mem::replace(&mut self.step, Step::Idle)
            && engine.commit(*prepared, now).is_ok()
        {
            self.conclude();
        }
    }

    fn poll_at(&self) -> Option<Instant> {
        None
    }

    fn poll_request(&mut self, is_counting: bool, _: Instant) -> Option<Request> {
        match std::mem::replace(&mut self.step, Step::Idle) {
            Step::Idle if self.is_due => {
                let target = self.target();
                if target.classes == self.in_force {
                    self.is_due = false;
                    self.target = target;
                    self.conclude();
                    return None;
                }
                self.step = Step::Asked;
                Some(Request::Basis)
            }
            Step::Prepared(prepared) if !is_counting => {
                self.step = Step::Committing;
                Some(Request::Commit(prepared))
            }
            step => {
                self.step = step;
                None
            }
        }
    }

    fn on_answer(&mut self, answer: Answer, now: Instant) {
        match answer {
            Answer::Basis(basis) => self.prepare(&basis, now),
            Answer::Committed(Ok(_)) => self.conclude(),
            // A reload came first.
            Answer::Committed(Err(_)) => {
                self.step = Step::Idle;
                self.is_due = true;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
