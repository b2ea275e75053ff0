//! Elephants when a policy is replaced: tags are kept, and flows that are moving go on or are drained.

use crate::build::ClassState;
use crate::queue::{FramePool, QueuedFrame};
use crate::scheduler::{QueueId, Tree};
use crate::slots::Slots;

/// Queues that are kept, old → new, and queues that are drained.
pub(super) struct Matched {
    pub(super) kept: Vec<(QueueId, QueueId)>,
    pub(super) drained: Vec<QueueId>,
}

impl Matched {
    fn is_kept(&self, old: [QueueId; 2], new: [QueueId; 2]) -> bool {
        let mut pairs = old.into_iter().zip(new);
        pairs.all(|pair| self.kept.contains(&pair))
    }

    /// Frames of one flow may lie in both queues of a class, and aside: either both queues are kept for its successor, or
    /// all these frames are drained. So are those of a class that shares a queue with such a class.
    pub(super) fn keep_together(
        &mut self,
        tree: &Tree,
        (old, new): (&Slots<ClassState>, &Slots<ClassState>),
        with_elephants: &[u32],
        successor_of: impl Fn(usize) -> Option<usize>,
    ) {
        loop {
            let before = self.kept.len();
            for index in with_elephants.iter().map(|&class| class as usize) {
                let elephants = old.get(index).and_then(ClassState::elephants);
                let Some(elephants) = elephants.filter(|it| it.has_moved()) else {
                    continue;
                };
                let successor = successor_of(index).and_then(|index| new.get(index)?.elephants());
                let kept = successor.is_some_and(|new| {
                    new.params == elephants.params && self.is_kept(elephants.queues, new.queues)
                });
                if !kept {
                    let queues = elephants.queues;
                    self.kept.retain(|(queue, _)| !queues.contains(queue));
                    self.drained
                        .extend(queues.iter().filter(|&&queue| tree.packets(queue) > 0));
                }
            }
            if self.kept.len() == before {
                break;
            }
        }
        self.drained.sort_unstable();
        self.drained.dedup();
    }
}

/// The frames aside of all classes that are not kept with their queues.
pub(super) fn take_drained(
    classes: &mut Slots<ClassState>,
    with_elephants: &[u32],
    kept: &[(QueueId, QueueId)],
    pool: &mut FramePool,
) -> Vec<QueuedFrame> {
    let mut frames = Vec::new();
    for &class in with_elephants {
        let class = classes.get_mut(class as usize);
        if let Some(elephants) = class.and_then(ClassState::elephants_mut)
            && kept.iter().all(|(old, _)| *old != elephants.queues[0])
        {
            frames.extend(elephants.take_aside(pool));
        }
    }
    frames
}

/// Every class of `new` that moves elephants goes on with those of its predecessor, given by position. Returns how many
/// frames are aside.
pub(super) fn resume(
    (old, new): (&mut Slots<ClassState>, &mut Slots<ClassState>),
    with_elephants: &[u32],
    kept: &[(QueueId, QueueId)],
    successor_of: impl Fn(usize) -> Option<usize>,
    tree: &mut Tree,
) -> u32 {
    let mut aside = 0;
    for index in with_elephants.iter().map(|&class| class as usize) {
        if let Some(successor) = successor_of(index)
            && let Some(old) = old.get_mut(index).and_then(ClassState::elephants_mut)
            && let Some(new) = new.get_mut(successor).and_then(ClassState::elephants_mut)
        {
            // The queue of elephants is kept with it, or has no frame of the class.
            let is_kept = kept.contains(&(old.queues[0], new.queues[0]));
            // Frames aside keep the number of their class.
            debug_assert!(
                !is_kept || successor == index,
                "those before it are the same"
            );
            aside += new.resume_from(old, is_kept, tree);
        }
    }
    aside
}
