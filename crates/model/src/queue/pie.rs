//! PIE (RFC 8033): settings, defaults and checks.

use super::Refusal;
use slicewise_units::Duration;

/// `QDELAY_REF` of RFC 8033, section 4.2.
const TARGET: Duration = Duration::from_millis(15);
/// `T_UPDATE` of RFC 8033, section 4.2.
const UPDATE: Duration = Duration::from_millis(15);
/// `MAX_BURST` of RFC 8033, section 4.4.
const BURST: Duration = Duration::from_millis(150);
/// Shortest time between two updates of the probability.
const UPDATE_MIN: Duration = Duration::from_millis(1);
/// Longest of all settings.
const MAX: Duration = Duration::from_secs(10);

/// PIE, as written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PieSpec {
    /// Target queueing delay; default 15 ms.
    pub target: Option<Duration>,
    /// Time between two updates of the drop probability; default 15 ms.
    pub update: Option<Duration>,
    /// Time for which a burst after an idle period is not dropped; default 150 ms.
    pub burst: Option<Duration>,
    /// Mark ECN-capable frames instead of dropping them while the probability is below 10 %; default no.
    pub ecn: bool,
}

/// Validated PIE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PieParams {
    /// Target queueing delay.
    pub target: Duration,
    /// Time between two updates of the drop probability, 1 ms to 10 s.
    pub update: Duration,
    /// Time for which a burst after an idle period is not dropped.
    pub burst: Duration,
    /// Mark ECN-capable frames instead of dropping them while the probability is below 10 %.
    pub ecn: bool,
}

impl PieSpec {
    pub(super) fn resolve(self) -> Result<PieParams, Refusal> {
        let within = |name, value: Option<Duration>, default, least| {
            let value = value.unwrap_or(default);
            match (least..=MAX).contains(&value) {
                true => Ok(value),
                false => Err((
                    "pie",
                    format!("has a {name} of {value}: must be {least} to {MAX}"),
                )),
            }
        };
        Ok(PieParams {
            target: within("target", self.target, TARGET, Duration::from_nanos(1_000))?,
            update: within("time of `update`", self.update, UPDATE, UPDATE_MIN)?,
            burst: within("burst", self.burst, BURST, Duration::ZERO)?,
            ecn: self.ecn,
        })
    }
}
