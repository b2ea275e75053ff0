//! Schedulers, composed into a tree: which queue sends next, and when.
//!
//! A tree works in two steps. [`Tree::peek`] finds the frame that would leave now, without removing it;
//! [`Tree::commit`] then charges every node between that frame's queue and the root. So a shaper above
//! any scheduler can compare the exact frame that would leave with its credit.

pub mod deficit_round_robin;
pub mod minimum_share;
pub mod shaper;
pub mod strict_priority;

use crate::frame::DropReason;
use crate::guaranteed::{Effects, Guaranteed, Selection, SliceId};
use crate::queue::{FramePool, QueueState, QueuedFrame};
use deficit_round_robin::DeficitRoundRobin;
use minimum_share::MinimumShare;
use rand_core::Rng;
use shaper::Shaper;
use slicewise_units::{FrameLengths, Instant};
use strict_priority::StrictPriority;

/// Index of a node in its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A queue: a leaf, and a slice of it if that is a guaranteed scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueueId {
    /// The leaf.
    pub node: NodeId,
    /// The slice.
    pub slice: Option<SliceId>,
}

impl QueueId {
    /// The only queue of a leaf.
    pub(crate) const fn of(node: NodeId) -> Self {
        Self { node, slice: None }
    }
}

/// The frame a subtree would send now.
#[derive(Debug, Clone, Copy)]
pub struct Head {
    /// The queue it waits in.
    pub queue: QueueId,
    /// Its lengths.
    pub lengths: FrameLengths,
    /// It belongs to a priority class, or leaves under its slice's guarantee.
    pub priority: bool,
    /// From then on another frame may be first, though nothing arrived or left: one that is
    /// ahead of this one waits for a shaper, or earns its minimum.
    pub changes_at: Instant,
}

impl Head {
    /// The same frame, first at most until `until`.
    const fn until(mut self, until: Instant) -> Self {
        if until.nanos() < self.changes_at.nanos() {
            self.changes_at = until;
        }
        self
    }
}

/// Answer of a subtree to a request for a frame.
#[derive(Debug, Clone, Copy)]
pub enum Peek {
    /// This one may leave now.
    Ready(Head),
    /// Frames wait, but none may leave before this time.
    Wait(Instant),
    /// No frame waits.
    Empty,
}

impl Peek {
    /// When to ask again, having asked at `now`; `None` where only a new frame could change the
    /// answer.
    pub(crate) fn poll_at(self, now: Instant) -> Option<Instant> {
        match self {
            Self::Ready(_) => Some(now),
            Self::Wait(until) => (until < Instant::MAX).then_some(until),
            Self::Empty => None,
        }
    }
}

/// A queue at a leaf.
#[derive(Debug)]
pub struct Leaf {
    pub(crate) state: QueueState,
    /// Frames of this queue need not wait for a shaper that priority may borrow from.
    pub(crate) priority: bool,
}

/// What a node does. Children are known by their position in the node's list.
#[derive(Debug)]
pub enum Discipline {
    /// A queue.
    Queue(Leaf),
    /// Limits its only child to a rate.
    Shaper(Shaper),
    /// The first child that may send.
    StrictPriority(StrictPriority),
    /// Turns by weight.
    DeficitRoundRobin(DeficitRoundRobin),
    /// Guaranteed minimums first, the excess by weight.
    MinimumShare(MinimumShare),
    /// A leaf: slices with a queue each, by deadline and by weight.
    Guaranteed(Box<Guaranteed>),
}

#[derive(Debug)]
struct Node {
    discipline: Discipline,
    children: Vec<NodeId>,
    /// The parent, and this node's position among its children; the root has none.
    parent: Option<(NodeId, u32)>,
    /// Frames waiting in the subtree.
    backlog: u32,
}

/// A tree of schedulers with queues at its leaves.
#[derive(Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    root: NodeId,
}

impl Tree {
    /// A tree without nodes; add them with [`Tree::add`], children first, the root last.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            nodes: Vec::new(),
            root: NodeId(0),
        }
    }

    /// Add a node over `children`, which become its own; it is the root until the next is added.
    pub fn add(&mut self, discipline: Discipline, children: Vec<NodeId>) -> NodeId {
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        for (position, child) in (0u32..).zip(&children) {
            self.nodes[child.index()].parent = Some((id, position));
        }
        self.nodes.push(Node {
            discipline,
            children,
            parent: None,
            backlog: 0,
        });
        self.root = id;
        id
    }

    /// Frames waiting in all queues.
    #[must_use]
    pub fn backlog(&self) -> u32 {
        self.nodes
            .get(self.root.index())
            .map_or(0, |root| root.backlog)
    }

    /// True where a shaper is over everything.
    pub(crate) fn is_shaped(&self) -> bool {
        let root = self.nodes.get(self.root.index());
        root.is_some_and(|root| matches!(root.discipline, Discipline::Shaper(_)))
    }

    pub(crate) fn discipline_mut(&mut self, id: NodeId) -> &mut Discipline {
        &mut self.nodes[id.index()].discipline
    }

    pub(crate) fn leaf_mut(&mut self, id: NodeId) -> Option<&mut Leaf> {
        match &mut self.nodes[id.index()].discipline {
            Discipline::Queue(leaf) => Some(leaf),
            _ => None,
        }
    }

    pub(crate) fn guaranteed_mut(&mut self, id: NodeId) -> Option<&mut Guaranteed> {
        match &mut self.nodes[id.index()].discipline {
            Discipline::Guaranteed(guaranteed) => Some(guaranteed),
            _ => None,
        }
    }

    /// Frames waiting in one queue.
    pub(crate) fn packets(&self, queue: QueueId) -> u32 {
        match (self.nodes.get(queue.node.index()), queue.slice) {
            (Some(node), None) => node.backlog,
            (Some(node), Some(slice)) => match &node.discipline {
                Discipline::Guaranteed(guaranteed) => guaranteed.slice_backlog(slice),
                _ => 0,
            },
            (None, _) => 0,
        }
    }

    /// Put a frame into a queue; returns whether another may now be the next to leave it.
    ///
    /// # Errors
    /// The reason to drop the frame.
    #[inline]
    pub(crate) fn try_enqueue(
        &mut self,
        queue: QueueId,
        queued: QueuedFrame,
        pool: &mut FramePool,
        random: &mut impl Rng,
    ) -> Result<bool, DropReason> {
        let (is_new_front, dropped) =
            match (&mut self.nodes[queue.node.index()].discipline, queue.slice) {
                (Discipline::Queue(leaf), None) => {
                    let state = &mut leaf.state;
                    let is_new_front = state.try_enqueue(pool, queued, queued.arrival, random)?;
                    (is_new_front, state.take_dropped())
                }
                (Discipline::Guaranteed(guaranteed), Some(slice)) => {
                    let was_empty = guaranteed.slice_backlog(slice) == 0;
                    guaranteed.try_enqueue(slice, queued, pool)?;
                    let Effects { dropped, restaged } = guaranteed.take_effects();
                    (was_empty || restaged, dropped)
                }
                _ => return Err(DropReason::QueueFull),
            };
        self.on_enqueued(queue.node, 1);
        if dropped > 0 {
            self.on_dropped(queue.node, dropped);
        }
        Ok(is_new_front)
    }

    /// Remove the oldest frame from a queue of a tree that is being replaced.
    pub(crate) fn pop_unserved(
        &mut self,
        queue: QueueId,
        pool: &mut FramePool,
    ) -> Option<QueuedFrame> {
        match (&mut self.nodes[queue.node.index()].discipline, queue.slice) {
            (Discipline::Queue(leaf), _) => leaf.state.pop_unserved(pool),
            (Discipline::Guaranteed(guaranteed), Some(slice)) => {
                guaranteed.pop_unserved(slice, pool)
            }
            _ => None,
        }
    }

    /// Put a frame at the end of a queue whatever its limits; the nodes above are not notified.
    pub(crate) fn append(&mut self, queue: QueueId, queued: QueuedFrame, pool: &mut FramePool) {
        match (&mut self.nodes[queue.node.index()].discipline, queue.slice) {
            (Discipline::Queue(leaf), _) => leaf.state.append(queued, pool),
            (Discipline::Guaranteed(guaranteed), Some(slice)) => {
                guaranteed.append(slice, queued, pool);
            }
            _ => {}
        }
    }

    /// Take the frame last found by [`Tree::peek`], and charge it to every node above its queue.
    #[inline]
    pub(crate) fn take(
        &mut self,
        head: &Head,
        pool: &mut FramePool,
        now: Instant,
    ) -> Option<QueuedFrame> {
        let queue = head.queue;
        let (queued, dropped) = match (&mut self.nodes[queue.node.index()].discipline, queue.slice)
        {
            // Its front was staged when it was found: nothing is dropped here.
            (Discipline::Queue(leaf), _) => (leaf.state.dequeue(pool, now)?, 0),
            (Discipline::Guaranteed(guaranteed), Some(slice)) => {
                let queued = guaranteed.take(slice, head.priority, pool, now);
                (queued, guaranteed.take_effects().dropped)
            }
            _ => return None,
        };
        if dropped > 0 {
            self.on_dropped(queue.node, dropped);
        }
        self.commit(head, now);
        Some(queued)
    }

    /// Notify every node above `leaf` that `frames` joined its queue.
    pub(crate) fn on_enqueued(&mut self, leaf: NodeId, frames: u32) {
        let mut id = leaf;
        loop {
            let node = &mut self.nodes[id.index()];
            let was_empty = node.backlog == 0;
            node.backlog += frames;
            let Some((parent, position)) = node.parent else {
                return;
            };
            if was_empty {
                match &mut self.nodes[parent.index()].discipline {
                    Discipline::Queue(_) | Discipline::Shaper(_) | Discipline::Guaranteed(_) => {}
                    Discipline::StrictPriority(d) => d.on_backlogged(position),
                    Discipline::DeficitRoundRobin(d) => d.on_backlogged(position),
                    Discipline::MinimumShare(d) => d.on_backlogged(position),
                }
            }
            id = parent;
        }
    }

    /// Notify every node above `leaf` that `frames` were dropped from its queue. Others still wait: a
    /// queue never drops all its frames, so no node becomes empty.
    fn on_dropped(&mut self, leaf: NodeId, frames: u32) {
        let mut id = leaf;
        loop {
            let node = &mut self.nodes[id.index()];
            debug_assert!(node.backlog > frames, "the last frame is never dropped");
            node.backlog = node.backlog.saturating_sub(frames);
            let Some((parent, _)) = node.parent else {
                return;
            };
            id = parent;
        }
    }

    /// The frame that would leave the whole tree at `now`. Frames that have waited too long in a
    /// queue with `CoDel` are dropped on the way.
    pub fn peek(&mut self, pool: &mut FramePool, now: Instant) -> Peek {
        self.peek_node(self.root, pool, now)
    }

    #[inline]
    fn peek_node(&mut self, id: NodeId, pool: &mut FramePool, now: Instant) -> Peek {
        let Some(node) = self.nodes.get(id.index()) else {
            return Peek::Empty;
        };
        if node.backlog == 0 {
            return Peek::Empty;
        }
        match &node.discipline {
            Discipline::Queue(_) => self.peek_queue(id, pool, now),
            Discipline::Guaranteed(_) => self.peek_guaranteed(id, pool, now),
            Discipline::Shaper(_) => shaper::peek(self, id, pool, now),
            Discipline::StrictPriority(_) => strict_priority::peek(self, id, pool, now),
            Discipline::DeficitRoundRobin(_) => deficit_round_robin::peek(self, id, pool, now),
            Discipline::MinimumShare(_) => minimum_share::peek(self, id, pool, now),
        }
    }

    #[inline]
    fn peek_queue(&mut self, id: NodeId, pool: &mut FramePool, now: Instant) -> Peek {
        let Some(leaf) = self.leaf_mut(id) else {
            return Peek::Empty;
        };
        let Some(queued) = leaf.state.front(pool, now) else {
            return Peek::Empty;
        };
        let priority = leaf.priority;
        let dropped = leaf.state.take_dropped();
        if dropped > 0 {
            self.on_dropped(id, dropped);
        }
        Peek::Ready(Head {
            queue: QueueId::of(id),
            lengths: queued.frame.lengths,
            priority,
            changes_at: Instant::MAX,
        })
    }

    fn peek_guaranteed(&mut self, id: NodeId, pool: &mut FramePool, now: Instant) -> Peek {
        let Some(guaranteed) = self.guaranteed_mut(id) else {
            return Peek::Empty;
        };
        match guaranteed.select(pool, now) {
            Selection::Ready(selected) => Peek::Ready(Head {
                queue: QueueId {
                    node: id,
                    slice: Some(selected.slice),
                },
                lengths: selected.lengths,
                priority: selected.guaranteed,
                changes_at: selected.changes_at,
            }),
            Selection::Wait(until) => Peek::Wait(until),
            Selection::Empty => Peek::Empty,
        }
    }

    #[inline]
    fn peek_child(
        &mut self,
        id: NodeId,
        position: u32,
        pool: &mut FramePool,
        now: Instant,
    ) -> Peek {
        let child = self.nodes[id.index()].children[position as usize];
        self.peek_node(child, pool, now)
    }

    /// Charge a frame to every node above its queue, from which it has just been taken.
    fn commit(&mut self, head: &Head, now: Instant) {
        let mut id = head.queue.node;
        loop {
            let node = &mut self.nodes[id.index()];
            node.backlog -= 1;
            let emptied = node.backlog == 0;
            let Some((parent, position)) = node.parent else {
                return;
            };
            match &mut self.nodes[parent.index()].discipline {
                Discipline::Queue(_) | Discipline::Guaranteed(_) => {}
                Discipline::Shaper(d) => d.on_departure(head.lengths, now),
                Discipline::StrictPriority(d) => d.on_departure(position, emptied),
                Discipline::DeficitRoundRobin(d) => {
                    d.on_departure(position, head.lengths, emptied);
                }
                Discipline::MinimumShare(d) => d.on_departure(position, head.lengths, emptied),
            }
            id = parent;
        }
    }
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}
