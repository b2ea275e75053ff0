//! `CoDel` (RFC 8289): settings, defaults and checks.

use super::Refusal;
use slicewise_units::Duration;

/// RFC 8289, section 4.2; RFC 8290, section 5.2.1.
const TARGET: Duration = Duration::from_millis(5);
/// RFC 8289, section 4.3; RFC 8290, section 5.2.2.
const INTERVAL: Duration = Duration::from_millis(100);
/// Longest interval: its square in nanoseconds fits in 64 bits.
const INTERVAL_MAX: Duration = Duration::from_secs(4);

/// `CoDel`, as written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CoDelSpec {
    /// Target queueing delay, below which nothing is dropped; default 5 ms.
    pub target: Option<Duration>,
    /// How long the delay must stay above `target` before a frame is dropped; default 100 ms.
    pub interval: Option<Duration>,
    /// Mark ECN-capable frames instead of dropping them; default yes.
    pub ecn: Option<bool>,
}

/// Validated `CoDel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoDelParams {
    /// Target queueing delay, below which nothing is dropped.
    pub target: Duration,
    /// How long the delay must stay above `target` before a frame is dropped; longer than `target`, at
    /// most 4 s.
    pub interval: Duration,
    /// Mark ECN-capable frames instead of dropping them.
    pub ecn: bool,
}

impl CoDelSpec {
    /// Validates what a study file says in `setting`.
    pub(super) fn resolve(self, setting: &'static str) -> Result<CoDelParams, Refusal> {
        let fail = |problem: String| Err((setting, problem));
        let target = self.target.unwrap_or(TARGET);
        let interval = self.interval.unwrap_or(INTERVAL);
        if target == Duration::ZERO {
            return fail("has a target of zero: every frame exceeds it".into());
        }
        if interval <= target {
            return fail(format!(
                "has an interval of {interval}, which must be longer than the target of {target}"
            ));
        }
        if interval > INTERVAL_MAX {
            return fail(format!(
                "has an interval of {interval}: at most {INTERVAL_MAX}"
            ));
        }
        Ok(CoDelParams {
            target,
            interval,
            ecn: self.ecn.unwrap_or(true),
        })
    }
}
