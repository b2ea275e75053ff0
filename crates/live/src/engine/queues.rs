//! The queues of a policy, and how much frame memory each takes.

use crate::frame_memory::FRAME_BYTES_PER_CHUNK;
use slicewise_model::{ClassParams, Colour, Discipline, PolicyParams, QueueLimitParams};

/// A queue, and who uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Queue {
    /// Its name, as its share of the memory is called.
    pub(super) name: String,
    /// Its classes: one, except under the discipline FIFO and of named queues.
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

/// Chunks that a queue takes when it is full of frames of maximum size.
pub(super) fn chunks_of_queue(limit: QueueLimitParams, frame_chunks: u32) -> u64 {
    // A flow queue takes a frame before it drops another.
    let frames = u64::from(limit.packets) + 1;
    // Each frame begins a chunk, and continues in others that it fills.
    let filled = limit.bytes.bytes() / FRAME_BYTES_PER_CHUNK as u64;
    (frames * u64::from(frame_chunks)).min(frames.saturating_add(filled))
}

fn collect(policy: &PolicyParams, path: &str, frame_chunks: u32, queues: &mut Vec<Queue>) {
    let mut shared = Vec::new();
    let mut in_named = Vec::new();
    for class in &policy.classes {
        let name = path_of(path, &class.name);
        match &class.child {
            Some(child) => collect(child, &name, frame_chunks, queues),
            None if policy.discipline == Discipline::Fifo => shared.push(name),
            None if uses_named_queues(class) => in_named.push(name),
            None => {
                let classes = vec![name.clone()];
                queues.push(Queue::new(name, classes, class.queue.limit, frame_chunks));
            }
        }
    }
    queues.extend(named_queues(policy, path, in_named, frame_chunks));
    if let (Some(last), Some(name)) = (policy.classes.last(), shared.last().cloned()) {
        queues.push(Queue::new(name, shared, last.queue.limit, frame_chunks));
    }
}

fn path_of(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}/{name}"),
    }
}

/// Returns true if frames of a class may wait in named queues.
fn uses_named_queues(class: &ClassParams) -> bool {
    let mut colours = Colour::ALL.into_iter();
    let police = class.police.as_ref();
    let chosen =
        police.is_some_and(|police| colours.any(|colour| police.action(colour).queue().is_some()));
    class.named_queue.is_some() || chosen
}

/// The named queues of a policy share their memory, because memory is held by class, and a class may use several of
/// them. `classes` are those that do; a queue of their own, beside, counts too.
fn named_queues(
    policy: &PolicyParams,
    path: &str,
    classes: Vec<String>,
    frame_chunks: u32,
) -> Option<Queue> {
    if policy.queues.is_empty() {
        return None;
    }
    // No class has such a name.
    let name = path_of(path, "named queues");
    let own = policy
        .classes
        .iter()
        .filter(|class| uses_named_queues(class) && class.named_queue.is_none());
    let limits = policy.queues.iter().map(|queue| queue.queue.limit);
    let limits = limits.chain(own.map(|class| class.queue.limit));
    let parts = limits.map(|limit| Queue::new(String::new(), Vec::new(), limit, frame_chunks));
    let whole = Queue {
        name,
        classes,
        frames: 0,
        chunks: 0,
    };
    Some(parts.fold(whole, |whole, part| Queue {
        frames: whole.frames.saturating_add(part.frames),
        chunks: whole.chunks.saturating_add(part.chunks),
        ..whole
    }))
}

impl Queue {
    fn new(name: String, classes: Vec<String>, limit: QueueLimitParams, frame_chunks: u32) -> Self {
        Self {
            name,
            classes,
            frames: u64::from(limit.packets) + 1,
            chunks: chunks_of_queue(limit, frame_chunks),
        }
    }
}
