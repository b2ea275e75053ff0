//! The queues of a policy, and how much frame memory each takes.

use crate::frame_memory::FRAME_BYTES_PER_CHUNK;
use slicewise_model::{Discipline, PolicyParams, QueueLimitParams};

/// A queue, and who uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Queue {
    /// Its name, as its share of the memory is called.
    pub(super) name: String,
    /// Its classes: one, except under the discipline FIFO.
    pub(super) classes: Vec<String>,
    /// Maximum number of frames in it.
    pub(super) frames: u64,
    /// Chunks that it takes when it is full of frames of maximum size.
    pub(super) chunks: u64,
}

/// The queues of a policy, if a frame of maximum size takes `frame_chunks`.
pub(super) fn queues(policy: &PolicyParams, frame_chunks: u32) -> Vec<Queue> {
    let mut queues = Vec::new();
    collect(policy, "", frame_chunks, &mut queues);
    queues
}

fn collect(policy: &PolicyParams, path: &str, frame_chunks: u32, queues: &mut Vec<Queue>) {
    let mut shared = Vec::new();
    for class in &policy.classes {
        let name = match path {
            "" => class.name.clone(),
            path => format!("{path}/{}", class.name),
        };
        match &class.child {
            Some(child) => collect(child, &name, frame_chunks, queues),
            None if policy.discipline == Discipline::Fifo => shared.push(name),
            None => {
                let classes = vec![name.clone()];
                queues.push(Queue::new(name, classes, class.queue_limit, frame_chunks));
            }
        }
    }
    if let (Some(last), Some(name)) = (policy.classes.last(), shared.last().cloned()) {
        queues.push(Queue::new(name, shared, last.queue_limit, frame_chunks));
    }
}

impl Queue {
    fn new(name: String, classes: Vec<String>, limit: QueueLimitParams, frame_chunks: u32) -> Self {
        // A flow queue takes a frame before it drops another.
        let frames = u64::from(limit.packets) + 1;
        // Each frame begins a chunk, and continues in others that it fills.
        let filled = limit.bytes.bytes() / FRAME_BYTES_PER_CHUNK as u64;
        Self {
            name,
            classes,
            frames,
            chunks: (frames * u64::from(frame_chunks)).min(frames.saturating_add(filled)),
        }
    }
}
