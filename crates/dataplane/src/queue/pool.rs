//! The frame memory shared by all queues: a slab of linked slots, reserved once.

use crate::frame::Frame;
use slicewise_model::Colour;
use slicewise_units::{FrameLengths, Instant};

/// A frame in a queue, with the class it was counted under.
#[derive(Debug, Clone, Copy)]
pub struct QueuedFrame {
    /// The frame.
    pub frame: Frame,
    /// Index of its class.
    pub class: u32,
    /// When it joined the queue.
    pub arrival: Instant,
}

/// A queued frame in 32 bytes, so that two share a cache line.
#[derive(Debug, Clone, Copy)]
struct Slot {
    handle: u64,
    arrival: Instant,
    l2_bytes: u32,
    class: u32,
    next: u32,
    l3_offset: u8,
    dscp: u8,
    colour: Colour,
}

impl Slot {
    const fn new(queued: QueuedFrame, next: u32) -> Self {
        let frame = queued.frame;
        Self {
            handle: frame.handle,
            arrival: queued.arrival,
            l2_bytes: frame.lengths.l2_bytes,
            class: queued.class,
            next,
            l3_offset: frame.lengths.l3_offset,
            dscp: frame.dscp,
            colour: frame.colour,
        }
    }

    const fn queued(&self) -> QueuedFrame {
        QueuedFrame {
            frame: Frame {
                handle: self.handle,
                lengths: FrameLengths {
                    l2_bytes: self.l2_bytes,
                    l3_offset: self.l3_offset,
                },
                dscp: self.dscp,
                colour: self.colour,
            },
            class: self.class,
            arrival: self.arrival,
        }
    }
}

/// Marks the end of a list.
pub(crate) const NIL: u32 = u32::MAX;

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
    pub(crate) fn try_take(&mut self, queued: QueuedFrame) -> Option<u32> {
        let slot = Slot::new(queued, NIL);
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
    pub(crate) fn release(&mut self, index: u32) -> (QueuedFrame, u32) {
        let free = self.free;
        let slot = &mut self.slots[index as usize];
        let (queued, next) = (slot.queued(), slot.next);
        slot.next = free;
        self.free = index;
        (queued, next)
    }

    /// The lengths of a queued frame, and when it arrived.
    #[inline]
    pub(crate) fn head(&self, index: u32) -> (FrameLengths, Instant) {
        let slot = &self.slots[index as usize];
        let lengths = FrameLengths {
            l2_bytes: slot.l2_bytes,
            l3_offset: slot.l3_offset,
        };
        (lengths, slot.arrival)
    }

    /// Any part of a slot, to have it read, and the slot behind it. Zero and [`NIL`] where there
    /// is none.
    #[inline]
    pub(crate) fn fetch(&self, index: u32) -> (u64, u32) {
        let slot = self.slots.get(index as usize);
        slot.map_or((0, NIL), |slot| (slot.handle, slot.next))
    }

    #[inline]
    pub(crate) fn link(&mut self, index: u32, next: u32) {
        self.slots[index as usize].next = next;
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> QueuedFrame {
        self.slots[index as usize].queued()
    }
}
