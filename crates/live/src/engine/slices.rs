//! Changes of single slices in both directions.

use super::Engine;
use super::flows::{FlowCount, FlowKey};
use crate::histogram::Histogram;
use slicewise_dataplane::{ClassCounters, FlowsSeen, SliceChange, SliceChangeError, SliceChanged};
use slicewise_model::TenantParams;
use slicewise_units::{BothWays, Duration, Instant, Way};

/// A change of a slice in both directions, or in one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DirectedChange {
    /// Change in each direction.
    pub directions: BothWays<Option<SliceChange>>,
    /// The tenant that the slice belongs to, which is added if there is none of this name: `tenant` of the parameters is
    /// replaced by its number. `None` to leave it as it is stated there.
    pub tenant: Option<TenantParams>,
}

/// Why a change was carried out in no direction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{direction}: {error}")]
pub struct NotChanged {
    /// The direction that refuses it.
    pub direction: Way,
    /// Why.
    pub error: SliceChangeError,
}

/// A slice that was removed, and whose last frame has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoneSlice {
    /// The direction it was in.
    pub direction: Way,
    /// Its final counters, with its name.
    pub counters: ClassCounters,
}

/// Some classes of a direction, and what they have counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassesCounted {
    /// The direction.
    pub direction: Way,
    /// When they were counted.
    pub at: Instant,
    /// With the first class: how long frames of all classes waited.
    pub delay: Option<Histogram>,
    /// Link time that the direction has lost.
    pub lost_link_time: Duration,
    /// Each with how long its frames waited.
    pub classes: Vec<(ClassCounters, Histogram)>,
    /// Slices among them whose [flows are counted](SliceChange::Flows), and what is known of these.
    pub flows: Vec<(String, FlowsSeen)>,
    /// The number of the class to go on with; `None` after the last.
    pub next: Option<u32>,
}

/// The flows of a slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowsCounted {
    /// Its name.
    pub name: String,
    /// The direction.
    pub direction: Way,
    /// Counts of each, in no order.
    pub flows: Vec<(FlowKey, FlowCount)>,
}

impl Engine {
    /// Count the flows of some slices from here on; returns what was counted of those that were named before.
    pub fn watch_flows(&mut self, names: &[String]) -> Vec<FlowsCounted> {
        let mut counted = Vec::new();
        for (direction, at) in self.directions.iter_mut() {
            let before = at.watch(names).into_iter();
            counted.extend(before.map(|watched| FlowsCounted {
                name: watched.name.clone(),
                direction,
                flows: watched.into_flows(),
            }));
        }
        counted
    }

    /// Change a slice in the directions that are named, in all of them or in none, while frames wait: nothing queued is
    /// lost or reordered. A slice that is added gets a part of the frame memory. Work: O(1).
    ///
    /// # Errors
    /// Why the first direction that refuses it does; nothing has changed then.
    pub fn change_slice(
        &mut self,
        change: DirectedChange,
        now: Instant,
    ) -> Result<BothWays<Option<SliceChanged>>, NotChanged> {
        let DirectedChange {
            directions: mut changes,
            tenant,
        } = change;
        let not_changed = |direction| move |error| NotChanged { direction, error };
        if let Some(tenant) = &tenant {
            for (way, change) in changes.iter_mut() {
                if let Some(change) = change {
                    let named = self.directions[way].set_tenant(change, tenant, now);
                    named.map_err(not_changed(way))?;
                }
            }
        }
        // What the last direction would refuse is known before the first has changed.
        if let Some(change) = &changes.backward {
            let checked = self.directions.backward.check_slice(change, now);
            checked.map_err(not_changed(Way::Backward))?;
        }
        let mut done = BothWays::default();
        let frame_chunks = self.needs.frame_chunks;
        for (way, change) in changes {
            if let Some(change) = change {
                let memory = &mut self.memory;
                let changed = self.directions[way].change_slice(change, memory, frame_chunks, now);
                debug_assert!(way == Way::Forward || changed.is_ok(), "it was checked");
                done[way] = Some(changed.map_err(not_changed(way))?);
            }
        }
        Ok(done)
    }

    /// A slice that was removed and whose last frame has left since this was last asked.
    pub fn poll_gone(&mut self) -> Option<GoneSlice> {
        self.gone.pop_front()
    }

    /// Look for slices whose last frame has left. Work: bounded.
    #[inline]
    pub(super) fn find_gone(&mut self, now: Instant) {
        let mut counters = Vec::new();
        for (side, direction) in self.directions.iter_mut() {
            if direction.is_removing() {
                direction.poll_removed(now, &mut counters);
                self.gone
                    .extend(counters.drain(..).map(|counters| GoneSlice {
                        direction: side,
                        counters,
                    }));
            }
        }
    }

    /// Returns what at most `most` classes of a direction have counted, from number `from` on. Work: O(`most`), and O(elephants) of
    /// slices where these are recognised.
    #[must_use]
    pub fn count_classes(
        &mut self,
        direction: Way,
        from: u32,
        most: u32,
        now: Instant,
    ) -> ClassesCounted {
        let found = &mut self.directions[direction];
        let flows = found.poll_flows(from, most, now);
        let (classes, next) = found.classes_from(from, most);
        ClassesCounted {
            direction,
            at: now,
            delay: (from == 0).then(|| found.delay().clone()),
            lost_link_time: found.counters().lost_link_time,
            classes,
            flows,
            next,
        }
    }
}
