//! The rate of a port, as written: one, steps, or a trace.

use crate::file::{Decode, Entry, Problems, Schemas, Value};
use crate::settings;
use crate::spec::{At, PassingRate};
use serde_json::{Value as Json, json};
use slicewise_traffic::RateSeries;
use slicewise_units::{BitRate, Duration};
use std::sync::Arc;

/// Rate of a port, as written.
#[derive(Debug, Clone)]
pub(crate) enum PortRateSpec {
    Constant(BitRate),
    Steps(Vec<StepSpec>),
    Trace(TraceSpec),
}

settings! {
    /// A rate from a moment on.
    struct StepSpec as "RateStepSpec", strict {
        /// When, from the beginning of the run; the first at 0 s.
        [required] at: Duration,
        /// The rate until the next step; 0 bit/s for an outage.
        [required] rate: Option<BitRate>,
    }
}

settings! {
    /// Rates from a file.
    struct TraceSpec as "RateTraceSpec", strict {
        /// The file, relative to this one, in the format of Mahimahi: a line for each 1500 B that may pass, with the time in
        /// milliseconds; it repeats after the last.
        [required] trace: At<String>,
    }
}

impl Decode for PortRateSpec {
    fn decode(entry: Entry<'_>, problems: &mut Problems) -> Option<Self> {
        match &entry.node.value {
            Value::List(_) => Vec::decode(entry, problems).map(Self::Steps),
            Value::Mapping(_) => TraceSpec::decode(entry, problems).map(Self::Trace),
            Value::Null | Value::Scalar(_) => {
                PassingRate::decode(entry, problems).map(|rate| Self::Constant(rate.0))
            }
        }
    }

    fn schema(schemas: &mut Schemas) -> Json {
        let rate = PassingRate::schema(schemas);
        let steps = Vec::<StepSpec>::schema(schemas);
        json!({ "anyOf": [rate, steps, TraceSpec::schema(schemas)] })
    }
}

impl PortRateSpec {
    /// The rate, where it is one.
    pub(super) const fn constant(&self) -> Option<BitRate> {
        match self {
            Self::Constant(rate) => Some(*rate),
            Self::Steps(_) | Self::Trace(_) => None,
        }
    }

    pub(super) const fn is_trace(&self) -> bool {
        matches!(self, Self::Trace(_))
    }
}

/// Rates of a port that change.
pub(super) struct PortSeries {
    pub(super) rates: Arc<RateSeries>,
    /// Their mean over the run: the rate of the port, where one is needed.
    pub(super) mean: BitRate,
}
