//! Another policy as changes of single slices, where nothing differs that slices have in common.

use super::slice::SliceChange;
use super::successors::Overlap;
use super::terms::{Conditioning, NewSlice};
use super::{Basis, beside, ledger};
use slicewise_model::{
    ClassMap, ClassParams, GuaranteeParams, PolicyParams, QueueParams, SliceParams, TenantParams,
};
use std::collections::HashMap;

/// A change on the way to another policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Adds a tenant, or changes its weight: [`Pipeline::tenant`](crate::Pipeline::tenant).
    Tenant(TenantParams),
    /// Changes a slice: [`Pipeline::change_slice`](crate::Pipeline::change_slice).
    Slice(SliceChange),
}

/// Steps that are being collected.
#[derive(Default)]
struct Steps {
    /// By which slices give up what the other policy does not give them.
    given_up: Vec<Step>,
    /// By which slices get what it gives them.
    given: Vec<Step>,
}

impl Basis {
    /// Returns the steps after which `policy` is in force beside slices that were added one by one, in their order: slices give up
    /// before others get, so no slice has less meanwhile than what both policies promise it. A step is refused only until
    /// nothing that was given up is reserved any more. `None` if the policy has to be committed: it differs in what slices have in common
    /// (anything but tenants), in what [`SliceChange`] does not change without looking at frames, or in class maps that have
    /// a frame in common with another one; or another delay would need room in a limited buffer beside the one before.
    ///
    /// O(classes · combinations of bits that class maps test).
    #[must_use]
    pub fn diff(&self, policy: &PolicyParams) -> Option<Vec<Step>> {
        let Some(slices) = &self.slices else {
            return (self.params.policy == *policy).then(Vec::new);
        };
        let added = ledger::added(slices);
        let mut after = beside::policy_with(policy.clone(), added, &self.params.policy).ok()?;
        let mut before = self.policy().0.into_owned();
        let old = std::mem::take(&mut before.classes);
        let mut new = std::mem::take(&mut after.classes);
        let known = std::mem::take(&mut before.guaranteed.as_mut()?.tenants);
        let wanted = std::mem::take(&mut after.guaranteed.as_mut()?.tenants);
        if before != after || !meet_alike(&old, &new) {
            return None;
        }
        let mut steps = Steps::default();
        let numbers = steps.tenants(&known, wanted);
        for slice in new.iter_mut().filter_map(|class| class.slice.as_mut()) {
            slice.tenant = *numbers.get(slice.tenant as usize)?;
        }
        let has_buffer = before.links.iter().any(|link| link.buffer.is_some());
        steps.slices(old, new, has_buffer)?;
        steps.given_up.append(&mut steps.given);
        Some(steps.given_up)
    }
}

impl Steps {
    /// Returns the number of each tenant that is wanted; those that no slice has any more stay.
    fn tenants(&mut self, known: &[TenantParams], wanted: Vec<TenantParams>) -> Vec<u32> {
        let numbers = known.iter().map(|tenant| tenant.name.as_str()).zip(0u32..);
        let numbers: HashMap<&str, u32> = numbers.collect();
        let mut next = u32::try_from(known.len()).unwrap_or(u32::MAX);
        let mut number_of = |tenant: TenantParams| {
            let number = numbers.get(tenant.name.as_str()).copied();
            let before = number.and_then(|number| known.get(number as usize));
            if before != Some(&tenant) {
                self.given_up.push(Step::Tenant(tenant));
            }
            number.unwrap_or_else(|| {
                next += 1;
                next - 1
            })
        };
        wanted.into_iter().map(&mut number_of).collect()
    }

    fn slices(
        &mut self,
        old: Vec<ClassParams>,
        new: Vec<ClassParams>,
        has_buffer: bool,
    ) -> Option<()> {
        let old = old.into_iter().map(|class| (class.name.clone(), class));
        let mut old: HashMap<String, ClassParams> = old.collect();
        for class in new {
            match old.remove(&class.name) {
                Some(old) => self.change(old, class, has_buffer)?,
                None => self.give(SliceChange::Add(Box::new(added(class)?))),
            }
        }
        // In an order that does not depend on a hash.
        let mut removed: Vec<String> = old.into_keys().collect();
        removed.sort_unstable();
        let removed = removed.into_iter().map(|name| SliceChange::Remove { name });
        self.given_up.extend(removed.map(Step::Slice));
        Some(())
    }

    fn change(&mut self, old: ClassParams, new: ClassParams, has_buffer: bool) -> Option<()> {
        let (from, to) = old.slice.zip(new.slice)?;
        let both = from.guarantee.zip(to.guarantee);
        if has_buffer && both.is_some_and(|(from, to)| from.delay != to.delay) {
            return None;
        }
        let has_other_map = old.matches != new.matches;
        let [before, after] = [&old, &new].map(conditioning);
        if !differ_in_slice_only(old, &new) {
            return None;
        }
        let [given_up, given] = SliceChange::between(&new.name, &from, &to);
        self.given_up.extend(given_up.map(Step::Slice));
        self.given.extend(given.map(Step::Slice));
        if before != after {
            self.give(SliceChange::Conditioning {
                name: new.name.clone(),
                conditioning: Box::new(after),
            });
        }
        if has_other_map {
            self.give(SliceChange::Matches {
                name: new.name,
                matches: Box::new(new.matches?),
            });
        }
        Some(())
    }

    fn give(&mut self, change: SliceChange) {
        self.given.push(Step::Slice(change));
    }
}

impl SliceChange {
    /// Returns the changes of the parameters of a slice: by which it gives up, and then by which it gets.
    #[must_use]
    pub fn between(name: &str, from: &SliceParams, to: &SliceParams) -> [Option<Self>; 2] {
        let change = |params: SliceParams| {
            let name = name.to_owned();
            Self::Change { name, params }
        };
        let both = from.guarantee.zip(to.guarantee);
        let guarantee = both.map(|(from, to)| common(from, to));
        if guarantee == from.guarantee {
            [None, (to != from).then(|| change(*to))]
        } else if guarantee == to.guarantee && from.tenant == to.tenant {
            [Some(change(*to)), None]
        } else {
            let kept = SliceParams { guarantee, ..*from };
            [Some(change(kept)), Some(change(*to))]
        }
    }
}

/// Returns whether class maps that have frames in common with others are the same, in the same order. Those at the head that stay as they are
/// keep their frames whatever comes behind them.
fn meet_alike(old: &[ClassParams], new: &[ClassParams]) -> bool {
    let stays = |(old, new): &(&ClassParams, &ClassParams)| {
        old.name == new.name && old.matches == new.matches
    };
    let head = old.iter().zip(new).take_while(stays).count();
    let [old, new] = [old, new].map(|classes| classes.get(head..).unwrap_or_default());
    if old.is_empty() && new.is_empty() {
        return true;
    }
    let overlap = Overlap::of(old.iter().chain(new));
    let meeting = |classes: &'_ [ClassParams]| -> Vec<(String, ClassMap)> {
        let meeting = classes.iter().filter(|class| overlap.of_class(&class.name));
        let maps = meeting.filter_map(|class| Some((class.name.clone(), class.matches.clone()?)));
        maps.collect()
    };
    meeting(old) == meeting(new)
}

/// Returns the slice to be added that a class is; `None` if it has something that a single slice cannot have.
fn added(class: ClassParams) -> Option<NewSlice> {
    let new = NewSlice {
        name: class.name.clone(),
        matches: class.matches.clone()?,
        params: class.slice?,
        conditioning: conditioning(&class),
        flow_queue: class.queue.flow_queue(),
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

/// Returns whether two classes are the same but for what changes of a slice change.
fn differ_in_slice_only(old: ClassParams, new: &ClassParams) -> bool {
    let changed = ClassParams {
        // Class-default has no class map.
        matches: old.matches.and(new.matches.clone()),
        police: new.police.clone(),
        set_dscp: new.set_dscp,
        weight: new.weight,
        queue: QueueParams {
            limit: new.queue.limit,
            ..old.queue.clone()
        },
        slice: new.slice,
        ..old
    };
    changed == *new
}

/// Returns what both guarantees promise.
fn common(one: GuaranteeParams, other: GuaranteeParams) -> GuaranteeParams {
    GuaranteeParams {
        rate: one.rate.min(other.rate),
        burst: one.burst.min(other.burst),
        delay: one.delay.max(other.delay),
        smallest_frame: one.smallest_frame.max(other.smallest_frame),
    }
}
