//! How the memory for queues is divided among the queues of both directions: found beside the thread that forwards, because it
//! takes time for each of them.

use super::queues::{Queue, queues};
use crate::frame_memory::{Needs, Wanted};
use slicewise_model::PolicyParams;
use slicewise_units::{BothWays, Way};
use std::collections::HashMap;

/// Memory that the queues of both directions want.
#[derive(Debug)]
pub(super) struct Division {
    /// Of these queues.
    pub(super) needs: Needs,
    /// A share for each queue, those of the first direction first.
    pub(super) wanted: Vec<Wanted>,
    pub(super) directions: BothWays<OfDirection>,
}

/// The queues of a direction.
#[derive(Debug)]
pub(super) struct OfDirection {
    /// For each class, the position of its queue's share; `None` for a slice that was added, which keeps its own.
    pub(super) queues: Vec<Option<u32>>,
    /// Frames that all of them may have.
    pub(super) frames: u64,
}

/// Returns the name of a share of the memory.
pub(super) fn share_name(direction: &str, queue: &str) -> String {
    format!("{direction}: {queue}")
}

impl Division {
    /// For policies of which these are the classes, by their numbers. O(classes).
    pub(super) fn new<'a, I: Iterator<Item = &'a str>>(
        policies: BothWays<(&PolicyParams, I)>,
        before: Needs,
    ) -> Self {
        let mut wanted = Vec::new();
        let policies = BothWays::from(Way::ALL).zip(policies);
        let directions = policies.map(|(way, (policy, classes))| {
            let queues = queues(policy, before.frame_chunks);
            OfDirection::new(way.name(), queues, classes, &mut wanted)
        });
        let chunks = wanted.iter().map(|wanted| wanted.chunks);
        Self {
            needs: needs_of(chunks, before),
            wanted,
            directions,
        }
    }
}

impl OfDirection {
    fn new<'a>(
        name: &str,
        queues: Vec<Queue>,
        classes: impl Iterator<Item = &'a str>,
        wanted: &mut Vec<Wanted>,
    ) -> Self {
        let mut frames = 0;
        let mut queue_of: HashMap<String, u32> = HashMap::new();
        for queue in queues {
            let position = u32::try_from(wanted.len()).unwrap_or(u32::MAX);
            frames += queue.frames;
            wanted.push(Wanted {
                name: share_name(name, &queue.name),
                chunks: queue.chunks,
                is_common: queue.classes.len() > 1,
                share: None,
            });
            let classes = queue.classes.into_iter();
            queue_of.extend(classes.map(|class| (class, position)));
        }
        Self {
            queues: classes.map(|class| queue_of.get(class).copied()).collect(),
            frames,
        }
    }
}

/// Returns the needs of queues that take so many chunks when full of frames of maximum size, beside the receive queues
/// of `before`.
pub(super) fn needs_of(chunks: impl Iterator<Item = u64>, before: Needs) -> Needs {
    let (queues, queue_chunks) = chunks.fold((0, 0u64), |(queues, sum), chunks| {
        (queues + 1, sum.saturating_add(chunks))
    });
    Needs {
        queues,
        queue_chunks,
        ..before
    }
}
