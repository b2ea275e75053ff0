//! Tail drop: a frame that would exceed the limit is dropped.

use super::FrameList;
use slicewise_model::QueueLimitParams;
use slicewise_units::FrameLengths;

/// The limit of one queue, in packets and bytes; a limit in time was converted to bytes at the class's
/// rate when the policy was resolved.
#[derive(Debug, Clone, Copy)]
pub struct TailDrop {
    /// Less what is held; below zero where a change has lowered the limit meanwhile.
    packets: i64,
    bytes: i64,
}

impl TailDrop {
    /// A limit.
    #[must_use]
    pub fn new(limit: QueueLimitParams) -> Self {
        Self {
            packets: limit.packets.into(),
            bytes: i64::try_from(limit.bytes.bytes()).unwrap_or(i64::MAX),
        }
    }

    /// True if both limits are met with a frame of these lengths added.
    #[must_use]
    pub fn admits(&self, frames: &FrameList, frame: FrameLengths) -> bool {
        let bytes = frames.bytes() + u64::from(frame.l2_bytes);
        i64::from(frames.packets()) < self.packets && bytes.cast_signed() <= self.bytes
    }

    /// Keep room for frames that wait elsewhere.
    pub(crate) fn hold(&mut self, packets: u32, bytes: u64) {
        self.packets -= i64::from(packets);
        self.bytes -= bytes.cast_signed();
    }

    /// Give the room that was kept for some frames to these, which are queued now.
    pub(crate) fn release(&mut self, frames: &FrameList) {
        self.packets += i64::from(frames.packets());
        self.bytes += frames.bytes().cast_signed();
    }
}
