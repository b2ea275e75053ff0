//! Populations as written: many equal slices of one class, for studies of scale.

use super::containers::List;
use super::scalar::Text;
use super::words::PopulationPattern;
use schemars::JsonSchema;
use serde::Deserialize;
use slicewise_units::{ByteCount, Duration};

/// The slices that a class of the same name stands for, and what each of them sends. Measured
/// together, as the slice of that name. Scenarios set their number.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PopulationSpec {
    /// What each slice sends: `backlog` (there is always a frame waiting) or `bursts` (all slices
    /// of the population send their burst at the same moment, again and again).
    pub(crate) sends: Option<Text<PopulationPattern>>,
    /// Length of its frames, L2 without FCS.
    pub(crate) frame: Option<Text<ByteCount>>,
    /// Bytes of a burst: as many whole frames as fit.
    pub(crate) burst: Option<Text<ByteCount>>,
    /// Time from burst to burst.
    pub(crate) every: Option<Text<Duration>>,
    /// Weights in the excess, given to the slices in turn, instead of the class's.
    #[serde(default)]
    pub(crate) weights: List<Text<u32>>,
}
