use crate::frame::{DropReason, Frame};

/// Counters of one class since the pipeline was created.
///
/// At any time `offered = sent + queued + Σ dropped`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
// What every frame counts comes first, in one cache line. Neighbours that are counted together would be added as a vector, which
// takes twice the instructions.
#[repr(C)]
pub struct ClassCounters {
    /// Frames offered.
    pub offered_frames: u64,
    /// Frames sent.
    pub sent_frames: u64,
    /// Bytes offered, L2 without FCS.
    pub offered_bytes: u64,
    /// Bytes sent, L2 without FCS.
    pub sent_bytes: u64,
    /// Frames marked by a queue instead of being dropped.
    pub marked_frames: u64,
    /// Frames waiting.
    pub queued_frames: u64,
    /// Name of the class; a class within a class is `parent/child`.
    pub class: String,
    /// Frames dropped, in the order of [`DropReason::ALL`].
    pub dropped_frames: [u64; DropReason::ALL.len()],
}

impl ClassCounters {
    /// Frames dropped for one reason.
    #[must_use]
    pub const fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped_frames[reason as usize]
    }

    /// A frame was offered, and waits.
    pub(crate) fn count_queued(&mut self, frame: &Frame) {
        self.offered_frames += 1;
        self.offered_bytes += u64::from(frame.lengths.l2_bytes);
        self.queued_frames += 1;
    }

    /// A frame was offered, and dropped.
    pub(crate) fn count_dropped(&mut self, frame: &Frame, reason: DropReason) {
        self.offered_frames += 1;
        self.offered_bytes += u64::from(frame.lengths.l2_bytes);
        self.dropped_frames[reason as usize] += 1;
    }

    /// A frame that was offered belongs to another class.
    pub(crate) fn uncount_offered(&mut self, frame: &Frame) {
        self.offered_frames -= 1;
        self.offered_bytes -= u64::from(frame.lengths.l2_bytes);
    }

    /// Count what `other` has counted, too.
    pub fn absorb(&mut self, other: &Self) {
        self.offered_frames += other.offered_frames;
        self.offered_bytes += other.offered_bytes;
        self.sent_frames += other.sent_frames;
        self.sent_bytes += other.sent_bytes;
        self.marked_frames += other.marked_frames;
        self.queued_frames += other.queued_frames;
        for (own, other) in self.dropped_frames.iter_mut().zip(other.dropped_frames) {
            *own += other;
        }
    }

    /// Frames dropped for any reason.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped_frames.iter().sum()
    }
}
