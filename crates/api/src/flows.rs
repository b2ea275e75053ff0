//! Treatment of the flows of a slice.

use crate::Invalid;
use crate::invalid::check_range;
use serde::{Deserialize, Serialize};
use slicewise_units::BitRate;
use utoipa::ToSchema;

/// The largest frame that counts, bytes (L2 without FCS): a rate that does not send one in an interval is exceeded by chance.
const FRAME_BYTES: u64 = 1_522;
/// The longest interval, milliseconds: an hour.
const INTERVAL_MAX_MS: u64 = 3_600_000;
/// Most intervals in a row.
const TIMES_MAX: u32 = 1_000;

/// Treatment of the flows of a slice in one direction; by default none. A flow is told by addresses, protocol and
/// ports, in a GTP-U tunnel by those of the inner packet. The guarantee holds for all flows together, whatever is
/// stated here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowTerms {
    /// The weight is multiplied by an estimate of the active flows, at least 1. Active are those that sent a frame in the last complete interval of
    /// 100 ms.
    #[serde(default)]
    #[schema(default = false)]
    pub weight_per_flow: bool,
    /// Flows are spread by a hash over 1,024 queues, which take turns (flow queueing, as in RFC 8290 without CoDel): large flows do not
    /// delay small ones in other queues. The bound of delay is then that of the slice as a whole.
    #[serde(default)]
    #[schema(default = false)]
    pub flow_queueing: bool,
    /// Flows above a rate are recognised, and reported as events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elephants: Option<ElephantTerms>,
}

/// Flows that a gateway follows at most in one slice and direction.
const FOLLOWED_MAX: u32 = 16_384;

/// Which flows are elephants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ElephantTerms {
    /// A flow is an elephant once it has sent more than this rate in `times` intervals in a row, bit/s (L2 without FCS); until it
    /// has sent less than half of it in as many.
    #[schema(minimum = 1, maximum = 100_000_000_000_000_u64, example = 5_000_000)]
    pub rate_bps: u64,
    /// The interval, milliseconds; the rate sends at least 1522 B in it.
    #[serde(default = "default_interval_ms")]
    #[schema(minimum = 1, maximum = 3_600_000, default = 100)]
    pub interval_ms: u64,
    /// Intervals in a row.
    #[serde(default = "default_times")]
    #[schema(minimum = 1, maximum = 1_000, default = 2)]
    pub times: u32,
}

const fn default_interval_ms() -> u64 {
    100
}

const fn default_times() -> u32 {
    2
}

impl FlowTerms {
    /// Nothing is done.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Validates the numbers.
    ///
    /// # Errors
    /// The first value that is not valid.
    pub fn check(&self) -> Result<(), Invalid> {
        let Some(elephants) = &self.elephants else {
            return Ok(());
        };
        let (rate, times) = (elephants.rate_bps, elephants.times.into());
        let most = BitRate::MAX.bits_per_second();
        check_range(rate, 1..=most, "/elephants/rate_bps")?;
        let interval = elephants.interval_ms;
        check_range(interval, 1..=INTERVAL_MAX_MS, "/elephants/interval_ms")?;
        check_range(times, 1..=TIMES_MAX.into(), "/elephants/times")?;
        if elephants.threshold_bytes() < FRAME_BYTES {
            let rate = BitRate::new(rate);
            let problem = format!(
                "{rate} does not send a frame of {FRAME_BYTES} B in {} ms: a longer interval or a higher rate is needed",
                elephants.interval_ms
            );
            return Err(Invalid::new("/elephants/interval_ms", problem));
        }
        Ok(())
    }
}

impl ElephantTerms {
    /// Flows above the rate that fit on a link, each of which needs a counter.
    ///
    /// # Errors
    /// If they are more than a gateway follows.
    pub fn flows_on(&self, link: BitRate) -> Result<u32, Invalid> {
        let flows = link.bits_per_second().div_ceil(self.rate_bps.max(1));
        let few = u32::try_from(flows)
            .ok()
            .filter(|&flows| flows <= FOLLOWED_MAX);
        few.ok_or_else(|| {
            let rate = BitRate::new(self.rate_bps);
            let problem = format!(
                "{flows} flows above {rate} fit on a link of {link}, and {FOLLOWED_MAX} can be followed: a higher rate is needed"
            );
            Invalid::new("/flows/elephants/rate_bps", problem)
        })
    }

    /// Returns the bytes that the rate sends in an interval.
    #[must_use]
    pub fn threshold_bytes(&self) -> u64 {
        let bits = u128::from(self.rate_bps) * u128::from(self.interval_ms) / 1_000;
        u64::try_from(bits / 8).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn defaults_are_filled_in_and_what_is_wrong_is_named_with_its_place() {
        let read = |value| serde_json::from_value::<FlowTerms>(value).unwrap();
        assert!(read(json!({})).is_default());
        let elephants = read(json!({"elephants": {"rate_bps": 5_000_000}}));
        assert!(elephants.check().is_ok());
        assert_eq!(elephants.elephants.unwrap().threshold_bytes(), 62_500);
        let wrong = [
            json!({"rate_bps": 0}),
            json!({"rate_bps": 1_000_000, "interval_ms": 0}),
            json!({"rate_bps": 1_000_000, "times": 1_001}),
            json!({"rate_bps": 1_000_000, "interval_ms": 12}),
        ];
        let problems = wrong.map(|elephants| {
            let terms = read(json!({"elephants": elephants}));
            terms.check().unwrap_err().to_string()
        });
        insta::assert_snapshot!(problems.join("\n"), @"
        /elephants/rate_bps: 0 is outside 1 to 100000000000000
        /elephants/interval_ms: 0 is outside 1 to 3600000
        /elephants/times: 1001 is outside 1 to 1000
        /elephants/interval_ms: 1 Mbit/s does not send a frame of 1522 B in 12 ms: a longer interval or a higher rate is needed
        ");
    }
}
