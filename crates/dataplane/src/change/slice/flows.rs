//! Changes of the treatment of a slice's flows.

use super::{Changing, SliceChangeError, SliceChanged};
use crate::slice_flows::{FlowWatch, SliceFlows};

impl Changing<'_> {
    /// Other terms for the flows of a slice.
    pub(super) fn flows(
        &mut self,
        name: &str,
        flows: &SliceFlows,
    ) -> Result<SliceChanged, SliceChangeError> {
        let class = self.prepare_flows(name, flows)?;
        let in_force = self.ledger.slice_mut(class);
        let params = in_force.params;
        if in_force.flow_queue() != flows.queue {
            in_force.set_flow_queue(flows.queue);
            let (now, slice) = (self.now, self.queue_of(class).slice());
            let (scheduler, pool) = self.scheduler();
            let queue = flows.queue.as_ref();
            scheduler.set_flow_queue(slice, queue, params.queue_limit, pool, now);
        }
        let weight = params.weight;
        let state = &mut self.path.built.classes[class as usize];
        if let Some(mut special) = state.special.take() {
            let before = special.flows.take().map(|watch| *watch);
            special.flows = FlowWatch::new(flows, weight, before).map(Box::new);
            special.by_flow = flows.queue.is_some() || special.flows.is_some();
            state.special = special.boxed();
        }
        self.weigh(class, weight);
        self.on_changed();
        Ok(SliceChanged { class, waiting: 0 })
    }

    /// Returns whether that can be done now. Before flows get queues of their own, every frame that waits must carry the hash of its
    /// flow; those that arrive do so from here on.
    pub(super) fn prepare_flows(
        &mut self,
        name: &str,
        flows: &SliceFlows,
    ) -> Result<u32, SliceChangeError> {
        let (class, _) = self.find(name)?;
        let is_special = self.path.built.classes[class as usize].special.is_some();
        if *flows == SliceFlows::default() && !is_special {
            return Ok(class);
        }
        let frames = self.tell_flows_apart(class);
        if flows.queue.is_some() && frames > 0 {
            let name = name.to_owned();
            return Err(SliceChangeError::NotByFlow { name, frames });
        }
        Ok(class)
    }

    /// Frames of a class carry the hash of their flow from now on. Returns how many wait that do not.
    fn tell_flows_apart(&mut self, class: u32) -> u64 {
        let state = &mut self.path.built.classes[class as usize];
        let counters = &state.counters;
        let special = state.special.get_or_insert_default();
        if !special.by_flow {
            special.by_flow = true;
            special.by_flow_from = counters.sent_frames + counters.queued_frames;
        }
        special.by_flow_from.saturating_sub(counters.sent_frames)
    }

    /// The slice of a class has this weight; its active flows may count in it.
    pub(super) fn weigh(&mut self, class: u32, weight: u32) {
        let state = &mut self.path.built.classes[class as usize];
        if let Some(flows) = state.flows_mut() {
            let weight = flows.set_weight(weight);
            let queue = state.queue;
            self.path.built.tree.set_slice_weight(queue, weight);
        }
    }
}
