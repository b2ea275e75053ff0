//! Elephants: flows above a rate, which wait in a queue of their own.

use crate::RateSpec;
use slicewise_units::{ByteCount, Duration};

/// Most flows that a class follows.
pub const FOLLOWED_MAX: u32 = 1 << 20;

/// How flows above the rate are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detector {
    /// A counter for each flow, which a controller reads at the end of every interval.
    Counters,
    /// A counter for each of the largest flows, which tells at once that a flow has exceeded the rate.
    HeavyHitters,
}

/// Treatment of elephants, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElephantsSpec {
    /// The named queue that they wait in.
    pub queue: String,
    /// A flow above it is an elephant.
    pub rate: RateSpec,
    /// How they are found.
    pub detector: Detector,
    /// Time over which bytes of flows are counted; default by detector.
    pub interval: Option<Duration>,
    /// Intervals in a row above the rate that make a flow an elephant; as many below half of it end that. Default 2.
    pub times: Option<u32>,
    /// Flows with a counter; default by detector.
    pub flows: Option<u32>,
}

/// Validated [`ElephantsSpec`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElephantsParams {
    /// The named queue that they wait in.
    pub queue: String,
    /// Bytes in an interval (L2 without FCS): a flow above has exceeded the rate.
    pub threshold: ByteCount,
    /// How they are found.
    pub detector: Detector,
    /// Time over which bytes of flows are counted: from each multiple of it to the next. Not zero.
    pub interval: Duration,
    /// Intervals in a row above the rate that make a flow an elephant; as many below half of it end that. Not zero.
    pub times: u32,
    /// Flows with a counter, 1 to [`FOLLOWED_MAX`].
    pub flows: u32,
}
