//! Tail drop: a frame that would exceed the limit is dropped.

use super::FrameList;
use slicewise_model::QueueLimitParams;
use slicewise_units::FrameLengths;

/// The limit of one queue, in packets and bytes; a limit in time was converted to bytes at the class's
/// rate when the policy was resolved.
#[derive(Debug, Clone, Copy)]
pub struct TailDrop {
    limit: QueueLimitParams,
}

impl TailDrop {
    /// A limit.
    #[must_use]
    pub const fn new(limit: QueueLimitParams) -> Self {
        Self { limit }
    }

    /// True if both limits are met with a frame of these lengths added.
    #[must_use]
    pub fn admits(&self, frames: &FrameList, frame: FrameLengths) -> bool {
        frames.packets() < self.limit.packets
            && frames.bytes() + u64::from(frame.l2_bytes) <= self.limit.bytes.bytes()
    }
}
