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
    /// Nothing is admitted until the queue is shorter by the hysteresis.
    is_closed: bool,
}

impl TailDrop {
    /// A limit.
    #[must_use]
    pub const fn new(limit: QueueLimitParams) -> Self {
        Self {
            limit,
            beyond: (0, 0),
            is_closed: false,
        }
    }

    /// True if both limits are met with a frame of these lengths added, and the hysteresis is over.
    #[inline]
    pub fn admits(&mut self, frames: &FrameList, frame: FrameLengths) -> bool {
        let has_room = frames.packets() < self.limit.packets
            && frames.bytes() + u64::from(frame.l2_bytes) <= self.limit.bytes.bytes();
        if self.limit.hysteresis == 0 {
            return has_room;
        }
        let packets = frames.packets();
        let reopens = packets.saturating_add(self.limit.hysteresis) <= self.limit.packets;
        self.is_closed = !has_room || self.is_closed && !reopens && packets > 0;
        !self.is_closed
    }

    /// Continue a hysteresis that has begun.
    pub(crate) const fn resume_from(&mut self, old: &Self) {
        self.is_closed = old.is_closed;
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
    fn after_a_drop_the_queue_becomes_shorter_by_the_hysteresis_first() {
        let limit = QueueLimitParams {
            packets: 10,
            bytes: ByteCount::new(u64::MAX),
            hysteresis: 3,
        };
        let frame = FrameLengths {
            l2_bytes: 100,
            l3_offset: 14,
        };
        let mut drop = TailDrop::new(limit);
        let admits: Vec<bool> = [9, 10, 9, 8, 7, 8, 9, 10, 7]
            .map(|packets| {
                // Whatever replaces it goes on.
                let old = std::mem::replace(&mut drop, TailDrop::new(limit));
                drop.resume_from(&old);
                drop.admits(&FrameList::of(packets, 100), frame)
            })
            .to_vec();
        assert_eq!(
            admits,
            [true, false, false, false, true, true, true, false, true]
        );
    }

    #[test]
    fn room_that_is_held_comes_back_whole() {
        let limit = QueueLimitParams {
            packets: 3,
            bytes: ByteCount::new(u64::MAX),
            hysteresis: 0,
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
