//! `DualPI2` (RFC 9332): settings, defaults and checks.

use super::Refusal;
use slicewise_units::Duration;

/// Target of the C queue: RFC 9332, appendix A.1.
const TARGET: Duration = Duration::from_millis(15);
/// Linux 6.17 (`sch_dualpi2.c`), whose gains belong to it.
const UPDATE: Duration = Duration::from_millis(16);
/// Linux 6.17; the middle of the ramp of RFC 9332, appendix A.1 (0.8 to 1.2 ms).
const STEP: Duration = Duration::from_millis(1);
/// `k`: RFC 9332, appendix A.1.
const COUPLING: u8 = 2;
/// The C queue gets at least 1/16 (Linux: 1/10).
const WEIGHT: u8 = 15;
/// Range of the time between two updates.
const UPDATE_RANGE: (Duration, Duration) = (Duration::from_millis(1), MAX);
/// Shortest target and step.
const MIN: Duration = Duration::from_micros(1);
/// Longest of all settings.
const MAX: Duration = Duration::from_secs(10);

/// `DualPI2`, as written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DualPi2Spec {
    /// Target queueing delay of the C queue; default 15 ms.
    pub target: Option<Duration>,
    /// Time between two updates of the base probability; default 16 ms.
    pub update: Option<Duration>,
    /// Queueing delay of the L queue from which every frame is marked; default 1 ms.
    pub step: Option<Duration>,
    /// Factor between the base probability and that of marks in the L queue; default 2.
    pub coupling: Option<u8>,
    /// Bytes that the L queue sends for each byte of the C queue while both have frames; default 15.
    pub weight: Option<u8>,
}

/// Validated `DualPI2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DualPi2Params {
    /// Target queueing delay of the C queue.
    pub target: Duration,
    /// Time between two updates of the base probability, 1 ms to 10 s.
    pub update: Duration,
    /// Queueing delay of the L queue from which every frame is marked.
    pub step: Duration,
    /// Factor between the base probability and that of marks in the L queue, at least 1.
    pub coupling: u8,
    /// Bytes that the L queue sends for each byte of the C queue while both have frames, at least 1.
    pub weight: u8,
}

impl DualPi2Spec {
    pub(super) fn resolve(self) -> Result<DualPi2Params, Refusal> {
        let time = |name, value: Option<Duration>, default, (least, most)| {
            let value = value.unwrap_or(default);
            match (least..=most).contains(&value) {
                true => Ok(value),
                false => Err((
                    "dualpi2",
                    format!("has a {name} of {value}: must be {least} to {most}"),
                )),
            }
        };
        let factor = |name, value: Option<u8>, default| match value.unwrap_or(default) {
            0 => Err(("dualpi2", format!("has a {name} of 0: must be 1 to 255"))),
            value => Ok(value),
        };
        Ok(DualPi2Params {
            target: time("target", self.target, TARGET, (MIN, MAX))?,
            update: time("time of `update`", self.update, UPDATE, UPDATE_RANGE)?,
            step: time("step", self.step, STEP, (MIN, MAX))?,
            coupling: factor("coupling", self.coupling, COUPLING)?,
            weight: factor("weight", self.weight, WEIGHT)?,
        })
    }
}
