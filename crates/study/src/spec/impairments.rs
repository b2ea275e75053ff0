//! Impairments of links as written.

use super::containers::Short;
use super::scalar::{PartsPerMillion, Scalar, Text};
use crate::file::At;
use crate::impairments::DelayDistribution;
use schemars::{JsonSchema, Schema, json_schema};
use serde::Deserialize;
use slicewise_units::Duration;

/// Loss and delay variation of the links, in simulations only.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImpairmentsSpec {
    /// Of the link from the sending host to the device.
    pub(crate) ingress: Option<At<ImpairmentSpec>>,
    /// Of the link from the device to the receiving host.
    pub(crate) egress: Option<At<ImpairmentSpec>>,
}

/// Impairments of a link. They are independent for each source, with random numbers that follow from its name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImpairmentSpec {
    /// Frames lost: a fraction of all, independently, or in bursts.
    pub(crate) loss: Option<At<Short<PartsPerMillion, BurstLossSpec>>>,
    /// Bit error ratio: a frame is lost if one of its bits is wrong.
    pub(crate) bit_errors: Option<Text<BitErrorRatio>>,
    /// Delay beyond propagation: up to this value, uniformly distributed and in order, or settings.
    pub(crate) delay_variation: Option<At<Short<Duration, DelayVariationSpec>>>,
}

/// Loss in bursts: a channel of two states that may change state after each frame of a source, as of
/// Gilbert and Elliott.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BurstLossSpec {
    /// Probability of the bad state after a frame in the good one: `p` of `netem loss gemodel`.
    pub(crate) to_bad: Option<Text<PartsPerMillion>>,
    /// Probability of the good state after a frame in the bad one: `r`. A burst has 1 / `to_good` frames
    /// on average.
    pub(crate) to_good: Option<Text<PartsPerMillion>>,
    /// Frames lost in the bad state: `1-h`. Default 100 %.
    pub(crate) in_bad: Option<Text<PartsPerMillion>>,
    /// Frames lost in the good state: `1-k`. Default 0 %.
    pub(crate) in_good: Option<Text<PartsPerMillion>>,
}

/// How delay varies.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DelayVariationSpec {
    /// Maximum added to propagation.
    pub(crate) up_to: Option<Text<Duration>>,
    /// `uniform` (default), or `normal`: around the middle, with a sixth of `up_to` as standard deviation.
    pub(crate) distribution: Option<Text<DelayDistribution>>,
    /// Whether a frame may overtake another of its source, as with netem. Default false.
    pub(crate) reorder: Option<Text<bool>>,
}

/// Wrong bits in 10¹⁵.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BitErrorRatio(pub(crate) u64);

impl Scalar for BitErrorRatio {
    const NAME: &'static str = "BitErrorRatio";

    fn from_text(text: &str) -> Result<Self, String> {
        let written = text.trim();
        let ratio: f64 = written.parse().unwrap_or(f64::NAN);
        // At one wrong bit in a hundred no frame of 64 bytes in 150 is whole.
        if !(1e-15..=0.01).contains(&ratio) && ratio != 0.0 {
            return Err(format!(
                "`{written}` is not a bit error ratio from 1e-15 to 0.01: write for example `1e-7`"
            ));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to 10^13"
        )]
        let per_1e15 = (ratio * 1e15).round() as u64;
        Ok(Self(per_1e15))
    }

    fn schema() -> Schema {
        json_schema!({
            "type": ["number", "string"],
            "minimum": 0,
            "maximum": 0.01,
            "pattern": "^ *[0-9.]+([eE]-?[0-9]+)? *$",
            "examples": [1e-7],
        })
    }
}
