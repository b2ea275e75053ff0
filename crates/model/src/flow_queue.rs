//! Flow queueing with active queue management (CoDel and FQ-CoDel, RFC 8289 and 8290).

use slicewise_units::{ByteCount, Duration};

/// Most flow queues: limited by the hash stored with each frame.
pub const FLOWS_MAX: u32 = 1 << 13;
/// Most strict-priority levels in a flow queue.
pub const LEVELS_MAX: usize = 4;

/// Flow queueing, as written. Omitted settings have the defaults of RFC 8290, section 5.2.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowQueueSpec {
    /// Queues that flows are hashed to, on each level; default 1024. With 1 this is `CoDel` alone.
    pub flows: Option<u32>,
    /// Target queueing delay, below which nothing is dropped; default 5 ms.
    pub target: Option<Duration>,
    /// How long the delay must stay above `target` before a frame is dropped; default 100 ms.
    pub interval: Option<Duration>,
    /// Bytes a flow may send per round; default 1514 B.
    pub quantum: Option<ByteCount>,
    /// Mark ECN-capable frames instead of dropping them; default yes.
    pub ecn: Option<bool>,
    /// Code points by strict-priority level, the first served first. Unlisted code points form the last
    /// level.
    pub priority: Vec<Vec<u8>>,
}

/// Validated flow queueing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowQueueParams {
    /// Queues on each level, 1 to [`FLOWS_MAX`].
    pub flows: u32,
    /// Target queueing delay, below which nothing is dropped.
    pub target: Duration,
    /// How long the delay must stay above `target` before a frame is dropped; longer than `target`, at
    /// most 4 s.
    pub interval: Duration,
    /// Bytes a flow may send per round (L2 without FCS).
    pub quantum: u32,
    /// Mark ECN-capable frames instead of dropping them.
    pub ecn: bool,
    /// The level of each code point.
    pub levels: PriorityLevels,
}

/// Strict-priority level of each code point, of up to [`LEVELS_MAX`]; 0 is served first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PriorityLevels {
    /// Two bits for each of the 64 code points.
    by_dscp: u128,
    /// Number of levels minus one.
    last: u8,
}

impl PriorityLevels {
    /// One level with every code point.
    pub const ONE: Self = Self {
        by_dscp: 0,
        last: 0,
    };

    /// `levels` levels, 1 to [`LEVELS_MAX`], with every code point on the last.
    pub(crate) fn new(levels: usize) -> Self {
        let last = u8::try_from(levels.clamp(1, LEVELS_MAX) - 1).unwrap_or(0);
        let mut this = Self { by_dscp: 0, last };
        for dscp in 0..64 {
            this.set(dscp, last);
        }
        this
    }

    /// Put a code point on a level.
    pub(crate) fn set(&mut self, dscp: u8, level: u8) {
        let shift = 2 * u32::from(dscp & 63);
        self.by_dscp &= !(3 << shift);
        self.by_dscp |= u128::from(level.min(self.last)) << shift;
    }

    /// Number of levels.
    #[must_use]
    pub fn count(&self) -> usize {
        usize::from(self.last) + 1
    }

    /// The level of a code point.
    #[must_use]
    pub const fn of(&self, dscp: u8) -> usize {
        (self.by_dscp >> (2 * (dscp & 63)) & 3) as usize
    }
}
