//! Elephants that are recognised and reported, where flows have queues of their own anyway, or are not to move.

use super::Elephants;
use crate::scheduler::{QueueId, Tree};
use slicewise_model::ElephantsParams;
use slicewise_units::Instant;
use slicewise_wire::Headers;

/// Most flows that a report names for each change; all of them are counted.
const NAMED_MAX: usize = 8;

/// Flows that became elephants, or ceased to be, since the report before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowsChanged {
    /// How many.
    pub flows: u64,
    /// Some of them, each by the headers of a frame.
    pub named: Vec<Headers>,
}

impl FlowsChanged {
    fn with_capacity() -> Self {
        Self {
            flows: 0,
            named: Vec::with_capacity(NAMED_MAX),
        }
    }

    fn push(&mut self, headers: &Headers) {
        self.flows += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(*headers);
        }
    }
}

/// Report on the elephants of a slice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ElephantsSeen {
    /// Elephants now.
    pub now: u32,
    /// Flows that became elephants.
    pub became: FlowsChanged,
    /// Flows that are elephants no longer.
    pub ceased: FlowsChanged,
}

/// Recognises elephants; their frames wait where they would have waited.
#[derive(Debug)]
pub(crate) struct Watch {
    found: Elephants,
    /// Those that were elephants at the last look at all of them, or became it since.
    known: Vec<(u64, Headers)>,
    became: FlowsChanged,
}

impl Watch {
    pub(crate) fn new(params: &ElephantsParams) -> Self {
        Self {
            found: Elephants::new(params, [QueueId::NONE; 2]),
            known: Vec::with_capacity(params.flows as usize),
            became: FlowsChanged::with_capacity(),
        }
    }

    pub(crate) const fn params(&self) -> &ElephantsParams {
        &self.found.params
    }

    /// A frame of a flow that is offered to a queue. Work as that of [`Elephants::on_frame`]; nothing is allocated.
    pub(crate) fn on_frame(
        &mut self,
        (flow, headers): (u64, &Headers),
        bytes: u32,
        now: Instant,
        tree: &Tree,
    ) {
        let before = self.found.counters.tagged;
        let position = self.found.count(flow, bytes, now, tree);
        if self.found.counters.tagged == before {
            return;
        }
        // With heavy hitters, a flow is tagged by a frame of its own.
        let is_tagged = position.and_then(|position| self.found.flows.get(position));
        if !is_tagged.is_some_and(|flow| flow.is_tagged) {
            return;
        }
        if self.known.iter().any(|(known, _)| *known == flow) {
            // It ceased and came again between two looks.
            return;
        }
        if self.known.len() == self.known.capacity() {
            self.known.remove(0);
        }
        self.known.push((flow, *headers));
        self.became.push(headers);
    }

    /// Returns the changes since the last report. Work: O(elephants).
    pub(crate) fn report(&mut self, now: Instant) -> ElephantsSeen {
        if now >= self.found.ends {
            self.found.begin_interval(now);
        }
        let interval = self.found.interval;
        let found = &mut self.found;
        let mut ceased = FlowsChanged::default();
        self.known.retain(|(key, headers)| {
            let position = found.flows.find(*key);
            let flow = position.and_then(|position| found.flows.get_mut(position));
            let is_elephant = flow.is_some_and(|flow| {
                flow.end_intervals(interval, &found.params);
                flow.is_tagged
            });
            if !is_elephant {
                ceased.push(headers);
            }
            is_elephant
        });
        ElephantsSeen {
            now: u32::try_from(self.known.len()).unwrap_or(u32::MAX),
            became: std::mem::replace(&mut self.became, FlowsChanged::with_capacity()),
            ceased,
        }
    }
}
