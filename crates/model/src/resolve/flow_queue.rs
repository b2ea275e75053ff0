//! Flow queueing: defaults and contradictions.

use super::{ClassResolver, MAX_DSCP, PolicyError};
use crate::flow_queue::{FLOWS_MAX, LEVELS_MAX, PriorityLevels};
use crate::{FlowQueueParams, FlowQueueSpec};
use slicewise_units::{ByteCount, Duration};

/// RFC 8290, section 5.2.3.
const FLOWS: u32 = 1024;
/// RFC 8289, section 4.2; RFC 8290, section 5.2.1.
const TARGET: Duration = Duration::from_millis(5);
/// RFC 8289, section 4.3; RFC 8290, section 5.2.2.
const INTERVAL: Duration = Duration::from_millis(100);
/// RFC 8290, section 5.2.4: one full Ethernet frame.
const QUANTUM: u32 = 1514;
/// Longest interval: its square in nanoseconds fits in 64 bits.
const INTERVAL_MAX: Duration = Duration::from_secs(4);
/// Range of the quantum, bytes: below it, a full frame would take many rounds.
const QUANTUM_RANGE: (u32, u32) = (300, 1 << 20);

impl ClassResolver<'_> {
    pub(super) fn flow_queue(&self, spec: &FlowQueueSpec) -> Result<FlowQueueParams, PolicyError> {
        let fail = |problem: String| self.error("flow_queue", problem);
        let flows = spec.flows.unwrap_or(FLOWS);
        if !(1..=FLOWS_MAX).contains(&flows) {
            return Err(fail(format!("has {flows} flows: must be 1 to {FLOWS_MAX}")));
        }
        let target = spec.target.unwrap_or(TARGET);
        let interval = spec.interval.unwrap_or(INTERVAL);
        if target == Duration::ZERO {
            return Err(fail("has a target of zero: every frame exceeds it".into()));
        }
        if interval <= target {
            return Err(fail(format!(
                "has an interval of {interval}, which must be longer than the target of {target}"
            )));
        }
        if interval > INTERVAL_MAX {
            return Err(fail(format!(
                "has an interval of {interval}: at most {INTERVAL_MAX}"
            )));
        }
        let quantum = spec.quantum.map_or(u64::from(QUANTUM), ByteCount::bytes);
        let (least, most) = QUANTUM_RANGE;
        let quantum = u32::try_from(quantum)
            .ok()
            .filter(|quantum| (least..=most).contains(quantum))
            .ok_or_else(|| {
                fail(format!(
                    "has a quantum of {quantum} B: must be {least} B to {most} B"
                ))
            })?;
        Ok(FlowQueueParams {
            flows,
            target,
            interval,
            quantum,
            ecn: spec.ecn.unwrap_or(true),
            levels: self.levels(&spec.priority)?,
        })
    }

    fn levels(&self, priority: &[Vec<u8>]) -> Result<PriorityLevels, PolicyError> {
        let fail = |problem: String| Err(self.error("flow_queue", problem));
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
