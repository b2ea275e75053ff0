//! Single slices of a guaranteed policy.

use super::Pipeline;
use crate::change::{ClassMaps, SliceChange, SliceChangeError, SliceChanged, slice};
use crate::counters::ClassCounters;
use crate::slice_flows::FlowsSeen;
use slicewise_model::{PolicyParams, TenantParams};
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
        slice::change(self, change, now)
    }

    /// The number of a tenant of a guaranteed policy, for slices. It is added if there is none of this name, and has this
    /// weight from now on.
    ///
    /// # Errors
    /// If the policy has no slices, or too many tenants.
    pub fn tenant(&mut self, tenant: &TenantParams, now: Instant) -> Result<u32, SliceChangeError> {
        slice::tenant(self, tenant, now)
    }

    /// Let the slices have in common what those of `policy` have: the name, links, largest frame and delay classes. Its classes and
    /// tenants do not count. Links are as many as before and count the same. What was replaced must fit them as long as it is reserved;
    /// the caller paces what leaves to the new rate from now on. Delay classes may come, and those may go in which nothing is reserved.
    /// The largest frame accepted is at most that of the links: it becomes smaller before theirs, and larger after theirs.
    ///
    /// # Errors
    /// If there are no slices, or what is reserved does not fit. While a frame waits that is to leave under a guarantee, also for links
    /// that have less or differ otherwise; while any waits, for smaller frames and delays of another resolution; and until the last of
    /// the larger frames has left the link, for links that count smaller ones. Nothing has changed then.
    pub fn change_common(
        &mut self,
        policy: &PolicyParams,
        now: Instant,
    ) -> Result<(), SliceChangeError> {
        slice::common(self, policy, now)
    }

    /// Let slices have other class maps, in another order, all at once. Frames that get another class wait beside its queue until those
    /// have left that the slice had whose frames they were: so none is lost, and none overtakes. The change is one of
    /// [those that lead to a policy](crate::Basis::gradual_steps), and all before it have been carried out, and no others.
    ///
    /// # Errors
    /// If a slice does not exist, or frames of a class map are still on their way from an earlier change. Nothing has changed then.
    pub fn exchange_class_maps(
        &mut self,
        maps: &ClassMaps,
        now: Instant,
    ) -> Result<(), SliceChangeError> {
        slice::exchange(self, maps, now)
    }

    /// Tell the flows of a slice apart from now on: it may [have a queue for each](SliceChange::Flows) once the frames have left
    /// that wait now.
    ///
    /// # Errors
    /// If there is no such slice.
    pub fn tell_flows_apart(&mut self, slice: &str, now: Instant) -> Result<(), SliceChangeError> {
        slice::tell_flows_apart(self, slice, now)
    }

    /// Whether [`change_slice`](Self::change_slice) would carry out a change at `now`, which is the case until the next
    /// change or frame. So a change of several pipelines can be made in all of them or in none.
    ///
    /// # Errors
    /// Why it would be refused.
    pub fn check_slice_change(
        &mut self,
        change: &SliceChange,
        now: Instant,
    ) -> Result<(), SliceChangeError> {
        slice::check(self, change, now)
    }

    /// What is known of the flows of a class, and what has changed since this was last asked; `None` where
    /// [nothing is counted](SliceChange::Flows).
    pub fn poll_flows(&mut self, class: u32, now: Instant) -> Option<FlowsSeen> {
        let class = self.classes.get_mut(class as usize)?;
        let seen = class.flows_mut()?.report(now);
        if let Some(weighed) = seen.weighed {
            let queue = class.queue;
            self.tree.set_slice_weight(queue, weighed.weight);
        }
        Some(seen)
    }

    /// The final counters of a slice that was [removed](SliceChange::Remove), once its last frame has
    /// left. They are kept until they are read.
    pub fn poll_removed(&mut self, now: Instant) -> Option<ClassCounters> {
        slice::finish_some(self, now);
        self.removed.pop_front()
    }

    /// Whether [`poll_removed`](Self::poll_removed) may find one, now or later.
    #[inline]
    #[must_use]
    pub fn is_removing(&self) -> bool {
        let ledger = self.ledger.as_ref();
        let is_on_its_way =
            ledger.is_some_and(|ledger| !ledger.moving.is_empty() || ledger.exchange.is_some());
        is_on_its_way || !self.removed.is_empty()
    }

    /// The position of a slice of a guaranteed policy among
    /// [`counters`](Self::counters).
    #[must_use]
    pub fn class_of(&self, slice: &str) -> Option<u32> {
        self.ledger.as_ref()?.class_of(slice)
    }

    /// The position among [`counters`](Self::counters) of a class of this name that a commit removed while frames of it waited. A
    /// slice that gets this name goes on with what it has counted.
    #[must_use]
    pub fn retired_class(&self, name: &str) -> Option<u32> {
        self.retired.get(name).copied()
    }
}
