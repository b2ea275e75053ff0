//! Schedulers, composed into a tree: which queue sends next, and when.
//!
//! Frames wait in *leaves*; *inner nodes* choose between their children. Each node keeps what its
//! children last offered, until that expires or something below changes. To find the frame that
//! would leave, [`Tree::settle`] goes down to the children whose offers are needed and not known,
//! and up again with the answers: no node is asked for a frame twice, and none knows the tree.
//! [`Tree::dequeue`] then removes that frame and charges every node above it. So a shaper above any
//! scheduler can compare the exact frame that would leave with its credit.
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
pub use offer::QueueId;

use crate::frame::DropReason;
use crate::guaranteed::SliceId;
use crate::queue::{FramePool, QueuedFrame};
use leaf::Enqueued;
use offer::{Head, Offer, Offers, Step};
use rand_core::Rng;
use slicewise_units::{FrameLengths, Instant};

/// A node of a tree: its position among the leaves or among the inner nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeId {
    /// A leaf.
    Leaf(u32),
    /// An inner node.
    Inner(u32),
}

/// No inner node.
const NONE: u32 = u32::MAX;

/// Where a node hangs.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Position of the parent among the inner nodes; [`NONE`] for the root.
    parent: u32,
    /// Where the node's last offer is kept.
    slot: u32,
}

impl Place {
    const ROOT: Self = Self {
        parent: NONE,
        slot: 0,
    };
}

#[derive(Debug)]
struct LeafNode {
    leaf: Leaf,
    place: Place,
}

#[derive(Debug)]
struct InnerNode {
    inner: Inner,
    /// Slot of the first child; the others follow.
    first: u32,
    place: Place,
}

/// A tree of schedulers with queues at its leaves.
#[derive(Debug)]
pub struct Tree {
    leaves: Vec<LeafNode>,
    /// The frame that each leaf last offered.
    heads: Vec<Head>,
    inners: Vec<InnerNode>,
    /// What each node last offered, the root first and siblings together. While it is unknown, no
    /// offer further up depends on that node.
    offers: Vec<Offer>,
    /// The node of each slot.
    nodes: Vec<NodeId>,
    /// A shaper is over everything.
    is_shaped: bool,
    backlog: u32,
}

impl Tree {
    /// A tree without nodes; add them children first, the root last.
    #[must_use]
    pub fn new() -> Self {
        Self {
            leaves: Vec::new(),
            heads: Vec::new(),
            inners: Vec::new(),
            offers: vec![Offer::UNKNOWN],
            nodes: vec![NodeId::Leaf(0)],
            is_shaped: false,
            backlog: 0,
        }
    }

    /// Add a leaf; it is the root until the next node is added. Frames of a `priority` leaf do not wait
    /// for a shaper that priority may borrow from.
    pub fn add_leaf(&mut self, leaf: Leaf, priority: bool) -> u32 {
        let position = count(self.leaves.len());
        self.leaves.push(LeafNode {
            leaf,
            place: Place::ROOT,
        });
        self.heads.push(Head {
            slice: SliceId::new(NONE),
            lengths: FrameLengths {
                l2_bytes: 0,
                l3_offset: 0,
            },
            priority,
        });
        self.nodes[0] = NodeId::Leaf(position);
        self.is_shaped = false;
        position
    }

    /// Add a node over `children`, which become its own; it is the root until the next is added.
    pub fn add_inner(&mut self, inner: Inner, children: &[NodeId]) -> NodeId {
        self.is_shaped = matches!(inner, Inner::Shaper(_));
        let parent = count(self.inners.len());
        let first = count(self.offers.len());
        for (slot, &child) in (first..).zip(children) {
            let place = match child {
                NodeId::Leaf(leaf) => &mut self.leaves[leaf as usize].place,
                NodeId::Inner(inner) => &mut self.inners[inner as usize].place,
            };
            *place = Place { parent, slot };
            self.offers.push(Offer::UNKNOWN);
            self.nodes.push(child);
        }
        self.inners.push(InnerNode {
            inner,
            first,
            place: Place::ROOT,
        });
        let root = NodeId::Inner(parent);
        self.nodes[0] = root;
        root
    }

    /// The node over everything.
    pub(crate) fn root(&self) -> NodeId {
        self.nodes[0]
    }

    /// Frames waiting in all queues.
    #[inline]
    #[must_use]
    pub const fn backlog(&self) -> u32 {
        self.backlog
    }

    /// True where a shaper is over everything.
    #[inline]
    pub(crate) const fn is_shaped(&self) -> bool {
        self.is_shaped
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
        node.map_or(0, |node| node.leaf.packets(queue.slice()))
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
        let backlog = &mut self.backlog;
        let enqueued = node
            .leaf
            .try_enqueue(queue.slice(), queued, pool, random, backlog)?;
        match enqueued {
            Enqueued::Behind => {}
            Enqueued::NewFront => {
                let place = node.place;
                self.forget_offers(place);
            }
            Enqueued::First => {
                let place = node.place;
                if let Some(lengths) = node.leaf.front(pool) {
                    self.heads[queue.leaf as usize].lengths = lengths;
                    self.offers[place.slot as usize] = Offer::ready(queue.leaf);
                }
                self.on_backlogged(place);
            }
        }
        Ok(enqueued != Enqueued::Behind)
    }

    /// The node at `place` had no frames, and has some now.
    #[inline]
    fn on_backlogged(&mut self, mut place: Place) {
        while let Some(node) = self.inners.get_mut(place.parent as usize) {
            let was_empty = node.inner.on_backlogged(place.slot - node.first);
            place = node.place;
            if !was_empty {
                return self.forget_offers(place);
            }
        }
    }

    /// The node at `place` would send another frame than it offered.
    #[inline]
    fn forget_offers(&mut self, mut place: Place) {
        loop {
            let offer = &mut self.offers[place.slot as usize];
            if offer.until == Instant::ZERO {
                return;
            }
            *offer = Offer::UNKNOWN;
            let Some(node) = self.inners.get(place.parent as usize) else {
                return;
            };
            place = node.place;
        }
    }

    /// Find what the whole tree offers at `now`. Frames that have waited too long in a queue with
    /// `CoDel` are dropped on the way. O(depth) where one frame has left or arrived since.
    #[inline]
    pub(crate) fn settle(&mut self, pool: &mut FramePool, now: Instant) {
        if self.backlog > 0 && self.offers[0].until <= now {
            self.ask(pool, now);
        }
    }

    /// Down to the nodes whose offers are needed and not known, and up again with the answers.
    fn ask(&mut self, pool: &mut FramePool, now: Instant) {
        let mut slot = 0;
        loop {
            let (offer, place) = match self.nodes[slot as usize] {
                NodeId::Leaf(leaf) => {
                    let node = &mut self.leaves[leaf as usize];
                    let (head, backlog) = (&mut self.heads[leaf as usize], &mut self.backlog);
                    (node.leaf.offer(leaf, head, pool, now, backlog), node.place)
                }
                NodeId::Inner(inner) => {
                    let node = &mut self.inners[inner as usize];
                    let offers = Offers {
                        all: &self.offers,
                        first: node.first,
                        heads: &self.heads,
                        now,
                    };
                    let offer = match node.inner.select(offers) {
                        Step::Ask(position) => {
                            slot = node.first + position;
                            continue;
                        }
                        Step::Choose(position, until) => {
                            self.offers[(node.first + position) as usize].until(until)
                        }
                        Step::Wait(until) => Offer::wait(until),
                    };
                    (offer, node.place)
                }
            };
            let kept = &mut self.offers[place.slot as usize];
            *kept = offer;
            // An answer that has expired when it is given would be asked for without end.
            kept.until = kept
                .until
                .max(Instant::from_nanos(now.nanos().saturating_add(1)));
            match self.inners.get(place.parent as usize) {
                Some(parent) => slot = parent.place.slot,
                None => return,
            }
        }
    }

    /// When to ask again, having [settled](Self::settle) at `now`; [`Instant::MAX`] where only a new
    /// frame could change the answer.
    #[inline]
    pub(crate) fn poll_at(&self, now: Instant) -> Instant {
        let offer = &self.offers[0];
        if self.backlog == 0 {
            Instant::MAX
        } else if offer.is_ready() {
            now
        } else {
            offer.until
        }
    }

    /// Take the frame that leaves at `now`, if one may, and charge it to every node above its queue.
    #[inline]
    pub(crate) fn dequeue(&mut self, pool: &mut FramePool, now: Instant) -> Option<QueuedFrame> {
        if self.backlog == 0 {
            return None;
        }
        if let NodeId::Leaf(root) = self.nodes[0]
            && let Leaf::Fifo(queue) = &mut self.leaves[root as usize].leaf
        {
            // Nothing to decide.
            self.backlog -= 1;
            return queue.dequeue(pool, now);
        }
        self.settle(pool, now);
        let offer = self.offers[0];
        if !offer.is_ready() {
            return None;
        }
        let node = &mut self.leaves[offer.leaf as usize];
        let head = &mut self.heads[offer.leaf as usize];
        let lengths = head.lengths;
        let queued = node.leaf.take(head, pool, now, &mut self.backlog)?;
        let mut emptied = node.leaf.is_empty();
        let mut place = node.place;
        self.offers[place.slot as usize] = match node.leaf.front(pool) {
            Some(next) => {
                head.lengths = next;
                Offer::ready(offer.leaf)
            }
            None => Offer::UNKNOWN,
        };
        while let Some(node) = self.inners.get_mut(place.parent as usize) {
            let position = place.slot - node.first;
            emptied = node.inner.on_departure(position, lengths, emptied, now);
            place = node.place;
            self.offers[place.slot as usize] = Offer::UNKNOWN;
        }
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
        let old = (&mut old_node.leaf, from.slice());
        let moved = node.leaf.take_over(to.slice(), old, pool, rename, now);
        let place = node.place;
        self.on_moved(place, moved, was_empty);
    }

    /// The leaf at `place`, which may have been empty, was given frames.
    fn on_moved(&mut self, place: Place, frames: u32, was_empty: bool) {
        self.backlog += frames;
        if was_empty && frames > 0 {
            self.on_backlogged(place);
        }
    }

    /// Remove all frames of queues that are being replaced, in order of arrival.
    pub(crate) fn pop_by_arrival(
        &mut self,
        queues: &[QueueId],
        pool: &mut FramePool,
    ) -> Vec<QueuedFrame> {
        let mut frames = Vec::new();
        for queue in queues {
            if let Some(node) = self.leaves.get_mut(queue.leaf as usize) {
                let slice = queue.slice();
                frames.extend(std::iter::from_fn(|| node.leaf.pop_unserved(slice, pool)));
            }
        }
        // Frames of one flow keep their order: that of arrival.
        frames.sort_by_key(QueuedFrame::arrival);
        frames
    }

    /// Put frames at the end of a queue whatever its limits, renaming their classes.
    pub(crate) fn append(
        &mut self,
        queue: QueueId,
        frames: &[QueuedFrame],
        pool: &mut FramePool,
        rename: impl Fn(u32) -> u32,
    ) {
        let Some(node) = self.leaves.get_mut(queue.leaf as usize) else {
            return;
        };
        let was_empty = node.leaf.is_empty();
        for &(mut queued) in frames {
            queued.set_class(rename(queued.class()));
            node.leaf.append(queue.slice(), queued, pool);
        }
        let place = node.place;
        self.on_moved(place, count(frames.len()), was_empty);
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(NONE)
}
