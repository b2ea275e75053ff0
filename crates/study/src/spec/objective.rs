//! What a slice needs, as written.

use super::scalar::{NUMBER, Percent, Scalar, TIME_UNITS, Text};
use schemars::{JsonSchema, Schema, json_schema};
use serde::Deserialize;
use serde_json::{Value, json};
use slicewise_stats::objective::{DelayLimit, Percentile};
use slicewise_units::{BitRate, Duration};

/// What a slice needs in absolute terms. Isolation is then judged by whether it gets that.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("anyOf" = one_of_these_is_required()))]
pub(crate) struct ObjectiveSpec {
    /// Largest one-way delay, at a percentile: `5 ms at 99 %`. Without one, at 99.9 %.
    pub(crate) delay: Option<Text<DelayLimit>>,
    /// Largest packet delay variation (RFC 5481: delay less the smallest), at a percentile. Without
    /// one, at 99.9 %.
    pub(crate) delay_variation: Option<Text<DelayLimit>>,
    /// Largest loss, in percent of all packets.
    pub(crate) loss: Option<Text<PartOfAll>>,
    /// Least rate received, of L2 frames without FCS.
    pub(crate) throughput: Option<Text<BitRate>>,
    /// Least share of intervals (`measure.bin`) in which all of the above are met.
    pub(crate) availability: Option<Text<PartOfAll>>,
}

/// Availability alone is of nothing.
fn one_of_these_is_required() -> Value {
    let keys = ["delay", "delay_variation", "loss", "throughput"];
    keys.map(|key| json!({ "required": [key] }))
        .into_iter()
        .collect()
}

/// A percentage of all there is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PartOfAll(pub(crate) f64);

impl Scalar for PartOfAll {
    const NAME: &'static str = "PercentOfAll";

    fn from_text(text: &str) -> Result<Self, String> {
        let percent = Percent::from_text(text)?;
        if percent.0 > Percent::ALL.0 {
            return Err("this is more than 100 %".to_owned());
        }
        Ok(Self(percent.fraction()))
    }

    fn schema() -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^\\s*0*(100(\\.0+)?|[0-9]{1,2}(\\.[0-9]{1,3}0*)?)\\s*%\\s*$",
            "examples": ["0.1 %"],
        })
    }
}

/// The percentile of a delay that states none (ITU-T Y.1541 takes this one for delay variation).
const DEFAULT_PERCENTILE: Percentile = Percentile::P999;

impl Scalar for DelayLimit {
    const NAME: &'static str = "DelayLimit";

    fn from_text(text: &str) -> Result<Self, String> {
        let (delay, at) = match text.split_once(" at ") {
            Some((delay, at)) => (delay, percentile(at)?),
            None => (text, DEFAULT_PERCENTILE),
        };
        let limit = Duration::from_text(delay.trim())?;
        if limit == Duration::ZERO {
            return Err("a delay of zero cannot be met".to_owned());
        }
        Ok(Self {
            limit_ns: limit.nanos(),
            at,
        })
    }

    fn schema() -> Schema {
        let percentiles = "\\s*(0*(50|90|95|99|100)(\\.0+)?|0*99\\.(9|99|999)0*)\\s*%";
        json_schema!({
            "type": "string",
            // Some digit of the delay is not 0.
            "pattern": format!("^(?=[0-9_.\\s]*[1-9])\\s*{NUMBER}\\s*({TIME_UNITS})(\\s* at {percentiles})?\\s*$"),
            "examples": ["5 ms at 99 %", "2 ms"],
        })
    }
}

fn percentile(text: &str) -> Result<Percentile, String> {
    let percent = Percent::from_text(text)?;
    let found = Percentile::ALL
        .iter()
        .find(|p| p.per_100_000() == percent.0);
    found.copied().ok_or_else(|| {
        let known: Vec<String> = Percentile::ALL.iter().map(ToString::to_string).collect();
        format!(
            "`{}` is not a measured percentile: use one of {}",
            text.trim(),
            known.join(", ")
        )
    })
}
