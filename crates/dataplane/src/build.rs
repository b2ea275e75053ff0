//! Builds classifier, policers, queues and scheduler tree from a validated policy.

mod class_state;
mod waiting;

pub(crate) use class_state::{Choice, ClassState, Ingress, Special};

use crate::TokenBucket;
use crate::active_flows::ActiveFlows;
use crate::elephants::Elephants;
use crate::guaranteed::{Guaranteed, SliceError};
use crate::hqos::{Hqos, HqosPlaces};
use crate::meter::policer::PolicerState;
use crate::scheduler::deficit_round_robin::DeficitRoundRobin;
use crate::scheduler::minimum_share::{MinimumShare, Share};
use crate::scheduler::shaper::Shaper;
use crate::scheduler::strict_priority::StrictPriority;
use crate::scheduler::{Inner, Leaf, NodeId, QueueId, Tree};
use crate::slots::Slots;
use slicewise_model::{
    ClassParams, Colour, Discipline, MAX_PRIORITY_LEVELS, NamedQueueParams, PolicyParams,
    QueueLimitParams, QueueParams, ShaperParams,
};
use slicewise_units::Instant;
use std::collections::BTreeMap;
use waiting::{NamedQueues, Waiting};

/// Queue of a policy without classes.
const DEFAULT_QUEUE: QueueParams = QueueParams::tail_drop(QueueLimitParams::of_packets(64));

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
    #[error(
        "policy `{policy}` has {levels} priority levels: at most {MAX_PRIORITY_LEVELS} are possible"
    )]
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
    /// A slice that was added to the policy before cannot be kept beside the new one.
    #[error("slice `{slice}`, which was added while running, cannot be kept: {problem}")]
    NotKept {
        /// The slice.
        slice: String,
        /// Why not.
        problem: String,
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

/// The parts of a pipeline.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) classes: Slots<ClassState>,
    pub(crate) policers: Slots<(String, PolicerState)>,
    pub(crate) tree: Tree,
    /// Nodes with credit to carry over on a change.
    pub(crate) credits: CreditNodes,
    /// The named queues, by their path.
    pub(crate) named: BTreeMap<String, QueueId>,
    /// Where weights are multiplied by them.
    pub(crate) active_flows: ActiveFlows,
    /// Frames that all queue limits together admit.
    pub(crate) capacity: u64,
    /// The classes that move elephants, by position.
    pub(crate) with_elephants: Box<[u32]>,
    /// Frames of a class have places in a hierarchy.
    pub(crate) has_places: bool,
    /// Leaf of the slices of a guaranteed policy.
    pub(crate) slices_leaf: Option<u32>,
}

/// Locations of token-bucket credit in a tree.
#[derive(Debug, Default)]
pub(crate) struct CreditNodes {
    /// Shapers; the port's has the empty path.
    pub(crate) shapers: BTreeMap<Owner, NodeId>,
    /// Nodes of classes that share, and the class's position among their children: only two-tier nodes have credit.
    pub(crate) minimums: BTreeMap<Owner, (NodeId, u32)>,
}

/// Owner of a queue, by its path (names from the outermost): a class, or a named queue itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    Class(String),
    Queue(String),
}

impl Owner {
    /// The port.
    const PORT: Self = Self::Class(String::new());
}

/// Everything but the port's shaper, which [`add_port_shaper`] puts on top.
pub(crate) fn build_policy(
    policy: &PolicyParams,
    seed: u64,
    now: Instant,
) -> Result<Built, BuildError> {
    let mut builder = Builder {
        built: Built {
            classes: Slots::with_capacity(leaves(policy)),
            policers: Slots::with_capacity(policers(policy)),
            tree: Tree::new(),
            credits: CreditNodes::default(),
            named: BTreeMap::new(),
            active_flows: ActiveFlows::default(),
            capacity: 0,
            with_elephants: Box::default(),
            has_places: false,
            slices_leaf: None,
        },
        seed,
        now,
    };
    let mut context = Context::default();
    let root = builder.policy(policy, &mut context)?;
    debug_assert_eq!(root, builder.built.tree.root(), "the root is added last");
    let mut built = builder.built;
    built.active_flows.apply(&mut built.tree);
    let classes = built.classes.iter().zip(0..);
    let moving = classes.filter(|(class, _)| class.elephants().is_some());
    built.with_elephants = moving.map(|(_, position)| position).collect();
    built.has_places = built.classes.iter().any(|class| class.places().is_some());
    let first = built.classes.get(0).filter(|_| policy.guaranteed.is_some());
    built.slices_leaf = first.map(|class| class.queue.leaf);
    Ok(built)
}

/// Finish a tree: the port's shaper over everything.
pub(crate) fn add_port_shaper(built: &mut Built, shaper: Option<&ShaperParams>, now: Instant) {
    if let Some(shaper) = shaper {
        let shaper = Inner::Shaper(Shaper::new(shaper, now));
        let root = built.tree.root();
        let shaper = built.tree.add_inner(shaper, &[root]);
        built.credits.shapers.insert(Owner::PORT, shaper);
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
    seed: u64,
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
            Discipline::Fifo => Some(match policy.classes.last() {
                Some(default) => self.queue_of_class(default, false),
                None => self.queue_node(&DEFAULT_QUEUE, false),
            }),
            Discipline::Guaranteed => Some(self.guaranteed_node(policy)?),
            Discipline::MinimumShare | Discipline::DeficitRoundRobin => None,
        };
        let mut nodes: Vec<(NodeId, Waiting)> = Vec::new();
        for queue in &policy.queues {
            nodes.push(self.named_queue(queue, &context.path));
        }
        for class in &policy.classes {
            let mut inner = Context {
                path: join(&context.path, &class.name),
                ingress: context.ingress.clone(),
            };
            let queues = self.queues_of(class, &context.path);
            let node = self.class(class, shared, queues, &mut inner)?;
            nodes.extend(node.map(|node| (node, Waiting::of_class(class, inner.path))));
        }
        if let Some(leaf) = shared {
            return Ok(NodeId::Leaf(leaf));
        }
        let mut levels: BTreeMap<u8, Vec<NodeId>> = BTreeMap::new();
        let mut others = Vec::new();
        for (node, waiting) in nodes {
            match waiting.level {
                Some(level) => levels.entry(level).or_default().push(node),
                None => others.push((node, waiting)),
            }
        }
        self.by_priority(policy, levels, &others)
    }

    /// Levels of strict priority above what shares the rest.
    fn by_priority(
        &mut self,
        policy: &PolicyParams,
        levels: BTreeMap<u8, Vec<NodeId>>,
        others: &[(NodeId, Waiting)],
    ) -> Result<NodeId, BuildError> {
        if levels.len() > MAX_PRIORITY_LEVELS {
            let levels = levels.len();
            return Err(BuildError::TooManyLevels {
                policy: policy.name.clone(),
                levels,
            });
        }
        let rest = (!others.is_empty()).then(|| self.sharing_node(others));
        let levels = levels.into_values().map(|nodes| self.level_node(nodes));
        let children: Vec<NodeId> = levels.collect();
        let children = [children, rest.into_iter().collect()].concat();
        if let [only] = children.as_slice() {
            return Ok(*only);
        }
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

    fn sharing_node(&mut self, others: &[(NodeId, Waiting)]) -> NodeId {
        if let [(only, _)] = others {
            return *only;
        }
        let children: Vec<NodeId> = others.iter().map(|(node, _)| *node).collect();
        // Without minimums, all is excess: the second tier alone.
        let discipline = if others.iter().all(|(_, waiting)| waiting.minimum.is_none()) {
            let weights: Vec<u32> = others.iter().map(|(_, waiting)| waiting.weight).collect();
            Inner::DeficitRoundRobin(DeficitRoundRobin::new(&weights))
        } else {
            let shares: Vec<Share> = others
                .iter()
                .map(|(_, waiting)| Share {
                    minimum: waiting.minimum,
                    weight: waiting.weight,
                })
                .collect();
            Inner::MinimumShare(MinimumShare::new(&shares, self.now))
        };
        let id = self.built.tree.add_inner(discipline, &children);
        let counted = others
            .iter()
            .map(|(_, waiting)| (waiting.counted, waiting.weight));
        self.built.active_flows.add_node(id, counted.collect());
        for (position, (_, waiting)) in (0u32..).zip(others) {
            let owner = waiting.owner.clone();
            self.built.credits.minimums.insert(owner, (id, position));
        }
        id
    }

    /// A named queue of the policy at `path`, below its shaper.
    fn named_queue(&mut self, queue: &NamedQueueParams, path: &str) -> (NodeId, Waiting) {
        let path = join(path, &queue.name);
        let leaf = self.queue_node(&queue.queue, queue.priority.is_some());
        let id = QueueId::of(leaf);
        self.built.named.insert(path.clone(), id);
        if queue.per_flow {
            self.built.active_flows.add_queue(id, path.clone());
        }
        let counted = queue.per_flow.then_some(id);
        let waiting = Waiting::of_queue(queue, path.clone(), counted);
        let (shape, owner) = (queue.shape.as_ref(), Owner::Queue(path));
        (self.below_shaper(NodeId::Leaf(leaf), shape, owner), waiting)
    }

    /// The named queues that a class of the policy at `path` uses.
    fn queues_of(&self, class: &ClassParams, path: &str) -> NamedQueues {
        let named = |name: &str| self.built.named.get(&join(path, name)).copied();
        NamedQueues {
            base: class.named_queue.as_deref().and_then(named),
            by_colour: Colour::ALL.map(|colour| {
                let police = class.police.as_ref()?;
                police.action(colour).queue().and_then(named)
            }),
            elephants: class
                .elephants
                .as_ref()
                .and_then(|elephants| named(&elephants.queue)),
        }
    }

    /// Returns the node of its own, which it has unless it waits in a named queue.
    fn class(
        &mut self,
        class: &ClassParams,
        shared: Option<u32>,
        queues: NamedQueues,
        context: &mut Context,
    ) -> Result<Option<NodeId>, BuildError> {
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
            None => {
                let queue = match queues.base {
                    Some(queue) => queue,
                    None => self.queue(class, shared, context)?,
                };
                self.leaf(class, queue, queues, context);
                if queues.base.is_some() {
                    return Ok(None);
                }
                NodeId::Leaf(queue.leaf)
            }
        };
        let owner = Owner::Class(context.path.clone());
        Ok(Some(self.below_shaper(node, class.shape.as_ref(), owner)))
    }

    fn below_shaper(&mut self, node: NodeId, shape: Option<&ShaperParams>, owner: Owner) -> NodeId {
        let Some(shape) = shape else {
            return node;
        };
        let shaper = Inner::Shaper(Shaper::new(shape, self.now));
        let id = self.built.tree.add_inner(shaper, &[node]);
        self.built.credits.shapers.insert(owner, id);
        id
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
            let leaf = self.queue_of_class(class, class.priority.is_some());
            return Ok(QueueId::of(leaf));
        };
        let (Some(Leaf::Guaranteed(guaranteed)), Some(slice)) =
            (self.built.tree.leaf_mut(leaf), &class.slice)
        else {
            return Ok(QueueId::of(leaf));
        };
        let added = match class.queue.flow_queue() {
            Some(flow_queue) => guaranteed.add_flow_queued_slice(slice, &flow_queue, self.now),
            None => guaranteed.add_slice(slice, self.now),
        };
        let slice = added.map_err(|error| BuildError::Slice {
            class: context.path.clone(),
            error,
        })?;
        self.built.capacity += room(class.queue.limit);
        Ok(QueueId::of_slice(leaf, slice))
    }

    /// A class without child, whose frames wait in `queue`, or in that of their colour.
    fn leaf(&mut self, class: &ClassParams, queue: QueueId, named: NamedQueues, context: &Context) {
        let by_colour = named.by_colour;
        let police = class.priority.and_then(|priority| priority.police);
        let queues = by_colour.map(|of_colour| of_colour.unwrap_or(queue));
        let built = &self.built;
        let any = |is: &dyn Fn(QueueId) -> bool| queues.into_iter().chain([queue]).any(is);
        let counts_flows = any(&|queue| built.active_flows.counts(queue));
        let keeps_apart = any(&|queue| built.tree.keeps_flows_apart(queue));
        let is_chosen = by_colour.iter().any(Option::is_some);
        let elephants = class.elephants.as_ref().zip(named.elephants);
        let places = class.hqos.as_deref().map(HqosPlaces::new);
        let is_chosen = is_chosen || counts_flows || elephants.is_some() || places.is_some();
        let special = Special {
            ingress: context.ingress.clone(),
            by_flow: !class.queue.keeps_order() || keeps_apart || counts_flows,
            choice: is_chosen.then(|| {
                Box::new(Choice {
                    by_colour: queues,
                    counts_flows,
                    elephants: elephants
                        .map(|(params, elephants)| Elephants::new(params, [queue, elephants])),
                    places,
                })
            }),
            ..Special::default()
        };
        let mut class = ClassState::new(context.path.clone(), queue, special);
        let bucket = |(rate, burst)| Box::new(TokenBucket::full(rate, burst, self.now));
        class.priority_police = police.map(bucket);
        self.built.classes.push(class);
    }

    fn queue_of_class(&mut self, class: &ClassParams, priority: bool) -> u32 {
        if let Some(params) = &class.hqos {
            self.built.capacity += room(class.queue.limit);
            let scheduler = Hqos::new(params, self.seed, self.now);
            let leaf = Leaf::Hqos(Box::new(scheduler));
            return self.built.tree.add_leaf(leaf, false);
        }
        self.queue_node(&class.queue, priority)
    }

    fn queue_node(&mut self, queue: &QueueParams, priority: bool) -> u32 {
        self.built.capacity += room(queue.limit);
        self.built.tree.add_leaf(Leaf::of_queue(queue), priority)
    }
}

/// Frames a queue may hold, plus one: a flow queue accepts a frame before it drops another.
pub(crate) fn room(limit: QueueLimitParams) -> u64 {
    u64::from(limit.packets) + 1
}

/// Classes without a child, in a policy and those inside it.
pub(crate) fn leaves(policy: &PolicyParams) -> usize {
    let children = |class: &ClassParams| class.child.as_ref().map_or(1, |child| leaves(child));
    policy.classes.iter().map(children).sum()
}

/// Classes with a policer, in a policy and those inside it.
fn policers(policy: &PolicyParams) -> usize {
    let of_class = |class: &ClassParams| {
        usize::from(class.police.is_some()) + class.child.as_deref().map_or(0, policers)
    };
    policy.classes.iter().map(of_class).sum()
}

pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}/{name}")
    }
}
