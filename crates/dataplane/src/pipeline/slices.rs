//! Single slices of a guaranteed policy.

use super::Pipeline;
use crate::change::{SliceChange, SliceChangeError, SliceChanged};
use crate::counters::ClassCounters;
use crate::slice_flows::FlowsSeen;
use slicewise_model::TenantParams;
use slicewise_units::Instant;

impl Pipeline {
    /// Add, change or remove one slice of a guaranteed policy while frames wait: nothing queued is lost,
    /// reordered or reset, and the guarantees of all other slices hold. What was reserved is released
    /// when no frame waits that is to leave under a guarantee.
    ///
    /// O(1), and O(log n) in the number of changes whose frames still wait. A change prepared before is
    /// stale then.
    ///
    /// # Errors
    /// Why it is refused; everything is as it was then.
    pub fn change_slice(
        &mut self,
        change: SliceChange,
        now: Instant,
    ) -> Result<SliceChanged, SliceChangeError> {
        self.changes.change_slice(&mut self.path, change, now)
    }

    /// The number of a tenant of a guaranteed policy, for slices. It is added if there is none of this name, and has this
    /// weight from now on.
    ///
    /// # Errors
    /// If the policy has no slices, or too many tenants.
    pub fn tenant(&mut self, tenant: &TenantParams, now: Instant) -> Result<u32, SliceChangeError> {
        self.changes.tenant(&mut self.path, tenant, now)
    }

    /// Returns whether [`change_slice`](Self::change_slice) would carry out a change at `now`, which is the case until the next
    /// change or frame. So a change of several pipelines can be made in all of them or in none.
    ///
    /// # Errors
    /// Why it would be refused.
    pub fn check_slice_change(
        &mut self,
        change: &SliceChange,
        now: Instant,
    ) -> Result<(), SliceChangeError> {
        let Self { path, changes } = self;
        changes.check_slice_change(path, change, now)
    }

    /// Returns what is known of the flows of a class, and what has changed since this was last asked; `None` where
    /// [nothing is counted](SliceChange::Flows).
    pub fn poll_flows(&mut self, class: u32, now: Instant) -> Option<FlowsSeen> {
        let built = &mut self.path.built;
        let class = built.classes.get_mut(class as usize)?;
        let seen = class.flows_mut()?.report(now);
        if let Some(weighed) = seen.weighed {
            let queue = class.queue;
            built.tree.set_slice_weight(queue, weighed.weight);
        }
        Some(seen)
    }

    /// The final counters of a slice that was [removed](SliceChange::Remove), once its last frame has
    /// left. They are kept until they are read.
    pub fn poll_removed(&mut self, now: Instant) -> Option<ClassCounters> {
        self.changes.finish_some(&mut self.path, now);
        self.changes.removed.pop_front()
    }

    /// Returns whether [`poll_removed`](Self::poll_removed) may find one, now or later.
    #[inline]
    #[must_use]
    pub fn is_removing(&self) -> bool {
        let ledger = self.changes.ledger.as_ref();
        let is_under_way = ledger.is_some_and(|ledger| !ledger.handovers.is_empty());
        is_under_way || !self.changes.removed.is_empty()
    }

    /// The position of a slice of a guaranteed policy among
    /// [`counters`](Self::counters).
    #[must_use]
    pub fn class_of(&self, slice: &str) -> Option<u32> {
        self.changes.ledger.as_ref()?.class_of(slice)
    }

    /// The position among [`counters`](Self::counters) of a class of this name that a commit removed while frames of it waited. A
    /// slice that gets this name goes on with what it has counted.
    #[must_use]
    pub fn retired_class(&self, name: &str) -> Option<u32> {
        self.changes.retired.get(name).copied()
    }
}
