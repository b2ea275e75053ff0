//! A first-in first-out list of frames in the shared pool.

use super::pool::{FramePool, NIL, QueuedFrame};
use slicewise_units::FrameLengths;

/// Frames in arrival order. All operations are O(1).
#[derive(Debug, Clone)]
pub struct FrameList {
    head: u32,
    tail: u32,
    packets: u32,
    /// Frames removed since the list was made, modulo 2^32.
    left: u32,
    bytes: u64,
}

/// A place in a list: behind the frame that was its last at some time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position(u32);

impl Default for FrameList {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameList {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            head: NIL,
            tail: NIL,
            packets: 0,
            left: 0,
            bytes: 0,
        }
    }

    #[cfg(test)]
    pub(super) const fn of(packets: u32, bytes: u64) -> Self {
        Self {
            packets,
            bytes,
            ..Self::new()
        }
    }

    /// Append a frame.
    ///
    /// # Errors
    /// Returns the frame if the pool is full.
    #[inline]
    pub fn try_push(
        &mut self,
        pool: &mut FramePool,
        queued: QueuedFrame,
    ) -> Result<(), QueuedFrame> {
        let Some(slot) = pool.try_take(queued) else {
            return Err(queued);
        };
        if self.tail == NIL {
            self.head = slot;
        } else {
            pool.link(self.tail, slot);
        }
        self.tail = slot;
        self.packets += 1;
        self.bytes += u64::from(queued.lengths().l2_bytes);
        Ok(())
    }

    /// The lengths of the oldest frame.
    #[inline]
    #[must_use]
    pub fn front(&self, pool: &FramePool) -> Option<FrameLengths> {
        pool.lengths(self.head)
    }

    /// Remove the oldest frame.
    #[inline]
    pub fn pop(&mut self, pool: &mut FramePool) -> Option<QueuedFrame> {
        let (queued, next) = pool.try_release(self.head)?;
        self.head = next;
        if next == NIL {
            self.tail = NIL;
        }
        self.packets -= 1;
        self.left = self.left.wrapping_add(1);
        self.bytes -= u64::from(queued.lengths().l2_bytes);
        pool.prefetch_behind(next, self.packets);
        Some(queued)
    }

    /// Frames in the list.
    #[must_use]
    pub const fn packets(&self) -> u32 {
        self.packets
    }

    /// The place behind the last frame.
    pub(crate) const fn end(&self) -> Position {
        Position(self.left.wrapping_add(self.packets))
    }

    /// Returns true if all frames before a place have been removed.
    pub(crate) const fn is_past(&self, position: Position) -> bool {
        let ahead = position.0.wrapping_sub(self.left);
        ahead == 0 || ahead > self.packets
    }

    /// The slot of the oldest frame.
    pub(crate) const fn head(&self) -> u32 {
        self.head
    }

    /// The slot of the newest frame.
    pub(crate) const fn tail(&self) -> u32 {
        self.tail
    }

    /// Append all frames of `other`, in their order. O(1).
    pub(crate) fn splice(&mut self, pool: &mut FramePool, other: Self) {
        if other.head == NIL {
            return;
        }
        if self.tail == NIL {
            self.head = other.head;
        } else {
            pool.link(self.tail, other.head);
        }
        self.tail = other.tail;
        self.packets += other.packets;
        self.bytes += other.bytes;
    }

    /// Count on from where `old` is, so that places in it mean the same frames once they have been moved here.
    pub(crate) fn resume_from(&mut self, old: &Self) {
        debug_assert_eq!(self.packets, 0, "it is new");
        self.left = old.left;
    }

    /// Bytes in the list, L2 without FCS.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::FrameList;
    use crate::frame::Frame;
    use crate::queue::{FramePool, QueuedFrame};
    use slicewise_model::Colour;
    use slicewise_units::{FrameLengths, Instant};
    use slicewise_wire::TrafficClass;

    fn queued(handle: u64) -> QueuedFrame {
        let lengths = FrameLengths {
            l2_bytes: 100,
            l3_offset: 14,
        };
        let frame = Frame {
            handle,
            lengths,
            traffic_class: TrafficClass::DEFAULT,
            colour: Colour::Green,
        };
        QueuedFrame::new(&frame, 0, Instant::ZERO, 0)
    }

    fn list(pool: &mut FramePool, handles: std::ops::Range<u64>) -> FrameList {
        let mut list = FrameList::new();
        handles.for_each(|handle| list.try_push(pool, queued(handle)).unwrap());
        list
    }

    #[test]
    fn a_place_is_passed_when_the_frames_before_it_have_left() {
        let mut pool = FramePool::with_capacity(8);
        let mut frames = list(&mut pool, 0..0);
        // Counts are modulo 2^32.
        frames.left = u32::MAX - 1;
        let start = frames.end();
        assert!(frames.is_past(start));
        let places: Vec<_> = (0..4)
            .map(|handle| {
                frames.try_push(&mut pool, queued(handle)).unwrap();
                frames.end()
            })
            .collect();
        assert_eq!(frames.packets(), 4);
        for left in 0..=4 {
            assert!(frames.is_past(start));
            for (place, frames_before) in places.iter().zip(1..) {
                assert_eq!(frames.is_past(*place), frames_before <= left);
            }
            frames.pop(&mut pool);
        }
    }

    #[test]
    fn lists_are_joined_in_order() {
        let mut pool = FramePool::with_capacity(8);
        for (first, second) in [(0..3, 3..5), (0..0, 0..5), (0..5, 5..5)] {
            let mut frames = list(&mut pool, first);
            let other = list(&mut pool, second);
            frames.splice(&mut pool, other);
            assert_eq!((frames.packets(), frames.bytes()), (5, 500));
            let handles = std::iter::from_fn(|| frames.pop(&mut pool)).map(|f| f.handle());
            assert!(handles.eq(0..5));
            assert_eq!((frames.packets(), frames.bytes()), (0, 0));
        }
    }
}
