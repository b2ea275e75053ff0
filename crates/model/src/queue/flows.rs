//! Separation of flows into queues that take turns (RFC 8290): settings, defaults and checks.

use super::Refusal;
use crate::class_map::MAX_DSCP;
use slicewise_units::ByteCount;

/// Most flow queues: limited by the hash stored with each frame.
pub const FLOWS_MAX: u32 = 1 << 13;
/// Most strict-priority levels in a flow queue.
const LEVELS_MAX: usize = 4;
/// RFC 8290, section 5.2.3.
const FLOWS: u32 = 1024;
/// RFC 8290, section 5.2.4: one full Ethernet frame.
const QUANTUM: u32 = 1514;
/// Range of the quantum, bytes: below it, a full frame would take many rounds.
const QUANTUM_RANGE: (u32, u32) = (300, 1 << 20);

/// Separation of flows, as written. Omitted settings have the defaults of RFC 8290, section 5.2.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowsSpec {
    /// Queues that flows are hashed to, on each level; default 1024.
    pub flows: Option<u32>,
    /// Bytes a flow may send per round; default 1514 B.
    pub quantum: Option<ByteCount>,
    /// Code points by strict-priority level, the first served first. Unlisted code points form the last
    /// level.
    pub priority: Vec<Vec<u8>>,
}

/// Validated separation of flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowsParams {
    /// Queues on each level, 1 to [`FLOWS_MAX`].
    pub flows: u32,
    /// Bytes a flow may send per round (L2 without FCS).
    pub quantum: u32,
    /// The level of each code point.
    pub levels: PriorityLevels,
}

impl FlowsParams {
    /// One queue for all flows.
    pub const ONE: Self = Self {
        flows: 1,
        quantum: QUANTUM,
        levels: PriorityLevels::ONE,
    };
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

impl FlowsSpec {
    pub(super) fn resolve(&self) -> Result<FlowsParams, Refusal> {
        let fail = |problem: String| Err(("flow_queue", problem));
        let flows = self.flows.unwrap_or(FLOWS);
        if !(1..=FLOWS_MAX).contains(&flows) {
            return fail(format!("has {flows} flows: must be 1 to {FLOWS_MAX}"));
        }
        let quantum = self.quantum.map_or(u64::from(QUANTUM), ByteCount::bytes);
        let (least, most) = QUANTUM_RANGE;
        let Some(quantum) = u32::try_from(quantum)
            .ok()
            .filter(|quantum| (least..=most).contains(quantum))
        else {
            return fail(format!(
                "has a quantum of {quantum} B: must be {least} B to {most} B"
            ));
        };
        Ok(FlowsParams {
            flows,
            quantum,
            levels: self.levels()?,
        })
    }

    fn levels(&self) -> Result<PriorityLevels, Refusal> {
        let fail = |problem: String| Err(("flow_queue", problem));
        let priority = &self.priority;
        // Unlisted code points form a level of their own.
        let count = priority.len() + 1;
        if count > LEVELS_MAX {
            return fail(format!(
                "has {count} priority levels, including that of all other code points: at most \
                 {LEVELS_MAX}"
            ));
        }
        let mut levels = PriorityLevels::new(count);
        let mut seen = 0u64;
        for (level, code_points) in (0u8..).zip(priority) {
            if code_points.is_empty() {
                return fail(format!("priority level {} has no code point", level + 1));
            }
            for &dscp in code_points {
                if dscp > MAX_DSCP {
                    return fail(format!("code point {dscp} does not exist"));
                }
                if seen >> dscp & 1 == 1 {
                    return fail(format!("code point {dscp} is listed twice"));
                }
                seen |= 1 << dscp;
                levels.set(dscp, level);
            }
        }
        Ok(levels)
    }
}
