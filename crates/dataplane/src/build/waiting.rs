//! Queues and classes that share the rate of a policy, and the queues that its classes use.

use super::Owner;
use crate::scheduler::QueueId;
use slicewise_model::{ClassParams, Colour, NamedQueueParams, Rate};
use slicewise_units::ByteCount;

/// Owner of a part of a policy's rate: a class, or a named queue.
pub(super) struct Waiting {
    pub(super) owner: Owner,
    /// Of strict priority.
    pub(super) level: Option<u8>,
    pub(super) minimum: Option<(Rate, ByteCount)>,
    pub(super) weight: u32,
    /// The queue, if its active flows count.
    pub(super) counted: Option<QueueId>,
}

impl Waiting {
    pub(super) fn of_class(class: &ClassParams, path: String) -> Self {
        Self {
            owner: Owner::Class(path),
            level: class.priority.map(|priority| priority.level),
            minimum: class.minimum,
            weight: class.weight,
            counted: None,
        }
    }

    pub(super) fn of_queue(
        queue: &NamedQueueParams,
        path: String,
        counted: Option<QueueId>,
    ) -> Self {
        Self {
            owner: Owner::Queue(path),
            level: queue.priority.map(|priority| priority.level),
            minimum: queue.minimum,
            weight: queue.weight,
            counted,
        }
    }
}

/// Named queues that a class uses.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedQueues {
    /// The queue of the class.
    pub(super) base: Option<QueueId>,
    /// Those that the colours of its meter choose.
    pub(super) by_colour: [Option<QueueId>; Colour::ALL.len()],
    /// The queue of its elephants.
    pub(super) elephants: Option<QueueId>,
}
