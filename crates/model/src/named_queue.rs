//! Named queues of a policy, which several classes may use.

use crate::{PriorityParams, QueueParams, QueueSpec, Rate, RateSpec, ShaperParams, ShaperSpec};
use slicewise_units::ByteCount;

/// A named queue, as written. Its settings mean what they mean for a class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedQueueSpec {
    /// Its name.
    pub name: String,
    /// Level of strict priority: 1 is served first.
    pub priority: Option<u8>,
    /// Guaranteed minimum.
    pub minimum: Option<RateSpec>,
    /// Share of the excess relative to the other queues and classes; default 1.
    pub weight: Option<u32>,
    /// The weight counts once for each active flow of the queue; only under
    /// [`Discipline::DeficitRoundRobin`](crate::Discipline::DeficitRoundRobin).
    pub per_flow: bool,
    /// Token-bucket shaping.
    pub shape: Option<ShaperSpec>,
    /// The queue itself.
    pub queue: QueueSpec,
}

impl NamedQueueSpec {
    /// A queue with nothing configured.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }
}

/// A validated queue: a named one, or that of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedQueueParams {
    /// Its name, or that of its class.
    pub name: String,
    /// Low-latency queueing.
    pub priority: Option<PriorityParams>,
    /// Guaranteed minimum and its burst.
    pub minimum: Option<(Rate, ByteCount)>,
    /// Share of the excess, at least 1.
    pub weight: u32,
    /// The weight counts once for each active flow.
    pub per_flow: bool,
    /// Token-bucket shaping.
    pub shape: Option<ShaperParams>,
    /// The queue itself.
    pub queue: QueueParams,
}
