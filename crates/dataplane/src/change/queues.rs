//! Which queues stay when a policy is replaced, and which have frames to drain.

use super::successors::Successor;
use crate::build::{Built, ClassState};
use crate::datapath::DataPath;
use crate::scheduler::QueueId;
use crate::slots::Slots;
use slicewise_model::Colour;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Queues that several classes use, and how many.
pub(super) fn shared(classes: &Slots<ClassState>) -> BTreeMap<QueueId, u32> {
    let queues = classes.iter().flat_map(uses).map(|(queue, _)| queue);
    let mut queues: Vec<QueueId> = queues.collect();
    queues.sort();
    let users = queues.chunk_by(|one, other| one == other);
    let shared = users.filter(|users| users.len() > 1);
    shared
        .filter_map(|users| Some((*users.first()?, count(users))))
        .collect()
}

/// Which queues are kept, old → new, and which have frames to drain. A named queue is kept where the classes that used
/// it still do, with the same members and for the same colours; another where it is used by the same classes with the
/// same members, unless others wait for its frames, as those `ahead`, or has elephants and another number. One that keeps flows apart takes over only from another such: elsewhere frames do not carry their
/// flow's hash, and those behind them would overtake them. A hierarchy takes over from one in which frames have the same
/// places.
pub(super) fn matched(
    path: &DataPath,
    (new, shared): (&Built, &BTreeMap<QueueId, u32>),
    successors: &[Option<Successor>],
    ahead: &BTreeSet<QueueId>,
) -> (Vec<(QueueId, QueueId)>, Vec<QueueId>) {
    let names = |named: &BTreeMap<String, QueueId>| -> HashMap<QueueId, String> {
        let named = named.iter();
        named.map(|(name, &queue)| (queue, name.clone())).collect()
    };
    let (old_names, new_names) = (names(&path.built.named), names(&new.named));
    let targets = targets(path, new, successors, ahead);
    let (mut kept, mut drained) = (Vec::with_capacity(targets.len()), Vec::new());
    for of_queue in targets.chunk_by(|(one, _), (other, _)| one == other) {
        let Some(&(old, first)) = of_queue.first() else {
            continue;
        };
        let is_common = of_queue.iter().all(|(_, target)| *target == first);
        let name = old_names.get(&old);
        let is_same = |target: &QueueId| {
            let users = shared.get(target).copied().unwrap_or(1);
            is_common
                && new_names.get(target) == name
                && (name.is_some() || users == count(of_queue))
        };
        match first.filter(is_same) {
            Some(target) => kept.push((old, target)),
            None => drained.push(old),
        }
    }
    drained.retain(|&queue| path.built.tree.packets(queue) > 0);
    (kept, drained)
}

/// Every use of a queue by a class, in the order of queues, and the queue that the class uses for the same in the new policy.
fn targets(
    path: &DataPath,
    new: &Built,
    successors: &[Option<Successor>],
    ahead: &BTreeSet<QueueId>,
) -> Vec<(QueueId, Option<QueueId>)> {
    let mut targets = Vec::with_capacity(path.built.classes.len());
    for (number, (class, successor)) in (0..).zip(path.built.classes.iter().zip(successors)) {
        let successor = successor
            .filter(|successor| successor.same_members)
            // Elephants that are moving keep the number of their class.
            .filter(|successor| class.elephants().is_none() || successor.class == number)
            .and_then(|successor| new.classes.get(successor.class as usize))
            .filter(|new| class.waits_by_flow() || !new.is_by_flow())
            .filter(|other| class.places() == other.places())
            .filter(|other| {
                let (old, new) = (
                    path.built.tree.hqos(class.queue),
                    new.tree.hqos(other.queue),
                );
                old.zip(new).is_none_or(|(old, new)| new.can_replace(old))
            })
            .filter(|_| !ahead.contains(&class.queue));
        let used = uses(class).map(|(queue, used_for)| {
            let target = successor.and_then(|new| target_of(new, used_for));
            (queue, target)
        });
        targets.extend(used);
    }
    // Most follow each other already, and this takes one look at each then.
    targets.sort_by_key(|(queue, _)| *queue);
    targets
}

/// Uses of a queue by a class: frames of each colour, and elephants.
type Use = [bool; Colour::ALL.len() + 1];

/// The queues of a class, and what it uses each for.
fn uses(class: &ClassState) -> impl Iterator<Item = (QueueId, Use)> + use<> {
    let queues = class.queues();
    (0..queues.len()).filter_map(move |colour| {
        let queue = *queues.get(colour)?;
        let is_first = !queues.iter().take(colour).any(|before| *before == queue);
        (is_first && queue != QueueId::NONE).then(|| (queue, queues.map(|other| other == queue)))
    })
}

/// The only queue that a class uses for this.
fn target_of(class: &ClassState, used_for: Use) -> Option<QueueId> {
    let queues = class.queues().into_iter().zip(used_for);
    let mut queues = queues.filter_map(|(queue, is_used)| is_used.then_some(queue));
    let first = queues.next()?;
    (first != QueueId::NONE && queues.all(|queue| queue == first)).then_some(first)
}

fn count<T>(users: &[T]) -> u32 {
    u32::try_from(users.len()).unwrap_or(u32::MAX)
}
