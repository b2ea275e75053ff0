//! Carries credit, debt and counters of classes to the policy that replaces theirs.

use super::successors::Successor;
use super::{Names, Reconfigurator};
use crate::build::{Built, ClassState};
use crate::counters::ClassCounters;
use crate::datapath::DataPath;
use crate::scheduler::{Inner, Leaf, QueueId};
use crate::slots::Slots;
use slicewise_units::Instant;

/// Shapers, minimums, slices and policers of kept classes retain credit and debt.
pub(super) fn resume_credit(
    path: &mut DataPath,
    built: &mut Built,
    successors: &[Option<Successor>],
    names: &Names,
    now: Instant,
) {
    for (owner, &new) in &built.credits.shapers {
        let Some(&old) = path.built.credits.shapers.get(owner) else {
            continue;
        };
        if let (Some(Inner::Shaper(new)), Some(Inner::Shaper(old))) =
            (built.tree.inner_mut(new), path.built.tree.inner_mut(old))
        {
            new.resume_from(old, now);
        }
    }
    for (owner, &(new, to)) in &built.credits.minimums {
        let Some(&(old, position)) = path.built.credits.minimums.get(owner) else {
            continue;
        };
        if let (Some(Inner::MinimumShare(new)), Some(Inner::MinimumShare(old))) =
            (built.tree.inner_mut(new), path.built.tree.inner_mut(old))
        {
            new.resume_child(to, old, position, now);
        }
    }
    for (old, successor) in path.built.classes.iter().zip(successors) {
        if let Some(successor) = successor
            && let Some(new) = built.classes.get(successor.class as usize)
            && let Some(Leaf::Guaranteed(old_scheduler)) = path.built.tree.leaf_mut(old.queue.leaf)
            && let Some(Leaf::Guaranteed(scheduler)) = built.tree.leaf_mut(new.queue.leaf)
        {
            let (slice, old_slice) = (new.queue.slice(), old.queue.slice());
            scheduler.resume_slice(slice, old_scheduler, old_slice, now);
        }
    }
    if names.policers.is_empty() {
        return;
    }
    for (name, old) in path.built.policers.iter() {
        let policer = names.policers.get(name);
        if let Some((_, policer)) = policer.and_then(|&at| built.policers.get_mut(at as usize)) {
            policer.resume_from(old, now);
        }
    }
}

/// Counts of the flows of a class go on; its weight follows with the next frame after an interval.
fn carry_flows(old: &mut ClassState, new: &mut ClassState) {
    let Some(old) = &mut old.special else { return };
    let Some(flows) = old.flows.take() else {
        return;
    };
    let special = new.special.get_or_insert_default();
    (special.flows, special.by_flow) = (Some(flows), true);
    special.by_flow_from = old.by_flow_from;
}

/// Classes keep their counters by path; a removed class stays at the end while its frames wait.
/// Returns old class index → new, and the counters of those that are gone.
pub(super) fn carry_classes(
    (path, own): (&mut DataPath, &mut Reconfigurator),
    new: &mut Slots<ClassState>,
    successors: &[Option<Successor>],
    names: &Names,
    drain: Option<QueueId>,
    now: Instant,
) -> (Vec<u32>, Vec<ClassCounters>) {
    let mut removed = Vec::new();
    let mut numbers = Vec::with_capacity(path.built.classes.len());
    own.retired.clear();
    for (index, class) in path.built.classes.iter_mut().enumerate() {
        let successor = successors.get(index).copied().flatten();
        let index = if let Some(successor) = successor {
            let index = successor.class as usize;
            let successor = &mut new[index];
            if let (Some(bucket), Some(old)) =
                (&mut successor.priority_police, &class.priority_police)
            {
                bucket.resume_from(old, now);
            }
            successor.counters.absorb(&class.counters);
            carry_flows(class, successor);
            index
        } else if class.counters.queued_frames > 0 {
            let name = &class.counters.class;
            let named = names.classes.get(name).or(own.retired.get(name));
            if let Some(&number) = named {
                let index = number as usize;
                new[index].counters.absorb(&class.counters);
                index
            } else {
                let index = new.len();
                let number = u32::try_from(index).unwrap_or(u32::MAX);
                own.retired.insert(name.clone(), number);
                new.push(class.take_retired(drain.unwrap_or(QueueId::NONE)));
                index
            }
        } else {
            // No frame refers to it.
            if !class.is_unused() {
                removed.push(std::mem::take(&mut class.counters));
            }
            usize::MAX
        };
        numbers.push(u32::try_from(index).unwrap_or(u32::MAX));
    }
    (numbers, removed)
}
