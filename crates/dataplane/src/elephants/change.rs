//! Elephants of a class when the configuration changes.

use super::Elephants;
use crate::queue::{FifoQueue, FramePool, QueuedFrame};
use crate::scheduler::Tree;
use std::collections::VecDeque;

impl Elephants {
    /// Returns true if frames of its flows may wait elsewhere than in the queue of the class.
    pub(crate) fn has_moved(&self) -> bool {
        let mut flows = self.flows.values();
        flows.any(|flow| flow.queue != 0 || flow.aside.packets() > 0)
    }

    /// The frames aside, which are to be drained.
    pub(crate) fn take_aside(&mut self, pool: &mut FramePool) -> Vec<QueuedFrame> {
        let mut frames = Vec::new();
        for flow in self.flows.values_mut() {
            frames.extend(std::iter::from_fn(|| flow.aside.pop(pool)));
        }
        self.leaving.iter_mut().for_each(VecDeque::clear);
        frames
    }

    /// Go on with the flows of `old` where the configuration is the same, once its queues have been taken over or drained.
    /// Returns how many frames are aside.
    pub(crate) fn resume_from(&mut self, old: &mut Self, is_kept: bool, tree: &mut Tree) -> u32 {
        self.counters.absorb(old.counters);
        if self.params != old.params {
            return 0;
        }
        std::mem::swap(&mut self.flows, &mut old.flows);
        std::mem::swap(&mut self.sketch, &mut old.sketch);
        std::mem::swap(&mut self.leaving, &mut old.leaving);
        (self.interval, self.ends, self.next) = (old.interval, old.ends, old.next);
        let mut aside = 0;
        for flow in self.flows.values_mut() {
            if !is_kept {
                // Its frames have been drained.
                let wanted = usize::from(flow.is_tagged);
                if flow.queue != wanted {
                    self.counters.count_move(wanted);
                }
                flow.queue = wanted;
                let queue = tree.fifo(self.queues[wanted]);
                flow.last = queue.map_or(flow.last, FifoQueue::end);
            } else if flow.aside.packets() > 0 {
                aside += flow.aside.packets();
                if let Some(queue) = tree.fifo_mut(self.queues[1 - flow.queue]) {
                    queue.hold_again(&flow.aside);
                }
            }
        }
        aside
    }
}
