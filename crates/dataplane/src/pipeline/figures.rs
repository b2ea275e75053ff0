//! Counters and queue lengths of a pipeline, and its classifier.

use super::Pipeline;
use crate::classifier::Classifier;
use crate::counters::ClassCounters;
use crate::elephants::ElephantCounters;
use crate::hqos::Hqos;

impl Pipeline {
    /// Counters of every class, in the order of the policy (a class within a class in its
    /// parent's place), then of slices that were added. The place of a removed slice has no name until
    /// another slice is added there.
    pub fn counters(&self) -> impl ExactSizeIterator<Item = &ClassCounters> {
        (0..self.path.built.classes.len()).map(|class| &self.path.built.classes[class].counters)
    }

    /// Counters of one class, by its position.
    #[must_use]
    pub fn class_counters(&self, class: u32) -> Option<&ClassCounters> {
        let class = self.path.built.classes.get(class as usize);
        class.map(|class| &class.counters)
    }

    /// Classifier in force.
    #[inline]
    #[must_use]
    pub const fn classifier(&self) -> &Classifier {
        &self.path.classifier
    }

    /// Frames that all queues can hold together.
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.path.pool.capacity()
    }

    /// Frames waiting in all queues.
    #[must_use]
    pub fn backlog(&self) -> u32 {
        self.path.backlog()
    }

    /// Every queue of the policy, and the frames that wait in it: the named queues, then those of classes, by the name of the
    /// class, that of the last one where several have the same.
    pub fn queue_lengths(&self) -> impl Iterator<Item = (&str, u32)> {
        let of = |queue| self.path.built.tree.packets(queue);
        let named = self.path.built.named.iter();
        let named = named.map(move |(name, &queue)| (name.as_str(), of(queue)));
        let classes =
            (0..self.path.built.classes.len()).map(|class| &self.path.built.classes[class]);
        let next =
            (1..self.path.built.classes.len()).map(|class| Some(&self.path.built.classes[class]));
        let own = classes.zip(next.chain([None])).filter(|(class, next)| {
            let is_shared = next.is_some_and(|next| next.queue == class.queue);
            let is_named = || {
                self.path
                    .built
                    .named
                    .values()
                    .any(|named| *named == class.queue)
            };
            !class.is_unused() && !is_shared && !is_named()
        });
        let own = own.map(move |(class, _)| (class.counters.class.as_str(), of(class.queue)));
        named.chain(own)
    }

    /// The classes that wait in a hierarchy, by their positions among [`counters`](Self::counters), and the hierarchy.
    pub fn hierarchies(&self) -> impl Iterator<Item = (u32, &Hqos)> {
        let classes = (0..).zip(self.path.built.classes.iter());
        classes.filter_map(|(class, state)| Some((class, self.path.built.tree.hqos(state.queue)?)))
    }

    /// The classes whose elephants have a queue of their own, and what became of their flows.
    pub fn elephants(&self) -> impl Iterator<Item = (&str, ElephantCounters)> {
        self.path.built.with_elephants.iter().filter_map(|&class| {
            let class = self.path.built.classes.get(class as usize)?;
            let name = class.counters.class.as_str();
            Some((name, class.elephants()?.counters))
        })
    }
}
