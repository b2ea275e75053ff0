//! Changing a running pipeline: nothing queued is lost, reordered or reset.
//!
//! The new tree is built next to the old one, then takes over its state. A queue is kept if the same
//! frames reach it as before. If class maps changed, frames of one flow may now go to another class; to
//! preserve their order, frames waiting in such a queue (or in that of a removed class) *drain*: they
//! leave before anything queued after the change. Work: O(classes + frames waiting).

use crate::build::{self, BuildError, Built, ClassState};
use crate::classifier::Classifier;
use crate::pipeline::{Pipeline, buffer_frames};
use crate::queue::FifoQueue;
use crate::scheduler::deficit_round_robin::DeficitRoundRobin;
use crate::scheduler::strict_priority::StrictPriority;
use crate::scheduler::{Inner, Leaf, NodeId, QueueId};
use slicewise_model::{PolicyParams, QueueLimitParams, ShaperParams};
use slicewise_units::{ByteCount, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// A change of configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Another policy. Classes are the same if their path (names from the outermost) is.
    Policy(PolicyParams),
    /// Another shaper over everything, or none.
    PortShaper(Option<ShaperParams>),
}

/// Why a change was rejected; the previous configuration stays active.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The new policy cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Too many earlier changes still have queues to empty.
    #[error(
        "{pending} earlier changes removed classes whose queues are not empty yet: try again \
         when they are"
    )]
    StillDraining {
        /// Changes whose queues still empty.
        pending: usize,
    },
}

/// Most changes with draining queues at a time: each is one level of the tree.
const MAX_DRAINING_CHANGES: usize = 32;

/// A draining queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drain {
    queue: QueueId,
    /// Which change removed it: queues removed earlier drain first.
    change: u32,
}

pub(crate) fn apply(
    pipeline: &mut Pipeline,
    change: &Change,
    now: Instant,
) -> Result<(), ApplyError> {
    let mut params = pipeline.params.clone();
    match change {
        Change::Policy(policy) => params.policy = policy.clone(),
        Change::PortShaper(shaper) => params.port_shaper = *shaper,
    }
    let mut built = build::build_policy(&params.policy, now)?;
    let moves = match_queues(&pipeline.classes, &built.classes);
    let drains = queues_to_drain(pipeline, &moves);
    if drains.len() > MAX_DRAINING_CHANGES {
        return Err(ApplyError::StillDraining {
            pending: drains.len(),
        });
    }

    // From here on nothing can fail.
    let waiting = u64::from(pipeline.tree.backlog());
    pipeline
        .pool
        .grow_to(buffer_frames(built.capacity + waiting));
    let mut root = built.policy_root;
    let mut drain_moves = Vec::new();
    let mut draining = Vec::new();
    for (&change, nodes) in drains.iter().rev() {
        root = add_drains(&mut built, root, nodes, &mut drain_moves);
        let new = &drain_moves[drain_moves.len() - nodes.len()..];
        draining.extend(new.iter().map(|&(_, queue)| Drain { queue, change }));
    }
    build::add_port_shaper(&mut built, root, params.port_shaper.as_ref(), now);
    resume_credit(pipeline, &mut built, now);
    let class_map = carry_classes(&mut pipeline.classes, &mut built.classes, now);
    let renamed = |class: u32| class_map.get(class as usize).copied().unwrap_or(u32::MAX);
    for (old, new) in moves.into_iter().chain(drain_moves) {
        let (tree, pool) = (&mut pipeline.tree, &mut pipeline.pool);
        built.tree.take_over(new, tree, old, pool, renamed, now);
    }
    pipeline.classifier = Classifier::new(&params.policy);
    pipeline.classes = built.classes;
    pipeline.policers = built.policers;
    pipeline.tree = built.tree;
    pipeline.credits = built.credits;
    pipeline.draining = draining;
    pipeline.params = params;
    pipeline.next_poll = if pipeline.tree.backlog() > 0 {
        now
    } else {
        Instant::MAX
    };
    Ok(())
}

/// Old queue → new queue, where the same classes with the same members use it. A queue that keeps
/// flows apart takes over only from another such: elsewhere frames do not carry their flow's hash, and
/// those behind them would overtake them.
fn match_queues(old: &[ClassState], new: &[ClassState]) -> BTreeMap<QueueId, QueueId> {
    let by_flow = |classes: &[ClassState]| -> BTreeSet<QueueId> {
        let by_flow = classes.iter().filter(|class| class.by_flow);
        by_flow.map(|class| class.queue).collect()
    };
    let (old_by_flow, new_by_flow) = (by_flow(old), by_flow(new));
    let signatures = |classes: &[ClassState]| {
        let mut signatures: BTreeMap<QueueId, Vec<(String, String)>> = BTreeMap::new();
        for class in classes.iter().filter(|class| !class.retired) {
            let signature = (class.counters.class.clone(), class.membership.clone());
            signatures.entry(class.queue).or_default().push(signature);
        }
        signatures
    };
    let new_by_signature: BTreeMap<_, QueueId> = signatures(new)
        .into_iter()
        .map(|(queue, signature)| (signature, queue))
        .collect();
    signatures(old)
        .into_iter()
        .filter_map(|(queue, signature)| Some((queue, *new_by_signature.get(&signature)?)))
        .filter(|(old, new)| old_by_flow.contains(old) || !new_by_flow.contains(new))
        .collect()
}

/// Old queues with frames to drain, by the change that removed them.
fn queues_to_drain(
    pipeline: &Pipeline,
    moves: &BTreeMap<QueueId, QueueId>,
) -> BTreeMap<u32, Vec<QueueId>> {
    let this_change = pipeline
        .draining
        .iter()
        .map(|d| d.change + 1)
        .max()
        .unwrap_or(0);
    let mut change_of: BTreeMap<QueueId, u32> = pipeline
        .classes
        .iter()
        .filter(|class| !class.retired && !moves.contains_key(&class.queue))
        .map(|class| (class.queue, this_change))
        .collect();
    change_of.extend(
        pipeline
            .draining
            .iter()
            .map(|drain| (drain.queue, drain.change)),
    );
    let mut drains: BTreeMap<u32, Vec<QueueId>> = BTreeMap::new();
    for (queue, change) in change_of {
        if pipeline.tree.packets(queue) > 0 {
            drains.entry(change).or_default().push(queue);
        }
    }
    drains
}

/// Put queues for `old_queues` before everything under `root`; returns the new root.
fn add_drains(
    built: &mut Built,
    root: NodeId,
    old_queues: &[QueueId],
    moves: &mut Vec<(QueueId, QueueId)>,
) -> NodeId {
    let limit = QueueLimitParams {
        packets: u32::MAX,
        bytes: ByteCount::new(u64::MAX),
    };
    let mut leaves = Vec::with_capacity(old_queues.len());
    for &old in old_queues {
        let leaf = Leaf::Fifo(FifoQueue::new(limit, None));
        let new = built.tree.add_leaf(leaf, false);
        moves.push((old, QueueId::of(new)));
        leaves.push(NodeId::Leaf(new));
    }
    let ring = DeficitRoundRobin::new(&vec![1; leaves.len()]);
    let drains = built
        .tree
        .add_inner(Inner::DeficitRoundRobin(ring), &leaves);
    built.tree.add_inner(
        Inner::StrictPriority(StrictPriority::new()),
        &[drains, root],
    )
}

/// Shapers, minimums, slices and policers of kept classes retain credit and debt.
fn resume_credit(pipeline: &mut Pipeline, built: &mut Built, now: Instant) {
    for (path, &new) in &built.credits.shapers {
        let Some(&old) = pipeline.credits.shapers.get(path) else {
            continue;
        };
        if let (Some(Inner::Shaper(new)), Some(Inner::Shaper(old))) =
            (built.tree.inner_mut(new), pipeline.tree.inner_mut(old))
        {
            new.resume_from(old, now);
        }
    }
    for (path, &(new, to)) in &built.credits.minimums {
        let Some(&(old, position)) = pipeline.credits.minimums.get(path) else {
            continue;
        };
        if let (Some(Inner::MinimumShare(new)), Some(Inner::MinimumShare(old))) =
            (built.tree.inner_mut(new), pipeline.tree.inner_mut(old))
        {
            new.resume_child(to, old, position, now);
        }
    }
    for new in &built.classes {
        let path = &new.counters.class;
        let mut before = pipeline.classes.iter().filter(|class| !class.retired);
        if let Some(old) = before.find(|old| &old.counters.class == path)
            && let Some(Leaf::Guaranteed(old_scheduler)) = pipeline.tree.leaf_mut(old.queue.leaf)
            && let Some(Leaf::Guaranteed(scheduler)) = built.tree.leaf_mut(new.queue.leaf)
        {
            scheduler.resume_slice(new.queue.slice(), old_scheduler, old.queue.slice(), now);
        }
    }
    for (path, policer) in &mut built.policers {
        if let Some((_, old)) = pipeline.policers.iter().find(|(old, _)| old == path) {
            policer.resume_from(old, now);
        }
    }
}

/// Classes keep their counters by path; a removed class stays at the end while its frames wait.
/// Returns old class index → new.
fn carry_classes(old: &mut Vec<ClassState>, new: &mut Vec<ClassState>, now: Instant) -> Vec<u32> {
    let mut class_map = Vec::with_capacity(old.len());
    for mut class in old.drain(..) {
        let path = &class.counters.class;
        let found = new.iter().position(|c| &c.counters.class == path);
        let index = match found {
            Some(index) => {
                let successor = &mut new[index];
                if let (Some(bucket), Some(old)) =
                    (&mut successor.priority_police, &class.priority_police)
                {
                    bucket.resume_from(old, now);
                }
                successor.counters = class.counters;
                index
            }
            None if class.counters.queued_frames > 0 => {
                class.retired = true;
                new.push(class);
                new.len() - 1
            }
            // No frame refers to it.
            None => usize::MAX,
        };
        class_map.push(u32::try_from(index).unwrap_or(u32::MAX));
    }
    class_map
}
