//! The frame memory shared by all queues: a slab of linked slots, reserved once.

use crate::frame::Frame;

/// A frame in a queue, with the class it was counted under.
#[derive(Debug, Clone, Copy)]
pub struct QueuedFrame {
    /// The frame.
    pub frame: Frame,
    /// Index of its class.
    pub class: u32,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    queued: QueuedFrame,
    next: u32,
}

/// Marks the end of a list.
pub(super) const NIL: u32 = u32::MAX;

/// Slots for frames. Memory is reserved at construction but touched only as it is first used.
#[derive(Debug)]
pub struct FramePool {
    slots: Vec<Slot>,
    free: u32,
    capacity: u32,
}

impl FramePool {
    /// Room for `capacity` frames.
    #[must_use]
    pub fn with_capacity(capacity: u32) -> Self {
        Self {
            slots: Vec::with_capacity(capacity as usize),
            free: NIL,
            capacity,
        }
    }

    /// Frames it can hold.
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Make room for at least `capacity` frames in all. Not for the packet path: it may allocate.
    pub fn grow_to(&mut self, capacity: u32) {
        if capacity > self.capacity {
            self.slots
                .reserve_exact(capacity as usize - self.slots.len());
            self.capacity = capacity;
        }
    }

    /// A slot holding `queued` with nothing behind it; `None` when all are taken.
    #[inline]
    pub(super) fn try_take(&mut self, queued: QueuedFrame) -> Option<u32> {
        let slot = Slot { queued, next: NIL };
        if self.free != NIL {
            let index = self.free;
            let entry = &mut self.slots[index as usize];
            self.free = entry.next;
            *entry = slot;
            return Some(index);
        }
        let index = u32::try_from(self.slots.len())
            .ok()
            .filter(|&len| len < self.capacity)?;
        self.slots.push(slot);
        Some(index)
    }

    /// Give a slot back; returns what it held and what was behind it.
    #[inline]
    pub(super) fn release(&mut self, index: u32) -> (QueuedFrame, u32) {
        let free = self.free;
        let slot = &mut self.slots[index as usize];
        let (queued, next) = (slot.queued, slot.next);
        slot.next = free;
        self.free = index;
        (queued, next)
    }

    #[inline]
    pub(super) fn link(&mut self, index: u32, next: u32) {
        self.slots[index as usize].next = next;
    }

    #[inline]
    pub(super) fn get(&self, index: u32) -> &QueuedFrame {
        &self.slots[index as usize].queued
    }
}
