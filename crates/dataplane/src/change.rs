//! Changing a running pipeline: nothing queued is lost, reordered or reset.
//!
//! A change is *prepared* beside the packet path: a new classifier and tree are built, and matched
//! with the old ones. Then it is *committed*: the new tree takes over the state of the old one. A queue
//! is kept if the same frames reach it as before. If class maps changed, frames of one flow may now go
//! to another class; to preserve their order, frames waiting in such a queue (or in that of a removed
//! class) *drain*: they leave in order of arrival before anything queued after the change.

mod beside;
mod carry;
mod diff;
mod elephants;
mod handover;
mod ledger;
mod queues;
mod reserved;
mod shared;
pub(crate) mod slice;
mod successors;
mod terms;

pub use diff::Step;
pub(crate) use ledger::Ledger;
pub use slice::{SliceChange, SliceChangeError, SliceChanged};
pub use terms::{Conditioning, NewSlice};

use crate::build::{self, BuildError, Built, PipelineParams};
use crate::classifier::Classifier;
use crate::counters::ClassCounters;
use crate::datapath::{DataPath, buffer_frames};
use crate::queue::QueuedFrame;
use crate::scheduler::strict_priority::StrictPriority;
use crate::scheduler::{Inner, Leaf, NodeId, QueueId};
use elephants::Matched;
use ledger::Slices;
use slicewise_model::{ClassParams, PolicyParams, QueueLimitParams, QueueParams, ShaperParams};
use slicewise_units::Instant;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, LinkedList};
use std::sync::Arc;
use successors::{Successor, successors};

/// A change of configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Another policy. Classes are the same if their path (names from the outermost) is.
    Policy(PolicyParams),
    /// Another policy beside the slices that were [added](SliceChange::Add) one by one: those stay, and are tested
    /// after its classes, before class-default.
    PolicyBesideSlices(PolicyParams),
    /// Another shaper over everything, or none.
    PortShaper(Option<ShaperParams>),
}

/// Base of a change: the configuration of a pipeline. It may be sent to another thread, to prepare the change there.
#[derive(Debug, Clone)]
pub struct Basis {
    /// Without the classes of a guaranteed policy.
    pub(crate) params: Arc<PipelineParams>,
    /// The classes of a guaranteed policy.
    pub(crate) slices: Option<Slices>,
    /// Changes committed so far.
    pub(crate) version: u64,
}

/// A change that can be committed: everything that may fail has been done.
#[derive(Debug)]
pub struct Prepared {
    params: Arc<PipelineParams>,
    /// Of the basis.
    version: u64,
    built: Built,
    names: Names,
    /// Queues of it that several classes use, and how many.
    shared: BTreeMap<QueueId, u32>,
    classifier: Classifier,
    ledger: Option<Box<Ledger>>,
    /// For each class of the basis, its successor: the class of the same path.
    successors: Vec<Option<Successor>>,
}

/// Where classes and policers are in a policy that was built, by their paths.
#[derive(Debug)]
struct Names {
    classes: HashMap<String, u32>,
    policers: HashMap<String, u32>,
}

impl Names {
    fn of(built: &Built) -> Self {
        let classes = built.classes.iter();
        let classes = classes.map(|class| class.counters.class.clone());
        let policers = built.policers.iter().map(|(path, _)| path.clone());
        Self {
            classes: classes.zip(0..).collect(),
            policers: policers.zip(0..).collect(),
        }
    }
}

impl Prepared {
    /// Version of its basis: it can be committed while the [pipeline](crate::Pipeline::version) has it.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// The paths of the classes that there will be, in the order of their numbers. After a commit, classes may follow that were
    /// removed and of which frames wait.
    pub fn classes(&self) -> impl Iterator<Item = &str> {
        let classes = self.built.classes.iter();
        classes.map(|class| class.counters.class.as_str())
    }
}

/// Configuration that a commit replaced. Dropping it frees memory, which takes time: do it elsewhere.
#[derive(Debug)]
#[must_use]
pub struct Replaced {
    _built: Built,
    _names: Names,
    _classifier: Classifier,
    _ledger: Option<Box<Ledger>>,
    _params: Arc<PipelineParams>,
    removed: Vec<ClassCounters>,
    /// For each class, its number afterwards; [`u32::MAX`] if it is gone.
    numbers: Vec<u32>,
}

impl Replaced {
    /// For each class that there was, its number from the commit on; `None` if it is gone.
    pub fn numbers(&self) -> impl Iterator<Item = Option<u32>> {
        let numbers = self.numbers.iter().copied();
        numbers.map(|number| (number != u32::MAX).then_some(number))
    }

    /// The final counters of classes that are no longer there.
    #[must_use]
    pub fn removed(&self) -> &[ClassCounters] {
        &self.removed
    }
}

/// The pipeline was changed after this change was prepared, and is as it was before the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the configuration was changed after this change was prepared: prepare it again")]
pub struct Stale;

impl Basis {
    /// Changes of the pipeline until this basis was taken.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Build `change`. Token buckets without a predecessor are full at `now`. O(classes).
    ///
    /// # Errors
    /// If the new configuration cannot be built.
    pub fn prepare(&self, change: Change, now: Instant) -> Result<Prepared, BuildError> {
        let (before, numbers) = self.policy();
        let own_shaper = self.params.port_shaper;
        let added = self.slices.as_ref().map_or_else(Vec::new, ledger::added);
        let names = |added: &[ClassParams]| added.iter().map(|class| class.name.clone()).collect();
        let (policy, added, port_shaper): (_, Vec<String>, _) = match change {
            Change::Policy(policy) => (policy, Vec::new(), own_shaper),
            Change::PolicyBesideSlices(policy) => {
                let names = names(&added);
                let policy = beside::policy_with(policy, added, &self.params.policy)?;
                (policy, names, own_shaper)
            }
            Change::PortShaper(shaper) => (before.clone().into_owned(), names(&added), shaper),
        };
        let built = build::build_policy(&policy, self.params.seed, now)?;
        let classifier = Classifier::new(&policy);
        let names = Names::of(&built);
        let mut in_order = successors(&before, &policy, &names.classes);
        let successors = match numbers {
            None => in_order,
            Some(numbers) => {
                let classes = self.slices.as_ref().map_or(0, Slices::len);
                let mut by_class = vec![None; classes];
                for (class, successor) in numbers.into_iter().zip(in_order.drain(..)) {
                    by_class[class] = successor;
                }
                by_class
            }
        };
        let mut params = PipelineParams {
            policy,
            port_shaper,
            seed: self.params.seed,
        };
        let mut ledger = Ledger::new(&mut params.policy, built.slices_leaf);
        if let Some(ledger) = &mut ledger {
            ledger.mark_added(added.iter().map(String::as_str));
        }
        Ok(Prepared {
            ledger,
            params: Arc::new(params),
            version: self.version,
            names,
            shared: queues::shared(&built.classes),
            built,
            classifier,
            successors,
        })
    }

    /// The policy in force. If its classes are not numbered in their order, their numbers.
    fn policy(&self) -> (Cow<'_, PolicyParams>, Option<Vec<usize>>) {
        let policy = &self.params.policy;
        let Some(slices) = &self.slices else {
            return (Cow::Borrowed(policy), None);
        };
        let (numbers, classes) = ledger::classes_of(slices).into_iter().unzip();
        let policy = PolicyParams {
            classes,
            ..policy.clone()
        };
        (Cow::Owned(policy), Some(numbers))
    }
}

/// Changes of a data path.
#[derive(Debug)]
pub(crate) struct Reconfigurator {
    /// Parameters in force, without the classes of a guaranteed policy, which `ledger` keeps.
    pub(crate) params: Arc<PipelineParams>,
    /// Changes committed so far.
    pub(crate) version: u64,
    /// State of changes of single slices, in a guaranteed policy.
    pub(crate) ledger: Option<Box<Ledger>>,
    /// Counters of slices that were removed one by one, until they are read. A list, because growing moves nothing.
    #[expect(clippy::linkedlist, reason = "a change takes a bounded time")]
    pub(crate) removed: LinkedList<ClassCounters>,
    /// Classes that a change of the whole policy removed while frames of them wait, by name.
    pub(crate) retired: BTreeMap<String, u32>,
    /// Where frames wait that a change took out of their queues.
    drain: Option<QueueId>,
}

impl Reconfigurator {
    pub(crate) fn new(mut params: PipelineParams, slices_leaf: Option<u32>) -> Self {
        Self {
            ledger: Ledger::new(&mut params.policy, slices_leaf),
            params: Arc::new(params),
            version: 0,
            removed: LinkedList::new(),
            retired: BTreeMap::new(),
            drain: None,
        }
    }

    pub(crate) fn basis(&self) -> Basis {
        Basis {
            params: Arc::clone(&self.params),
            slices: self.ledger.as_ref().map(|ledger| ledger.slices.clone()),
            version: self.version,
        }
    }
}

pub(crate) fn commit(
    (path, own): (&mut DataPath, &mut Reconfigurator),
    prepared: Prepared,
    now: Instant,
) -> Replaced {
    let Prepared {
        params,
        version: _,
        mut built,
        names,
        shared,
        classifier,
        mut ledger,
        successors,
    } = prepared;
    if let Some(ledger) = ledger.as_mut().filter(|_| path.backlog() > 0) {
        ledger.reserved.on_committed();
    }
    let (moving, ahead) = own.end_all(path, now);
    let (kept, drained) = queues::matched(path, (&built, &shared), &successors, &ahead);
    let successor_of = |class: usize| {
        let successor = successors.get(class).copied().flatten();
        successor.map(|successor| successor.class as usize)
    };
    let mut matched = Matched { kept, drained };
    matched.keep_together(
        &path.built.tree,
        (&path.built.classes, &built.classes),
        &path.built.with_elephants,
        successor_of,
    );
    let waiting = u64::from(path.backlog());
    path.pool.grow_to(buffer_frames(built.capacity + waiting));
    let tree = &path.built.tree;
    let draining = own.drain.filter(|&drain| tree.packets(drain) > 0);
    let is_draining = draining.is_some() || !matched.drained.is_empty() || !moving.is_empty();
    let drain = is_draining.then(|| add_drain(&mut built));
    let shaper = params.port_shaper.as_ref();
    build::add_port_shaper(&mut built, shaper, now);
    carry::resume_credit(path, &mut built, &successors, &names, now);
    let old = &mut path.built.active_flows;
    built.active_flows.resume_from(old, &mut built.tree);
    let (numbers, removed) = carry::carry_classes(
        (&mut *path, &mut *own),
        &mut built.classes,
        &successors,
        &names,
        drain,
        now,
    );
    let drain = drain.map(|drain| (drain, draining, moving));
    move_frames(
        (&mut *path, &mut *own),
        &mut built,
        &mut matched,
        &numbers,
        drain,
        now,
    );
    path.aside = elephants::resume(
        (&mut path.built.classes, &mut built.classes),
        &path.built.with_elephants,
        &matched.kept,
        successor_of,
        &mut built.tree,
    );
    let classifier = replace(path, &mut built, classifier, now);
    own.version += 1;
    Replaced {
        _built: built,
        _names: names,
        _classifier: classifier,
        _ledger: std::mem::replace(&mut own.ledger, ledger),
        _params: std::mem::replace(&mut own.params, params),
        removed,
        numbers,
    }
}

/// Move frames from the tree in force to the one that replaces it: those of queues that are kept, and to its queue for them those
/// that are drained, behind those that are drained already.
fn move_frames(
    (path, own): (&mut DataPath, &mut Reconfigurator),
    built: &mut Built,
    matched: &mut Matched,
    numbers: &[u32],
    drain: Option<(QueueId, Option<QueueId>, Vec<QueuedFrame>)>,
    now: Instant,
) {
    // Of frames that arrived at the same moment, those of class-default come first: slices wait for it, and what waits for
    // slices is in no queue.
    let default = queue_of_default(path, own);
    let Matched { kept, drained } = matched;
    drained.sort_by_key(|&queue| Some(queue) != default);
    let renamed = |class: u32| numbers.get(class as usize).copied().unwrap_or(u32::MAX);
    let (tree, pool) = (&mut path.built.tree, &mut path.pool);
    for &(old, new) in &*kept {
        built.tree.take_over(new, tree, old, pool, renamed, now);
    }
    if let Some((drain, draining, moving)) = drain {
        let mut frames = tree.pop_by_arrival(draining.as_slice(), pool);
        let mut drained = tree.pop_by_arrival(drained, pool);
        drained.extend(moving);
        // Behind those of their flow that arrived at the same time.
        drained.extend(elephants::take_drained(
            &mut path.built.classes,
            &path.built.with_elephants,
            kept,
            pool,
        ));
        drained.sort_by_key(QueuedFrame::arrival);
        frames.extend(drained);
        built.tree.append(drain, &frames, pool, renamed);
        own.drain = Some(drain);
    } else {
        own.drain = None;
    }
}

/// Put in force what was built; returns the classifier that it replaces.
fn replace(
    path: &mut DataPath,
    built: &mut Built,
    mut classifier: Classifier,
    now: Instant,
) -> Classifier {
    std::mem::swap(&mut path.built, built);
    classifier.succeed(&path.classifier);
    path.next_poll = if path.built.tree.backlog() > 0 {
        now
    } else {
        Instant::MAX
    };
    // CoDel may have dropped frames that were about to be next in their new queue.
    path.count_dropped();
    std::mem::replace(&mut path.classifier, classifier)
}

/// The queue of class-default of a guaranteed policy.
fn queue_of_default(path: &DataPath, own: &Reconfigurator) -> Option<QueueId> {
    let default = own.ledger.as_ref()?.default;
    Some(path.built.classes.get(default as usize)?.queue)
}

/// A queue before everything else under the root; returns it.
fn add_drain(built: &mut Built) -> QueueId {
    let queue = QueueParams::tail_drop(QueueLimitParams::of_packets(u32::MAX));
    let root = built.tree.root();
    let drain = built.tree.add_leaf(Leaf::of_queue(&queue), false);
    let strict = Inner::StrictPriority(StrictPriority::new());
    built.tree.add_inner(strict, &[NodeId::Leaf(drain), root]);
    QueueId::of(drain)
}
