//! Schedulers, composed into a tree: which queue sends next, and when.
//!
//! Frames wait in *leaves*; *inner nodes* choose between their children. Each node keeps what its
//! children last offered, until that expires or something below changes. To find the frame that
//! would leave, [`Tree::offer`] goes down to the children whose offers are needed and not known,
//! and up again with the answers: no node asks for a frame twice, and none knows the tree. [`Tree::take`] then
//! removes that frame and charges every node above it. So a shaper above any scheduler can compare
//! the exact frame that would leave with its credit.
//!
//! Adding a discipline takes its own file and an arm of [`Inner`] or [`Leaf`].

pub mod deficit_round_robin;
mod inner;
mod leaf;
pub mod minimum_share;
mod offer;
pub mod shaper;
pub mod strict_priority;

pub use inner::Inner;
pub use leaf::Leaf;
pub use offer::{Head, Offer, QueueId};

use crate::frame::DropReason;
use crate::guaranteed::SliceId;
use crate::queue::{FramePool, QueuedFrame};
use leaf::Enqueued;
use offer::{Offers, Step};
use rand_core::Rng;
use slicewise_units::Instant;

/// A node of a tree: its position among the leaves or among the inner nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeId {
    /// A leaf.
    Leaf(u32),
    /// An inner node.
    Inner(u32),
}

/// Where a node hangs.
#[derive(Debug, Clone, Copy)]
struct Parent {
    /// Position among the inner nodes, or [`NONE`] for the root.
    inner: u32,
    /// Position among the parent's children.
    position: u32,
}

const NONE: u32 = u32::MAX;
const ROOT: Parent = Parent {
    inner: NONE,
    position: 0,
};

#[derive(Debug)]
struct LeafNode {
    leaf: Leaf,
    /// Frames of this queue need not wait for a shaper that priority may borrow from.
    priority: bool,
    parent: Parent,
}

#[derive(Debug)]
struct InnerNode {
    inner: Inner,
    children: Box<[NodeId]>,
    /// What each child last offered; `None` where it must be asked. While it is `None`, no offer
    /// further up depends on that child.
    offers: Box<[Option<Offer>]>,
    parent: Parent,
}

/// A tree of schedulers with queues at its leaves.
#[derive(Debug)]
pub struct Tree {
    leaves: Vec<LeafNode>,
    inners: Vec<InnerNode>,
    root: NodeId,
    /// What the root last offered.
    offer: Option<Offer>,
    backlog: u32,
}

impl Tree {
    /// A tree without nodes; add them children first, the root last.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            leaves: Vec::new(),
            inners: Vec::new(),
            root: NodeId::Leaf(0),
            offer: None,
            backlog: 0,
        }
    }

    /// Add a leaf; it is the root until the next node is added. Frames of a `priority` leaf do not wait
    /// for a shaper that priority may borrow from.
    pub fn add_leaf(&mut self, leaf: Leaf, priority: bool) -> u32 {
        let position = count(self.leaves.len());
        self.leaves.push(LeafNode {
            leaf,
            priority,
            parent: ROOT,
        });
        self.root = NodeId::Leaf(position);
        position
    }

    /// Add a node over `children`, which become its own; it is the root until the next is added.
    pub fn add_inner(&mut self, inner: Inner, children: Vec<NodeId>) -> NodeId {
        let index = count(self.inners.len());
        for (position, &child) in (0u32..).zip(&children) {
            *self.parent_mut(child) = Parent {
                inner: index,
                position,
            };
        }
        self.inners.push(InnerNode {
            inner,
            offers: vec![None; children.len()].into(),
            children: children.into(),
            parent: ROOT,
        });
        self.root = NodeId::Inner(index);
        self.root
    }

    fn parent_mut(&mut self, id: NodeId) -> &mut Parent {
        match id {
            NodeId::Leaf(leaf) => &mut self.leaves[leaf as usize].parent,
            NodeId::Inner(inner) => &mut self.inners[inner as usize].parent,
        }
    }

    /// Frames waiting in all queues.
    #[inline]
    #[must_use]
    pub const fn backlog(&self) -> u32 {
        self.backlog
    }

    /// True where a shaper is over everything.
    pub(crate) fn is_shaped(&self) -> bool {
        match self.root {
            NodeId::Inner(root) => matches!(self.inners[root as usize].inner, Inner::Shaper(_)),
            NodeId::Leaf(_) => false,
        }
    }

    pub(crate) fn inner_mut(&mut self, id: NodeId) -> Option<&mut Inner> {
        match id {
            NodeId::Inner(inner) => Some(&mut self.inners.get_mut(inner as usize)?.inner),
            NodeId::Leaf(_) => None,
        }
    }

    pub(crate) fn leaf_mut(&mut self, leaf: u32) -> Option<&mut Leaf> {
        Some(&mut self.leaves.get_mut(leaf as usize)?.leaf)
    }

    /// Frames waiting in one queue.
    pub(crate) fn packets(&self, queue: QueueId) -> u32 {
        let node = self.leaves.get(queue.leaf as usize);
        node.map_or(0, |node| node.leaf.packets(queue.slice))
    }

    /// Put a frame into a queue; returns whether another may now be the next to leave it. O(1), and
    /// O(depth) where the queue was empty.
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
        let node = &mut self.leaves[queue.leaf as usize];
        let Enqueued {
            was_empty,
            is_new_front,
            dropped,
        } = node.leaf.try_enqueue(queue.slice, queued, pool, random)?;
        self.backlog = self.backlog + 1 - dropped;
        let parent = node.parent;
        if was_empty {
            self.on_backlogged(parent);
        } else if is_new_front {
            self.forget_offer(parent);
        }
        Ok(is_new_front)
    }

    /// The child at `parent` had no frames, and has some now.
    #[inline]
    fn on_backlogged(&mut self, mut parent: Parent) {
        while let Some(node) = self.inners.get_mut(parent.inner as usize) {
            let was_empty = node.inner.is_empty();
            node.inner.on_backlogged(parent.position);
            node.offers[parent.position as usize] = None;
            parent = node.parent;
            if !was_empty {
                return self.forget_offer(parent);
            }
        }
        self.offer = None;
    }

    /// The child at `parent` would send another frame than it offered.
    #[inline]
    fn forget_offer(&mut self, mut parent: Parent) {
        while let Some(node) = self.inners.get_mut(parent.inner as usize) {
            if node.offers[parent.position as usize].take().is_none() {
                return;
            }
            parent = node.parent;
        }
        self.offer = None;
    }

    /// What the whole tree offers at `now`; `None` where no frame waits. Frames that have waited too
    /// long in a queue with `CoDel` are dropped on the way.
    ///
    /// O(depth) where one frame has left or arrived since.
    #[inline]
    pub fn offer(&mut self, pool: &mut FramePool, now: Instant) -> Option<Offer> {
        if self.backlog == 0 {
            return None;
        }
        let root = Offers {
            known: std::slice::from_ref(&self.offer),
            now,
        };
        if let Some(offer) = root.of(0) {
            return Some(offer);
        }
        let mut at = self.root;
        loop {
            let (offer, parent) = match at {
                NodeId::Leaf(leaf) => self.ask_leaf(leaf, pool, now),
                NodeId::Inner(inner) => {
                    let node = &mut self.inners[inner as usize];
                    let offers = Offers {
                        known: &node.offers,
                        now,
                    };
                    match node.inner.select(offers) {
                        Step::Ask(position) => {
                            at = node.children[position as usize];
                            continue;
                        }
                        Step::Offer(offer) => (offer, node.parent),
                    }
                }
            };
            let offer = offer.valid_at(now);
            let Some(node) = self.inners.get_mut(parent.inner as usize) else {
                self.offer = Some(offer);
                return Some(offer);
            };
            node.offers[parent.position as usize] = Some(offer);
            at = NodeId::Inner(parent.inner);
        }
    }

    #[inline]
    fn ask_leaf(&mut self, leaf: u32, pool: &mut FramePool, now: Instant) -> (Offer, Parent) {
        let node = &mut self.leaves[leaf as usize];
        let answer = node.leaf.offer(leaf, node.priority, pool, now);
        debug_assert!(answer.is_some(), "only leaves with frames are asked");
        let (offer, dropped) = answer.unwrap_or((Offer::Wait(Instant::MAX), 0));
        self.backlog -= dropped;
        (offer, node.parent)
    }

    /// Take the frame last offered, and charge it to every node above its queue. O(depth).
    #[inline]
    pub(crate) fn take(
        &mut self,
        head: &Head,
        pool: &mut FramePool,
        now: Instant,
    ) -> Option<QueuedFrame> {
        let node = &mut self.leaves[head.queue.leaf as usize];
        let (queued, dropped) = node.leaf.take(head, pool, now)?;
        self.backlog -= 1 + dropped;
        let mut emptied = node.leaf.is_empty();
        let mut parent = node.parent;
        while let Some(node) = self.inners.get_mut(parent.inner as usize) {
            node.offers[parent.position as usize] = None;
            node.inner
                .on_departure(parent.position, head.lengths, emptied, now);
            emptied = node.inner.is_empty();
            parent = node.parent;
        }
        self.offer = None;
        Some(queued)
    }

    /// Move the frames of queue `from` of `old`, which is being replaced, to the end of queue `to`:
    /// see [`Leaf::take_over`].
    pub(crate) fn take_over(
        &mut self,
        to: QueueId,
        old: &mut Self,
        from: QueueId,
        pool: &mut FramePool,
        rename: impl Fn(u32) -> u32,
        now: Instant,
    ) {
        let (Some(node), Some(old_node)) = (
            self.leaves.get_mut(to.leaf as usize),
            old.leaves.get_mut(from.leaf as usize),
        ) else {
            return;
        };
        let was_empty = node.leaf.is_empty();
        let old = (&mut old_node.leaf, from.slice);
        let moved = node.leaf.take_over(to.slice, old, pool, rename, now);
        let parent = node.parent;
        self.backlog += moved;
        if was_empty && moved > 0 {
            self.on_backlogged(parent);
        }
    }
}

impl QueueId {
    /// The only queue of a leaf.
    pub(crate) const fn of(leaf: u32) -> Self {
        Self { leaf, slice: None }
    }

    /// A slice of a guaranteed leaf.
    pub(crate) const fn of_slice(leaf: u32, slice: SliceId) -> Self {
        Self {
            leaf,
            slice: Some(slice),
        }
    }
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(NONE)
}
