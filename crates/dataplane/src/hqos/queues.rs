//! The queues of a subport.

use super::place::PIPE_QUEUES;
use crate::queue::NIL;
use std::ops::{Index, IndexMut};

/// Room for queues between two pipes. Without it, the queues of one number of all pipes would lie in an eighth of the sets of
/// the processor's caches.
const GAP: usize = 2;

/// A queue in order of arrival, and what was queued since the scheduler was made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Queue {
    pub(super) head: u32,
    pub(super) tail: u32,
    pub(super) packets: u32,
    pub(super) frames: u64,
    pub(super) bytes: u64,
}

/// Queues by their number in the subport.
#[derive(Debug)]
pub(super) struct Queues(Box<[Queue]>);

impl Queues {
    /// Empty queues of some pipes.
    pub(super) fn of_pipes(pipes: usize) -> Self {
        let empty = Queue {
            head: NIL,
            tail: NIL,
            packets: 0,
            frames: 0,
            bytes: 0,
        };
        Self(vec![empty; pipes * (PIPE_QUEUES as usize + GAP)].into())
    }

    /// All of them, and the gaps.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Queue> {
        self.0.iter_mut()
    }

    pub(super) fn state_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

#[inline]
const fn position(number: u32) -> usize {
    number as usize + (number / PIPE_QUEUES) as usize * GAP
}

impl Index<u32> for Queues {
    type Output = Queue;

    #[inline]
    fn index(&self, number: u32) -> &Queue {
        &self.0[position(number)]
    }
}

impl IndexMut<u32> for Queues {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut Queue {
        &mut self.0[position(number)]
    }
}
