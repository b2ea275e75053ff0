//! A policy that differs from the one in force in its slices and some of what they have in common, as changes of these.
//!
//! To commit a whole policy takes time for each slice; these changes can be spread over time.

use super::class_maps::{bare, exchanged};
use super::slice::{ClassMaps, Conditioning, NewSlice, SliceChange};
use super::{Basis, beside, ledger};
use crate::slice_flows::SliceFlows;
use slicewise_model::{
    AdmissionParams, ClassMap, ClassParams, GuaranteeParams, PolicyParams, Reservation,
    Reservations, SliceParams, TenantParams,
};
use std::collections::{HashMap, HashSet};

/// One of the changes that lead to another policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GradualStep {
    /// What slices have in common is that of this policy, which has no classes and tenants: [`Pipeline::change_common`](crate::Pipeline::change_common).
    Common(Box<PolicyParams>),
    /// A tenant more, or another weight for one: [`Pipeline::tenant`](crate::Pipeline::tenant).
    Tenant(TenantParams),
    /// The flows of a slice are told apart: [`Pipeline::tell_flows_apart`](crate::Pipeline::tell_flows_apart).
    FlowsApart(String),
    /// Class maps that meet others, all at once: [`Pipeline::exchange_class_maps`](crate::Pipeline::exchange_class_maps).
    ClassMaps(Box<ClassMaps>),
    /// A change of a slice: [`Pipeline::change_slice`](crate::Pipeline::change_slice).
    Slice(SliceChange),
}

/// Steps towards another policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GradualSteps {
    /// By which slices give up what they will not have any more, or go. In this order, and first.
    pub given_up: Vec<GradualStep>,
    /// By which slices get what they will have, or come. In this order.
    pub given: Vec<GradualStep>,
}

impl Basis {
    /// The steps after which `policy` is in force beside slices that were added one by one; `None` if it differs in more
    /// than its name, the rate and buffer of its links, the largest frame, the delays of one resolution, tenants, and slices that come, go or
    /// have other names, parameters, marks, policers, flow queues or class maps, or a class map that moves, comes or goes has a
    /// frame in common with another.
    /// Where a link has a limited buffer, also if it has no room for both delays of slices that get another one.
    /// O(classes · combinations of bits that class maps test).
    ///
    /// What slices will not have any more they give up first, and then each gets what it will have: no slice has less
    /// meanwhile than what both policies promise it. A step is refused only until no frame waits that is to leave under
    /// a guarantee, and until frames have left: those of slices that went, and those that came before flows were told apart.
    #[must_use]
    pub fn gradual_steps(&self, policy: &PolicyParams) -> Option<GradualSteps> {
        let Some(slices) = &self.slices else {
            return (self.params.policy == *policy).then(GradualSteps::default);
        };
        let added = ledger::added(slices);
        let mut after = beside::policy_with(policy.clone(), added, &self.params.policy).ok()?;
        let (before, numbers_of_old) = self.policy();
        let numbers_of_old = numbers_of_old?;
        let mut before = before.into_owned();
        let mut old = std::mem::take(&mut before.classes);
        let mut new = std::mem::take(&mut after.classes);
        let mut steps = GradualSteps::default();
        let tenants = after.guaranteed.as_mut().map(|common| &mut common.tenants);
        let wanted = std::mem::take(tenants?);
        let known = std::mem::take(&mut before.guaranteed.as_mut()?.tenants);
        let [accepted, admitted, given] = &meanwhile(&before, &after)?;
        steps.rename(&mut old, &new);
        steps.given_up.extend(step(&before, accepted));
        steps.given_up.extend(step(accepted, admitted));
        steps.given.extend(step(admitted, given));
        let numbers = steps.tenants(&known, wanted);
        for slice in new.iter_mut().filter_map(|class| class.slice.as_mut()) {
            slice.tenant = *numbers.get(slice.tenant as usize)?;
        }
        if !are_alike(&old, &new) {
            let order = |number: usize| Some(slices.get(number)?.as_ref()?.order);
            let orders = numbers_of_old
                .iter()
                .map(|&number| order(number).unwrap_or(0));
            let placed: Vec<(u32, ClassParams)> = orders.zip(old).collect();
            let maps = exchanged(&placed, &new)?;
            old = placed.into_iter().map(|(_, class)| class).collect();
            steps.exchange(maps, &mut old, &new)?;
        }
        let mut links = admitted.links.iter().chain(&given.links);
        let has_buffer = links.any(|link| link.buffer.is_some());
        if has_buffer && !hold_both_delays(&admitted.links, &old, &new) {
            return None;
        }
        steps.slices(old, new, has_buffer)?;
        steps.given.extend(step(given, &after));
        Some(steps)
    }
}

impl GradualSteps {
    /// Slices that have no successor get the names of those without a predecessor that have the same class map.
    fn rename(&mut self, old: &mut [ClassParams], new: &[ClassParams]) {
        let known: HashSet<&str> = old.iter().map(|class| class.name.as_str()).collect();
        let wanted: HashSet<&str> = new.iter().map(|class| class.name.as_str()).collect();
        let come = new.iter().filter(|class| !known.contains(&*class.name));
        let maps = come.filter_map(|class| {
            let map = class.matches.as_ref()?;
            Some(((map.mode, &map.conditions), &class.name))
        });
        let mut maps: HashMap<_, &String> = maps.collect();
        drop(known);
        for class in old {
            let map = class.matches.as_mut();
            let Some(map) = map.filter(|_| !wanted.contains(&*class.name)) else {
                continue;
            };
            let Some(to) = maps.remove(&(map.mode, &map.conditions)) else {
                continue;
            };
            if map.name == class.name {
                map.name.clone_from(to);
            }
            let (name, to) = (std::mem::replace(&mut class.name, to.clone()), to.clone());
            let rename = SliceChange::Rename { name, to };
            self.given_up.push(GradualStep::Slice(rename));
        }
    }

    /// Returns the number of each tenant that is wanted; those that no slice has any more stay.
    fn tenants(&mut self, known: &[TenantParams], wanted: Vec<TenantParams>) -> Vec<u32> {
        let numbers = known.iter().map(|tenant| tenant.name.as_str()).zip(0u32..);
        let numbers: HashMap<&str, u32> = numbers.collect();
        let mut next = u32::try_from(known.len()).unwrap_or(u32::MAX);
        let mut number_of = |tenant: TenantParams| {
            let number = numbers.get(tenant.name.as_str()).copied();
            let before = number.and_then(|number| known.get(number as usize));
            if before != Some(&tenant) {
                self.given_up.push(GradualStep::Tenant(tenant));
            }
            number.unwrap_or_else(|| {
                next += 1;
                next - 1
            })
        };
        wanted.into_iter().map(&mut number_of).collect()
    }

    /// Class maps that meet others are exchanged; slices that get one come before.
    fn exchange(
        &mut self,
        maps: Vec<ClassMaps>,
        old: &mut Vec<ClassParams>,
        new: &[ClassParams],
    ) -> Option<()> {
        let named = maps.iter().flat_map(|step| &step.placed);
        let named = named.map(|(name, map, _)| (&**name, map));
        let named: HashMap<&str, &ClassMap> = named.collect();
        let mut known = HashSet::new();
        for class in old.iter_mut() {
            if let Some(map) = named.get(&*class.name) {
                class.matches = Some((*map).clone());
                known.insert(class.name.clone());
            }
        }
        for class in new {
            if named.contains_key(&*class.name) && !known.contains(&class.name) {
                let (add, class) = bare(added(class.clone())?, class);
                self.given_up.push(GradualStep::Slice(add));
                old.push(class);
            }
        }
        let maps = maps.into_iter().map(Box::new);
        self.given_up.extend(maps.map(GradualStep::ClassMaps));
        Some(())
    }

    fn slices(
        &mut self,
        old: Vec<ClassParams>,
        new: Vec<ClassParams>,
        has_buffer: bool,
    ) -> Option<()> {
        let mut delays = Vec::new();
        let old = old.into_iter().map(|class| (class.name.clone(), class));
        let mut old: HashMap<String, ClassParams> = old.collect();
        for class in new {
            match old.remove(&class.name) {
                Some(old) => self.change(old, class, has_buffer.then_some(&mut delays))?,
                None => self.give(SliceChange::Add(Box::new(added(class)?))),
            }
        }
        // In an order that does not depend on a hash.
        let mut removed: Vec<String> = old.into_keys().collect();
        removed.sort_unstable();
        let removed = removed.into_iter().map(|name| SliceChange::Remove { name });
        self.given_up.extend(removed.map(GradualStep::Slice));
        self.given_up.append(&mut delays);
        Some(())
    }

    /// Where a link has a limited buffer, steps to another delay are collected in `delays`.
    fn change(
        &mut self,
        old: ClassParams,
        new: ClassParams,
        delays: Option<&mut Vec<GradualStep>>,
    ) -> Option<()> {
        let (from, to) = old.slice.zip(new.slice)?;
        let has_other_map = old.matches != new.matches;
        let old_flow_queue = old.flow_queue;
        let [before, after] = [&old, &new].map(conditioning);
        if !differ_in_slice_only(old, &new) {
            return None;
        }
        let name = &new.name;
        self.change_params(name, (from, to), delays);
        if before != after {
            self.give(SliceChange::Conditioning {
                name: name.clone(),
                conditioning: Box::new(after),
            });
        }
        if old_flow_queue != new.flow_queue {
            // So that all slices wait at the same time for their frames.
            let is_first = old_flow_queue.is_none();
            let apart = is_first.then(|| GradualStep::FlowsApart(name.clone()));
            self.given_up.extend(apart);
            let flows = SliceFlows {
                queue: new.flow_queue,
                ..SliceFlows::default()
            };
            self.give(SliceChange::Flows {
                name: name.clone(),
                flows: Box::new(flows),
            });
        }
        if has_other_map {
            self.give(SliceChange::Matches {
                name: name.clone(),
                matches: Box::new(new.matches?),
            });
        }
        Some(())
    }

    fn change_params(
        &mut self,
        name: &str,
        (from, to): (SliceParams, SliceParams),
        delays: Option<&mut Vec<GradualStep>>,
    ) {
        let change = |params| {
            let name = name.to_owned();
            GradualStep::Slice(SliceChange::Change { name, params })
        };
        let with = |guarantee| SliceParams { guarantee, ..from };
        let both = from.guarantee.zip(to.guarantee);
        let other_delay = both.filter(|(from, to)| from.delay != to.delay);
        if let (Some(delays), Some((before, after))) = (delays, other_delay) {
            let either = with_either_delay(before, after);
            let [kept, moved] = either.map(|guarantee| with(Some(guarantee)));
            self.given_up.extend((kept != from).then(|| change(kept)));
            delays.push(change(moved));
            self.given.extend((to != moved).then(|| change(to)));
            return;
        }
        let kept = with(both.map(|(from, to)| common(from, to)));
        if kept.guarantee == from.guarantee {
            self.given.extend((to != from).then(|| change(to)));
        } else if kept.guarantee == to.guarantee && from.tenant == to.tenant {
            self.given_up.push(change(to));
        } else {
            self.given_up.push(change(kept));
            self.given.push(change(to));
        }
    }

    fn give(&mut self, change: SliceChange) {
        self.given.push(GradualStep::Slice(change));
    }
}

/// The step to what slices of another policy have in common.
fn step(before: &PolicyParams, after: &PolicyParams) -> Option<GradualStep> {
    (before != after).then(|| GradualStep::Common(Box::new(after.clone())))
}

/// What slices have in common on the way from one policy to another, in three steps: frames up to the smaller of both largest are
/// accepted; the links know of smaller frames; and once slices have given up what they will
/// not have, the links are those of the other policy. `None` if the policies differ otherwise.
fn meanwhile(before: &PolicyParams, after: &PolicyParams) -> Option<[PolicyParams; 3]> {
    let (old, new) = before.guaranteed.as_ref().zip(after.guaranteed.as_ref())?;
    if old.delays.bucket_width() != new.delays.bucket_width() {
        return None;
    }
    let delays = new.delays;
    let largest_frame = old.largest_frame.min(new.largest_frame);
    let [accepted, given] = [before, after].map(|policy| {
        let mut policy = policy.clone();
        if let Some(common) = &mut policy.guaranteed {
            common.largest_frame = largest_frame;
            common.delays = delays;
        }
        policy
            .links
            .iter_mut()
            .for_each(|link| link.delays = delays);
        policy
    });
    let mut admitted = accepted.clone();
    let mut alike = accepted.clone();
    alike.name.clone_from(&given.name);
    let links = admitted.links.iter_mut().zip(&mut alike.links);
    for ((admitted, alike), given) in links.zip(&given.links) {
        admitted.largest_frame = admitted.largest_frame.min(given.largest_frame);
        alike.link.rate = given.link.rate;
        (alike.buffer, alike.largest_frame) = (given.buffer, given.largest_frame);
    }
    (alike == given).then_some([accepted, admitted, given])
}

/// Whether links have room for both delays of each slice that gets another one. During the longer one more frames wait, and the
/// shorter one takes more of the link: with a limited buffer neither may come first.
fn hold_both_delays(links: &[AdmissionParams], old: &[ClassParams], new: &[ClassParams]) -> bool {
    let guarantee = |class: &ClassParams| Some((class.name.clone(), class.slice?.guarantee?));
    let before: HashMap<String, GuaranteeParams> = old.iter().filter_map(guarantee).collect();
    let after = new.iter().filter_map(guarantee);
    let both = after.filter_map(|(name, after)| Some((*before.get(&name)?, after)));
    if both
        .clone()
        .all(|(before, after)| before.delay == after.delay)
    {
        return true;
    }
    let mut reservations = Reservations::new(links);
    let mut covering = both.map(|(before, after)| {
        let [before, after] = with_either_delay(before, after);
        Reservation::from(before).covering(after)
    });
    covering.all(|both| reservations.try_reserve(both).is_ok())
}

/// Whether class maps are the same, in the same order. Then they may meet.
fn are_alike(old: &[ClassParams], new: &[ClassParams]) -> bool {
    let mut classes = old.iter().zip(new);
    old.len() == new.len()
        && classes.all(|(old, new)| old.name == new.name && old.matches == new.matches)
}

/// The slice more that a class is; `None` where it has something that a slice alone has not.
fn added(class: ClassParams) -> Option<NewSlice> {
    let new = NewSlice {
        name: class.name.clone(),
        matches: class.matches.clone()?,
        params: class.slice?,
        conditioning: conditioning(&class),
        flow_queue: class.flow_queue,
        is_of_policy: true,
    };
    (ClassParams::from(new.clone()) == class).then_some(new)
}

fn conditioning(class: &ClassParams) -> Conditioning {
    Conditioning {
        set_dscp: class.set_dscp,
        police: class.police.clone(),
    }
}

/// Whether two classes are one but for what changes of a slice change.
fn differ_in_slice_only(old: ClassParams, new: &ClassParams) -> bool {
    let changed = ClassParams {
        // Class-default has no class map.
        matches: old.matches.and(new.matches.clone()),
        police: new.police.clone(),
        set_dscp: new.set_dscp,
        weight: new.weight,
        queue_limit: new.queue_limit,
        flow_queue: new.flow_queue,
        slice: new.slice,
        ..old
    };
    changed == *new
}

/// What both guarantees promise.
fn common(one: GuaranteeParams, other: GuaranteeParams) -> GuaranteeParams {
    GuaranteeParams {
        rate: one.rate.min(other.rate),
        burst: one.burst.min(other.burst),
        delay: one.delay.max(other.delay),
        smallest_frame: one.smallest_frame.max(other.smallest_frame),
    }
}

/// The rate and burst that both guarantees promise, with the delay of one and with that of the other.
fn with_either_delay(one: GuaranteeParams, other: GuaranteeParams) -> [GuaranteeParams; 2] {
    let common = common(one, other);
    [one.delay, other.delay].map(|delay| GuaranteeParams { delay, ..common })
}
