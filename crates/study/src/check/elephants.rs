//! Elephants of classes, and the queue that they wait in.

use super::police::NO_RATE;
use crate::settings;
use crate::spec::{At, Reference};
use slicewise_model::{Detector, ElephantsSpec};

/// Settings for the model, and where the queue is named.
#[derive(Debug, Clone)]
pub(super) struct Elephants {
    pub(super) queue: Option<At<Reference>>,
    spec: ElephantsSpec,
}

settings! {
    /// Flows above a rate, which wait in a queue of their own.
    impl Elephants as "ElephantsFileSpec", strict = Self {
        queue: None,
        spec: ElephantsSpec {
            queue: String::new(),
            rate: NO_RATE,
            detector: Detector::HeavyHitters,
            interval: None,
            times: None,
            flows: None,
        },
    };
    {
        /// The queue of the policy in which they wait.
        [required] queue,
        /// A flow above it is an elephant: a rate, or a percentage of the port.
        [required] rate => spec.rate,
        /// How they are found: `heavy_hitters` (default), as soon as it is certain, or `counters`, which are read at the
        /// end of every interval.
        detector => spec.detector,
        /// Time over which the bytes of a flow are counted. Default 2 ms, of `counters` 3 s.
        interval => spec.interval,
        /// Intervals in a row above the rate that make a flow an elephant; as many below half of it end that. Default 2.
        times => spec.times,
        /// Flows that have a counter. Default 256, of `counters` 16384.
        flows => spec.flows,
    }
}

impl Elephants {
    /// Returns the specification for the model.
    pub(super) fn spec(&self) -> ElephantsSpec {
        let queue = self.queue.as_ref();
        ElephantsSpec {
            queue: queue.map_or_else(String::new, |queue| queue.value.as_ref().to_owned()),
            ..self.spec.clone()
        }
    }
}
