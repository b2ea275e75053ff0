//! Prefetches the state that frames will need before their turn, so that reads of many frames overlap.

use super::{BURST, DataPath};
use crate::guaranteed::SliceId;
use crate::scheduler::Leaf;
use slicewise_units::Instant;
use slicewise_wire::Headers;

impl DataPath {
    /// Prefetch what frames of these classes will need, as those of many slices are not in the processor's caches.
    #[inline(never)]
    pub(crate) fn arrivals_ahead(&mut self, classes: &[u32], headers: &[Headers]) {
        if self.built.has_places {
            self.places_ahead(classes, headers);
        }
        let mut slices = [SliceId::new(u32::MAX); BURST];
        for (slice, &class) in slices.iter_mut().zip(classes) {
            if let Some(class) = self.built.classes.get(class as usize) {
                *slice = class.queue.slice();
            }
        }
        if let Some(leaf) = self.built.slices_leaf
            && let Some(Leaf::Guaranteed(scheduler)) = self.built.tree.leaf_mut(leaf)
        {
            scheduler.arrivals_ahead(&slices[..classes.len()], &self.pool);
        }
    }

    /// Prefetch what the next frames will need to leave.
    #[inline(never)]
    pub(crate) fn departures_ahead(&mut self, now: Instant) {
        if let Some(leaf) = self.built.slices_leaf
            && let Some(Leaf::Guaranteed(scheduler)) = self.built.tree.leaf_mut(leaf)
        {
            let (classes, found) = scheduler.departures_ahead(&self.pool, now);
            let class = |class: &u32| self.built.classes.get(*class as usize);
            let classes = classes[..found].iter().filter_map(class);
            let sent = classes.fold(0, |sum, class| sum ^ class.counters.sent_frames);
            std::hint::black_box(sent);
        }
    }

    /// The same for frames that wait in hierarchies.
    fn places_ahead(&self, classes: &[u32], headers: &[Headers]) {
        for (&class, headers) in classes.iter().zip(headers) {
            if let Some(class) = self.built.classes.get(class as usize)
                && let Some(places) = class.places()
                && let Some(scheduler) = self.built.tree.hqos(class.queue)
            {
                scheduler.arrivals_ahead(std::iter::once(places.of(headers)), &self.pool);
            }
        }
    }
}
