//! Frames that a change moves from queue to queue.

use super::offer::{Offer, QueueId};
use super::place::Place;
use super::{Tree, count};
use crate::queue::{FramePool, QueuedFrame};
use slicewise_units::Instant;

impl Tree {
    /// Move the frames of queue `from` of `old`, which is being replaced, to the end of queue `to`:
    /// see [`Leaf::take_over`](super::Leaf::take_over).
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
        self.settle_effects(to.leaf);
    }

    /// The leaf at `place`, which may have been empty, was given frames.
    pub(super) fn on_moved(&mut self, place: Place, frames: u32, was_empty: bool) {
        self.backlog += frames;
        if was_empty && frames > 0 {
            self.on_backlogged(place, Offer::UNKNOWN);
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
