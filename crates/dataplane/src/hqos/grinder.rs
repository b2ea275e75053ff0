//! Grinders: each works on a pipe.

use super::place::{FIRST_BEST_EFFORT, PIPE_QUEUES};
use super::round_robin::RoundRobin;
use slicewise_model::hqos::BEST_EFFORT;

/// Works on one pipe after another: on its classes in the order of priority, and on each until it has no frames or no
/// credits. Each step is one of the library's, so that grinders take turns as there.
#[derive(Debug, Default)]
pub(super) struct Grinder {
    pub(super) step: Step,
    /// Its pipe.
    pub(super) pipe: u32,
    /// A frame of it has left.
    pub(super) is_productive: bool,
    /// The traffic class.
    pub(super) class: usize,
    /// The first queue of the class in the pipe, and which queues from there have frames.
    pub(super) first: u32,
    pub(super) queues: u8,
    /// The queue that is next, from `first`.
    pub(super) chosen: u8,
    pub(super) round_robin: RoundRobin,
    /// Queues of the pipe whose turn will come.
    pub(super) pending: u16,
    /// The queues of further pipes of the group, and the pipe that the lowest bits are of.
    pub(super) further: u64,
    pub(super) next_pipe: u32,
}

/// Next step of a grinder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Step {
    /// Look for a pipe with frames.
    #[default]
    Pipe,
    /// Renew the credits of its pipe.
    Credits,
    /// Wait for the frame to be fetched.
    Fetch,
    /// Send the frame, if credits suffice.
    Send,
}

impl Grinder {
    /// The queue that is next.
    #[inline]
    pub(super) fn queue(&self) -> u32 {
        self.first + u32::from(self.chosen)
    }

    /// The next pipe of its group.
    #[inline]
    pub(super) fn take_pipe(&mut self) {
        let skipped = self.further.trailing_zeros() / PIPE_QUEUES;
        self.further >>= skipped * PIPE_QUEUES;
        self.pipe = self.next_pipe + skipped;
        let [low, high, ..] = self.further.to_le_bytes();
        self.pending = u16::from_le_bytes([low, high]);
        self.further >>= PIPE_QUEUES;
        self.next_pipe = self.pipe + 1;
        self.is_productive = false;
        self.next_class();
    }

    /// The next class of its pipe with frames.
    #[inline]
    pub(super) fn next_class(&mut self) -> bool {
        if self.pending == 0 {
            return false;
        }
        let queue = self.pending.trailing_zeros().min(FIRST_BEST_EFFORT);
        self.class = queue as usize;
        self.first = self.pipe * PIPE_QUEUES + queue;
        if self.class < BEST_EFFORT {
            self.queues = 1;
            self.pending &= self.pending - 1;
        } else {
            self.queues = (self.pending >> BEST_EFFORT).to_le_bytes()[0];
            self.pending = 0;
        }
        true
    }
}
