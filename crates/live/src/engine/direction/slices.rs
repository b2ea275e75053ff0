//! Single slices of a direction, which come, change and go while frames are forwarded.

use super::super::division::share_name;
use super::super::flows::{MOST_WATCHED, Watched};
use super::super::queues::chunks_of_queue;
use super::Direction;
use crate::frame_memory::FrameMemory;
use crate::histogram::Histogram;
use slicewise_dataplane::{
    ClassCounters, FlowsSeen, SliceChange, SliceChangeError, SliceChanged, Step,
};
use slicewise_model::TenantParams;
use slicewise_units::Instant;

/// Slices that are found to be gone in one round.
const MOST_GONE: usize = 8;

impl Direction {
    /// Returns whether [`change_slice`](Self::change_slice) would carry out a change now.
    pub(in super::super) fn check_slice(
        &mut self,
        change: &SliceChange,
        now: Instant,
    ) -> Result<(), SliceChangeError> {
        self.pipeline.check_slice_change(change, now)
    }

    /// Let the slice of a change belong to a tenant.
    pub(in super::super) fn set_tenant(
        &mut self,
        change: &mut SliceChange,
        tenant: &TenantParams,
        now: Instant,
    ) -> Result<(), SliceChangeError> {
        let params = match change {
            SliceChange::Add(slice) => &mut slice.params,
            SliceChange::Change { params, .. } => params,
            SliceChange::Conditioning { .. }
            | SliceChange::Flows { .. }
            | SliceChange::Matches { .. }
            | SliceChange::Remove { .. }
            | SliceChange::Purge { .. } => return Ok(()),
        };
        params.tenant = self.pipeline.tenant(tenant, now)?;
        Ok(())
    }

    /// Carry out a step towards another policy. A slice that is removed is not reported: nobody asked for that one.
    pub(in super::super) fn carry_out(
        &mut self,
        step: Step,
        memory: &mut FrameMemory,
        frame_chunks: u32,
        now: Instant,
    ) -> Result<(), SliceChangeError> {
        match step {
            Step::Tenant(tenant) => self.pipeline.tenant(&tenant, now).map(drop),
            Step::Slice(change) => {
                let changed = self.change(change, false, memory, frame_chunks, now);
                changed.map(drop)
            }
        }
    }

    /// Carry out a change of one slice that somebody asks for: if that removes it, it is reported once it is gone. Work: O(1).
    pub(in super::super) fn change_slice(
        &mut self,
        change: SliceChange,
        memory: &mut FrameMemory,
        frame_chunks: u32,
        now: Instant,
    ) -> Result<SliceChanged, SliceChangeError> {
        self.change(change, true, memory, frame_chunks, now)
    }

    /// A change of one slice, which somebody asks for or not. Its part of the memory and its delays follow.
    fn change(
        &mut self,
        change: SliceChange,
        is_asked_for: bool,
        memory: &mut FrameMemory,
        frame_chunks: u32,
        now: Instant,
    ) -> Result<SliceChanged, SliceChangeError> {
        let follow = match &change {
            SliceChange::Add(slice) => {
                let chunks = chunks_of_queue(slice.params.queue_limit, frame_chunks);
                let name = slice.name.clone();
                let before = self.pipeline.retired_class(&name);
                Follow::Add(name, chunks, slice.is_of_policy, before)
            }
            SliceChange::Change { params, .. } => {
                Follow::Change(chunks_of_queue(params.queue_limit, frame_chunks))
            }
            SliceChange::Conditioning { .. }
            | SliceChange::Flows { .. }
            | SliceChange::Matches { .. }
            | SliceChange::Purge { .. } => Follow::Nothing,
            SliceChange::Remove { name } => Follow::Remove(name.clone()),
        };
        let changed = self.pipeline.change_slice(change, now)?;
        self.release_dropped(memory);
        let class = changed.class;
        match follow {
            Follow::Add(name, chunks, is_of_policy, before) => {
                let shares = memory.shares_mut();
                let share = if is_of_policy {
                    shares.join(&share_name(self.name, &name), chunks)
                } else {
                    shares.add(&name, chunks)
                };
                match before {
                    Some(_) => self.of_classes.go_on(class, share),
                    None => self.of_classes.begin(class, share),
                }
            }
            Follow::Change(chunks) => {
                let share = self.of_classes.share(class);
                share
                    .iter()
                    .for_each(|&share| memory.shares_mut().want(share, chunks));
            }
            Follow::Nothing => {}
            Follow::Remove(name) => {
                let removals = self.removing.entry(name).or_default();
                removals.push_back(is_asked_for);
                let share = self.of_classes.take_share(class);
                share
                    .iter()
                    .for_each(|&share| memory.shares_mut().remove(share));
            }
        }
        Ok(changed)
    }

    /// Returns whether a slice was removed and frames of it may still wait.
    #[inline]
    pub(in super::super) fn is_removing(&self) -> bool {
        self.pipeline.is_removing()
    }

    /// The final counters of slices that were removed one by one and whose last frame has left since this was last asked, a few at
    /// a time.
    pub(in super::super) fn poll_removed(&mut self, now: Instant, gone: &mut Vec<ClassCounters>) {
        for _ in 0..MOST_GONE {
            let Some(counters) = self.pipeline.poll_removed(now) else {
                return;
            };
            self.forget(counters, gone);
        }
    }

    fn forget(&mut self, counters: ClassCounters, gone: &mut Vec<ClassCounters>) {
        self.counters.dropped_by_removed_frames += counters.dropped_total();
        // One of this name may have been added and removed since: each ended before the next began.
        let Some(removals) = self.removing.get_mut(&counters.class) else {
            return;
        };
        let is_asked_for = removals.pop_front().unwrap_or_default();
        if removals.is_empty() {
            self.removing.remove(&counters.class);
        }
        if is_asked_for {
            gone.push(counters);
        }
    }

    /// All of them, before a whole policy is replaced.
    pub(super) fn finish_removed(&mut self, now: Instant, gone: &mut Vec<ClassCounters>) {
        while let Some(counters) = self.pipeline.poll_removed(now) {
            self.forget(counters, gone);
        }
    }

    /// A whole policy was replaced, `replaced` with what it has counted of classes that are gone: frames of removed
    /// slices wait before all others now, without a guarantee, so those slices are gone.
    pub(super) fn forget_removed(
        &mut self,
        replaced: &[ClassCounters],
        now: Instant,
        gone: &mut Vec<ClassCounters>,
    ) {
        self.finish_removed(now, gone);
        for (name, removals) in std::mem::take(&mut self.removing) {
            if !removals.contains(&true) {
                continue;
            }
            let is_of = |class: &&ClassCounters| class.class == name;
            let counters = replaced.iter().find(is_of).cloned();
            let counters = counters.or_else(|| self.pipeline.counters().find(is_of).cloned());
            gone.push(counters.unwrap_or(ClassCounters {
                class: name,
                ..ClassCounters::default()
            }));
        }
    }

    /// Watch the flows of these slices from here on; returns those that were watched until now.
    pub(in super::super) fn watch(&mut self, names: &[String]) -> Vec<Watched> {
        let pipeline = &self.pipeline;
        let found = names.iter().filter_map(|name| {
            let class = pipeline.class_of(name)?;
            Some(Watched::new(name.clone(), class))
        });
        let watched = found.take(MOST_WATCHED).collect();
        std::mem::replace(&mut self.watched, watched)
    }

    /// Returns what is known of the flows of slices that are counted, among at most `most` classes from number `from` on.
    pub(in super::super) fn poll_flows(
        &mut self,
        from: u32,
        most: u32,
        now: Instant,
    ) -> Vec<(String, FlowsSeen)> {
        let classes = from..from.saturating_add(most);
        let seen = classes.filter_map(|class| {
            let seen = self.pipeline.poll_flows(class, now)?;
            let name = &self.pipeline.class_counters(class)?.class;
            Some((name.clone(), seen))
        });
        seen.collect()
    }

    /// At most `most` classes from number `from` on, each with how long its frames waited, and the number of the next;
    /// `None` after the last.
    pub(in super::super) fn classes_from(
        &self,
        from: u32,
        most: u32,
    ) -> (Vec<(ClassCounters, Histogram)>, Option<u32>) {
        let all = u32::try_from(self.of_classes.len()).unwrap_or(u32::MAX);
        let end = from.saturating_add(most).min(all);
        let classes = (from..end).filter_map(|class| {
            let (counters, delay) = self.class(class)?;
            let is_used = !counters.class.is_empty();
            is_used.then(|| (counters.clone(), delay.clone()))
        });
        (classes.collect(), (end < all).then_some(end))
    }
}

/// Consequences of a change of a slice.
enum Follow {
    /// Its name, its part of the memory, whether it is of the policy, and the class of this name that a commit removed.
    Add(String, u64, bool, Option<u32>),
    Change(u64),
    Nothing,
    /// Its name.
    Remove(String),
}
