//! Observations of a device's queues during a simulated run.

use serde::{Deserialize, Serialize};

/// The length of one queue, as looks at it found it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueRecord {
    /// Which device of the path, from 1.
    pub device: u32,
    /// Name of the queue; of a class with a queue of its own, that of the class.
    pub queue: String,
    /// How often it was looked at.
    pub looks: u64,
    /// Mean over these, frames.
    pub mean_frames: f64,
    /// The largest of these, frames.
    pub largest_frames: u32,
}

/// The flows of a class that moves elephants to a queue of their own, over the whole run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ElephantRecord {
    /// Which device of the path, from 1.
    pub device: u32,
    /// The class.
    pub class: String,
    /// Flows that were found to be elephants.
    pub tagged: u64,
    /// Flows that moved to the queue of elephants.
    pub moved: u64,
    /// Flows that moved back, as they were elephants no longer.
    pub moved_back: u64,
    /// Frames of flows for which there was no counter.
    pub unfollowed_frames: u64,
}
