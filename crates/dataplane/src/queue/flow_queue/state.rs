//! One flow's queue, and lists of them.

use crate::queue::pool::{FramePool, NIL};

/// State of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Empty and inactive.
    None,
    /// It takes its first turn.
    New,
    /// It takes turns.
    Old,
}

/// Position of a flow among those of its size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) next: u32,
    pub(super) previous: u32,
    /// [`Size::ABSENT`] where it is in no list.
    pub(super) list: u8,
}

impl Size {
    pub(super) const ABSENT: u8 = u8::MAX;
    pub(super) const NONE: Self = Self {
        next: NIL,
        previous: NIL,
        list: Self::ABSENT,
    };
}

/// One flow, or all with the same hash.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlowState {
    head: u32,
    tail: u32,
    pub(super) packets: u32,
    pub(super) bytes: u32,
    /// Bytes it may still send in its turn.
    pub(super) deficit: i32,
    /// Behind it in its list.
    next: u32,
    /// Among flows with as many bytes.
    pub(super) size: Size,
    pub(super) turn: Turn,
}

impl FlowState {
    pub(super) const EMPTY: Self = Self {
        head: NIL,
        tail: NIL,
        packets: 0,
        bytes: 0,
        deficit: 0,
        next: NIL,
        size: Size::NONE,
        turn: Turn::None,
    };

    pub(super) fn push(&mut self, pool: &mut FramePool, slot: u32, bytes: u32) {
        if self.head == NIL {
            self.head = slot;
        } else {
            pool.link(self.tail, slot);
        }
        self.tail = slot;
        self.packets += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    pub(super) fn push_front(&mut self, pool: &mut FramePool, slot: u32, bytes: u32) {
        pool.link(slot, self.head);
        if self.head == NIL {
            self.tail = slot;
        }
        self.head = slot;
        self.packets += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Slot and bytes of the oldest frame, which leaves the list and not the pool.
    pub(super) fn pop(&mut self, pool: &FramePool) -> Option<(u32, u32)> {
        if self.head == NIL {
            return None;
        }
        let slot = self.head;
        let (lengths, _) = pool.head(slot);
        self.head = pool.next(slot);
        if self.head == NIL {
            self.tail = NIL;
        }
        self.packets -= 1;
        self.bytes = self.bytes.saturating_sub(lengths.l2_bytes);
        Some((slot, lengths.l2_bytes))
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.head == NIL
    }
}

/// Flows in the order of their turns.
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    head: u32,
    tail: u32,
}

impl List {
    pub(super) const EMPTY: Self = Self {
        head: NIL,
        tail: NIL,
    };

    pub(super) fn front(&self) -> Option<u32> {
        (self.head != NIL).then_some(self.head)
    }

    pub(super) fn push(&mut self, flows: &mut [FlowState], id: u32) {
        flows[id as usize].next = NIL;
        if self.head == NIL {
            self.head = id;
        } else {
            flows[self.tail as usize].next = id;
        }
        self.tail = id;
    }

    pub(super) fn pop(&mut self, flows: &[FlowState]) -> Option<u32> {
        let id = self.front()?;
        self.head = flows[id as usize].next;
        if self.head == NIL {
            self.tail = NIL;
        }
        Some(id)
    }
}
