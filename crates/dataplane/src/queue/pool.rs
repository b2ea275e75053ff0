//! The frame memory shared by all queues: a slab of linked slots, reserved once.

use crate::frame::{DropReason, Dropped, Frame};
use prefetch_index::prefetch_index;
use slicewise_model::Colour;
use slicewise_units::{FrameLengths, Instant};
use slicewise_wire::{Ecn, TrafficClass};

/// A frame in a queue, with the class it was counted under. 32 bytes, so that two share a cache line.
#[derive(Debug, Clone, Copy)]
pub struct QueuedFrame {
    handle: u64,
    arrival: Instant,
    l2_bytes: u32,
    class: u32,
    /// The slot behind this one in its list.
    next: u32,
    tags: Tags,
}

const _: () = assert!(size_of::<QueuedFrame>() == 32, "two slots to a cache line");

/// Frames of a queue from which on those at its front may not be in the processor's caches any more.
const DEEP: u32 = 256;

/// Bits of a flow's hash that are kept.
pub const FLOW_BITS: u32 = 13;

/// In one word, which is read and written at once: from the low bits, bytes before the IP header (8); congestion
/// notification (2) and DSCP (6), as in the IP header; colour (2); whether it was marked (1); flow (13), and of a
/// dropped frame the reason instead.
#[derive(Debug, Clone, Copy)]
struct Tags(u32);

impl Tags {
    const TRAFFIC_CLASS_SHIFT: u32 = 8;
    const COLOUR_SHIFT: u32 = 16;
    const MARKED: u32 = 1 << 18;
    const FLOW_SHIFT: u32 = u32::BITS - FLOW_BITS;

    const fn new(frame: &Frame, flow: u16) -> Self {
        Self(
            (flow as u32) << Self::FLOW_SHIFT
                | (frame.colour as u32) << Self::COLOUR_SHIFT
                | (frame.traffic_class.octet() as u32) << Self::TRAFFIC_CLASS_SHIFT
                | frame.lengths.l3_offset as u32,
        )
    }

    const fn colour(self) -> Colour {
        const COLOURS: [Colour; 4] = [Colour::Green, Colour::Yellow, Colour::Red, Colour::Red];
        COLOURS[(self.0 >> Self::COLOUR_SHIFT & 3) as usize]
    }

    #[expect(clippy::cast_possible_truncation, reason = "one octet")]
    const fn l3_offset(self) -> u8 {
        self.0 as u8
    }

    #[expect(clippy::cast_possible_truncation, reason = "one octet")]
    const fn traffic_class(self) -> TrafficClass {
        TrafficClass::from_octet((self.0 >> Self::TRAFFIC_CLASS_SHIFT) as u8)
    }

    const fn is_marked(self) -> bool {
        self.0 & Self::MARKED != 0
    }

    const fn mark(&mut self) {
        self.0 |= Self::MARKED | (Ecn::Ce.bits() as u32) << Self::TRAFFIC_CLASS_SHIFT;
    }

    const fn flow(self) -> u16 {
        (self.0 >> Self::FLOW_SHIFT) as u16
    }

    const fn with_flow(self, flow: u16) -> Self {
        let others = (1 << Self::FLOW_SHIFT) - 1;
        Self((flow as u32) << Self::FLOW_SHIFT | self.0 & others)
    }
}

impl QueuedFrame {
    const EMPTY: Self = Self {
        handle: 0,
        arrival: Instant::ZERO,
        l2_bytes: 0,
        class: 0,
        next: NIL,
        tags: Tags(0),
    };

    /// A frame of a class that joins its queue at `arrival`. Of the hash of its flow,
    /// [`FLOW_BITS`] are kept.
    #[inline]
    #[must_use]
    pub const fn new(frame: &Frame, class: u32, arrival: Instant, flow: u16) -> Self {
        Self {
            handle: frame.handle,
            arrival,
            l2_bytes: frame.lengths.l2_bytes,
            class,
            next: NIL,
            tags: Tags::new(frame, flow),
        }
    }

    /// The frame.
    #[inline]
    #[must_use]
    pub const fn frame(&self) -> Frame {
        Frame {
            handle: self.handle,
            lengths: self.lengths(),
            traffic_class: self.tags.traffic_class(),
            colour: self.tags.colour(),
        }
    }

    /// The slot behind it when it left its list.
    #[inline]
    pub(crate) const fn behind(&self) -> u32 {
        self.next
    }

    /// The caller's handle of the frame.
    #[must_use]
    pub const fn handle(&self) -> u64 {
        self.handle
    }

    /// Its lengths.
    #[inline]
    #[must_use]
    pub const fn lengths(&self) -> FrameLengths {
        FrameLengths {
            l2_bytes: self.l2_bytes,
            l3_offset: self.tags.l3_offset(),
        }
    }

    /// Index of its class.
    #[inline]
    #[must_use]
    pub const fn class(&self) -> u32 {
        self.class
    }

    pub(crate) const fn set_class(&mut self, class: u32) {
        self.class = class;
    }

    /// When it joined the queue.
    #[inline]
    #[must_use]
    pub const fn arrival(&self) -> Instant {
        self.arrival
    }

    /// Its code point.
    #[inline]
    #[must_use]
    pub const fn dscp(&self) -> u8 {
        self.tags.traffic_class().dscp()
    }

    /// Its congestion notification.
    #[must_use]
    pub const fn ecn(&self) -> Ecn {
        self.tags.traffic_class().ecn()
    }

    /// Give it a congestion mark.
    pub(crate) const fn mark(&mut self) {
        self.tags.mark();
    }

    /// Hash of its flow.
    #[must_use]
    pub const fn flow(&self) -> u16 {
        self.tags.flow()
    }

    /// A queue marked it instead of dropping it.
    #[inline]
    #[must_use]
    pub const fn is_marked(&self) -> bool {
        self.tags.is_marked()
    }

    fn reason(&self) -> DropReason {
        let reason = DropReason::ALL.get(usize::from(self.tags.flow()));
        reason.copied().unwrap_or(DropReason::Overlimit)
    }
}

/// Marks the end of a list.
pub(crate) const NIL: u32 = u32::MAX;

/// Slots for frames. Memory is reserved at construction but touched only as it is first used.
#[derive(Debug)]
pub struct FramePool {
    slots: Vec<QueuedFrame>,
    free: u32,
    capacity: u32,
    dropped: DroppedList,
}

/// Slots of frames dropped out of a queue, oldest first, until their handles are returned.
#[derive(Debug, Clone, Copy)]
struct DroppedList {
    head: u32,
    tail: u32,
    /// The first that no counter has counted.
    uncounted: u32,
}

impl DroppedList {
    const EMPTY: Self = Self {
        head: NIL,
        tail: NIL,
        uncounted: NIL,
    };
}

impl FramePool {
    /// Room for `capacity` frames.
    #[must_use]
    pub fn with_capacity(capacity: u32) -> Self {
        Self {
            slots: Vec::with_capacity(capacity as usize),
            free: NIL,
            capacity,
            dropped: DroppedList::EMPTY,
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
            // By more than that, so that growing in small steps takes amortized O(1).
            self.slots.reserve(capacity as usize - self.slots.len());
            self.capacity = capacity;
        }
    }

    /// Reserve memory for so many frames, although it [holds](Self::capacity) fewer: up to there it grows without moving any.
    pub fn reserve(&mut self, frames: u32) {
        let more = (frames as usize).saturating_sub(self.slots.len());
        self.slots.reserve_exact(more);
    }

    /// A slot holding `queued` with nothing behind it; `None` when all are taken.
    #[inline]
    pub(crate) fn try_take(&mut self, queued: QueuedFrame) -> Option<u32> {
        if self.free as usize >= self.slots.len() {
            self.add_slot()?;
        }
        let index = self.free;
        let slot = self.slots.get_mut(index as usize)?;
        self.free = slot.next;
        *slot = QueuedFrame {
            next: NIL,
            ..queued
        };
        Some(index)
    }

    /// One slot more, which is free: the only one.
    #[cold]
    fn add_slot(&mut self) -> Option<()> {
        let len = u32::try_from(self.slots.len()).ok();
        self.free = len.filter(|&len| len < self.capacity)?;
        self.slots.push(QueuedFrame::EMPTY);
        Some(())
    }

    /// [`release`](Self::release); `None` for [`NIL`].
    #[inline]
    pub(crate) fn try_release(&mut self, index: u32) -> Option<(QueuedFrame, u32)> {
        let slot = self.slots.get_mut(index as usize)?;
        let queued = *slot;
        slot.next = self.free;
        self.free = index;
        Some((queued, queued.next))
    }

    /// The lengths of a queued frame; `None` for [`NIL`].
    #[inline]
    pub(crate) fn lengths(&self, index: u32) -> Option<FrameLengths> {
        self.slots.get(index as usize).map(QueuedFrame::lengths)
    }

    /// Free a slot; returns its contents and the next slot.
    #[inline]
    pub(crate) fn release(&mut self, index: u32) -> (QueuedFrame, u32) {
        let free = self.free;
        let slot = &mut self.slots[index as usize];
        let queued = *slot;
        slot.next = free;
        self.free = index;
        (queued, queued.next)
    }

    /// Drop a frame that is in no list any more. Its slot is freed once it has been counted and
    /// returned: [`count_dropped`](Self::count_dropped), then
    /// [`poll_dropped`](Self::poll_dropped).
    pub(crate) fn discard(&mut self, index: u32, reason: DropReason) {
        let slot = &mut self.slots[index as usize];
        slot.tags = slot.tags.with_flow(reason as u16);
        slot.next = NIL;
        if self.dropped.tail == NIL {
            self.dropped.head = index;
        } else {
            self.slots[self.dropped.tail as usize].next = index;
        }
        self.dropped.tail = index;
        if self.dropped.uncounted == NIL {
            self.dropped.uncounted = index;
        }
    }

    /// Returns true if frames were dropped that have not been returned.
    #[inline]
    pub const fn has_dropped(&self) -> bool {
        self.dropped.head != NIL
    }

    /// Class and reason of the oldest dropped frame that has not been counted; now it has.
    #[inline]
    pub fn count_dropped(&mut self) -> Option<(u32, DropReason)> {
        let slot = self.slots.get(self.dropped.uncounted as usize)?;
        self.dropped.uncounted = slot.next;
        Some((slot.class, slot.reason()))
    }

    /// Return a dropped frame, and free its slot; `None` if none has been counted.
    #[inline]
    pub fn poll_dropped(&mut self) -> Option<Dropped> {
        let index = self.dropped.head;
        // Called after every frame, and almost always `None`.
        if index == NIL || index == self.dropped.uncounted {
            return None;
        }
        Some(self.take_dropped(index))
    }

    #[cold]
    fn take_dropped(&mut self, index: u32) -> Dropped {
        let reason = self.slots[index as usize].reason();
        let (queued, next) = self.release(index);
        self.dropped.head = next;
        if next == NIL {
            self.dropped.tail = NIL;
        }
        Dropped {
            frame: queued.frame(),
            reason,
        }
    }

    /// Write a congestion mark into a queued frame.
    pub(crate) fn mark(&mut self, index: u32) {
        self.slots[index as usize].tags.mark();
    }

    /// The slot behind another in its list.
    #[inline]
    pub(crate) fn next(&self, index: u32) -> u32 {
        self.slots[index as usize].next
    }

    /// The lengths of a queued frame, and when it arrived.
    #[inline]
    pub(crate) fn head(&self, index: u32) -> (FrameLengths, Instant) {
        let slot = &self.slots[index as usize];
        (slot.lengths(), slot.arrival)
    }

    /// Any part of a slot, to have it read, and the slot behind it. Zero and [`NIL`] where there
    /// is none.
    #[inline]
    pub(crate) fn fetch(&self, index: u32) -> (u64, u32) {
        let slot = self.slots.get(index as usize);
        slot.map_or((0, NIL), |slot| (slot.handle, slot.next))
    }

    /// The handle of the frame in a slot; [`u64::MAX`] for [`NIL`].
    #[inline]
    pub(crate) fn handle(&self, index: u32) -> u64 {
        let slot = self.slots.get(index as usize);
        slot.map_or(u64::MAX, |slot| slot.handle)
    }

    /// Prefetch the slot behind that of the first frame of a queue of so many packets, so that it is in the processor's caches
    /// when its turn comes. That of the first frame is there.
    #[inline]
    pub(crate) fn prefetch_behind(&self, first: u32, packets: u32) {
        if packets <= DEEP {
            return;
        }
        let (_, behind) = self.fetch(first);
        if behind != NIL {
            prefetch_index(&self.slots, behind as usize);
        }
    }

    /// The class of the frame in a slot; [`NIL`] where there is none.
    #[inline]
    pub(crate) fn class(&self, index: u32) -> u32 {
        self.slots
            .get(index as usize)
            .map_or(NIL, |slot| slot.class)
    }

    #[inline]
    pub(crate) fn link(&mut self, index: u32, next: u32) {
        self.slots[index as usize].next = next;
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> &QueuedFrame {
        &self.slots[index as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queued_frame_keeps_all_that_it_was_made_of() {
        for (dscp, ecn, colour, l3_offset) in [
            (0, Ecn::NotEct, Colour::Green, 0),
            (63, Ecn::Ect0, Colour::Red, 255),
            (42, Ecn::Ce, Colour::Yellow, 22),
        ] {
            let frame = Frame {
                handle: u64::MAX,
                lengths: FrameLengths {
                    l2_bytes: 1_518,
                    l3_offset,
                },
                traffic_class: TrafficClass::new(dscp, ecn),
                colour,
            };
            let queued = QueuedFrame::new(&frame, 7, Instant::from_nanos(9), 0);
            assert_eq!(queued.frame(), frame);
            assert_eq!((queued.class(), queued.arrival().nanos()), (7, 9));
        }
    }
}
