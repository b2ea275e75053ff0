use slicewise_model::Colour;
use slicewise_units::{FrameLengths, Instant};
use slicewise_wire::TrafficClass;

/// A frame descriptor: the caller's handle and the fields needed for scheduling.
///
/// The bytes stay with the caller (a packet buffer, a simulated packet); `handle` comes back
/// unchanged from [`Pipeline::poll_egress`](crate::Pipeline::poll_egress).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The caller's handle of the frame.
    pub handle: u64,
    /// Lengths, for accounting.
    pub lengths: FrameLengths,
    /// Code point and congestion notification: the incoming values, and at egress those to write. A policer or class may remark
    /// the code point, and a queue that marks instead of dropping sets [`Ce`](slicewise_wire::Ecn::Ce).
    pub traffic_class: TrafficClass,
    /// Colour from an upstream meter, or from this pipeline's.
    pub colour: Colour,
}

/// A departing frame, and where it waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// The frame.
    pub frame: Frame,
    /// Its class, by its index in [`Pipeline::counters`](crate::Pipeline::counters).
    pub class: u32,
    /// When it was offered.
    pub queued_at: Instant,
}

/// Outcome of an offered frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It waits in a queue.
    Queued,
    /// It was dropped, and counted under this reason.
    Dropped(DropReason),
}

/// A frame dropped after it was queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped {
    /// The frame, whose handle returns to the caller.
    pub frame: Frame,
    /// The reason it was counted under.
    pub reason: DropReason,
}

/// Owner of the frames of a burst, told of each decision of
/// [`Pipeline::enqueue_burst`](crate::Pipeline::enqueue_burst).
pub trait FrameOwner {
    /// Returns true if there is memory for a frame of a class, given by its position among
    /// [`Pipeline::counters`](crate::Pipeline::counters). Asked once no policer drops the frame; where there is none,
    /// it is dropped as [`DropReason::BufferFull`].
    #[inline]
    fn try_hold(&mut self, _frame: &Frame, _class: u32) -> bool {
        true
    }

    /// A frame was dropped: the one just offered, or one that waited. Its handle returns to the caller.
    fn on_dropped(&mut self, frame: &Frame, reason: DropReason);
}

/// Why a frame was dropped. Every offered frame is sent, queued, or counted under exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DropReason {
    /// A policer's action.
    Policed,
    /// The policer of a priority class, because the link was congested.
    PriorityExceeded,
    /// The queue was full: packets or bytes.
    QueueFull,
    /// Random early detection, between the thresholds.
    RedEarly,
    /// Random early detection, average at or above the maximum threshold.
    RedForced,
    /// The frame memory was full, or what its class may use of it.
    BufferFull,
    /// A frame of zero length.
    BadLength,
    /// A frame longer than the largest that guarantees were computed for.
    FrameTooLong,
    /// Its slice has been removed.
    SliceRemoved,
    /// `CoDel`: frames of its flow exceeded the target delay for an interval.
    CoDel,
    /// A queue was full, and the fattest flow dropped its oldest frame.
    Overlimit,
    /// PIE or `DualPI2`, as the delay of the queue exceeded the target.
    Pie,
}

impl DropReason {
    /// All reasons, in the order of their counters.
    pub const ALL: [Self; 12] = [
        Self::Policed,
        Self::PriorityExceeded,
        Self::QueueFull,
        Self::RedEarly,
        Self::RedForced,
        Self::BufferFull,
        Self::BadLength,
        Self::FrameTooLong,
        Self::SliceRemoved,
        Self::CoDel,
        Self::Overlimit,
        Self::Pie,
    ];

    /// The name used in records and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Policed => "policed",
            Self::PriorityExceeded => "priority_exceeded",
            Self::QueueFull => "queue_full",
            Self::RedEarly => "red_early",
            Self::RedForced => "red_forced",
            Self::BufferFull => "buffer_full",
            Self::BadLength => "bad_length",
            Self::FrameTooLong => "frame_too_long",
            Self::SliceRemoved => "slice_removed",
            Self::CoDel => "codel",
            Self::Overlimit => "overlimit",
            Self::Pie => "pie",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::DropReason;

    /// Records and metrics hold these names.
    #[test]
    fn names_of_drop_reasons_do_not_change() {
        let names = DropReason::ALL.map(DropReason::name).join(" ");
        assert_eq!(
            names,
            "policed priority_exceeded queue_full red_early red_forced buffer_full bad_length \
             frame_too_long slice_removed codel overlimit pie"
        );
    }
}
