//! A first-in first-out list of frames in the shared pool.

use super::pool::{FramePool, NIL, QueuedFrame};
use slicewise_units::FrameLengths;

/// Frames in arrival order. All operations are O(1).
#[derive(Debug, Clone)]
pub struct FrameList {
    head: u32,
    tail: u32,
    packets: u32,
    bytes: u64,
}

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
            bytes: 0,
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
        self.bytes -= u64::from(queued.lengths().l2_bytes);
        Some(queued)
    }

    /// Frames in the list.
    #[must_use]
    pub const fn packets(&self) -> u32 {
        self.packets
    }

    /// Bytes in the list, L2 without FCS.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}
