//! Tail drop: a frame that would exceed the limit is dropped.

use super::FrameList;
use slicewise_model::QueueLimitParams;
use slicewise_units::{ByteCount, FrameLengths};

/// The limit of one queue, in packets and bytes; a limit in time was converted to bytes at the class's
/// rate when the policy was resolved.
#[derive(Debug, Clone, Copy)]
pub struct TailDrop {
    /// Less what is held.
    limit: QueueLimitParams,
    /// Held beyond the limit, which a change has lowered meanwhile.
    beyond: (u32, u64),
}

impl TailDrop {
    /// A limit.
    #[must_use]
    pub const fn new(limit: QueueLimitParams) -> Self {
        Self {
            limit,
            beyond: (0, 0),
        }
    }

    /// True if both limits are met with a frame of these lengths added.
    #[must_use]
    pub fn admits(&self, frames: &FrameList, frame: FrameLengths) -> bool {
        frames.packets() < self.limit.packets
            && frames.bytes() + u64::from(frame.l2_bytes) <= self.limit.bytes.bytes()
    }

    /// Keep room for frames that wait elsewhere.
    pub(crate) fn hold(&mut self, packets: u32, bytes: u64) {
        let limit = (self.limit.packets, self.limit.bytes.bytes());
        let within = (packets.min(limit.0), bytes.min(limit.1));
        self.limit.packets = limit.0 - within.0;
        self.limit.bytes = ByteCount::new(limit.1 - within.1);
        self.beyond.0 += packets - within.0;
        self.beyond.1 += bytes - within.1;
    }

    /// Give the room that was kept for some frames to these, which are queued now.
    pub(crate) fn release(&mut self, frames: &FrameList) {
        let beyond = (
            frames.packets().min(self.beyond.0),
            frames.bytes().min(self.beyond.1),
        );
        self.beyond.0 -= beyond.0;
        self.beyond.1 -= beyond.1;
        self.limit.packets += frames.packets() - beyond.0;
        let bytes = self.limit.bytes.bytes() + (frames.bytes() - beyond.1);
        self.limit.bytes = ByteCount::new(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::TailDrop;
    use crate::queue::FrameList;
    use slicewise_model::QueueLimitParams;
    use slicewise_units::{ByteCount, FrameLengths};

    #[test]
    fn room_that_is_held_comes_back_whole() {
        let limit = QueueLimitParams {
            packets: 3,
            bytes: ByteCount::new(u64::MAX),
        };
        let frame = FrameLengths {
            l2_bytes: 100,
            l3_offset: 14,
        };
        let (empty, mut drop) = (FrameList::new(), TailDrop::new(limit));
        for held in 1..=5 {
            drop.hold(1, 100);
            assert_eq!(drop.admits(&empty, frame), held < 3, "{held}");
        }
        assert_eq!((drop.limit.packets, drop.beyond), (0, (2, 0)));
        for released in 1..=5 {
            drop.release(&FrameList::of(1, 100));
            assert_eq!(drop.admits(&empty, frame), released > 2, "{released}");
        }
        assert_eq!((drop.limit, drop.beyond), (limit, (0, 0)));
    }
}
