use slicewise_model::Colour;
use slicewise_units::{FrameLengths, Instant};
use slicewise_wire::Ecn;

/// What the data plane holds of a frame: the caller's handle and what scheduling needs.
///
/// The bytes stay with the caller (a packet buffer, a simulated packet); `handle` comes back
/// unchanged from [`Pipeline::poll_egress`](crate::Pipeline::poll_egress).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The caller's name for the frame.
    pub handle: u64,
    /// Lengths, for accounting.
    pub lengths: FrameLengths,
    /// Code point to write into the frame at egress; differs from the one that came in where a
    /// policer or class remarked it.
    pub dscp: u8,
    /// Congestion notification: as it came in, and at egress what to write into the frame. A
    /// queue that marks instead of dropping makes it [`Ecn::Ce`].
    pub ecn: Ecn,
    /// Colour from an upstream meter, or from this pipeline's.
    pub colour: Colour,
}

/// A frame that leaves, and where it waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// The frame.
    pub frame: Frame,
    /// Its class, by its position among [`Pipeline::counters`](crate::Pipeline::counters).
    pub class: u32,
    /// When it was offered.
    pub queued_at: Instant,
}

/// What became of an offered frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It waits in a queue.
    Queued,
    /// It was dropped, and counted under this reason.
    Dropped(DropReason),
}

/// A frame that had been queued and was dropped after all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped {
    /// The frame, whose handle is the caller's again.
    pub frame: Frame,
    /// The reason it was counted under.
    pub reason: DropReason,
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
    /// A frame of no length.
    BadLength,
    /// A frame longer than the largest that guarantees were computed for.
    FrameTooLong,
    /// Its slice has been removed.
    SliceRemoved,
    /// `CoDel`: frames of its flow had been waiting too long for too long.
    CoDel,
    /// A queue was full, and the flow with most in it gave up its oldest frame.
    Overlimit,
}

impl DropReason {
    /// All reasons, in the order of their counters.
    pub const ALL: [Self; 11] = [
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
        }
    }
}
