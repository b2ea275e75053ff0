//! Strict priority: always the first child, in order, that may send.
//!
//! A child that must wait for its shaper does not delay those after it.

use super::{Discipline, NodeId, Peek, Tree};
use crate::queue::FramePool;
use slicewise_units::Instant;

/// Most children of one node: levels are found by their bit in a word.
pub const MAX_LEVELS: usize = 64;

/// Which children have frames; bit 0 is served first.
#[derive(Debug, Clone, Default)]
pub struct StrictPriority {
    backlogged: u64,
}

impl StrictPriority {
    /// No child has frames.
    #[must_use]
    pub const fn new() -> Self {
        Self { backlogged: 0 }
    }

    pub(super) fn on_backlogged(&mut self, position: u32) {
        self.backlogged |= 1 << position;
    }

    pub(super) fn on_departure(&mut self, position: u32, emptied: bool) {
        if emptied {
            self.backlogged &= !(1 << position);
        }
    }
}

pub(super) fn peek(tree: &mut Tree, id: NodeId, pool: &mut FramePool, now: Instant) -> Peek {
    let Discipline::StrictPriority(strict) = tree.discipline_mut(id) else {
        return Peek::Empty;
    };
    let mut remaining = strict.backlogged;
    let mut earliest: Option<Instant> = None;
    while remaining != 0 {
        let position = remaining.trailing_zeros();
        remaining &= remaining - 1;
        match tree.peek_child(id, position, pool, now) {
            Peek::Ready(head) => {
                return Peek::Ready(head.until(earliest.unwrap_or(Instant::MAX)));
            }
            Peek::Wait(until) => earliest = Some(earliest.map_or(until, |e| e.min(until))),
            Peek::Empty => {}
        }
    }
    earliest.map_or(Peek::Empty, Peek::Wait)
}
