//! Builds classifier, policers, queues and scheduler tree from a validated policy.

use crate::TokenBucket;
use crate::counters::ClassCounters;
use crate::elephants::Elephants;
use crate::guaranteed::{Guaranteed, SliceError};
use crate::meter::policer::PolicerState;
use crate::queue::{FifoQueue, FlowQueue};
use crate::scheduler::deficit_round_robin::DeficitRoundRobin;
use crate::scheduler::minimum_share::{MinimumShare, Share};
use crate::scheduler::shaper::Shaper;
use crate::scheduler::strict_priority::{MAX_LEVELS, StrictPriority};
use crate::scheduler::{Inner, Leaf, NodeId, QueueId, Tree};
use crate::slots::Slots;
use slicewise_model::{ClassParams, Discipline, PolicyParams, ShaperParams};
use slicewise_units::Instant;
use std::collections::BTreeMap;

/// Parameters of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineParams {
    /// The policy.
    pub policy: PolicyParams,
    /// A shaper over everything: the port's own, or a device's licence.
    pub port_shaper: Option<ShaperParams>,
    /// Seed of random early detection.
    pub seed: u64,
}

/// Why a pipeline cannot be built from valid parameters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// More priority levels in one policy than a strict-priority node holds.
    #[error("policy `{policy}` has {levels} priority levels: at most {} are possible", MAX_LEVELS - 1)]
    TooManyLevels {
        /// The policy.
        policy: String,
        /// Levels requested.
        levels: usize,
    },
    /// Its discipline is `guaranteed`, but the common parameters of its slices are missing.
    #[error(
        "policy `{policy}` is `guaranteed`, but the common parameters of its slices are missing"
    )]
    NotGuaranteed {
        /// The policy.
        policy: String,
    },
    /// A class of a guaranteed policy cannot be a slice of it.
    #[error("class `{class}`: {error}")]
    Slice {
        /// The class.
        class: String,
        /// Why not.
        error: SliceError,
    },
}

/// A class without child, as the packet path sees it. Of most classes a frame needs only the first cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct ClassState {
    pub(crate) queue: QueueId,
    /// What few classes have.
    pub(crate) special: Option<Box<Special>>,
    /// The policer that acts only under congestion.
    pub(crate) priority_police: Option<Box<TokenBucket>>,
    pub(crate) counters: ClassCounters,
}

const _: () = assert!(size_of::<ClassState>() == 192, "three cache lines");

/// What happens to frames of a class before they are queued, if anything does.
#[derive(Debug)]
pub(crate) struct Special {
    /// Outermost class first.
    pub(crate) ingress: Vec<Ingress>,
    /// Its queue keeps flows apart.
    pub(crate) by_flow: bool,
    /// Flows of it move to another queue.
    pub(crate) elephants: Option<Box<Elephants>>,
}

impl Special {
    /// `None` where it does nothing.
    fn boxed(self) -> Option<Box<Self>> {
        let is_needed = !self.ingress.is_empty() || self.by_flow || self.elephants.is_some();
        is_needed.then(|| Box::new(self))
    }

    /// Of a class that was removed.
    pub(crate) fn removed() -> Option<Box<Self>> {
        let ingress = vec![Ingress::Removed];
        let removed = Self {
            ingress,
            by_flow: false,
            elephants: None,
        };
        removed.boxed()
    }
}

impl ClassState {
    pub(crate) fn new(class: String, queue: QueueId, special: Special) -> Self {
        Self {
            queue,
            special: special.boxed(),
            priority_police: None,
            counters: ClassCounters {
                class,
                ..ClassCounters::default()
            },
        }
    }

    /// The place of a class that was removed. A frame that was classified before is classified again.
    pub(crate) fn unused() -> Self {
        Self {
            queue: QueueId::NONE,
            special: Special::removed(),
            priority_police: None,
            counters: ClassCounters::default(),
        }
    }

    pub(crate) fn is_unused(&self) -> bool {
        self.queue == QueueId::NONE
    }

    /// Its queue keeps flows apart.
    #[inline]
    pub(crate) fn is_by_flow(&self) -> bool {
        self.special.as_ref().is_some_and(|special| special.by_flow)
    }

    pub(crate) fn elephants(&self) -> Option<&Elephants> {
        self.special.as_ref()?.elephants.as_deref()
    }

    #[inline]
    pub(crate) fn elephants_mut(&mut self) -> Option<&mut Elephants> {
        self.special.as_mut()?.elephants.as_deref_mut()
    }

    /// What is left of a class that a change removed while its frames wait: its counters.
    pub(crate) fn take_retired(&mut self) -> Self {
        Self {
            queue: self.queue,
            special: None,
            priority_police: None,
            counters: std::mem::take(&mut self.counters),
        }
    }
}

/// One step at ingress.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ingress {
    SetDscp(u8),
    /// Index into the pipeline's policers: a policer of an outer class is shared by its inner ones.
    Police(u32),
    /// The class was removed: its frames are dropped until those that wait have left.
    Removed,
}

/// The parts of a pipeline.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) classes: Slots<ClassState>,
    pub(crate) policers: Vec<(String, PolicerState)>,
    pub(crate) tree: Tree,
    /// Nodes with credit to carry over on a change.
    pub(crate) credits: CreditNodes,
    /// Frames that all queue limits together admit.
    pub(crate) capacity: u64,
}

/// Locations of token-bucket credit in a tree, by class path.
#[derive(Debug, Default)]
pub(crate) struct CreditNodes {
    /// Shapers; the port's has the empty path.
    pub(crate) shapers: BTreeMap<String, NodeId>,
    /// Two-tier nodes, and the class's position among their children.
    pub(crate) minimums: BTreeMap<String, (NodeId, u32)>,
}

/// Everything but the port's shaper, which [`add_port_shaper`] puts on top.
pub(crate) fn build_policy(policy: &PolicyParams, now: Instant) -> Result<Built, BuildError> {
    let mut builder = Builder {
        built: Built {
            classes: Slots::with_capacity(leaves(policy)),
            policers: Vec::new(),
            tree: Tree::new(),
            credits: CreditNodes::default(),
            capacity: 0,
        },
        now,
    };
    let mut context = Context::default();
    let root = builder.policy(policy, &mut context)?;
    debug_assert_eq!(root, builder.built.tree.root(), "the root is added last");
    Ok(builder.built)
}

/// Finish a tree: the port's shaper over everything.
pub(crate) fn add_port_shaper(built: &mut Built, shaper: Option<&ShaperParams>, now: Instant) {
    if let Some(shaper) = shaper {
        let shaper = Inner::Shaper(Shaper::new(shaper, now));
        let root = built.tree.root();
        let shaper = built.tree.add_inner(shaper, &[root]);
        built.credits.shapers.insert(String::new(), shaper);
    }
}

/// Context from the enclosing classes.
#[derive(Debug, Default, Clone)]
struct Context {
    path: String,
    ingress: Vec<Ingress>,
}

struct Builder {
    built: Built,
    now: Instant,
}

impl Builder {
    /// Build one policy; returns its root node.
    fn policy(
        &mut self,
        policy: &PolicyParams,
        context: &mut Context,
    ) -> Result<NodeId, BuildError> {
        let shared = match policy.discipline {
            Discipline::Fifo => Some(self.queue_node(policy.classes.last(), false)),
            Discipline::Guaranteed => Some(self.guaranteed_node(policy)?),
            Discipline::MinimumShare | Discipline::DeficitRoundRobin => None,
        };
        let mut levels: BTreeMap<u8, Vec<NodeId>> = BTreeMap::new();
        let mut others: Vec<(NodeId, &ClassParams)> = Vec::new();
        for class in &policy.classes {
            let mut inner = Context {
                path: join(&context.path, &class.name),
                ingress: context.ingress.clone(),
            };
            let node = self.class(class, shared, &mut inner)?;
            match class.priority {
                Some(priority) => levels.entry(priority.level).or_default().push(node),
                None => others.push((node, class)),
            }
        }
        if let Some(leaf) = shared {
            return Ok(NodeId::Leaf(leaf));
        }
        let rest = self.sharing_node(policy, &others, context);
        if levels.is_empty() {
            return Ok(rest);
        }
        if levels.len() >= MAX_LEVELS {
            let levels = levels.len();
            return Err(BuildError::TooManyLevels {
                policy: policy.name.clone(),
                levels,
            });
        }
        let mut children: Vec<NodeId> = levels
            .into_values()
            .map(|nodes| self.level_node(nodes))
            .collect();
        children.push(rest);
        Ok(self
            .built
            .tree
            .add_inner(Inner::StrictPriority(StrictPriority::new()), &children))
    }

    /// Classes on one priority level take turns.
    fn level_node(&mut self, nodes: Vec<NodeId>) -> NodeId {
        match nodes.as_slice() {
            [only] => *only,
            _ => {
                let ring = DeficitRoundRobin::new(&vec![1; nodes.len()]);
                self.built
                    .tree
                    .add_inner(Inner::DeficitRoundRobin(ring), &nodes)
            }
        }
    }

    fn sharing_node(
        &mut self,
        policy: &PolicyParams,
        others: &[(NodeId, &ClassParams)],
        context: &Context,
    ) -> NodeId {
        if let [(only, _)] = others {
            return *only;
        }
        let children: Vec<NodeId> = others.iter().map(|(node, _)| *node).collect();
        let discipline = if policy.discipline == Discipline::DeficitRoundRobin {
            let weights: Vec<u32> = others.iter().map(|(_, class)| class.weight).collect();
            Inner::DeficitRoundRobin(DeficitRoundRobin::new(&weights))
        } else {
            let shares: Vec<Share> = others
                .iter()
                .map(|(_, class)| Share {
                    minimum: class.minimum,
                    weight: class.weight,
                })
                .collect();
            Inner::MinimumShare(MinimumShare::new(&shares, self.now))
        };
        let id = self.built.tree.add_inner(discipline, &children);
        for (position, (_, class)) in (0u32..).zip(others) {
            self.built
                .credits
                .minimums
                .insert(join(&context.path, &class.name), (id, position));
        }
        id
    }

    fn class(
        &mut self,
        class: &ClassParams,
        shared: Option<u32>,
        context: &mut Context,
    ) -> Result<NodeId, BuildError> {
        if let Some(dscp) = class.set_dscp {
            context.ingress.push(Ingress::SetDscp(dscp));
        }
        if let Some(police) = &class.police {
            let index = u32::try_from(self.built.policers.len()).unwrap_or(u32::MAX);
            let state = PolicerState::new(police, self.now);
            self.built.policers.push((context.path.clone(), state));
            context.ingress.push(Ingress::Police(index));
        }
        let node = match &class.child {
            Some(child) => self.policy(child, context)?,
            None => self.leaf(class, shared, context)?,
        };
        Ok(match &class.shape {
            None => node,
            Some(shape) => {
                let shaper = Inner::Shaper(Shaper::new(shape, self.now));
                let id = self.built.tree.add_inner(shaper, &[node]);
                self.built.credits.shapers.insert(context.path.clone(), id);
                id
            }
        })
    }

    /// A leaf for the slices of a guaranteed policy; they are added class by class.
    fn guaranteed_node(&mut self, policy: &PolicyParams) -> Result<u32, BuildError> {
        let params = policy
            .guaranteed
            .as_ref()
            .ok_or_else(|| BuildError::NotGuaranteed {
                policy: policy.name.clone(),
            })?;
        let guaranteed = Guaranteed::new(params, policy.classes.len());
        let leaf = Leaf::Guaranteed(Box::new(guaranteed));
        Ok(self.built.tree.add_leaf(leaf, false))
    }

    /// The queue of a class: a node of its own, that of its policy, or a slice of that.
    fn queue(
        &mut self,
        class: &ClassParams,
        shared: Option<u32>,
        context: &Context,
    ) -> Result<QueueId, BuildError> {
        let Some(leaf) = shared else {
            let leaf = self.queue_node(Some(class), class.priority.is_some());
            return Ok(QueueId::of(leaf));
        };
        let (Some(Leaf::Guaranteed(guaranteed)), Some(slice)) =
            (self.built.tree.leaf_mut(leaf), &class.slice)
        else {
            return Ok(QueueId::of(leaf));
        };
        let added = match &class.flow_queue {
            Some(flow_queue) => guaranteed.add_flow_queued_slice(slice, flow_queue, self.now),
            None => guaranteed.add_slice(slice, self.now),
        };
        let slice = added.map_err(|error| BuildError::Slice {
            class: context.path.clone(),
            error,
        })?;
        self.built.capacity += room(class.queue_limit);
        Ok(QueueId::of_slice(leaf, slice))
    }

    fn leaf(
        &mut self,
        class: &ClassParams,
        shared: Option<u32>,
        context: &Context,
    ) -> Result<NodeId, BuildError> {
        let queue = self.queue(class, shared, context)?;
        let police = class.priority.and_then(|priority| priority.police);
        let special = Special {
            ingress: context.ingress.clone(),
            by_flow: class.flow_queue.is_some(),
            elephants: None,
        };
        let mut class = ClassState::new(context.path.clone(), queue, special);
        let bucket = |(rate, burst)| Box::new(TokenBucket::full(rate, burst, self.now));
        class.priority_police = police.map(bucket);
        self.built.classes.push(class);
        Ok(NodeId::Leaf(queue.leaf))
    }

    fn queue_node(&mut self, class: Option<&ClassParams>, priority: bool) -> u32 {
        let limit = class.map_or(
            slicewise_model::QueueLimitParams {
                packets: 64,
                bytes: slicewise_units::ByteCount::new(u64::MAX),
            },
            |class| class.queue_limit,
        );
        self.built.capacity += room(limit);
        let leaf = match class.and_then(|c| c.flow_queue.as_ref()) {
            Some(flow_queue) => Leaf::Flows(Box::new(FlowQueue::new(flow_queue, limit))),
            None => Leaf::Fifo(FifoQueue::new(limit, class.and_then(|c| c.wred.as_ref()))),
        };
        self.built.tree.add_leaf(leaf, priority)
    }
}

/// Frames a queue may hold, plus one: a flow queue accepts a frame before it drops another.
pub(crate) fn room(limit: slicewise_model::QueueLimitParams) -> u64 {
    u64::from(limit.packets) + 1
}

/// Classes without a child, in a policy and those inside it.
pub(crate) fn leaves(policy: &PolicyParams) -> usize {
    let children = |class: &ClassParams| class.child.as_ref().map_or(1, |child| leaves(child));
    policy.classes.iter().map(children).sum()
}

/// The classes that move elephants, by position.
pub(crate) fn with_elephants(classes: &Slots<ClassState>) -> Box<[u32]> {
    let classes = classes.iter().zip(0..);
    let moving = classes.filter(|(class, _)| class.elephants().is_some());
    moving.map(|(_, position)| position).collect()
}

pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}/{name}")
    }
}
