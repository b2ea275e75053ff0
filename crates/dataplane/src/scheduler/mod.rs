//! Schedulers, composed into a tree: which queue sends next, and when.
//!
//! Frames wait in *leaves*; *inner nodes* choose between their children. Each node keeps what its
//! children last offered, until that expires or something below changes. To find the frame that
//! would leave, [`Tree::settle`] goes down to the children whose offers are needed and not known,
//! and up again with the answers: no node is asked for a frame twice, and none knows the tree.
//! [`Tree::dequeue`] then removes that frame and charges every node above it, which says what it offers
//! next if it can. So a shaper above any scheduler can compare the exact frame that would leave with its credit.
//!
//! Adding a discipline takes its own file and an arm of [`Inner`] or [`Leaf`].

mod choice;
pub mod deficit_round_robin;
mod inner;
mod leaf;
pub mod minimum_share;
mod moved;
mod offer;
mod place;
pub mod shaper;
pub mod strict_priority;

pub use inner::Inner;
pub use leaf::Leaf;
pub use offer::QueueId;
pub use place::NodeId;

use crate::frame::DropReason;
use crate::hqos::Hqos;
use crate::queue::{FifoQueue, FrameList, FramePool, QueuedFrame};
use choice::Offers;
use inner::Departed;
use leaf::{Enqueued, LeafNode};
use offer::Offer;
use place::{Child, NONE, Place};
use rand_core::Rng;
use slicewise_units::{FrameLengths, Instant};
use std::ops::ControlFlow;

#[derive(Debug)]
struct InnerNode {
    inner: Inner,
    children: Box<[Child]>,
    place: Place,
}

/// A tree of schedulers with queues at its leaves.
#[derive(Debug)]
pub struct Tree {
    leaves: Vec<LeafNode>,
    inners: Vec<InnerNode>,
    root: Child,
    /// A shaper is over everything.
    is_shaped: bool,
    /// Every inner node [exhausts](Inner::exhausts) its children, if only for a turn.
    exhausts: bool,
    backlog: u32,
}

impl Tree {
    /// A tree without nodes; add them children first, the root last.
    #[must_use]
    pub fn new() -> Self {
        Self {
            leaves: Vec::new(),
            inners: Vec::new(),
            root: Child::new(NodeId::Leaf(0)),
            is_shaped: false,
            exhausts: true,
            backlog: 0,
        }
    }

    /// Add a leaf; it is the root until the next node is added. Frames of a `priority` leaf do not wait
    /// for a shaper that priority may borrow from.
    pub fn add_leaf(&mut self, leaf: Leaf, priority: bool) -> u32 {
        let position = count(self.leaves.len());
        self.leaves.push(LeafNode::new(leaf, priority));
        self.root.node = NodeId::Leaf(position);
        self.is_shaped = false;
        position
    }

    /// Add a node over `children`, which become its own; it is the root until the next is added.
    pub fn add_inner(&mut self, inner: Inner, children: &[NodeId]) -> NodeId {
        self.is_shaped = matches!(inner, Inner::Shaper(_));
        let over_queues = children
            .iter()
            .all(|child| matches!(child, NodeId::Leaf(_)));
        self.exhausts &= inner.exhausts(over_queues);
        let parent = count(self.inners.len());
        for (position, &child) in (0..).zip(children) {
            let place = match child {
                NodeId::Leaf(leaf) => &mut self.leaves[leaf as usize].place,
                NodeId::Inner(inner) => &mut self.inners[inner as usize].place,
            };
            *place = Place { parent, position };
        }
        self.inners.push(InnerNode {
            inner,
            children: children.iter().copied().map(Child::new).collect(),
            place: Place::ROOT,
        });
        let root = NodeId::Inner(parent);
        self.root.node = root;
        root
    }

    /// The node over everything.
    pub(crate) fn root(&self) -> NodeId {
        self.root.node
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

    /// Give a slice of a guaranteed scheduler another weight.
    pub(crate) fn set_slice_weight(&mut self, queue: QueueId, weight: u32) {
        if let Some(Leaf::Guaranteed(scheduler)) = self.leaf_mut(queue.leaf) {
            scheduler.set_weight(queue.slice(), weight);
        }
    }

    /// A queue in order of arrival.
    pub(crate) fn fifo(&self, queue: QueueId) -> Option<&FifoQueue> {
        match &self.leaves.get(queue.leaf as usize)?.leaf {
            Leaf::Fifo(queue) => Some(queue),
            _ => None,
        }
    }

    pub(crate) fn hqos(&self, queue: QueueId) -> Option<&Hqos> {
        match &self.leaves.get(queue.leaf as usize)?.leaf {
            Leaf::Hqos(scheduler) => Some(scheduler),
            _ => None,
        }
    }

    pub(crate) fn fifo_mut(&mut self, queue: QueueId) -> Option<&mut FifoQueue> {
        match self.leaf_mut(queue.leaf)? {
            Leaf::Fifo(queue) => Some(queue),
            _ => None,
        }
    }

    /// Append frames that were held beside a queue until `now`. O(1), and O(depth) where the queue was empty or is one of
    /// several of a leaf.
    pub(crate) fn join(
        &mut self,
        queue: QueueId,
        held: FrameList,
        pool: &mut FramePool,
        now: Instant,
    ) {
        let Some(node) = self.leaves.get_mut(queue.leaf as usize) else {
            return;
        };
        let (place, frames, was_empty) = (node.place, held.packets(), node.leaf.is_empty());
        match &mut node.leaf {
            Leaf::Fifo(queue) => queue.join(pool, held),
            Leaf::Guaranteed(scheduler) => {
                scheduler.join(queue.slice(), held, pool, now);
                self.forget_offers(place);
            }
            Leaf::Flows(_) | Leaf::Hqos(_) => {
                debug_assert!(false, "nothing is held beside these");
                return;
            }
        }
        self.on_moved(place, frames, was_empty);
        self.settle_effects(queue.leaf);
    }

    /// A guaranteed scheduler may have dropped frames that waited while its slices were changed.
    pub(crate) fn settle_effects(&mut self, leaf: u32) {
        let Some(node) = self.leaves.get_mut(leaf as usize) else {
            return;
        };
        let Leaf::Guaranteed(scheduler) = &mut node.leaf else {
            return;
        };
        let dropped = scheduler.take_effects().dropped;
        self.backlog -= dropped;
        let (mut is_empty, mut place) = (dropped > 0 && scheduler.backlog() == 0, node.place);
        while is_empty && let Some(node) = self.inners.get_mut(place.parent as usize) {
            is_empty = node.inner.on_emptied(place.position);
            place = node.place;
        }
    }

    /// Checks that a queue takes frames of these lengths.
    ///
    /// # Errors
    /// [`DropReason::FrameTooLong`].
    pub(crate) fn check_length(
        &self,
        queue: QueueId,
        lengths: FrameLengths,
    ) -> Result<(), DropReason> {
        let node = self.leaves.get(queue.leaf as usize);
        match node.map(|node| &node.leaf) {
            Some(Leaf::Guaranteed(scheduler)) => scheduler.check_length(lengths),
            _ => Ok(()),
        }
    }

    /// Frames waiting in one queue.
    pub(crate) fn packets(&self, queue: QueueId) -> u32 {
        let node = self.leaves.get(queue.leaf as usize);
        node.map_or(0, |node| node.leaf.packets(queue.slice()))
    }

    /// Returns true if the only queue of a leaf keeps flows apart.
    pub(crate) fn keeps_flows_apart(&self, queue: QueueId) -> bool {
        let node = self.leaves.get(queue.leaf as usize);
        node.is_some_and(|node| matches!(node.leaf, Leaf::Flows(_)))
    }

    /// Put the frame that `queued` makes into a queue; returns whether another may now be the next to leave it.
    /// O(1), and O(depth) where the queue was empty.
    ///
    /// # Errors
    /// The reason to drop the frame.
    #[inline]
    pub(crate) fn try_enqueue(
        &mut self,
        queue: QueueId,
        queued: impl FnOnce() -> QueuedFrame,
        pool: &mut FramePool,
        random: &mut impl Rng,
    ) -> Result<bool, DropReason> {
        let node = &mut self.leaves[queue.leaf as usize];
        let backlog = &mut self.backlog;
        let enqueued = node
            .leaf
            .try_enqueue(queue.slice(), queued, pool, random, backlog)?;
        let place = node.place;
        match enqueued {
            Enqueued::Behind => return Ok(false),
            Enqueued::NewFront => self.forget_offers(place),
            Enqueued::First => {
                // The next frame of a queue in order of arrival may leave at any time.
                let offer = match node.leaf {
                    Leaf::Fifo(_) => Offer::ready(queue.leaf),
                    Leaf::Flows(_) | Leaf::Guaranteed(_) | Leaf::Hqos(_) => Offer::UNKNOWN,
                };
                self.on_backlogged(place, offer);
            }
        }
        Ok(true)
    }

    /// The node at `place` had no frames, or did not offer one of these; now it has some, and makes this offer.
    #[inline]
    fn on_backlogged(&mut self, mut place: Place, mut offer: Offer) {
        while let Some(node) = self.inners.get_mut(place.parent as usize) {
            node.children[place.position as usize].offer = offer;
            let was_empty = node.inner.on_backlogged(place.position);
            let offers_this = node.inner.offers_what(place.position);
            place = node.place;
            if !offers_this {
                if !was_empty {
                    return self.forget_offers(place);
                }
                offer = Offer::UNKNOWN;
            }
        }
        self.root.offer = offer;
    }

    /// The node at `place` would send another frame than it offered.
    #[inline]
    fn forget_offers(&mut self, mut place: Place) {
        while let Some(node) = self.inners.get_mut(place.parent as usize) {
            let offer = &mut node.children[place.position as usize].offer;
            if offer.until == Instant::ZERO {
                return;
            }
            *offer = Offer::UNKNOWN;
            place = node.place;
        }
        self.root.offer = Offer::UNKNOWN;
    }

    /// A leaf has changed, and may send another frame than it offered.
    pub(crate) fn forget_offer(&mut self, leaf: u32) {
        if let Some(node) = self.leaves.get(leaf as usize) {
            let place = node.place;
            self.forget_offers(place);
        }
    }

    /// Find what the whole tree offers at `now`. Frames that have waited too long in a queue with
    /// `CoDel` are dropped on the way. O(depth) where one frame has left or arrived since.
    #[inline]
    pub(crate) fn settle(&mut self, pool: &mut FramePool, now: Instant) {
        if self.backlog > 0 && self.root.offer.until <= now {
            self.settle_all(pool, now);
        }
    }

    /// The same where all has to be asked; often a shaper is over everything, and alone has to decide.
    #[inline(always)]
    fn settle_shaped(&mut self, pool: &mut FramePool, now: Instant) {
        if let NodeId::Inner(root) = self.root.node
            && let Some(InnerNode {
                inner: Inner::Shaper(shaper),
                children,
                ..
            }) = self.inners.get_mut(root as usize)
        {
            let step = shaper.select(Offers {
                children,
                leaves: &self.leaves,
                pool,
                now,
            });
            if let Ok(offer) = step.answered() {
                self.root.offer = offer;
                return;
            }
        }
        self.settle_all(pool, now);
    }

    /// Not inlined: often nothing has to be asked.
    #[inline(never)]
    fn settle_all(&mut self, pool: &mut FramePool, now: Instant) {
        self.settle_from(self.root.node, pool, now);
    }

    /// From this node down to those whose offers are needed and not known, and up again with the answers.
    #[inline]
    fn settle_from(&mut self, first: NodeId, pool: &mut FramePool, now: Instant) {
        let mut node = Some(first);
        while let Some(asked) = node {
            node = self.ask(asked, pool, now);
        }
    }

    /// Ask a node; returns the one to be asked next, unless it is the root that has answered.
    #[inline]
    fn ask(&mut self, node: NodeId, pool: &mut FramePool, now: Instant) -> Option<NodeId> {
        let (mut offer, place) = match node {
            NodeId::Leaf(leaf) => {
                let node = &mut self.leaves[leaf as usize];
                let offer = node.offer(leaf, pool, now, &mut self.backlog);
                (offer, node.place)
            }
            NodeId::Inner(inner) => {
                let node = &mut self.inners[inner as usize];
                let step = node.inner.select(|| Offers {
                    children: &node.children,
                    leaves: &self.leaves,
                    pool,
                    now,
                });
                match step.answered() {
                    Err(position) => return Some(node.children[position as usize].node),
                    Ok(offer) => (offer, node.place),
                }
            }
        };
        // An answer that has expired when it is given would be asked for without end.
        let next = Instant::from_nanos(now.nanos().saturating_add(1));
        offer.until = offer.until.max(next);
        if let Some(parent) = self.inners.get_mut(place.parent as usize) {
            parent.children[place.position as usize].offer = offer;
            Some(NodeId::Inner(place.parent))
        } else {
            self.root.offer = offer;
            None
        }
    }

    /// When to ask again, having [settled](Self::settle) at `now`; [`Instant::MAX`] where only a new
    /// frame could change the answer.
    #[inline]
    pub(crate) fn poll_at(&self, now: Instant) -> Instant {
        let offer = &self.root.offer;
        if self.backlog == 0 {
            Instant::MAX
        } else if offer.is_ready() {
            now
        } else {
            offer.until
        }
    }

    /// Take the frame that leaves at `now`, if one may, and charge it to every node above its queue. If the tree is
    /// [settled](Self::settle) before anything else happens to it (`settles`), nodes may decide already.
    #[inline(always)]
    pub(crate) fn dequeue(
        &mut self,
        pool: &mut FramePool,
        now: Instant,
        settles: bool,
    ) -> Option<QueuedFrame> {
        if let NodeId::Leaf(root) = self.root.node
            && let Leaf::Fifo(queue) = &mut self.leaves[root as usize].leaf
        {
            // Nothing to decide.
            let queued = queue.dequeue(pool, now)?;
            self.backlog -= 1;
            return Some(queued);
        }
        if self.backlog == 0 {
            return None;
        }
        let leaf = match self.root.offer.promised(now) {
            Some(leaf) => leaf,
            None => {
                if self.root.offer.until <= now {
                    self.settle_shaped(pool, now);
                }
                self.root.offer.ready_leaf()?
            }
        };
        self.take(leaf, pool, now, settles)
    }

    /// Take the frame that `leaf` offers, and charge it to every node above.
    #[inline(always)]
    fn take(
        &mut self,
        leaf: u32,
        pool: &mut FramePool,
        now: Instant,
        settles: bool,
    ) -> Option<QueuedFrame> {
        let node = &mut self.leaves[leaf as usize];
        // While the next frame of a queue is offered as this one was, no offer changes.
        let (queued, emptied, next) = if let Leaf::Fifo(queue) = &mut node.leaf {
            let queued = queue.dequeue(pool, now)?;
            self.backlog -= 1;
            let next = queue.front(pool);
            (queued, next.is_none(), next)
        } else {
            let queued = node.take(pool, now, &mut self.backlog)?;
            (queued, node.leaf.is_empty(), None)
        };
        let mut departed = Departed {
            lengths: queued.lengths(),
            emptied,
            next,
            offer: Offer::UNKNOWN,
            is_queue: true,
            now,
        };
        let mut place = node.place;
        while let Some(node) = self.inners.get_mut(place.parent as usize) {
            let position = place.position;
            if departed.next.is_none() {
                node.children[position as usize].offer = departed.offer;
            }
            let offers = || Offers {
                children: &node.children,
                leaves: &self.leaves,
                pool,
                now,
            };
            // The only child of the shaper over everything is asked whenever the tree is settled.
            let is_asked =
                || settles && self.is_shaped && NodeId::Inner(node.place.parent) == self.root.node;
            node.inner
                .on_departure(position, &mut departed, is_asked, offers);
            place = node.place;
        }
        if departed.next.is_none() {
            self.root.offer = departed.offer;
        }
        Some(queued)
    }

    /// [`dequeue`](Self::dequeue) again and again: hands every frame that leaves at `now` to `send`, until that breaks.
    /// Faster, because as long as a queue goes on nothing above it is asked.
    #[inline]
    pub(crate) fn dequeue_each(
        &mut self,
        pool: &mut FramePool,
        now: Instant,
        mut send: impl FnMut(QueuedFrame) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        loop {
            if self.exhausts {
                self.exhaust(pool, now, &mut send)?;
            }
            let Some(queued) = self.dequeue(pool, now, true) else {
                return ControlFlow::Continue(());
            };
            send(queued)?;
        }
    }

    /// Hand frames of the queue whose turn it is to `send`, all but the last, and go on with the next queue when the
    /// turn is over: what is above them has nothing to count but the turn, and nothing to decide before its end.
    #[inline]
    fn exhaust(
        &mut self,
        pool: &mut FramePool,
        now: Instant,
        send: &mut impl FnMut(QueuedFrame) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.settle(pool, now);
        while let Some(node) = self.leaves.get_mut(self.root.offer.leaf as usize)
            && let Leaf::Fifo(queue) = &mut node.leaf
        {
            let place = node.place;
            let parent = self.inners.get_mut(place.parent as usize);
            let turns = parent.and_then(|parent| Some((parent.inner.turns()?, parent.place)));
            let mut turn = None;
            if let Some((turns, above)) = turns {
                let Some(current) = turns.current(place.position) else {
                    break;
                };
                turn = Some((current, above));
            }
            loop {
                if queue.packets() < 2 {
                    return ControlFlow::Continue(());
                }
                let Some(queued) = queue.dequeue(pool, now) else {
                    return ControlFlow::Continue(());
                };
                self.backlog -= 1;
                if let (Some((turn, above)), Some(next)) = (&mut turn, queue.front(pool))
                    && !turn.goes_on(queued.lengths(), next)
                {
                    let above = *above;
                    if let ControlFlow::Break(()) = send(queued) {
                        self.forget_offers(above);
                        return ControlFlow::Break(());
                    }
                    self.settle_from(NodeId::Inner(place.parent), pool, now);
                    break;
                }
                send(queued)?;
            }
        }
        ControlFlow::Continue(())
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(NONE)
}
